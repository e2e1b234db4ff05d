//! A run of [`Transit`] elements as one element that holds packets.

use crate::schedule::Schedule;
use crate::{
    BoxedTransit, Departure, Direction, DropCause, DropCounts, ElementCounters, Fate, PacketView,
    PathElement, PathPacket, PerDirection, Verdict,
};
use farpath_units::{Bytes, Duration, Instant};
use std::collections::VecDeque;

/// Consecutive [`Transit`](crate::Transit) elements, run in one go when a packet is offered.
///
/// The arrival at each element is the departure from the one before; the packet is then held until it
/// leaves the last, and costs one push and one pop however many elements it passed. Forward packets
/// meet the first element first, reverse packets the last.
#[derive(Debug)]
pub struct Stage<P> {
    slots: Vec<Slot>,
    held: PerDirection<Held<P>>,
    /// When the next one held is due: asked for several times for each packet.
    due: PerDirection<Option<Instant>>,
    /// Whether copies are made no more.
    sated: bool,
}

impl<P> Stage<P> {
    /// Cuts a chain of named elements into the fewest stages that are still right.
    ///
    /// What follows an element that reorders or duplicates, in the direction of travel, needs its
    /// packets one by one as they arrive, so a stage ends there.
    pub fn fuse(elements: Vec<(String, BoxedTransit)>) -> Vec<Stage<P>> {
        let mut runs: Vec<Vec<Slot>> = Vec::new();
        for (name, transit) in elements {
            let slot = Slot::new(name, transit);
            match runs.last_mut() {
                Some(run) if run.last().is_some_and(|last| last.fuses_with(&slot)) => join(run, slot),
                _ => runs.push(vec![slot]),
            }
        }
        runs.into_iter().map(Stage::new).collect()
    }

    fn new(slots: Vec<Slot>) -> Stage<P> {
        let held = PerDirection::from_fn(|direction| {
            if slots.iter().all(|slot| slot.keeps_order(direction)) {
                Held::InOrder(VecDeque::new())
            } else {
                Held::ByDue(Schedule::new())
            }
        });
        Stage { slots, held, due: PerDirection::both(None), sated: false }
    }
}

impl<P: PathPacket + Clone> Stage<P> {
    /// Sends a packet through all slots: when it leaves, for which it is now to be held, or when it was dropped and why.
    #[inline(always)]
    fn pass(
        &mut self,
        now: Instant,
        direction: Direction,
        packet: &mut P,
    ) -> Result<Instant, (Instant, DropCause)> {
        let held = &mut self.held[direction];
        let sated = self.sated;
        let Passed { due, copied } = match direction {
            Direction::Forward => pass(self.slots.iter_mut(), now, direction, packet, held, sated)?,
            Direction::Reverse => pass(self.slots.iter_mut().rev(), now, direction, packet, held, sated)?,
        };
        let earliest = copied.map_or(due, |copied| copied.min(due));
        let before = &mut self.due[direction];
        *before = Some(before.map_or(earliest, |before| before.min(earliest)));
        Ok(due)
    }
}

impl<P: PathPacket + Clone> PathElement<P> for Stage<P> {
    fn offer(&mut self, now: Instant, direction: Direction, mut packet: P) -> Verdict<P> {
        match self.pass(now, direction, &mut packet) {
            Ok(due) => {
                self.held[direction].push(Departure { due, direction, packet, dropped: None });
                Verdict::Accepted
            }
            Err((at, cause)) => Verdict::Dropped { at, cause, packet },
        }
    }

    fn offer_copy(
        &mut self,
        now: Instant,
        direction: Direction,
        packet: &mut P,
    ) -> Option<(Instant, DropCause)> {
        match self.pass(now, direction, packet) {
            Ok(due) => {
                let packet = packet.clone();
                self.held[direction].push(Departure { due, direction, packet, dropped: None });
                None
            }
            Err(dropped) => Some(dropped),
        }
    }

    fn next_departure(&self) -> Option<Instant> {
        Instant::earliest(self.due.forward, self.due.reverse)
    }

    fn take(&mut self, now: Instant) -> Option<Departure<P>> {
        // Of two that are due together the forward one leaves first.
        let direction = match (self.due.forward, self.due.reverse) {
            (Some(forward), reverse) if reverse.is_none_or(|reverse| forward <= reverse) => {
                Direction::Forward
            }
            _ => Direction::Reverse,
        };
        self.due[direction].filter(|&due| due <= now)?;
        let held = &mut self.held[direction];
        let departure = held.pop();
        self.due[direction] = held.next_due();
        departure
    }

    fn held(&self) -> usize {
        self.held.forward.len() + self.held.reverse.len()
    }

    fn stop_duplicating(&mut self) {
        self.sated = true;
    }

    fn backlog(&self, direction: Direction) -> Option<Bytes> {
        self.slots.iter().filter_map(|slot| slot.backlog(direction)).max()
    }

    fn counters(&self) -> Vec<ElementCounters> {
        self.slots.iter().flat_map(Slot::counters).collect()
    }
}

/// When a packet has passed a run of slots.
struct Passed {
    /// When it leaves the last one.
    due: Instant,
    /// When a copy of it does.
    copied: Option<Instant>,
}

/// Sends a packet through `slots`, in the order in which it meets them: when it leaves the last, or when it was
/// dropped and why. A copy that is made of it goes into `held`, unless that is `sated`.
#[inline(always)]
fn pass<'a, P: PathPacket + Clone>(
    mut slots: impl Iterator<Item = &'a mut Slot>,
    now: Instant,
    direction: Direction,
    packet: &mut P,
    held: &mut Held<P>,
    sated: bool,
) -> Result<Passed, (Instant, DropCause)> {
    let view = PacketView::from(&*packet);
    let mut at = now;
    while let Some(slot) = slots.next() {
        let counts = &mut slot.counts[direction];
        counts.offered += 1;
        let fate = match &mut slot.action {
            Action::Delay(delay) => {
                counts.delivered += 1;
                at += delay[direction];
                continue;
            }
            Action::Transit(transit) => transit.transit(at, direction, view),
        };
        match fate {
            Fate::Depart(due) => {
                counts.delivered += 1;
                at = due;
            }
            Fate::Queue(due, wait) => {
                counts.delivered += 1;
                packet.add_queueing(wait);
                at = due;
            }
            Fate::Mark(due, wait) => {
                counts.delivered += 1;
                packet.add_queueing(wait);
                counts.marked += u64::from(packet.mark_ce());
                at = due;
            }
            Fate::Route(due, routers) => {
                at = due;
                if !packet.pass_routers(routers) {
                    counts.dropped.add(DropCause::Ttl);
                    return Err((at, DropCause::Ttl));
                }
                counts.delivered += 1;
            }
            Fate::Drop(cause) => {
                counts.dropped.add(cause);
                return Err((at, cause));
            }
            Fate::Duplicate(first, second) => {
                counts.delivered += 1;
                assert!(
                    slots.next().is_none(),
                    "an element that duplicates says that it does not keep order"
                );
                if sated {
                    return Ok(Passed { due: first, copied: None });
                }
                counts.delivered += 1;
                counts.duplicated += 1;
                held.push(Departure { due: first, direction, packet: packet.clone(), dropped: None });
                return Ok(Passed { due: second, copied: Some(first) });
            }
        }
    }
    Ok(Passed { due: at, copied: None })
}

/// Adds `slot` to a run: consecutive delays are one.
fn join(run: &mut Vec<Slot>, slot: Slot) {
    match (run.last_mut(), slot) {
        (
            Some(Slot { names, action: Action::Delay(sum), .. }),
            Slot { names: more, action: Action::Delay(delay), .. },
        ) => {
            names.extend(more);
            *sum = PerDirection::from_fn(|direction| sum[direction] + delay[direction]);
        }
        (_, slot) => run.push(slot),
    }
}

/// An element of a stage and what it has counted; or several that only delay, which all count the same.
struct Slot {
    names: Vec<String>,
    action: Action,
    counts: PerDirection<Counts>,
}

/// What a slot does with a packet.
enum Action {
    /// Delays it by so much.
    Delay(PerDirection<Duration>),
    /// Asks the element.
    Transit(BoxedTransit),
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    offered: u64,
    delivered: u64,
    duplicated: u64,
    marked: u64,
    dropped: DropCounts,
}

impl Slot {
    fn new(name: String, transit: BoxedTransit) -> Slot {
        let action = transit.fixed_delay().map_or(Action::Transit(transit), Action::Delay);
        Slot { names: vec![name], action, counts: PerDirection::default() }
    }

    fn keeps_order(&self, direction: Direction) -> bool {
        match &self.action {
            Action::Delay(_) => true,
            Action::Transit(transit) => transit.keeps_order(direction),
        }
    }

    /// Whether `next` can follow in one stage: neither may scramble what the other is given next.
    fn fuses_with(&self, next: &Slot) -> bool {
        self.keeps_order(Direction::Forward) && next.keeps_order(Direction::Reverse)
    }

    fn backlog(&self, direction: Direction) -> Option<Bytes> {
        match &self.action {
            Action::Delay(_) => None,
            Action::Transit(transit) => transit.backlog(direction),
        }
    }

    /// By element, each way.
    fn counters(&self) -> impl Iterator<Item = ElementCounters> {
        self.names.iter().flat_map(|name| Direction::BOTH.map(|direction| self.counters_of(name, direction)))
    }

    fn counters_of(&self, name: &str, direction: Direction) -> ElementCounters {
        let Counts { offered, delivered, duplicated, marked, dropped } = self.counts[direction];
        let link = match &self.action {
            Action::Delay(_) => None,
            Action::Transit(transit) => transit.link_counters(direction),
        };
        let name = name.to_owned();
        ElementCounters { name, direction, offered, delivered, duplicated, marked, dropped, link, own: None }
    }
}

impl core::fmt::Debug for Slot {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Slot")
            .field("names", &self.names)
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

/// Packets on their way out, in one direction; each as it leaves, so that it is copied no more often than it has to.
#[derive(Debug)]
enum Held<P> {
    InOrder(VecDeque<Departure<P>>),
    ByDue(Schedule<Departure<P>>),
}

impl<P> Held<P> {
    #[inline(always)]
    fn push(&mut self, departure: Departure<P>) {
        match self {
            Held::InOrder(queue) => {
                debug_assert!(
                    queue.back().is_none_or(|last| last.due <= departure.due),
                    "time went backwards"
                );
                queue.push_back(departure);
            }
            Held::ByDue(schedule) => schedule.push(departure.due, departure),
        }
    }

    #[inline]
    fn next_due(&self) -> Option<Instant> {
        match self {
            Held::InOrder(queue) => queue.front().map(|first| first.due),
            Held::ByDue(schedule) => schedule.next_due(),
        }
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<Departure<P>> {
        match self {
            Held::InOrder(queue) => queue.pop_front(),
            Held::ByDue(schedule) => schedule.pop().map(|(_, departure)| departure),
        }
    }

    fn len(&self) -> usize {
        match self {
            Held::InOrder(queue) => queue.len(),
            Held::ByDue(schedule) => schedule.len(),
        }
    }
}
