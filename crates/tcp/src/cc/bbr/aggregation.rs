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
