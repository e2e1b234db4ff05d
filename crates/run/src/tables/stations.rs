//! One row per station on an air that other stations use too.

use farpath_units::Bytes;

table! {
    /// One station of those that share the air of a hop: what it had to send, and how it got at the air.
    #[derive(Debug, Clone, PartialEq)]
    pub struct StationRow {
        /// Name of the radio on the path.
        pub element: String,
        /// Which of its hops, from 0 at the near end.
        pub hop: u32,
        /// Number of the station: 0 is the near one of the hop, 1 the far one, the others follow.
        pub station: u32,
        /// Which of the `others` of the radio it belongs to, from 0; null for a station of the path.
        pub others: Option<u32>,
        /// Packets that were its to send over this hop.
        pub offered: u64,
        /// Those of them that arrived over it.
        pub delivered: u64,
        /// Those of them that were lost: a queue that was full, a frame sent too often, a station that gave up.
        pub dropped: u64,
        /// IP bytes of what arrived.
        pub delivered_bytes: Bytes,
        /// Calls: polls, or bursts that were sent unasked.
        pub calls: u64,
        /// Calls that nobody heard, or whose answer was not heard. After each of them it backs off.
        pub unanswered: u64,
        /// How often it wanted to call and heard others.
        pub held_back: u64,
        /// Frames that it sent.
        pub frames: u64,
        /// Frames of it that met another transmission at their receiver.
        pub hit: u64,
    }
}
