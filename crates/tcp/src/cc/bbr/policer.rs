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

#[cfg(test)]
mod tests {
    use super::super::steering::{UNIT, Units};
    use super::*;
    use crate::Config;
    use crate::cc::bbr::rounds::sample;

    fn steering() -> Steering {
        Steering::new(&Config::default().congestion, 1000, UNIT, Units::Bytes)
    }

    /// A second in which so much is delivered and a fifth of it lost, after an interval at the rate of `before`.
    fn interval_after(before: Option<u64>, delivered: u64) -> Policer {
        let mut policer = Policer { sampling: true, rate: before, ..Policer::default() };
        let delivered_at = Instant::ZERO + Duration::from_secs(1);
        let lost_ever = delivered.div_ceil(5);
        policer.end(&RateSample { delivered, lost_ever, delivered_at, ..sample() }, &steering());
        policer
    }

    #[test]
    fn two_intervals_within_an_eighth_or_4_kbit_per_second_are_of_one_rate() {
        for (before, rate, believed) in [
            (200_000, 225_000, Some(212_500)),
            (200_000, 225_001, None),
            (200_000, 175_000, Some(187_500)),
            (200_000, 174_999, None),
            // An eighth of 1000 B/s is less than 4 kbit/s.
            (1000, 1500, Some(1250)),
            (1000, 1501, None),
        ] {
            let policer = interval_after(Some(before), rate);
            assert_eq!(policer.in_use(), believed, "{before} and {rate}");
            assert_eq!(policer.rate, Some(believed.unwrap_or(rate)), "else the later one is compared next");
        }
        assert_eq!(interval_after(None, 200_000).rate, Some(200_000));
    }

    #[test]
    fn an_interval_ends_with_the_loss_of_a_fifth_after_a_millisecond() {
        let ends = |delivered, lost_ever, time| {
            let mut policer = Policer { sampling: true, ..Policer::default() };
            let delivered_at = Instant::ZERO + time;
            policer.end(&RateSample { delivered, lost_ever, delivered_at, ..sample() }, &steering());
            policer.rate.is_some()
        };
        // 50 in 256.
        let second = Duration::from_secs(1);
        assert!(ends(256_000, 50_000, second) && !ends(256_000, 49_999, second));
        assert!(!ends(0, 50_000, second));
        let millisecond = Duration::from_millis(1);
        assert!(ends(256_000, 50_000, millisecond));
        assert!(!ends(256_000, 50_000, millisecond - Duration::from_nanos(1)));
    }

    #[test]
    fn an_interval_without_an_end_is_forgotten_after_sixteen_rounds() {
        let mut policer = Policer::default();
        let mut round = |lost, lost_ever| {
            let sample = RateSample { lost, lost_ever, delivered: 1 << 40, ..sample() };
            assert!(!policer.update(&sample, true, true, &steering()));
            (policer.sampling, policer.rounds)
        };
        assert_eq!(round(0, 0), (false, 0), "nothing is lost yet");
        assert_eq!(round(1, 1), (true, 1));
        for rounds in 2..=16 {
            assert_eq!(round(0, 1), (true, rounds));
        }
        assert_eq!(round(0, 1), (false, 0));
    }

    #[test]
    fn what_the_application_holds_down_is_no_interval() {
        let mut policer = Policer { sampling: true, rounds: 3, ..Policer::default() };
        let mut limited = sample();
        limited.measured.as_mut().expect("measured").app_limited = true;
        policer.update(&limited, true, true, &steering());
        assert!(!policer.sampling);
    }
}
