//! ECN at the data sender: what an ECN echo does to the window, and which segments are ECN-capable (RFC 3168 §6.1.2).

use super::phase::Phase;
use super::{Persist, Sender};
use crate::cc::{CongestionControl, LossEvent};
use core::ops::Range;
use farpath_units::Instant;

/// What the sending half keeps for ECN. Nothing in it changes while it is not `capable`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct EcnSender {
    /// The handshake agreed: new data is ECN-capable, and ECE means congestion.
    pub capable: bool,
    /// The next new data carries CWR.
    cwr_due: bool,
    /// SND.NXT when the window was last reduced, and whether an echo did it: what had been sent by then says
    /// nothing new.
    reduced_at: u64,
    by_echo: bool,
    /// Nothing new is sent before.
    hold_until: Option<Instant>,
}

impl EcnSender {
    /// The marks that new data, or what else is sent, carries: ECT and CWR.
    pub fn marks(&mut self, new_data: bool) -> (bool, bool) {
        let ect = new_data && self.capable;
        (ect, ect && core::mem::take(&mut self.cwr_due))
    }

    /// The reduction since `before` was spurious.
    pub fn take_back(&mut self, before: &EcnSender) {
        *self = EcnSender { hold_until: self.hold_until, ..*before };
    }

    /// Whether nothing new may be sent at `now`.
    pub fn holds(&self, now: Instant) -> bool {
        self.hold_until.is_some_and(|until| now < until)
    }

    /// Lets go what was held until `now`.
    pub fn on_timer(&mut self, now: Instant) {
        self.hold_until = self.hold_until.filter(|&until| now < until);
    }

    /// The end of a hold.
    pub fn next_due(&self) -> Option<Instant> {
        self.hold_until
    }
}

impl Sender {
    /// The window was reduced for a loss: the peer is told, so that it ends its echo (RFC 3168 §6.1.2), and echoes of
    /// what has been sent so far change nothing more.
    pub(super) fn note_reduction(&mut self, by_echo: bool) {
        if self.ecn.capable {
            (self.ecn.cwr_due, self.ecn.reduced_at, self.ecn.by_echo) = (true, self.max, by_echo);
        }
    }

    /// Whether an echo has already reduced the window that the first unacknowledged byte was sent in: its loss is no
    /// second reason (RFC 3168 §6.1.2, "only once in response to a series of dropped and/or CE packets").
    pub(super) fn echo_has_reduced(&self) -> bool {
        self.ecn.by_echo && self.una < self.ecn.reduced_at
    }

    /// An ACK with ECE came. `flight_size` is what was outstanding when it did.
    pub(super) fn on_echo(&mut self, now: Instant, flight_size: u64) {
        // Congestion it was: what a loss took meanwhile is not given back (RFC 3522 §3.2).
        self.undo = None;
        // Once per window of data.
        if self.una <= self.ecn.reduced_at {
            return;
        }
        self.stats.ecn_responses += 1;
        // A loss that was none is no reason to take this back.
        self.undo = None;
        let flight_size = flight_size.saturating_sub(self.limited_transmit_bytes);
        let event = LossEvent { now, flight_size, pipe: flight_size, rwnd: self.rwnd, timeout: false };
        let cwnd = self.window.cwnd;
        if self.cc.owns_cwnd() {
            // BBR does not look at marks: the peer is told that they were seen, and that is all.
            self.note_reduction(true);
            return;
        }
        self.window.ssthresh = self.cc.ssthresh_after(&self.window, &event);
        if self.reduces_by_prr() {
            // tcp_enter_cwr(): as in fast recovery, without a repair.
            self.begin_rate_reduction();
            self.reduced_by_echo = Some(self.max);
            self.note_reduction(true);
            return;
        }
        self.window.cwnd = self.window.ssthresh.min(cwnd);
        if self.window.ssthresh <= 2 * self.smss {
            // Two segments are its floor (RFC 5681 Eq. 4); the window goes down to one (RFC 3168 §6.1.2, RFC 9438 §4.6).
            self.window.cwnd = self.window.cwnd.min((cwnd / 2).max(self.smss));
        }
        if cwnd <= self.smss {
            // Less than a segment per round trip: the next one waits for the retransmission timer (RFC 3168 §6.1.2).
            let until = self.rtt.deadline(now);
            self.ecn.hold_until = Some(until);
            self.rto_due = self.rto_due.map(|_| until);
        }
        self.note_reduction(true);
    }

    /// What was sent after the reduction has been acknowledged: cwnd is ssthresh (`tcp_end_cwnd_reduction()`). In a recovery that
    /// began meanwhile that one's end decides.
    pub(super) fn end_reduction_by_echo(&mut self) {
        let Some(point) = self.reduced_by_echo else { return };
        if self.phase != Phase::Open {
            self.reduced_by_echo = None;
        } else if self.una > point {
            self.reduced_by_echo = None;
            self.forget_rate_reduction();
            self.window.cwnd = self.window.ssthresh;
        }
    }

    /// Whether this is new data under normal sending. RFC 3168 §6.1.5, §6.1.6: what is sent again is not ECN-capable,
    /// nor is a window probe, whose loss nobody would notice.
    pub(super) fn is_ecn_data(&self, range: &Range<u64>) -> bool {
        range.start >= self.max && range.start < self.written && self.persist == Persist::Off
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_ends_at_its_time() {
        let at = Instant::from_nanos;
        let mut ecn = EcnSender { hold_until: Some(at(10)), ..EcnSender::default() };
        assert!(ecn.holds(at(9)) && !ecn.holds(at(10)));
        ecn.on_timer(at(9));
        assert_eq!(ecn.next_due(), Some(at(10)));
        ecn.on_timer(at(10));
        assert_eq!(ecn.next_due(), None);
    }
}
