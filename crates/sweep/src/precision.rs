//! More seeds where an interval is too wide.

use crate::error::SweepError;
use crate::folder::Folder;
use crate::plan::{Plan, Wanted};
use farpath_run::{Engine, FlowStatistics, PointSummary, Statistic};
use std::collections::HashMap;
use std::str::FromStr;
use std::sync::atomic::AtomicBool;

/// Fewer values than this say little of how far they differ.
const LEAST: u64 = 5;

/// How narrow an interval is to be: half its width, as a share of the mean.
#[derive(Debug, Clone, PartialEq)]
pub struct Precision {
    /// Half of the 95 % interval over the mean.
    pub share: f64,
    /// Of which statistic, as [`FlowStatistics`] names it.
    pub statistic: String,
    /// The most seeds of a point.
    pub most: u64,
}

/// Not the name of a statistic.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected one of {known}, found `{found}`")]
pub struct PrecisionError {
    /// As given.
    pub found: String,
    /// What there is.
    pub known: String,
}

impl Precision {
    /// Checks the name of the statistic.
    ///
    /// # Errors
    /// No statistic of that name.
    pub fn check(&self) -> Result<(), PrecisionError> {
        check_statistic(&self.statistic)
    }

    /// How many seeds a sample of a point asks for, of which it has `seeds` now: as many where it is precise enough, or
    /// where nothing is known of it.
    fn seeds(&self, sample: Option<Statistic>, seeds: u64) -> u64 {
        let Some(sample) = sample.filter(|_| seeds < self.most) else { return seeds };
        let least = LEAST.min(self.most).max(seeds);
        let Some(half) = sample.ci95() else { return least.max(seeds + 1) };
        let allowed = self.share * sample.mean.abs();
        if half <= allowed && seeds >= least {
            return seeds;
        }
        // The width goes with one over the root of n. At most four times as many at once: what few values say of their
        // deviation is too rough for more.
        let factor = if allowed > 0.0 { (half / allowed).powi(2).min(4.0) } else { 4.0 };
        let wanted = (seeds as f64 * factor).ceil() as u64;
        wanted.max(least).max(seeds + 1).min(self.most)
    }
}

/// Whether there is a statistic of this name.
pub(crate) fn check_statistic(name: &str) -> Result<(), PrecisionError> {
    let known = FlowStatistics::NAMES;
    match known.contains(&name) {
        true => Ok(()),
        false => Err(PrecisionError { found: name.to_owned(), known: known.join(", ") }),
    }
}

/// Asks for more seeds of the points that are not precise enough; false where none is.
///
/// # Errors
/// A chunk that cannot be read.
pub fn more_seeds(plan: &mut Plan, folder: &Folder, precision: &Precision) -> Result<bool, SweepError> {
    let mut enough: HashMap<(usize, Engine), u64> = HashMap::new();
    each_sample(plan, folder, &precision.statistic, |wanted, sample| {
        let seeds = precision.seeds(sample, wanted.count());
        if wanted.engine != Engine::Predict && seeds > wanted.count() {
            enough.insert((wanted.point, wanted.engine), seeds);
        }
    })?;
    plan.set_seeds(|wanted| enough.get(&(wanted.point, wanted.engine)).copied().unwrap_or(wanted.count()));
    Ok(!enough.is_empty())
}

/// What is known of a statistic, for each point and engine of which there are runs.
pub(crate) fn samples(
    plan: &Plan,
    folder: &Folder,
    statistic: &str,
) -> Result<HashMap<(usize, Engine), Option<Statistic>>, SweepError> {
    let mut samples = HashMap::new();
    each_sample(plan, folder, statistic, |wanted, sample| {
        samples.insert((wanted.point, wanted.engine), sample);
    })?;
    Ok(samples)
}

fn each_sample(
    plan: &Plan,
    folder: &Folder,
    statistic: &str,
    mut take: impl FnMut(&Wanted, Option<Statistic>),
) -> Result<(), SweepError> {
    folder.groups(plan, &AtomicBool::new(false), |wanted, runs| {
        for summary in PointSummary::of_runs(runs) {
            take(wanted, summary.statistics.get(statistic));
        }
    })
}

/// `5 %`, or `0.05`.
impl FromStr for Precision {
    type Err = String;

    fn from_str(text: &str) -> Result<Precision, String> {
        let number = text.strip_suffix('%').map(|percent| (percent, 0.01)).unwrap_or((text, 1.0));
        let share = number.0.trim().parse::<f64>().ok().map(|value| value * number.1);
        let share = share.filter(|share| *share > 0.0 && *share < 1.0);
        let share = share.ok_or_else(|| format!("expected a share such as `5 %`, found `{text}`"))?;
        Ok(Precision { share, statistic: "transfer_time_s".to_owned(), most: 1000 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(n: u64, mean: f64, sd: f64) -> Option<Statistic> {
        Some(Statistic { n, mean, sd: Some(sd), min: 0.0, max: 0.0 })
    }

    #[test]
    fn more_are_asked_for_as_the_width_says_and_at_most_four_times_as_many() {
        let precision: Precision = "5 %".parse().expect("a share");
        // t(9) is 2.262: half a width of 0.715 sd.
        assert_eq!(precision.seeds(sample(10, 1.0, 0.05), 10), 10, "narrow enough");
        assert_eq!(precision.seeds(sample(10, 1.0, 0.1), 10), 21, "10 * 2.047");
        assert_eq!(precision.seeds(sample(10, 1.0, 9.0), 10), 40);
        assert_eq!(precision.seeds(sample(900, 1.0, 9.0), 900), 1000, "the most");
        assert_eq!(precision.seeds(sample(2, 1.0, 0.0), 2), 5, "two that agree are no proof");
        assert_eq!(precision.seeds(None, 10), 10, "nothing completes: more would say as much");
    }

    #[test]
    fn a_width_is_a_share_and_a_statistic_has_a_name() {
        assert!("5".parse::<Precision>().is_err() && "0 %".parse::<Precision>().is_err());
        let mut precision: Precision = "0.02".parse().expect("a share");
        assert_eq!(precision.check(), Ok(()));
        precision.statistic = "speed".to_owned();
        assert!(precision.check().unwrap_err().to_string().contains("goodput_bit_per_s"));
    }
}
