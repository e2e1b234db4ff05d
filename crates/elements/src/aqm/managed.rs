//! A link whose queue is managed in one direction or both.

use super::discipline::{Discipline, Effects};
use crate::line::framed;
use crate::trace::Sending;
use crate::transmitter::Transmitter;
use crate::{Aqm, QueueLimit};
use farpath_path::{
    BoxedTransit, Departure, Direction, DropCause, DropCounts, ElementCounters, Fate, Generator,
    LinkCounters, PacketView, PathElement, PathPacket, PerDirection, Schedule, Verdict,
};
use farpath_units::{Bytes, Instant, Rate};
use std::fmt;

/// It holds packets: what becomes of one is known when its turn comes, not when it joins the queue. A direction without an algorithm is
/// the arithmetic of a plain link.
pub(crate) struct Managed<P> {
    name: String,
    plain: BoxedTransit,
    lanes: PerDirection<Option<Lane<P>>>,
    /// Packets that are being sent or were dropped, until they are taken.
    left: PerDirection<Schedule<(P, Option<DropCause>)>>,
    counts: PerDirection<Counts>,
    overhead: Bytes,
    min_packet: Bytes,
}

/// What sends the packets of a queue, one after the other.
#[derive(Debug)]
pub(crate) enum Sender {
    /// At one rate.
    Steady(Transmitter),
    /// At a rate that changes.
    Traced(Sending),
}

impl Sender {
    fn busy_until(&self) -> Instant {
        match self {
            Sender::Steady(line) => line.busy_until(),
            Sender::Traced(line) => line.busy_until(),
        }
    }

    /// When a packet has been sent that nothing is before, from `now` on where the line was idle; `None` where no capacity is left, ever.
    fn send(&mut self, now: Instant, was_idle: bool, on_wire: Bytes) -> Option<Instant> {
        match self {
            Sender::Steady(line) => {
                if was_idle {
                    line.rest_until(now);
                }
                line.serialize(on_wire);
                Some(line.busy_until())
            }
            Sender::Traced(line) => line.send_from(was_idle.then_some(now), on_wire),
        }
    }
}

/// A link with a managed queue in one direction at least.
pub(crate) struct Parts<'a> {
    pub name: &'a str,
    pub aqm: PerDirection<Aqm>,
    pub queue: PerDirection<QueueLimit>,
    /// In the mean.
    pub rate: PerDirection<Rate>,
    pub overhead: Bytes,
    pub min_packet: Bytes,
    /// The same link without algorithms.
    pub plain: BoxedTransit,
}

struct Lane<P> {
    line: Sender,
    queue: Box<dyn Discipline<P> + Send>,
    bytes_sent: Bytes,
    max_backlog: Bytes,
}

impl<P> Lane<P> {
    /// When the line is free for the next packet that waits.
    fn next_turn(&self) -> Option<Instant> {
        (self.queue.len() > 0).then(|| self.line.busy_until())
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    offered: u64,
    marked: u64,
    dropped: DropCounts,
}

impl<P: PathPacket + Send + 'static> Managed<P> {
    pub fn new(parts: Parts<'_>, seed: u64, sender: impl Fn(Direction) -> Sender) -> Managed<P> {
        let Parts { name, aqm, queue, rate, overhead, min_packet, plain } = parts;
        let lane = |way| {
            let queue = aqm[way].discipline(queue[way], rate[way], Generator::new(seed, name, way))?;
            Some(Lane { line: sender(way), queue, bytes_sent: Bytes::ZERO, max_backlog: Bytes::ZERO })
        };
        Managed {
            name: name.to_owned(),
            plain,
            lanes: PerDirection::from_fn(lane),
            left: PerDirection::from_fn(|_| Schedule::new()),
            counts: PerDirection::default(),
            overhead,
            min_packet,
        }
    }

    /// Begins to send each packet whose turn is due.
    fn advance(&mut self, direction: Direction, is_due: impl Fn(Instant) -> bool) {
        while let Some(start) =
            self.lanes[direction].as_ref().and_then(Lane::next_turn).filter(|&turn| is_due(turn))
        {
            self.send_next(start, false, direction);
        }
    }

    fn send_next(&mut self, now: Instant, was_idle: bool, direction: Direction) {
        let Some(lane) = &mut self.lanes[direction] else { return };
        let mut effects = Effects::new();
        let next = lane.queue.dequeue(now, &mut effects);
        note(effects, now, &mut self.counts[direction], &mut self.left[direction]);
        if let Some(mut next) = next {
            next.packet.add_queueing(now.saturating_since(next.since));
            let on_wire = framed(next.size, self.overhead, self.min_packet);
            match lane.line.send(now, was_idle, on_wire) {
                Some(sent) => {
                    lane.bytes_sent += on_wire;
                    self.left[direction].push(sent, (next.packet, None));
                }
                None => {
                    self.counts[direction].dropped.add(DropCause::Outage);
                    self.left[direction].push(now, (next.packet, Some(DropCause::Outage)));
                }
            }
        }
    }

    fn next_of(&self, direction: Direction) -> Option<Instant> {
        let turn = self.lanes[direction].as_ref().and_then(Lane::next_turn);
        turn.into_iter().chain(self.left[direction].next_due()).min()
    }
}

impl<P: PathPacket + Send + 'static> PathElement<P> for Managed<P> {
    fn offer(&mut self, now: Instant, direction: Direction, mut packet: P) -> Verdict<P> {
        // An arrival comes before the packet whose turn is now makes room, as without an algorithm.
        self.advance(direction, |turn| turn < now);
        self.counts[direction].offered += 1;
        let Some(lane) = &mut self.lanes[direction] else {
            let view = PacketView::from(&packet);
            let due = match self.plain.transit(now, direction, view) {
                Fate::Queue(due, wait) => {
                    packet.add_queueing(wait);
                    due
                }
                Fate::Mark(due, wait) => {
                    packet.add_queueing(wait);
                    self.counts[direction].marked += u64::from(packet.mark_ce());
                    due
                }
                Fate::Drop(cause) => {
                    self.counts[direction].dropped.add(cause);
                    return Verdict::Dropped { at: now, cause, packet };
                }
                Fate::Depart(due) | Fate::Route(due, _) | Fate::Duplicate(due, _) => due,
            };
            self.left[direction].push(due, (packet, None));
            return Verdict::Accepted;
        };
        let free_since = lane.line.busy_until();
        let idle_since = (free_since <= now && lane.queue.len() == 0).then_some(free_since);
        let mut effects = Effects::new();
        let joined = lane.queue.enqueue(now, packet, idle_since, &mut effects);
        note(effects, now, &mut self.counts[direction], &mut self.left[direction]);
        if let Err((packet, cause)) = joined {
            self.counts[direction].dropped.add(cause);
            return Verdict::Dropped { at: now, cause, packet };
        }
        if idle_since.is_some() {
            self.send_next(now, true, direction);
        } else {
            lane.max_backlog = lane.max_backlog.max(lane.queue.bytes());
        }
        Verdict::Accepted
    }

    fn next_departure(&self) -> Option<Instant> {
        Instant::earliest(self.next_of(Direction::Forward), self.next_of(Direction::Reverse))
    }

    fn take(&mut self, now: Instant) -> Option<Departure<P>> {
        Direction::BOTH.into_iter().for_each(|way| self.advance(way, |turn| turn <= now));
        let due = |way: Direction| self.left[way].next_due().filter(|due| *due <= now);
        // Of two that are due together the forward one leaves first.
        let direction = match (due(Direction::Forward), due(Direction::Reverse)) {
            (None, None) => return None,
            (Some(forward), reverse) if reverse.is_none_or(|reverse| forward <= reverse) => {
                Direction::Forward
            }
            _ => Direction::Reverse,
        };
        let (due, (packet, dropped)) = self.left[direction].pop()?;
        Some(Departure { due, direction, packet, dropped })
    }

    fn held(&self) -> usize {
        let held = |way: Direction| {
            self.left[way].len() + self.lanes[way].as_ref().map_or(0, |lane| lane.queue.len())
        };
        Direction::BOTH.into_iter().map(held).sum()
    }

    fn backlog(&self, direction: Direction) -> Option<Bytes> {
        match &self.lanes[direction] {
            Some(lane) => Some(lane.queue.bytes()),
            None => self.plain.backlog(direction),
        }
    }

    fn counters(&self) -> Vec<ElementCounters> {
        let counters = |direction| {
            let Counts { offered, marked, dropped } = self.counts[direction];
            let link = match &self.lanes[direction] {
                Some(lane) => {
                    Some(LinkCounters { bytes_sent: lane.bytes_sent, max_backlog: lane.max_backlog })
                }
                None => self.plain.link_counters(direction),
            };
            ElementCounters {
                name: self.name.clone(),
                direction,
                offered,
                delivered: offered - dropped.total(),
                duplicated: 0,
                marked,
                dropped,
                link,
                own: None,
            }
        };
        Direction::BOTH.map(counters).into()
    }
}

/// Counts what a queue did at `now`; what it dropped leaves.
fn note<P>(
    effects: Effects<P>,
    now: Instant,
    counts: &mut Counts,
    left: &mut Schedule<(P, Option<DropCause>)>,
) {
    counts.marked += effects.marked;
    for (packet, cause) in effects.dropped {
        counts.dropped.add(cause);
        left.push(now, (packet, Some(cause)));
    }
}

impl<P> fmt::Debug for Managed<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Managed")
            .field("name", &self.name)
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}
