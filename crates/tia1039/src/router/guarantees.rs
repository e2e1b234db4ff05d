//! Guaranteed and Maximum Rates: who has them, and who loses them first.

use super::flow::NOBODY;
use super::table::Table;
use crate::{Priority, RateWord};

const LEVELS: usize = 64;

/// Guarantees by preemption priority; within one the newest stands last. All in units.
#[derive(Debug, Clone)]
pub(super) struct Guarantees {
    sum: u64,
    level_sums: [u64; LEVELS],
    newest: [u32; LEVELS],
}

impl Guarantees {
    pub fn new() -> Guarantees {
        Guarantees { sum: 0, level_sums: [0; LEVELS], newest: [NOBODY; LEVELS] }
    }

    /// What is guaranteed to all flows together.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// What flows of strictly lower priority have.
    pub fn below(&self, priority: Priority) -> u64 {
        self.level_sums[..usize::from(priority.level())].iter().sum()
    }

    /// The flow that is preempted first: of the lowest priority, there the newest, and none of `limit` or more.
    pub fn first_to_go(&self, limit: usize) -> Option<u32> {
        self.newest[..limit].iter().copied().find(|&slot| slot != NOBODY)
    }

    /// The same, whatever its priority.
    pub fn first_of_all(&self) -> Option<u32> {
        self.first_to_go(LEVELS)
    }

    /// Gives a flow this guarantee in place of the one that it has. A zero takes it out.
    pub fn set(&mut self, table: &mut Table, slot: u32, rate: RateWord) {
        let flow = table.get_mut(slot);
        let (level, before, after) =
            (usize::from(flow.preemption.level()), flow.guaranteed.units(), rate.units());
        flow.guaranteed = rate;
        self.sum = self.sum - before + after;
        self.level_sums[level] = self.level_sums[level] - before + after;
        match (before, after) {
            (0, 1..) => {
                let older = core::mem::replace(&mut self.newest[level], slot);
                (flow.older, flow.newer) = (older, NOBODY);
                if older != NOBODY {
                    table.get_mut(older).newer = slot;
                }
            }
            (1.., 0) => {
                let (older, newer) = (flow.older, flow.newer);
                (flow.older, flow.newer) = (NOBODY, NOBODY);
                match newer {
                    NOBODY => self.newest[level] = older,
                    newer => table.get_mut(newer).older = older,
                }
                if older != NOBODY {
                    table.get_mut(older).newer = newer;
                }
            }
            _ => {}
        }
    }
}
