//! How far engines agree, over the points of a sweep.

use farpath_run::{Engine, PointSummary, Run, Statistic};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Mean transfer time of completed transfers.
    TransferTime,
    /// Mean number of retransmissions.
    Retransmissions,
    /// Mean number of timeouts.
    Timeouts,
}

impl Quantity {
    /// All of them.
    pub const ALL: [Quantity; 3] = [Quantity::TransferTime, Quantity::Retransmissions, Quantity::Timeouts];

    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Quantity::TransferTime => "transfer time",
            Quantity::Retransmissions => "retransmissions",
            Quantity::Timeouts => "timeouts",
        }
    }

    fn statistic(self, summary: &PointSummary) -> Option<Statistic> {
        match self {
            Quantity::TransferTime => summary.statistics.transfer_time_s,
            Quantity::Retransmissions => summary.statistics.retransmissions,
            Quantity::Timeouts => summary.statistics.timeouts,
        }
    }
}

/// What two engines say of one quantity, over all points that both answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Agreement {
    /// What is compared.
    pub quantity: Quantity,
    /// Whose numbers.
    #[serde(serialize_with = "engine")]
    pub of: Engine,
    /// What they are held against.
    #[serde(serialize_with = "engine")]
    pub against: Engine,
    /// Half of the points are nearer than this: a share of the second's number.
    pub median: f64,
    /// 90th percentile of the difference over the points.
    pub p90: f64,
    /// The worst first.
    pub points: Vec<PointError>,
}

/// One point.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PointError {
    /// Which, from 0.
    pub point: u64,
    /// The one's number less the other's, as a share of the other's.
    pub error: f64,
    /// Half the width of the 95 % interval of that, from how far the runs of each differ; `None` where one of them has
    /// a single run, or nothing but equal ones.
    pub noise: Option<f64>,
    /// The one's number.
    pub value: f64,
    /// The other's.
    pub reference: f64,
}

impl PointError {
    /// Whether runs with other seeds could have come out so by chance.
    pub fn within_noise(&self) -> bool {
        self.noise.is_some_and(|noise| self.error.abs() <= noise)
    }
}

impl Agreement {
    /// The worst point.
    pub fn worst(&self) -> &PointError {
        &self.points[0]
    }
}

/// Fewer events than this are told apart by chance alone, and a share of them says nothing.
const LEAST_EVENTS: f64 = 10.0;

/// What each run of an engine says of each point.
type Answers<'a> = BTreeMap<u64, Vec<&'a Run>>;

/// Every two engines that have answered the same points, the more theoretical first; void runs are no answer. Where both
/// have made runs with the same seeds, these alone are compared: the packet of a number has the same fate in both.
pub fn agreements(runs: &[Run]) -> Vec<Agreement> {
    let mut answers: BTreeMap<Engine, Answers<'_>> = BTreeMap::new();
    for run in runs {
        answers.entry(run.engine).or_default().entry(run.point).or_default().push(run);
    }
    let engines: Vec<(&Engine, &Answers<'_>)> = answers.iter().collect();
    let mut agreements = Vec::new();
    for quantity in Quantity::ALL {
        for (i, (of, ones)) in engines.iter().enumerate() {
            for (against, others) in &engines[i + 1..] {
                let errors =
                    ones.iter().filter_map(|(&point, one)| error(quantity, point, one, others.get(&point)?));
                agreements.extend(agreement(quantity, **of, **against, errors.collect()));
            }
        }
    }
    agreements
}

fn agreement(
    quantity: Quantity,
    of: Engine,
    against: Engine,
    mut points: Vec<PointError>,
) -> Option<Agreement> {
    points.sort_by(|a, b| b.error.abs().total_cmp(&a.error.abs()));
    let last = points.len().checked_sub(1)?;
    // The nearest rank; they stand in falling order.
    let within = |share: f64| {
        let rank = (share * points.len() as f64).ceil() as usize;
        points[last - (rank.max(1) - 1)].error.abs()
    };
    Some(Agreement { quantity, of, against, median: within(0.5), p90: within(0.9), points })
}

fn error(quantity: Quantity, point: u64, ones: &[&Run], others: &[&Run]) -> Option<PointError> {
    let values = |runs: &[&Run]| -> BTreeMap<Option<u64>, f64> {
        let value =
            |run: &&Run| Some((run.seed, quantity.statistic(PointSummary::of_runs([*run]).first()?)?.mean));
        runs.iter().filter_map(value).collect()
    };
    let (mut ones, mut others) = (values(ones), values(others));
    let paired: Vec<f64> = ones.iter().filter_map(|(seed, one)| Some(one - others.get(seed)?)).collect();
    let is_paired = !paired.is_empty() && !ones.contains_key(&None);
    if is_paired {
        let common: BTreeSet<Option<u64>> =
            ones.keys().filter(|seed| others.contains_key(seed)).copied().collect();
        ones.retain(|seed, _| common.contains(seed));
        others.retain(|seed, _| common.contains(seed));
    }
    let (a, b) =
        (Statistic::from_values(ones.values().copied())?, Statistic::from_values(others.values().copied())?);
    if b.mean == 0.0 || (quantity != Quantity::TransferTime && b.mean < LEAST_EVENTS) {
        return None;
    }
    let noise = if is_paired {
        Statistic::from_values(paired).and_then(|difference| difference.ci95())
    } else if ones.contains_key(&None) {
        // A prediction has no runs that differ.
        b.ci95()
    } else {
        a.ci95().zip(b.ci95()).map(|(a, b)| (a * a + b * b).sqrt())
    };
    Some(PointError {
        error: a.mean / b.mean - 1.0,
        noise: noise.map(|noise| noise / b.mean).filter(|&noise| noise > 0.0),
        point,
        value: a.mean,
        reference: b.mean,
    })
}

fn engine<S: serde::Serializer>(engine: &Engine, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(engine.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpath_run::{FlowRow, Outcome, Provenance, RunKey};
    use farpath_units::{Bytes, Duration};

    fn run(point: u64, engine: Engine, seed: u64, seconds: Option<f64>) -> Run {
        let flow = FlowRow {
            transfer_time: seconds.map(Duration::from_secs_f64),
            retransmissions: seconds.map(|seconds| seconds * 10.0),
            ..FlowRow::new(0, "forward", Outcome::Completed, Bytes(1))
        };
        let key = RunKey { point, engine, seed: Some(seed) };
        Run { flows: vec![flow], ..Run::new(key, Provenance::default()) }
    }

    #[test]
    fn errors_are_shares_of_the_second_and_the_worst_comes_first() {
        let times = [1.0, 1.01, 0.98, 1.2, 1.0, 0.95, 1.02, 1.03, 0.97, 1.0];
        let runs: Vec<Run> = (0..)
            .zip(times)
            .flat_map(|(point, time)| {
                [run(point, Engine::Simulate, 1, Some(time)), run(point, Engine::Emulate, 1, Some(1.0))]
            })
            .collect();
        let agreements = agreements(&runs);
        let [times, retransmissions] = &agreements[..] else {
            panic!("one pair, two quantities that it has")
        };
        assert_eq!((times.of, times.against), (Engine::Simulate, Engine::Emulate));
        assert_eq!((times.worst().point, times.points.len()), (3, 10));
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(
            near(times.worst().error, 0.2) && near(times.p90, 0.05) && near(times.median, 0.02),
            "{times:?}"
        );
        assert_eq!(retransmissions.points.len(), 10, "10 are enough to compare");
    }

    #[test]
    fn what_one_does_not_know_is_no_point_and_noise_is_that_of_the_runs() {
        let runs = [
            run(0, Engine::Simulate, 1, Some(1.0)),
            run(0, Engine::Simulate, 2, Some(1.2)),
            // Nobody else has this seed.
            run(0, Engine::Simulate, 3, Some(7.0)),
            run(0, Engine::Emulate, 1, Some(1.0)),
            run(0, Engine::Emulate, 2, Some(1.3)),
            run(1, Engine::Simulate, 1, Some(1.0)),
            run(1, Engine::Emulate, 1, None),
        ];
        let agreements = agreements(&runs);
        let times = &agreements[0];
        assert_eq!(times.points.len(), 1);
        let worst = times.worst();
        assert!(
            (worst.value - 1.1).abs() < 1e-9 && (worst.error - 1.1 / 1.15 + 1.0).abs() < 1e-9,
            "{worst:?}"
        );
        assert!(worst.within_noise(), "differences of 0 and 0.1 say nothing of 4 %");
    }
}
