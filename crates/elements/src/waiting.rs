//! Packets that wait for their time, first in, first out, within a limit.

use crate::QueueLimit;
use farpath_units::{Bytes, Instant};
use std::collections::VecDeque;

/// Accepted packets that still wait: by when each stops waiting, which never goes back, and its IP length.
#[derive(Debug)]
pub(crate) struct Waiting {
    limit: QueueLimit,
    packets: VecDeque<(Instant, Bytes)>,
    bytes: Bytes,
    max_bytes: Bytes,
}

impl Waiting {
    pub fn new(limit: QueueLimit) -> Waiting {
        Waiting { limit, packets: VecDeque::new(), bytes: Bytes::ZERO, max_bytes: Bytes::ZERO }
    }

    /// Those whose time has passed wait no more. Each packet is pushed and popped once: the cost does not grow with the queue.
    ///
    /// Of what happens in the same instant an arrival comes first, before the packet whose time this is makes room. So it is where the
    /// path has two hosts of Linux in virtual time, and in ns-3: what ACKs let go at the pace of the link comes to a queue just before
    /// the link ends a transmission.
    #[inline]
    pub fn leave(&mut self, now: Instant) {
        while let Some(&(until, size)) = self.packets.front()
            && until < now
        {
            self.packets.pop_front();
            self.bytes -= size;
        }
    }

    #[inline]
    pub fn has_room(&self, size: Bytes) -> bool {
        self.limit.has_room(self.packets.len(), self.bytes, size)
    }

    #[inline]
    pub fn join(&mut self, until: Instant, size: Bytes) {
        self.packets.push_back((until, size));
        self.bytes += size;
        self.max_bytes = self.max_bytes.max(self.bytes);
    }

    pub fn bytes(&self) -> Bytes {
        self.bytes
    }

    pub fn packets(&self) -> u64 {
        self.packets.len() as u64
    }

    /// The most that has waited at once.
    pub fn max_bytes(&self) -> Bytes {
        self.max_bytes
    }
}
