//! Who may have a guarantee, who loses his for it, and who has shown that he is there.

use super::flow::{ANSWERED, PREEMPTED, SEEN, UNPROVEN, UNSEEN};
use super::numbers::Numbers;
use super::port::Port;
use crate::RateWord;

/// Bytes that may have come behind the answer before the first packet that acknowledges it passes here: the others were lost. One guess in
/// 4096 is right.
const SEEN_WITHIN: u32 = 1 << 20;

impl Port {
    /// Admission control: all of a guarantee or none of it. What is there stays where more is refused. Gives what the flow is told.
    ///
    /// Who has not shown that it got the answer is told what it would have, and has nothing: anybody can make up a request.
    pub(super) fn admit(&mut self, slot: u32, wanted: RateWord) -> RateWord {
        let flow = self.table.get_mut(slot);
        flow.promised = RateWord::ZERO;
        let (has, seen) = (flow.guaranteed, flow.has(SEEN));
        let promises = flow.has(UNPROVEN) && !flow.has(UNSEEN);
        let more = wanted.units().saturating_sub(has.units());
        if more == 0 {
            self.guarantees.set(&mut self.table, slot, wanted);
            self.counters.admitted += u64::from(wanted.units() > 0);
            return wanted;
        }
        let fits =
            if seen || promises { self.fits_by_priority(slot, more) } else { self.fits_unfelt(slot, more) };
        if !fits {
            self.counters.refused += 1;
            return has;
        }
        if promises {
            self.table.get_mut(slot).promised = wanted;
            return wanted;
        }
        // Strictly lower priorities only, the lowest first, and of one priority the newest: who came first stays.
        let priority = self.table.get(slot).preemption;
        while self.guarantees.sum() + more > self.capacity.guaranteed
            && let Some(victim) = self.guarantees.first_to_go(usize::from(priority.level()))
        {
            self.preempt(victim);
        }
        self.guarantees.set(&mut self.table, slot, wanted);
        self.counters.admitted += 1;
        wanted
    }

    /// Whether so much more fits once those of lower priority have gone.
    fn fits_by_priority(&self, slot: u32, more: u64) -> bool {
        let below = self.guarantees.below(self.table.get(slot).preemption);
        self.guarantees.sum() + more <= self.capacity.guaranteed + below
    }

    /// Whether so much more fits, and everybody else can still have all that they want.
    fn fits_unfelt(&self, slot: u32, more: u64) -> bool {
        let flow = self.table.get(slot);
        let guaranteed = self.guarantees.sum() + more;
        let own = if flow.has(UNPROVEN) { 0 } else { flow.demand() };
        guaranteed <= self.capacity.guaranteed
            && self.reserved - flow.reserved.units() <= self.capacity.available(guaranteed)
            && self.shares.demand() - own <= self.capacity.steady(guaranteed)
    }

    pub(super) fn preempt(&mut self, victim: u32) {
        self.guarantees.set(&mut self.table, victim, RateWord::ZERO);
        self.table.get_mut(victim).set(PREEMPTED);
        self.counters.preempted += 1;
    }

    /// Another router gives less of a guarantee, or this one was told so.
    pub(super) fn lower_guarantee(&mut self, slot: u32, told: RateWord) {
        let flow = self.table.get_mut(slot);
        if told.units() < flow.promised.units() {
            flow.promised = told;
        }
        if told.units() < flow.guaranteed.units() {
            self.guarantees.set(&mut self.table, slot, told);
            self.refresh_level();
        }
    }

    /// A packet of the flow itself has come, with these numbers. One that acknowledges what came with the answer is of somebody
    /// who has seen it: its sequence number is not to be guessed (RFC 6528).
    pub(super) fn prove(&mut self, slot: u32, numbers: Numbers) {
        let flow = self.table.get_mut(slot);
        if flow.has(ANSWERED)
            && !flow.has(SEEN)
            && let Some(acknowledged) = numbers.acknowledged
            && acknowledged.wrapping_sub(flow.acknowledged) < SEEN_WITHIN
        {
            flow.set(SEEN);
            flow.acknowledged = acknowledged;
            // Whoever has asked in its name until now did not know this.
            flow.begin_at(numbers.next_seq);
            self.count_in(slot);
        } else {
            flow.follow(numbers);
        }
    }

    /// A flow that has only asked has sent much, within what it was told. By a promise anybody sends as much at once: it has what it was promised
    /// where nobody feels it. What it sends by what is kept for it counts.
    pub(super) fn has_sent_much(&mut self, slot: u32) {
        let flow = self.table.get_mut(slot);
        let promised = flow.promised;
        if promised.units() > 0 {
            flow.set(UNSEEN);
            if self.admit(slot, promised).units() < promised.units() {
                self.table.get_mut(slot).set(PREEMPTED);
            }
            self.refresh_level();
        } else if flow.guaranteed.units() == 0 {
            self.count_in(slot);
        }
    }

    /// Others sink for this flow from now on, and what it was promised is kept for it, if it can be.
    pub(super) fn count_in(&mut self, slot: u32) {
        let flow = self.table.get_mut(slot);
        if !flow.has(UNPROVEN) {
            return;
        }
        flow.clear(UNPROVEN);
        let (demand, weight, promised) = (flow.demand(), flow.weight, flow.promised);
        self.shares.add(demand, weight);
        self.unproven -= 1;
        if promised.units() > 0 && self.admit(slot, promised).units() == 0 {
            // Somebody else has shown itself first.
            self.table.get_mut(slot).set(PREEMPTED);
        }
        self.refresh_level();
    }
}
