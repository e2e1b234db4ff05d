//! What happens to a data packet, and what is seen by it.

use super::flow::{AWAITED, Flow, FlowKey, GONE, LOWERED, MEASURED, PREEMPTED, UNPROVEN};
use super::numbers::Numbers;
use super::port::{MISSED, Port};
use super::shares::Level;
use super::timers::silent_at;
use crate::{BurstTolerance, Message, Priority, QosMark, RateType, RateWord, Rounding, Structure};
use core::cmp::Reverse;
use farpath_units::{Bytes, Duration, Instant, Rate};

/// Which queue a packet joins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// What nobody asked a rate for.
    BestEffort,
    /// Of a flow with an Available Rate, or a signal of one that is known.
    Available,
    /// Of a flow that has only asked: all of them have one queue, which takes turns with those of Available Rates. Anybody can make them up, any
    /// number of them.
    Newcomer,
    /// Of a flow with a Guaranteed or Maximum Rate: its delay priority in four steps, 3 the best.
    Guaranteed(u8),
}

/// What becomes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It goes on.
    Pass {
        /// In this class.
        class: Class,
        /// And the router says something behind it, in a packet of its own.
        signal: Option<Structure>,
    },
    /// Its flow has sent more than it was granted, for longer than its burst tolerance: it is dropped.
    Police,
}

/// An interval of measurement is over after this, where enough has passed to tell,
const INTERVAL: Duration = Duration::from_millis(200);
/// this much,
const ENOUGH: u32 = 16_000;
/// or after this in any case.
const LONG: Duration = Duration::from_secs(2);
/// A flow that uses less than its grant keeps one part in so many of an equal share.
const KEPT: u64 = 8;
/// A flow is asked for a missed request no more often than this.
const MISSED_INTERVAL: Duration = Duration::from_millis(100);

impl Port {
    /// A packet without data or structures: an ACK, a FIN. It is held to no rate, because what it acknowledges is: the end
    /// of a download asks for a rate of its own that it never uses, and may have been given a trickle. Nor does it ask for a
    /// missed request: the last ACK of a flow comes when it is over, and still has its mark.
    /// Its numbers tell who has seen an answer.
    pub fn pass_without_data(&mut self, now: Instant, key: FlowKey, numbers: Numbers) -> Decision {
        self.upkeep(now);
        let class = match self.table.find(&key) {
            Some(slot) => {
                self.prove(slot, numbers);
                let flow = self.table.get_mut(slot);
                flow.last_seen = now;
                flow.shared_class()
            }
            None => Class::BestEffort,
        };
        Decision::Pass { class, signal: None }
    }

    /// A packet of data on its way to the line, and the numbers that it shows.
    pub fn pass(
        &mut self,
        now: Instant,
        key: FlowKey,
        mark: QosMark,
        size: Bytes,
        numbers: Numbers,
    ) -> Decision {
        self.upkeep(now);
        let Some(slot) = self.table.find(&key) else {
            let signal = (mark == QosMark::Flow).then(|| self.ask_for_request(now, &key)).flatten();
            return Decision::Pass { class: Class::BestEffort, signal };
        };
        // What is not marked was not sent by its grant: a handshake, or a sender that has none or has fallen back. It keeps
        // nothing alive.
        if mark != QosMark::Flow {
            return Decision::Pass { class: Class::BestEffort, signal: None };
        }
        self.prove(slot, numbers);
        let flow = self.table.get(slot);
        let rate = flow.policed.units() + flow.told_guarantee();
        if rate == 0 && !flow.has(PREEMPTED) {
            return Decision::Pass { class: Class::BestEffort, signal: None };
        }
        // What it was promised is kept for nobody yet: so far it is one that has only asked.
        let class = match (flow.guaranteed.units(), flow.policed.units() + flow.promised.units()) {
            (0, 0) => Class::BestEffort,
            (0, _) => flow.shared_class(),
            _ => Class::Guaranteed(flow.delay.level() / 16),
        };
        self.table.get_mut(slot).last_seen = now;
        if self.settings.police && self.exceeds(now, slot, rate, size) {
            self.counters.policed += 1;
            return Decision::Police;
        }
        self.measure(now, slot, size);
        let signal = self.push(now, slot);
        Decision::Pass { class, signal }
    }

    /// The class of a packet that carries structures of this flow.
    pub fn class_of_signal(&self, key: &FlowKey) -> Class {
        self.table.find(key).map_or(Class::Newcomer, |slot| self.table.get(slot).shared_class())
    }

    /// Policing: a leaky bucket as deep as the burst tolerance says, filled at what was granted.
    ///
    /// It is two full packets deep at the least. At 64 kbit/s the 15.6 ms of BT = 5 are 125 bytes: no packet would pass.
    fn exceeds(&mut self, now: Instant, slot: u32, units: u64, size: Bytes) -> bool {
        let Some(rate) = Rate::from_bit_per_s(units * self.settings.unit.bits()) else { return false };
        let least = rate.time_to_send(Bytes(2 * self.settings.packet.0));
        let flow = self.table.get_mut(slot);
        // Who has only asked could send all that proves it at once, within a tolerance of 16 s.
        let most = if flow.has(UNPROVEN) { BurstTolerance::default().time() } else { Duration::MAX };
        let depth = flow.burst.time().min(most).max(least);
        let until = flow.sent_until.max(now) + rate.time_to_send(size);
        if until.saturating_since(now) > depth {
            return true;
        }
        flow.sent_until = until;
        false
    }

    /// How much of its grant a flow uses. One that uses less than 0.8 for three intervals is limited elsewhere, and
    /// leaves what it does not use, but for a quarter to grow into, to others. A small part of an equal share it keeps: one that waits
    /// for the repair of its last losses uses next to nothing, and would be held to that when they come.
    fn measure(&mut self, now: Instant, slot: u32, size: Bytes) {
        let unit_bits = self.settings.unit.bits();
        let flow = self.table.get_mut(slot);
        flow.measured_bytes = flow.measured_bytes.saturating_add(u32::try_from(size.0).unwrap_or(u32::MAX));
        let (time, bytes) = (now.saturating_since(flow.measured_since), flow.measured_bytes);
        let much = bytes >= ENOUGH;
        // Where answers go another way, or show no numbers, as of UDP and under ESP, who has sent this much counts too, however long it took:
        // one that began with a trickle, or whose program sends no more, sends so much in minutes.
        if flow.has(UNPROVEN) {
            if much {
                (flow.measured_since, flow.measured_bytes) = (now, 0);
                self.has_sent_much(slot);
            }
            return;
        }
        if !(much && time >= INTERVAL) && time < LONG {
            return;
        }
        let bits = u128::from(bytes) * 8 * 1_000_000_000;
        let used = (bits / u128::from(time.as_nanos().max(1)) / u128::from(unit_bits)) as u64;
        let flow = self.table.get_mut(slot);
        (flow.measured_since, flow.measured_bytes) = (now, 0);
        // A guarantee is used up first.
        let used = used.saturating_sub(flow.told_guarantee());
        let granted = flow.granted.units();
        let flows =
            u64::try_from(self.table.len()).unwrap_or(u64::MAX).saturating_sub(self.unproven.into()).max(1);
        let kept = self.capacity.steady(self.guarantees.sum()) / flows / KEPT;
        let flow = self.table.get_mut(slot);
        if used * 5 < granted * 4 {
            flow.count_interval(true);
            let can_use = RateWord::from_units((used + used / 4).max(kept).max(1), Rounding::Up);
            let known = flow.elsewhere.units();
            if flow.low_intervals() >= 3 && (known == 0 || flow.has(MEASURED) && can_use != flow.elsewhere) {
                self.limit(slot, can_use, true);
            }
        } else {
            flow.count_interval(false);
            if flow.has(MEASURED) && used * 20 >= granted * 19 {
                self.limit(slot, RateWord::ZERO, false);
            }
        }
    }

    /// Tells a flow that it has more than its share, or no guarantee any more: a renegotiation that the receiver will
    /// send back to it.
    fn push(&mut self, now: Instant, slot: u32) -> Option<Structure> {
        let flow = self.table.get(slot);
        let share = self.level.share(flow.demand(), flow.weight);
        let contended = self.level != Level::Unlimited;
        let since =
            now.saturating_since(flow.lowered_at).as_nanos() / self.settings.push_interval.as_nanos().max(1);
        // A 64th above its share is not worth a signal, and a cut is told again until it is answered.
        let above = contended
            && flow.granted.units() > share + share / 64
            && (since > 0 || flow.lowered_at == Instant::ZERO);
        let unanswered = flow.reserved.units() > flow.granted.units() && since > u64::from(flow.told);
        if !above && !unanswered && !flow.has(PREEMPTED) {
            return None;
        }
        if above {
            self.grant(now, slot, RateWord::from_units(share, Rounding::Down));
        } else if unanswered {
            let flow = self.table.get_mut(slot);
            flow.told = u8::try_from(since).unwrap_or(u8::MAX);
        }
        let flow = self.table.get_mut(slot);
        flow.clear(PREEMPTED);
        self.counters.pushed += 1;
        Some(renegotiation(self.table.get(slot)))
    }

    /// A packet says that its flow holds a grant, and nothing is known of it: after a restart or another path.
    fn ask_for_request(&mut self, now: Instant, key: &FlowKey) -> Option<Structure> {
        // Flows that share a place are asked more seldom: a table of their own would be state for who has none.
        let place = &mut self.missed[self.table.hash_of(key) as usize % MISSED];
        if *place != Instant::ZERO && now.saturating_since(*place) < MISSED_INTERVAL {
            return None;
        }
        *place = now;
        self.counters.missed += 1;
        Some(Structure {
            message: Message::MissedStart,
            preemption: Priority::LOWEST,
            delay: Priority::LOWEST,
            ..Structure::default()
        })
    }

    /// What time brings: cuts that were waited for long enough, and flows that have been silent for too long.
    pub(super) fn upkeep(&mut self, now: Instant) {
        while let Some(&Reverse((due, slot))) = self.holds.peek()
            && due <= now
        {
            self.holds.pop();
            let flow = self.table.get_mut(slot);
            let over = flow.lowered_at + self.settings.hold;
            let lowered = flow.has(LOWERED) && !flow.has(GONE);
            if lowered && over > now {
                // It was lowered again since then.
                self.holds.push(Reverse((over, slot)));
                continue;
            }
            flow.clear(AWAITED);
            if lowered {
                self.settle(slot);
            }
        }
        for slot in self.timers.due(now, &self.table) {
            let flow = self.table.get(slot);
            if flow.has(GONE) {
                self.let_go(now, slot);
                continue;
            }
            let mut timeout = self.timeout(flow.rate_type);
            // Who is not proven is held a place for as long as a handshake may take, whatever was asked for.
            if flow.has(UNPROVEN) {
                timeout = timeout.min(self.settings.available_timeout);
            }
            let silent = silent_at(flow, timeout);
            if silent <= now {
                self.forget(slot);
                self.let_go(now, slot);
                self.counters.expired += 1;
            } else {
                let soon = now + self.settings.available_timeout;
                self.timers.set(slot, self.table.get_mut(slot), silent.min(soon));
            }
        }
    }

    /// The slot of a flow that is gone can be used again, once no cut of it is waited for: so that a slot has one such wait at most.
    fn let_go(&mut self, now: Instant, slot: u32) {
        let flow = self.table.get_mut(slot);
        if flow.has(AWAITED) {
            self.timers.set(slot, flow, now + self.settings.hold);
        } else {
            self.table.recycle(slot);
        }
    }

    /// A cut is taken as followed: what it freed can be granted, and the flow is policed at what it has.
    fn settle(&mut self, slot: u32) {
        let flow = self.table.get_mut(slot);
        if flow.elsewhere.units() > 0 && !flow.has(MEASURED) && flow.elsewhere.units() < flow.granted.units()
        {
            flow.granted = flow.elsewhere;
        }
        self.reserved = self.reserved - flow.reserved.units() + flow.granted.units();
        (flow.reserved, flow.policed) = (flow.granted, flow.granted);
        flow.clear(LOWERED);
    }

    fn timeout(&self, rate_type: RateType) -> Duration {
        match rate_type {
            RateType::Available => self.settings.available_timeout,
            RateType::Maximum => self.settings.maximum_timeout,
            RateType::Composite | RateType::Guaranteed => self.settings.guaranteed_timeout,
        }
    }
}

impl Flow {
    fn shared_class(&self) -> Class {
        if self.has(UNPROVEN) { Class::Newcomer } else { Class::Available }
    }
}

/// What a router tells a flow of its own accord.
fn renegotiation(flow: &Flow) -> Structure {
    Structure {
        message: Message::Renegotiate,
        rate_type: flow.rate_type,
        available: flow.granted,
        guaranteed: flow.guaranteed,
        preemption: flow.preemption,
        delay: flow.delay,
        burst: flow.burst,
        mark: 1,
        ..Structure::default()
    }
}
