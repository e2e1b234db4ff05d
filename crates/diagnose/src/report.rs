//! What is told of a capture.

use crate::kernel::Iperf3;
use crate::ledger::{Interval, Limit, Moment};
use crate::losses::Losses;
use crate::packet::Other;
use crate::prelude::Inferred;
use crate::stack::StackSeen;
use crate::tunnel::Tunnel;
use serde::Serialize;
use std::net::SocketAddr;

/// Of a whole capture.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Frames of the file.
    pub frames: u64,
    /// Of these, TCP packets.
    pub tcp_packets: u64,
    /// Frames of link types that are not known.
    pub unknown_link: u64,
    /// Connections, the one with the most data first.
    pub connections: Vec<ConnectionReport>,
    /// Packets of connections beyond those that are followed.
    pub packets_not_followed: u64,
    /// Where there was no TCP: what there was, the most of it first.
    #[serde(skip)]
    pub others: Vec<(Other, u64)>,
}

/// Where a capture was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Vantage {
    /// Within a tenth of the round trip of the data sender.
    NearSender,
    /// Within a tenth of the round trip of the data receiver.
    NearReceiver,
    /// Between.
    Middle,
    /// The handshake is not in the capture, and nothing else tells.
    Unknown,
}

/// How much of a connection's time a limit had.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LimitShare {
    /// The limit.
    pub limit: Limit,
    /// For how long it was what new data waited for, in s.
    pub time_s: f64,
    /// Payload bytes that were sent for the first time behind such waits.
    pub bytes: u64,
}

/// Waits for timers, and what timers sent.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Timers {
    /// Lone segments that were acknowledged 25 to 500 ms later than the round trip takes, while new data waited for it (delayed ACK, RFC 1122 §4.2.3.2).
    pub delayed_acks: u64,
    /// By how much later, all of them together, s.
    pub delayed_acks_s: f64,
    /// Probes of a closed window (RFC 9293 §3.8.6.1).
    pub window_probes: u64,
    /// Probes of a connection at rest (keep-alives, RFC 9293 §3.8.4).
    pub keep_alives: u64,
}

/// Of a connection, in the direction in which it carried the most data.
#[derive(Debug, Clone, Serialize)]
pub struct ConnectionReport {
    /// Who sent most of the data.
    pub sender: SocketAddr,
    /// Who received it.
    pub receiver: SocketAddr,
    /// Interface of the capture.
    pub interface: u32,
    /// The tunnel that it is in, of several the innermost.
    pub tunnel: Option<Tunnel>,
    /// Where the capture was made.
    pub vantage: Vantage,
    /// Where the handshake is not in the capture: what is known in its place, and by what.
    pub inferred: Option<Inferred>,
    /// First and last frame.
    pub frames: (u64, u64),
    /// When the first packet passed, ns since 1970; of a connection that was watched nobody noted it.
    pub start_ns: Option<u64>,
    /// From the first packet to the last, in s.
    pub duration_s: f64,
    /// Payload bytes, each counted once; and those of the other direction.
    pub bytes: u64,
    /// Payload bytes of the other direction.
    pub bytes_back: u64,
    /// Packets with payload, and how many of these had been sent before.
    pub data_packets: u64,
    /// Of these, sent before.
    pub retransmissions: u64,
    /// Of the latter, in repairs that began while a queue stood that was half as long as the longest one, or longer: it had no room.
    pub retransmissions_at_queue: u64,
    /// The longest queue before such a repair, s.
    pub queue_s: Option<f64>,
    /// How it was sent again.
    pub losses: Losses,
    /// What waited for timers.
    pub timers: Timers,
    /// The most that was in flight, as the sender knew it, bytes.
    pub most_in_flight: u64,
    /// What `iperf3 --json` told of it, where that was given.
    pub iperf3: Option<Iperf3>,
    /// Acknowledged data that is not in the capture.
    pub bytes_not_captured: u64,
    /// Packets with data that the capture has a second time, by their fields and within a millisecond: of several interfaces that
    /// they crossed. They count as sent again, and what held the connection cannot be told.
    pub copies: u64,
    /// Packets with data that a congested router had marked (CE, RFC 3168) when they were captured: near the sender none is yet.
    pub marked: u64,
    /// Acknowledgments that told the sender of such marks (ECE).
    pub marks_echoed: u64,
    /// What the SYN of the sender told of its stack, where it is in the capture.
    pub sender_stack: Option<StackSeen>,
    /// The same of the receiver.
    pub receiver_stack: Option<StackSeen>,
    /// What was sent before the first acknowledgment of data came, where more followed and nothing had been sent before, bytes.
    pub initial_window: Option<u64>,
    /// Maximum segment size, of the handshake or the longest usual packet.
    pub mss: u32,
    /// The longest window that the receiver announced, where its scale is known, bytes.
    pub window: Option<u64>,
    /// Shortest round trip, s.
    pub min_rtt_s: Option<f64>,
    /// Of it, what lies between the capture and the data sender, where that is known, s.
    pub sender_rtt_s: Option<f64>,
    /// Percentiles of the round trip under data, s: 50, 95, 99.
    pub rtt_s: Option<[f64; 3]>,
    /// The most that was acknowledged within a round trip, as a rate: the path had at least so much, bit/s.
    pub delivered_bit_per_s: Option<f64>,
    /// The rate of the path's narrowest link in payload, where it was seen; bit/s. Near the sender: by a queue that stood for a whole round trip,
    /// else by the acknowledgments of packets that left together; elsewhere by the fastest eight packets.
    pub path_rate_bit_per_s: Option<f64>,
    /// The rate that routers have granted (TIA-1039), in IP packets, where the last data were sent at one; bit/s.
    pub granted_bit_per_s: Option<u64>,
    /// Whether the data sender opened the connection, where the handshake is in the capture.
    pub sender_opened: Option<bool>,
    /// What held it, the longest first. The times add up to the duration.
    pub limits: Vec<LimitShare>,
    /// The longest waits for new data.
    pub moments: Vec<Moment>,
    /// What was found, in a sentence.
    pub summary: String,
    /// Every interval, where they were asked for.
    #[serde(skip)]
    pub intervals: Vec<Interval>,
}
