//! One row per flow router and direction.

use super::DIRECTIONS;
use farpath_units::Bytes;

table! {
    /// One direction of a flow router: what it has decided, and how long its queue was.
    #[derive(Debug, Clone, PartialEq)]
    pub struct RouterRow {
        /// Name of the flow router on the path.
        pub element: String,
        /// The line that it grants: forward or reverse.
        #[blank(DIRECTIONS[0])]
        #[cells(direction_cells!())]
        pub direction: &'static str,
        /// Requests, renegotiations and resent requests processed.
        pub requests: u64,
        /// Requests that left with a lower Available Rate than they came with.
        pub lowered: u64,
        /// Guaranteed and Maximum Rates admitted, renegotiations included.
        pub admitted: u64,
        /// Guaranteed and Maximum Rates refused.
        pub refused: u64,
        /// Flows that lost their guarantee.
        pub preempted: u64,
        /// Cuts that the router itself has told.
        pub pushed: u64,
        /// Flows asked for a request that was missed.
        pub missed: u64,
        /// Flows that closed.
        pub closed: u64,
        /// Flows forgotten because they were silent.
        pub expired: u64,
        /// Packets dropped because their flow sent more than it was granted.
        pub policed: u64,
        /// Structures that named an unknown flow, and packets whose sequence numbers were not those of their flow.
        pub unknown: u64,
        /// Answers that said more than was granted: old ones, or lies.
        pub above_grant: u64,
        /// Requests that passed as they came because there was no room for more flows.
        pub full: u64,
        /// IP bytes that waited, averaged over time.
        #[column(name = "mean_backlog_bytes", unit = "B")]
        pub mean_backlog: f64,
        /// Standard deviation over time of the IP bytes that waited.
        #[column(name = "backlog_deviation_bytes", unit = "B")]
        pub backlog_deviation: f64,
        /// Most IP bytes that ever waited.
        #[column(name = "max_backlog_bytes")]
        pub max_backlog: Bytes,
    }
}
