//! When the copies of retransmitted segments left: RACK's per-transmission times (RFC 8985 §5.2).
//!
//! A segment's first transmission is in the scoreboard, where time rises with position. Copies have another order,
//! and are few: here they are by position and by time, each operation at the logarithm of their number.

use super::Sending;
use farpath_units::Instant;
use std::collections::{BTreeMap, BTreeSet};

/// The latest copy of each retransmitted segment in flight.
#[derive(Debug, Clone, Default)]
pub(super) struct Copies {
    /// Whether anybody asks: without RACK nothing is kept.
    enabled: bool,
    /// End of the segment to its latest copy.
    latest: BTreeMap<u64, Sending>,
    /// Copies that may still arrive.
    in_network: BTreeSet<Sending>,
    /// Ends of the segments whose latest copy was declared lost.
    lost: BTreeSet<u64>,
}

impl Copies {
    pub fn enable(&mut self) {
        self.enabled = true;
    }

    pub fn sent(&mut self, copy: Sending) {
        if !self.enabled {
            return;
        }
        if let Some(before) = self.latest.insert(copy.end, copy) {
            self.in_network.remove(&before);
        }
        self.in_network.insert(copy);
        self.lost.remove(&copy.end);
    }

    /// The segment that ends at `end` has arrived: forgets it, and gives its latest copy.
    pub fn delivered(&mut self, end: u64) -> Option<Sending> {
        let copy = self.latest.remove(&end)?;
        self.in_network.remove(&copy);
        self.lost.remove(&end);
        Some(copy)
    }

    /// How many may still arrive.
    pub fn in_network(&self) -> usize {
        self.in_network.len()
    }

    /// The copy that has been in the network for longest.
    pub fn oldest(&self) -> Option<Sending> {
        self.in_network.first().copied()
    }

    /// The latest copy in the network that was sent before `this`.
    pub fn latest_before(&self, this: Sending) -> Option<Sending> {
        self.in_network.range(..this).next_back().copied()
    }

    /// The copy does not arrive any more.
    pub fn lose(&mut self, copy: Sending) {
        self.in_network.remove(&copy);
        self.lost.insert(copy.end);
    }

    /// When the latest copy of the segment that ends at `end` left.
    pub fn time_of_copy(&self, end: u64) -> Option<Instant> {
        self.latest.get(&end).map(|copy| copy.at)
    }

    /// The segment that ends at `end` is to be sent again, and the scoreboard itself knows.
    pub fn give_up(&mut self, end: u64) {
        if let Some(copy) = self.latest.get(&end) {
            self.in_network.remove(copy);
            self.lost.remove(&end);
        }
    }

    /// The first segment whose copy was lost, by its end.
    pub fn first_lost(&self) -> Option<u64> {
        self.lost.first().copied()
    }

    /// After a timeout the scoreboard itself knows all that is to be sent again.
    pub fn lose_all(&mut self) {
        self.in_network.clear();
        self.lost.clear();
    }

    pub fn lose_nothing(&mut self) {
        self.lost.clear();
        self.in_network = self.latest.values().copied().collect();
    }
}
