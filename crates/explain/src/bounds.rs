//! What bounds a transfer, in the order of the time that each bound costs.

mod path;
mod times;
mod windows;

pub use path::reno_utilization;

use crate::ablate::{with_room_for_a_full_burst, without};
use crate::bound_id::BoundId;
use crate::groups::Rivals;
use crate::measure::{Bench, Observed, Spread};
use crate::path_summary::PathSummary;
use crate::{ExplainError, Number, Unit};
use farpath_experiment::Scenario;
use farpath_units::Bytes;
use serde::Serialize;

/// One bound: what it costs, and the closed form behind it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bound {
    /// Which.
    pub id: BoundId,
    /// Simulated time less the simulated time without this bound, seed by seed, in s; unknown where a run did not complete.
    pub lost_s: Option<Spread>,
    /// That, as a share of the time.
    pub lost_share: Option<f64>,
    /// What is simulated without it, all else being equal; nothing for the handshake, which is measured.
    pub without: Option<Observed>,
    /// What is simulated with this bound alone: all others on the rate are ablated.
    pub alone: Option<Observed>,
    /// The rate of payload that it allows by itself, by its closed form, in bit/s.
    pub allows_bit_per_s: Option<f64>,
    /// The numbers behind it.
    pub numbers: Vec<Number>,
    /// Why it bounds, in words with the numbers in them.
    pub why: String,
    /// The closed form, and where it comes from.
    pub source: &'static str,
}

/// Those that put a ceiling on the rate, and can act alone.
const CEILINGS: [BoundId; 12] = [
    BoundId::ReceiveWindow,
    BoundId::SendBuffer,
    BoundId::CwndClamp,
    BoundId::Application,
    BoundId::ApplicationWindow,
    BoundId::ApplicationWrites,
    BoundId::Loss,
    BoundId::Reordering,
    BoundId::Contacts,
    BoundId::Queue,
    BoundId::AckLink,
    BoundId::Link,
];

/// The bounds that are there, the costliest first.
pub(crate) fn bounds(
    summary: &PathSummary<'_>,
    base: &Observed,
    rivals: &Rivals,
    bench: &mut Bench<'_>,
) -> Result<Vec<Bound>, ExplainError> {
    let scenario = summary.scenario;
    let present: Vec<Reason> = reasons(summary, base);
    let mut variants = Vec::new();
    for reason in &present {
        let (from, to) = counterfactual(scenario, reason.id, rivals);
        variants.extend([from, to, alone(scenario, reason.id, rivals)]);
    }
    let observed = bench.measure(&variants)?;
    let mut bounds: Vec<Bound> = present
        .into_iter()
        .zip(observed.chunks_exact(3))
        .map(|(reason, seen)| bound(reason, base, seen))
        .collect();
    // Of two that cost nothing because either one would be enough, the tighter one by itself comes first.
    let key = |bound: &Bound| {
        let rescued = bound.without.as_ref().map_or(0.0, |without| without.completed - base.completed);
        let faster =
            bound.without.as_ref().map_or(0.0, |without| without.rate_bit_per_s / base.rate_bit_per_s);
        let lost = bound.lost_s.map_or(faster, |lost| lost.mean);
        let itself = bound.alone.as_ref().map_or(f64::INFINITY, |alone| alone.rate_bit_per_s);
        (rescued, lost, itself)
    };
    bounds.sort_by(|a, b| {
        let (a, b) = (key(a), key(b));
        b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1)).then(a.2.total_cmp(&b.2))
    });
    Ok(bounds)
}

/// What is compared with what for the cost of a bound.
fn counterfactual(scenario: &Scenario, id: BoundId, rivals: &Rivals) -> (Scenario, Scenario) {
    match id {
        BoundId::SlowStart => {
            let roomy = with_room_for_a_full_burst(scenario);
            let at_once = without(&roomy, &[BoundId::SlowStart], rivals);
            (roomy, at_once)
        }
        _ => (scenario.clone(), without(scenario, &[id], rivals)),
    }
}

/// `scenario` with this bound as the only one on its rate. A queue bounds nothing without the link behind it.
fn alone(scenario: &Scenario, id: BoundId, rivals: &Rivals) -> Scenario {
    if !CEILINGS.contains(&id) {
        return scenario.clone();
    }
    let kept = |other: &BoundId| *other == id || (id == BoundId::Queue && *other == BoundId::Link);
    let others: Vec<BoundId> = CEILINGS.into_iter().filter(|other| !kept(other)).collect();
    without(scenario, &others, rivals)
}

fn bound(reason: Reason, base: &Observed, seen: &[Observed]) -> Bound {
    let [from, to, alone] = [&seen[0], &seen[1], &seen[2]];
    let measured = reason.id == BoundId::Handshake;
    let lost_s = if measured {
        // A stream begins when the connection is there.
        let counts = base.completed == 1.0 && base.lateness_s.is_none();
        base.connect_time_s.filter(|_| counts).map(|mean| Spread { mean, ci95: None })
    } else {
        from.gain_of(to)
    };
    let time = base.judged_s().filter(|_| base.completed == 1.0);
    Bound {
        id: reason.id,
        lost_share: lost_s.zip(time).map(|(lost, time)| lost.mean / time.mean),
        lost_s,
        without: (!measured).then(|| to.clone()),
        alone: CEILINGS.contains(&reason.id).then(|| alone.clone()),
        allows_bit_per_s: reason.allows_bit_per_s,
        numbers: reason.numbers,
        why: reason.why,
        source: reason.source,
    }
}

/// A bound that is there, by its closed form.
struct Reason {
    id: BoundId,
    allows_bit_per_s: Option<f64>,
    numbers: Vec<Number>,
    why: String,
    source: &'static str,
}

/// The bounds that the scenario has, and what the formulas say of each.
fn reasons(summary: &PathSummary<'_>, base: &Observed) -> Vec<Reason> {
    [
        Some(windows::receive_window(summary)),
        windows::send_buffer(summary),
        windows::cwnd_clamp(summary),
        windows::application(summary),
        windows::application_window(summary),
        windows::application_writes(summary),
        path::loss(summary),
        path::reordering(summary),
        path::contacts(summary),
        path::queue(summary),
        Some(times::timers(summary, base)),
        times::delayed_ack(summary),
        Some(times::handshake(summary, base)),
        Some(times::slow_start(summary, base)),
        path::link(summary),
        path::ack_link(summary),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn rtt_number(summary: &PathSummary<'_>) -> Number {
    Number::new("round-trip time", summary.rtt.as_secs_f64(), Unit::Seconds)
}

/// Bytes for a sentence.
pub(crate) fn short(bytes: Bytes) -> String {
    format!("{bytes:.1}")
}
