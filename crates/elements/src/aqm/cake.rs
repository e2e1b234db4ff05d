//! CAKE (Høiland-Jørgensen, Täht and Morton 2018): a queue for each flow, with COBALT (CoDel and BLUE) in each, by the rate of the link; with the
//! arithmetic of Linux's `sch_cake`.
//!
//! Left out: tins by DSCP (all packets are best effort), isolation of hosts, the filter of ACKs, `ingress`, and the limit on the memory of buffers,
//! in place of which the queue has its own. The shaper is the link.

use super::discipline::{Discipline, Effects, Fifo, Queued};
use super::flow_queues::FlowTable;
use super::{MTU, time_from};
use crate::QueueLimit;
use crate::draw::Draws;
use crate::keys::Keys;
use core::cmp::Reverse;
use farpath_path::{DropCause, Generator, PathPacket};
use farpath_units::{Bytes, Duration, Instant, Rate};
use std::collections::VecDeque;

/// Parameters of CAKE.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cake {
    /// Standing queueing delay that is accepted; at least that of 1.5 packets at the link's rate.
    pub target: Duration,
    /// For how long it has to stand; a round trip of most flows (`rtt`).
    pub interval: Duration,
}

impl Cake {
    /// Of Linux's `cake`.
    pub const DEFAULT: Cake = Cake { target: Duration::from_millis(5), interval: Duration::from_millis(100) };

    pub(super) fn read<K: Keys>(keys: &mut K) -> Result<Cake, K::Error> {
        let (default, least) = (Cake::DEFAULT, Duration::from_micros(10));
        Ok(Cake {
            target: time_from(keys, "target", least, default.target)?,
            interval: time_from(keys, "interval", least, default.interval)?,
        })
    }

    pub(super) fn draw(draws: &mut Draws) -> Cake {
        Cake { target: draws.microseconds(100..=50_000), interval: draws.microseconds(1000..=500_000) }
    }

    /// Four bandwidth-delay products of the interval, and 4 MiB at the least.
    pub(super) fn default_limit(self, rate: Rate) -> QueueLimit {
        let four = u128::from(rate.bit_per_s()) * u128::from(self.interval.as_nanos()) / 2_000_000_000;
        QueueLimit::Bytes(Bytes(u64::try_from(four).unwrap_or(u64::MAX).max(4 << 20)))
    }
}

/// Queues for flows (`CAKE_QUEUES`).
const QUEUES: usize = 1024;

/// What COBALT works with at a rate (`cake_set_rate`).
#[derive(Debug, Clone, Copy)]
struct Parameters {
    target: Duration,
    interval: Duration,
    /// Time that a packet of the MTU takes.
    packet: Duration,
}

impl Parameters {
    fn new(cake: Cake, rate: Rate) -> Parameters {
        let packet = rate.time_to_send(Bytes(MTU));
        let half_more = Duration::from_nanos(packet.as_nanos().saturating_add(packet.as_nanos() / 2));
        let target = cake.target.max(half_more);
        let interval = cake.interval + target.saturating_sub(cake.target);
        Parameters { target, interval: interval.max(target + target), packet }
    }
}

/// By how much BLUE's probability rises, in 2^-32: 1/256.
const RISE: u32 = 1 << 24;
/// By how much it falls: 1/4096.
const FALL: u32 = 1 << 20;

/// State of COBALT (`struct cobalt_vars`).
#[derive(Debug)]
struct Cobalt {
    count: u32,
    /// 1/sqrt(count), in 2^-32.
    reciprocal_root: u32,
    /// When the next drop is due, or since when none was.
    drop_next: Instant,
    blue_changed: Instant,
    blue: u32,
    dropping: bool,
}

impl Cobalt {
    const NEW: Cobalt = Cobalt {
        count: 0,
        reciprocal_root: 0,
        drop_next: Instant::ZERO,
        blue_changed: Instant::ZERO,
        blue: 0,
        dropping: false,
    };

    /// `1/sqrt(count)`: of few exact, else one step of Newton's method.
    fn refine_root(&mut self) {
        self.reciprocal_root = match self.count {
            0 | 1 => u32::MAX,
            2..16 => libm::round(4_294_967_296.0 / libm::sqrt(f64::from(self.count))) as u32,
            _ => {
                let root = u64::from(self.reciprocal_root);
                let square = (root * root) >> 32;
                let value = (3_u64 << 32).wrapping_sub(u64::from(self.count) * square) >> 2;
                (value.wrapping_mul(root) >> 31) as u32
            }
        };
    }

    /// `at + interval / sqrt(count)`.
    fn control_law(&self, at: Instant, interval: Duration) -> Instant {
        let scaled = u128::from(interval.as_nanos()) * u128::from(self.reciprocal_root);
        at + Duration::from_nanos((scaled >> 32) as u64)
    }

    fn schedule(&mut self, interval: Duration) {
        self.drop_next = self.control_law(self.drop_next, interval);
    }

    fn blue_may_change(&self, now: Instant, parameters: Parameters) -> bool {
        now - self.blue_changed > parameters.target
    }

    /// A packet of this queue was dropped because all together are too long.
    fn overflowed(&mut self, now: Instant, parameters: Parameters) {
        if self.blue_may_change(now, parameters) {
            self.blue = self.blue.saturating_add(RISE);
            self.blue_changed = now;
        }
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
    }

    /// It was this queue's turn, and it was empty. Whether it is at rest.
    fn found_empty(&mut self, now: Instant, parameters: Parameters) -> bool {
        if self.blue > 0 && self.blue_may_change(now, parameters) {
            self.blue = self.blue.saturating_sub(FALL);
            self.blue_changed = now;
        }
        self.dropping = false;
        if self.count > 0 && now >= self.drop_next {
            self.count -= 1;
            self.refine_root();
            self.schedule(parameters.interval);
        }
        self.blue == 0 && self.count == 0 && now >= self.drop_next
    }

    /// Whether this packet is dropped; it may be marked.
    fn drops<P: PathPacket>(
        &mut self,
        now: Instant,
        queued: &mut Queued<P>,
        parameters: Parameters,
        generator: &mut Generator,
        effects: &mut Effects<P>,
    ) -> bool {
        let sojourn = now - queued.since;
        let mut due_at = self.drop_next;
        let mut due = self.count > 0 && now >= due_at;
        let four_packets = Duration::from_nanos(parameters.packet.as_nanos().saturating_mul(4));
        if sojourn > parameters.target && sojourn > four_packets {
            if !self.dropping {
                self.dropping = true;
                self.drop_next = self.control_law(now, parameters.interval);
            }
            self.count = self.count.max(1);
        } else {
            self.dropping = false;
        }
        let mut drop = false;
        if due && self.dropping {
            drop = !effects.mark(&mut queued.packet);
            self.count = self.count.saturating_add(1);
            self.refine_root();
            self.schedule(parameters.interval);
            due_at = self.drop_next;
        } else {
            while due {
                self.count -= 1;
                self.refine_root();
                self.schedule(parameters.interval);
                due_at = self.drop_next;
                due = self.count > 0 && now >= due_at;
            }
        }
        // BLUE marks nothing: it is for flows that do not answer.
        if self.blue > 0 {
            drop |= generator.below(1 << 32) < u64::from(self.blue);
        }
        if self.count == 0 {
            self.drop_next = now + parameters.interval;
        } else if now > due_at && !drop {
            self.drop_next = now;
        }
        drop
    }
}

/// Where a flow's queue is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listed {
    No,
    InTurn,
    /// It is empty, and its COBALT not yet at rest.
    Decaying,
}

/// One flow's queue.
#[derive(Debug)]
struct Flow<P> {
    fifo: Fifo<P>,
    cobalt: Cobalt,
    deficit: i64,
    listed: Listed,
}

/// Linux's `cake`.
#[derive(Debug)]
pub(super) struct CakeQueue<P> {
    limit: QueueLimit,
    parameters: Parameters,
    quantum: i64,
    generator: Generator,
    table: FlowTable,
    flows: Vec<Flow<P>>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    decaying: VecDeque<usize>,
    packets: usize,
    bytes: Bytes,
}

impl<P: PathPacket> CakeQueue<P> {
    pub fn new(limit: QueueLimit, cake: Cake, rate: Rate, generator: Generator) -> CakeQueue<P> {
        CakeQueue {
            limit,
            parameters: Parameters::new(cake, rate),
            quantum: (rate.bit_per_s() / 8 / 4096).clamp(300, 1514) as i64,
            generator,
            table: FlowTable::new(QUEUES),
            flows: Vec::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            decaying: VecDeque::new(),
            packets: 0,
            bytes: Bytes::ZERO,
        }
    }

    fn pop(&mut self, flow: usize) -> Option<Queued<P>> {
        let packet = self.flows[flow].fifo.pop()?;
        self.packets -= 1;
        self.bytes -= packet.size;
        Some(packet)
    }

    /// Drops the first packet of the longest queue (`cake_drop`).
    fn drop_from_longest(&mut self, now: Instant, effects: &mut Effects<P>) {
        let longest = self.flows.iter().map(|flow| flow.fifo.bytes()).enumerate();
        let longest = longest.max_by_key(|(number, bytes)| (*bytes, Reverse(*number)));
        let Some((number, _)) = longest else { return };
        if let Some(packet) = self.pop(number) {
            self.flows[number].cobalt.overflowed(now, self.parameters);
            effects.dropped.push((packet.packet, DropCause::QueueOverflow));
        }
    }

    /// Takes the queue at the head of its list off it.
    fn unlist(&mut self, listed: Listed, from_new: bool) {
        let list = match (listed, from_new) {
            (Listed::Decaying, _) => &mut self.decaying,
            (_, true) => &mut self.new,
            (_, false) => &mut self.old,
        };
        list.pop_front();
    }
}

impl<P: PathPacket> Discipline<P> for CakeQueue<P> {
    fn enqueue(
        &mut self,
        now: Instant,
        packet: P,
        idle_since: Option<Instant>,
        effects: &mut Effects<P>,
    ) -> Result<(), (P, DropCause)> {
        let number = self.table.queue_of(packet.flow_hash());
        if number == self.flows.len() {
            let (fifo, cobalt) = (Fifo::new(), Cobalt::NEW);
            self.flows.push(Flow { fifo, cobalt, deficit: 0, listed: Listed::No });
        }
        let flow = &mut self.flows[number];
        self.bytes += flow.fifo.push(now, packet);
        self.packets += 1;
        if flow.listed != Listed::InTurn {
            flow.deficit = self.quantum;
            if core::mem::replace(&mut flow.listed, Listed::InTurn) == Listed::Decaying {
                self.decaying.retain(|decaying| *decaying != number);
            }
            self.new.push_back(number);
        }
        while idle_since.is_none() && self.packets > 0 && !self.limit.holds(self.packets, self.bytes) {
            self.drop_from_longest(now, effects);
        }
        Ok(())
    }

    fn dequeue(&mut self, now: Instant, effects: &mut Effects<P>) -> Option<Queued<P>> {
        // Of the queues that decay, one is looked at each time.
        let mut looks_at_decaying = true;
        while self.packets > 0 {
            let decaying = core::mem::take(&mut looks_at_decaying) && !self.decaying.is_empty();
            let from_new = !decaying && !self.new.is_empty();
            let list = match (decaying, from_new) {
                (true, _) => &self.decaying,
                (_, true) => &self.new,
                (_, false) => &self.old,
            };
            let number = *list.front()?;
            let flow = &mut self.flows[number];
            let listed = flow.listed;
            if flow.deficit <= 0 {
                flow.deficit += self.quantum;
                flow.listed = Listed::InTurn;
                self.unlist(listed, from_new);
                self.old.push_back(number);
                continue;
            }
            while let Some(mut queued) = self.pop(number) {
                let flow = &mut self.flows[number];
                let (parameters, generator) = (self.parameters, &mut self.generator);
                let drops = flow.cobalt.drops(now, &mut queued, parameters, generator, effects);
                // The last one of a queue may be marked, and is not dropped.
                if !drops || flow.fifo.len() == 0 {
                    flow.deficit -= queued.size.0 as i64;
                    return Some(queued);
                }
                effects.dropped.push((queued.packet, DropCause::Aqm));
            }
            let at_rest = self.flows[number].cobalt.found_empty(now, self.parameters);
            self.unlist(listed, from_new);
            self.flows[number].listed = if at_rest { Listed::No } else { Listed::Decaying };
            if !at_rest {
                self.decaying.push_back(number);
            }
        }
        None
    }

    fn len(&self) -> usize {
        self.packets
    }

    fn bytes(&self) -> Bytes {
        self.bytes
    }
}
