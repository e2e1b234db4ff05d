//! Segments at both ends, and where two simulators first disagree about them.

use core::fmt;
use farpath_run::{SegmentEvent, SegmentRow};
use std::collections::BTreeMap;

/// Where a segment was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Leaving the data sender.
    SentBySender,
    /// Reaching the data receiver.
    ReceivedByReceiver,
    /// Leaving the data receiver.
    SentByReceiver,
    /// Reaching the data sender.
    ReceivedBySender,
}

impl Place {
    /// All of them.
    pub const ALL: [Place; 4] =
        [Place::SentBySender, Place::ReceivedByReceiver, Place::SentByReceiver, Place::ReceivedBySender];

    fn describe(self) -> &'static str {
        match self {
            Place::SentBySender => "sent by the sender",
            Place::ReceivedByReceiver => "reaching the receiver",
            Place::SentByReceiver => "sent by the receiver",
            Place::ReceivedBySender => "reaching the sender",
        }
    }
}

/// A segment at one end. Positions are relative to the initial sequence numbers: the SYN is at 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traced {
    /// When, since the start.
    pub time_ns: u64,
    /// First position.
    pub position: u32,
    /// Payload bytes.
    pub len: u32,
    /// A SYN or SYN/ACK.
    pub syn: bool,
    /// What it acknowledges.
    pub ack: Option<u32>,
}

impl Traced {
    /// The same but for the time. FIN and PSH do not count: ns-3's program never closes.
    fn says_the_same(&self, other: &Traced) -> bool {
        Traced { time_ns: 0, ..*self } == Traced { time_ns: 0, ..*other }
    }
}

impl fmt::Display for Traced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let syn = if self.syn { "SYN " } else { "" };
        let end = self.position + self.len;
        write!(f, "{syn}{}:{end}", self.position)?;
        if let Some(ack) = self.ack {
            write!(f, " ack {ack}")?;
        }
        write!(f, " at {}.{:09} s", self.time_ns / 1_000_000_000, self.time_ns % 1_000_000_000)
    }
}

/// The segments of one transfer, in the order of time at each place.
#[derive(Debug, Clone, Default)]
pub struct Trace([Vec<Traced>; 4]);

impl Trace {
    /// Adds a segment.
    pub fn push(&mut self, place: Place, segment: Traced) {
        self.0[place as usize].push(segment);
    }

    /// What was seen there.
    pub fn seen_at(&self, place: Place) -> &[Traced] {
        &self.0[place as usize]
    }

    /// How often the data segment is sent that is sent most often.
    pub fn most_copies(&self) -> usize {
        let mut copies = BTreeMap::new();
        for segment in self.seen_at(Place::SentBySender).iter().filter(|segment| segment.len > 0) {
            *copies.entry(segment.position).or_insert(0) += 1;
        }
        copies.into_values().max().unwrap_or(0)
    }

    /// From the segments of a run of ours with one flow.
    pub fn from_rows(rows: impl IntoIterator<Item = SegmentRow>) -> Trace {
        const SYN: u8 = 2;
        const ACK: u8 = 16;
        // Initial sequence numbers, of the data sender and of the receiver.
        let mut isn: [Option<u32>; 2] = [None; 2];
        let mut trace = Trace::default();
        for row in rows {
            let from = usize::from(row.direction != "forward");
            let syn = row.flags & SYN != 0;
            if syn {
                isn[from] = Some(row.seq);
            }
            let place = match (row.event, from) {
                (SegmentEvent::Sent, 0) => Place::SentBySender,
                (SegmentEvent::Received, 0) => Place::ReceivedByReceiver,
                (SegmentEvent::Sent, _) => Place::SentByReceiver,
                (SegmentEvent::Received, _) => Place::ReceivedBySender,
                (SegmentEvent::Dropped | SegmentEvent::Passed, _) => continue,
            };
            let relative = |number: u32, of: usize| number.wrapping_sub(isn[of].unwrap_or(0));
            let ack = (row.flags & ACK != 0).then(|| relative(row.ack, 1 - from));
            trace.push(
                place,
                Traced {
                    time_ns: row.time.as_nanos(),
                    position: relative(row.seq, from),
                    len: row.len,
                    syn,
                    ack,
                },
            );
        }
        trace
    }
}

impl Trace {
    /// What the data sender saw around a time, a line a segment: to read beside another one's.
    pub fn at_the_sender(&self, around_ns: u64, lines: usize) -> Vec<String> {
        let marked =
            |place: Place, mark: char| self.seen_at(place).iter().map(move |segment| (segment, mark));
        let mut seen: Vec<(&Traced, char)> =
            marked(Place::ReceivedBySender, '<').chain(marked(Place::SentBySender, '>')).collect();
        // What comes in at a moment is the cause of what leaves at it.
        seen.sort_by_key(|(segment, _)| segment.time_ns);
        let middle = seen.partition_point(|(segment, _)| segment.time_ns < around_ns);
        let from = middle.saturating_sub(lines / 2);
        seen.iter().skip(from).take(lines).map(|(segment, mark)| format!("{mark} {segment}")).collect()
    }
}

/// The first thing in which two traces differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// At which place, and the how manieth segment there.
    pub place: Place,
    /// Counted from 1.
    pub number: usize,
    /// `None`: no more segments there.
    pub ours: Option<Traced>,
    /// `None`: no more segments there.
    pub theirs: Option<Traced>,
}

impl Difference {
    /// When, by the earlier of the two.
    pub fn time(&self) -> u64 {
        let times = [self.ours, self.theirs].into_iter().flatten().map(|segment| segment.time_ns);
        times.min().unwrap_or(u64::MAX)
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |segment: Option<Traced>| segment.map_or("none".to_owned(), |segment| segment.to_string());
        let (place, number) = (self.place.describe(), self.number);
        write!(f, "segment {number} {place}: ours {}, ns-3's {}", show(self.ours), show(self.theirs))
    }
}

/// What comparing two traces gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// Segments at all places that are the same in both.
    pub equal: usize,
    /// The largest difference in time among these, ns.
    pub largest_offset_ns: u64,
    /// The earliest difference, if there is one.
    pub first_difference: Option<Difference>,
}

/// Compares what happened before `until_ns`, when the first of the two was done; times may differ by `tolerance_ns`.
pub fn compare(ours: &Trace, theirs: &Trace, until_ns: u64, tolerance_ns: u64) -> Comparison {
    let mut result = Comparison { equal: 0, largest_offset_ns: 0, first_difference: None };
    for place in Place::ALL {
        let in_time =
            |segment: Option<&Traced>| segment.copied().filter(|segment| segment.time_ns < until_ns);
        for index in 0.. {
            let (mine, other) = (ours.seen_at(place).get(index), theirs.seen_at(place).get(index));
            if in_time(mine).is_none() && in_time(other).is_none() {
                break;
            }
            let offset = mine.zip(other).filter(|(mine, other)| mine.says_the_same(other));
            let offset = offset.map(|(mine, other)| mine.time_ns.abs_diff(other.time_ns));
            if let Some(offset) = offset.filter(|&offset| offset <= tolerance_ns) {
                result.equal += 1;
                result.largest_offset_ns = result.largest_offset_ns.max(offset);
                continue;
            }
            let difference =
                Difference { place, number: index + 1, ours: mine.copied(), theirs: other.copied() };
            let earliest =
                result.first_difference.as_ref().is_none_or(|first| difference.time() < first.time());
            if earliest {
                result.first_difference = Some(difference);
            }
            break;
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time_ns: u64, position: u32) -> Traced {
        Traced { time_ns, position, len: 1460, syn: false, ack: Some(1) }
    }

    fn sent(segments: &[Traced]) -> Trace {
        let mut trace = Trace::default();
        segments.iter().for_each(|&segment| trace.push(Place::SentBySender, segment));
        trace
    }

    #[test]
    fn copies_are_of_data_and_of_one_segment() {
        let bare = Traced { len: 0, ..at(7, 1461) };
        assert_eq!(sent(&[at(1, 1), at(2, 1461), bare, at(8, 1461), at(9, 2921), bare]).most_copies(), 2);
        assert_eq!(sent(&[]).most_copies(), 0);
    }

    #[test]
    fn equal_within_the_tolerance_and_no_further() {
        let (ours, theirs) = (sent(&[at(10, 1), at(20, 1461)]), sent(&[at(10, 1), at(22, 1461)]));
        let close = compare(&ours, &theirs, 100, 2);
        assert_eq!((close.equal, close.largest_offset_ns, close.first_difference), (2, 2, None));
        let strict = compare(&ours, &theirs, 100, 1);
        assert_eq!(strict.equal, 1);
        assert_eq!(strict.first_difference.map(|difference| difference.number), Some(2));
    }

    #[test]
    fn a_segment_that_is_missing_or_another_is_a_difference() {
        let (ours, theirs) = (sent(&[at(10, 1)]), sent(&[at(10, 1), at(20, 1461)]));
        assert!(compare(&ours, &theirs, 100, 0).first_difference.is_some());
        assert!(compare(&ours, &theirs, 15, 0).first_difference.is_none(), "after the end nothing counts");
        assert!(compare(&ours, &sent(&[at(10, 2)]), 100, 5).first_difference.is_some());
    }

    #[test]
    fn the_earliest_difference_is_the_one_told() {
        let (mut ours, mut theirs) = (sent(&[at(50, 1)]), sent(&[at(60, 1)]));
        ours.push(Place::ReceivedBySender, at(20, 7));
        theirs.push(Place::ReceivedBySender, at(21, 7));
        let first = compare(&ours, &theirs, 100, 0).first_difference.expect("there are two");
        assert_eq!(first.place, Place::ReceivedBySender);
    }
}
