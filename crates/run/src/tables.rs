//! The rows of a run's tables. Times are nanoseconds from the run's start, sizes bytes.

use crate::{Outcome, StreamFigures};
use core::fmt;
use farpath_units::{Bytes, Duration, Instant};
use std::borrow::Cow;

/// One flow: how it ended, how long it took, and what it cost.
///
/// A closed form knows few of these; what an engine does not know is `None`.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowRow {
    /// Number within the run, from 0.
    pub flow: u32,
    /// `forward` where the data goes the path's forward way, else `reverse`.
    pub direction: &'static str,
    /// How it ended.
    pub outcome: Outcome,
    /// When it ended that way.
    pub ended_at: Option<Instant>,
    /// What happened, in a few words, where the outcome alone does not say ("reset by peer").
    pub detail: String,
    /// When its opener sent the first SYN.
    pub start: Instant,
    /// Whether the end that opens took the connection as open, 1 or 0; of a prediction, how likely that is.
    pub opened: Option<f64>,
    /// Whether the receiving application has read every byte, 1 or 0; of a prediction, how likely that is.
    pub completed: Option<f64>,
    /// From the start until the data sender may send data.
    pub connect_time: Option<Duration>,
    /// From the start until the receiving application has read the last byte. Published as "response time".
    pub transfer_time: Option<Duration>,
    /// Size of the transfer.
    pub bytes: Bytes,
    /// Bytes that the receiving application has read.
    pub bytes_read: Bytes,
    /// New application bytes per second of transfer time, in bit/s.
    pub goodput_bit_per_s: Option<f64>,
    /// TCP payload bytes sent, retransmissions included, per second of transfer time, in bit/s.
    pub throughput_bit_per_s: Option<f64>,
    /// Goodput over throughput.
    pub efficiency: Option<f64>,
    /// Segments with payload that the data sender sent, retransmissions included.
    pub data_segments: Option<f64>,
    /// Of these, sent again.
    pub retransmissions: Option<f64>,
    /// Of the retransmissions, those whose payload the receiver already had.
    pub spurious_retransmissions: Option<f64>,
    /// Expirations of the data sender's retransmission timer (data only).
    pub timeouts: Option<f64>,
    /// Entries into fast retransmit.
    pub fast_retransmits: Option<f64>,
    /// Duplicate ACKs that the data sender received.
    pub dup_acks: Option<f64>,
    /// Tail loss probes that the data sender sent (RFC 8985 §7).
    pub loss_probes: Option<f64>,
    /// Losses that the data sender found to be none, and whose cost it took back.
    pub undos: Option<f64>,
    /// Reports of what arrived twice (RFC 2883) that the data sender received.
    pub dsacks: Option<f64>,
    /// Segments without payload that the data receiver sent.
    pub pure_acks: Option<f64>,
    /// SYNs that the opener sent.
    pub syns: Option<f64>,
    /// SYN/ACKs that the other end sent.
    pub synacks: Option<f64>,
    /// Packets of the flow dropped on the way, in the direction of the data.
    pub drops_data_direction: Option<f64>,
    /// Packets of the flow dropped on the way, in the ACK direction.
    pub drops_ack_direction: Option<f64>,
    /// Of all these drops: `loss` 3, `queue-overflow` 1 ...; sorted by cause, absent causes left out.
    pub drops_by_cause: Vec<(Cow<'static, str>, u64)>,
    /// Packets of the flow that reached the data receiver with a mark of congestion (CE).
    pub ecn_marks: Option<f64>,
    /// Reductions of the congestion window for an echo of such marks.
    pub ecn_responses: Option<f64>,
    /// Congestion window at the end.
    pub final_cwnd: Option<Bytes>,
    /// Congestion window averaged over the time of the transfer.
    pub mean_cwnd: Option<f64>,
    /// Smallest RTT sample.
    pub min_rtt: Option<Duration>,
    /// Smoothed RTT at the end.
    pub srtt: Option<Duration>,
    /// Retransmission timeout at the end.
    pub rto: Option<Duration>,
    /// What came of asking flow routers for a rate; nothing where nobody asked.
    pub explicit_rate: Option<Cow<'static, str>>,
    /// The rate that was granted, at the end: IP packets, bit/s.
    pub granted_bit_per_s: Option<f64>,
    /// How its messages came, where it is a stream of them.
    pub stream: StreamFigures,
}

/// One direction of a flow router: what it has decided, and how long its queue was.
#[derive(Debug, Clone, PartialEq)]
pub struct RouterRow {
    /// Name of the element.
    pub element: String,
    /// `forward` or `reverse`: the line that it grants.
    pub direction: &'static str,
    /// Requests, renegotiations and resent requests.
    pub requests: u64,
    /// Of these, how many left with a lower Available Rate than they came with.
    pub lowered: u64,
    /// Guaranteed and Maximum Rates admitted, renegotiations included.
    pub admitted: u64,
    /// The same refused.
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
    /// Structures that named a flow that was not known.
    pub unknown: u64,
    /// Answers that said more than was granted: old ones, or lies.
    pub above_grant: u64,
    /// Requests that passed as they came because there was no room for more flows.
    pub full: u64,
    /// IP bytes that waited, averaged over time.
    pub mean_backlog: f64,
    /// Their standard deviation over time.
    pub backlog_deviation: f64,
    /// The most that ever waited.
    pub max_backlog: Bytes,
}

/// For what and how long the air between two radios was used.
#[derive(Debug, Clone, PartialEq)]
pub struct AirRow {
    /// Name of the element.
    pub element: String,
    /// Which of its hops, from 0 at the near end.
    pub hop: u32,
    /// `forward` or `reverse`, where each has a channel of its own.
    pub direction: Option<&'static str>,
    /// For what: `data`, `ack`, `poll`, `link-ack`, `turnaround`, `damaged`, `collision`, `backoff` or `idle`.
    pub what: &'static str,
    /// How long.
    pub time: Duration,
    /// What that took of the transceivers, in J, where it is known what they draw.
    pub energy_j: Option<f64>,
}

impl FlowRow {
    /// A flow that ended so, of which nothing else is known yet: it starts at zero, and nothing of it was read.
    pub fn new(flow: u32, direction: &'static str, outcome: Outcome, bytes: Bytes) -> FlowRow {
        FlowRow {
            flow,
            direction,
            outcome,
            ended_at: None,
            detail: String::new(),
            start: Instant::ZERO,
            opened: match outcome {
                Outcome::Completed => Some(1.0),
                Outcome::ConnectTimedOut => Some(0.0),
                Outcome::Aborted | Outcome::Horizon | Outcome::Void | Outcome::Stuck => None,
            },
            completed: match outcome {
                Outcome::Completed => Some(1.0),
                Outcome::ConnectTimedOut | Outcome::Aborted | Outcome::Horizon | Outcome::Stuck => Some(0.0),
                Outcome::Void => None,
            },
            connect_time: None,
            transfer_time: None,
            bytes,
            bytes_read: Bytes::ZERO,
            goodput_bit_per_s: None,
            throughput_bit_per_s: None,
            efficiency: None,
            data_segments: None,
            retransmissions: None,
            spurious_retransmissions: None,
            timeouts: None,
            fast_retransmits: None,
            dup_acks: None,
            loss_probes: None,
            undos: None,
            dsacks: None,
            pure_acks: None,
            syns: None,
            synacks: None,
            drops_data_direction: None,
            drops_ack_direction: None,
            drops_by_cause: Vec::new(),
            ecn_marks: None,
            ecn_responses: None,
            final_cwnd: None,
            mean_cwnd: None,
            min_rtt: None,
            srtt: None,
            rto: None,
            explicit_rate: None,
            granted_bit_per_s: None,
            stream: StreamFigures::default(),
        }
    }
}

/// What a point of a series is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Metric {
    /// Congestion window, bytes.
    Cwnd,
    /// Slow start threshold, bytes.
    Ssthresh,
    /// Sent and not cumulatively acknowledged (RFC 5681 §2), bytes.
    FlightSize,
    /// Estimate of what is still in the network (RFC 6675 §2), bytes.
    Pipe,
    /// One RTT sample, ns.
    RttSample,
    /// Smoothed RTT, ns.
    Srtt,
    /// RTT variation, ns.
    Rttvar,
    /// Retransmission timeout with its back-off, ns.
    Rto,
    /// Window announced by the receiver, bytes.
    Rwnd,
    /// Bytes that the receiving application has read.
    Delivered,
    /// Cumulatively acknowledged bytes, at the sender.
    Acked,
    /// Longest queue on the path in the data direction, bytes.
    Queue,
    /// Segments that the data sender has sent again by then, from the first one on.
    Retransmissions,
}

impl Metric {
    /// As files and tables spell them, in the order of their declaration.
    pub(crate) const NAMES: [&'static str; 13] = [
        "cwnd",
        "ssthresh",
        "flight_size",
        "pipe",
        "rtt_sample",
        "srtt",
        "rttvar",
        "rto",
        "rwnd",
        "delivered",
        "acked",
        "queue",
        "retransmissions",
    ];

    const ALL: [Metric; 13] = [
        Metric::Cwnd,
        Metric::Ssthresh,
        Metric::FlightSize,
        Metric::Pipe,
        Metric::RttSample,
        Metric::Srtt,
        Metric::Rttvar,
        Metric::Rto,
        Metric::Rwnd,
        Metric::Delivered,
        Metric::Acked,
        Metric::Queue,
        Metric::Retransmissions,
    ];

    /// The metric that [`name`](Metric::name) spells so.
    pub fn from_name(name: &str) -> Option<Metric> {
        Metric::ALL.into_iter().find(|metric| metric.name() == name)
    }

    /// As files and tables spell it.
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// `B` or `ns`; nothing for counts.
    pub const fn unit(self) -> &'static str {
        match self {
            Metric::RttSample | Metric::Srtt | Metric::Rttvar | Metric::Rto => "ns",
            Metric::Retransmissions => "",
            _ => "B",
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One value of a series; recorded when it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeriesRow {
    /// When.
    pub time: Instant,
    /// Which flow.
    pub flow: u32,
    /// What.
    pub metric: Metric,
    /// How much, in the metric's unit.
    pub value: u64,
}

/// What happened to a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SegmentEvent {
    /// It left an end.
    Sent,
    /// It reached the other.
    Received,
    /// It was dropped on the way.
    Dropped,
    /// A flow router has let it on, with the QoS Structures that it carries then. Others pass unseen.
    Passed,
}

impl SegmentEvent {
    /// As files and tables spell them, in the order of their declaration.
    pub(crate) const NAMES: [&'static str; 4] = ["sent", "received", "dropped", "passed"];

    /// The event that [`name`](SegmentEvent::name) spells so.
    pub fn from_name(name: &str) -> Option<SegmentEvent> {
        [SegmentEvent::Sent, SegmentEvent::Received, SegmentEvent::Dropped, SegmentEvent::Passed]
            .into_iter()
            .find(|event| event.name() == name)
    }

    /// As files and tables spell it.
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// One segment at one end or at a flow router, or one drop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentRow {
    /// When.
    pub time: Instant,
    /// Which flow.
    pub flow: u32,
    /// What happened.
    pub event: SegmentEvent,
    /// Why it was dropped, or sent again.
    pub cause: Option<Cow<'static, str>>,
    /// Which flow router let it on.
    pub element: Option<String>,
    /// `forward` or `reverse`: its way over the path.
    pub direction: &'static str,
    /// Sequence number on the wire.
    pub seq: u32,
    /// Acknowledgment number on the wire.
    pub ack: u32,
    /// Payload bytes.
    pub len: u32,
    /// Window field, unscaled.
    pub window: u16,
    /// Control bits, as in the header.
    pub flags: u8,
    /// Bytes of the IP packet.
    pub size: u32,
    /// The ECN field of its header.
    pub ecn: Option<u8>,
    /// The differentiated services codepoint of its header, as explicit rate sets it.
    pub dscp: Option<u8>,
    /// The QoS Structures that it carries, as the payload of an IPv4 packet, in hexadecimal.
    pub qos: Option<String>,
    /// SACK blocks, start and end sequence number.
    pub sack: Vec<(u32, u32)>,
    /// TSval and TSecr.
    pub timestamps: Option<(u32, u32)>,
    /// Whether the sender had sent its payload before.
    pub retransmission: bool,
}
