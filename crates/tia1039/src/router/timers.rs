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
