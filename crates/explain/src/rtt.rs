//! Round-trip times under a transfer: what a call or a game beside it would feel.

use farpath_units::Duration;
use serde::Serialize;

/// Half, 95 % and 99 % of the samples are no longer than these.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Quantiles {
    /// The median.
    pub p50: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The 99th percentile.
    pub p99: f64,
}

/// Counts of durations in classes of one per cent each, so that a million of them take no more room than a few.
#[derive(Debug, Clone, Default)]
pub(crate) struct Histogram {
    classes: Vec<u64>,
}

/// Each class reaches so much further than the one before; times below a microsecond are one class.
const STEP: f64 = 1.01;
const LEAST_S: f64 = 1e-6;

impl Histogram {
    pub fn add(&mut self, time: Duration) {
        let class = ((time.as_secs_f64() / LEAST_S).max(1.0).ln() / STEP.ln()) as usize;
        if self.classes.len() <= class {
            self.classes.resize(class + 1, 0);
        }
        self.classes[class] += 1;
    }
}

impl Quantiles {
    pub(crate) fn of<'a>(histograms: impl Iterator<Item = &'a Histogram>) -> Option<Quantiles> {
        let mut classes: Vec<u64> = Vec::new();
        for histogram in histograms {
            if classes.len() < histogram.classes.len() {
                classes.resize(histogram.classes.len(), 0);
            }
            for (sum, count) in classes.iter_mut().zip(&histogram.classes) {
                *sum += count;
            }
        }
        let all: u64 = classes.iter().sum();
        let quantile = |share: f64| {
            let mut left = (all as f64 * share).ceil().max(1.0) as u64;
            let class = classes.iter().position(|count| {
                let reached = *count >= left;
                left = left.saturating_sub(*count);
                reached
            });
            // The middle of the class.
            LEAST_S * STEP.powf(class.unwrap_or(0) as f64 + 0.5)
        };
        (all > 0).then(|| Quantiles { p50: quantile(0.5), p95: quantile(0.95), p99: quantile(0.99) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_a_per_cent() {
        let mut times = Histogram::default();
        for ms in 1..=1000 {
            times.add(Duration::from_millis(ms));
        }
        let found = Quantiles::of([&times].into_iter()).expect("there are some");
        for (found, expected) in [(found.p50, 0.5), (found.p95, 0.95), (found.p99, 0.99)] {
            assert!((found / expected - 1.0).abs() < 0.01, "{found} {expected}");
        }
        assert_eq!(Quantiles::of([&Histogram::default()].into_iter()), None);
    }
}
