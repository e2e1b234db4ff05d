//! Additive increase, multiplicative decrease (RFC 5681), with the growth rules of several stacks.

use super::slow_start::{SlowStart, clamp};
use super::{AckEvent, CongestionControl, Controller, LongRun, LossEvent, Named, Window};
use crate::config::{AvoidanceGrowth, CongestionConfig, CwndValidation, SsthreshFrom};
use farpath_units::Duration;

/// Reno's window rules. Recovery is not part of it: Tahoe, Reno, NewReno and SACK share them.
#[derive(Debug, Clone)]
pub struct Reno {
    slow_start: SlowStart,
    avoidance: AvoidanceGrowth,
    ssthresh_from: SsthreshFrom,
    clamp: u64,
    validation: CwndValidation,
    smss: u64,
    /// What congestion avoidance has earned and not yet turned into whole bytes: in SMSS·bytes for growth
    /// per ACK, in bytes for growth per byte. At 750 MB the increase per ACK is 0.003 B; nothing is rounded away.
    credit: u64,
}

impl Reno {
    /// For segments of `smss` bytes.
    pub fn new(config: &CongestionConfig, smss: u64) -> Reno {
        Reno {
            slow_start: SlowStart::new(config, smss),
            avoidance: config.avoidance,
            ssthresh_from: config.ssthresh_from,
            clamp: clamp(config, smss),
            validation: config.cwnd_validation,
            smss,
            credit: 0,
        }
    }

    fn avoidance_increase(&mut self, cwnd: u64, newly_acked: u64) -> u64 {
        match self.avoidance {
            AvoidanceGrowth::PerAck => {
                self.credit += self.smss * self.smss;
                let increase = self.credit / cwnd;
                self.credit %= cwnd;
                increase
            }
            AvoidanceGrowth::PerAckRounded => (self.smss * self.smss / cwnd).max(1),
            AvoidanceGrowth::PerByte => {
                self.credit += newly_acked;
                if self.credit < cwnd {
                    return 0;
                }
                self.credit -= cwnd;
                self.smss
            }
            AvoidanceGrowth::AllAcked | AvoidanceGrowth::Ns3LinuxReno => {
                // Whole segments of the window, as both count them.
                let window = (cwnd / self.smss).max(1) * self.smss;
                let windows = if self.credit >= window {
                    self.credit = newly_acked;
                    1 + newly_acked / window
                } else {
                    self.credit += newly_acked;
                    self.credit / window
                };
                self.credit %= window;
                windows * self.smss
            }
        }
    }
}

impl Named for Reno {
    const LINUX_NAME: Option<&'static str> = Some("reno");
    const LONG_RUN: LongRun = LongRun::Linear { keeps: 0.5 };

    fn controller(config: &CongestionConfig, smss: u64, _tick: Duration) -> Controller {
        Controller::Reno(Reno::new(config, smss))
    }
}

impl CongestionControl for Reno {
    fn on_ack(&mut self, window: &mut Window, ack: &AckEvent) {
        let used = ack.cwnd_limited;
        let (starts, avoids) = match self.validation {
            CwndValidation::Off => (true, true),
            CwndValidation::Avoidance => (true, used),
            CwndValidation::Always | CwndValidation::ByWindow => (used, used),
        };
        // What slow start has not used of the ACK.
        let mut left = ack.newly_acked;
        if window.cwnd < window.ssthresh {
            if !starts {
                return;
            }
            let before = window.cwnd;
            self.slow_start.on_ack(window, ack);
            if window.cwnd < window.ssthresh {
                return;
            }
            left = match self.avoidance {
                AvoidanceGrowth::PerAckRounded if ack.newly_acked > self.smss => ack.newly_acked,
                // An initial window above the clamp shrinks here.
                AvoidanceGrowth::AllAcked => {
                    ack.newly_acked.saturating_sub(window.cwnd.saturating_sub(before))
                }
                _ => 0,
            };
            if left == 0 {
                return;
            }
        }
        if !avoids {
            return;
        }
        let increase = self.avoidance_increase(window.cwnd, left);
        window.cwnd = window.cwnd.saturating_add(increase).min(self.clamp);
    }

    fn ssthresh_after(&mut self, window: &Window, loss: &LossEvent) -> u64 {
        if self.avoidance != AvoidanceGrowth::Ns3LinuxReno {
            self.credit = 0;
        }
        self.slow_start.on_loss();
        match self.ssthresh_from {
            SsthreshFrom::FlightSize => (loss.flight_size / 2).max(2 * self.smss),
            SsthreshFrom::Cwnd => (window.cwnd / 2).max(2 * self.smss),
            SsthreshFrom::CwndSegments => (window.cwnd / self.smss / 2).max(2) * self.smss,
            SsthreshFrom::Pipe => (loss.pipe / 2).max(2 * self.smss),
            SsthreshFrom::WindowSegments => {
                let segments = window.cwnd.min(loss.rwnd) / 2 / self.smss;
                segments.max(2) * self.smss
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use crate::config::{HyStart, SlowStartGrowth};
    use farpath_units::{Bytes, Duration, Instant};

    fn reno(change: impl FnOnce(&mut CongestionConfig)) -> Reno {
        let mut config = Config::default().congestion;
        change(&mut config);
        Reno::new(&config, 1460)
    }

    fn acked(bytes: u64) -> AckEvent {
        AckEvent {
            now: Instant::ZERO,
            newly_acked: bytes,
            acked_to: 0,
            sent_to: 0,
            flight_size: 0,
            cwnd_limited: true,
            rtt: None,
            last_rtt: None,
            srtt: None,
        }
    }

    fn loss(flight_size: u64, rwnd: u64) -> LossEvent {
        LossEvent { now: Instant::ZERO, flight_size, pipe: flight_size, rwnd, timeout: false }
    }

    #[test]
    fn slow_start_grows_by_the_rule_it_is_given() {
        for (rule, newly_acked, expected) in [
            (SlowStartGrowth::PerAck, 2920, 1460),
            (SlowStartGrowth::PerAck, 100, 1460),
            (SlowStartGrowth::PerByte, 2920, 1460),
            (SlowStartGrowth::PerByte, 100, 100),
            (SlowStartGrowth::TwoSegments, 2920, 2920),
            (SlowStartGrowth::TwoSegments, 5840, 2920),
        ] {
            let mut window = Window { cwnd: 2920, ssthresh: u64::MAX };
            reno(|c| c.slow_start = rule).on_ack(&mut window, &acked(newly_acked));
            assert_eq!(window.cwnd, 2920 + expected, "{rule:?} {newly_acked}");
        }
    }

    /// High-BER paper, Table 9 (its row 6, 7762, is a slip for 6762).
    #[test]
    fn growth_per_ack_gives_the_papers_table() {
        let mut window = Window { cwnd: 4380, ssthresh: 4380 };
        let mut reno = reno(|c| c.avoidance = AvoidanceGrowth::PerAck);
        let mut steps = Vec::new();
        for _ in 0..14 {
            reno.on_ack(&mut window, &acked(2920));
            steps.push(window.cwnd);
        }
        let published = [4867, 5305, 5707, 6080, 6431, 6762, 7077, 7379, 7667, 7945, 8214, 8473, 8725, 8969];
        for (ours, theirs) in steps.iter().zip(published) {
            assert!(ours.abs_diff(theirs) <= 1, "{steps:?}");
        }
    }

    #[test]
    fn no_increase_is_rounded_away_on_a_long_fat_path() {
        let start = 750_000_000;
        let mut window = Window { cwnd: start, ssthresh: 0 };
        let mut reno = reno(|c| c.avoidance = AvoidanceGrowth::PerAck);
        for _ in 0..(start / 1460) {
            reno.on_ack(&mut window, &acked(1460));
        }
        assert!(
            (1459..=1460).contains(&(window.cwnd - start)),
            "one SMSS a window, got {}",
            window.cwnd - start
        );
    }

    #[test]
    fn growth_per_byte_waits_for_a_whole_window() {
        let mut window = Window { cwnd: 4380, ssthresh: 4380 };
        let mut reno = reno(|c| c.avoidance = AvoidanceGrowth::PerByte);
        reno.on_ack(&mut window, &acked(2920));
        assert_eq!(window.cwnd, 4380);
        reno.on_ack(&mut window, &acked(2920));
        assert_eq!(window.cwnd, 5840);
    }

    #[test]
    fn the_clamp_holds_and_validation_stops_unused_growth() {
        let mut window = Window { cwnd: 8760, ssthresh: u64::MAX };
        reno(|c| c.cwnd_clamp = Some(Bytes(8760))).on_ack(&mut window, &acked(1460));
        assert_eq!(window.cwnd, 8760);
        let unused = AckEvent { cwnd_limited: false, ..acked(1460) };
        reno(|c| c.cwnd_validation = CwndValidation::Always).on_ack(&mut window, &unused);
        assert_eq!(window.cwnd, 8760);
        reno(|c| c.cwnd_validation = CwndValidation::Off).on_ack(&mut window, &unused);
        assert_eq!(window.cwnd, 10_220);
    }

    #[test]
    fn a_loss_halves_the_flight_or_the_window_in_whole_segments() {
        let window = Window { cwnd: 100_000, ssthresh: u64::MAX };
        assert_eq!(reno(|_| {}).ssthresh_after(&window, &loss(7300, 8760)), 3650);
        assert_eq!(reno(|_| {}).ssthresh_after(&window, &loss(1460, 8760)), 2920);
        let mut linux = reno(|c| c.ssthresh_from = SsthreshFrom::Cwnd);
        assert_eq!(linux.ssthresh_after(&window, &loss(7300, 8760)), 50_000);
        let mut bsd = reno(|c| c.ssthresh_from = SsthreshFrom::WindowSegments);
        assert_eq!(bsd.ssthresh_after(&window, &loss(7300, 8760)), 4380);
        assert_eq!(bsd.ssthresh_after(&Window { cwnd: 1460, ssthresh: 0 }, &loss(7300, 8760)), 2920);
    }

    /// Ten segments a round, each acknowledged with `rtt_ms`; the first round begins at segment `from`.
    fn rounds(reno: &mut Reno, window: &mut Window, from: u64, rtts_ms: &[u64]) {
        for (round, &rtt_ms) in rtts_ms.iter().enumerate() {
            let begins = (from + 10 * round as u64) * 1460;
            for n in 1..=10 {
                // The next round's segments are out when this one's last ACK comes.
                let ack = AckEvent {
                    acked_to: begins + n * 1460,
                    sent_to: begins + if n == 10 { 20 } else { 10 } * 1460,
                    rtt: Some(Duration::from_millis(rtt_ms)),
                    ..acked(1460)
                };
                reno.on_ack(window, &ack);
            }
        }
    }

    #[test]
    fn hystart_ends_slow_start_where_the_delay_has_grown() {
        let mut window = Window { cwnd: 14_600, ssthresh: u64::MAX };
        let mut reno = reno(|c| c.hystart = HyStart::Rfc9406);
        rounds(&mut reno, &mut window, 0, &[80]);
        assert_eq!(window, Window { cwnd: 29_200, ssthresh: u64::MAX });
        rounds(&mut reno, &mut window, 10, &[100, 100, 100, 100, 100]);
        // Eight segments until the rise is certain, a quarter of 42 then.
        let cwnd = 29_200 + 8 * 1460 + 42 * 1460 / 4;
        assert_eq!(window, Window { cwnd, ssthresh: cwnd });
    }

    #[test]
    fn hystart_is_for_the_first_slow_start_only() {
        let mut window = Window { cwnd: 14_600, ssthresh: u64::MAX };
        let mut reno = reno(|c| c.hystart = HyStart::Rfc9406);
        window.ssthresh = reno.ssthresh_after(&window, &loss(1 << 30, 1 << 30));
        rounds(&mut reno, &mut window, 0, &[80, 100]);
        assert_eq!(window, Window { cwnd: 14_600 + 20 * 1460, ssthresh: 1 << 29 });
    }

    #[test]
    fn growth_per_ack_that_is_rounded_is_a_byte_at_least() {
        // 4.4BSD: SMSS * SMSS / cwnd.
        for (cwnd, increase) in [(14_600, 146), (2_131_600, 1), (750_000_000, 1)] {
            let mut window = Window { cwnd, ssthresh: 0 };
            reno(|c| c.avoidance = AvoidanceGrowth::PerAckRounded).on_ack(&mut window, &acked(1460));
            assert_eq!(window.cwnd, cwnd + increase);
        }
    }

    #[test]
    fn an_ack_of_more_than_a_segment_that_ends_slow_start_counts_for_avoidance_where_growth_is_rounded() {
        for (rule, newly_acked, cwnd) in [
            (AvoidanceGrowth::PerAckRounded, 2920, 4380 + 486),
            (AvoidanceGrowth::PerAckRounded, 1460, 4380),
            (AvoidanceGrowth::PerAck, 2920, 4380),
        ] {
            let mut window = Window { cwnd: 2920, ssthresh: 4380 };
            let mut reno = reno(|c| (c.avoidance, c.slow_start) = (rule, SlowStartGrowth::PerAck));
            reno.on_ack(&mut window, &acked(newly_acked));
            assert_eq!(window.cwnd, cwnd, "{rule:?} {newly_acked}");
            // Below ssthresh none does.
            let mut below = Window { cwnd: 2920, ssthresh: 5000 };
            reno.on_ack(&mut below, &acked(newly_acked));
            assert_eq!(below.cwnd, 4380);
        }
    }

    #[test]
    fn avoidance_alone_may_ask_whether_the_window_is_used() {
        let after = |ssthresh, cwnd_limited| {
            let mut window = Window { cwnd: 2920, ssthresh };
            let rules = |c: &mut CongestionConfig| {
                c.cwnd_validation = CwndValidation::Avoidance;
                c.avoidance = AvoidanceGrowth::PerAckRounded;
            };
            reno(rules).on_ack(&mut window, &AckEvent { cwnd_limited, ..acked(1460) });
            window.cwnd
        };
        assert_eq!((after(0, false), after(0, true)), (2920, 2920 + 730));
        assert_eq!(after(u64::MAX, false), 4380, "slow start goes on");
    }

    #[test]
    fn a_loss_halves_what_is_in_the_network_where_that_is_known() {
        let window = Window { cwnd: 100_000, ssthresh: u64::MAX };
        let mut reno = reno(|c| c.ssthresh_from = SsthreshFrom::Pipe);
        assert_eq!(reno.ssthresh_after(&window, &LossEvent { pipe: 9000, ..loss(7300, 8760) }), 4500);
        assert_eq!(reno.ssthresh_after(&window, &LossEvent { pipe: 1460, ..loss(7300, 8760) }), 2920);
    }
}
