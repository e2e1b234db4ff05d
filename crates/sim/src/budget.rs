//! What a run may use up: one that makes no progress ends with a word on what repeats, and does not run for ever.

use crate::{End, FlowSetup, Packet};
use core::fmt;
use farpath_path::MOST_PACKETS;
use farpath_tcp::Flags;
use farpath_units::Instant;
use std::collections::BTreeMap;

/// Events of a run, beside [`EVENTS_PER_SEGMENT`] for each segment that it is to carry: half a minute of one core.
pub const EVENTS: u64 = 200_000_000;
/// Events at one instant, beside the same.
pub const EVENTS_AT_ONE_INSTANT: u64 = 10_000_000;
/// Events that a segment may take: arrived or dropped, acknowledged, and all that again for retransmissions.
pub const EVENTS_PER_SEGMENT: u64 = 100;
/// Between two looks at what was used up.
const LOOK: u64 = 1 << 14;
/// Events that are told apart once one of the bounds is passed: what repeats is among them.
const TOLD_APART: u64 = 10_000;

/// What a simulation may use up before it ends as stuck.
///
/// An event is a packet that comes off the path, or a timer of a host. The bounds are looked at every some thousand events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Events in all.
    pub events: u64,
    /// Events at one instant: where nothing takes time, no horizon ends a run.
    pub events_at_one_instant: u64,
    /// Packets on the path at once.
    pub packets: u64,
}

impl Budget {
    /// The bounds of a run with these flows, where nobody has set them.
    pub fn for_flows(flows: &[FlowSetup]) -> Budget {
        let segments = |flow: &FlowSetup| {
            let smss = flow.sender.mss.0.min(flow.receiver.mss.0).max(1);
            // Each call may be a segment, and an event; so may each update that comes back.
            let calls = flow.writing.write_size.map_or(0, |piece| flow.size.0 / piece.0.max(1));
            let updates = flow.writing.updates_for(flow.size);
            let messages = flow.messages.map_or(0, |messages| messages.count);
            let full = flow.size.0.saturating_add(flow.request.0) / smss;
            [full, messages, calls, updates].into_iter().fold(1, u64::saturating_add)
        };
        Budget::for_segments(flows.iter().map(segments).fold(0, u64::saturating_add))
    }

    /// The bounds of a run that is to carry so many segments, or datagrams.
    pub fn for_segments(segments: u64) -> Budget {
        let share = segments.saturating_mul(EVENTS_PER_SEGMENT);
        Budget {
            events: EVENTS.saturating_add(share),
            events_at_one_instant: EVENTS_AT_ONE_INSTANT.saturating_add(share),
            packets: MOST_PACKETS as u64,
        }
    }
}

/// Which bound of a [`Budget`] a run has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// Events in all.
    Events,
    /// Events at one instant.
    EventsAtOneInstant,
    /// Packets on the path at once.
    Packets,
}

/// What has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Deed {
    Syn,
    Data,
    DataAgain,
    Ack,
    Reset,
    Timer,
}

impl Deed {
    /// What it is that a packet was sent for.
    pub fn sent(packet: &Packet) -> Deed {
        let flags = packet.segment.flags;
        if flags.contains(Flags::SYN) {
            Deed::Syn
        } else if flags.contains(Flags::RST) {
            Deed::Reset
        } else if packet.segment.len == 0 {
            Deed::Ack
        } else if packet.retransmission {
            Deed::DataAgain
        } else {
            Deed::Data
        }
    }

    const fn describe(self) -> &'static str {
        match self {
            Deed::Syn => "SYNs",
            Deed::Data => "new data",
            Deed::DataAgain => "retransmissions",
            Deed::Ack => "ACKs",
            Deed::Reset => "resets",
            Deed::Timer => "timers",
        }
    }
}

/// Why a run was ended, and what it did over and over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stuck {
    /// What it has passed.
    pub bound: Bound,
    /// When.
    pub at: Instant,
    /// So many events had there been, at that instant where that is the bound; or packets were on the path.
    pub count: u64,
    /// What was most frequent among the last ten thousand events; empty where packets are the bound.
    pub repeated: String,
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stuck { bound, at, count, repeated } = self;
        match bound {
            Bound::Events => write!(f, "{count} events by {at}, where budget.events ends it")?,
            Bound::EventsAtOneInstant => {
                write!(
                    f,
                    "{count} events at {at} and no other time, where budget.events_at_one_instant ends it"
                )?;
            }
            Bound::Packets => {
                write!(f, "more than {count} packets on the path at {at}, where budget.packets ends it")?;
            }
        }
        if repeated.is_empty() { Ok(()) } else { write!(f, "; lately {repeated}") }
    }
}

/// How often each end of a flow did what.
type Told = BTreeMap<(u32, End, Deed), u64>;

/// Counts the events of a run, and says when they are too many.
#[derive(Debug)]
pub(crate) struct Watch {
    budget: Budget,
    events: u64,
    /// So many events, and the bounds are looked at again.
    look_at: u64,
    /// The last instant that was looked at, and the events before it.
    instant: Instant,
    before: u64,
    /// What is being told apart, and for which bound.
    passed: Option<(Bound, Told)>,
    stuck: Option<Stuck>,
}

impl Watch {
    pub fn new(budget: Budget) -> Watch {
        let instant = Instant::ZERO;
        let look_at = LOOK.min(budget.events).min(budget.events_at_one_instant);
        Watch { budget, events: 0, look_at, instant, before: 0, passed: None, stuck: None }
    }

    /// Another event; whether it is time to [look](Watch::look).
    #[inline]
    pub fn count(&mut self) -> bool {
        self.events += 1;
        self.events >= self.look_at
    }

    /// So many more.
    pub fn count_many(&mut self, events: u64) {
        self.events += events;
    }

    /// Events so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Whether the run is to end.
    #[inline]
    pub fn is_stuck(&self) -> bool {
        self.stuck.is_some()
    }

    /// The path has left out copies.
    pub fn end_as_overfull(&mut self, at: Instant) {
        let count = self.budget.packets;
        self.stuck.get_or_insert(Stuck { bound: Bound::Packets, at, count, repeated: String::new() });
    }

    pub fn into_stuck(self) -> Option<Stuck> {
        self.stuck
    }

    /// Compares what was used up with the budget. Of a bound that was passed it tells the next events apart, then the run is stuck.
    #[cold]
    pub fn look(&mut self, now: Instant, overfull: bool, (flow, end, deed): (u32, End, Deed)) {
        if let Some((bound, told)) = &mut self.passed {
            *told.entry((flow, end, deed)).or_default() += 1;
            let enough = told.values().sum::<u64>() >= TOLD_APART;
            // Time goes on, after all.
            let over = *bound == Bound::EventsAtOneInstant && now != self.instant;
            if over {
                self.passed = None;
                (self.instant, self.before) = (now, self.events);
            } else if enough {
                let count = if *bound == Bound::Events { self.events } else { self.events - self.before };
                let stuck = Stuck { bound: *bound, at: now, count, repeated: most_frequent(told) };
                self.stuck.get_or_insert(stuck);
            }
            self.look_at = self.events + if over { LOOK } else { 1 };
            return;
        }
        if now != self.instant {
            (self.instant, self.before) = (now, self.events);
        }
        if overfull {
            self.end_as_overfull(now);
        } else if self.events >= self.budget.events {
            self.passed = Some((Bound::Events, BTreeMap::new()));
        } else if self.events - self.before >= self.budget.events_at_one_instant {
            self.passed = Some((Bound::EventsAtOneInstant, BTreeMap::new()));
        }
        let Budget { events, events_at_one_instant, .. } = self.budget;
        let left = (events.saturating_sub(self.events)).min(events_at_one_instant);
        self.look_at = self.events + if self.passed.is_some() { 1 } else { LOOK.min(left.max(1)) };
    }
}

/// The two most frequent, with their share of all.
fn most_frequent(told: &Told) -> String {
    let all = told.values().sum::<u64>().max(1);
    let mut by_count: Vec<_> = told.iter().collect();
    by_count.sort_by_key(|(_, count)| core::cmp::Reverse(**count));
    let one = |((flow, end, deed), count): &(&(u32, End, Deed), &u64)| {
        let end = match end {
            End::Sender => "data sender",
            End::Receiver => "data receiver",
        };
        format!("{} of the {end} of flow {flow} ({} %)", deed.describe(), **count * 100 / all)
    };
    by_count.iter().take(2).map(one).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEED: (u32, End, Deed) = (0, End::Sender, Deed::DataAgain);

    fn budget(events: u64, events_at_one_instant: u64) -> Budget {
        Budget { events, events_at_one_instant, packets: 10 }
    }

    /// So many events, each `step_ns` after the one before; why it was stuck, if it was.
    fn run(budget: Budget, events: u64, step_ns: u64) -> Option<Stuck> {
        let mut watch = Watch::new(budget);
        for n in 0..events {
            if watch.count() {
                watch.look(Instant::from_nanos(n * step_ns), false, DEED);
            }
            if watch.is_stuck() {
                break;
            }
        }
        watch.into_stuck()
    }

    #[test]
    fn events_are_bounded_in_all() {
        assert_eq!(run(budget(100_000, 1_000_000), 100_000, 1), None);
        let stuck = run(budget(100_000, 1_000_000), 200_000, 1).expect("too many");
        assert_eq!((stuck.bound, stuck.count), (Bound::Events, 100_000 + TOLD_APART));
        assert_eq!(stuck.repeated, "retransmissions of the data sender of flow 0 (100 %)");
    }

    #[test]
    fn events_are_bounded_at_one_instant() {
        let stuck = run(budget(10_000_000, 100_000), 200_000, 0).expect("too many");
        assert_eq!(stuck.bound, Bound::EventsAtOneInstant);
        assert!((100_000..100_000 + LOOK + TOLD_APART).contains(&stuck.count), "{}", stuck.count);
        assert_eq!(run(budget(10_000_000, 100_000), 200_000, 1), None, "time goes on");
    }

    #[test]
    fn time_that_goes_on_after_all_is_not_stuck() {
        let mut watch = Watch::new(budget(1_000_000, 10_000));
        for n in 0..500_000u64 {
            if watch.count() {
                // 12 000 events at each instant: more than may be, and fewer than it takes to tell what repeats.
                watch.look(Instant::from_nanos(n / 12_000), false, DEED);
            }
        }
        assert_eq!(watch.into_stuck(), None);
    }

    #[test]
    fn what_is_asked_for_is_part_of_the_budget() {
        let small = Budget::for_segments(1);
        let large = Budget::for_segments(1 << 40);
        assert!(large.events > small.events * 1000 && large.events_at_one_instant > small.events * 1000);
        assert_eq!(Budget::for_segments(u64::MAX).events, u64::MAX);
    }
}
