//! A serial link behind a drop-tail queue, by arithmetic.

use crate::transmitter::Transmitter;
use crate::{MarkThreshold, QueueLimit};
use farpath_path::{Direction, DropCause, Fate, LinkCounters, PacketView, PerDirection, Transit};
use farpath_units::{Bytes, Instant, Rate};
use std::collections::VecDeque;

/// Size of an IP packet on the wire of a link: padded to `min_packet`, plus its framing.
pub(crate) fn framed(size: Bytes, overhead: Bytes, min_packet: Bytes) -> Bytes {
    size.max(min_packet) + overhead
}

/// Sends one packet after the other at its rate. A packet leaves when its last bit has been sent.
#[derive(Debug)]
pub(crate) struct Link {
    overhead: Bytes,
    min_packet: Bytes,
    lanes: PerDirection<Lane>,
}

impl Link {
    pub fn new(
        rate: PerDirection<Rate>,
        queue: PerDirection<QueueLimit>,
        mark: PerDirection<MarkThreshold>,
        overhead: Bytes,
        min_packet: Bytes,
    ) -> Link {
        let lanes =
            PerDirection::from_fn(|direction| Lane::new(rate[direction], queue[direction], mark[direction]));
        Link { overhead, min_packet, lanes }
    }
}

impl Transit for Link {
    fn transit(&mut self, now: Instant, direction: Direction, packet: PacketView) -> Fate {
        let on_wire = framed(packet.size, self.overhead, self.min_packet);
        self.lanes[direction].send(now, packet.size, on_wire)
    }

    fn backlog(&self, direction: Direction) -> Option<Bytes> {
        Some(self.lanes[direction].waiting_bytes)
    }

    fn link_counters(&self, direction: Direction) -> Option<LinkCounters> {
        let lane = &self.lanes[direction];
        Some(LinkCounters { bytes_sent: lane.bytes_sent, max_backlog: lane.max_backlog })
    }
}

/// One direction of a link.
#[derive(Debug)]
struct Lane {
    /// Busy until the last accepted packet will have been sent.
    line: Transmitter,
    limit: QueueLimit,
    mark: MarkThreshold,
    /// Accepted packets that may still wait: when their sending starts, and their IP length.
    waiting: VecDeque<(Instant, Bytes)>,
    waiting_bytes: Bytes,
    bytes_sent: Bytes,
    max_backlog: Bytes,
}

impl Lane {
    fn new(rate: Rate, limit: QueueLimit, mark: MarkThreshold) -> Lane {
        Lane {
            line: Transmitter::new(rate),
            limit,
            mark,
            waiting: VecDeque::new(),
            waiting_bytes: Bytes::ZERO,
            bytes_sent: Bytes::ZERO,
            max_backlog: Bytes::ZERO,
        }
    }

    fn send(&mut self, now: Instant, size: Bytes, on_wire: Bytes) -> Fate {
        // Each packet is pushed and popped once: the cost does not grow with the queue.
        while let Some(&(start, size)) = self.waiting.front()
            && start <= now
        {
            self.waiting.pop_front();
            self.waiting_bytes -= size;
        }
        let mut marks = false;
        if self.line.busy_until() <= now {
            self.line.rest_until(now);
        } else if self.has_room(size) {
            self.waiting.push_back((self.line.busy_until(), size));
            self.waiting_bytes += size;
            self.max_backlog = self.max_backlog.max(self.waiting_bytes);
            marks = self.marks(now);
        } else {
            return Fate::Drop(DropCause::QueueOverflow);
        }
        self.line.serialize(on_wire);
        self.bytes_sent += on_wire;
        let sent = self.line.busy_until();
        if marks { Fate::Mark(sent) } else { Fate::Depart(sent) }
    }

    /// Whether the packet that has just joined the queue is marked.
    fn marks(&self, now: Instant) -> bool {
        match self.mark {
            MarkThreshold::Never => false,
            MarkThreshold::Bytes(threshold) => self.waiting_bytes > threshold,
            MarkThreshold::Packets(threshold) => self.waiting.len() as u64 > threshold,
            MarkThreshold::Delay(threshold) => self.line.busy_until() - now > threshold,
        }
    }

    fn has_room(&self, size: Bytes) -> bool {
        match self.limit {
            QueueLimit::Unlimited => true,
            QueueLimit::Bytes(limit) => self.waiting_bytes + size <= limit,
            QueueLimit::Packets(limit) => (self.waiting.len() as u64) < limit,
        }
    }
}
