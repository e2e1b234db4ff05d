//! What a port tells who looks in from outside.

use super::counters::RouterCounters;
use super::flow::{FlowKey, REVERSE_CHARGING};
use super::port::Port;
use crate::{Charging, RateType};
use core::cmp::Reverse;
use farpath_units::Instant;

/// What a port knows of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowReport {
    /// AR as it was last told, bit/s.
    pub available: u64,
    /// AR that is kept for it, bit/s: more than that while a cut has not been answered.
    pub reserved: u64,
    /// GR that is kept for it, bit/s.
    pub guaranteed: u64,
    /// Its type of rate.
    pub rate_type: RateType,
    /// Who pays.
    pub charging: Charging,
}

impl Port {
    /// What is known of a flow.
    pub fn flow(&self, key: &FlowKey) -> Option<FlowReport> {
        let flow = self.table.get(self.table.find(key)?);
        let rate = |word| self.settings.unit.decode(word);
        Some(FlowReport {
            available: rate(flow.granted),
            reserved: rate(flow.reserved),
            guaranteed: rate(flow.guaranteed),
            rate_type: flow.rate_type,
            charging: if flow.has(REVERSE_CHARGING) { Charging::Reverse } else { Charging::Forward },
        })
    }

    /// Flows that are known.
    pub fn flows(&self) -> usize {
        self.table.len()
    }

    /// What is guaranteed to all flows together, bit/s.
    pub fn guaranteed(&self) -> u64 {
        self.guarantees.sum() * self.settings.unit.bits()
    }

    /// What may be sent by all flows together at this moment, bit/s: what is kept for them. Above [`Port::capacity`] only
    /// from when a guarantee was admitted over the heads of Available Rates, or the line lost capacity, until those have sunk.
    pub fn committed(&self) -> u64 {
        (self.reserved + self.guarantees.sum()) * self.settings.unit.bits()
    }

    /// What may be granted at most, bit/s.
    pub fn capacity(&self) -> u64 {
        self.capacity.granted * self.settings.unit.bits()
    }

    /// What has been decided.
    pub fn counters(&self) -> RouterCounters {
        self.counters
    }

    /// Memory of the flows' state with all that finds, shares and forgets them, as allocated.
    pub fn state_bytes(&self) -> usize {
        self.table.bytes()
            + self.shares.bytes()
            + self.timers.bytes()
            + self.holds.capacity() * size_of::<Reverse<(Instant, u32)>>()
    }
}
