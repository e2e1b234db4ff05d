//! How late packets were handed over.

use farpath_units::{Duration, DurationHistogram, Instant};

/// Times from when packets were due to when they were handed over, as a distribution.
#[derive(Debug, Clone, Default)]
pub struct Lateness(DurationHistogram);

impl Lateness {
    /// Takes note of a packet. One that was early, which no clock of ours makes it, counts as in time.
    pub(crate) fn record(&mut self, due: Instant, handed_over: Instant) {
        self.0.record(handed_over.saturating_since(due));
    }

    /// Packets.
    pub fn packets(&self) -> u64 {
        self.0.count()
    }

    /// What this share of the packets was not later than, within 1 %; zero where there was none.
    pub fn percentile(&self, percent: u32) -> Duration {
        self.0.percentile(percent).unwrap_or_default()
    }

    /// The longest, exactly.
    pub fn max(&self) -> Duration {
        self.0.longest().unwrap_or_default()
    }

    /// The mean, exactly; zero where there was none.
    pub fn mean(&self) -> Duration {
        self.0.mean().unwrap_or_default()
    }

    /// Both together.
    pub fn merged(&self, other: &Lateness) -> Lateness {
        let mut both = self.clone();
        both.0.merge(&other.0);
        both
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(late_us: impl IntoIterator<Item = u64>) -> Lateness {
        let mut lateness = Lateness::default();
        for us in late_us {
            let due = Instant::from_nanos(5_000_000_000);
            lateness.record(due, due + Duration::from_micros(us));
        }
        lateness
    }

    #[test]
    fn percentiles_are_within_one_percent_and_mean_and_max_exact() {
        let lateness = of(1..=1000);
        for (percent, us) in [(50, 500), (99, 990)] {
            let (found, exact) = (lateness.percentile(percent), Duration::from_micros(us));
            assert!(found.abs_diff(exact).as_nanos() * 100 <= exact.as_nanos(), "{found} for {exact}");
        }
        assert_eq!(lateness.max(), Duration::from_micros(1000));
        assert_eq!(lateness.mean(), Duration::from_nanos(500_500));
        assert_eq!(lateness.packets(), 1000);
    }

    #[test]
    fn no_packet_no_lateness() {
        let none = Lateness::default();
        assert_eq!((none.percentile(99), none.max(), none.mean()), Default::default());
    }

    #[test]
    fn days_late_is_counted_and_its_maximum_exact() {
        let lateness = of([7 * 86_400 * 1_000_000]);
        assert_eq!(lateness.max(), Duration::from_secs(7 * 86_400));
        assert!(lateness.percentile(50) == lateness.max());
    }

    #[test]
    fn two_directions_make_one_distribution() {
        let both = of([10; 99]).merged(&of([1000]));
        assert_eq!((both.packets(), both.max()), (100, Duration::from_micros(1000)));
        assert_eq!(both.mean(), Duration::from_nanos((99 * 10_000 + 1_000_000) / 100));
    }
}
