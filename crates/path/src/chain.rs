//! A path: elements one behind the other.

use crate::schedule::Schedule;
use crate::{
    BoxedElement, ChannelTime, Departure, Direction, DropCause, ElementCounters, PathElement, Signal, Verdict,
};
use core::fmt;
use farpath_units::{Bytes, Instant};

/// Packets that a path holds at once, as long as its elements may make copies: 2^22. A link of 10 Gbit/s over 5 s holds as many
/// of 1500 B.
pub const MOST_PACKETS: usize = 1 << 22;
/// How many hops lie between two looks at how many packets there are, less one: a mask.
const LOOK: u32 = (1 << 14) - 1;

/// A chain of elements. Forward packets meet the first element first, reverse packets the last.
///
/// A packet goes from one element to the next at the time it is due, never at the time of the call, and
/// hops happen in the order of their times. Of hops due together the one from the element nearer to the
/// data sender comes first. A path is an element itself, so paths nest.
///
/// Elements that duplicate multiply: twenty of them make a million packets of one. A path that holds more than
/// [`MOST_PACKETS`], or what [`Path::hold_at_most`] says, makes no more copies and is [overfull](Path::is_overfull) from then on.
pub struct Path<P> {
    elements: Vec<BoxedElement<P>>,
    /// Packets that have left the chain or were lost on a hop, until they are taken.
    left: Schedule<(Direction, P, Option<DropCause>)>,
    /// Hops so far, modulo 2^32.
    hops: u32,
    most: usize,
    overfull: bool,
}

impl<P> Path<P> {
    /// A chain of any elements. Elements that share a name and a seed draw the same random numbers.
    pub fn from_elements(elements: Vec<BoxedElement<P>>) -> Path<P> {
        Path { elements, left: Schedule::new(), hops: 0, most: MOST_PACKETS, overfull: false }
    }

    /// Makes no more copies of packets once it holds more than so many, give or take some thousands.
    pub fn hold_at_most(&mut self, packets: usize) {
        self.most = packets;
    }

    /// Whether it has held more packets than it may, and has left out copies since: what comes out is not what was specified.
    pub fn is_overfull(&self) -> bool {
        self.overfull
    }

    fn count_hop(&mut self) {
        self.hops = self.hops.wrapping_add(1);
        if self.hops & LOOK == 0 {
            self.look();
        }
    }

    #[cold]
    fn look(&mut self) {
        if !self.overfull && self.held() > self.most {
            self.overfull = true;
            self.stop_duplicating();
        }
    }

    /// The element that moves next, and when.
    fn next_move(&self) -> Option<(Instant, usize)> {
        let due = |(index, element): (usize, &BoxedElement<P>)| Some((element.next_departure()?, index));
        self.elements.iter().enumerate().filter_map(due).min()
    }

    /// Moves one packet, due by `due`, from the element at `index` to its neighbour or out of the chain.
    fn move_one(&mut self, due: Instant, index: usize) {
        let Some(Departure { due, direction, packet, dropped }) = self.elements[index].take(due) else {
            return;
        };
        self.count_hop();
        let neighbour = match direction {
            Direction::Forward => self.elements.get_mut(index + 1),
            Direction::Reverse => index.checked_sub(1).map(|previous| &mut self.elements[previous]),
        };
        match neighbour {
            Some(next) if dropped.is_none() => {
                // A fused run knows of a drop before its time: it is kept until then.
                if let Verdict::Dropped { at, cause, packet } = next.offer(due, direction, packet) {
                    self.left.push(at, (direction, packet, Some(cause)));
                }
            }
            _ => self.left.push(due, (direction, packet, dropped)),
        }
    }

    /// The element that a packet meets first, when all that was due before has moved; `None` where there is none.
    #[inline(always)]
    fn entry(&mut self, now: Instant, direction: Direction) -> Option<&mut BoxedElement<P>> {
        self.count_hop();
        if self.elements.len() > 1 {
            self.move_before(now);
        }
        match direction {
            Direction::Forward => self.elements.first_mut(),
            Direction::Reverse => self.elements.last_mut(),
        }
    }

    fn next_departure_of_several(&self) -> Option<Instant> {
        let next_move = self.next_move().map(|(due, _)| due);
        self.left.next_due().into_iter().chain(next_move).min()
    }

    #[inline(never)]
    fn take_from_several(&mut self, now: Instant) -> Option<Departure<P>> {
        loop {
            let next_move = self.next_move().filter(|&(due, _)| due <= now);
            let left = self.left.next_due().filter(|&due| due <= now);
            match (left, next_move) {
                (left, Some((due, index))) if left.is_none_or(|left| due < left) => self.move_one(due, index),
                _ => break,
            }
        }
        self.left.next_due().filter(|&due| due <= now)?;
        let (due, (direction, packet, dropped)) = self.left.pop()?;
        Some(Departure { due, direction, packet, dropped })
    }

    /// Hops that were due before `now`: an element that sees both directions sees time go forward.
    #[inline(never)]
    fn move_before(&mut self, now: Instant) {
        while let Some((due, index)) = self.next_move().filter(|&(due, _)| due < now) {
            self.move_one(due, index);
        }
    }
}

impl<P> PathElement<P> for Path<P> {
    #[inline(always)]
    fn offer(&mut self, now: Instant, direction: Direction, packet: P) -> Verdict<P> {
        match self.entry(now, direction) {
            Some(element) => element.offer(now, direction, packet),
            None => {
                self.left.push(now, (direction, packet, None));
                Verdict::Accepted
            }
        }
    }

    #[inline(always)]
    fn offer_copy(
        &mut self,
        now: Instant,
        direction: Direction,
        packet: &mut P,
    ) -> Option<(Instant, DropCause)>
    where
        P: Clone,
    {
        match self.entry(now, direction) {
            Some(element) => element.offer_copy(now, direction, packet),
            None => {
                self.left.push(now, (direction, packet.clone(), None));
                None
            }
        }
    }

    #[inline(always)]
    fn next_departure(&self) -> Option<Instant> {
        match &self.elements[..] {
            [only] => only.next_departure(),
            _ => self.next_departure_of_several(),
        }
    }

    #[inline(always)]
    fn take(&mut self, now: Instant) -> Option<Departure<P>> {
        match &mut self.elements[..] {
            [only] => only.take(now),
            _ => self.take_from_several(now),
        }
    }

    fn held(&self) -> usize {
        self.left.len() + self.elements.iter().map(|element| element.held()).sum::<usize>()
    }

    fn stop_duplicating(&mut self) {
        self.elements.iter_mut().for_each(|element| element.stop_duplicating());
    }

    fn backlog(&self, direction: Direction) -> Option<Bytes> {
        self.elements.iter().filter_map(|element| element.backlog(direction)).max()
    }

    fn counters(&self) -> Vec<ElementCounters> {
        self.elements.iter().flat_map(|element| element.counters()).collect()
    }

    fn air(&self, now: Instant) -> Vec<ChannelTime> {
        self.elements.iter().flat_map(|element| element.air(now)).collect()
    }

    fn keep_signals(&mut self) {
        self.elements.iter_mut().for_each(|element| element.keep_signals());
    }

    fn take_signals(&mut self) -> Vec<Signal<P>> {
        let mut signals: Vec<_> =
            self.elements.iter_mut().flat_map(|element| element.take_signals()).collect();
        signals.sort_by_key(|signal| signal.at);
        signals
    }
}

impl<P> fmt::Debug for Path<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Path").field("held", &self.held()).field("counters", &self.counters()).finish()
    }
}
