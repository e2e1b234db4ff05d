//! Losses by the order of time (RFC 8985 §6.2 step 5): what was sent long enough before something that has arrived.

use super::Scoreboard;
use core::cmp::Ordering;
use farpath_units::{Duration, Instant};

/// One transmission of a segment. In the order in which they left, which is that of RACK_sent_after() (RFC 8985 §6.2).
// DEVIATES RFC 8985 §6.2: of what left at one time, the order is that of positions there. A clock here may stand still between an
// ACK and what it released: a copy of the first segment would count as sent before all that had arrived, and be lost at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sending {
    /// When.
    pub at: Instant,
    /// Transmissions before it, modulo 2^32: the order of those of one time.
    pub count: u32,
    /// One past the segment's last position.
    pub end: u64,
}

impl Ord for Sending {
    fn cmp(&self, other: &Sending) -> Ordering {
        let of_one_time = || (self.count.wrapping_sub(other.count) as i32).cmp(&0);
        self.at.cmp(&other.at).then_with(of_one_time).then_with(|| self.end.cmp(&other.end))
    }
}

impl PartialOrd for Sending {
    fn partial_cmp(&self, other: &Sending) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// What a look at the times gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ByTime {
    /// Something was declared lost, and a copy among it.
    pub lost: bool,
    pub lost_copy: bool,
    /// When all that may yet be lost will be: the reordering timer.
    pub due: Option<Instant>,
}

impl Scoreboard {
    /// The times of copies are asked for from now on.
    pub fn keep_times_of_copies(&mut self) {
        self.copies.enable();
    }

    /// Declares lost what was sent before `delivered`, and `wait` or longer ago.
    pub fn detect_losses_by_time(&mut self, delivered: Sending, wait: Duration, now: Instant) -> ByTime {
        let (mut lost, mut lost_copy) = (false, false);
        let mut pending: Option<Instant> = None;
        // First transmissions, in the order of positions, which is that of time: each is passed once.
        let mut index = self.index_of(self.lost_below);
        while let Some(&segment) = self.segments.get(index) {
            if !segment.sacked && !segment.retransmitted {
                if segment.first_sending() >= delivered {
                    break;
                }
                if segment.sent_at + wait > now {
                    pending = self.last_original_before(delivered, index);
                    break;
                }
                self.update(index, |segment| segment.lost = true);
                lost = true;
            }
            self.lost_below = segment.end;
            index += 1;
        }
        while let Some(copy) = self.copies.oldest().filter(|&copy| copy < delivered && copy.at + wait <= now)
        {
            self.copies.lose(copy);
            let index = self.index_of(copy.end - 1);
            self.update(index, |segment| (segment.lost, segment.copy_in_network) = (true, false));
            (lost, lost_copy) = (true, true);
        }
        let copy = self.copies.latest_before(delivered).map(|copy| copy.at);
        ByTime { lost, lost_copy, due: pending.max(copy).map(|at| at + wait) }
    }

    /// When the last segment before `delivered` left that was sent once and is not reported; none before `from`.
    fn last_original_before(&self, delivered: Sending, from: usize) -> Option<Instant> {
        let mut index = self.segments.partition_point(|segment| segment.first_sending() < delivered);
        while index > from {
            let segment = self.segments[index - 1];
            if !segment.sacked && !segment.retransmitted {
                return Some(segment.sent_at);
            }
            index -= 1;
            // Over all that one report covers at once.
            if let Some(report) = self.sacked.containing(segment.end - 1).filter(|_| segment.sacked) {
                let first = self.index_of(report.start);
                index = if self.segments[first].sacked { first } else { first + 1 };
            }
        }
        None
    }

    /// RFC 8985 §6.3: a timeout loses the first segment, and what was sent `wait` or longer ago.
    pub fn lose_expired(&mut self, wait: Duration, now: Instant) {
        self.forget_reports_taken_back();
        self.lost_below = self.start;
        self.high_rxt = self.start;
        let mut prefix = true;
        for index in 0..self.segments.len() {
            let segment = self.segments[index];
            let copy = self.copies.time_of_copy(segment.end);
            let expired = index == 0 || copy.unwrap_or(segment.sent_at) + wait <= now;
            if expired && !segment.sacked {
                self.copies.give_up(segment.end);
                self.update(index, |segment| (segment.lost, segment.copy_in_network) = (true, false));
            }
            prefix &= expired || segment.sacked || segment.retransmitted;
            if prefix {
                self.lost_below = segment.end;
            }
        }
    }
}
