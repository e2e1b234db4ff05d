//! One row per segment at one end or at a flow router, or per drop.

use super::DIRECTIONS;
use crate::schema::Cells;
use farpath_units::Instant;
use std::borrow::Cow;

words! {
    /// What happened to a segment.
    pub enum SegmentEvent {
        /// It left an end.
        Sent = "sent",
        /// It reached the other.
        Received = "received",
        /// It was dropped on the way.
        Dropped = "dropped",
        /// A flow router has let it on, with the QoS Structures that it carries then. Others pass unseen.
        Passed = "passed",
    }
}

/// How one of TSval and TSecr is stored.
macro_rules! timestamp_cells {
    ($place:tt) => {
        Cells::MaybeU64(
            |rows, cells| {
                cells.extend(rows.iter().map(|row| row.timestamps.map(|both| u64::from(both.$place))))
            },
            |row, value| {
                row.timestamps.get_or_insert_default().$place = value.try_into().ok()?;
                Some(())
            },
        )
    };
}

table! {
    /// One segment at one end or at a flow router, or one drop.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct SegmentRow {
        /// When, since the start of the run.
        #[column(name = "time_ns")]
        pub time: Instant,
        /// Number of the flow within the run.
        pub flow: u32,
        /// What happened: sent by one end, received by the other, dropped on the way, or passed: let on by a flow router, if it
        /// carries QoS Structures.
        #[blank(SegmentEvent::Sent)]
        pub event: SegmentEvent,
        /// Why it was dropped; of what a simulated sender sends again, why it does: timeout, fast-retransmit, loss-probe, or repair
        /// for the rest of what one of the first two began.
        pub cause: Option<Cow<'static, str>>,
        /// The flow router that let it on.
        #[column(later = true)]
        pub element: Option<String>,
        /// Its way over the path: forward or reverse.
        #[blank(DIRECTIONS[0])]
        #[cells(direction_cells!())]
        pub direction: &'static str,
        /// Sequence number on the wire; it wraps at 2^32.
        pub seq: u32,
        /// Acknowledgment number on the wire; it wraps at 2^32.
        pub ack: u32,
        /// Payload.
        #[column(name = "len_bytes", unit = "B")]
        pub len: u32,
        /// Window field of the header, unscaled.
        pub window: u16,
        /// Control bits of the header: FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128.
        pub flags: u8,
        /// The IP packet.
        #[column(name = "size_bytes", unit = "B")]
        pub size: u32,
        /// ECN field of the IP header: not ECN-capable 0, ECT(1) 1, ECT(0) 2, CE 3.
        #[column(later = true)]
        pub ecn: Option<u8>,
        /// Differentiated services codepoint, as explicit rate sets it: 3 for a signal, 7 for data by a grant, else 0.
        #[column(later = true)]
        pub dscp: Option<u8>,
        /// The QoS Structures that it carries, in hexadecimal: see `farpath explicit-rate qos decode`.
        #[column(later = true)]
        pub qos: Option<String>,
        /// SACK blocks, first sequence number and the one after the last.
        pub sack: Vec<(u32, u32)>,
        /// TSval of the timestamps option.
        #[column(name = "tsval")]
        #[cells(timestamp_cells!(0))]
        #[also(name = "tsecr", about = "TSecr of the timestamps option", cells = timestamp_cells!(1))]
        pub timestamps: Option<(u32, u32)>,
        /// Whether the sender had sent its payload before.
        pub retransmission: bool,
    }
}
