//! The columns of `flows`.

use super::{Cells, Column, DIRECTIONS, Row, column};
use crate::{FlowRow, Outcome};
use farpath_units::{Bytes, Duration, Instant};

impl Row for FlowRow {
    const COLUMNS: &'static [Column<FlowRow>] = &[
        small!(flow, "", "number of the flow within the run, from 0"),
        direction!("way of the data over the path: forward or reverse"),
        word!(outcome, Outcome, "how it ended: completed, connect_timed_out, aborted, horizon or void"),
        text!(detail, "what happened, where the outcome alone does not say; else empty"),
        time!("start_ns", start, "when the opener sent the first SYN, since the start of the run"),
        column(
            "ended_at_ns",
            "ns",
            "when it ended so, since the start of the run",
            Cells::MaybeU64(each!(|row| row.ended_at.map(Instant::as_nanos)), |row, ns| {
                row.ended_at = Some(Instant::from_nanos(ns));
                Some(())
            }),
        ),
        duration_or_not!("connect_time_ns", connect_time, "from the start until the sender may send data"),
        duration_or_not!(
            "transfer_time_ns",
            transfer_time,
            "from the start until the receiving application has read the last byte"
        ),
        bytes!(bytes, "size of the transfer"),
        bytes!(bytes_read, "bytes that the receiving application has read"),
        known_or_not!(goodput_bit_per_s, "bit/s", "new application bits per second of transfer time"),
        known_or_not!(
            throughput_bit_per_s,
            "bit/s",
            "TCP payload bits sent, retransmissions included, per second of transfer time"
        ),
        known_or_not!(efficiency, "", "goodput over throughput"),
        known_or_not!(data_segments, "", "segments with payload sent, retransmissions included"),
        known_or_not!(retransmissions, "", "of these, sent again"),
        known_or_not!(spurious_retransmissions, "", "of these, with payload that the receiver already had"),
        known_or_not!(timeouts, "", "expirations of the sender's retransmission timer, data only"),
        known_or_not!(fast_retransmits, "", "entries into fast retransmit"),
        known_or_not!(dup_acks, "", "duplicate ACKs that the sender received"),
        known_or_not!(loss_probes, "", "tail loss probes that the sender sent"),
        known_or_not!(undos, "", "losses that the sender found to be none, and whose cost it took back"),
        known_or_not!(dsacks, "", "reports of duplicates (D-SACK) that the sender received"),
        known_or_not!(pure_acks, "", "segments without payload that the receiver sent"),
        known_or_not!(syns, "", "SYNs that the opener sent"),
        known_or_not!(synacks, "", "SYN/ACKs that the other end sent"),
        known_or_not!(drops_data_direction, "", "packets dropped on the way, in the direction of the data"),
        known_or_not!(drops_ack_direction, "", "packets dropped on the way, in the direction of the ACKs"),
        column(
            "drops_by_cause",
            "",
            "of all these drops, how many by which cause; causes that did not occur are left out",
            Cells::Causes(
                |row| &row.drops_by_cause,
                |row, cause, packets| row.drops_by_cause.push((cause.to_owned().into(), packets)),
            ),
        ),
        known_or_not!(ecn_marks, "", "packets that reached the receiver with a mark of congestion (CE)"),
        known_or_not!(ecn_responses, "", "reductions of the congestion window for an echo of such marks"),
        column(
            "final_cwnd_bytes",
            "B",
            "congestion window at the end",
            Cells::MaybeU64(each!(|row| row.final_cwnd.map(|cwnd| cwnd.0)), |row, bytes| {
                row.final_cwnd = Some(Bytes(bytes));
                Some(())
            }),
        ),
        column(
            "mean_cwnd_bytes",
            "B",
            "congestion window averaged over the time of the transfer",
            Cells::MaybeF64(|row| row.mean_cwnd, |row, bytes| row.mean_cwnd = Some(bytes)),
        ),
        duration_or_not!("min_rtt_ns", min_rtt, "smallest RTT sample"),
        duration_or_not!("srtt_ns", srtt, "smoothed RTT at the end"),
        duration_or_not!("rto_ns", rto, "retransmission timeout at the end"),
    ];

    fn blank() -> FlowRow {
        FlowRow::new(0, "forward", Outcome::Horizon, Bytes::ZERO)
    }
}
