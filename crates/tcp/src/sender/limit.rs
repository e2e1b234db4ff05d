//! What keeps a sender from sending more: told when somebody asks, kept nowhere.

use super::phase::Phase;
use super::{Persist, Sender};
use crate::cc::CongestionControl;
use farpath_units::Instant;

/// What keeps a sender from sending more, once it has sent what it could.
///
/// Where two hold at once, it is the one that stands first here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SendLimit {
    /// A loss is under repair: what is new waits for that.
    Repair,
    /// The stream has ended, and all of it is sent.
    Ended,
    /// The program has written no more.
    Application,
    /// The send buffer is full of what has been sent and not acknowledged.
    SendBuffer,
    /// The peer's window is closed.
    ZeroWindow,
    /// The peer's window has no room for the next segment.
    ReceiveWindow,
    /// Nagle's rule (RFC 9293 §3.7.4): the next segment is short, and there is data in flight.
    Nagle,
    /// The congestion window, in slow start or what the controller has in its place.
    SlowStart,
    /// The congestion window after that.
    CongestionWindow,
    /// The pace of the sender.
    Pacing,
    /// Nothing of the sender's own: who drives it does not ask for the next segment.
    Driver,
}

impl SendLimit {
    /// Every one, in the order of their declaration.
    pub const ALL: [SendLimit; 11] = [
        SendLimit::Repair,
        SendLimit::Ended,
        SendLimit::Application,
        SendLimit::SendBuffer,
        SendLimit::ZeroWindow,
        SendLimit::ReceiveWindow,
        SendLimit::Nagle,
        SendLimit::SlowStart,
        SendLimit::CongestionWindow,
        SendLimit::Pacing,
        SendLimit::Driver,
    ];

    /// As tables spell it.
    pub const fn name(self) -> &'static str {
        match self {
            SendLimit::Repair => "repair",
            SendLimit::Ended => "ended",
            SendLimit::Application => "application",
            SendLimit::SendBuffer => "send buffer",
            SendLimit::ZeroWindow => "zero window",
            SendLimit::ReceiveWindow => "receive window",
            SendLimit::Nagle => "Nagle",
            SendLimit::SlowStart => "slow start",
            SendLimit::CongestionWindow => "congestion window",
            SendLimit::Pacing => "pacing",
            SendLimit::Driver => "driver",
        }
    }
}

impl Sender {
    /// What keeps it from sending more at `now`, after it has sent what it could.
    pub fn limit(&self, now: Instant) -> SendLimit {
        if self.phase != Phase::Open {
            return SendLimit::Repair;
        }
        let full = self.buffer_is_full();
        if self.max == self.end() {
            return match (self.fin, full) {
                (true, _) => SendLimit::Ended,
                (false, true) => SendLimit::SendBuffer,
                (false, false) => SendLimit::Application,
            };
        }
        if self.rwnd == 0 || self.persist != Persist::Off {
            return SendLimit::ZeroWindow;
        }
        let want = self.written.saturating_sub(self.nxt).min(self.smss);
        let peer_room = (self.una + self.rwnd).saturating_sub(self.nxt);
        if peer_room < want && !self.worth_sending(peer_room) {
            return SendLimit::ReceiveWindow;
        }
        let with_fin = self.fin && self.nxt + want == self.written;
        if want < self.smss && !with_fin && self.nagle_holds() {
            // Where the buffer is full, it is that which leaves a segment short.
            return if full { SendLimit::SendBuffer } else { SendLimit::Nagle };
        }
        let window = if self.cc.is_in_slow_start(&self.window) {
            SendLimit::SlowStart
        } else {
            SendLimit::CongestionWindow
        };
        let (room, empty) = self.room();
        if room < want && !empty || self.ecn.holds(now) {
            return window;
        }
        if self.steered && self.pacer_holds(now) {
            return SendLimit::Pacing;
        }
        // What is left to wait for is a longer super-packet: more of the shorter window.
        match self.forms_super_packets() {
            true if peer_room <= room => SendLimit::ReceiveWindow,
            true => window,
            false => SendLimit::Driver,
        }
    }
}
