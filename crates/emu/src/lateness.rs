//! How late packets were handed over.

use farpath_units::{Duration, Instant};
use hdrhistogram::Histogram;

/// Longest lateness that is told apart; a packet later than this counts as so late.
const LONGEST: Duration = Duration::from_secs(3600);
/// Two significant digits: a percentile is within 1 %, and the histogram within 35 KiB, so that recording stays in the
/// processor's cache.
const DIGITS: u8 = 2;

/// Times from when packets were due to when they were handed over, as a distribution.
// hdrhistogram: its percentiles are what others mean by the word, and one recording is an index and an addition.
#[derive(Debug, Clone)]
pub struct Lateness {
    ns: Histogram<u64>,
    /// Exact, which the histogram's is not.
    longest: Duration,
    sum_ns: u128,
}

impl Default for Lateness {
    fn default() -> Lateness {
        let ns = Histogram::new_with_bounds(1, LONGEST.as_nanos(), DIGITS)
            .expect("bounds that a histogram can have");
        Lateness { ns, longest: Duration::ZERO, sum_ns: 0 }
    }
}

impl Lateness {
    /// Takes note of a packet. One that was early, which no clock of ours makes it, counts as in time.
    pub(crate) fn record(&mut self, due: Instant, handed_over: Instant) {
        let late = handed_over.saturating_since(due);
        self.ns.saturating_record(late.as_nanos());
        self.longest = self.longest.max(late);
        self.sum_ns += u128::from(late.as_nanos());
    }

    /// Packets.
    pub fn packets(&self) -> u64 {
        self.ns.len()
    }

    /// What this share of the packets was not later than, to two significant digits; zero where there was none.
    pub fn percentile(&self, percent: f64) -> Duration {
        Duration::from_nanos(self.ns.value_at_percentile(percent)).min(self.longest)
    }

    /// The longest, exactly.
    pub fn max(&self) -> Duration {
        self.longest
    }

    /// The mean, exactly; zero where there was none.
    pub fn mean(&self) -> Duration {
        // A mean of u64s is one.
        Duration::from_nanos((self.sum_ns / u128::from(self.packets().max(1))) as u64)
    }

    /// Both together.
    pub fn merged(&self, other: &Lateness) -> Lateness {
        let mut both = self.clone();
        both.ns.add(&other.ns).expect("the bounds are the same");
        both.longest = both.longest.max(other.longest);
        both.sum_ns += other.sum_ns;
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
        for (percent, us) in [(50.0, 500), (99.0, 990)] {
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
        assert_eq!((none.percentile(99.0), none.max(), none.mean()), Default::default());
    }

    #[test]
    fn days_late_is_counted_and_its_maximum_exact() {
        let lateness = of([7 * 86_400 * 1_000_000]);
        assert_eq!(lateness.max(), Duration::from_secs(7 * 86_400));
        assert!(lateness.percentile(50.0) >= LONGEST);
    }

    #[test]
    fn two_directions_make_one_distribution() {
        let both = of([10; 99]).merged(&of([1000]));
        assert_eq!((both.packets(), both.max()), (100, Duration::from_micros(1000)));
        assert_eq!(both.mean(), Duration::from_nanos((99 * 10_000 + 1_000_000) / 100));
    }
}
