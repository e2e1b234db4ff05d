//! What a flow router is told.

use crate::{Priority, RateUnit, RateWord, Rounding};
use farpath_units::{Bytes, Duration, Probability, Rate};

/// How a flow router shares one output port.
#[derive(Debug, Clone, PartialEq)]
pub struct RouterSettings {
    /// Share of the line that is granted at most; what is left drains queues and carries what nobody asked for.
    pub utilization: Probability,
    /// Part of what may be granted that is kept for newcomers: Available Rates in a steady state leave it free, so that
    /// a flow that comes to a full router has something to begin with before the others have made room.
    pub newcomers: Probability,
    /// Share of the line that Guaranteed and Maximum Rates may have together. It is below 1 so that the others have the
    /// rest whatever happens.
    pub guaranteed: Probability,
    /// The highest preemption priority that is accepted here: who asks for a higher one has this one.
    pub preemption: Priority,
    /// What a rate counts.
    pub unit: RateUnit,
    /// Weight of an Available Rate by its preemption priority, 1 to 255.
    pub weights: [u8; 64],
    /// Whether packets above what was granted are dropped.
    pub police: bool,
    /// How long an unanswered cut is waited for: the capacity that it frees is granted to others, and the flow policed
    /// at its new rate, when the answer has passed or when this is over. Longer than any round trip of the path.
    pub hold: Duration,
    /// How often a flow is told that it has too much.
    pub push_interval: Duration,
    /// Silence after which a flow is forgotten: Available Rate.
    pub available_timeout: Duration,
    /// The same for a Maximum Rate: it is given up when it is not used.
    pub maximum_timeout: Duration,
    /// The same for Guaranteed Rates, alone or composite.
    pub guaranteed_timeout: Duration,
    /// Flows whose state is kept at most. A request past them passes as it came.
    pub flows: u32,
    /// Of these, flows at most that have asked and are not proven: whoever makes up start packets has state for so many, and the
    /// requests past them pass as they came too.
    pub starts: u32,
    /// A full packet: the least that a burst may be, and what a round of the queues gives each flow.
    pub packet: Bytes,
}

impl Default for RouterSettings {
    fn default() -> RouterSettings {
        RouterSettings {
            utilization: Probability::new(0.98).expect("a share"),
            newcomers: Probability::new(0.02).expect("a share"),
            guaranteed: Probability::new(0.9).expect("a share"),
            preemption: Priority::HIGHEST,
            unit: RateUnit::KbitPerS,
            weights: [1; 64],
            police: true,
            hold: Duration::from_secs(2),
            push_interval: Duration::from_millis(200),
            available_timeout: Duration::from_secs(10),
            maximum_timeout: Duration::from_secs(3),
            guaranteed_timeout: Duration::from_secs(300),
            flows: 1 << 22,
            starts: 1 << 16,
            packet: Bytes(1500),
        }
    }
}

impl RouterSettings {
    /// The Available Rate that a flow has on a line of `line` with nobody beside it; `None` where that is below the code's least.
    pub fn granted_alone(&self, line: Rate) -> Option<Rate> {
        let word = RateWord::from_units(Capacity::new(self, line).steady(0), Rounding::Down);
        Rate::from_bit_per_s(word.units() * self.unit.bits())
    }
}

/// Shares of a line in units of the rate code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Capacity {
    /// All that may be granted.
    pub granted: u64,
    /// Of that, Guaranteed and Maximum Rates.
    pub guaranteed: u64,
    /// One part in 2^32 of what is left to Available Rates, for newcomers.
    newcomers: u64,
}

impl Capacity {
    pub fn new(settings: &RouterSettings, line: Rate) -> Capacity {
        let units = (line.bit_per_s() / settings.unit.bits()) as f64;
        // Rounded down: an f64 is exact to a unit up to 9·10^15 of them.
        let granted = (units * settings.utilization.fraction()) as u64;
        let guaranteed = ((units * settings.guaranteed.fraction()) as u64).min(granted);
        Capacity { granted, guaranteed, newcomers: (settings.newcomers.fraction() * 4_294_967_296.0) as u64 }
    }

    /// What Available Rates may have together beside `guaranteed`, newcomers included.
    pub fn available(&self, guaranteed: u64) -> u64 {
        self.granted.saturating_sub(guaranteed)
    }

    /// What they may have in a steady state.
    pub fn steady(&self, guaranteed: u64) -> u64 {
        let available = self.available(guaranteed);
        let kept = (u128::from(available) * u128::from(self.newcomers)) >> 32;
        available - kept as u64
    }
}
