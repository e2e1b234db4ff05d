//! What held the connections of a capture: tables of their own, which belong to no run.

use farpath_units::{Bytes, Duration, Instant};

table! {
    /// One connection of a capture, in the direction in which it carried the most data.
    #[derive(Debug, Clone, PartialEq)]
    pub struct ConnectionRow {
        /// Number of the connection, from 0: the one with the most data first.
        pub connection: u64,
        /// Address and port of who sent most of the data.
        pub sender: String,
        /// Address and port of who received it.
        pub receiver: String,
        /// Interface of the capture.
        pub interface: u32,
        /// Where the capture was made: near-sender, near-receiver, middle or unknown.
        pub vantage: String,
        /// When its first packet passed, since 1970.
        pub start_ns: Option<Instant>,
        /// First frame.
        pub first_frame: u64,
        /// Last frame.
        pub last_frame: u64,
        /// From the first packet to the last.
        #[column(name = "duration_ns")]
        pub duration: Duration,
        /// Payload bytes, each counted once.
        pub bytes: Bytes,
        /// Payload bytes of the other direction.
        pub bytes_back: Bytes,
        /// Packets with payload, retransmissions included.
        pub data_packets: u64,
        /// Packets with payload that had been sent before.
        pub retransmissions: u64,
        /// Repairs: each from the first sign of a loss until all that was sent before is acknowledged.
        pub repairs: u64,
        /// Of these, begun by a timeout or a probe for the tail.
        pub repairs_by_timeout: u64,
        /// Runs of packets sent again whose data lies side by side.
        pub loss_runs: u64,
        /// Packets that arrived twice, as the receiver told (D-SACK).
        pub dsacks: u64,
        /// Lone segments whose acknowledgment was delayed while new data waited.
        pub delayed_acks: u64,
        /// Packets with data that a congested router had marked (CE).
        pub marked: u64,
        /// Maximum segment size.
        #[column(name = "mss_bytes")]
        pub mss: Bytes,
        /// The longest window that the receiver announced.
        #[column(name = "window_bytes")]
        pub window: Option<Bytes>,
        /// The most that was in flight.
        #[column(name = "most_in_flight_bytes")]
        pub most_in_flight: Bytes,
        /// What was sent before the first acknowledgment of data.
        #[column(name = "initial_window_bytes")]
        pub initial_window: Option<Bytes>,
        /// Shortest round trip.
        #[column(name = "min_rtt_ns")]
        pub min_rtt: Option<Duration>,
        /// Median of the round trip under data.
        #[column(name = "median_rtt_ns")]
        pub median_rtt: Option<Duration>,
        /// Its 95th percentile.
        #[column(name = "p95_rtt_ns")]
        pub p95_rtt: Option<Duration>,
        /// The most that was acknowledged within a round trip, as a rate.
        #[column(unit = "bit/s")]
        pub delivered_bit_per_s: Option<f64>,
        /// Payload rate of the path's narrowest link, where it was seen.
        #[column(unit = "bit/s")]
        pub path_rate_bit_per_s: Option<f64>,
        /// Rate of IP packets that routers have granted (TIA-1039).
        #[column(unit = "bit/s")]
        pub granted_bit_per_s: Option<u64>,
        /// Stacks whose SYN begins as the sender's does: linux, windows, apple, freebsd or openbsd.
        pub sender_stack: Option<String>,
        /// The same of the receiver.
        pub receiver_stack: Option<String>,
        /// What held it longest; null where nothing did.
        pub limit: Option<String>,
        /// What was found, in a sentence.
        pub summary: String,
    }
}

table! {
    /// How long a connection waited for one thing. The times of a connection add up to its duration.
    #[derive(Debug, Clone, PartialEq)]
    pub struct LimitRow {
        /// Number of the connection.
        pub connection: u64,
        /// What new data waited for.
        pub limit: String,
        /// For how long.
        #[column(name = "time_ns")]
        pub time: Duration,
        /// Payload bytes that were sent for the first time behind such waits.
        pub bytes: Bytes,
    }
}

table! {
    /// A stretch of time in which new data of a connection waited for one thing.
    #[derive(Debug, Clone, PartialEq)]
    pub struct IntervalRow {
        /// Number of the connection.
        pub connection: u64,
        /// What it waited for.
        pub limit: String,
        /// From when on, since 1970.
        #[column(name = "from_ns")]
        pub from: Instant,
        /// Until when.
        #[column(name = "to_ns")]
        pub to: Instant,
    }
}
