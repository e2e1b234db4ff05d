//! What has been sent and not acknowledged, segment by segment (RFC 6675 §3-4).
//!
//! Every segment is touched once when sent, once when SACKed, once when declared lost, once when retransmitted
//! and once when acknowledged, whatever the window: nothing here scans a list per ACK.

use crate::intervals::IntervalSet;
use core::ops::Range;
use farpath_units::Instant;
use std::collections::VecDeque;

/// A segment in flight. It begins where the one before it ends.
#[derive(Debug, Clone, Copy)]
struct Sent {
    end: u64,
    sent_at: Instant,
    /// Reported by a SACK block.
    sacked: bool,
    /// Declared lost.
    lost: bool,
    /// A retransmitted copy of it is taken to be in the network.
    copy_in_network: bool,
    /// Sent more than once: no RTT can be measured with it (Karn).
    retransmitted: bool,
}

impl Sent {
    /// Its share of `pipe`, in multiples of its length (RFC 6675 §4, SetPipe).
    fn copies_in_network(&self) -> u64 {
        if self.sacked { 0 } else { u64::from(!self.lost) + u64::from(self.copy_in_network) }
    }
}

/// Segments in flight, with what SACK and the timer say of each.
#[derive(Debug, Clone, Default)]
pub struct Scoreboard {
    segments: VecDeque<Sent>,
    /// Where the first segment begins: `snd_una` while anything is in flight.
    start: u64,
    sacked: IntervalSet,
    pipe: u64,
    /// Below this, what is not SACKed is lost.
    lost_below: u64,
    /// Below this, everything lost has been retransmitted in this recovery.
    high_rxt: u64,
}

impl Scoreboard {
    /// A scoreboard for a stream whose first unsent byte is at `position`.
    pub fn new(position: u64) -> Scoreboard {
        Scoreboard { start: position, lost_below: position, high_rxt: position, ..Scoreboard::default() }
    }

    /// RFC 6675's estimate of the bytes in the network.
    pub fn pipe(&self) -> u64 {
        self.pipe
    }

    /// One past the last byte sent.
    pub fn end(&self) -> u64 {
        self.segments.back().map_or(self.start, |last| last.end)
    }

    /// A segment of new data, up to `end`, was sent.
    pub fn push(&mut self, end: u64, now: Instant) {
        self.pipe += end - self.end();
        self.segments.push_back(Sent {
            end,
            sent_at: now,
            sacked: false,
            lost: false,
            copy_in_network: false,
            retransmitted: false,
        });
    }

    /// The cumulative ACK moved up to `ack`. Gives the time at which the first newly acknowledged segment was
    /// sent, if that one was sent only once.
    pub fn acknowledge(&mut self, ack: u64) -> Option<Instant> {
        let first = self.segments.front().filter(|s| !s.retransmitted).map(|s| s.sent_at);
        while let Some(&segment) = self.segments.front()
            && self.start < ack
        {
            let end = segment.end.min(ack);
            self.pipe -= (end - self.start) * segment.copies_in_network();
            self.start = end;
            if end == segment.end {
                self.segments.pop_front();
            }
        }
        self.start = self.start.max(ack);
        self.sacked.remove_below(ack);
        self.lost_below = self.lost_below.max(ack);
        self.high_rxt = self.high_rxt.max(ack);
        first
    }

    /// Takes a SACK block; gives how many bytes of it are news. What is acknowledged already is none, such as a
    /// duplicate that RFC 2883 reports; nor is a block that reports more than was sent.
    pub fn sack(&mut self, block: Range<u64>) -> u64 {
        if block.end > self.end() {
            return 0;
        }
        let block = block.start.max(self.start)..block.end;
        let mut fresh = Vec::new();
        self.sacked.insert(block, |range| fresh.push(range));
        for range in &fresh {
            let first = self.index_of(range.start);
            for index in first..self.segments.len() {
                let bounds = self.bounds(index);
                if bounds.start >= range.end {
                    break;
                }
                // Only a block that ends inside a segment leaves it out here: nobody honest sends one.
                if !self.segments[index].sacked && self.sacked.covers(bounds.clone()) {
                    self.update(index, |segment| segment.sacked = true);
                }
            }
        }
        fresh.iter().map(|range| range.end - range.start).sum()
    }

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
        if self.segments.front().is_some_and(|first| first.sacked) {
            self.sacked.clear();
            self.segments.iter_mut().for_each(|segment| segment.sacked = false);
        }
        for segment in &mut self.segments {
            segment.lost = true;
            segment.copy_in_network = false;
        }
        self.pipe = 0;
        self.lost_below = self.end();
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

    /// A recovery begins: nothing has been retransmitted in it yet.
    pub fn begin_recovery(&mut self) {
        self.high_rxt = self.start;
    }

    /// The first lost segment that this recovery has not retransmitted: NextSeg() rule 1.
    pub fn next_lost(&mut self) -> Option<Range<u64>> {
        let mut index = self.index_of(self.high_rxt);
        while self.high_rxt < self.lost_below && index < self.segments.len() {
            let segment = self.segments[index];
            if segment.lost && !segment.sacked {
                return Some(self.bounds(index));
            }
            // Never looked at again in this recovery.
            self.high_rxt = segment.end;
            index += 1;
        }
        None
    }

    /// The first segment below the highest SACKed one that is neither SACKed nor retransmitted: NextSeg() rule 3.
    pub fn next_unsacked(&self) -> Option<Range<u64>> {
        let highest = self.sacked.descending().next()?.start;
        let from = self.high_rxt.max(self.start);
        let hole = self.sacked.containing(from).map_or(from, |reported| reported.end);
        if hole < highest { self.segment_at(hole) } else { None }
    }

    /// The segment that holds `position`.
    pub fn segment_at(&self, position: u64) -> Option<Range<u64>> {
        let index = self.index_of(position);
        (index < self.segments.len() && position >= self.start).then(|| self.bounds(index))
    }

    /// The segment that begins at `start` was sent again.
    pub fn retransmitted(&mut self, start: u64, now: Instant) {
        let index = self.index_of(start);
        if index >= self.segments.len() {
            return;
        }
        self.update(index, |segment| {
            segment.retransmitted = true;
            segment.copy_in_network = true;
            segment.sent_at = now;
        });
        self.high_rxt = self.high_rxt.max(self.segments[index].end);
    }

    fn update(&mut self, index: usize, change: impl FnOnce(&mut Sent)) {
        let bounds = self.bounds(index);
        let len = bounds.end - bounds.start;
        let segment = &mut self.segments[index];
        let before = segment.copies_in_network();
        change(segment);
        self.pipe = self.pipe + len * segment.copies_in_network() - len * before;
    }

    /// Index of the segment that holds `position`; past the end where there is none.
    fn index_of(&self, position: u64) -> usize {
        // The usual question is for the first one.
        match self.segments.front() {
            Some(first) if position < first.end => 0,
            _ => self.segments.partition_point(|segment| segment.end <= position),
        }
    }

    fn bounds(&self, index: usize) -> Range<u64> {
        let start = index.checked_sub(1).map_or(self.start, |before| self.segments[before].end);
        start..self.segments[index].end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SMSS: u64 = 1000;

    fn sent(segments: u64) -> Scoreboard {
        let mut board = Scoreboard::new(1);
        for n in 1..=segments {
            board.push(1 + n * SMSS, Instant::ZERO);
        }
        board
    }

    fn segment(n: u64) -> Range<u64> {
        1 + n * SMSS..1 + (n + 1) * SMSS
    }

    /// SetPipe() by the letter of RFC 6675 §4, as an oracle for the running count.
    fn pipe_by_scan(board: &Scoreboard) -> u64 {
        (0..board.segments.len())
            .map(|i| {
                let bounds = board.bounds(i);
                (bounds.end - bounds.start) * board.segments[i].copies_in_network()
            })
            .sum()
    }

    #[test]
    fn three_separate_sacks_or_more_than_two_segments_worth_mean_loss() {
        let mut board = sent(10);
        board.sack(segment(2));
        board.sack(segment(4));
        assert!(!board.detect_losses(3, SMSS));
        board.sack(segment(6));
        assert!(board.detect_losses(3, SMSS));
        assert_eq!(board.next_lost(), Some(segment(0)));
        assert_eq!(board.lost_below, segment(2).start, "segment 3 has only two SACKed ones above it");

        let mut board = sent(10);
        board.sack(1001..3001);
        assert!(!board.detect_losses(3, SMSS), "exactly two segments are not more than two");
        board.sack(3001..4001);
        assert!(board.detect_losses(3, SMSS));
    }

    #[test]
    fn pipe_counts_what_is_neither_sacked_nor_lost_and_every_retransmitted_copy() {
        let mut board = sent(10);
        assert_eq!(board.pipe(), 10 * SMSS);
        assert_eq!(board.sack(3001..6001), 3 * SMSS);
        assert_eq!(board.pipe(), 7 * SMSS);
        board.detect_losses(3, SMSS);
        assert_eq!(board.pipe(), 4 * SMSS);
        board.retransmitted(1, Instant::ZERO);
        assert_eq!(board.pipe(), 5 * SMSS);
        assert_eq!(board.next_lost(), Some(segment(1)));
        board.acknowledge(1001);
        assert_eq!(board.pipe(), 4 * SMSS);
    }

    #[test]
    fn after_a_timeout_all_but_the_sacked_is_sent_again() {
        let mut board = sent(4);
        board.sack(segment(1));
        board.retransmitted(1, Instant::ZERO);
        board.lose_all();
        assert_eq!(board.pipe(), 0);
        let mut again = Vec::new();
        while let Some(range) = board.next_lost() {
            board.retransmitted(range.start, Instant::ZERO);
            again.push(range);
        }
        assert_eq!(again, [segment(0), segment(2), segment(3)]);
    }

    #[test]
    fn a_receiver_that_reneges_is_no_longer_believed() {
        let mut board = sent(3);
        board.sack(segment(0));
        board.lose_all();
        assert_eq!(board.next_lost(), Some(segment(0)));
        assert!(board.sacked.is_empty());
    }

    #[test]
    fn no_rtt_comes_from_a_segment_that_was_sent_twice() {
        let mut board = sent(2);
        board.retransmitted(1, Instant::from_nanos(5));
        assert_eq!(board.acknowledge(1001), None);
        assert_eq!(board.acknowledge(2001), Some(Instant::ZERO));
    }

    proptest! {
        #[test]
        fn the_running_pipe_is_what_a_scan_gives(ops in prop::collection::vec((0..7u8, 0..40u64, 1..8u64), 1..80)) {
            let mut board = Scoreboard::new(1);
            for (op, at, len) in ops {
                let base = board.start;
                match op {
                    0 | 1 => board.push(board.end() + len * 100, Instant::ZERO),
                    2 => { board.acknowledge((base + at * 50).min(board.end())); }
                    3 | 4 => { board.sack(base + at * 100..base + (at + len) * 100); board.detect_losses(3, 100); }
                    5 => if let Some(range) = board.next_lost() { board.retransmitted(range.start, Instant::ZERO); },
                    _ => if len == 1 { board.lose_all() } else { board.begin_recovery() },
                }
                prop_assert_eq!(board.pipe(), pipe_by_scan(&board));
                prop_assert!(board.sacked.descending().all(|r| r.start >= board.start && r.end <= board.end()));
                if let Some(range) = board.next_unsacked() { prop_assert!(range.start >= board.start); }
            }
        }
    }
}
