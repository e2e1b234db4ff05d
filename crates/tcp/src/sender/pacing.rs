//! Pacing: segments leave as a rate allows, not all that the window has room for at once.
//!
//! As Linux paces without a qdisc that does (`tcp_pacing_check()`, `tcp_tso_autosize()`): a burst of about a millisecond
//! leaves, then nothing until the rate would have sent it.

use super::Sender;
use super::phase::Phase;
use crate::cc::{CongestionControl, Pace};
use farpath_units::{Duration, Instant};

/// Linux's window-based pace: so much of `cwnd` per SRTT, in percent, below half of `ssthresh` and above it
/// (`tcp_pacing_ss_ratio`, `tcp_pacing_ca_ratio`).
const SLOW_START_PERCENT: u64 = 200;
const AVOIDANCE_PERCENT: u64 = 120;

/// When the next burst may leave.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pacer {
    /// The rate in force; `None` sends as the window allows.
    pace: Option<Pace>,
    /// Nothing leaves before: the earliest departure time of the next segment.
    next: Instant,
    /// The burst that is leaving: when, segments that may still leave with it, and how late it is.
    burst_at: Instant,
    burst_left: u64,
    credit: Duration,
    sent: u64,
    /// Something waits for `next`.
    waiting: bool,
}

impl Pacer {
    /// Whether what leaves holds back what comes after it: the first segments of a connection do not.
    pub fn holds_back(&self) -> bool {
        self.pace.is_some_and(|pace| self.sent >= pace.unpaced)
    }

    /// Whether a segment may leave at `now`.
    fn releases(&self, now: Instant) -> bool {
        now >= self.next || (self.burst_left > 0 && self.burst_at == now)
    }

    /// The pace is `pace` from now on: what it has still to wait for is sent at that.
    pub fn hasten(&mut self, now: Instant, pace: Pace) {
        let Some(before) = self.pace.filter(|before| before.bytes_per_s < pace.bytes_per_s) else { return };
        let wait = u128::from(self.next.saturating_since(now).as_nanos()) * u128::from(before.bytes_per_s)
            / u128::from(pace.bytes_per_s);
        self.next = self.next.min(now + Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX)));
    }

    /// A segment of `len` bytes leaves at `now`.
    fn on_sent(&mut self, now: Instant, len: u64, burst: u64) {
        self.sent += 1;
        if self.burst_at != now || self.burst_left == 0 {
            self.credit = now.saturating_since(self.next);
            (self.burst_at, self.burst_left) = (now, burst.max(1));
            self.next = self.next.max(now);
        }
        self.burst_left -= 1;
        let Some(pace) = self.pace.filter(|pace| self.sent >= pace.unpaced) else { return };
        let took = pace.time_to_send(len);
        // A release that was late catches up, by half at most.
        let credit = self.credit.min(took / 2);
        self.credit = self.credit - credit;
        self.next += took - credit;
    }
}

impl Sender {
    /// Whether pacing holds back what would leave at `now`. What a timeout or a probe sends goes at once.
    #[inline(never)]
    pub(super) fn pacing_holds(&mut self, now: Instant) -> bool {
        self.pacer.waiting = false;
        if self.pacer.pace.is_none() || self.pacer.releases(now) {
            return false;
        }
        if self.retransmit_first && matches!(self.phase, Phase::Loss { .. }) {
            return false;
        }
        self.pacer.waiting = true;
        true
    }

    /// Whether what is next has to wait for its pace at `now`.
    pub(super) fn pacer_holds(&self, now: Instant) -> bool {
        self.pacer.pace.is_some() && !self.pacer.releases(now)
    }

    /// `len` bytes leave.
    #[inline(never)]
    pub(super) fn pace_sent(&mut self, now: Instant, len: u64) {
        if let Some(pace) = self.pacer.pace {
            self.pacer.on_sent(now, len, self.burst_segments(pace));
        }
    }

    /// Segments that leave together: a millisecond's worth, and no more than half a window.
    fn burst_segments(&self, pace: Pace) -> u64 {
        self.longest_burst(pace).min((self.window.cwnd / self.smss / 2).max(1))
    }

    fn longest_burst(&self, pace: Pace) -> u64 {
        pace.burst(self.smss, self.rtt.min_rtt().unwrap_or(Duration::ZERO))
    }

    /// The most segments of one super-packet: a millisecond's worth of the pace, or of what the window's would be.
    pub(super) fn longest_super_packet(&self) -> u64 {
        let pace = self
            .pacer
            .pace
            .unwrap_or_else(|| Pace::from_bytes_per_s(self.window_rate().unwrap_or(u64::MAX >> 1)));
        self.longest_burst(pace)
    }

    /// The pace that the controller asks for; where it asks for none and pacing is wanted, that of its window.
    pub(super) fn set_pace(&mut self) {
        self.pacer.pace = self.cc.pace().or_else(|| {
            let rate = if self.config.send.pacing { self.window_rate() } else { None };
            rate.map(Pace::from_bytes_per_s)
        });
    }

    /// The window's rate (`tcp_update_pacing_rate()`), once a round trip has been measured.
    fn window_rate(&self) -> Option<u64> {
        let srtt = self.rtt.srtt().filter(|srtt| !srtt.is_zero())?;
        let percent =
            if self.window.cwnd < self.window.ssthresh / 2 { SLOW_START_PERCENT } else { AVOIDANCE_PERCENT };
        let window = self.window.cwnd.max(self.pipe());
        // The usual window: 64-bit division is several times faster than 128-bit.
        if let Some(product) = window.checked_mul(percent * 10_000_000) {
            return Some(product / srtt.as_nanos());
        }
        let bytes_per_s = u128::from(window) * u128::from(percent) * 10_000_000 / u128::from(srtt.as_nanos());
        Some(u64::try_from(bytes_per_s).unwrap_or(u64::MAX))
    }

    /// The earliest departure time of the next segment.
    pub(super) fn next_departure(&self) -> Instant {
        self.pacer.next
    }

    /// When pacing lets the next segment go, where one waits for that.
    pub(super) fn paced_release(&self) -> Option<Instant> {
        self.pacer.waiting.then_some(self.pacer.next)
    }

    /// Whether a segment has waited for its pace until now, which is over at `now`.
    pub fn releases_by(&self, now: Instant) -> bool {
        self.paced_release().is_some_and(|due| due <= now)
    }

    /// The rate at which segments leave, bytes of payload per second; `None` where they are not paced.
    pub fn pacing_rate(&self) -> Option<u64> {
        self.pacer.pace.map(|pace| pace.bytes_per_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(us)
    }

    /// 1000 B take a millisecond, and the unpaced beginning is over.
    fn pacer() -> Pacer {
        Pacer { pace: Some(Pace::from_bytes_per_s(1_000_000)), sent: 10, ..Pacer::default() }
    }

    #[test]
    fn a_burst_leaves_at_once_and_the_next_when_the_rate_has_sent_it() {
        let mut pacer = pacer();
        for _ in 0..3 {
            assert!(pacer.releases(at(0)));
            pacer.on_sent(at(0), 1000, 3);
        }
        assert!(!pacer.releases(at(0)));
        assert!(!pacer.releases(at(2999)));
        assert!(pacer.releases(at(3000)));
    }

    #[test]
    fn a_burst_that_was_not_used_up_does_not_go_on_later() {
        let mut pacer = pacer();
        pacer.on_sent(at(0), 1000, 3);
        assert!(pacer.releases(at(0)));
        assert!(!pacer.releases(at(1)));
    }

    #[test]
    fn what_leaves_late_catches_up_by_half() {
        let mut pacer = pacer();
        pacer.on_sent(at(0), 1000, 1);
        // Due at 1000, sent 300 us late: the next one is due as if it had not been.
        pacer.on_sent(at(1300), 1000, 1);
        assert_eq!(pacer.next, at(2000));
        // After an idle second, by half a segment and no more.
        pacer.on_sent(at(1_002_000), 1000, 1);
        assert_eq!(pacer.next, at(1_002_500));
    }

    #[test]
    fn what_waits_for_a_slow_pace_leaves_by_a_higher_one() {
        let mut pacer = pacer();
        pacer.on_sent(at(0), 1000, 1);
        pacer.hasten(at(500), Pace::from_bytes_per_s(500_000));
        assert_eq!(pacer.next, at(1000), "a lower one changes nothing");
        pacer.hasten(at(500), Pace::from_bytes_per_s(5_000_000));
        assert_eq!(pacer.next, at(600));
    }

    #[test]
    fn the_first_segments_are_not_paced() {
        let mut pacer = Pacer { sent: 0, ..pacer() };
        for _ in 0..9 {
            pacer.on_sent(at(0), 1000, 1);
        }
        assert!(pacer.releases(at(0)));
        pacer.on_sent(at(0), 1000, 1);
        assert!(!pacer.releases(at(999)));
    }
}
