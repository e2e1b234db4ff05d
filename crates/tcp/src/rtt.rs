//! Round-trip time and the retransmission timeout made from it (RFC 6298).

use crate::config::{
    BackoffReset, RetransmittedSyn, RtoConfig, RtoFloor, RttMeasure, RttVariation, TickExpiry,
};
use farpath_units::{Duration, Instant};

/// SRTT, RTTVAR, RTO and its back-off.
#[derive(Debug, Clone)]
pub struct RttEstimator {
    config: RtoConfig,
    smoothed: Option<Smoothed>,
    /// The timeout before the first sample; the handshake may raise it (RFC 6298 §5.7).
    unsampled: Duration,
    backoff: u32,
    /// What follows from the fields above: a timer is started for each segment, and they change with an ACK.
    rto: Duration,
    min_rtt: Option<Duration>,
    last_sample: Option<Duration>,
    samples: u64,
}

#[derive(Debug, Clone, Copy)]
struct Smoothed {
    srtt: Duration,
    rttvar: Duration,
    /// Where RTTVAR follows the largest deviation of a round trip.
    deviation: Deviation,
}

/// What Linux's `tcp_rtt_estimator()` keeps beside SRTT and RTTVAR, in its units: microseconds, four times the mean deviation.
#[derive(Debug, Clone, Copy, Default)]
struct Deviation {
    /// Eight times SRTT.
    srtt: u64,
    /// `mdev_us`, and the largest of this round trip.
    mean: u64,
    largest: u64,
    /// `rttvar_us`.
    variation: u64,
    /// The round trip is over when more than this is acknowledged.
    round: u64,
}

impl Deviation {
    /// The first sample of `rtt` microseconds.
    fn first(rtt: u64, floor: u64, next: u64) -> Deviation {
        let variation = (2 * rtt).max(floor);
        Deviation { srtt: 8 * rtt, mean: 2 * rtt, largest: variation, variation, round: next }
    }

    /// Another one, where all before `una` is acknowledged and `next` is sent next.
    fn follow(&mut self, rtt: u64, floor: u64, una: u64, next: u64) {
        let smoothed = self.srtt / 8;
        self.srtt = self.srtt + rtt - smoothed;
        let off = rtt.abs_diff(smoothed);
        let mean = self.mean / 4;
        if off < mean {
            self.mean -= mean - off;
        } else if rtt < smoothed {
            // An RTT below the mean raises the deviation an eighth as fast.
            self.mean += (off - mean) / 8;
        } else {
            self.mean += off - mean;
        }
        if self.mean > self.largest {
            self.largest = self.mean;
            self.variation = self.variation.max(self.largest);
        }
        if una > self.round {
            self.variation -= self.variation.saturating_sub(self.largest) / 4;
            (self.round, self.largest) = (next, floor);
        }
    }

    fn smoothed(self) -> Smoothed {
        Smoothed {
            srtt: Duration::from_micros(self.srtt / 8),
            rttvar: Duration::from_micros(self.variation / 4),
            deviation: self,
        }
    }
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
        if self.tick_expiry == TickExpiry::TimerWheel { self.expiry(now, wait) } else { now + wait }
    }

    /// When a timer that is started at `now` to wait so long expires.
    pub fn expiry(&self, now: Instant, wait: Duration) -> Instant {
        let tick = self.tick;
        if tick.is_zero() {
            return now + wait;
        }
        match self.tick_expiry {
            TickExpiry::RoundedUp => return (now + wait).next_multiple_of(tick),
            TickExpiry::Counted => {
                // Wright, Stevens: TCP/IP Illustrated, Volume 2, 25.4: the tick under way is counted as a whole one.
                let ticks = wait.as_nanos().div_ceil(tick.as_nanos()).max(1);
                return Instant::ZERO + tick * (now.as_nanos() / tick.as_nanos() + ticks);
            }
            TickExpiry::TimerWheel => {}
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
        let mut estimator = RttEstimator {
            config: config.clone(),
            smoothed: None,
            unsampled: config.initial,
            backoff: 0,
            rto: Duration::ZERO,
            min_rtt: None,
            last_sample: None,
            samples: 0,
        };
        estimator.update_rto();
        estimator
    }

    /// Takes the measurement of a segment sent at `sent` and acknowledged at `acked` (RFC 6298 §2.2-2.3), before any data is sent.
    pub fn sample(&mut self, sent: Instant, acked: Instant) {
        self.sample_in_flight(sent, acked, 1, 1);
    }

    /// The same, where all before `una` is acknowledged and `next` is sent next.
    #[inline(always)]
    pub fn sample_in_flight(&mut self, sent: Instant, acked: Instant, una: u64, next: u64) {
        self.take_sample(sent, acked, una, next);
        self.update_rto();
    }

    fn take_sample(&mut self, sent: Instant, acked: Instant, una: u64, next: u64) {
        let rtt = match self.config.measure {
            RttMeasure::Exact => acked.saturating_since(sent),
            RttMeasure::Ticks => ticks_between(sent, acked, self.config.tick),
        };
        self.samples += 1;
        self.last_sample = Some(rtt);
        self.note_least(rtt);
        self.backoff = 0;
        if self.config.variation == RttVariation::Linux {
            let micros = |instant: Instant| instant.as_nanos() / 1000;
            let (rtt, floor) = (micros(acked).saturating_sub(micros(sent)), self.variation_floor());
            let deviation = match self.smoothed {
                None => Deviation::first(rtt, floor, next),
                Some(Smoothed { mut deviation, .. }) => {
                    deviation.follow(rtt, floor, una, next);
                    deviation
                }
            };
            self.smoothed = Some(deviation.smoothed());
            return;
        }
        let deviation = Deviation::default();
        self.smoothed = Some(match self.smoothed {
            None => Smoothed { srtt: rtt, rttvar: rtt / 2, deviation },
            Some(Smoothed { srtt, rttvar, .. }) => Smoothed {
                rttvar: weighted(rttvar, srtt.abs_diff(rtt), self.config.rttvar_divisor),
                srtt: weighted(srtt, rtt, self.config.srtt_divisor),
                deviation,
            },
        });
    }

    /// A round trip that was measured beside the samples: `min_rtt` can be less than each of them.
    pub fn note_least(&mut self, rtt: Duration) {
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |least| least.min(rtt)));
    }

    /// The least that RTTVAR can be, in Linux's units.
    fn variation_floor(&self) -> u64 {
        match self.config.floor {
            RtoFloor::Rto => 0,
            RtoFloor::Variance => self.config.min.as_nanos() / 1000,
        }
    }

    /// Retransmission timeout without back-off.
    fn base_rto(&self) -> Duration {
        match self.smoothed {
            None => self.unsampled,
            Some(Smoothed { deviation, .. }) if self.config.variation == RttVariation::Linux => {
                let us = deviation.srtt / 8 + deviation.variation;
                let rto = Duration::from_micros(us.min(MOST_US));
                let rto = if self.config.floor == RtoFloor::Rto { rto.max(self.config.min) } else { rto };
                // In whole jiffies, before it is doubled (`usecs_to_jiffies()`).
                let rounded = (Instant::ZERO + rto).next_multiple_of(self.config.tick);
                rounded.saturating_since(Instant::ZERO).min(self.config.max)
            }
            Some(Smoothed { srtt, rttvar, .. }) => self.config.timeout(srtt, rttvar),
        }
    }

    /// Retransmission timeout with its back-off, at most `max`.
    pub fn rto(&self) -> Duration {
        self.rto
    }

    #[inline(always)]
    fn update_rto(&mut self) {
        // Not even a clock of nanoseconds and no floor make a timer that expires at once, for ever.
        let base = self.base_rto().max(Duration::from_nanos(1));
        self.rto = base.doubled(self.backoff).min(self.config.max.max(base));
    }

    /// When a timer started at `now` expires: on a tick of the host's clock.
    pub fn deadline(&self, now: Instant) -> Instant {
        self.config.expiry(now, self.rto())
    }

    /// When a timer started at `now` to wait so long expires: on a tick of the host's clock.
    pub fn expiry(&self, now: Instant, wait: Duration) -> Instant {
        self.config.expiry(now, wait)
    }

    /// Doubles the timeout after it expired (RFC 6298 §5.5).
    pub fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(self.config.max_backoff_exponent);
        self.update_rto();
    }

    /// The ACK of new data, where that alone ends the back-off.
    pub fn on_new_ack(&mut self) {
        if self.backoff > 0 && self.config.backoff_reset == BackoffReset::AnyAck {
            self.backoff = 0;
            self.update_rto();
        }
    }

    /// The handshake is over; its back-off does not burden the data, unless `retransmitted_syn` keeps it or
    /// `after_syn_timeout` says how.
    pub fn on_established(&mut self, syn_again: bool) {
        if !(self.config.retransmitted_syn == RetransmittedSyn::KeepsBackoff && self.smoothed.is_none()) {
            self.backoff = 0;
        }
        if let Some(rto) = self.config.after_syn_timeout.filter(|_| syn_again && self.smoothed.is_none()) {
            self.unsampled = self.unsampled.max(rto);
        }
        self.update_rto();
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

/// The longest duration, in Linux's units: a floor of as much and a round trip on top of it are no longer.
const MOST_US: u64 = u64::MAX / 1000;

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

    /// Drawn by the test of conservation: the floor is as long as a duration can be, and the round trip came on top of it.
    #[test]
    fn a_floor_without_end_does_not_overflow() {
        let mut rtt = estimator(|c| {
            (c.min, c.max) = (Duration::from_nanos(u64::MAX), Duration::from_nanos(u64::MAX));
            (c.floor, c.variation) = (RtoFloor::Variance, RttVariation::Linux);
            c.tick = Duration::from_nanos(27_527_542_418_045_420);
        });
        rtt.sample(at(0), at(100));
        assert!(rtt.rto() > Duration::from_secs(1 << 30));
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

    /// Linux's estimator, over a floor of 200 ms.
    fn linux() -> RttEstimator {
        estimator(|c| {
            (c.variation, c.floor, c.min) =
                (RttVariation::Linux, RtoFloor::Variance, Duration::from_millis(200));
        })
    }

    #[test]
    fn by_linux_the_variation_rises_at_once_and_falls_once_a_round_trip() {
        // tcp_rtt_estimator(), by hand in its units: 200 ms are mdev 400; 300 after 200 ms once more, and 300 + (1000 - 75)
        // after 1.2 s, which takes SRTT to 325.
        let mut rtt = linux();
        rtt.sample(at(0), at(200));
        assert_eq!(rtt.rto(), Duration::from_millis(200 + 400));
        // Within the round that ends at 5001: una is not beyond it.
        rtt.sample_in_flight(at(0), at(200), 2, 5001);
        rtt.sample_in_flight(at(0), at(1200), 1001, 9001);
        assert_eq!(rtt.rto(), Duration::from_millis(325 + 1225), "it rises within a round");
        for _ in 0..3 {
            rtt.sample_in_flight(at(0), at(325), 5001, 9001);
        }
        assert_eq!(rtt.rttvar(), Some(Duration::from_micros(1_225_000 / 4)), "it does not fall within one");
    }

    #[test]
    fn by_linux_a_fall_is_a_quarter_of_what_the_largest_of_the_round_lies_below() {
        let mut rtt = linux();
        rtt.sample(at(0), at(400));
        // Each sample ends a round; the first of them still has the largest of before it, 800.
        assert_eq!(rtt.rto(), Duration::from_millis(400 + 800));
        let rounds: Vec<Duration> = (1..5)
            .map(|n| {
                rtt.sample_in_flight(at(0), at(400), 1000 * n + 1, 1000 * n + 1);
                rtt.rto().saturating_sub(Duration::from_millis(400))
            })
            .collect();
        // mdev is 600, 450, 337.5, 253.125; its largest 800, 450, 337.5, 253.125.
        assert_eq!(rounds[..2], [Duration::from_millis(800), Duration::from_micros(712_500)]);
        assert_eq!(rounds[2], Duration::from_micros(712_500 - (712_500 - 337_500) / 4));
    }

    #[test]
    fn by_linux_the_floor_of_the_variation_is_that_of_the_timeout() {
        let mut rtt = linux();
        for n in 0..200 {
            rtt.sample_in_flight(at(0), at(20), 1000 * n + 1, 1000 * n + 1);
        }
        assert_eq!(rtt.rto(), Duration::from_millis(220));
        assert_eq!(rtt.rttvar(), Some(Duration::from_millis(50)));
    }

    #[test]
    fn by_linux_a_shorter_round_trip_raises_the_deviation_an_eighth_as_fast() {
        let mut rtt = linux();
        rtt.sample(at(0), at(400));
        for n in 1..20 {
            rtt.sample_in_flight(at(0), at(400), 1000 * n + 1, 1000 * n + 1);
        }
        let mut longer = rtt.clone();
        let before = rtt.rto();
        // 300 ms below SRTT, and as much above it: 4·|off| - mdev is added, an eighth of it here.
        rtt.sample_in_flight(at(0), at(100), 30_001, 30_001);
        longer.sample_in_flight(at(0), at(700), 30_001, 30_001);
        assert!(rtt.rto() < before, "{} after {before}", rtt.rto());
        assert!(longer.rto() > before + Duration::from_millis(80), "{} after {before}", longer.rto());
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
        for (after, expected) in [(RetransmittedSyn::KeepsBackoff, 12), (RetransmittedSyn::Unmeasured, 3)] {
            let mut rtt = estimator(|c| {
                (c.initial, c.after_syn_timeout, c.retransmitted_syn) = (Duration::from_secs(3), None, after);
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
