//! What bounds a transfer, in order; which pitfalls it meets; what to change, and what that gains.
//!
//! The method is one, whatever the bound: take it out of the experiment, leave everything else, simulate both with the
//! same seeds. The difference is what it costs. Closed forms stand beside it as the reason, and a remedy is confirmed
//! by simulating the changed experiment. Everything comes back as data; `farpath-report` prints it. The definitions are
//! in `docs/explain.md`.

mod ablate;
mod bound_id;
mod bounds;
mod budget;
mod ending;
mod give_up_time;
mod measure;
mod path_summary;
mod remedies;
mod traps;

pub use bound_id::BoundId;
pub use bounds::{Bound, reno_utilization};
pub use budget::{Budget, Delay, Part, TimerFit, TimerVerdict, budget};
pub use ending::Ending;
pub use measure::{Air, Observed, Spread};
pub use remedies::{Remedy, Verdict};
pub use traps::{Trap, traps};

use farpath_experiment::{Experiment, Scenario};
use farpath_units::Bytes;
use measure::{Bench, predicted};
use path_summary::PathSummary;
use remedies::{Patient, candidates};
use serde::Serialize;
use std::sync::atomic::AtomicBool;

/// A number with its name and unit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Number {
    /// What it is.
    pub name: &'static str,
    /// How much.
    pub value: f64,
    /// Of what.
    pub unit: Unit,
}

impl Number {
    pub(crate) fn new(name: &'static str, value: f64, unit: Unit) -> Number {
        Number { name, value, unit }
    }
}

/// Units of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Unit {
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// Bytes.
    #[serde(rename = "B")]
    Bytes,
    /// Bits per second.
    #[serde(rename = "bit/s")]
    BitPerS,
    /// Segments of full size.
    #[serde(rename = "segments")]
    Segments,
    /// A fraction of one.
    #[serde(rename = "1")]
    Share,
    /// A plain count.
    #[serde(rename = "")]
    Count,
}

/// A point of an experiment, explained.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explanation {
    /// The experiment's title.
    pub title: String,
    /// Which point of its sweep, from 0.
    pub point: usize,
    /// How many points it has.
    pub points: usize,
    /// Keys and values that make it this point.
    pub swept: Vec<(String, String)>,
    /// Bytes of a flow.
    pub size: u64,
    /// Bytes of a flow that were simulated, where that is less.
    pub simulated_size: Option<u64>,
    /// The path and its windows.
    pub numbers: Vec<Number>,
    /// What a round trip is made of, and the timers that wait for it.
    pub budget: Budget,
    /// As it is, simulated.
    pub observed: Observed,
    /// As it is, by the closed forms, in s.
    pub predicted_s: Option<f64>,
    /// Ways in which flows ended early.
    pub endings: Vec<Ending>,
    /// The costliest first.
    pub bounds: Vec<Bound>,
    /// In no order.
    pub traps: Vec<Trap>,
    /// The one that helps most first.
    pub remedies: Vec<Remedy>,
    /// Several of them together, where that is better than one.
    pub all: Option<Remedy>,
    /// What to know before this is trusted.
    pub caveats: Vec<String>,
}

impl Explanation {
    /// The remedy of this name; `all` is the combination.
    pub fn remedy(&self, id: &str) -> Option<&Remedy> {
        self.all.iter().chain(&self.remedies).find(|remedy| remedy.id == id)
    }

    /// The names that [`Explanation::remedy`] knows.
    pub fn remedy_names(&self) -> Vec<&str> {
        self.remedies.iter().chain(&self.all).map(|remedy| remedy.id.as_str()).collect()
    }
}

/// How much is simulated for one explanation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// Runs of each variant; `None` is twenty where anything is drawn, and one where nothing is.
    pub seeds: Option<u64>,
    /// Data segments over all variants and runs, about. What needs more gets fewer seeds, then a smaller file.
    pub segments: u64,
}

impl Default for Effort {
    /// About ten seconds of one core in a release build, less where little is lost.
    fn default() -> Effort {
        Effort { seeds: None, segments: 40_000_000 }
    }
}

/// Told how far an explanation has come, and asked whether to go on.
pub struct Watch<'a> {
    /// When it is set, nothing more is begun.
    pub stop: &'a AtomicBool,
    /// So many more runs will be made.
    pub planned: &'a (dyn Fn(u64) + Sync),
    /// One of them is done.
    pub done: &'a (dyn Fn() + Sync),
}

/// Why there is no explanation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExplainError {
    /// The experiment has no such point.
    #[error(transparent)]
    Experiment(#[from] farpath_experiment::ExperimentError),
    /// A change that cannot be read, which is a defect.
    #[error("a remedy's change: {0}")]
    Change(farpath_experiment::ParseOverrideError),
    /// An engine has no answer.
    #[error(transparent)]
    Engine(#[from] farpath_engine::EngineError),
    /// There is no prediction of a scenario.
    #[error(transparent)]
    Predict(#[from] farpath_predict::PredictError),
    /// Stopped.
    #[error("interrupted")]
    Interrupted,
}

/// Variants that are simulated for one explanation, about.
const VARIANTS: u64 = 50;
const SEEDS: u64 = 20;
const FEWEST_SEEDS: u64 = 3;
/// Below it, an interval is wide.
const FEW_SEEDS: u64 = 10;

/// Explains one point of an experiment.
///
/// # Errors
/// A point that the experiment does not have; an engine that has no answer; [`Watch::stop`].
pub fn explain(
    experiment: &Experiment,
    point: usize,
    effort: Effort,
    watch: &Watch<'_>,
) -> Result<Explanation, ExplainError> {
    let only = experiment.only(point, &[])?;
    let alone = only.point(0);
    let whole = &alone.scenario;
    let random = PathSummary::new(whole).is_random();
    let (seeds, size) = plan(whole, random, effort);
    let scenario = cap(whole, size);
    let summary = PathSummary::new(&scenario);
    let mut bench = Bench::new((whole.seed..whole.seed + seeds).collect(), watch);

    let base = bench.measure_one(scenario.clone())?;
    let predicted_s = predicted(&scenario)?.time_s;
    let bounds = bounds::bounds(&summary, &base, &mut bench)?;
    // Traps are those of the whole file, also where less of it is simulated.
    let traps = traps(whole);
    let candidates = candidates(&summary, &traps, &base)?;
    let patient = Patient { experiment, point, size, base: &base, predicted_s };
    let remedies = patient.try_all(candidates, &mut bench)?;
    let all = patient.combine(&remedies, &mut bench)?;

    let file = PathSummary::new(whole).size();
    Ok(Explanation {
        title: only.title.clone(),
        point,
        points: experiment.points().len(),
        swept: experiment.swept(point),
        size: file.0,
        simulated_size: size.map(|_| summary.size().0),
        numbers: numbers(&summary),
        budget: budget::budget(whole),
        endings: ending::endings(&summary, &base),
        predicted_s,
        caveats: caveats(whole, size, seeds, random, predicted_s.is_some(), &base),
        observed: base,
        bounds,
        traps,
        remedies,
        all,
    })
}

/// How many seeds, and how much of the largest flow, where the effort does not allow for all.
fn plan(scenario: &Scenario, random: bool, effort: Effort) -> (u64, Option<Bytes>) {
    let summary = PathSummary::new(scenario);
    let segment = summary.segment().0;
    let work: u64 = scenario.flows.iter().map(|flow| flow.size.0.div_ceil(segment)).sum::<u64>().max(1);
    let each = (effort.segments / VARIANTS).max(1);
    let seeds = match effort.seeds {
        Some(seeds) => seeds.max(1),
        None if random => (each / work).clamp(FEWEST_SEEDS, SEEDS),
        None => 1,
    };
    let affordable = each / seeds.max(1);
    if work <= affordable {
        return (seeds, None);
    }
    let whole = u128::from(summary.size().0.div_ceil(segment));
    let segments = (whole * u128::from(affordable) / u128::from(work)) as u64;
    (seeds, Some(Bytes(segments.max(1) * segment)))
}

/// The scenario with flows of this size at most.
pub(crate) fn cap(scenario: &Scenario, size: Option<Bytes>) -> Scenario {
    let mut capped = scenario.clone();
    if let Some(size) = size {
        for flow in &mut capped.flows {
            flow.size = flow.size.min(size);
            if let Some(stream) = &mut flow.stream {
                let messages = &mut stream.messages;
                messages.count = (flow.size.0 / messages.size.0).max(1);
                flow.size = messages.total();
            }
        }
    }
    capped
}

/// Which buffers a stream takes, and what a loss costs it with them.
fn of_stream(summary: &PathSummary<'_>) -> Vec<Number> {
    let Some(cost) = farpath_predict::stream_loss(summary.scenario) else { return Vec::new() };
    let rtt = summary.rtt.as_secs_f64();
    let mut numbers = vec![
        Number::new("one loss makes the stream late by", cost.lateness, Unit::Seconds),
        Number::new("a play-out buffer that hides it", cost.lateness + rtt, Unit::Seconds),
    ];
    if cost.timely_again.is_finite() {
        numbers.push(Number::new("a send buffer that lets it catch up", cost.send_buffer, Unit::Bytes));
        numbers.push(Number::new("with a window of", cost.peak_rate * rtt / 8.0, Unit::Bytes));
        numbers.push(Number::new("timely again after", cost.timely_again, Unit::Seconds));
    }
    numbers
}

fn numbers(summary: &PathSummary<'_>) -> Vec<Number> {
    let mut numbers = vec![Number::new("round-trip time", summary.rtt.as_secs_f64(), Unit::Seconds)];
    if let Some(rate) = summary.rate_of_link() {
        numbers.push(Number::new("payload rate of the slowest link", rate, Unit::BitPerS));
    }
    if let Some(bdp) = summary.bdp {
        let segments = bdp.0 as f64 / summary.segment().0 as f64;
        numbers.push(Number::new("bandwidth-delay product, payload", bdp.0 as f64, Unit::Bytes));
        numbers.push(Number::new("the same", segments, Unit::Segments));
    }
    if let Some(queue) = summary.view.queue {
        numbers.push(Number::new("queue", queue.0 as f64, Unit::Bytes));
    }
    numbers.push(Number::new("window", summary.window.0 as f64, Unit::Bytes));
    numbers.push(Number::new("loss of data", summary.view.data_loss.fraction(), Unit::Share));
    numbers.push(Number::new("loss of ACKs", summary.view.ack_loss.fraction(), Unit::Share));
    numbers.extend(of_stream(summary));
    numbers
}

fn caveats(
    scenario: &Scenario,
    size: Option<Bytes>,
    seeds: u64,
    random: bool,
    predicted: bool,
    base: &Observed,
) -> Vec<String> {
    let mut caveats = Vec::new();
    if predicted && base.completed < 1.0 {
        caveats.push(
            "the closed forms give the time of transfers that complete, and simulated not all of them do: of the data's \
             retries they know no budget"
                .to_owned(),
        );
    }
    if let Some(size) = size {
        caveats.push(format!(
            "simulated with the first {} of each flow, to answer soon: slow start and handshake weigh more than in the \
             whole file",
            bounds::short(size)
        ));
    }
    if random && seeds < FEW_SEEDS {
        caveats.push(format!("{seeds} seeds: small gains may be missed"));
    }
    if scenario.flows.len() > 1 {
        caveats.push(format!(
            "{} flows: times are means over them, and the closed forms are of the first as if it had the path to itself",
            scenario.flows.len()
        ));
    }
    caveats
}
