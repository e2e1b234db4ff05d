//! What has been sent and not acknowledged, segment by segment (RFC 6675 §3-4).
//!
//! Every segment is touched once when sent, once when SACKed, once when declared lost, once when retransmitted
//! and once when acknowledged, whatever the window: nothing here scans a list per ACK.

mod by_time;
mod copies;
mod loss;
mod rate;
#[cfg(test)]
mod tests;

use crate::intervals::IntervalSet;
use copies::Copies;
use core::ops::Range;
use farpath_units::Instant;
use std::collections::VecDeque;

pub use by_time::{ByTime, Sending};
pub use rate::{Excess, Measured, RateMeter, Tally};

/// A segment in flight. It begins where the one before it ends.
#[derive(Debug, Clone, Copy)]
struct Sent {
    end: u64,
    /// When it was first sent: it rises with the position. When a copy of it was sent is in [`Copies`].
    sent_at: Instant,
    /// Transmissions before that, modulo 2^32.
    count: u32,
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

    /// Sent once, and nothing heard of it.
    fn is_plain(&self) -> bool {
        !(self.sacked || self.lost || self.retransmitted)
    }

    fn first_sending(&self) -> Sending {
        Sending { at: self.sent_at, count: self.count, end: self.end }
    }
}

/// What one ACK delivered, cumulatively or by SACK.
#[derive(Debug, Clone, Default)]
pub struct Delivery {
    /// Bytes that had not been reported delivered before (RFC 6937 §3, DeliveredData).
    pub bytes: u64,
    /// The latest segment among those that were sent once.
    pub latest: Option<Sending>,
    /// When the last one left that the ACK covers, of those that were sent once and not reported before.
    pub covered: Option<Instant>,
    /// The first and the last of these left at, and the same of what SACK blocks report: of segments that were sent once.
    pub acked: Option<(Instant, Instant)>,
    pub sacked: Option<(Instant, Instant)>,
    /// The ACK covers a segment that was sent again, reported before or not.
    pub covers_copy: bool,
    /// Where the lowest segment ends among those that were sent once.
    pub first_original_end: Option<u64>,
    /// Where the lowest segment begins of those that were sent once and came after a later one.
    pub reordered: Option<u64>,
    /// The segments that were sent again, with the time of their latest copy.
    pub copies: Vec<Sending>,
}

/// What is taken to have become of a segment in flight.
#[derive(Debug, Clone, Copy)]
pub struct Condition {
    /// Its first sending is taken to be lost.
    pub lost: bool,
    /// It was sent again, and that copy is taken to be in the network.
    pub copy: bool,
}

/// From the first to the last of several times, with one more: blocks come in any order.
impl Delivery {
    /// `sending` has arrived: it may be the latest one. Compared where it lies, since it is long.
    fn note_sending(&mut self, sending: Sending) {
        if self.latest.as_ref().is_none_or(|latest| *latest < sending) {
            self.latest = Some(sending);
        }
    }
}

fn extend(times: &mut Option<(Instant, Instant)>, at: Instant) {
    let (first, last) = times.unwrap_or((at, at));
    *times = Some((first.min(at), last.max(at)));
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
    /// Segments that SACK reports.
    sacked_segments: u32,
    /// Their bytes.
    sacked_bytes: u64,
    /// One past the highest position delivered (RFC 8985 §6.2 step 3, RACK.fack), and the same before the ACK that is being
    /// taken: what one ACK reports is no news of the order within it.
    fack: u64,
    fack_before: u64,
    delivery: Delivery,
    copies: Copies,
    /// Segments sent, copies included, modulo 2^32.
    sent: u32,
    /// Present where somebody asks for the rate of delivery: without, nothing is kept for it.
    meter: Option<Box<RateMeter>>,
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

    /// Segments that SACK reports, and that are not acknowledged.
    pub fn sacked_segments(&self) -> u32 {
        self.sacked_segments
    }

    /// Bytes of the segments that SACK reports.
    pub fn sacked_bytes(&self) -> u64 {
        self.sacked_bytes
    }

    /// Below this, what is not reported has been declared lost.
    pub fn lost_below(&self) -> u64 {
        self.lost_below
    }

    /// What has been delivered since `begin_ack`.
    pub fn delivery(&self) -> &Delivery {
        &self.delivery
    }

    /// An ACK is about to be taken.
    pub fn begin_ack(&mut self) {
        // Field by field: what is not there is only marked as such.
        let Delivery {
            bytes,
            latest,
            covered,
            acked,
            sacked,
            covers_copy,
            first_original_end,
            reordered,
            copies,
        } = &mut self.delivery;
        (*bytes, *covers_copy) = (0, false);
        *latest = None;
        *covered = None;
        *acked = None;
        *sacked = None;
        *first_original_end = None;
        *reordered = None;
        copies.clear();
        self.fack_before = self.fack;
        if let Some(meter) = &mut self.meter {
            meter.begin_ack();
        }
    }

    /// The rate of delivery is asked for from now on. Nothing is in flight yet.
    pub fn keep_rate(&mut self) {
        self.meter = Some(Box::default());
    }

    /// What became of what was sent; zeros where the rate of delivery is not kept.
    pub fn tally(&self) -> Tally {
        self.meter.as_ref().map_or(Tally::default(), |meter| meter.tally())
    }

    /// What is known of the rate of delivery.
    pub fn meter(&mut self) -> Option<&mut RateMeter> {
        self.meter.as_deref_mut()
    }

    /// One past the last byte sent.
    pub fn end(&self) -> u64 {
        self.segments.back().map_or(self.start, |last| last.end)
    }

    /// A segment of new data, up to `end`, was sent.
    pub fn push(&mut self, end: u64, now: Instant) {
        let len = end - self.end();
        if let Some(meter) = &mut self.meter {
            meter.sent(now, len, self.pipe, self.segments.is_empty());
        }
        self.pipe += len;
        self.segments.push_back(Sent {
            end,
            sent_at: now,
            count: self.sent,
            sacked: false,
            lost: false,
            copy_in_network: false,
            retransmitted: false,
        });
        self.sent = self.sent.wrapping_add(1);
    }

    /// The cumulative ACK moved up to `ack`. Gives the time at which the first newly acknowledged segment was
    /// sent, if that one was sent only once.
    pub fn acknowledge(&mut self, ack: u64) -> Option<Instant> {
        let first = self.segments.front().filter(|s| !s.retransmitted).map(|s| s.sent_at);
        if self.meter.is_none() {
            self.acknowledge_plain(ack);
        }
        while self.start < ack
            && let Some(&segment) = self.segments.front()
        {
            let end = segment.end.min(ack);
            let len = end - self.start;
            self.pipe -= len * segment.copies_in_network();
            self.start = end;
            if segment.sacked {
                self.sacked_bytes -= len;
            } else {
                self.delivery.bytes += len;
            }
            if end == segment.end {
                self.delivery.covers_copy |= segment.retransmitted;
                if segment.sacked {
                    self.sacked_segments -= 1;
                } else {
                    self.delivered(0, end - len, &segment);
                    if !segment.retransmitted {
                        self.delivery.covered = Some(segment.sent_at);
                        extend(&mut self.delivery.acked, segment.sent_at);
                    }
                }
                self.segments.pop_front();
                if let Some(meter) = &mut self.meter {
                    meter.forget_first();
                }
            }
        }
        self.start = self.start.max(ack);
        self.sacked.remove_below(ack);
        self.lost_below = self.lost_below.max(ack);
        self.high_rxt = self.high_rxt.max(ack);
        first
    }

    /// Takes what comes first of it and has only been sent, each segment once. The order of these is that of time: the first and the
    /// last of them tell all.
    fn acknowledge_plain(&mut self, ack: u64) {
        let next =
            |segments: &VecDeque<Sent>| segments.front().copied().filter(|s| s.end <= ack && s.is_plain());
        let Some(first) = next(&self.segments) else { return };
        let mut last = first;
        while let Some(segment) = next(&self.segments) {
            last = segment;
            self.segments.pop_front();
        }
        let start = core::mem::replace(&mut self.start, last.end);
        let len = last.end - start;
        self.pipe -= len;
        let delivery = &mut self.delivery;
        delivery.bytes += len;
        delivery.covered = Some(last.sent_at);
        extend(&mut delivery.acked, first.sent_at);
        extend(&mut delivery.acked, last.sent_at);
        delivery.note_sending(last.first_sending());
        delivery.first_original_end =
            Some(delivery.first_original_end.map_or(first.end, |end| end.min(first.end)));
        if first.end < self.fack_before {
            delivery.reordered = Some(delivery.reordered.map_or(start, |lowest| lowest.min(start)));
        }
        self.fack = self.fack.max(last.end);
    }

    /// A segment that no report knew of has been delivered.
    fn delivered(&mut self, index: usize, start: u64, segment: &Sent) {
        let end = segment.end;
        if let Some(meter) = &mut self.meter {
            meter.delivered(index);
        }
        if segment.retransmitted {
            self.delivery.copies.extend(self.copies.delivered(end));
        } else {
            self.delivery.note_sending(segment.first_sending());
            let first = self.delivery.first_original_end.map_or(end, |first| first.min(end));
            self.delivery.first_original_end = Some(first);
            if end < self.fack_before {
                self.delivery.reordered =
                    Some(self.delivery.reordered.map_or(start, |first| first.min(start)));
            }
        }
        self.fack = self.fack.max(end);
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
                    self.sacked_segments += 1;
                    self.sacked_bytes += bounds.end - bounds.start;
                    self.delivery.bytes += bounds.end - bounds.start;
                    let segment = self.segments[index];
                    self.delivered(index, bounds.start, &segment);
                    if !segment.retransmitted {
                        extend(&mut self.delivery.sacked, segment.sent_at);
                    }
                }
            }
        }
        fresh.iter().map(|range| range.end - range.start).sum()
    }

    /// A recovery begins: nothing has been retransmitted in it yet.
    pub fn begin_recovery(&mut self) {
        self.high_rxt = self.start;
    }

    /// The first lost segment of which no copy is in the network: NextSeg() rule 1.
    pub fn next_lost(&mut self) -> Option<Range<u64>> {
        let again = self.copies.first_lost().and_then(|end| self.segment_at(end - 1));
        let first = self.next_lost_for_the_first_time();
        match (&again, &first) {
            (Some(a), Some(b)) if b.start < a.start => first,
            (Some(_), _) => again,
            (None, _) => first,
        }
    }

    fn next_lost_for_the_first_time(&mut self) -> Option<Range<u64>> {
        let mut index = self.index_of(self.high_rxt);
        while self.high_rxt < self.lost_below && index < self.segments.len() {
            let segment = self.segments[index];
            if segment.lost && !segment.sacked && !segment.copy_in_network {
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

    /// Whether a segment was sent again that has not arrived yet, nor was its copy declared lost. Where the times of copies
    /// are not kept, it is the first segment that tells.
    pub fn retransmission_outstanding(&self) -> bool {
        self.copies.in_network() > 0 || self.segments.front().is_some_and(|first| first.retransmitted)
    }

    /// Where the highest segment ends that SACK reports; `snd_una` where it reports none (Linux's `tcp_highest_sack_seq()`, whose
    /// `highest_sack` is the segment behind that one: `tcp_advance_highest_sack()`).
    pub fn highest_sacked(&self) -> u64 {
        let reported = self.sacked.descending().next();
        reported
            .and_then(|reported| self.segment_at(reported.end - 1))
            .map_or(self.start, |segment| segment.end)
    }

    /// All ranges that are reported, from the highest on.
    pub fn reported(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.sacked.descending()
    }

    /// All that is reported around `position`, where that is.
    pub fn reported_around(&self, position: u64) -> Option<Range<u64>> {
        self.sacked.containing(position)
    }

    /// Whether the segment that begins at `start` was sent again, and is reported.
    pub fn is_sacked_again(&self, start: u64) -> bool {
        let index = self.index_of(start);
        start >= self.start
            && self.segments.get(index).is_some_and(|segment| segment.sacked && segment.retransmitted)
    }

    /// Copies that are in the network, as far as is known. Only where the times of copies are kept.
    pub fn copies_in_network(&self) -> usize {
        self.copies.in_network()
    }

    /// `bytes` have been delivered that had been before: what a D-SACK reports.
    pub fn count_duplicate(&mut self, bytes: u64) {
        self.delivery.bytes += bytes;
    }

    /// When the first segment in flight was last sent. Where the times of copies are not kept: when it first was.
    pub fn first_last_sent(&self) -> Option<Instant> {
        self.segments.front().map(|first| self.copies.time_of_copy(first.end).unwrap_or(first.sent_at))
    }

    /// How many segments in flight are like that.
    pub fn count(&self, holds: impl Fn(Condition) -> bool) -> u64 {
        let condition = |segment: &Sent| Condition {
            lost: segment.lost && !segment.sacked,
            copy: segment.copy_in_network && !segment.sacked,
        };
        self.segments.iter().filter(|segment| holds(condition(segment))).count() as u64
    }

    /// The last segment in flight.
    pub fn last(&self) -> Option<Range<u64>> {
        self.segments.len().checked_sub(1).map(|index| self.bounds(index))
    }

    /// The last segment in flight that SACK does not report: NextSeg() rule 4.
    pub fn last_unsacked(&self) -> Option<Range<u64>> {
        let last = self.last()?;
        let reported = self.sacked.containing(last.end - 1);
        let before = reported.map_or(last.end, |reported| reported.start);
        if before > self.start { self.segment_at(before - 1) } else { None }
    }

    /// The segment that begins at `start` was sent again. One that stands for no hole in particular, as a probe or
    /// a rescue, does not move HighRxt (RFC 6675 §4).
    pub fn retransmitted(&mut self, start: u64, now: Instant, fills_hole: bool) {
        let index = self.index_of(start);
        if index >= self.segments.len() {
            return;
        }
        // The copy of a segment that is reported, as a probe may be, is not of the pipe: what was there before is taken now.
        let in_network = self.pipe;
        self.update(index, |segment| {
            segment.retransmitted = true;
            segment.copy_in_network = true;
        });
        let bounds = self.bounds(index);
        if let Some(meter) = &mut self.meter {
            meter.sent_again(index, now, bounds.end - bounds.start, in_network);
        }
        let Sent { end, sacked, .. } = self.segments[index];
        // What is reported has arrived: a copy of it, as a probe may be, tells nothing of time and cannot be lost.
        if !sacked {
            self.copies.sent(Sending { at: now, count: self.sent, end });
        }
        self.sent = self.sent.wrapping_add(1);
        if fills_hole {
            self.high_rxt = self.high_rxt.max(end);
        }
    }

    fn update(&mut self, index: usize, change: impl FnOnce(&mut Sent)) {
        let bounds = self.bounds(index);
        let len = bounds.end - bounds.start;
        let segment = &mut self.segments[index];
        let before = segment.copies_in_network();
        change(segment);
        let after = segment.copies_in_network();
        if let Some(meter) = &mut self.meter
            && segment.lost
            && !segment.sacked
        {
            meter.lose(index, len * before.saturating_sub(after));
        }
        self.pipe = self.pipe + len * after - len * before;
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
