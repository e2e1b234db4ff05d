//! Silence: a wheel of coarse timers that is moved by the packets that pass.

use super::flow::{Flow, NOBODY};
use super::table::Table;
use farpath_units::{Duration, Instant};

/// A tick: how late a flow may be forgotten.
const TICK: u64 = 250_000_000;
/// Buckets of the wheel: 1024 s, past the longest timeout that makes sense.
const BUCKETS: u64 = 4096;
/// Timers looked at for each packet, so that a bucket in which a million flows stand is not one packet's burden.
const PER_CALL: usize = 8;

/// Each flow stands in one bucket of the wheel. When its tick has come it is either forgotten or put where its last
/// packet says: a packet moves no timer.
#[derive(Debug, Clone)]
pub(super) struct Timers {
    heads: Box<[u32]>,
    /// The tick whose bucket is being emptied.
    tick: u64,
}

impl Timers {
    pub fn new() -> Timers {
        Timers { heads: vec![NOBODY; BUCKETS as usize].into_boxed_slice(), tick: 0 }
    }

    /// Memory that is allocated.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.heads)
    }

    /// Looks at a flow no earlier than `due`.
    pub fn set(&mut self, slot: u32, flow: &mut Flow, due: Instant) {
        let tick = (due.as_nanos() / TICK + 1).clamp(self.tick + 1, self.tick + BUCKETS - 1);
        let head = &mut self.heads[(tick % BUCKETS) as usize];
        flow.timer_next = *head;
        *head = slot;
    }

    /// Flows to look at by `now`: a few of those whose tick has come, each of them to be set again or removed.
    pub fn due(&mut self, now: Instant, table: &Table) -> impl Iterator<Item = u32> + use<> {
        let now_tick = now.as_nanos() / TICK;
        // After a silence longer than the wheel each bucket is emptied once.
        self.tick = self.tick.max(now_tick.saturating_sub(BUCKETS - 1));
        let mut due = [NOBODY; PER_CALL];
        let mut found = 0;
        while found < PER_CALL && self.tick <= now_tick {
            let head = &mut self.heads[(self.tick % BUCKETS) as usize];
            if *head == NOBODY {
                if self.tick == now_tick {
                    break;
                }
                self.tick += 1;
                continue;
            }
            due[found] = *head;
            *head = table.get(*head).timer_next;
            found += 1;
        }
        due.into_iter().take(found)
    }
}

/// When a flow has been silent for `timeout`.
pub(super) fn silent_at(flow: &Flow, timeout: Duration) -> Instant {
    flow.last_seen + timeout
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::router::FlowKey;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// Of a flow that is to be looked at no earlier than `due`, where time had come to `now`: whether it is looked at at these times.
    fn looked_at<const N: usize>(now: u64, due: u64, times: [u64; N]) -> [bool; N] {
        let (mut timers, mut table) = (Timers::new(), Table::new(1));
        let slot = table.insert(Flow::new(FlowKey::from(1), at(0)));
        assert_eq!(timers.due(at(now), &table).count(), 0);
        timers.set(slot, table.get_mut(slot), at(due));
        times.map(|time| timers.due(at(time), &table).any(|found| found == slot))
    }

    #[test]
    fn a_flow_is_looked_at_no_earlier_than_it_is_due_and_a_tick_later_at_most() {
        assert_eq!(looked_at(0, 1000, [1000, 1249, 1250, 1500]), [false, false, true, false]);
        assert_eq!(looked_at(0, 1100, [1000, 1249, 1250]), [false, false, true]);
        // One that is overdue has the next tick.
        assert_eq!(looked_at(10_000, 1000, [10_249, 10_250]), [false, true]);
    }

    #[test]
    fn a_flow_that_is_due_beyond_the_wheel_is_looked_at_when_it_has_gone_round() {
        assert_eq!(looked_at(0, 5_000_000, [250, 1_023_500, 1_023_750]), [false, false, true]);
        // So it is after a silence longer than that.
        assert_eq!(looked_at(0, 5_000_000, [9_000_000, 9_000_000]), [true, false]);
    }
}
