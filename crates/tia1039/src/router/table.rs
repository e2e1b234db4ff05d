//! Flows by key.

use super::flow::{Flow, FlowKey, GONE};
use core::hash::Hasher;
use hashbrown::HashTable;
use siphasher::sip::SipHasher13;

/// Flows in a slab, and an index of four bytes for each. The hash is keyed: who chooses addresses cannot choose
/// collisions.
#[derive(Debug, Clone)]
pub(super) struct Table {
    flows: Vec<Flow>,
    /// Slots to be used again.
    unused: Vec<u32>,
    index: HashTable<u32>,
    key: (u64, u64),
}

impl Table {
    pub fn new(seed: u64) -> Table {
        let key = (seed, seed.rotate_left(32) ^ 0x9e37_79b9_7f4a_7c15);
        Table { flows: Vec::new(), unused: Vec::new(), index: HashTable::new(), key }
    }

    fn hash(key: (u64, u64), flow: &FlowKey) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(key.0, key.1);
        hasher.write(&flow.0);
        hasher.finish()
    }

    /// The hash of a flow, for tables of other things.
    pub fn hash_of(&self, flow: &FlowKey) -> u64 {
        Table::hash(self.key, flow)
    }

    pub fn len(&self) -> usize {
        self.index.len()
    }

    pub fn find(&self, key: &FlowKey) -> Option<u32> {
        let hash = Table::hash(self.key, key);
        self.index.find(hash, |&slot| self.flows[slot as usize].key == *key).copied()
    }

    pub fn get(&self, slot: u32) -> &Flow {
        &self.flows[slot as usize]
    }

    pub fn get_mut(&mut self, slot: u32) -> &mut Flow {
        &mut self.flows[slot as usize]
    }

    /// Puts in a flow that is not there, and gives its slot.
    pub fn insert(&mut self, flow: Flow) -> u32 {
        let key = flow.key;
        let slot = match self.unused.pop() {
            Some(slot) => {
                self.flows[slot as usize] = flow;
                slot
            }
            None => {
                self.flows.push(flow);
                (self.flows.len() - 1) as u32
            }
        };
        let (flows, seed) = (&self.flows, self.key);
        let rehash = |&slot: &u32| Table::hash(seed, &flows[slot as usize].key);
        self.index.insert_unique(Table::hash(seed, &key), slot, rehash);
        slot
    }

    /// Forgets a flow. Its slot is used again when its timer lets go of it.
    pub fn remove(&mut self, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        flow.set(GONE);
        let hash = Table::hash(self.key, &flow.key);
        if let Ok(entry) = self.index.find_entry(hash, |&found| found == slot) {
            entry.remove();
        }
    }

    /// The slot of a flow that is gone can be used again.
    pub fn recycle(&mut self, slot: u32) {
        self.unused.push(slot);
    }

    /// Whether a flow that is not there can be put in, where there may be so many.
    pub fn has_room(&self, most: u32) -> bool {
        self.len() < most as usize && (!self.unused.is_empty() || self.flows.len() < most as usize)
    }

    /// All of them.
    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = &Flow> {
        self.index.iter().map(|&slot| self.get(slot))
    }

    /// Memory that is allocated.
    pub fn bytes(&self) -> usize {
        self.flows.capacity() * size_of::<Flow>()
            + self.unused.capacity() * size_of::<u32>()
            + self.index.allocation_size()
    }
}
