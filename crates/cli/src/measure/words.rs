//! What was found of a path, in words and as JSON.

use farpath_measure::{PathEstimate, Queue, Way, share};
use farpath_run::{Outcome, Run};
use farpath_units::{Duration, Rate};
use serde_json::{Value, json};

/// What is measured, in this order; the runs are numbered so.
pub const MEASURED: [&str; 4] = ["round trips", "upload", "download", "requests"];

/// Width of the first column.
const NAME: usize = 14;

/// A line for each thing that was found.
pub fn lines(found: &PathEstimate) -> Vec<String> {
    let (echoes, trips) = (&found.echoes, found.echoes.round_trips());
    let of_all = format!("{} of {} echoes of {}", trips.len(), echoes.echoed.sent, echoes.packet);
    let round = match percentiles(&trips) {
        Some([least, median, p99, most]) => {
            format!("{least:.3} (least), {median:.3} (median), {p99:.3} (99 %), {most:.3} (most); {of_all}")
        }
        None => format!("NOT KNOWN: {of_all}"),
    };
    let (there, back) = echoes.jitter_rfc3550();
    let mut lines = vec![
        line("round trip", &round),
        line("jitter", &format!("{there:.3} forward, {back:.3} reverse (RFC 3550)")),
    ];
    let (reordered, twice) = (echoes.reordered(), echoes.echoed.duplicates);
    if reordered > 0 || twice > 0 {
        lines.push(line("order", &format!("{reordered} overtaken, {twice} came twice")));
    }
    for (name, way) in [("forward", &found.ways.forward), ("reverse", &found.ways.reverse)] {
        lines.push(line(name, &way_text(way)));
    }
    lines
}

/// What a transfer came to; nothing of the echoes.
pub fn transfer(run: &Run, times: &[Duration]) -> Option<String> {
    let name = usize::try_from(run.point).ok().and_then(|point| MEASURED.get(point))?;
    let flow = run.flows.first().filter(|_| run.point > 0)?;
    let again = flow.retransmissions.map_or(String::new(), |count| format!("; {count} segments sent again"));
    let text = match (flow.outcome, flow.transfer_time, flow.goodput_bit_per_s) {
        (Outcome::Completed, Some(time), _) if *name == MEASURED[3] => {
            let mut sorted = times.to_vec();
            sorted.sort_unstable();
            let [least, median, p99, most] = percentiles(&sorted).unwrap_or_default();
            format!(
                "{} in {time:.3}: {least:.3} (least), {median:.3} (median), {p99:.3} (99 %), {most:.3} (most)",
                times.len()
            )
        }
        (Outcome::Completed, Some(time), Some(goodput)) => {
            format!("{} in {time:.3}: {}{again}", flow.bytes, crate::output::rate(goodput))
        }
        (outcome, ..) => {
            let at = flow.ended_at.map_or(Duration::ZERO, |at| at.saturating_since(flow.start));
            let why = if flow.detail.is_empty() { String::new() } else { format!(" ({})", flow.detail) };
            format!("{outcome}{why}: {} of {} in {at:.3}{again}", flow.bytes_read, flow.bytes)
        }
    };
    Some(line(name, &text))
}

/// All of it, for machines: ns, B and bit/s.
pub fn json(found: &PathEstimate, times: &[Duration]) -> Value {
    let ns = |all: &[Duration]| {
        percentiles(all).map(|[least, median, p99, most]| {
            json!({
                "min_ns": least.as_nanos(), "median_ns": median.as_nanos(),
                "p99_ns": p99.as_nanos(), "max_ns": most.as_nanos(),
            })
        })
    };
    let way = |way: &Way| {
        let (queue, least) = match way.queue {
            Queue::Holds(bytes) => (bytes, false),
            Queue::AtLeast(bytes) => (bytes, true),
        };
        let loss = share(way.lost.0, way.lost.1);
        json!({
            "rate_bit_per_s": way.rate.map(Rate::bit_per_s),
            "rate_between_bit_per_s": way.between.map(|both| both.map(Rate::bit_per_s)),
            "rate_at_least": way.rate_at_least,
            "queue_bytes": queue.0,
            "queue_at_least": least,
            "echoes_lost": way.lost.0,
            "echoes": way.lost.1,
            "loss_rate": loss.map(|(share, _)| share),
            "loss_rate_ci95": loss.map(|(_, interval)| interval),
            "burst_sent": way.burst.0,
            "burst_arrived": way.burst.1,
            "burst_dropped_by_host": way.dropped_there,
        })
    };
    let (there, back) = found.echoes.jitter_rfc3550();
    let mut requests = times.to_vec();
    requests.sort_unstable();
    json!({ "path": {
        "hosts": found.hosts,
        "kernels": found.kernels,
        "round_trip": ns(&found.echoes.round_trips()),
        "jitter_rfc3550_ns": { "forward": there.as_nanos(), "reverse": back.as_nanos() },
        "reordered": found.echoes.reordered(),
        "duplicates": found.echoes.echoed.duplicates,
        "forward": way(&found.ways.forward),
        "reverse": way(&found.ways.reverse),
        "request_to_answer": ns(&requests),
    } })
}

fn line(name: &str, text: &str) -> String {
    format!("{name:NAME$}{text}")
}

fn way_text(way: &Way) -> String {
    let least = if way.rate_at_least { "at least " } else { "" };
    let rate = way.rate.map_or("NOT KNOWN".to_owned(), |rate| format!("{least}{}", rate_of(rate)));
    let queue = match way.queue {
        Queue::Holds(bytes) => format!("a queue of {bytes}"),
        Queue::AtLeast(bytes) => format!("a queue of more than {bytes}"),
    };
    let (lost, of) = way.lost;
    let loss = match share(lost, of) {
        Some((_, [low, high])) => {
            format!("{lost} of {of} lost (95 %: {:.2} to {:.2} %)", low * 100.0, high * 100.0)
        }
        None => "loss not known".to_owned(),
    };
    let there = match way.dropped_there {
        0 => String::new(),
        some => format!("; {some} DROPPED BY THE HOST ITSELF"),
    };
    format!("{rate}, {queue}, {loss}{there}")
}

fn rate_of(rate: Rate) -> String {
    crate::output::rate(rate.bit_per_s() as f64)
}

/// Least, median, 99th percentile and most of what is sorted.
fn percentiles(sorted: &[Duration]) -> Option<[Duration; 4]> {
    let at = |percent: usize| sorted[(sorted.len() - 1) * percent / 100];
    (!sorted.is_empty()).then(|| [at(0), at(50), at(99), at(100)])
}
