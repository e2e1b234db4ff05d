//! A queue for each flow, in turn by deficits, new flows first (RFC 8290), with CoDel or PIE in each.
//!
//! Linux takes the queue of a flow by a keyed hash; here flows get queues in the order in which they come, and share them by a hash once
//! there are more flows than queues. The limit on memory (32 MB of buffers) is left out: a link knows no buffers, only packets.

use super::codel::{Codel, CodelState, Head};
use super::discipline::{Discipline, Effects, Fifo, Queued};
use super::pie::{FIRST_UPDATE, Pie, PieState, Settled, Updates};
use super::{MTU, whole};
use crate::QueueLimit;
use crate::draw::Draws;
use crate::keys::Keys;
use core::cmp::Reverse;
use farpath_path::{DropCause, Generator, PathPacket};
use farpath_units::{Bytes, Instant};
use std::collections::{HashMap, VecDeque};

/// Queues for flows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowQueues {
    /// How many there are.
    pub flows: u32,
    /// What a queue may send before it is another's turn.
    pub quantum: Bytes,
    /// Packets that the longest queue loses at most where all together are too long (`fq_codel`).
    pub drop_batch: u32,
}

impl FlowQueues {
    /// Of Linux's `fq_codel` and `fq_pie`.
    pub const DEFAULT: FlowQueues = FlowQueues { flows: 1024, quantum: Bytes(MTU), drop_batch: 64 };

    pub(super) fn read<K: Keys>(keys: &mut K) -> Result<FlowQueues, K::Error> {
        let default = FlowQueues::DEFAULT;
        let quantum = keys.or("quantum", default.quantum)?;
        // As in Linux: with less, a full packet waits for many rounds.
        if !(256..=1 << 20).contains(&quantum.0) {
            let reason = format!("expected a size from 256 B to 1 MiB, found {quantum}");
            return Err(keys.refuse("quantum", reason));
        }
        Ok(FlowQueues {
            flows: whole(keys, "flows", 1..=65_536, default.flows)?,
            quantum,
            drop_batch: whole(keys, "drop_batch", 1..=65_536, default.drop_batch)?,
        })
    }

    pub(super) fn draw(draws: &mut Draws) -> FlowQueues {
        FlowQueues {
            flows: draws.between(1..=1024) as u32,
            quantum: draws.bytes(256..=10_000),
            drop_batch: draws.between(1..=64) as u32,
        }
    }
}

/// Which flow has which queue.
#[derive(Debug)]
pub(super) struct FlowTable {
    of_flow: HashMap<u64, usize>,
    most: usize,
}

impl FlowTable {
    pub fn new(most: usize) -> FlowTable {
        FlowTable { of_flow: HashMap::new(), most }
    }

    /// The queue of a flow: the next one that no flow has yet, or one that it shares where there is none.
    pub fn queue_of(&mut self, flow: u64) -> usize {
        if let Some(&queue) = self.of_flow.get(&flow) {
            return queue;
        }
        let queue = self.of_flow.len();
        if queue == self.most {
            // Fibonacci hashing: neighbouring numbers of flows get queues far apart.
            let hash = flow.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            return ((u128::from(hash) * self.most as u128) >> 64) as usize;
        }
        self.of_flow.insert(flow, queue);
        queue
    }
}

/// One flow's queue.
#[derive(Debug)]
struct FlowQueue<P, S> {
    fifo: Fifo<P>,
    state: S,
    deficit: i64,
    /// On one of the two lists.
    listed: bool,
}

/// The queues and whose turn it is.
#[derive(Debug)]
struct Turns<P, S> {
    queues: Vec<FlowQueue<P, S>>,
    table: FlowTable,
    quantum: i64,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    packets: usize,
    bytes: u64,
}

impl<P: PathPacket, S> Turns<P, S> {
    fn new(queues: FlowQueues) -> Turns<P, S> {
        Turns {
            queues: Vec::new(),
            table: FlowTable::new(queues.flows as usize),
            quantum: queues.quantum.0 as i64,
            new: VecDeque::new(),
            old: VecDeque::new(),
            packets: 0,
            bytes: 0,
        }
    }

    /// The queue of a packet's flow.
    fn queue_of(&mut self, packet: &P, state: impl FnOnce() -> S) -> usize {
        let queue = self.table.queue_of(packet.flow_hash());
        if queue == self.queues.len() {
            self.queues.push(FlowQueue { fifo: Fifo::new(), state: state(), deficit: 0, listed: false });
        }
        queue
    }

    fn push(&mut self, now: Instant, queue: usize, packet: P) {
        let flow = &mut self.queues[queue];
        let size = flow.fifo.push(now, packet);
        (self.packets, self.bytes) = (self.packets + 1, self.bytes + size.0);
        if !flow.listed {
            flow.listed = true;
            flow.deficit = self.quantum;
            self.new.push_back(queue);
        }
    }

    /// Whether all queues together have room for one more packet.
    fn has_room(&self, limit: QueueLimit, packet: &P) -> bool {
        limit.has_room(self.packets, Bytes(self.bytes), packet.wire_size())
    }

    /// One of the queues, to take packets from.
    fn head(&mut self, queue: usize) -> (&mut S, FlowHead<'_, P>) {
        let FlowQueue { fifo, state, .. } = &mut self.queues[queue];
        (state, FlowHead { fifo, packets: &mut self.packets, bytes: &mut self.bytes })
    }

    /// The next packet of the queue whose turn it is, as `take` takes it (RFC 8290 §4.2).
    fn next(
        &mut self,
        mut take: impl FnMut(&mut S, &mut FlowHead<'_, P>) -> Option<Queued<P>>,
    ) -> Option<Queued<P>> {
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new { &mut self.new } else { &mut self.old };
            let queue = *list.front()?;
            let flow = &mut self.queues[queue];
            if flow.deficit <= 0 {
                flow.deficit += self.quantum;
                list.pop_front();
                self.old.push_back(queue);
                continue;
            }
            let (state, mut head) = self.head(queue);
            let taken = take(state, &mut head);
            let flow = &mut self.queues[queue];
            match taken {
                Some(packet) => {
                    flow.deficit -= packet.size.0 as i64;
                    return Some(packet);
                }
                None => {
                    if from_new {
                        self.new.pop_front()
                    } else {
                        self.old.pop_front()
                    };
                    // A new queue that is empty passes through the old ones, so that they are served between.
                    if from_new && !self.old.is_empty() {
                        self.old.push_back(queue);
                    } else {
                        flow.listed = false;
                    }
                }
            }
        }
    }
}

/// A flow's queue while packets are taken from it, and the backlog of all.
struct FlowHead<'a, P> {
    fifo: &'a mut Fifo<P>,
    packets: &'a mut usize,
    bytes: &'a mut u64,
}

impl<P: PathPacket> Head<P> for FlowHead<'_, P> {
    fn pop(&mut self) -> Option<Queued<P>> {
        let packet = self.fifo.pop()?;
        *self.packets -= 1;
        *self.bytes -= packet.size.0;
        Some(packet)
    }

    fn backlog(&self) -> u64 {
        *self.bytes
    }
}

/// Linux's `fq_codel`.
#[derive(Debug)]
pub(super) struct FqCodelQueue<P> {
    limit: QueueLimit,
    drop_batch: u32,
    codel: Codel,
    turns: Turns<P, CodelState>,
}

impl<P: PathPacket> FqCodelQueue<P> {
    pub fn new(limit: QueueLimit, queues: FlowQueues, codel: Codel) -> FqCodelQueue<P> {
        FqCodelQueue { limit, drop_batch: queues.drop_batch, codel, turns: Turns::new(queues) }
    }

    /// Drops from the head of the longest queue, half of it or a batch (`fq_codel_drop`).
    fn drop_from_longest(&mut self, effects: &mut Effects<P>) {
        // Of queues of one length the first.
        let longest = self.turns.queues.iter().map(|queue| queue.fifo.bytes()).enumerate();
        let longest = longest.max_by_key(|(number, bytes)| (*bytes, Reverse(*number)));
        let Some((number, length)) = longest else { return };
        let half = length.0 >> 1;
        let (state, mut head) = self.turns.head(number);
        let (mut dropped, mut length) = (0, 0);
        while let Some(packet) = head.pop() {
            length += packet.size.0;
            effects.dropped.push((packet.packet, DropCause::QueueOverflow));
            dropped += 1;
            if dropped >= self.drop_batch || length >= half {
                break;
            }
        }
        state.add_drops(dropped);
    }
}

impl<P: PathPacket> Discipline<P> for FqCodelQueue<P> {
    fn enqueue(
        &mut self,
        now: Instant,
        packet: P,
        idle_since: Option<Instant>,
        effects: &mut Effects<P>,
    ) -> Result<(), (P, DropCause)> {
        let room = idle_since.is_some() || self.turns.has_room(self.limit, &packet);
        let codel = self.codel;
        let queue = self.turns.queue_of(&packet, || CodelState::new(codel));
        self.turns.push(now, queue, packet);
        if !room {
            self.drop_from_longest(effects);
        }
        Ok(())
    }

    fn dequeue(&mut self, now: Instant, effects: &mut Effects<P>) -> Option<Queued<P>> {
        self.turns.next(|state, head| state.dequeue(now, head, effects))
    }

    fn len(&self) -> usize {
        self.turns.packets
    }

    fn bytes(&self) -> Bytes {
        Bytes(self.turns.bytes)
    }
}

/// Linux's `fq_pie`.
#[derive(Debug)]
pub(super) struct FqPieQueue<P> {
    limit: QueueLimit,
    pie: Pie,
    updates: Updates,
    generator: Generator,
    turns: Turns<P, PieState>,
}

impl<P: PathPacket> FqPieQueue<P> {
    pub fn new(limit: QueueLimit, queues: FlowQueues, pie: Pie, generator: Generator) -> FqPieQueue<P> {
        FqPieQueue {
            limit,
            pie,
            updates: Updates::new(FIRST_UPDATE, pie.tupdate),
            generator,
            turns: Turns::new(queues),
        }
    }

    fn catch_up(&mut self, now: Instant) {
        let queues = &mut self.turns.queues;
        self.updates.catch_up(now, |_| {
            let mut settled = Settled::Yes;
            for queue in queues.iter_mut() {
                if queue.state.update(queue.fifo.bytes().0) == Settled::No {
                    settled = Settled::No;
                }
            }
            settled
        });
    }
}

impl<P: PathPacket> Discipline<P> for FqPieQueue<P> {
    fn enqueue(
        &mut self,
        now: Instant,
        mut packet: P,
        idle_since: Option<Instant>,
        effects: &mut Effects<P>,
    ) -> Result<(), (P, DropCause)> {
        self.catch_up(now);
        let pie = self.pie;
        let number = self.turns.queue_of(&packet, || PieState::new(pie));
        let room = idle_since.is_some() || self.turns.has_room(self.limit, &packet);
        let queue = &mut self.turns.queues[number];
        if !room {
            queue.state.dropped();
            return Err((packet, DropCause::QueueOverflow));
        }
        let backlog = queue.fifo.bytes().0;
        if !queue.state.lets_in(backlog, &mut packet, &mut self.generator, effects) {
            queue.state.dropped();
            return Err((packet, DropCause::Aqm));
        }
        self.turns.push(now, number, packet);
        Ok(())
    }

    fn dequeue(&mut self, now: Instant, _effects: &mut Effects<P>) -> Option<Queued<P>> {
        self.catch_up(now);
        self.turns.next(|state, head| {
            let packet = head.pop()?;
            state.leaves(now, packet.since, head.fifo.bytes().0);
            Some(packet)
        })
    }

    fn len(&self) -> usize {
        self.turns.packets
    }

    fn bytes(&self) -> Bytes {
        Bytes(self.turns.bytes)
    }
}
