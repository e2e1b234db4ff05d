//! Room in the window for ACKs that come in bunches, as over Wi-Fi and cable (`bbr_update_ack_aggregation()`).

use super::steering::at_rate;
use crate::cc::RateSample;
use farpath_units::{Duration, Instant};

/// The longest bunch that is made room for.
const LONGEST: Duration = Duration::from_millis(100);
/// An epoch begins anew at the latest after so many segments.
const RESET: u64 = 1 << 20;
/// Bytes of a segment, for the limit of an epoch, which Linux has in segments.
const SEGMENT: u64 = 1448;

/// What was acknowledged beyond what the rate says.
#[derive(Debug, Clone, Default)]
pub struct Aggregation {
    /// Of the current and of the last span of rounds.
    extra: [u64; 2],
    current: usize,
    rounds: u32,
    epoch_began: Instant,
    epoch_acked: u64,
}

impl Aggregation {
    /// Takes an ACK. The largest excess of `span` to twice as many round trips counts.
    pub fn update(&mut self, sample: &RateSample, round_starts: bool, span: u32, bandwidth: u64, cwnd: u64) {
        let measured = sample.measured.is_some_and(|measured| measured.rate.is_some());
        if sample.acked == 0 || !measured {
            return;
        }
        if round_starts {
            self.rounds += 1;
            if self.rounds >= span {
                self.rounds = 0;
                self.current ^= 1;
                self.extra[self.current] = 0;
            }
        }
        let time = sample.delivered_at.saturating_since(self.epoch_began);
        let mut expected = at_rate(bandwidth, time);
        // Slower than the rate: what came before was no bunch.
        if self.epoch_acked <= expected || self.epoch_acked + sample.acked >= RESET * SEGMENT {
            self.restart(sample.delivered_at);
            expected = 0;
        }
        self.epoch_acked += sample.acked;
        let extra = self.epoch_acked.saturating_sub(expected).min(cwnd);
        self.extra[self.current] = self.extra[self.current].max(extra);
    }

    /// Silence is no bunch.
    pub fn restart(&mut self, now: Instant) {
        (self.epoch_began, self.epoch_acked) = (now, 0);
    }

    /// What the window gets beyond its share of the bandwidth-delay product.
    pub fn extra_window(&self, bandwidth: u64) -> u64 {
        self.extra[0].max(self.extra[1]).min(at_rate(bandwidth, LONGEST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::bbr::rounds::sample;

    const RATE: u64 = 1_000_000;

    /// `acked` bytes arrive at `ms`; what the window gets for it.
    fn bunch(bunches: &mut Aggregation, ms: u64, acked: u64, round_starts: bool) -> u64 {
        let delivered_at = Instant::ZERO + Duration::from_millis(ms);
        let sample = RateSample { delivered_at, acked, ..sample() };
        bunches.update(&sample, round_starts, 2, RATE, 200_000);
        bunches.extra_window(RATE)
    }

    #[test]
    fn a_bunch_is_what_arrives_beyond_the_rate() {
        let mut bunches = Aggregation::default();
        assert_eq!(bunch(&mut bunches, 10, 30_000, false), 30_000);
        // 10 ms later 10 000 B were to be expected: 5000 B less than what came.
        assert_eq!(bunch(&mut bunches, 20, 15_000, false), 35_000);
        // Slower than the rate: an epoch begins anew, and the largest excess stands.
        assert_eq!(bunch(&mut bunches, 90, 1000, false), 35_000);
        assert_eq!(bunch(&mut bunches, 91, 34_000, false), 35_000);
        assert_eq!(bunch(&mut bunches, 92, 5000, false), 38_000);
    }

    #[test]
    fn a_bunch_is_100_ms_at_the_most_and_no_more_than_the_window() {
        let mut bunches = Aggregation::default();
        assert_eq!(bunch(&mut bunches, 10, 150_000, false), 100_000);
        assert_eq!(bunches.extra_window(10 * RATE), 150_000);
        assert_eq!(bunch(&mut bunches, 20, 300_000, false), 100_000);
        assert_eq!(bunches.extra_window(10 * RATE), 200_000);
    }

    #[test]
    fn the_largest_bunch_of_one_to_two_spans_of_rounds_counts() {
        let mut bunches = Aggregation::default();
        assert_eq!(bunch(&mut bunches, 10, 30_000, false), 30_000);
        let mut at = 100;
        let mut rounds = |bunches: &mut Aggregation, count, acked| {
            (0..count).map(|_| (at += 100, bunch(bunches, at, acked, true)).1).collect::<Vec<_>>()
        };
        assert_eq!(rounds(&mut bunches, 4, 8000), [30_000, 30_000, 30_000, 8000]);
        assert_eq!(rounds(&mut bunches, 4, 1000), [8000, 8000, 8000, 1000]);
    }

    #[test]
    fn silence_is_no_bunch() {
        let mut bunches = Aggregation::default();
        bunch(&mut bunches, 10, 30_000, false);
        bunches.restart(Instant::ZERO + Duration::from_millis(11));
        // Of the 30 000 B nothing is left to add to.
        assert_eq!(bunch(&mut bunches, 11, 6000, false), 30_000);
        assert_eq!(bunches.epoch_acked, 6000);
    }

    #[test]
    fn an_ack_that_measures_nothing_is_no_bunch() {
        let mut bunches = Aggregation::default();
        let silent = RateSample { measured: None, acked: 9000, ..sample() };
        bunches.update(&silent, true, 2, RATE, 200_000);
        assert_eq!(bunches.extra_window(RATE), 0);
    }
}
