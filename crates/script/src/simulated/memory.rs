//! The send buffer of a socket as Linux counts it: memory, by buffers of the stream, and not bytes.

use super::Socket;
use farpath_tcp::Sender;
use std::collections::VecDeque;

/// What a buffer takes beside its bytes: its head and `struct sk_buff`, as Linux 6.18 on x86-64 has them (`SO_MEMINFO`).
const OVERHEAD: u64 = 832;
/// The headers and the end of a buffer's data, in the estimate of a segment's memory: `MAX_TCP_HEADER` and `skb_shared_info`.
const AROUND_SEGMENT: u64 = 320 + 320;
/// `struct sk_buff`, in the same.
const DESCRIPTION: u64 = 256;

/// The buffers that hold what is written and not acknowledged.
#[derive(Debug)]
pub struct SendMemory {
    /// `sk_sndbuf`.
    limit: u64,
    /// `tcp_wmem`'s largest, up to which the limit grows; none where the program has set it.
    grows_to: Option<u64>,
    /// Where each ends in the stream.
    ends: VecDeque<u64>,
    /// Bytes acknowledged and sent when it was last looked at.
    acked: u64,
    sent: u64,
}

impl SendMemory {
    pub fn new(set: Option<u64>, [_, first, most]: [u64; 3]) -> SendMemory {
        SendMemory {
            limit: set.unwrap_or(first.min(most)),
            grows_to: set.is_none().then_some(most),
            ends: VecDeque::new(),
            acked: 0,
            sent: 0,
        }
    }

    /// `SO_SNDBUF`.
    pub fn set_limit(&mut self, limit: u64) {
        (self.limit, self.grows_to) = (limit, None);
    }

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

    /// What the stream's head and what has left of it are now. A buffer that has left in part is cut there (`tso_fragment()`).
    pub fn update(&mut self, sender: &Sender) {
        (self.acked, self.sent) = (sender.acked(), sender.sent());
        while self.ends.front().is_some_and(|&end| end <= self.acked) {
            self.ends.pop_front();
        }
        if self.acked < self.sent
            && let Err(place) = self.ends.binary_search(&self.sent)
        {
            self.ends.insert(place, self.sent);
        }
        // tcp_sndbuf_expand(): twice the window, in memory.
        if let Some(most) = self.grows_to {
            let smss = sender.smss();
            let segments = (sender.window().cwnd / smss).max(10);
            let each = (smss + AROUND_SEGMENT).next_power_of_two() + DESCRIPTION;
            self.limit = self.limit.max((2 * segments * each).min(most));
        }
    }

    /// Bytes of the stream that may be written now in one piece: the rest of the last buffer, or a new one where its memory is not
    /// used up (`sk_stream_memory_free()`). `not_sent` is the most that may wait to be sent for that.
    pub fn room(&self, buffer: u64, not_sent: u64) -> u64 {
        let end = self.end();
        if end > self.sent {
            let before = self.ends.iter().rev().nth(1).copied().unwrap_or(self.acked).max(self.acked);
            let used = end - before;
            if used < buffer {
                return buffer - used;
            }
        }
        let free = self.queued() < self.limit && end - self.sent.min(end) < not_sent;
        if free { buffer } else { 0 }
    }

    /// `bytes` have been written, in one piece.
    pub fn wrote(&mut self, bytes: u64) {
        let end = self.end();
        if end > self.sent {
            self.ends.pop_back();
        }
        self.ends.push_back(end + bytes);
    }

    /// Whether a program that waits for room is woken: a third is free, and little enough waits to be sent (`sk_stream_is_writeable()`,
    /// `tcp_stream_memory_free()` with its `wake`).
    pub fn is_writeable(&self, not_sent: u64) -> bool {
        let queued = self.queued();
        self.limit.saturating_sub(queued) >= queued / 2
            && (self.end() - self.sent.min(self.end())).saturating_mul(2) < not_sent
    }
}

impl Socket {
    /// The most that may wait to be sent for more to be written.
    pub fn most_not_sent(&self, usual: u64) -> u64 {
        if self.options.not_sent == 0 { usual } else { self.options.not_sent }
    }
}
