//! What changed over time: one row per new value, and one per message of a stream.

use crate::schema::Cells;
use farpath_units::Instant;

words! {
    /// What a point of a series is.
    pub enum Metric {
        /// Congestion window.
        Cwnd = "cwnd",
        /// Slow start threshold.
        Ssthresh = "ssthresh",
        /// Bytes sent and not cumulatively acknowledged (RFC 5681 §2).
        FlightSize = "flight_size",
        /// Estimate of what is still in the network (RFC 6675 §2).
        Pipe = "pipe",
        /// One RTT sample.
        RttSample = "rtt_sample",
        /// Smoothed RTT (RFC 6298).
        Srtt = "srtt",
        /// RTT variation (RFC 6298).
        Rttvar = "rttvar",
        /// Retransmission timeout with its back-off (RFC 6298).
        Rto = "rto",
        /// Window announced by the receiver.
        Rwnd = "rwnd",
        /// Bytes that the receiving application has read.
        Delivered = "delivered",
        /// Cumulatively acknowledged bytes, at the sender.
        Acked = "acked",
        /// Longest queue on the path in the direction of the data, just after the last packet came to it; that it empties is seen
        /// when the next one comes.
        Queue = "queue",
        /// Segments that the sender has sent again by then; no row before the first.
        Retransmissions = "retransmissions",
        /// What keeps a simulated sender from sending more, after it has sent what it could: repair 0, ended 1, application 2, send
        /// buffer 3, zero window 4, receive window 5, Nagle 6, slow start 7, congestion window 8, pacing 9, driver 10. Where two
        /// hold at once, the lower number.
        Limit = "limit",
        /// How long the last packet of the flow that reached the data receiver had waited in the queues of the path.
        QueueingDelay = "queueing_delay",
        /// For how long the sender had something to send or to be acknowledged (`tcpi_busy_time`): what a kernel says.
        BusyTime = "busy_time",
        /// Of this, held up by the receive window (`tcpi_rwnd_limited`).
        RwndLimited = "rwnd_limited",
        /// Of this, held up by the send buffer (`tcpi_sndbuf_limited`).
        SndbufLimited = "sndbuf_limited",
    }
}

impl Metric {
    /// `B` or `ns`; nothing for counts.
    pub const fn unit(self) -> &'static str {
        UNITS[self.unit_index() as usize]
    }

    const fn unit_index(self) -> u8 {
        match self {
            Metric::Cwnd
            | Metric::Ssthresh
            | Metric::FlightSize
            | Metric::Pipe
            | Metric::Rwnd
            | Metric::Delivered
            | Metric::Acked
            | Metric::Queue => 0,
            Metric::RttSample
            | Metric::Srtt
            | Metric::Rttvar
            | Metric::Rto
            | Metric::QueueingDelay
            | Metric::BusyTime
            | Metric::RwndLimited
            | Metric::SndbufLimited => 1,
            Metric::Retransmissions | Metric::Limit => 2,
        }
    }
}

/// The units of series.
const UNITS: [&str; 3] = ["B", "ns", ""];

table! {
    /// One value of a series; recorded when it changes.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct SeriesRow {
        /// When the value changed, since the start of the run.
        #[column(name = "time_ns")]
        pub time: Instant,
        /// Number of the flow within the run.
        pub flow: u32,
        /// What the value is.
        #[blank(Metric::Cwnd)]
        #[also(
            name = "unit",
            about = "Unit of the value: B or ns; empty for counts",
            cells = Cells::Word(
                &UNITS,
                |rows, cells| cells.extend(rows.iter().map(|row| row.metric.unit_index())),
                |_, _| Some(()),
            )
        )]
        pub metric: Metric,
        /// The new value, in the unit that the row names.
        pub value: u64,
    }
}

table! {
    /// One message of a stream. Stamps of the sender are in its clock, `arrived` is in the receiver's.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct MessageRow {
        /// Number of the flow within the run.
        pub flow: u32,
        /// Number of the message within the flow, from 0.
        pub message: u64,
        /// When the sending application had it, since the start of the run.
        #[column(name = "due_ns")]
        pub due: Instant,
        /// When TCP had taken the last byte of it; later than it was due where the send buffer was full.
        #[column(name = "written_ns")]
        pub written: Option<Instant>,
        /// When its first byte left TCP for the first time.
        #[column(name = "sent_ns")]
        pub sent: Option<Instant>,
        /// When the receiving application had read the last byte of it.
        #[column(name = "arrived_ns")]
        pub arrived: Option<Instant>,
        /// When the sending application had read the last byte of its answer; null where messages get none.
        #[column(name = "answered_ns", later = true)]
        pub answered: Option<Instant>,
    }
}
