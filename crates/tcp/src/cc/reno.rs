//! Additive increase, multiplicative decrease (RFC 5681), with the growth rules of several stacks.

use super::{AckEvent, CongestionControl, LossEvent, Window};
use crate::config::{AvoidanceGrowth, CongestionConfig, SlowStartGrowth, SsthreshFrom};

/// Reno's window rules. Recovery is not part of it: Tahoe, Reno, NewReno and SACK share them.
#[derive(Debug, Clone)]
pub struct Reno {
    slow_start: SlowStartGrowth,
    avoidance: AvoidanceGrowth,
    ssthresh_from: SsthreshFrom,
    clamp: u64,
    validate: bool,
    smss: u64,
    /// What congestion avoidance has earned and not yet turned into whole bytes: in SMSS·bytes for growth
    /// per ACK, in bytes for growth per byte. At 750 MB the increase per ACK is 0.003 B; nothing is rounded away.
    credit: u64,
}

impl Reno {
    /// For segments of `smss` bytes.
    pub fn new(config: &CongestionConfig, smss: u64) -> Reno {
        Reno {
            slow_start: config.slow_start,
            avoidance: config.avoidance,
            ssthresh_from: config.ssthresh_from,
            clamp: config.cwnd_clamp.map_or(u64::MAX, |clamp| clamp.0),
            validate: config.cwnd_validation,
            smss,
            credit: 0,
        }
    }

    fn slow_start_increase(&self, newly_acked: u64) -> u64 {
        match self.slow_start {
            SlowStartGrowth::PerAck => self.smss,
            SlowStartGrowth::PerByte => newly_acked.min(self.smss),
            SlowStartGrowth::TwoSegments => newly_acked.min(2 * self.smss),
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
            AvoidanceGrowth::PerByte => {
                self.credit += newly_acked;
                if self.credit < cwnd {
                    return 0;
                }
                self.credit -= cwnd;
                self.smss
            }
        }
    }
}

impl CongestionControl for Reno {
    fn on_ack(&mut self, window: &mut Window, ack: &AckEvent) {
        if self.validate && !ack.cwnd_limited {
            return;
        }
        let increase = if window.cwnd < window.ssthresh {
            self.slow_start_increase(ack.newly_acked)
        } else {
            self.avoidance_increase(window.cwnd, ack.newly_acked)
        };
        window.cwnd = window.cwnd.saturating_add(increase).min(self.clamp.max(self.smss));
    }

    fn ssthresh_after(&mut self, window: &Window, loss: &LossEvent) -> u64 {
        self.credit = 0;
        match self.ssthresh_from {
            SsthreshFrom::FlightSize => (loss.flight_size / 2).max(2 * self.smss),
            SsthreshFrom::Cwnd => (window.cwnd / 2).max(2 * self.smss),
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
    use farpath_units::{Bytes, Instant};

    fn reno(change: impl FnOnce(&mut CongestionConfig)) -> Reno {
        let mut config = Config::default().congestion;
        change(&mut config);
        Reno::new(&config, 1460)
    }

    fn acked(bytes: u64) -> AckEvent {
        AckEvent { now: Instant::ZERO, newly_acked: bytes, flight_size: 0, cwnd_limited: true, srtt: None }
    }

    fn loss(flight_size: u64, rwnd: u64) -> LossEvent {
        LossEvent { now: Instant::ZERO, flight_size, rwnd, timeout: false }
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
        reno(|c| c.cwnd_validation = true).on_ack(&mut window, &unused);
        assert_eq!(window.cwnd, 8760);
        reno(|c| c.cwnd_validation = false).on_ack(&mut window, &unused);
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
}
