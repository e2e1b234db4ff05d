//! HyStart++ (RFC 9406): leaves the first slow start when the delay grows, before the queue overflows.

use super::AckEvent;
use farpath_units::Duration;

/// Least rise of a round's smallest RTT that counts (RFC 9406 §4.3).
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
/// Rise that always counts (RFC 9406 §4.3).
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
/// Between the two: this fraction of the last round's smallest RTT (RFC 9406 §4.3).
const MIN_RTT_DIVISOR: u64 = 8;
/// Samples of a round before its smallest RTT is trusted (RFC 9406 §4.3).
const N_RTT_SAMPLE: u32 = 8;
/// Conservative Slow Start grows by this fraction of slow start's increase (RFC 9406 §4.3).
const CSS_GROWTH_DIVISOR: u64 = 4;
/// Rounds of Conservative Slow Start, the one in which it begins included (RFC 9406 §4.3).
const CSS_ROUNDS: u32 = 5;
/// L for a sender that does not pace (RFC 9406 §4.3), which ours does not: segments that one ACK may add.
const L: u64 = 8;

/// What an ACK does to slow start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    /// Bytes to add to `cwnd`.
    pub increase: u64,
    /// `ssthresh` becomes `cwnd`: congestion avoidance begins.
    pub leaves_slow_start: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Standard,
    /// Conservative Slow Start (CSS): waits to see whether the delay stays.
    Conservative {
        /// `cssBaselineMinRtt`.
        baseline: Duration,
        /// Rounds that have ended.
        rounds: u32,
    },
}

/// The state of RFC 9406 §4.2; `None` stands for its infinity.
#[derive(Debug, Clone)]
pub(super) struct HyStart {
    smss: u64,
    phase: Phase,
    /// `windowEnd`: the round ends when this position is acknowledged.
    window_end: Option<u64>,
    /// `lastRoundMinRTT`.
    last_round_min: Option<Duration>,
    /// `currentRoundMinRTT`.
    current_round_min: Option<Duration>,
    /// `rttSampleCount`.
    samples: u32,
    /// Quarters of a byte that CSS has earned and not yet given.
    credit: u64,
}

impl HyStart {
    pub fn new(smss: u64) -> HyStart {
        HyStart {
            smss,
            phase: Phase::Standard,
            window_end: None,
            last_round_min: None,
            current_round_min: None,
            samples: 0,
            credit: 0,
        }
    }

    /// RFC 9406 §4.2, in its order: grow, take the RTT sample, judge it, end the round.
    pub fn on_ack(&mut self, ack: &AckEvent) -> Step {
        // When the first ACK comes, SND.NXT is still where the initial window ended.
        let window_end = *self.window_end.get_or_insert(ack.sent_to);
        let increase = self.increase(ack.newly_acked);
        if let Some(rtt) = ack.rtt {
            self.current_round_min = Some(self.current_round_min.map_or(rtt, |least| least.min(rtt)));
            self.samples = self.samples.saturating_add(1);
            self.judge();
        }
        let round_is_over = ack.acked_to >= window_end;
        let leaves_slow_start = round_is_over && self.end_round(ack.sent_to);
        Step { increase, leaves_slow_start }
    }

    /// `min(N, L·SMSS)` for N newly acknowledged bytes; in CSS a quarter of it.
    fn increase(&mut self, newly_acked: u64) -> u64 {
        let standard = newly_acked.min(L * self.smss);
        match self.phase {
            Phase::Standard => standard,
            Phase::Conservative { .. } => {
                self.credit += standard;
                let increase = self.credit / CSS_GROWTH_DIVISOR;
                self.credit %= CSS_GROWTH_DIVISOR;
                increase
            }
        }
    }

    /// Enters CSS where the delay has risen; goes back where it turns out not to have.
    fn judge(&mut self) {
        let Some(current) = self.current_round_min.filter(|_| self.samples >= N_RTT_SAMPLE) else { return };
        match self.phase {
            Phase::Standard => {
                if self.last_round_min.is_some_and(|last| current >= last + rtt_thresh(last)) {
                    self.phase = Phase::Conservative { baseline: current, rounds: 0 };
                }
            }
            Phase::Conservative { baseline, .. } => {
                if current < baseline {
                    self.phase = Phase::Standard;
                    self.credit = 0;
                }
            }
        }
    }

    /// Begins the next round; true when it was CSS's last.
    fn end_round(&mut self, sent_to: u64) -> bool {
        self.window_end = Some(sent_to);
        self.last_round_min = self.current_round_min.take();
        self.samples = 0;
        match &mut self.phase {
            Phase::Standard => false,
            Phase::Conservative { rounds, .. } => {
                *rounds += 1;
                *rounds >= CSS_ROUNDS
            }
        }
    }

    #[cfg(test)]
    fn in_css(&self) -> bool {
        matches!(self.phase, Phase::Conservative { .. })
    }
}

/// RttThresh (RFC 9406 §4.2).
fn rtt_thresh(last_round_min: Duration) -> Duration {
    (last_round_min / MIN_RTT_DIVISOR).min(MAX_RTT_THRESH).max(MIN_RTT_THRESH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpath_units::Instant;

    const SMSS: u64 = 1000;

    /// Feeds whole rounds of ACKs of one segment each, with one RTT a round.
    struct Script {
        hystart: HyStart,
        acked_to: u64,
        grown: u64,
        left: bool,
    }

    impl Script {
        fn new() -> Script {
            Script { hystart: HyStart::new(SMSS), acked_to: 1, grown: 0, left: false }
        }

        fn ack(&mut self, rtt_ms: Option<u64>, newly_acked: u64, sent_to: u64) {
            self.acked_to += newly_acked;
            let step = self.hystart.on_ack(&AckEvent {
                now: Instant::ZERO,
                newly_acked,
                acked_to: self.acked_to,
                sent_to,
                flight_size: 0,
                cwnd_limited: true,
                rtt: rtt_ms.map(Duration::from_millis),
                last_rtt: None,
                srtt: None,
            });
            self.grown += step.increase;
            self.left |= step.leaves_slow_start;
        }

        /// A round of `segments`, each with `rtt_ms`.
        fn round(&mut self, segments: u64, rtt_ms: u64) -> &mut Script {
            let end = self.acked_to + segments * SMSS;
            for n in 1..=segments {
                // The next round's segments are out when this one's last ACK comes.
                let sent_to = if n == segments { end + segments * SMSS } else { end };
                self.ack(Some(rtt_ms), SMSS, sent_to);
            }
            self
        }
    }

    #[test]
    fn the_threshold_is_an_eighth_between_4_and_16_ms() {
        let thresh = |ms| rtt_thresh(Duration::from_millis(ms));
        assert_eq!(thresh(8), Duration::from_millis(4));
        assert_eq!(thresh(80), Duration::from_millis(10));
        assert_eq!(thresh(600), Duration::from_millis(16));
    }

    #[test]
    fn a_rise_by_the_threshold_enters_css_with_the_eighth_sample() {
        let mut t = Script::new();
        t.round(10, 80);
        for n in 1..=8 {
            assert!(!t.hystart.in_css(), "before sample {n}");
            t.ack(Some(90), SMSS, 1 << 20);
        }
        assert!(t.hystart.in_css());
    }

    #[test]
    fn a_rise_below_the_threshold_and_a_flat_rtt_do_nothing() {
        let mut t = Script::new();
        for rtt in [80, 89, 89, 98, 80, 80, 80, 80] {
            t.round(20, rtt);
        }
        assert!(!t.hystart.in_css() && !t.left);
        assert_eq!(t.grown, 8 * 20 * SMSS, "standard slow start throughout");
    }

    #[test]
    fn rounds_of_fewer_than_eight_samples_are_not_judged() {
        let mut t = Script::new();
        t.round(7, 80).round(7, 200).round(7, 400);
        assert!(!t.hystart.in_css());
    }

    #[test]
    fn acks_without_a_sample_do_not_count() {
        let mut t = Script::new();
        t.round(10, 80);
        for _ in 0..20 {
            t.ack(None, SMSS, 1 << 20);
        }
        t.ack(Some(200), SMSS, 1 << 20);
        assert!(!t.hystart.in_css());
    }

    #[test]
    fn css_grows_by_a_quarter_and_loses_no_byte() {
        let mut t = Script::new();
        t.round(10, 80).round(10, 100);
        assert!(t.hystart.in_css());
        t.grown = 0;
        for _ in 0..1000 {
            t.ack(Some(100), 7, 1 << 20);
        }
        assert_eq!(t.grown, 7 * 1000 / 4);
    }

    #[test]
    fn css_goes_back_to_slow_start_when_the_rtt_falls_below_its_baseline() {
        let mut t = Script::new();
        t.round(10, 80).round(10, 100);
        assert!(t.hystart.in_css());
        t.round(10, 99);
        assert!(!t.hystart.in_css() && !t.left);
        t.grown = 0;
        t.round(10, 99);
        assert_eq!(t.grown, 10 * SMSS, "growth is slow start's again");
    }

    #[test]
    fn css_lasts_five_rounds_the_first_part_included() {
        let mut t = Script::new();
        t.round(10, 80);
        for round in 1..=CSS_ROUNDS {
            assert!(!t.left, "before round {round}");
            t.round(10, 100);
        }
        assert!(t.left);
    }

    #[test]
    fn one_ack_adds_at_most_l_segments() {
        let mut t = Script::new();
        t.ack(Some(80), 8 * SMSS, 1 << 20);
        assert_eq!(t.grown, 8 * SMSS);
        t.ack(Some(80), 100 * SMSS, 1 << 20);
        assert_eq!(t.grown, 16 * SMSS);
    }

    #[test]
    fn a_jump_beyond_anything_measured_does_not_overflow() {
        let mut t = Script::new();
        t.round(10, u64::MAX / 1_000_000);
        t.round(10, u64::MAX / 1_000_000);
        assert!(!t.left);
    }
}
