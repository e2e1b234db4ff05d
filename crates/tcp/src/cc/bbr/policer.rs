//! A rate that somebody polices: heavy loss at the same rate twice over is believed, and not probed against for a while
//! (`bbr_lt_bw_sampling()`).

use super::steering::Steering;
use crate::cc::RateSample;
use farpath_units::{Duration, Instant};

/// Rounds that an interval takes: at least, and at most four times as many.
const INTERVAL: u32 = 4;
/// A fifth of what is delivered, in 256ths: such a loss is a policer's.
const LOSS: u64 = 50;
/// Two rates are the same that differ by an eighth, or by 4 kbit/s.
const NEAR: u64 = 8;
const NEAR_BYTES: u64 = 4000 / 8;
/// So many rounds the rate is held.
const HELD: u32 = 48;

/// Intervals from loss to loss.
#[derive(Debug, Clone, Default)]
pub(super) struct Policer {
    sampling: bool,
    /// Of the interval before, bytes per second.
    rate: Option<u64>,
    in_use: bool,
    rounds: u32,
    began: Instant,
    delivered: u64,
    lost: u64,
}

impl Policer {
    /// The rate that is taken to be policed.
    pub fn in_use(&self) -> Option<u64> {
        self.rate.filter(|_| self.in_use)
    }

    /// Nothing is known of a policer.
    pub fn reset(&mut self) {
        *self = Policer::default();
    }

    /// Takes an ACK. Whether a policed rate has been held for long enough: probing begins again.
    pub fn update(
        &mut self,
        sample: &RateSample,
        round_starts: bool,
        probes: bool,
        steering: &Steering,
    ) -> bool {
        if self.in_use {
            if probes && round_starts {
                self.rounds += 1;
            }
            let over = probes && round_starts && self.rounds >= HELD;
            if over {
                self.reset();
            }
            return over;
        }
        // The first loss: the policer's tokens are spent.
        if !self.sampling {
            if sample.lost == 0 {
                return false;
            }
            self.begin(sample);
            self.sampling = true;
        }
        if sample.measured.is_some_and(|measured| measured.app_limited) {
            self.reset();
            return false;
        }
        self.rounds += u32::from(round_starts);
        if self.rounds > 4 * INTERVAL {
            self.reset();
            return false;
        }
        if self.rounds >= INTERVAL && sample.lost > 0 {
            self.end(sample, steering);
        }
        false
    }

    fn begin(&mut self, sample: &RateSample) {
        self.began = sample.delivered_at;
        (self.delivered, self.lost, self.rounds) = (sample.delivered, sample.lost_ever, 0);
    }

    fn end(&mut self, sample: &RateSample, steering: &Steering) {
        let (delivered, lost) = (sample.delivered - self.delivered, sample.lost_ever - self.lost);
        let time = sample.delivered_at.saturating_since(self.began);
        if delivered == 0 || lost * 256 < LOSS * delivered || time < Duration::from_millis(1) {
            return;
        }
        let rate = steering.rate(delivered, time);
        match self.rate {
            Some(before) if rate.abs_diff(before) * NEAR <= before || rate.abs_diff(before) <= NEAR_BYTES => {
                self.rate = Some(before.midpoint(rate));
                (self.in_use, self.rounds) = (true, 0);
            }
            _ => {
                self.rate = Some(rate);
                self.begin(sample);
            }
        }
    }
}
