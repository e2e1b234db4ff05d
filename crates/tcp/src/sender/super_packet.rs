//! Super-packets: what a sender hands to its device in one piece, which cuts it into segments. Linux decides by them when
//! new data leaves (`tcp_write_xmit()`, `tcp_tso_should_defer()`), and the last segment of each of several carries PSH.

use super::Sender;
use super::phase::Phase;
use crate::cc::LONGEST_BURST;
use crate::config::SuperPackets;
use farpath_units::{Duration, Instant};

/// Only where the last segment left no longer ago is there anything to wait for, and for no ACK that is further off.
const SOON: Duration = Duration::from_millis(1);
/// Up to this a peer's window is filled with one super-packet (`TCP_MSS_DEFAULT`), beyond it with two or more.
const SMALL_WINDOW: u64 = 536;

/// The super-packet that is leaving.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SuperPacket {
    /// Segments of it that are still to leave, at this time.
    left: u64,
    at: Instant,
    /// Whether it has more than one.
    several: bool,
    /// Where the buffer ends that the stream was written into and what is next lies in.
    buffer_end: u64,
    /// Where a program, or its system, has asked for it: the least segments of one (`tcp_min_tso_segs`).
    least: u64,
}

impl SuperPacket {
    /// The next byte of the stream begins a buffer.
    pub fn begin_buffer(&mut self) {
        self.buffer_end = 0;
    }

    /// What has not left of it is looked at anew.
    pub fn end(&mut self) {
        self.left = 0;
    }

    /// A segment of new data, up to `end`, leaves at `now`: whether it is the last of several, or of what was written at once.
    pub fn on_sent(&mut self, now: Instant, end: u64) -> bool {
        let ends_buffer = end == self.buffer_end;
        if self.left == 0 || self.at != now {
            return ends_buffer;
        }
        self.left -= 1;
        ends_buffer || self.left == 0 && self.several
    }
}

impl Sender {
    /// Whether new data leaves in super-packets, or waits for more of a window.
    pub(super) fn forms_super_packets(&self) -> bool {
        self.config.send.super_packets != SuperPackets::Off || self.config.send.tso_win_divisor > 0
    }

    /// New data may leave at `now`: `room` bytes by the congestion window, `peer_room` by the peer's. Whether it does; if not,
    /// an ACK that is due soon will be looked at first.
    #[inline]
    pub(super) fn begins_super_packet(&mut self, now: Instant, room: u64, peer_room: u64) -> bool {
        !self.forms_super_packets()
            || self.continues_super_packet(now)
            || self.begin_super_packet(now, room, peer_room)
    }

    /// Whether more of the super-packet that is leaving at `now` is to come.
    #[inline]
    pub(super) fn continues_super_packet(&self, now: Instant) -> bool {
        self.super_packet.left > 0 && self.super_packet.at == now
    }

    fn fills_super_packets(&self) -> bool {
        self.config.send.super_packets == SuperPackets::Filled
    }

    #[inline(never)]
    fn begin_super_packet(&mut self, now: Instant, room: u64, peer_room: u64) -> bool {
        let data = self.written.saturating_sub(self.nxt);
        let room = (room / self.smss).max(1);
        let most = self.longest_super_packet().max(self.super_packet.least);
        let half = (self.window.cwnd / self.smss / 2).max(1);
        let quota = room.min(half).min(most);
        self.find_buffer(room * self.smss);
        if data > self.smss && self.defers(now, room * self.smss, peer_room, quota, most) {
            return false;
        }
        if self.fills_super_packets() && self.nxt + quota * self.smss > self.super_packet.buffer_end {
            // What it takes in of the next buffer leaves no trace of where the first one ended.
            self.super_packet.buffer_end += self.stream_buffer();
        }
        let segments = quota.min(data.min(peer_room).div_ceil(self.smss)).max(1);
        self.super_packet =
            SuperPacket { left: segments, at: now, several: segments > 1, ..self.super_packet };
        true
    }

    /// The program's data are in buffers as long as a super-packet may be.
    fn find_buffer(&mut self, room: u64) {
        let len = self.stream_buffer();
        let end = &mut self.super_packet.buffer_end;
        if *end == 0 {
            // What leaves while the program writes makes room at the end of the first buffer.
            *end = self.nxt + room;
            *end += len;
        } else if self.nxt >= *end {
            *end += ((self.nxt - *end) / len + 1) * len;
        }
    }

    /// Whether the last segment that left ended what was handed to the device in one piece.
    pub fn ended_super_packet(&self) -> bool {
        self.super_packet.left == 0
    }

    /// A super-packet has so many segments at least, where there is as much to send.
    pub(crate) fn set_least_super_packet(&mut self, segments: u64) {
        self.super_packet.least = segments;
    }

    /// Bytes of the stream in one buffer of the kernel (`tcp_xmit_size_goal()`).
    pub fn stream_buffer(&self) -> u64 {
        let half = if self.max_rwnd > SMALL_WINDOW { self.max_rwnd / 2 } else { self.max_rwnd };
        (LONGEST_BURST.min(half) / self.smss).max(1) * self.smss
    }

    /// Whether what may leave waits for more of the window (`tcp_tso_should_defer()`). Never with nothing in flight: an ACK,
    /// or the timer, ends the wait.
    fn defers(&mut self, now: Instant, room: u64, peer_room: u64, quota: u64, most: u64) -> bool {
        let divisor = u64::from(self.config.send.tso_win_divisor);
        if divisor == 0 || self.phase != Phase::Open || !self.timer_runs() {
            return false;
        }
        // A kernel's clock never shows exactly the millisecond: it has moved on a little when an ACK is looked at.
        if now.saturating_since(self.last_sent.max(self.next_departure())) >= SOON {
            return false;
        }
        let limit = room.min(peer_room);
        let is_last = self.super_packet.buffer_end >= self.written;
        let rest = self.super_packet.buffer_end.min(self.written) - self.nxt;
        let filled = if self.fills_super_packets() { quota * self.smss } else { 0 };
        let buffer = rest.max(filled.min(self.written - self.nxt));
        let enough = limit >= most * self.smss
            || !is_last && limit >= buffer
            || limit >= self.rwnd.min(self.window.cwnd) / divisor;
        if enough {
            return false;
        }
        let (Some(first), Some(srtt)) = (self.board.first_last_sent(), self.rtt.srtt()) else { return false };
        if (first + srtt).saturating_since(now) > SOON.min(srtt / 2) {
            return false;
        }
        if room < peer_room && room <= buffer {
            self.meet_cwnd();
            return true;
        }
        peer_room <= room && peer_room <= buffer || !(self.fin && is_last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_several_segments_ends_a_super_packet_that_is_not_looked_at_anew() {
        // tcp_write_xmit(): what has not left at an ACK is cut anew.
        let at = Instant::from_nanos(5);
        let leaving = SuperPacket { left: 2, at, several: true, buffer_end: 9001, least: 0 };
        let mut packet = leaving;
        assert!(!packet.on_sent(at, 1001) && packet.on_sent(at, 2001));
        let mut cut = leaving;
        cut.end();
        assert!(!cut.on_sent(at, 1001) && !cut.on_sent(at, 2001));
        let mut later = leaving;
        assert!(!later.on_sent(at + Duration::from_nanos(1), 1001));
        // What was written at once ends with its buffer, whatever leaves together.
        assert!(cut.on_sent(at, 9001));
    }
}
