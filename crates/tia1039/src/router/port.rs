//! One output port of a flow router: what each flow that leaves by it may send.

use super::counters::RouterCounters;
use super::flow::{
    ANSWERED, AWAITED, FIN_SEEN, FIN_SENT, Flow, FlowKey, LOWERED, MEASURED, NUMBERED, PREEMPTED,
    REVERSE_CHARGING, SEEN, UNPROVEN,
};
use super::guarantees::Guarantees;
use super::settings::{Capacity, RouterSettings};
use super::shares::{Level, Shares};
use super::table::Table;
use super::timers::Timers;
use crate::{Charging, Message, RateWord, Rounding, Structure};
use core::cmp::Reverse;
use farpath_units::{Instant, Rate};
use std::collections::BinaryHeap;

/// Flows that were asked for a missed request lately, by hash.
pub(super) const MISSED: usize = 256;

/// Grants rates on one output line and remembers them.
///
/// Available Rates are shared by weighted max-min fairness of what the flows ask for and can use. A grant is given out
/// of what is free *now*: a newcomer gets its share as far as there is room, flows above theirs are told to sink, and
/// what they give up is granted again once they are known to have slowed down. So the sum of what may be sent stays
/// within the capacity at each moment, and no queue is built to find a rate.
///
/// Work for one packet does not grow with the number of flows.
#[derive(Debug, Clone)]
pub struct Port {
    pub(super) settings: RouterSettings,
    pub(super) capacity: Capacity,
    pub(super) table: Table,
    pub(super) timers: Timers,
    /// Of flows that are proven: anybody can make up a request, and nobody is to sink for one.
    pub(super) shares: Shares,
    /// Flows that have asked and are not proven.
    pub(super) unproven: u32,
    pub(super) level: Level,
    pub(super) guarantees: Guarantees,
    /// What is kept for Available Rates, in units.
    pub(super) reserved: u64,
    /// Cuts that are waited for, that first whose wait is over first: when, and whose. A slot stands here once, however often its
    /// flow was cut.
    pub(super) holds: BinaryHeap<Reverse<(Instant, u32)>>,
    pub(super) missed: Box<[Instant; MISSED]>,
    pub(super) counters: RouterCounters,
}

impl Port {
    /// A port of this line rate, IP packets with their framing. `seed` keys the index.
    pub fn new(settings: &RouterSettings, line: Rate, seed: u64) -> Port {
        Port {
            settings: settings.clone(),
            capacity: Capacity::new(settings, line),
            table: Table::new(seed),
            timers: Timers::new(),
            shares: Shares::new(),
            unproven: 0,
            level: Level::Unlimited,
            guarantees: Guarantees::new(),
            reserved: 0,
            holds: BinaryHeap::new(),
            missed: Box::new([Instant::ZERO; MISSED]),
            counters: RouterCounters::default(),
        }
    }

    /// What it is told is another from now on; flows keep what they have until they ask again, or are told to sink.
    pub fn set_settings(&mut self, settings: &RouterSettings, line: Rate) {
        self.settings = settings.clone();
        self.set_line(line);
    }

    /// The line has another rate from now on. Guarantees that no longer fit are preempted, lowest priority first, there
    /// the newest; Available Rates sink as their flows are told.
    pub fn set_line(&mut self, line: Rate) {
        self.capacity = Capacity::new(&self.settings, line);
        while self.guarantees.sum() > self.capacity.guaranteed
            && let Some(victim) = self.guarantees.first_of_all()
        {
            self.preempt(victim);
        }
        self.refresh_level();
    }

    /// A request, renegotiation or resent request on its way to the line: lowers what it asks for to what it gets.
    ///
    /// `seq` is the sequence number behind its packet, `before_move` the flow that it was before its requester moved: that gives up what it
    /// has for one that is proven.
    pub fn ask(
        &mut self,
        now: Instant,
        key: FlowKey,
        seq: Option<u32>,
        before_move: Option<FlowKey>,
        structure: &mut Structure,
    ) {
        self.upkeep(now);
        if let Some(slot) = before_move
            .filter(|before| *before != key && self.is_proven(&key))
            .and_then(|before| self.table.find(&before))
        {
            self.forget(slot);
            self.counters.moved += 1;
        }
        let slot = match self.table.find(&key) {
            Some(slot) => slot,
            None if self.table.has_room(self.settings.flows) && self.unproven < self.settings.starts => {
                self.welcome(now, key)
            }
            None => {
                self.counters.full += 1;
                return;
            }
        };
        self.counters.requests += 1;
        let flow = self.table.get_mut(slot);
        if !flow.has(SEEN) && seq.is_some() {
            // Another connection than that which asked before, or one that somebody has asked for in its name: another answer.
            if structure.message == Message::Request && flow.has(NUMBERED) && seq != Some(flow.seq) {
                flow.clear(ANSWERED);
            }
            flow.begin_at(seq);
        }
        let guaranteed_before = self.guarantees.sum();
        let (guaranteed, available) = self.describe_anew(now, slot, structure);
        let got = self.admit(slot, guaranteed);
        if structure.rate_type.has_guaranteed() {
            structure.guaranteed = got;
        }
        // Whether a guarantee came or went, what is left to the others has changed.
        let demand_before = (self.table.get(slot).demand(), self.table.get(slot).weight);
        let flow = self.table.get_mut(slot);
        let weight = self.settings.weights[usize::from(flow.preemption.level())].max(1);
        (flow.requested, flow.weight) = (available, weight);
        let demand = (flow.demand(), flow.weight);
        self.wants(slot, demand_before, demand);
        if demand != demand_before || self.guarantees.sum() != guaranteed_before {
            self.refresh_level();
        }
        let granted = self.share_of(slot, available);
        self.grant(now, slot, granted);
        if structure.rate_type.has_available() {
            self.counters.lowered += u64::from(granted.units() < available.units());
            structure.available = granted;
        }
        *structure = structure.marked();
    }

    /// A response on its way back from the line. It can only tell that a flow has less than was granted here. `seq` is the
    /// sequence number behind its packet, which the flow's sender acknowledges if it gets it.
    pub fn answered(&mut self, now: Instant, key: FlowKey, structure: &Structure, seq: Option<u32>) {
        self.upkeep(now);
        let Some(slot) = self.table.find(&key) else {
            self.counters.unknown += 1;
            return;
        };
        self.counters.responses += 1;
        let flow = self.table.get_mut(slot);
        if let Some(seq) = seq
            && !flow.has(SEEN)
            && !flow.has(ANSWERED)
        {
            flow.set(ANSWERED);
            flow.acknowledged = seq;
        }
        self.lower_guarantee(slot, structure.guaranteed);
        let flow = self.table.get_mut(slot);
        if !flow.rate_type.has_available() {
            return;
        }
        let (told, granted) = (structure.available.units(), flow.granted.units());
        if told > granted {
            // The answer to something that was asked before the last cut, or made up. The cut stands either way.
            self.counters.above_grant += 1;
        } else if told == granted {
            self.limit(slot, RateWord::ZERO, false);
            let flow = self.table.get_mut(slot);
            self.reserved = self.reserved - flow.reserved.units() + granted;
            flow.reserved = flow.granted;
        } else {
            // Another router gives less. What is left over is granted to others when the wait is over, because this may
            // also be the answer to an older request.
            let elsewhere =
                if told == 0 { RateWord::from_units(1, Rounding::Up) } else { structure.available };
            self.limit(slot, elsewhere, false);
            if !self.table.get(slot).has(LOWERED) {
                self.await_cut(now, slot);
            }
        }
    }

    /// A confirmation on its way to the line: releases what another router did not grant.
    pub fn confirmed(&mut self, now: Instant, key: FlowKey, structure: &Structure) {
        self.upkeep(now);
        let Some(slot) = self.table.find(&key) else {
            self.counters.unknown += 1;
            return;
        };
        self.lower_guarantee(slot, structure.guaranteed);
    }

    /// The flow's sender says that it is over.
    pub fn closed(&mut self, key: FlowKey) {
        match self.table.find(&key) {
            Some(slot) => {
                self.forget(slot);
                self.counters.closed += 1;
            }
            None => self.counters.unknown += 1,
        }
    }

    /// A reset, of either end: the flow is over, if it is known.
    pub fn reset(&mut self, key: FlowKey) {
        if let Some(slot) = self.table.find(&key) {
            self.forget(slot);
            self.counters.closed += 1;
        }
    }

    /// A FIN, of the flow's sender or come back from its receiver. With both it is over.
    pub fn fin(&mut self, key: FlowKey, sent: bool) {
        let Some(slot) = self.table.find(&key) else { return };
        let flow = self.table.get_mut(slot);
        flow.set(if sent { FIN_SENT } else { FIN_SEEN });
        if flow.has(FIN_SENT) && flow.has(FIN_SEEN) {
            self.forget(slot);
            self.counters.closed += 1;
        }
    }

    fn welcome(&mut self, now: Instant, key: FlowKey) -> u32 {
        let slot = self.table.insert(Flow::new(key, now));
        self.table.get_mut(slot).set(UNPROVEN);
        self.unproven += 1;
        // By the shortest silence, whatever it asks for now: its next request may ask for something else.
        let due = now + self.settings.maximum_timeout.min(self.settings.available_timeout);
        self.timers.set(slot, self.table.get_mut(slot), due);
        slot
    }

    /// Takes over what a request says of its flow; gives the two rates that it asks for.
    fn describe_anew(&mut self, now: Instant, slot: u32, structure: &Structure) -> (RateWord, RateWord) {
        // The request keeps the priority that it has: other routers accept others.
        let preemption = structure.preemption.min(self.settings.preemption);
        // A guarantee stands in the list of its priority: with another priority it is a new one.
        if self.table.get(slot).preemption != preemption {
            self.guarantees.set(&mut self.table, slot, RateWord::ZERO);
        }
        let flow = self.table.get_mut(slot);
        flow.last_seen = now;
        (flow.preemption, flow.delay, flow.burst) = (preemption, structure.delay, structure.burst);
        flow.rate_type = structure.rate_type;
        flow.clear(PREEMPTED | REVERSE_CHARGING);
        // A sender may ask once more behind its FIN, which is not repeated. Only a SYN begins anew.
        if structure.message == Message::Request {
            flow.clear(FIN_SENT | FIN_SEEN);
        }
        if structure.charging == Charging::Reverse {
            flow.set(REVERSE_CHARGING);
        }
        let of = |has: bool, word: RateWord| if has { word } else { RateWord::ZERO };
        (
            of(structure.rate_type.has_guaranteed(), structure.guaranteed),
            of(structure.rate_type.has_available(), structure.available),
        )
    }

    /// The Available Rate that a flow gets that asks for `wanted`: its share, as far as there is room now.
    fn share_of(&self, slot: u32, wanted: RateWord) -> RateWord {
        let flow = self.table.get(slot);
        let has = flow.reserved.units();
        // One that was limited elsewhere is let try for a quarter more: what limited it may be gone.
        let tried = match flow.elsewhere.units() {
            0 => wanted.units(),
            elsewhere => wanted.units().min(elsewhere + elsewhere.div_ceil(4)),
        };
        let share = self.level.share(tried, flow.weight);
        // What it was promised beside an Available Rate comes out of the same line.
        let guaranteed = self.guarantees.sum() + flow.promised.units();
        let free = self.capacity.available(guaranteed).saturating_sub(self.reserved);
        let steady = self.capacity.steady(guaranteed).saturating_sub(self.reserved);
        let got = match has {
            // A newcomer to a full router has half of what is kept for newcomers: there may be more of them.
            0 => share.min(steady.max(free / 2)),
            _ => share.min(has + steady),
        };
        if got == wanted.units() { wanted } else { RateWord::from_units(got, Rounding::Down) }
    }

    /// Tells a flow its Available Rate, and keeps what it may still be sending at.
    pub(super) fn grant(&mut self, now: Instant, slot: u32, granted: RateWord) {
        let flow = self.table.get_mut(slot);
        let (had, gets) = (flow.reserved.units(), granted.units());
        if gets >= had {
            self.reserved += gets - had;
            flow.reserved = granted;
            if !flow.has(LOWERED) || gets >= flow.policed.units() {
                flow.police_faster(now, granted);
                flow.clear(LOWERED);
            }
            flow.granted = granted;
        } else if gets != flow.granted.units() {
            flow.granted = granted;
            flow.told = 0;
            self.await_cut(now, slot);
        }
    }

    /// Waits for a flow to slow down.
    fn await_cut(&mut self, now: Instant, slot: u32) {
        let flow = self.table.get_mut(slot);
        flow.lowered_at = now;
        flow.set(LOWERED);
        if !flow.has(AWAITED) {
            flow.set(AWAITED);
            self.holds.push(Reverse((now + self.settings.hold, slot)));
        }
    }

    /// A flow can use no more than `elsewhere`; zero lifts that.
    pub(super) fn limit(&mut self, slot: u32, elsewhere: RateWord, measured: bool) {
        let flow = self.table.get_mut(slot);
        let before = flow.demand();
        flow.elsewhere = elsewhere;
        flow.clear(MEASURED);
        if measured {
            flow.set(MEASURED);
        }
        let (after, weight) = (flow.demand(), flow.weight);
        if after != before {
            self.wants(slot, (before, weight), (after, weight));
            self.refresh_level();
        }
    }

    /// What a flow wants of the shared capacity, and its weight, were `before` and are `after`.
    fn wants(&mut self, slot: u32, before: (u64, u8), after: (u64, u8)) {
        if before != after && !self.table.get(slot).has(UNPROVEN) {
            self.shares.remove(before.0, before.1);
            self.shares.add(after.0, after.1);
        }
    }

    /// Forgets a flow, and what was kept for it is free.
    pub(super) fn forget(&mut self, slot: u32) {
        self.guarantees.set(&mut self.table, slot, RateWord::ZERO);
        let flow = self.table.get(slot);
        self.reserved -= flow.reserved.units();
        if flow.has(UNPROVEN) {
            self.unproven -= 1;
        } else {
            self.shares.remove(flow.demand(), flow.weight);
        }
        self.table.remove(slot);
        self.refresh_level();
    }

    pub(super) fn refresh_level(&mut self) {
        self.level = self.shares.level(self.capacity.steady(self.guarantees.sum()));
    }
}
