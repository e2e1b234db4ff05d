//! The columns of `flows`.

use super::{Cells, Column, DIRECTIONS, Row, column};
use crate::{FlowRow, Outcome};
use farpath_units::{Bytes, Duration, Instant};

/// A count of messages, of a flow that may be no stream.
macro_rules! messages_or_not {
    ($name:literal, $field:ident, $about:literal) => {
        column(
            $name,
            "",
            $about,
            Cells::MaybeF64(|row| row.stream.$field, |row, count| row.stream.$field = Some(count)),
        )
    };
}

/// A duration, of a flow that may be no stream.
macro_rules! stream_time_or_not {
    ($name:literal, $field:ident, $about:literal) => {
        column(
            $name,
            "ns",
            $about,
            Cells::MaybeU64(each!(|row| row.stream.$field.map(Duration::as_nanos)), |row, ns| {
                row.stream.$field = Some(Duration::from_nanos(ns));
                Some(())
            }),
        )
    };
}

/// Bytes, of a flow that may be no stream.
macro_rules! stream_bytes_or_not {
    ($name:literal, $field:ident, $about:literal) => {
        column(
            $name,
            "B",
            $about,
            Cells::MaybeU64(each!(|row| row.stream.$field.map(|bytes| bytes.0)), |row, bytes| {
                row.stream.$field = Some(Bytes(bytes));
                Some(())
            }),
        )
    };
}

impl Row for FlowRow {
    const COLUMNS: &'static [Column<FlowRow>] = &[
        small!(flow, "", "number of the flow within the run, from 0"),
        direction!("way of the data over the path: forward or reverse"),
        word!(
            outcome,
            Outcome,
            "how it ended: completed, connect_timed_out, aborted, horizon, void or stuck"
        ),
        text!(detail, "what happened, where the outcome alone does not say; else empty"),
        time!("start_ns", start, "when the opener sent the first SYN, since the start of the run"),
        time_or_not!("ended_at_ns", ended_at, "when it ended so, since the start of the run"),
        known_or_not!(
            opened,
            "",
            "1 where the end that opens took the connection as open, else 0; of a prediction, the probability"
        ),
        known_or_not!(
            completed,
            "",
            "1 where the receiving application has read every byte, else 0; of a prediction, the probability"
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
        column(
            "explicit_rate",
            "",
            "what came of asking flow routers for a rate; null where nobody asked",
            Cells::MaybeText(
                |row| row.explicit_rate.as_deref(),
                |row, text| row.explicit_rate = Some(text.to_owned().into()),
            ),
        ),
        known_or_not!(granted_bit_per_s, "bit/s", "rate of IP packets that was granted, at the end"),
        messages_or_not!("messages", messages, "messages of a stream that have arrived in full"),
        messages_or_not!(
            "late_messages",
            late_messages,
            "of these, those that came after they were to be played"
        ),
        stream_time_or_not!(
            "max_lateness_ns",
            max_lateness,
            "from when a message was due to its arrival, at the most"
        ),
        stream_time_or_not!("final_lateness_ns", final_lateness, "the same of the last message that arrived"),
        stream_time_or_not!(
            "max_write_lag_ns",
            max_write_lag,
            "from when a message was due until TCP had taken all of it, at the most"
        ),
        stream_bytes_or_not!(
            "peak_backlog_bytes",
            peak_backlog,
            "most bytes of a stream that were due and had never left TCP"
        ),
        stream_bytes_or_not!(
            "delayed_bytes",
            delayed,
            "by how much a stream fell behind its rate, at the most"
        ),
        stream_time_or_not!(
            "time_to_timely_ns",
            time_to_timely,
            "the longest time of messages too late to be played; null where the last one is"
        ),
        stream_time_or_not!(
            "stall_time_ns",
            stall_time,
            "how long a player that waits for late messages stood still"
        ),
        messages_or_not!(
            "discarded_messages",
            discarded_messages,
            "messages that a player which does not wait left out"
        ),
    ];

    fn blank() -> FlowRow {
        FlowRow::new(0, "forward", Outcome::Void, Bytes::ZERO)
    }
}
