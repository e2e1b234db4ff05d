//! What is told of a capture, as rows of tables.

use farpath_diagnose::{ConnectionReport, Interval};
use farpath_run::{ConnectionRow, DiagnosisTables, IntervalRow, LimitRow};
use farpath_units::{Bytes, Duration, Instant};
use serde_json::{Value, to_value};

/// The tables of these connections, and of the intervals of the first.
pub(super) fn tables(connections: &[ConnectionReport], intervals: &[Interval]) -> DiagnosisTables {
    let mut tables = DiagnosisTables::default();
    for (number, connection) in (0..).zip(connections) {
        tables.connections.push(row(number, connection));
        tables.limits.extend(connection.limits.iter().map(|share| LimitRow {
            connection: number,
            limit: word(to_value(share.limit)),
            time: seconds(share.time_s),
            bytes: Bytes(share.bytes),
        }));
    }
    tables.intervals.extend(intervals.iter().map(|interval| IntervalRow {
        connection: 0,
        limit: word(to_value(interval.limit)),
        from: Instant::from_nanos(interval.from_ns),
        to: Instant::from_nanos(interval.to_ns),
    }));
    tables
}

fn row(number: u64, connection: &ConnectionReport) -> ConnectionRow {
    let ConnectionReport { frames, losses, rtt_s, .. } = connection;
    let stack = |seen: &Option<farpath_diagnose::StackSeen>| {
        seen.and_then(|seen| seen.family).map(|family| word(to_value(family)))
    };
    ConnectionRow {
        connection: number,
        sender: connection.sender.to_string(),
        receiver: connection.receiver.to_string(),
        interface: connection.interface,
        vantage: word(to_value(connection.vantage)),
        start_ns: connection.start_ns.map(Instant::from_nanos),
        first_frame: frames.0,
        last_frame: frames.1,
        duration: seconds(connection.duration_s),
        bytes: Bytes(connection.bytes),
        bytes_back: Bytes(connection.bytes_back),
        data_packets: connection.data_packets,
        retransmissions: connection.retransmissions,
        repairs: losses.repairs,
        repairs_by_timeout: losses.by_timeout,
        loss_runs: losses.runs,
        dsacks: losses.dsacks,
        delayed_acks: connection.timers.delayed_acks,
        marked: connection.marked,
        mss: Bytes(connection.mss.into()),
        window: connection.window.map(Bytes),
        most_in_flight: Bytes(connection.most_in_flight),
        initial_window: connection.initial_window.map(Bytes),
        min_rtt: connection.min_rtt_s.map(seconds),
        median_rtt: rtt_s.map(|[median, ..]| seconds(median)),
        p95_rtt: rtt_s.map(|[_, most, _]| seconds(most)),
        delivered_bit_per_s: connection.delivered_bit_per_s,
        path_rate_bit_per_s: connection.path_rate_bit_per_s,
        granted_bit_per_s: connection.granted_bit_per_s,
        sender_stack: stack(&connection.sender_stack),
        receiver_stack: stack(&connection.receiver_stack),
        limit: connection.limits.first().map(|share| word(to_value(share.limit))),
        summary: connection.summary.clone(),
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_nanos((seconds * 1e9).round() as u64)
}

/// As JSON has it, so that both formats have the same words.
fn word(value: serde_json::Result<Value>) -> String {
    match value.expect("plain data") {
        Value::String(word) => word,
        other => other.to_string(),
    }
}
