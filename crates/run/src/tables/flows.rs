//! One row per flow.

use super::DIRECTIONS;
use crate::Outcome;
use crate::schema::{CauseCount, Column, Row};
use crate::summary::{aggregate_goodput, drops, jain_index, transfer_time_of_completed};
use farpath_units::{Bytes, Duration, Instant};
use std::borrow::Cow;

table! {
    summary FlowStatistics;

    /// One flow: how it ended, how long it took, and what it cost.
    ///
    /// A closed form knows few of these; what an engine does not know is `None`.
    #[derive(Debug, Clone, PartialEq)]
    pub struct FlowRow {
        /// Number of the flow within the run, from 0.
        pub flow: u32,
        /// Way of the data over the path: forward or reverse.
        #[blank(DIRECTIONS[0])]
        #[cells(direction_cells!())]
        pub direction: &'static str,
        /// How it ended: completed, connect_timed_out, aborted, horizon, void, stuck or unknown.
        #[blank(Outcome::Void)]
        pub outcome: Outcome,
        /// What happened, where the outcome alone does not say ("reset by peer"); else empty.
        pub detail: String,
        /// When the opener sent the first SYN, since the start of the run.
        #[column(name = "start_ns")]
        pub start: Instant,
        /// When it ended so, since the start of the run.
        #[column(name = "ended_at_ns")]
        pub ended_at: Option<Instant>,
        /// 1 where the end that opens took the connection as open, else 0; of a prediction, the probability.
        #[column(later = true)]
        pub opened: Option<f64>,
        /// 1 where the receiving application has read every byte, else 0; of a prediction, the probability.
        #[column(later = true)]
        pub completed: Option<f64>,
        /// From the start until the sender may send data.
        #[column(name = "connect_time_ns")]
        #[summary(connect_time_s)]
        pub connect_time: Option<Duration>,
        /// From the start until the receiving application has read the last byte; published as "response time".
        #[column(name = "transfer_time_ns")]
        #[summary(transfer_time_s = transfer_time_of_completed)]
        pub transfer_time: Option<Duration>,
        /// Size of the transfer.
        pub bytes: Bytes,
        /// Bytes that the receiving application has read.
        pub bytes_read: Bytes,
        /// New application bits per second of transfer time.
        #[column(unit = "bit/s")]
        #[summary(goodput_bit_per_s, aggregate_goodput_bit_per_s = aggregate_goodput, jain_index = jain_index)]
        pub goodput_bit_per_s: Option<f64>,
        /// TCP payload bits sent, retransmissions included, per second of transfer time.
        #[column(unit = "bit/s")]
        pub throughput_bit_per_s: Option<f64>,
        /// Goodput over throughput.
        #[summary(efficiency)]
        pub efficiency: Option<f64>,
        /// Segments with payload that the sender sent, retransmissions included.
        #[summary(data_segments)]
        pub data_segments: Option<f64>,
        /// Segments with payload that the sender sent again.
        #[summary(retransmissions)]
        pub retransmissions: Option<f64>,
        /// Retransmissions whose payload the receiver already had.
        #[summary(spurious_retransmissions)]
        pub spurious_retransmissions: Option<f64>,
        /// Expirations of the sender's retransmission timer, for data only.
        #[summary(timeouts)]
        pub timeouts: Option<f64>,
        /// Entries into fast retransmit.
        #[summary(fast_retransmits)]
        pub fast_retransmits: Option<f64>,
        /// Duplicate ACKs that the sender received.
        pub dup_acks: Option<f64>,
        /// Tail loss probes that the sender sent (RFC 8985 §7).
        #[column(later = true)]
        pub loss_probes: Option<f64>,
        /// Loss recoveries that the sender found to be spurious and undid.
        #[column(later = true)]
        pub undos: Option<f64>,
        /// Reports of duplicate segments (D-SACK, RFC 2883) that the sender received.
        #[column(later = true)]
        pub dsacks: Option<f64>,
        /// Segments without payload that the receiver sent.
        pub pure_acks: Option<f64>,
        /// SYNs that the opener sent.
        pub syns: Option<f64>,
        /// SYN/ACKs that the other end sent.
        pub synacks: Option<f64>,
        /// Packets of the flow dropped on the way, in the direction of the data.
        #[summary(drops = drops)]
        pub drops_data_direction: Option<f64>,
        /// Packets of the flow dropped on the way, in the direction of the ACKs.
        pub drops_ack_direction: Option<f64>,
        /// Packets of the flow dropped on the way by cause, sorted by it; causes that did not occur are left out.
        pub drops_by_cause: Vec<CauseCount>,
        /// Packets that reached the receiver with a congestion mark (CE).
        #[column(later = true)]
        pub ecn_marks: Option<f64>,
        /// Reductions of the congestion window for an echo of such marks.
        #[column(later = true)]
        pub ecn_responses: Option<f64>,
        /// Congestion window at the end.
        #[column(name = "final_cwnd_bytes")]
        pub final_cwnd: Option<Bytes>,
        /// Congestion window averaged over the time of the transfer.
        #[column(name = "mean_cwnd_bytes", unit = "B")]
        pub mean_cwnd: Option<f64>,
        /// Smallest RTT sample.
        #[column(name = "min_rtt_ns")]
        pub min_rtt: Option<Duration>,
        /// Smoothed RTT at the end.
        #[column(name = "srtt_ns")]
        pub srtt: Option<Duration>,
        /// Retransmission timeout at the end.
        #[column(name = "rto_ns")]
        pub rto: Option<Duration>,
        /// What came of asking flow routers for a rate; null where nobody asked.
        #[column(later = true)]
        pub explicit_rate: Option<Cow<'static, str>>,
        /// Rate of IP packets that was granted, at the end.
        #[column(unit = "bit/s", later = true)]
        pub granted_bit_per_s: Option<f64>,
    }

    /// Round trips that the sender measured, and how long its packets waited in the queues of the path. Percentiles are within 1 %.
    ///
    /// A packet's queueing delay is the time from when it joins a queue to when the link begins to send it, summed over the queues
    /// that it passes. It counts where the packet arrives at the end that receives the data.
    #[derive(Debug, Clone, Copy, PartialEq, Default)]
    pub struct DelayFigures in delays {
        /// RTT samples, in the mean.
        #[column(name = "mean_rtt_ns", later = true)]
        #[summary(mean_rtt_s)]
        pub mean_rtt: Option<Duration>,
        /// 95th percentile of the RTT samples.
        #[column(name = "p95_rtt_ns", later = true)]
        #[summary(p95_rtt_s)]
        pub p95_rtt: Option<Duration>,
        /// 99th percentile of the RTT samples.
        #[column(name = "p99_rtt_ns", later = true)]
        #[summary(p99_rtt_s)]
        pub p99_rtt: Option<Duration>,
        /// Queueing delay of the packets in the direction of the data, in the mean; null on a path without a queue.
        #[column(name = "mean_queueing_delay_ns", later = true)]
        #[summary(mean_queueing_delay_s)]
        pub mean_queueing_delay: Option<Duration>,
        /// 95th percentile of the queueing delay.
        #[column(name = "p95_queueing_delay_ns", later = true)]
        #[summary(p95_queueing_delay_s)]
        pub p95_queueing_delay: Option<Duration>,
        /// 99th percentile of the queueing delay.
        #[column(name = "p99_queueing_delay_ns", later = true)]
        #[summary(p99_queueing_delay_s)]
        pub p99_queueing_delay: Option<Duration>,
    }

    /// What the messages of a flow say of it; nothing of a flow that is no stream.
    ///
    /// The first message that arrives sets the receiver's clock: a later one is late by as much as it comes after its own
    /// place behind the first.
    #[derive(Debug, Clone, Copy, PartialEq, Default)]
    pub struct StreamFigures in stream {
        /// Messages of a stream that have arrived in full.
        #[column(later = true)]
        pub messages: Option<f64>,
        /// Messages that arrived after they were to be played.
        #[column(later = true)]
        pub late_messages: Option<f64>,
        /// Longest time from when a message was due to its arrival.
        #[column(name = "max_lateness_ns", later = true)]
        #[summary(max_lateness_s)]
        pub max_lateness: Option<Duration>,
        /// Time from when the last message that arrived was due to its arrival.
        #[column(name = "final_lateness_ns", later = true)]
        #[summary(final_lateness_s)]
        pub final_lateness: Option<Duration>,
        /// Longest time from when a message was due until TCP had taken all of it.
        #[column(name = "max_write_lag_ns", later = true)]
        #[summary(max_write_lag_s)]
        pub max_write_lag: Option<Duration>,
        /// Most bytes of a stream that were due and had never left TCP: in the send buffer, and before it.
        #[column(name = "peak_backlog_bytes", later = true)]
        pub peak_backlog: Option<Bytes>,
        /// Most bytes by which a stream fell behind its rate.
        #[column(name = "delayed_bytes", later = true)]
        #[summary(delayed_bytes)]
        pub delayed: Option<Bytes>,
        /// Longest time during which messages came too late to be played, from when the first of them should have been played to
        /// the next one that was in time; null where the last one was late.
        #[column(name = "time_to_timely_ns", later = true)]
        #[summary(time_to_timely_s)]
        pub time_to_timely: Option<Duration>,
        /// How long a player that waits for late messages stood still.
        #[column(name = "stall_time_ns", later = true)]
        pub stall_time: Option<Duration>,
        /// Messages that a player which does not wait left out.
        #[column(later = true)]
        pub discarded_messages: Option<f64>,
        /// Messages that the sending program left out, for they were older than their `lifetime`.
        #[column(later = true)]
        #[summary(expired_messages)]
        pub expired_messages: Option<f64>,
        /// Time from when a message was due until its answer had been read: half of those that were answered took no longer.
        #[column(name = "median_response_ns", later = true)]
        #[summary(median_response_s)]
        pub median_response: Option<Duration>,
        /// The longest of them.
        #[column(name = "max_response_ns", later = true)]
        #[summary(max_response_s)]
        pub max_response: Option<Duration>,
    }

    /// Whose a flow is that programs of the user have made; nothing of a transfer.
    ///
    /// It is a connection, or an exchange of datagrams, by its packets on the path. Its data is what the host sent that sent more
    /// bytes, and what that was to send nobody says: `bytes` are those that it did send, and they are read when they have come to
    /// the other host, TCP's in order. The transfer time is from the first packet to the last of these bytes. It is completed when
    /// TCP has said that this was all, and all of it has come; of datagrams that is `unknown`.
    #[derive(Debug, Clone, PartialEq, Default)]
    pub struct ProgramFigures in program {
        /// Of programs: tcp, udp, icmp, icmpv6, or the number of another protocol.
        #[column(later = true)]
        pub protocol: Option<Cow<'static, str>>,
        /// Address and port of the host that sent the first packet; of echoes their identifier in place of the port.
        #[column(later = true)]
        pub opener: Option<Cow<'static, str>>,
        /// Address and port of the other host.
        #[column(later = true)]
        pub peer: Option<Cow<'static, str>>,
        /// Bytes that a program sent against the way of the data.
        #[column(name = "bytes_back", later = true)]
        pub back: Option<Bytes>,
    }
}

impl FlowRow {
    /// A flow that ended so, of which nothing else is known yet: it starts at zero, and nothing of it was read.
    pub fn new(flow: u32, direction: &'static str, outcome: Outcome, bytes: Bytes) -> FlowRow {
        FlowRow {
            flow,
            direction,
            outcome,
            opened: match outcome {
                Outcome::Completed => Some(1.0),
                Outcome::ConnectTimedOut => Some(0.0),
                Outcome::Aborted | Outcome::Horizon | Outcome::Void | Outcome::Stuck | Outcome::Unknown => {
                    None
                }
            },
            completed: match outcome {
                Outcome::Completed => Some(1.0),
                Outcome::ConnectTimedOut | Outcome::Aborted | Outcome::Horizon | Outcome::Stuck => Some(0.0),
                Outcome::Void | Outcome::Unknown => None,
            },
            bytes,
            ..FlowRow::blank()
        }
    }
}

/// A number of flows, by the name of its column. One of times is in s, and may be named so: `srtt_s` for `srtt_ns`.
#[derive(Clone, Copy)]
pub struct FlowNumber(&'static Column<FlowRow>);

impl FlowNumber {
    /// The column of this name; `None` where there is none, or where it holds no numbers.
    pub fn from_name(name: &str) -> Option<FlowNumber> {
        let is = |column: &&Column<FlowRow>| {
            let in_s = column.name.strip_suffix("ns").filter(|_| column.unit == "ns");
            column.name == name || in_s.is_some_and(|stem| name.strip_suffix('s') == Some(stem))
        };
        FlowRow::COLUMNS.iter().find(is).filter(|column| column.is_number()).map(FlowNumber)
    }

    /// `s`, `B` or `bit/s`; empty for counts and ratios.
    pub fn unit(self) -> &'static str {
        if self.0.unit == "ns" { "s" } else { self.0.unit }
    }

    /// Its value of a flow; `None` where it is not known.
    pub fn value(self, flow: &FlowRow) -> Option<f64> {
        self.0.number(flow)
    }
}
