//! The row of a flow, from what both of its ends know.

use super::since;
use crate::end::{EndFacts, Outcome as Came};
use crate::peer::Offsets;
use crate::said::Said;
use farpath_experiment::FlowSpec;
use farpath_run::{FlowRow, Outcome};
use farpath_traffic::Role;
use farpath_units::{Bytes, Duration, Instant};

/// Of a flow with this number, in which this host has that role. `zero` is the run's zero on this host's clock.
pub fn row(
    (number, role, spec): &(u32, Role, FlowSpec),
    local: &EndFacts,
    peer: Option<&EndFacts>,
    failed: Option<Said>,
    offsets: &Offsets,
    zero: Instant,
) -> FlowRow {
    let here = |ns: u64| since(zero, Instant::from_nanos(ns));
    let there = |ns: u64| since(zero, offsets.here(ns));
    let start = Instant::ZERO + spec.start;
    let completed = |end: Option<&EndFacts>| end.is_some_and(|end| end.outcome == Came::Completed);
    let (received, finished_at) = match role {
        Role::Receiver => (completed(Some(local)), local.finished_at_ns.map(here)),
        // The peer's end read it before this one heard so, whatever the clocks say.
        Role::Sender => {
            let heard = local.finished_at_ns.map(here);
            let read = peer.and_then(|peer| peer.finished_at_ns).map(there);
            (completed(peer), read.map(|at| heard.map_or(at, |heard| at.min(heard)).max(start)).or(heard))
        }
    };
    let (outcome, detail) = match (received, local.outcome, peer) {
        (true, ..) => (Outcome::Completed, String::new()),
        (_, Came::Deadline, _) => (Outcome::Horizon, String::new()),
        (_, Came::ConnectTimedOut, _) => (Outcome::ConnectTimedOut, String::new()),
        (_, Came::Stopped | Came::Completed, peer) => {
            let there = peer.map(|peer| peer.detail.clone()).or(failed).unwrap_or_default();
            (Outcome::Aborted, format!("peer: {there}"))
        }
        (_, Came::Aborted, Some(peer))
            if peer.outcome == Came::Aborted && peer.detail.as_str().contains("--max-") =>
        {
            (Outcome::Aborted, format!("peer: {}", peer.detail))
        }
        (_, Came::Aborted, _) => (Outcome::Aborted, local.detail.to_string()),
    };
    let ended_at = match outcome {
        Outcome::Completed => finished_at.unwrap_or(here(local.ended_at_ns)),
        _ => here(local.ended_at_ns),
    };
    let (sender, receiver) = match role {
        Role::Sender => (Some(local), peer),
        Role::Receiver => (peer, Some(local)),
    };
    let connected = match role {
        Role::Sender => local.connected_at_ns.map(here),
        Role::Receiver => peer.and_then(|peer| peer.connected_at_ns).map(there),
    };
    let transfer_time = (outcome == Outcome::Completed).then(|| ended_at.saturating_since(start));
    let per_second = |bytes: u64| {
        let time = transfer_time.filter(|time| !time.is_zero())?;
        Some(bytes as f64 * 8.0 / time.as_secs_f64())
    };
    let mut row = FlowRow {
        ended_at: Some(ended_at),
        detail,
        start,
        connect_time: connected.map(|at| at.saturating_since(start)),
        transfer_time,
        bytes_read: Bytes(receiver.map_or(0, |end| end.bytes)),
        goodput_bit_per_s: per_second(spec.size.0),
        mean_cwnd: sender.and_then(|end| end.mean_cwnd).map(|bytes| bytes as f64),
        ..FlowRow::new(*number, spec.direction.name(), outcome, spec.size)
    };
    let Some(kernel) = sender.and_then(|end| end.kernel) else { return row };
    let ns = Duration::from_nanos;
    row.throughput_bit_per_s = kernel.bytes_sent.and_then(per_second);
    row.efficiency = row.goodput_bit_per_s.zip(row.throughput_bit_per_s).map(|(good, all)| good / all);
    row.data_segments = kernel.data_segments.map(|count| count as f64);
    row.retransmissions = Some(kernel.retransmissions as f64);
    row.timeouts = kernel.timeouts.map(|count| count as f64);
    row.dsacks = kernel.dsacks.map(|count| count as f64);
    row.final_cwnd = Some(Bytes(kernel.final_cwnd));
    (row.min_rtt, row.srtt, row.rto) =
        (kernel.min_rtt_ns.map(ns), kernel.srtt_ns.map(ns), Some(ns(kernel.rto_ns)));
    row
}
