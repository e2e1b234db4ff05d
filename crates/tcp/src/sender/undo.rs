//! Undo of a spurious loss recovery: the response to F-RTO, Eifel (RFC 3522) and D-SACK (RFC 3708).

use super::Sender;
use super::ecn::EcnSender;
use super::phase::Phase;
use super::rack::milliseconds;
use crate::cc::{CongestionControl, Controller, Window};
use core::ops::Range;
use farpath_units::Instant;

/// What was before a loss was declared, and what has been sent again since.
#[derive(Debug, Clone)]
pub(super) struct UndoState {
    window: Window,
    cc: Controller,
    ecn: EcnSender,
    /// The flight that was repaired.
    flight: Range<u64>,
    /// When the first segment was sent again.
    first_again: Option<Instant>,
    /// Segments sent again, and those of them that D-SACK has reported.
    again: u64,
    reported: u64,
}

impl Sender {
    fn can_undo(&self) -> bool {
        let recovery = &self.config.recovery;
        recovery.frto || recovery.eifel || recovery.undo_by_dsack
    }

    /// A loss is about to be acted upon; called before anything is reduced.
    pub(super) fn remember_window(&mut self) {
        // What an earlier repair sent again and has had no answer for may be answered in this one: an echo of it is older
        // than this one's first retransmission, and tells nothing of that.
        if !self.board.retransmission_outstanding() {
            self.repair_began = None;
        }
        self.undo = self.can_undo().then(|| UndoState {
            window: self.window,
            cc: self.cc.clone(),
            ecn: self.ecn,
            flight: self.una..self.max,
            first_again: self.repair_began,
            // What is under way from an earlier repair may be reported, too (`tcp_init_undo()`).
            again: self.board.copies_in_network() as u64,
            reported: 0,
        });
    }

    /// A segment of the flight under repair is sent again.
    pub(super) fn count_for_undo(&mut self, now: Instant, start: u64) {
        self.repair_began.get_or_insert(now);
        if let Some(undo) = self.undo.as_mut().filter(|undo| undo.flight.contains(&start)) {
            undo.first_again.get_or_insert(now);
            undo.again += 1;
        }
    }

    /// RFC 3522 §3.2: the first ACK of new data echoes a clock from before the first retransmission. It moved `una` from
    /// `prior_una`. Whether losses have to wait for what is under way: by Linux's rules fast recovery is not undone as long as a
    /// copy is (`tcp_try_undo_partial()`).
    pub(super) fn undo_by_eifel(&mut self, prior_una: u64, echoed: Option<Instant>) -> bool {
        let again = self.undo.as_ref().and_then(|undo| undo.first_again);
        let (Some(again), Some(echoed)) = (again, echoed) else { return false };
        let late = self.config.recovery.eifel
            && self.phase != Phase::Open
            && milliseconds(echoed) < milliseconds(again);
        if !late {
            return false;
        }
        if let Phase::Fast { point, .. } = self.phase
            && self.una < point
            && self.rack_is_linux()
        {
            self.notice_reordering(prior_una);
            if self.board.copies_in_network() > 0 {
                return true;
            }
        }
        self.undo();
        false
    }

    /// RFC 3708 §3: every retransmission has been reported as a duplicate.
    pub(super) fn undo_by_dsack(&mut self, dsack: Option<&Range<u64>>) {
        let Some(range) = dsack else { return };
        self.stats.dsacks += 1;
        let Some(undo) = self.undo.as_mut().filter(|_| self.config.recovery.undo_by_dsack) else {
            return;
        };
        if range.start < undo.flight.start || range.end > undo.flight.end {
            return;
        }
        undo.reported += (range.end - range.start).div_ceil(self.smss);
        let all = undo.again > 0 && undo.reported >= undo.again;
        // While something is still to be repaired, it was not all for nothing.
        if all && (self.phase == Phase::Open || self.board.next_lost().is_none()) {
            self.undo();
        }
    }

    /// `cwnd`, `ssthresh` and the controller are what they were (RFC 9438 §4.9), and nothing is lost.
    // DEVIATES RFC 4015 §3.2: it takes cwnd to flight_size + min(bytes_acked, IW), against bursts, and makes the RTO
    // more conservative (§3.3). Linux gives all back, and so does this: `pipe` bounds the burst.
    pub(super) fn undo(&mut self) {
        let Some(undo) = self.undo.take() else { return };
        self.stats.undos += 1;
        if self.cc.owns_cwnd() {
            // Its model has gone on, and it remembers the window by itself.
            self.cc.on_undo();
        } else {
            self.window.cwnd = self.window.cwnd.max(undo.window.cwnd);
            self.window.ssthresh = self.window.ssthresh.max(undo.window.ssthresh);
            if !self.cc.keeps_state_on_undo() {
                self.cc = undo.cc;
            }
        }
        // Nothing to tell the peer, and an echo that comes now is answered.
        self.ecn.take_back(&undo.ecn);
        if self.phase != Phase::Open {
            self.phase = Phase::Open;
            self.retransmit_first = false;
            self.nxt = self.max;
            self.board.lose_nothing();
            self.end_of_recovery();
        }
    }
}
