//! The send buffer as Linux has it: it counts the memory of the kernel's buffers (`struct sk_buff`), not bytes of the stream, and
//! grows with the congestion window (`net/ipv4/tcp.c`, `tcp_input.c`, `net/core/stream.c`).

use super::Sender;
use super::phase::Phase;
use crate::cc::CongestionControl;
use core::ops::Range;
use farpath_units::Instant;
use std::collections::VecDeque;

/// The middle of `tcp_wmem`: the first limit.
const FIRST_LIMIT: u64 = 16_384;
/// What a buffer takes beside its bytes: its head and `struct sk_buff` (`SKB_SMALL_HEAD_CACHE_SIZE`, seen by `SO_MEMINFO`).
const OVERHEAD: u64 = 960;
/// The headers and the end of a buffer's data, in the estimate of a segment's memory: `MAX_TCP_HEADER` and `skb_shared_info`.
const AROUND_SEGMENT: u64 = 320 + 320;
/// `struct sk_buff`, in the same.
const DESCRIPTION: u64 = 256;
/// The most that a program writes with one call: Farpath's own (`farpath_traffic`) do so on a kernel.
const PROGRAM_WRITES: u64 = 256 << 10;
/// `TCP_INIT_CWND`.
const LEAST_WINDOW: u64 = 10;

/// The buffers that hold what is written and not acknowledged. Positions are those of the stream.
#[derive(Debug, Clone)]
pub struct SendMemory {
    /// `sk_sndbuf`.
    limit: u64,
    /// `tcp_wmem`'s largest, up to which the limit grows; none where the program has set it.
    grows_to: Option<u64>,
    /// Where each ends.
    ends: VecDeque<u64>,
    /// What is acknowledged, and what has been sent.
    acked: u64,
    sent: u64,
    /// A write has found no room, and none has been told of since (`SOCK_NOSPACE`).
    waits: bool,
    /// When an ACK last came: that is when there is room.
    now: Instant,
}

/// What leaves while a program writes: super-packets of `piece` bytes, up to a position of the stream.
#[derive(Debug)]
pub struct Pushes {
    end: u64,
    piece: u64,
    /// A full segment, and whether a smaller one waits (Nagle's rule).
    smss: u64,
    small_waits: bool,
}

impl SendMemory {
    /// A buffer that grows up to `most`, and begins as Linux's does.
    pub fn growing(most: u64) -> SendMemory {
        SendMemory::growing_from(FIRST_LIMIT, most)
    }

    /// A buffer that grows from `first` up to `most` (`tcp_wmem`).
    pub fn growing_from(first: u64, most: u64) -> SendMemory {
        SendMemory { grows_to: Some(most), ..SendMemory::fixed(first.min(most)) }
    }

    /// A buffer that stays as it is.
    pub fn fixed(limit: u64) -> SendMemory {
        SendMemory {
            limit,
            grows_to: None,
            ends: VecDeque::new(),
            acked: 0,
            sent: 0,
            waits: false,
            now: Instant::ZERO,
        }
    }

    /// `SO_SNDBUF`: what it is from now on.
    pub fn set_limit(&mut self, limit: u64) {
        (self.limit, self.grows_to) = (limit, None);
    }

    /// `sk_sndbuf`.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    fn end(&self) -> u64 {
        self.ends.back().copied().unwrap_or(self.acked)
    }

    /// `sk_wmem_queued`.
    fn queued(&self) -> u64 {
        self.end() - self.acked + OVERHEAD * self.ends.len() as u64
    }

    /// All before `acked` has been acknowledged.
    fn acknowledge(&mut self, acked: u64) {
        self.acked = acked;
        while self.ends.front().is_some_and(|&end| end <= acked) {
            self.ends.pop_front();
        }
    }

    /// A super-packet has left that ends at `sent`: it is a buffer of its own. One that holds more is cut there (`tso_fragment()`),
    /// and what it has taken of the next one is no longer that one's (`tcp_grow_skb()`).
    fn send(&mut self, sent: u64) {
        if sent > self.sent {
            self.merge(self.sent..sent);
            self.sent = sent;
        }
    }

    /// The receiver reports all of `range`, of which it is not said that it was acknowledged: that is one buffer now
    /// (`tcp_shift_skb_data()`), and cut at both ends (`tcp_match_skb_to_sack()`).
    fn merge(&mut self, range: Range<u64>) {
        let start = range.start.max(self.acked);
        if start >= range.end {
            return;
        }
        if start > self.acked
            && let Err(place) = self.ends.binary_search(&start)
        {
            self.ends.insert(place, start);
        }
        let first = self.ends.partition_point(|&end| end <= start);
        let beyond = self.ends.partition_point(|&end| end < range.end);
        if beyond > first {
            self.ends.drain(first..beyond);
        }
        if self.ends.get(first) != Some(&range.end) {
            self.ends.insert(first, range.end);
        }
    }

    /// The limit is what `windows` congestion windows of so many segments take at the least (`tcp_sndbuf_expand()`).
    fn expand(&mut self, windows: u64, segments: u64, mss: u64) {
        if let Some(most) = self.grows_to {
            let each = (mss + AROUND_SEGMENT).next_power_of_two() + DESCRIPTION;
            let wanted = windows.saturating_mul(segments.max(LEAST_WINDOW)).saturating_mul(each);
            self.limit = self.limit.max(wanted.min(most));
        }
    }

    /// Bytes in the last buffer that may still be written to, if that is not full: one of those that have not left (`tcp_write_queue_tail()`).
    fn tail(&self, buffer: u64) -> Option<u64> {
        let end = self.end();
        let before = self.ends.iter().rev().nth(1).copied().unwrap_or(self.acked);
        let used = end - before.max(self.acked);
        (end > self.sent && used < buffer).then_some(used)
    }

    /// Bytes of the stream that may be written now in one piece: the rest of the last buffer of `buffer` bytes, or a new one where its
    /// memory is not used up (`sk_stream_memory_free()`). `not_sent` is the most that may wait to be sent for that.
    fn room(&self, buffer: u64, not_sent: u64) -> u64 {
        if let Some(used) = self.tail(buffer) {
            return buffer - used;
        }
        let end = self.end();
        let free = self.queued() < self.limit && end - self.sent.min(end) < not_sent;
        if free { buffer } else { 0 }
    }

    /// `bytes` have been written, in one piece, where buffers hold `buffer`.
    fn wrote(&mut self, bytes: u64, buffer: u64) {
        let end = self.end() + bytes;
        if self.tail(buffer).is_some() {
            self.ends.pop_back();
        }
        self.ends.push_back(end);
    }

    /// The last buffer is full, and all before it has left. Its beginning leaves while the program goes on writing (`tcp_push_one()`),
    /// and at its end is room again, however much memory is used: so with a large window the stream outgrows the buffer.
    fn push_one(&mut self, buffer: u64, pushes: &Pushes) -> bool {
        let before = self.ends.iter().rev().nth(1).copied().unwrap_or(self.acked);
        let to = self.sent + pushes.piece;
        let full = self.tail(buffer).is_none() && before <= self.sent;
        let leaves = full && to < self.end() && to <= pushes.end;
        if leaves {
            self.send(to);
        }
        leaves
    }

    /// A call of the program is over: what may leave does.
    fn push_rest(&mut self, pushes: &Pushes, small_waits: &mut bool) {
        let small = self.end().saturating_sub(self.sent) % pushes.smss;
        let kept = if *small_waits { small } else { 0 };
        *small_waits |= small > 0;
        self.send(pushes.end.min(self.end() - kept));
    }

    /// A program writes up to `bytes` into buffers that hold `buffer`; gives how many were taken. `not_sent` is the most that may wait to be
    /// sent for that.
    pub fn fill(&mut self, bytes: u64, buffer: u64, not_sent: u64, pushes: Option<&Pushes>) -> u64 {
        let (mut taken, mut call) = (0, PROGRAM_WRITES);
        let mut small_waits = pushes.is_some_and(|pushes| pushes.small_waits);
        self.waits = false;
        while taken < bytes && !self.waits {
            if call == 0 {
                call = PROGRAM_WRITES;
                if let Some(pushes) = pushes {
                    self.push_rest(pushes, &mut small_waits);
                }
            }
            if pushes.is_some_and(|pushes| self.push_one(buffer, pushes)) {
                continue;
            }
            let room = self.room(buffer, not_sent).min(bytes - taken).min(call);
            self.waits = room == 0;
            if room > 0 {
                self.wrote(room, buffer);
            }
            taken += room;
            call -= room;
        }
        taken
    }

    /// Whether a program that waits for room is woken: a third is free, and little enough waits to be sent (`sk_stream_is_writeable()`,
    /// `tcp_stream_memory_free()` with its `wake`).
    pub fn is_writeable(&self, not_sent: u64) -> bool {
        let queued = self.queued();
        self.limit.saturating_sub(queued) >= queued / 2
            && (self.end() - self.sent.min(self.end())).saturating_mul(2) < not_sent
    }
}

impl Sender {
    /// Writes up to `bytes` where the send buffer is one of memory; gives how many it took. Once a write has found no room the
    /// program is told of none before a third is free, as a program that waits in `write()` or `epoll_wait()` is.
    pub(super) fn write_into(&mut self, mut memory: Box<SendMemory>, bytes: u64) -> u64 {
        self.update_memory(&mut memory);
        let mut taken = 0;
        // Until the handshake is over a program waits in connect().
        let open = self.window.cwnd > 0;
        if open && (!memory.waits || memory.is_writeable(u64::MAX)) {
            let pushes = self.pushes_while_written(memory.now);
            taken = memory.fill(bytes, self.stream_buffer(), u64::MAX, pushes.as_ref());
        }
        self.memory = Some(memory);
        taken
    }

    /// What `memory` holds and may hold: asked once what may leave has left, and after each super-packet (`tcp_check_space()`). It grows before anything is sent
    /// (`tcp_init_buffer_space()`), and where a program waits, unless cwnd is used up (`tcp_should_expand_sndbuf()`).
    pub fn update_memory(&self, memory: &mut SendMemory) {
        memory.acknowledge(self.acked());
        memory.send(self.sent());
        if memory.waits && self.room().0 > 0 || self.max == 1 {
            self.expand(memory);
        }
    }

    /// What leaves of the stream while a program writes it, if anything does. Where a pace holds back what comes after it, that is
    /// one super-packet.
    pub fn pushes_while_written(&self, now: Instant) -> Option<Pushes> {
        let open = self.phase == Phase::Open && self.forms_super_packets() && !self.pacer_holds(now);
        let piece = self.longest_super_packet() * self.smss;
        let room = self.room().0.min((self.una + self.rwnd).saturating_sub(self.max));
        let room = if self.pacer.holds_back() { room.min(piece) } else { room };
        let end = self.sent() + room;
        open.then(|| Pushes { end, piece, smss: self.smss, small_waits: self.nagle_holds() })
    }

    /// An ACK has been taken.
    pub(super) fn note_ack_for_memory(&mut self, now: Instant) {
        if let Some(memory) = &mut self.memory {
            memory.now = now;
        }
    }

    fn expand(&self, memory: &mut SendMemory) {
        let mss = self.config.mss.0.max(self.smss);
        memory.expand(self.cc.send_buffer_windows(), self.window.cwnd / self.smss, mss);
    }

    /// What the receiver reports: `block` and what it reports around it.
    pub(super) fn merge_reported(&mut self, block: &Range<u64>) {
        if let Some(memory) = &mut self.memory
            && let Some(reported) = self.board.reported_around(block.start)
        {
            // The stream begins at position 1.
            memory.merge(reported.start - 1..reported.end - 1);
        }
    }

    /// A segment of new data has left: whether it ends what was handed to the device at once. Room is looked for then too
    /// (`tcp_event_new_data_sent()`), and so between two super-packets of one ACK.
    pub(super) fn note_sent_memory(&mut self) {
        if self.ended_super_packet()
            && let Some(mut memory) = self.memory.take()
        {
            self.update_memory(&mut memory);
            self.memory = Some(memory);
        }
    }

    /// Takes over into `memory`, which the caller keeps, all that the receiver reports.
    pub fn merge_all_reported(&self, memory: &mut SendMemory) {
        for reported in self.board.reported() {
            memory.merge(reported.start - 1..reported.end - 1);
        }
    }

    /// Whether a program waits until the send buffer has room again.
    #[inline]
    pub fn waits_for_room(&self) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.waits)
    }

    /// Whether a write finds no room.
    pub(super) fn buffer_is_full(&self) -> bool {
        match &self.memory {
            Some(memory) => memory.waits,
            None => self.config.send.buffer.is_some_and(|buffer| self.buffered() >= buffer.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, SuperPackets};

    const MSS: u64 = 1448;
    const PIECE: u64 = 45 * MSS;

    /// A buffer of `limit`, filled by a program that writes all it can.
    fn filled(limit: u64) -> SendMemory {
        let mut memory = SendMemory::fixed(limit);
        loop {
            match memory.room(PIECE, u64::MAX) {
                0 => return memory,
                room => memory.wrote(room, PIECE),
            }
        }
    }

    #[test]
    fn a_small_super_packet_takes_as_much_beside_its_bytes_as_a_large_one() {
        let mut memory = filled(1 << 20);
        let written = memory.end();
        assert_eq!(written, (1_u64 << 20).div_ceil(PIECE + OVERHEAD) * PIECE);
        let whole = memory.queued();
        for sent in 1..=10 {
            memory.send(sent * 2 * MSS);
        }
        assert_eq!(memory.queued(), whole + 10 * OVERHEAD);
        // What is left of the first buffer leaves with the beginning of the next, as one: they part at another place.
        memory.send(PIECE + 2 * MSS);
        assert_eq!(memory.queued(), whole + 10 * OVERHEAD);
    }

    #[test]
    fn what_is_reported_becomes_one_buffer() {
        let mut memory = filled(1 << 20);
        let whole = memory.queued();
        for sent in 1..=10 {
            memory.send(sent * 2 * MSS);
        }
        // The second half of one super-packet is cut off; what follows in order joins it.
        memory.merge(MSS..2 * MSS);
        assert_eq!(memory.queued(), whole + 11 * OVERHEAD);
        memory.merge(MSS..6 * MSS);
        assert_eq!(memory.queued(), whole + 9 * OVERHEAD);
        memory.merge(MSS..7 * MSS);
        assert_eq!(memory.queued(), whole + 9 * OVERHEAD);
        memory.acknowledge(7 * MSS);
        assert_eq!(memory.queued(), whole + 7 * OVERHEAD - 7 * MSS);
    }

    #[test]
    fn it_grows_to_what_the_window_takes_and_not_beyond_its_largest() {
        let mut memory = SendMemory::growing(4 << 20);
        assert_eq!(memory.limit(), 16_384);
        memory.expand(2, 10, 1460);
        assert_eq!(memory.limit(), 2 * 10 * (4096 + 256));
        memory.expand(3, 1000, 1460);
        assert_eq!(memory.limit(), 4 << 20);
        memory.expand(2, 10, 1460);
        assert_eq!(memory.limit(), 4 << 20, "nor does it shrink");
        let mut set = SendMemory::fixed(50_000);
        set.expand(3, 1000, 1460);
        assert_eq!(set.limit(), 50_000, "what a program has set stays");
    }

    /// A sender whose window is never full, with a buffer of at most `most`.
    fn sender(most: u64) -> Sender {
        let mut config = Config { mss: farpath_units::Bytes(1460), ..Config::default() };
        config.send.buffer = Some(farpath_units::Bytes(most));
        config.send.autotuning = true;
        config.send.super_packets = SuperPackets::Filled;
        let mut sender = Sender::new(&config);
        sender.establish(farpath_units::Instant::ZERO, 1 << 30, false, false);
        sender
    }

    fn limit(sender: &Sender) -> u64 {
        sender.memory.as_ref().unwrap().limit()
    }

    /// So many full segments leave at once.
    fn send(sender: &mut Sender, segments: u64) {
        sender.nxt += segments * sender.smss;
        sender.max = sender.nxt;
        sender.note_sent_memory();
    }

    #[test]
    fn a_program_that_found_no_room_writes_again_once_a_third_is_free() {
        let mut sender = sender(200_000);
        let taken = sender.write(10_000_000);
        assert!((16_384..200_000).contains(&taken), "{taken}");
        assert_eq!(sender.write(1), 0);
        let queued = |sender: &Sender| sender.memory.as_ref().unwrap().queued();
        let full = queued(&sender);
        let mut wakes = None;
        for acked in (1460..taken).step_by(1460) {
            (sender.una, sender.max, sender.nxt) = (1 + acked, 1 + acked, 1 + acked);
            let before = full - acked;
            if sender.write(10_000_000) > 0 {
                wakes = Some(before);
                break;
            }
        }
        let limit = limit(&sender);
        let left = wakes.expect("it is woken");
        assert!(left * 3 <= limit * 2 + 3 * 4000 && left * 3 >= limit * 2 - 3 * 4000, "{left} of {limit}");
    }

    #[test]
    fn it_grows_while_the_window_has_room_though_data_wait_to_be_sent() {
        // tcp_tso_should_defer() leaves such room; tcp_should_expand_sndbuf() asks for what is in flight alone.
        let mut sender = sender(4 << 20);
        let taken = sender.write(10_000_000);
        let first = limit(&sender);
        sender.window.cwnd = 40 * sender.smss;
        send(&mut sender, 40);
        assert!(taken > 40 * sender.smss, "{taken}");
        assert_eq!((sender.write(1), limit(&sender)), (0, first), "cwnd is used up");
        sender.window.cwnd += 2 * sender.smss;
        sender.write(1);
        assert_eq!(limit(&sender), 2 * 42 * (4096 + 256));
    }

    #[test]
    fn it_grows_between_two_super_packets_of_one_ack() {
        let mut sender = sender(4 << 20);
        assert!(sender.write(10_000_000) > 42 * sender.smss);
        let first = limit(&sender);
        sender.window.cwnd = 40 * sender.smss;
        send(&mut sender, 40);
        assert_eq!(limit(&sender), first, "cwnd is used up");
        sender.window.cwnd += 4 * sender.smss;
        send(&mut sender, 2);
        assert_eq!(limit(&sender), 2 * 44 * (4096 + 256));
    }

    #[test]
    fn no_write_waits_where_nothing_bounds_the_buffer() {
        let mut config = Config::default();
        config.send.autotuning = true;
        let mut sender = Sender::new(&config);
        assert!(sender.memory.is_none());
        assert_eq!(sender.write(1 << 40), 1 << 40);
    }
}
