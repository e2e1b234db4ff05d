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
mod effort;
mod ending;
mod give_up_time;
mod groups;
mod host_commands;
mod measure;
mod path_summary;
mod priced;
mod remedies;
mod rtt;
mod sensitivity;
mod traps;

pub use bound_id::BoundId;
pub use bounds::{Bound, reno_utilization};
pub use budget::{Budget, Delay, Part, TimerFit, TimerVerdict, budget};
pub use effort::{EXPLAIN_EVENTS, Effort, VARIANT_EVENTS, VARIANT_PACKETS};
pub use ending::Ending;
pub use host_commands::{HostCommands, HostSystem, Setting};
pub use measure::{Air, Observed, Spread};
pub use priced::Priced;
pub use remedies::{GAIN, GAIN_WITH_A_RISK, Place, Remedy, Verdict};
pub use rtt::Quantiles;
pub use sensitivity::{Known, Sensitivity};
pub use traps::{Trap, traps};

use effort::Plan;
use farpath_experiment::{Experiment, Scenario};
use farpath_units::Bytes;
use groups::{Groups, Rivals, in_front};
use measure::{Bench, predicted};
use path_summary::PathSummary;
use remedies::{Combinations, TrialPoint, by_merit, candidates, initial_window_of, merit};
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
    /// How long all of the flow takes, carried on from what was simulated, in s, where that is less.
    pub whole_time_s: Option<f64>,
    /// The groups of flows, where there are several; the explained one first.
    pub groups: Vec<Group>,
    /// The path and its windows.
    pub numbers: Vec<Number>,
    /// What a round trip is made of, and the timers that wait for it.
    pub budget: Budget,
    /// As it is, simulated.
    pub observed: Observed,
    /// As it is, by the closed forms, in s.
    pub predicted_s: Option<f64>,
    /// Why the closed forms say nothing of it, where they do not.
    pub unpredicted: Option<String>,
    /// Ways in which flows ended early.
    pub endings: Vec<Ending>,
    /// The costliest first.
    pub bounds: Vec<Bound>,
    /// In no order.
    pub traps: Vec<Trap>,
    /// The one that helps most first.
    pub remedies: Vec<Remedy>,
    /// Several of them together, where that is better than one: the smallest set within 5 % of the best.
    pub all: Option<Remedy>,
    /// The same of what the hosts can change.
    pub hosts: Option<Remedy>,
    /// The same of what the hosts' systems have commands for.
    pub typed: Option<Remedy>,
    /// The name of the remedy that is advised, where one is worth it.
    pub advice: Option<String>,
    /// What is not simulated, and what it would save.
    pub priced: Vec<Priced>,
    /// How the answer depends on what is known of the path, the strongest first.
    pub sensitivity: Vec<Sensitivity>,
    /// What to know before this is trusted.
    pub caveats: Vec<String>,
    /// Events of the simulator that it took.
    pub events: u64,
}

impl Explanation {
    /// The remedy of this name; `all` is the combination, or the one that is as good as any.
    pub fn remedy(&self, id: &str) -> Option<&Remedy> {
        let named = self.combinations().chain(&self.remedies).find(|remedy| remedy.id == id);
        let alone = || self.remedies.iter().find(|remedy| remedy.verdict == Verdict::Helps && !remedy.apart);
        named.or_else(|| if id == "all" { alone() } else { None })
    }

    /// The names that [`Explanation::remedy`] knows.
    pub fn remedy_names(&self) -> Vec<&str> {
        self.remedies.iter().chain(self.combinations()).map(|remedy| remedy.id.as_str()).collect()
    }

    /// What is advised.
    pub fn advised(&self) -> Option<&Remedy> {
        self.remedy(self.advice.as_deref()?)
    }

    /// What gains a tenth more than what is advised: of sets and single remedies the best, not at the cost of others, and without new routers.
    pub fn beyond(&self, advised: &Remedy) -> Option<&Remedy> {
        let singles = self.remedies.iter().filter(|remedy| !remedy.apart && !remedy.together);
        let best = self.combinations().chain(singles).max_by(|a, b| by_merit(&a.simulated, &b.simulated))?;
        let ((completed, speed), (more, faster)) = (merit(&advised.simulated), merit(&best.simulated));
        // The speed of what does not always complete is none to compare with.
        (more > completed || faster > GAIN * speed).then_some(best)
    }

    /// Sets of several remedies.
    pub fn combinations(&self) -> impl Iterator<Item = &Remedy> {
        self.all.iter().chain(&self.hosts).chain(&self.typed)
    }
}

/// A group of flows that differ in nothing but when they start.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Group {
    /// What it is: how many, of which size, which way.
    pub label: String,
    /// Its place in the file, from 0: what `--group` takes.
    pub number: usize,
    /// How many flows it has.
    pub flows: usize,
    /// Bytes of each.
    pub size: u64,
    /// As it is, simulated.
    pub observed: Observed,
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
pub enum ExplainError {
    /// The experiment has no such point.
    #[error(transparent)]
    Experiment(#[from] farpath_experiment::ExperimentError),
    /// A change that cannot be read, which is a defect.
    #[error("a remedy's change: {0}")]
    Change(farpath_experiment::ParseOverrideError),
    /// It is not simulated.
    #[error(transparent)]
    Simulate(#[from] farpath_engine::SimulateError),
    /// Flows of which there are none.
    #[error("--group: there is no group {group}; the flows are {count} groups, numbered from 0")]
    NoGroup {
        /// As asked for.
        group: usize,
        /// How many there are.
        count: usize,
    },
    /// There is no prediction of a scenario.
    #[error(transparent)]
    Predict(#[from] farpath_predict::PredictError),
    /// Stopped.
    #[error("interrupted")]
    Interrupted,
}

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
    alone.scenario.needs_tcp_alone("an explanation").map_err(farpath_engine::SimulateError::from)?;
    alone.scenario.needs_no_foreign_host("explain").map_err(farpath_engine::SimulateError::from)?;
    let group = effort.group.unwrap_or(0);
    let count = Groups::new(&alone.scenario).count;
    if group >= count {
        return Err(ExplainError::NoGroup { group, count });
    }
    let whole = &in_front(&alone.scenario, group);
    let random = PathSummary::new(whole).is_random() || effort.known.may_lose();
    let as_it_is = |plan: Plan, spent: u64| -> Result<_, ExplainError> {
        let scenario = cap(whole, plan.size);
        let summary = PathSummary::new(&scenario);
        let full_window = summary.full_segments().saturating_mul(summary.segment().0);
        let seeds = (whole.seed..whole.seed + plan.seeds).collect();
        let mut bench = Bench::new(seeds, full_window, (effort.events, spent), watch);
        let kinds = Groups::new(&scenario);
        let observed = bench.measure_groups(scenario.clone(), kinds.count)?;
        Ok((scenario, kinds, bench, observed))
    };
    let mut plan = Plan::new(whole, random, effort);
    let (mut scenario, mut kinds, mut bench, mut observed) = as_it_is(plan, 0)?;
    // Its segments may take more events than those of others.
    if let Some(smaller) = plan.after(whole, random, effort, &bench) {
        plan = smaller;
        (scenario, kinds, bench, observed) = as_it_is(plan, bench.spent())?;
    }
    let size = plan.size;
    let summary = PathSummary::new(&scenario);
    let base = observed[0].clone();
    let paces: Vec<f64> = observed.iter().map(|observed| observed.rate_bit_per_s).collect();
    let rivals = Rivals::new(&kinds, &paces);
    let prediction = predicted(&scenario)?;
    let predicted_s = prediction.time_s;
    let bounds = bounds::bounds(&summary, &base, &rivals, &mut bench)?;
    // Traps are those of the whole file, also where less of it is simulated.
    let mut traps = traps(whole);
    let mut candidates = candidates(&summary, &traps, &base)?;
    // Of a part of a file several connections would carry parts of that part.
    candidates.retain(|candidate| size.is_none() || !candidate.together);
    let trial_point = TrialPoint { group, experiment, point, size, base: &base, predicted_s };
    let mut remedies = trial_point.try_all(candidates, &mut bench)?;
    for remedy in &mut remedies {
        if let Some((segments, queue)) = initial_window_of(remedy, &summary) {
            trial_point.burst_risk(remedy, segments, queue, &mut bench)?;
        }
    }
    withdraw_what_hurts(&mut traps, &mut remedies);
    let Combinations { all, hosts, typed } = trial_point.combine(&remedies, &mut bench)?;
    let whole_time_s = size.map(|size| whole_time_s(whole, size, &base, &mut bench)).transpose()?.flatten();

    let file = PathSummary::new(whole).size();
    let priced = priced::priced(&summary, &base, &bounds, &mut bench)?;
    let sensitivity = sensitivity::sensitivity(&scenario, &effort.known, &base, &mut bench)?;
    let advice = advice_of(&remedies, [&all, &hosts, &typed].map(Option::as_ref));
    Ok(Explanation {
        title: only.title.clone(),
        point,
        points: experiment.points().len(),
        swept: experiment.swept(point),
        size: file.0,
        simulated_size: size.filter(|_| summary.size() < file).map(|_| summary.size().0),
        whole_time_s,
        groups: if kinds.count > 1 { groups_of(&scenario, &kinds, group, observed) } else { Vec::new() },
        numbers: numbers(&summary),
        budget: budget::budget(whole),
        endings: ending::endings(&summary, &base),
        predicted_s,
        unpredicted: prediction.unknown,
        caveats: caveats(whole, plan, random, predicted_s.is_some(), &base, &bench),
        observed: base,
        bounds,
        traps,
        remedies,
        all,
        hosts,
        typed,
        advice,
        priced,
        sensitivity,
        events: bench.spent(),
    })
}

/// A row for each group of flows.
fn groups_of(scenario: &Scenario, kinds: &Groups, explained: usize, observed: Vec<Observed>) -> Vec<Group> {
    let row = |(place, (first, observed)): (usize, (usize, Observed))| {
        let (flow, flows) = (&scenario.flows[first], kinds.size(place));
        // The explained one was moved to the front.
        let number = match place {
            0 => explained,
            place if place <= explained => place - 1,
            place => place,
        };
        Group { label: groups::label(flow, flows, flow.size), number, flows, size: flow.size.0, observed }
    };
    kinds.firsts().into_iter().zip(observed).enumerate().map(row).collect()
}

/// A pitfall whose usual way out is slower here is told without it, and no other table advises it.
fn withdraw_what_hurts(traps: &mut [Trap], remedies: &mut Vec<Remedy>) {
    for trap in traps.iter_mut().filter(|trap| !trap.set.is_empty()) {
        let Some(place) = remedies.iter().position(|remedy| remedy.set == trap.set) else { continue };
        if remedies[place].verdict == Verdict::Hurts {
            let slower = remedies[place]
                .simulated_speed_up
                .map_or(String::new(), |speed_up| format!(", {:.2} times as slow", 1.0 / speed_up.max(1e-9)));
            trap.text += &format!("; its usual way out ({}) is worse here{slower}", trap.set.join(", "));
            trap.set.clear();
            remedies.remove(place);
        }
    }
}

/// What is advised: where these hosts' systems have commands for something worth doing, that; what else would help is told beside it.
fn advice_of(remedies: &[Remedy], [all, hosts, typed]: [Option<&Remedy>; 3]) -> Option<String> {
    let has_commands = |remedy: &&Remedy| remedy.without_command().is_empty();
    let every: Vec<&Remedy> = remedies.iter().collect();
    let with_commands: Vec<&Remedy> = every.iter().copied().filter(has_commands).collect();
    let hosts_by_commands = hosts.filter(has_commands).or(typed);
    advice(&with_commands, all.filter(has_commands), hosts_by_commands).or_else(|| advice(&every, all, hosts))
}

/// What is advised: what the hosts can do, unless the path's equipment gains a quarter more.
fn advice(remedies: &[&Remedy], all: Option<&Remedy>, hosts: Option<&Remedy>) -> Option<String> {
    let speed = |remedy: &&Remedy| (remedy.simulated.completed, remedy.simulated_speed_up.unwrap_or(0.0));
    let best =
        |a: &&Remedy, b: &&Remedy| speed(a).partial_cmp(&speed(b)).unwrap_or(core::cmp::Ordering::Equal);
    // Several connections gain at the cost of others: where one connection can be helped, it is.
    let worth = |remedy: &&Remedy| remedy.is_worth_it && !remedy.apart && !remedy.together;
    let singles = || remedies.iter().copied().filter(worth);
    // Of two that gain as much, the one alone, and without a risk.
    let choose = |set: Option<&Remedy>, hosts: bool| -> Option<String> {
        let set = set.into_iter().filter(worth).max_by(best);
        let alone = singles().filter(|remedy| !hosts || remedy.place.is_of_hosts()).max_by(best);
        let gain = |remedy: &Remedy| speed(&remedy);
        let Some(alone) = alone else { return Some(set?.id.clone()) };
        let (completed, fast) = gain(alone);
        let adds_a_risk = |set: &Remedy| set.risk.is_some() && alone.risk.is_none();
        let enough = |set: &Remedy| if adds_a_risk(set) { GAIN_WITH_A_RISK } else { GAIN };
        if let Some(set) = set.filter(|set| gain(set).1 > fast * enough(set) || gain(set).0 > completed) {
            return Some(set.id.clone());
        }
        let safe = singles()
            .filter(|remedy| !hosts || remedy.place.is_of_hosts())
            .filter(|remedy| remedy.risk.is_none())
            .filter(|remedy| gain(remedy).0 >= completed && gain(remedy).1 * GAIN >= fast)
            .max_by(best);
        Some(safe.unwrap_or(alone).id.clone())
    };
    let of = |id: &Option<String>| {
        let id = id.as_deref()?;
        remedies.iter().copied().chain(all).chain(hosts).find(|remedy| remedy.id == id)
    };
    let hosts = hosts.or(all.filter(|all| all.place.is_of_hosts()));
    let (hosts_only, any) = (choose(hosts, true), choose(all, false));
    match (of(&hosts_only), of(&any)) {
        (Some(host), Some(best))
            if speed(&best).0 <= speed(&host).0 && speed(&best).1 <= GAIN_WITH_A_RISK * speed(&host).1 =>
        {
            hosts_only
        }
        (Some(_) | None, Some(_)) => any,
        (Some(_), None) => hosts_only,
        (None, None) => remedies
            .iter()
            .find(|remedy| remedy.together && remedy.is_worth_it)
            .map(|remedy| remedy.id.clone()),
    }
}

/// The time of all of a flow, from that of the part that was simulated and the pace of its second half.
fn whole_time_s(
    whole: &Scenario,
    size: Bytes,
    base: &Observed,
    bench: &mut Bench<'_>,
) -> Result<Option<f64>, ExplainError> {
    let file = PathSummary::new(whole).size();
    let half = Bytes(size.0 / 2);
    if file <= size || half == Bytes::ZERO || base.lateness_s.is_some() {
        return Ok(None);
    }
    let first = bench.measure_one(cap(whole, Some(half)))?;
    let time = |observed: &Observed| {
        observed.transfer_time_s.filter(|_| observed.completed == 1.0).map(|time| time.mean)
    };
    let (Some(part), Some(first)) = (time(base), time(&first)) else { return Ok(None) };
    let pace = (part - first) / (size.0 - half.0) as f64;
    Ok((pace > 0.0).then(|| part + pace * (file.0 - size.0) as f64))
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
    Plan { seeds, size }: Plan,
    random: bool,
    predicted: bool,
    base: &Observed,
    bench: &Bench<'_>,
) -> Vec<String> {
    let mut caveats = Vec::new();
    caveats.extend(bench.caveat(scenario));
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
    if random && seeds < effort::FEW_SEEDS {
        caveats.push(format!("{seeds} seeds: small gains may be missed"));
    }
    if scenario.flows.len() > remedies::MOST_FLOWS {
        caveats.push(format!(
            "more than {} flows: remedies are tried alone, and not together",
            remedies::MOST_FLOWS
        ));
    }
    if scenario.flows.len() > 1 {
        caveats.push(format!(
            "{} flows: times are of those that are explained, bounds are lifted for these alone (the others keep the pace that they \
             had), and the closed forms are of the first as if it had the path to itself",
            scenario.flows.len()
        ));
    }
    caveats
}
