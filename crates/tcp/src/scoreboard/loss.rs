//! What is declared lost by counting (RFC 6675 §4, IsLost()), by a timeout, or by a duplicate; and what is taken back.

use super::Scoreboard;

impl Scoreboard {
    /// Declares lost what RFC 6675's IsLost() says is lost: below `dup_thresh` separate SACKed intervals, or below
    /// more than `(dup_thresh - 1) * smss` SACKed bytes. Whether the first segment in flight is.
    pub fn detect_losses(&mut self, dup_thresh: u32, smss: u64) -> bool {
        let mut bytes = 0;
        let mut below = None;
        for (count, range) in (1..).zip(self.sacked.descending()) {
            bytes += range.end - range.start;
            if count >= dup_thresh || bytes > u64::from(dup_thresh - 1) * smss {
                below = Some(range.start);
                break;
            }
        }
        if let Some(below) = below.filter(|&below| below > self.lost_below) {
            self.declare_lost(below);
        }
        self.first_is_lost()
    }

    /// Whether the first segment in flight has been declared lost.
    pub fn first_is_lost(&self) -> bool {
        self.segments.front().is_some_and(|first| first.lost && !first.sacked)
    }

    /// After a timeout everything not SACKed is lost, copies included, and may be sent again.
    ///
    /// A SACKed first segment means that the receiver has dropped what it had reported (RFC 2018 §8): then no
    /// report counts.
    pub fn lose_all(&mut self) {
        self.forget_reports_taken_back();
        for segment in &mut self.segments {
            segment.lost = true;
            segment.copy_in_network = false;
        }
        self.copies.lose_all();
        if let Some(meter) = &mut self.meter {
            meter.lose_all(self.pipe);
        }
        self.pipe = 0;
        self.lost_below = self.end();
        self.high_rxt = self.start;
    }

    pub(super) fn forget_reports_taken_back(&mut self) {
        if self.segments.front().is_some_and(|first| first.sacked) {
            self.sacked.clear();
            (self.sacked_segments, self.sacked_bytes) = (0, 0);
            for index in 0..self.segments.len() {
                self.update(index, |segment| segment.sacked = false);
            }
        }
    }

    /// What was declared lost was not: it is in the network, as if no loss had been found.
    pub fn lose_nothing(&mut self) {
        for index in 0..self.segments.len() {
            self.update(index, |segment| segment.lost = false);
        }
        self.copies.lose_nothing();
        self.lost_below = self.start;
        self.high_rxt = self.start;
    }

    /// Fast retransmit without SACK knows one thing: the first segment is lost.
    pub fn lose_first(&mut self) {
        if let Some(end) = self.segments.front().map(|first| first.end) {
            self.declare_lost(end);
        }
    }

    fn declare_lost(&mut self, below: u64) {
        let first = self.index_of(self.lost_below);
        for index in first..self.segments.len() {
            if self.bounds(index).start >= below {
                break;
            }
            self.update(index, |segment| segment.lost = true);
        }
        self.lost_below = self.lost_below.max(below);
    }
}
