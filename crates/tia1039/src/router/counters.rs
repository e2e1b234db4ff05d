//! What a port has decided.

/// Decisions of one output port, by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RouterCounters {
    /// Requests, renegotiations and resent requests that were processed.
    pub requests: u64,
    /// Of these, how many left with a lower Available Rate than they came with.
    pub lowered: u64,
    /// Guaranteed and Maximum Rates admitted.
    pub admitted: u64,
    /// Guaranteed and Maximum Rates refused.
    pub refused: u64,
    /// Flows that lost their guarantee to one of a higher priority, or to a loss of capacity.
    pub preempted: u64,
    /// Responses that passed on their way back.
    pub responses: u64,
    /// Of these, how many said more than was granted here: old ones, or lies. They change nothing.
    pub above_grant: u64,
    /// Structures that named a flow that is not known, and packets whose sequence numbers were not those of their flow.
    pub unknown: u64,
    /// Cuts that the router itself has told.
    pub pushed: u64,
    /// Flows asked for their request because it was missed.
    pub missed: u64,
    /// Flows that closed.
    pub closed: u64,
    /// Flows forgotten because they were silent.
    pub expired: u64,
    /// Flows that began anew after a move, and gave up what they had.
    pub moved: u64,
    /// Packets dropped because their flow sent more than it was granted.
    pub policed: u64,
    /// Requests that passed as they came because there was no room for more flows, or for more that are not proven.
    pub full: u64,
}
