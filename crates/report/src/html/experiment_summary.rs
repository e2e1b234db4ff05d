//! Summary of an experiment in words: its path, its ends, its points.

use crate::curve;
use farpath_elements::ElementSpec;
use farpath_experiment::{Experiment, FlowSpec, Opener, Scenario, Stack, base_rtt, host_name};
use farpath_path::Direction;
use farpath_run::{ExperimentSummary, Results, SummaryPoint, SummaryTimer};
use farpath_units::{Messages, Pace};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

/// What tells a list of timers from another: of each its name, what sets it, and the bits of its round trip.
type TimersKey = Vec<(String, String, u64)>;

/// Summary of an experiment of so many runs.
pub fn summary_of_experiment(experiment: &Experiment, runs: u64) -> ExperimentSummary {
    let published = |index: usize| -> BTreeMap<String, f64> {
        let columns = experiment.published.iter().flat_map(|published| &published.columns);
        let known = columns.filter_map(|column| {
            Some((column.name.to_owned(), column.values.get(index).copied().flatten()?.as_f64()))
        });
        known.collect()
    };
    let is_sweep = experiment.points().len() > 1;
    // Each list once: of a large sweep many points have the same, and they are made on all cores.
    let lists: Mutex<HashMap<TimersKey, Arc<[SummaryTimer]>>> = Mutex::default();
    let timers_of = |scenario: &Scenario| {
        let of = curve::timers(scenario);
        let key = of.iter().map(|timer| (timer.name.clone(), timer.set_by.clone(), timer.rtt_s.to_bits()));
        let mut lists = lists.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(lists.entry(key.collect()).or_insert_with(|| of.into()))
    };
    let points = experiment.map_points(|point| {
        let asked = SummaryPoint {
            swept: point.swept.clone(),
            published: published(point.index),
            warnings: point.scenario.warnings.clone(),
            rtt_s: Some(base_rtt(&point.scenario, point.scenario.flows[0].direction).as_secs_f64()),
            timers: None,
        };
        (asked, is_sweep.then(|| timers_of(&point.scenario)))
    });
    // In the order of the points that have them first.
    let mut timers: Vec<Vec<SummaryTimer>> = Vec::new();
    let mut places: HashMap<*const SummaryTimer, usize> = HashMap::new();
    let mut place_of = |list: Arc<[SummaryTimer]>| {
        *places.entry(list.as_ptr()).or_insert_with(|| {
            timers.push(list.to_vec());
            timers.len() - 1
        })
    };
    let points = points
        .into_iter()
        .map(|(summary, list)| SummaryPoint { timers: list.map(&mut place_of), ..summary })
        .collect();
    let point = experiment.point(0);
    let first = &point.scenario;
    ExperimentSummary {
        title: experiment.title.clone(),
        runs,
        path: first.path.iter().map(element).collect(),
        ends: ends(first),
        axes: experiment.axes.iter().map(|axis| axis.keys.clone()).collect(),
        published_source: experiment.published.as_ref().map(|published| published.source.clone()),
        points,
        timers,
    }
}

/// The same of an experiment's programs, on hosts that are like its stacks, or as their kernel makes them.
pub fn summary_of_programs(experiment: &Experiment, runs: u64, like_stacks: bool) -> ExperimentSummary {
    let point = experiment.point(0);
    let scenario = &point.scenario;
    let hosts = match like_stacks {
        true => stacks(scenario),
        false => vec![("Both hosts".to_owned(), "as their kernel makes them".to_owned())],
    };
    let programs = scenario.programs.iter().map(|program| {
        (
            format!("Program {}", program.name),
            format!("{}: {}", host_name(program.host), program.command.join(" ")),
        )
    });
    let at_the_latest = (LATEST.to_owned(), scenario.horizon.to_string());
    let summary = summary_of_experiment(experiment, runs);
    // The kernels' timers are not the stacks'.
    let points = summary.points.into_iter().map(|point| SummaryPoint { timers: None, ..point }).collect();
    let ends = hosts.into_iter().chain(programs).chain([at_the_latest]).collect();
    ExperimentSummary { ends, points, timers: Vec::new(), ..summary }
}

/// Summary of the experiment of a results folder, as far as the folder says.
pub fn summary_of_results(results: &Results) -> ExperimentSummary {
    if let Some(summary) = results.experiment_summary() {
        return summary.clone();
    }
    // Written before folders said it: the title is in the file, and a point is known by its changes.
    let table: toml::Table = results.experiment().parse().unwrap_or_default();
    let title = table.get("title").and_then(toml::Value::as_str).unwrap_or("Results");
    let mut points = Vec::new();
    for (key, provenance) in results.provenances() {
        let change = |text: &String| {
            let (key, value) = text.split_once('=').unwrap_or((text, ""));
            (key.to_owned(), value.to_owned())
        };
        let index = usize::try_from(key.point).unwrap_or(usize::MAX);
        if index == points.len() {
            let swept = provenance.changes.iter().map(change).collect();
            points.push(SummaryPoint { swept, ..SummaryPoint::default() });
        }
    }
    let axes = points.first().map(|first| first.swept.iter().map(|(key, _)| vec![key.clone()]).collect());
    ExperimentSummary {
        title: title.to_owned(),
        axes: axes.unwrap_or_default(),
        points,
        ..ExperimentSummary::default()
    }
}

/// The horizon.
const LATEST: &str = "Ends at the latest after";

fn stacks(scenario: &Scenario) -> Vec<(String, String)> {
    let stack = |stack: &Stack| format!("{} ({})", stack.title, stack.name);
    let (sender, receiver) = (stack(&scenario.sender), stack(&scenario.receiver));
    match sender == receiver {
        true => vec![("Both ends".to_owned(), sender)],
        false => vec![("Sender".to_owned(), sender), ("Receiver".to_owned(), receiver)],
    }
}

fn ends(scenario: &Scenario) -> Vec<(String, String)> {
    let mut ends = stacks(scenario);
    let buffer = format!("{} of receive buffer", scenario.receiver.config.receive.buffer);
    ends.push(("Receiver's window".to_owned(), buffer));
    ends.push(("Transfer".to_owned(), transfer(&scenario.flows)));
    ends.push((LATEST.to_owned(), scenario.horizon.to_string()));
    ends
}

fn transfer(flows: &[FlowSpec]) -> String {
    let first = &flows[0];
    let opener = match first.opener {
        Opener::Sender => "opened by the sender",
        Opener::Receiver => "opened by the receiver",
    };
    let what = |flow: &FlowSpec| (flow.size, flow.stream, flow.writing);
    let same = flows.iter().all(|flow| what(flow) == what(first));
    let size = match first.stream.map(|stream| stream.messages) {
        _ if !same => "different sizes".to_owned(),
        None if first.writing.is_plain() => first.size.to_string(),
        None => format!("{} {}", first.size, first.writing),
        Some(Messages { size, pace, count }) => match pace {
            Pace::At(rate) => format!("a stream of {rate}, {count} messages of {size}"),
            Pace::Every(interval) => format!("a stream of {count} messages of {size}, one every {interval}"),
        },
    };
    let reverse = flows.iter().filter(|flow| flow.direction == Direction::Reverse).count();
    let ways = match reverse {
        0 => String::new(),
        n if n == flows.len() => ", in the reverse direction".to_owned(),
        n => format!(", {n} of them in the reverse direction"),
    };
    match flows.len() {
        1 => format!("{size}, {opener}{ways}"),
        n => format!("{n} flows of {size} each, {opener}{ways}")
            .replace("of different sizes each", "of different sizes"),
    }
}

/// One element: its name, and what it does to packets.
fn element(spec: &ElementSpec) -> String {
    format!("{}: {}", spec.name, spec.spec().describe())
}
