//! What a queue before a line does: packets in, packets out, and those that it drops.

use crate::QueueLimit;
use farpath_path::{DropCause, PathPacket};
use farpath_units::{Bytes, Instant};
use std::collections::VecDeque;

/// A packet that waits.
#[derive(Debug)]
pub(crate) struct Queued<P> {
    pub packet: P,
    pub size: Bytes,
    pub since: Instant,
}

/// What a queue did beside passing packets on.
#[derive(Debug)]
pub(crate) struct Effects<P> {
    /// Packets that it took before and has dropped now.
    pub dropped: Vec<(P, DropCause)>,
    /// Packets that it has marked.
    pub marked: u64,
}

impl<P: PathPacket> Effects<P> {
    pub fn new() -> Effects<P> {
        Effects { dropped: Vec::new(), marked: 0 }
    }

    /// Marks the packet where it can be: whether it is marked now (`INET_ECN_set_ce`).
    pub fn mark(&mut self, packet: &mut P) -> bool {
        self.marked += u64::from(packet.mark_ce());
        packet.is_ecn_capable()
    }
}

/// A queue before a line. Time never goes backwards.
pub(crate) trait Discipline<P> {
    /// Takes a packet, or gives it back with the reason why not. Where the line has been idle, nothing waits, and the limit does not count.
    fn enqueue(
        &mut self,
        now: Instant,
        packet: P,
        idle_since: Option<Instant>,
        effects: &mut Effects<P>,
    ) -> Result<(), (P, DropCause)>;

    /// The next packet for the line, and its length; `None` where nothing waits any more.
    fn dequeue(&mut self, now: Instant, effects: &mut Effects<P>) -> Option<Queued<P>>;

    /// Packets that wait.
    fn len(&self) -> usize;

    /// IP bytes that wait.
    fn bytes(&self) -> Bytes;
}

/// Packets in the order in which they came.
#[derive(Debug)]
pub(crate) struct Fifo<P> {
    packets: VecDeque<Queued<P>>,
    bytes: Bytes,
}

impl<P: PathPacket> Fifo<P> {
    pub fn new() -> Fifo<P> {
        Fifo { packets: VecDeque::new(), bytes: Bytes::ZERO }
    }

    pub fn push(&mut self, now: Instant, packet: P) -> Bytes {
        let size = packet.wire_size();
        self.bytes += size;
        self.packets.push_back(Queued { packet, size, since: now });
        size
    }

    pub fn pop(&mut self) -> Option<Queued<P>> {
        let first = self.packets.pop_front()?;
        self.bytes -= first.size;
        Some(first)
    }

    /// Since when the first of them waits.
    pub fn first_since(&self) -> Option<Instant> {
        self.packets.front().map(|first| first.since)
    }

    pub fn has_room(&self, limit: QueueLimit, packet: &P) -> bool {
        limit.has_room(self.packets.len(), self.bytes, packet.wire_size())
    }

    pub fn len(&self) -> usize {
        self.packets.len()
    }

    pub fn bytes(&self) -> Bytes {
        self.bytes
    }
}
