//! Round-trip time and the retransmission timeout made from it (RFC 6298).

use crate::config::{BackoffReset, RtoConfig, RtoFloor, RttMeasure, TickExpiry};
use farpath_units::{Duration, Instant};

/// SRTT, RTTVAR, RTO and its back-off.
#[derive(Debug, Clone)]
pub struct RttEstimator {
    config: RtoConfig,
    smoothed: Option<Smoothed>,
    /// The timeout before the first sample; the handshake may raise it (RFC 6298 §5.7).
    unsampled: Duration,
    backoff: u32,
    min_rtt: Option<Duration>,
    last_sample: Option<Duration>,
    samples: u64,
}

#[derive(Debug, Clone, Copy)]
struct Smoothed {
    srtt: Duration,
    rttvar: Duration,
}

impl RtoConfig {
    /// Retransmission timeout without back-off: `SRTT + max(G, K·RTTVAR)` within its floor and ceiling
    /// (RFC 6298 §2.2-2.5).
    ///
    /// `max` is a path property here: the RFC allows a cap of 60 s or more, and 60 s is shorter than the RTT to
    /// Mars at closest approach (about 6 min).
    pub fn timeout(&self, srtt: Duration, rttvar: Duration) -> Duration {
        let spread = self.tick.max(rttvar * u64::from(self.rttvar_factor));
        let rto = match self.floor {
            RtoFloor::Rto => (srtt + spread).max(self.min),
            RtoFloor::Variance => srtt + spread.max(self.min),
        };
        rto.min(self.max)
    }

    /// The same for a timer that is finer than the RTO's, where there are finer ones.
    pub fn timer(&self, now: Instant, wait: Duration) -> Instant {
        if self.timer_wheel { self.expiry(now, wait) } else { now + wait }
    }

    /// When a timer that is started at `now` to wait so long expires.
    pub fn expiry(&self, now: Instant, wait: Duration) -> Instant {
        let tick = self.tick;
        if !self.timer_wheel || tick.is_zero() {
            if self.tick_expiry == TickExpiry::Counted && !tick.is_zero() {
                // Wright, Stevens: TCP/IP Illustrated, Volume 2, 25.4: the tick under way is counted as a whole one.
                let ticks = wait.as_nanos().div_ceil(tick.as_nanos()).max(1);
                return Instant::ZERO + tick * (now.as_nanos() / tick.as_nanos() + ticks);
            }
            return (now + wait).next_multiple_of(tick);
        }
        // kernel/time/timer.c: 64 buckets on each level, each as long as eight of those below. A jiffy has begun already
        // when the wait does, so that the bucket is the one after.
        let wait = wait.as_nanos().div_ceil(tick.as_nanos());
        let mut granule = 1;
        while wait / 63 >= granule {
            granule *= 8;
        }
        let passed = (now.as_nanos() / tick.as_nanos()).saturating_add(wait);
        Instant::ZERO + tick * (passed / granule + 1).saturating_mul(granule)
    }
}

impl RttEstimator {
    /// What it goes by.
    pub fn config(&self) -> &RtoConfig {
        &self.config
    }

    /// One without a sample.
    pub fn new(config: &RtoConfig) -> RttEstimator {
        RttEstimator {
            config: config.clone(),
            smoothed: None,
            unsampled: config.initial,
            backoff: 0,
            min_rtt: None,
            last_sample: None,
            samples: 0,
        }
    }

    /// Takes the measurement of a segment sent at `sent` and acknowledged at `acked` (RFC 6298 §2.2-2.3).
    pub fn sample(&mut self, sent: Instant, acked: Instant) {
        let rtt = match self.config.measure {
            RttMeasure::Exact => acked.saturating_since(sent),
            RttMeasure::Ticks => ticks_between(sent, acked, self.config.tick),
        };
        self.samples += 1;
        self.last_sample = Some(rtt);
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |least| least.min(rtt)));
        self.backoff = 0;
        self.smoothed = Some(match self.smoothed {
            None => Smoothed { srtt: rtt, rttvar: rtt / 2 },
            Some(Smoothed { srtt, rttvar }) => Smoothed {
                rttvar: weighted(rttvar, srtt.abs_diff(rtt), self.config.rttvar_divisor),
                srtt: weighted(srtt, rtt, self.config.srtt_divisor),
            },
        });
    }

    /// Retransmission timeout without back-off.
    fn base_rto(&self) -> Duration {
        self.smoothed.map_or(self.unsampled, |Smoothed { srtt, rttvar }| self.config.timeout(srtt, rttvar))
    }

    /// Retransmission timeout with its back-off, at most `max`.
    pub fn rto(&self) -> Duration {
        // Not even a clock of nanoseconds and no floor make a timer that expires at once, for ever.
        let base = self.base_rto().max(Duration::from_nanos(1));
        base.doubled(self.backoff).min(self.config.max.max(base))
    }

    /// When a timer started at `now` expires: on a tick of the host's clock.
    pub fn deadline(&self, now: Instant) -> Instant {
        self.config.expiry(now, self.rto())
    }

    /// Doubles the timeout after it expired (RFC 6298 §5.5).
    pub fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(self.config.max_backoff_exponent);
    }

    /// The ACK of new data, where that alone ends the back-off.
    pub fn on_new_ack(&mut self) {
        if self.config.backoff_reset == BackoffReset::AnyAck {
            self.backoff = 0;
        }
    }

    /// The handshake is over; its back-off does not burden the data, unless `kept_over_handshake` keeps it or
    /// `after_syn_timeout` says how.
    pub fn on_established(&mut self, syn_again: bool) {
        if !(self.config.kept_over_handshake && self.smoothed.is_none()) {
            self.backoff = 0;
        }
        if let Some(rto) = self.config.after_syn_timeout.filter(|_| syn_again && self.smoothed.is_none()) {
            self.unsampled = self.unsampled.max(rto);
        }
    }

    /// Smoothed RTT.
    pub fn srtt(&self) -> Option<Duration> {
        self.smoothed.map(|s| s.srtt)
    }

    /// RTT variation.
    pub fn rttvar(&self) -> Option<Duration> {
        self.smoothed.map(|s| s.rttvar)
    }

    /// Smallest sample.
    pub fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt
    }

    /// The latest sample, and how many there were.
    pub fn last_sample(&self) -> (Option<Duration>, u64) {
        (self.last_sample, self.samples)
    }
}

/// `old + (new - old) / divisor`, in integers that do not drift.
fn weighted(old: Duration, new: Duration, divisor: u32) -> Duration {
    let step = old.abs_diff(new) / u64::from(divisor.max(1));
    if new >= old { old + step } else { old - step }
}

/// Ticks of the clock that fell between the two, at least one, as a duration.
fn ticks_between(sent: Instant, acked: Instant, tick: Duration) -> Duration {
    if tick.is_zero() {
        return acked.saturating_since(sent);
    }
    let count = acked.as_nanos() / tick.as_nanos() - sent.as_nanos() / tick.as_nanos();
    tick * count.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn estimator(change: impl FnOnce(&mut RtoConfig)) -> RttEstimator {
        let mut config = Config::default().rto;
        change(&mut config);
        RttEstimator::new(&config)
    }

    #[test]
    fn first_sample_sets_srtt_and_half_of_it_as_variation() {
        let mut rtt = estimator(|c| c.min = Duration::ZERO);
        rtt.sample(at(0), at(100));
        assert_eq!(rtt.srtt(), Some(Duration::from_millis(100)));
        assert_eq!(rtt.rttvar(), Some(Duration::from_millis(50)));
        assert_eq!(rtt.rto(), Duration::from_millis(300));
    }

    #[test]
    fn later_samples_are_weighted_an_eighth_and_a_quarter() {
        let mut rtt = estimator(|c| c.min = Duration::ZERO);
        rtt.sample(at(0), at(100));
        rtt.sample(at(0), at(180));
        assert_eq!(rtt.rttvar(), Some(Duration::from_micros(57_500)));
        assert_eq!(rtt.srtt(), Some(Duration::from_millis(110)));
    }

    #[test]
    fn the_floor_is_on_the_timeout_or_on_its_variance_part() {
        let floor = |floor| {
            let mut rtt = estimator(|c| {
                c.min = Duration::from_millis(200);
                c.floor = floor;
            });
            rtt.sample(at(0), at(40));
            rtt.rto()
        };
        assert_eq!(floor(RtoFloor::Rto), Duration::from_millis(200));
        assert_eq!(floor(RtoFloor::Variance), Duration::from_millis(240));
    }

    #[test]
    fn back_off_doubles_up_to_the_maximum_and_ends_with_a_valid_sample() {
        let mut rtt = estimator(|c| c.max = Duration::from_secs(5));
        assert_eq!(rtt.rto(), Duration::from_secs(1));
        for expected in [2, 4, 5, 5] {
            rtt.back_off();
            rtt.on_new_ack();
            assert_eq!(rtt.rto(), Duration::from_secs(expected));
        }
        rtt.sample(at(0), at(10));
        assert_eq!(rtt.rto(), Duration::from_secs(1));
    }

    #[test]
    fn any_ack_ends_the_back_off_where_the_stack_is_like_that() {
        let mut rtt = estimator(|c| c.backoff_reset = BackoffReset::AnyAck);
        rtt.back_off();
        rtt.on_new_ack();
        assert_eq!(rtt.rto(), Duration::from_secs(1));
    }

    #[test]
    fn a_ceiling_below_the_initial_timeout_is_no_reason_to_shorten_it() {
        let mut rtt = estimator(|c| (c.initial, c.max) = (Duration::from_secs(3), Duration::from_secs(2)));
        rtt.back_off();
        assert_eq!(rtt.rto(), Duration::from_secs(3));
    }

    #[test]
    fn a_coarse_clock_rounds_deadlines_up_and_is_the_least_variance() {
        let mut rtt = estimator(|c| (c.tick, c.min) = (Duration::from_millis(500), Duration::ZERO));
        rtt.sample(at(0), at(40));
        assert_eq!(rtt.rto(), Duration::from_millis(540));
        assert_eq!(rtt.deadline(at(100)), at(1000));
    }

    #[test]
    fn a_counted_timer_expires_between_one_tick_less_and_its_ticks() {
        let expiry = |now, wait| {
            let rtt = estimator(|c| {
                (c.tick, c.tick_expiry) = (Duration::from_millis(500), TickExpiry::Counted);
            });
            rtt.config().expiry(at(now), Duration::from_millis(wait))
        };
        // 1.5 s are three ticks, of which the first has begun: 1.0 to 1.5 s.
        assert_eq!((expiry(0, 1500), expiry(499, 1500)), (at(1500), at(1500)));
        assert_eq!((expiry(500, 1500), expiry(100, 40)), (at(2000), at(500)));
    }

    #[test]
    fn the_back_off_of_the_syn_is_kept_until_a_segment_is_timed_where_the_stack_is_like_that() {
        for (kept, expected) in [(true, 12), (false, 3)] {
            let mut rtt = estimator(|c| {
                (c.initial, c.after_syn_timeout, c.kept_over_handshake) =
                    (Duration::from_secs(3), None, kept);
            });
            rtt.back_off();
            rtt.back_off();
            rtt.on_established(true);
            assert_eq!(rtt.rto(), Duration::from_secs(expected));
            rtt.sample(at(0), at(100));
            assert_eq!(rtt.rto(), Duration::from_secs(1));
        }
    }

    #[test]
    fn a_clock_that_measures_in_ticks_sees_none_pass_or_one_too_many() {
        let mut rtt = estimator(|c| (c.tick, c.measure) = (Duration::from_millis(500), RttMeasure::Ticks));
        rtt.sample(at(100), at(400));
        assert_eq!(rtt.srtt(), Some(Duration::from_millis(500)));
        rtt.sample(at(400), at(1001));
        assert_eq!(rtt.last_sample().0, Some(Duration::from_millis(1000)));
    }

    #[test]
    fn a_syn_timeout_raises_the_first_data_timeout_to_three_seconds() {
        let mut rtt = estimator(|_| {});
        rtt.back_off();
        rtt.on_established(true);
        assert_eq!(rtt.rto(), Duration::from_secs(3));
    }
}
