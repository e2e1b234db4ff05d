//! What a data sender is told: which ACKs are duplicates.

use super::stream::Stream;
use farpath_tcp::{Flags, IntervalSet, Segment};

/// A data sender's view of its peer, as far as packets show it.
#[derive(Debug, Default)]
pub(super) struct Acks {
    /// Highest ACK that has arrived: SND.UNA.
    una: u64,
    /// What SACK has reported above it.
    sacked: IntervalSet,
    /// The window last announced.
    window: u64,
    /// Positions of the segment that announced it: its own, and its ACK's.
    window_from: (u64, u64),
    /// Data was sent into a shut window, to ask whether it is still so. The answers are no duplicates.
    probing: bool,
}

impl Acks {
    /// Up to where everything is acknowledged.
    pub fn una(&self) -> u64 {
        self.una
    }

    /// Payload is sent; everything up to `sent_before` was before.
    pub fn sent(&mut self, sent_before: u64) {
        if sent_before == self.una && self.window == 0 {
            self.probing = true;
        }
    }

    /// A segment of the receiver's reaches the sender: whether it is a duplicate ACK. `own` is the sender's stream, `peer`
    /// the receiver's before this segment is taken.
    pub fn received(&mut self, segment: &Segment, window: u64, own: &Stream, peer: &Stream) -> bool {
        if segment.flags.contains(Flags::RST) {
            return false;
        }
        if segment.flags.contains(Flags::SYN) {
            // A copy that comes once the connection is there says nothing.
            if self.una == 0 {
                (self.window, self.window_from) = (window, (0, 0));
                self.una = u64::from(segment.flags.contains(Flags::ACK));
            }
            return false;
        }
        let next = peer.taken_to();
        let (Some(start), Some(ack)) =
            (peer.position(segment.seq, next), own.position(segment.ack, self.una))
        else {
            return false;
        };
        if !segment.flags.contains(Flags::ACK) || ack > own.end() {
            return false;
        }
        // RFC 9293 §3.10.7.4: what lies outside the window is not heard, but for an ACK of something new.
        let end = start + segment.seq_len();
        let heard = if segment.len == 0 { start >= next } else { start == next || end > next };
        if !heard && ack <= self.una {
            return false;
        }
        let window_changed = self.take_window(window, start, ack);
        let sack = own.sack_permitted() && peer.sack_permitted();
        let old = ack <= self.una;
        self.una = self.una.max(ack);
        let mut news = 0;
        if sack {
            for block in segment.sack.as_slice() {
                let near = self.una;
                if let (Some(start), Some(end)) =
                    (own.position(block.start, near), own.position(block.end, near))
                    && end <= own.end()
                {
                    self.sacked.insert(start.max(self.una)..end, |range| news += range.end - range.start);
                }
            }
        }
        if !old {
            self.sacked.remove_below(self.una);
            self.probing &= own.end() > self.una;
        }
        let outstanding = own.end() > self.una;
        let duplicate =
            if sack { news > 0 } else { segment.seq_len() == 0 && ack == self.una && !window_changed };
        old && outstanding && !self.probing && duplicate
    }

    /// RFC 9293 §3.10.7.4: only a segment not older than the last to do so updates the window. Whether it changed.
    fn take_window(&mut self, window: u64, start: u64, ack: u64) -> bool {
        let newer = (start, ack) >= self.window_from || ack > self.window_from.1;
        if ack < self.una || !newer {
            return false;
        }
        self.window_from = (start, ack);
        let changed = window != self.window;
        self.window = window;
        self.probing &= window == 0;
        changed
    }
}
