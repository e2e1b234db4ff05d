//! HyStart as Linux's CUBIC has it (`hystart_update()` in `tcp_cubic.c`; Ha and Rhee 2011): slow start ends at once where a
//! train of ACKs is as long as half of the round trip, or where the delay has grown.

use super::{AckEvent, Window};
use farpath_units::{Duration, Instant};

/// Segments of `cwnd` below which nothing is judged (`hystart_low_window`).
const LOW_WINDOW: u64 = 16;
/// ACKs no further apart than this belong to one train (`hystart_ack_delta_us`).
const ACK_DELTA: Duration = Duration::from_millis(2);
/// Samples of a round before its smallest RTT is judged (`HYSTART_MIN_SAMPLES`).
const MIN_SAMPLES: u32 = 8;
/// A rise by an eighth of the smallest RTT counts, within these bounds (`HYSTART_DELAY_THRESH`).
const LEAST_RISE: Duration = Duration::from_millis(4);
const LARGEST_RISE: Duration = Duration::from_millis(16);
/// So soon after congestion avoidance began, delays are not judged (a second, `HZ`).
const AFTER_RECOVERY: Duration = Duration::from_secs(1);
/// `sk_gso_max_size`; four of them at the pace are the cushion for bursts, a millisecond at most (`hystart_ack_delay()`).
const SUPER_PACKET: u64 = 65_536;
const LONGEST_CUSHION: Duration = Duration::from_millis(1);

/// The state of `struct bictcp` that is HyStart's.
#[derive(Debug, Clone, Default)]
pub(super) struct LinuxHyStart {
    /// The end of slow start has been found; until a timeout nothing is looked for.
    found: bool,
    /// `delay_min`: the smallest RTT since the connection began or timed out.
    delay_min: Option<Duration>,
    round: Option<Round>,
}

/// A round trip: until what had been sent when it began is acknowledged.
#[derive(Debug, Clone, Copy)]
struct Round {
    began: Instant,
    /// `end_seq`.
    end: u64,
    /// The last ACK of the train with which the round began.
    last_ack: Instant,
    /// `curr_rtt`.
    least: Option<Duration>,
    samples: u32,
}

impl LinuxHyStart {
    /// `delay_min`, once there is one.
    pub fn delay_min(&self) -> Option<Duration> {
        self.delay_min
    }

    /// The delay that an ACK of new data tells, and the smallest so far (`cubictcp_acked()`). Congestion avoidance, where it has
    /// begun since the last loss, did so at `epoch`.
    pub fn observe(&mut self, ack: &AckEvent, epoch: Option<Instant>) -> Option<(Duration, Duration)> {
        let delay = ack.last_rtt?.max(Duration::from_nanos(1_000));
        if epoch.is_some_and(|epoch| ack.now.saturating_since(epoch) < AFTER_RECOVERY) {
            return None;
        }
        let delay_min = self.delay_min.map_or(delay, |least| least.min(delay));
        self.delay_min = Some(delay_min);
        Some((delay, delay_min))
    }

    /// The same, and whether slow start ends with it.
    pub fn on_ack(&mut self, window: &mut Window, ack: &AckEvent, epoch: Option<Instant>, smss: u64) {
        let Some((delay, delay_min)) = self.observe(ack, epoch) else { return };
        if self.found || window.cwnd >= window.ssthresh {
            return;
        }
        let began = Round { began: ack.now, end: ack.sent_to, last_ack: ack.now, least: None, samples: 0 };
        let round = self.round.get_or_insert(began);
        if ack.acked_to > round.end {
            *round = began;
        }
        if window.cwnd / smss < LOW_WINDOW {
            return;
        }
        let train = round.takes_ack(ack.now) && {
            // Nothing is paced here: where it is, Linux asks for twice as long a train.
            let threshold = (delay_min + cushion(window, ack.srtt)) / 2;
            ack.now.saturating_since(round.began) > threshold
        };
        if round.takes_sample(delay, delay_min) || train {
            self.found = true;
            window.ssthresh = window.cwnd;
        }
    }

    /// The retransmission timer has expired: all is forgotten (`bictcp_reset()`).
    pub fn on_timeout(&mut self) {
        *self = LinuxHyStart::default();
    }
}

impl Round {
    /// Whether the ACK belongs to the train. One gap ends it for this round.
    fn takes_ack(&mut self, now: Instant) -> bool {
        let belongs = now.saturating_since(self.last_ack) <= ACK_DELTA;
        if belongs {
            self.last_ack = now;
        }
        belongs
    }

    /// Whether the delay has grown, by this sample and those before it.
    fn takes_sample(&mut self, delay: Duration, delay_min: Duration) -> bool {
        let least = self.least.map_or(delay, |least| least.min(delay));
        self.least = Some(least);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        least > delay_min + (delay_min / 8).min(LARGEST_RISE).max(LEAST_RISE)
    }
}

/// What bursts may delay ACKs by: four super-packets at the rate that Linux would pace at, twice the window per round trip.
fn cushion(window: &Window, srtt: Option<Duration>) -> Duration {
    let Some(srtt) = srtt else { return Duration::ZERO };
    let ns = u128::from(4 * SUPER_PACKET) * u128::from(srtt.as_nanos()) / u128::from(2 * window.cwnd.max(1));
    Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX)).min(LONGEST_CUSHION)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMSS: u64 = 1000;

    /// A round trip of 80 ms in slow start, `sent_to` far ahead: one round unless told.
    struct Script {
        hystart: LinuxHyStart,
        window: Window,
        acked_to: u64,
    }

    impl Script {
        fn new(segments: u64) -> Script {
            let window = Window { cwnd: segments * SMSS, ssthresh: u64::MAX };
            Script { hystart: LinuxHyStart::default(), window, acked_to: 1 }
        }

        fn ack(&mut self, at_us: u64, rtt_us: u64) -> &mut Script {
            self.acked_to += SMSS;
            let ack = AckEvent {
                now: Instant::ZERO + Duration::from_micros(at_us),
                newly_acked: SMSS,
                acked_to: self.acked_to,
                sent_to: self.acked_to + self.window.cwnd,
                flight_size: 0,
                cwnd_limited: true,
                rtt: None,
                last_rtt: Some(Duration::from_micros(rtt_us)),
                srtt: Some(Duration::from_millis(80)),
            };
            self.hystart.on_ack(&mut self.window, &ack, None, SMSS);
            self
        }

        fn has_left(&self) -> bool {
            self.window.ssthresh == self.window.cwnd
        }
    }

    #[test]
    fn a_train_longer_than_half_of_the_round_trip_ends_slow_start() {
        let mut t = Script::new(100);
        // 40.5 ms: half of the round trip, and of a millisecond for bursts.
        for n in 0..=40 {
            assert!(!t.ack(1000 * n, 80_000).has_left(), "after {n} ms");
        }
        assert!(t.ack(41_000, 80_000).has_left());
    }

    #[test]
    fn a_gap_of_more_than_2_ms_ends_the_train_for_its_round() {
        let mut t = Script::new(100);
        t.ack(0, 80_000).ack(2_001, 80_000);
        for n in 3..60 {
            t.ack(1000 * n, 80_000);
        }
        assert!(!t.has_left());
    }

    #[test]
    fn the_ninth_sample_judges_the_delay() {
        let mut t = Script::new(100);
        t.ack(0, 80_000);
        t.acked_to += t.window.cwnd; // the next round
        for n in 0..8 {
            assert!(!t.ack(80_000 + 3000 * n, 90_001).has_left());
        }
        assert!(t.ack(110_000, 90_001).has_left(), "more than an eighth");
    }

    #[test]
    fn a_rise_of_an_eighth_is_none() {
        let mut t = Script::new(100);
        t.ack(0, 80_000);
        t.acked_to += t.window.cwnd;
        for n in 0..30 {
            t.ack(80_000 + 3000 * n, 90_000);
        }
        assert!(!t.has_left());
    }

    #[test]
    fn windows_below_sixteen_segments_are_not_judged() {
        let mut t = Script::new(15);
        for n in 0..100 {
            t.ack(1000 * n, 80_000 + 1000 * n);
        }
        assert!(!t.has_left());
    }

    #[test]
    fn a_timeout_begins_anew() {
        let mut t = Script::new(100);
        for n in 0..50 {
            t.ack(1000 * n, 80_000);
        }
        assert!(t.has_left());
        t.window.ssthresh = u64::MAX;
        t.ack(60_000, 200_000);
        t.hystart.on_timeout();
        for n in 0..=60 {
            t.ack(100_000 + 1000 * n, 80_000);
        }
        assert!(t.has_left());
    }

    #[test]
    fn the_first_second_of_congestion_avoidance_is_not_judged() {
        let mut t = Script::new(100);
        let ack = AckEvent {
            now: Instant::ZERO + Duration::from_millis(999),
            newly_acked: SMSS,
            acked_to: SMSS,
            sent_to: SMSS,
            flight_size: 0,
            cwnd_limited: true,
            rtt: None,
            last_rtt: Some(Duration::from_millis(1)),
            srtt: None,
        };
        t.hystart.on_ack(&mut t.window, &ack, Some(Instant::ZERO), SMSS);
        assert_eq!(t.hystart.delay_min, None);
    }

    #[test]
    fn a_cushion_is_what_four_super_packets_take_and_a_millisecond_at_most() {
        // 262 144 B at twice 100 MB in 80 ms; hystart_ack_delay() asks for sk_pacing_rate.
        let srtt = Some(Duration::from_millis(80));
        let of = |cwnd| cushion(&Window { cwnd, ssthresh: u64::MAX }, srtt);
        assert_eq!(of(100_000_000), Duration::from_nanos(104_857));
        assert_eq!(of(1_000_000), Duration::from_millis(1));
        assert_eq!(cushion(&Window { cwnd: 1, ssthresh: 0 }, None), Duration::ZERO);
    }

    #[test]
    fn outside_of_slow_start_nothing_is_found() {
        let mut t = Script::new(100);
        t.window.ssthresh = 50 * SMSS;
        for n in 0..60 {
            t.ack(1000 * n, 80_000);
        }
        assert_eq!(t.window.ssthresh, 50 * SMSS);
    }
}
