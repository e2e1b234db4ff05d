//! The columns of `segments`.

use super::{Cells, Column, DIRECTIONS, Row, column};
use crate::{SegmentEvent, SegmentRow};
use farpath_units::Instant;

impl Row for SegmentRow {
    const COLUMNS: &'static [Column<SegmentRow>] = &[
        time!("time_ns", time, "when, since the start of the run"),
        small!(flow, "", "number of the flow within the run"),
        word!(
            event,
            SegmentEvent,
            "sent by one end, received by the other, dropped on the way, or passed: let on by a flow router, if it carries QoS Structures"
        ),
        column(
            "cause",
            "",
            "why it was dropped; of what a simulated sender sends again, why it does: timeout, fast-retransmit, loss-probe, or repair for the rest of what one of the first two began",
            Cells::MaybeText(
                |row| row.cause.as_deref(),
                |row, cause| row.cause = Some(cause.to_owned().into()),
            ),
        ),
        column(
            "element",
            "",
            "the flow router that let it on",
            Cells::MaybeText(
                |row| row.element.as_deref(),
                |row, element| row.element = Some(element.to_owned()),
            ),
        ),
        direction!("its way over the path: forward or reverse"),
        small!(seq, "", "sequence number on the wire; it wraps at 2^32"),
        small!(ack, "", "acknowledgment number on the wire; it wraps at 2^32"),
        column(
            "len_bytes",
            "B",
            "payload",
            Cells::U64(each!(|row| u64::from(row.len)), |row, bytes| {
                row.len = bytes.try_into().ok()?;
                Some(())
            }),
        ),
        small!(window, "", "window field of the header, unscaled"),
        small!(
            flags,
            "",
            "control bits of the header: FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128"
        ),
        column(
            "size_bytes",
            "B",
            "the IP packet",
            Cells::U64(each!(|row| u64::from(row.size)), |row, bytes| {
                row.size = bytes.try_into().ok()?;
                Some(())
            }),
        ),
        column(
            "ecn",
            "",
            "ECN field of the IP header: not ECN-capable 0, ECT(1) 1, ECT(0) 2, CE 3",
            Cells::MaybeU64(each!(|row| row.ecn.map(u64::from)), |row, bits| {
                row.ecn = Some(bits.try_into().ok()?);
                Some(())
            }),
        ),
        column(
            "dscp",
            "",
            "differentiated services codepoint, as explicit rate sets it: 3 for a signal, 7 for data by a grant, else 0",
            Cells::MaybeU64(each!(|row| row.dscp.map(u64::from)), |row, bits| {
                row.dscp = Some(bits.try_into().ok()?);
                Some(())
            }),
        ),
        column(
            "qos",
            "",
            "the QoS Structures that it carries, in hexadecimal: see `farpath explicit-rate qos decode`",
            Cells::MaybeText(
                |row| row.qos.as_deref(),
                |row, structures| row.qos = Some(structures.to_owned()),
            ),
        ),
        column(
            "sack",
            "",
            "SACK blocks, first sequence number and the one after the last",
            Cells::Ranges(|row| &row.sack, |row, start, end| row.sack.push((start, end))),
        ),
        column(
            "tsval",
            "",
            "TSval of the timestamps option",
            Cells::MaybeU64(each!(|row| row.timestamps.map(|(tsval, _)| u64::from(tsval))), |row, value| {
                row.timestamps.get_or_insert_default().0 = value.try_into().ok()?;
                Some(())
            }),
        ),
        column(
            "tsecr",
            "",
            "TSecr of the timestamps option",
            Cells::MaybeU64(each!(|row| row.timestamps.map(|(_, tsecr)| u64::from(tsecr))), |row, value| {
                row.timestamps.get_or_insert_default().1 = value.try_into().ok()?;
                Some(())
            }),
        ),
        column(
            "retransmission",
            "",
            "whether the sender had sent its payload before",
            Cells::Bool(each!(|row| u8::from(row.retransmission)), |row, again| row.retransmission = again),
        ),
    ];

    fn blank() -> SegmentRow {
        SegmentRow {
            time: Instant::ZERO,
            flow: 0,
            event: SegmentEvent::Sent,
            cause: None,
            element: None,
            direction: "forward",
            seq: 0,
            ack: 0,
            len: 0,
            window: 0,
            flags: 0,
            size: 0,
            ecn: None,
            dscp: None,
            qos: None,
            sack: Vec::new(),
            timestamps: None,
            retransmission: false,
        }
    }
}
