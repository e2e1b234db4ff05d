//! The page of a run or a sweep.

use super::air;
use super::page::{Block, Page, Panel, Section};
use super::summary_lines;
use super::sweep::{self, slice};
use super::trace::{Trace, Traces};
use crate::table::Column;
use crate::tables::ComparisonTable;
use crate::tables::comparison::participle;
use crate::tables::flows::table_of_rows;
use farpath_run::{ExperimentSummary, Run};
use std::collections::{BTreeMap, BTreeSet};

/// The most points that the table of results lists.
const POINTS: usize = 500;

/// The most flows that the table of flows lists.
const FLOWS: usize = 400;

/// Why there is no trace of a run.
const UNRECORDED: &str = "large transfers, or many of them, are recorded only where the experiment asks for it, by \
                          `series` and `segments` of `[output]`.";

/// The page of some runs. Where they are not all that the experiment asks for, it says so before anything else.
pub fn run_page(asked: &ExperimentSummary, runs: &[Run], traces: &Traces, complete: bool) -> Page {
    let comparison = ComparisonTable::from_runs(asked, runs);
    let mut table = comparison.table();
    let caveats = std::mem::take(&mut table.caveats);
    let mut first = Vec::new();
    if !complete {
        let of = if asked.runs > 0 {
            format!("of its {} runs {} are", asked.runs, runs.len())
        } else {
            format!("only {} of its runs are", runs.len())
        };
        let missing = format!(
            "The experiment was interrupted: {of} here. Means are over those, and points without a run are missing."
        );
        first.push(Block::Notice("Not the whole experiment".to_owned(), vec![missing]));
    }
    first.push(Block::Short(summary_lines::lines(&comparison)));
    if !caveats.is_empty() {
        first.push(Block::Notice("Before you trust these numbers".to_owned(), caveats));
    }
    let mut results: Vec<Block> = sweep::figures(asked, &comparison).into_iter().map(Block::Figure).collect();
    results.extend(air::figures(asked, runs).into_iter().map(Block::Figure));
    let left_out = table.shorten(POINTS);
    results.push(Block::Table(table));
    if left_out > 0 {
        results.push(Block::Text(format!(
            "{left_out} more points are in what the command prints, and in its tables."
        )));
    }
    if let Some(source) = asked.published_source.as_ref().filter(|_| comparison.has_published()) {
        results.push(Block::Text(format!("Published: {source}.")));
    }
    let mut sections = vec![
        Section { title: String::new(), blocks: first },
        Section { title: "What was asked".to_owned(), blocks: vec![Block::Facts(question(asked))] },
        Section { title: "Results".to_owned(), blocks: results },
    ];
    if traces.wanted() > 0 {
        sections.push(Section { title: "What happened".to_owned(), blocks: what_happened(asked, traces) });
    }
    sections.push(Section { title: "Flows".to_owned(), blocks: flows(asked, runs) });
    sections.push(Section { title: "Where this comes from".to_owned(), blocks: provenance(asked, runs) });
    let kind = format!("Farpath {} · report", env!("CARGO_PKG_VERSION"));
    Page { title: asked.title.clone(), kind, sections }
}

fn question(asked: &ExperimentSummary) -> Vec<(String, Vec<String>)> {
    let mut facts = Vec::new();
    if !asked.path.is_empty() {
        facts.push(("Path, from the data sender".to_owned(), asked.path.clone()));
    }
    facts.extend(asked.ends.iter().map(|(term, text)| (term.clone(), vec![text.clone()])));
    let swept: Vec<String> = asked.axes.iter().map(|keys| axis(asked, keys)).collect();
    if !swept.is_empty() {
        facts.push(("Swept".to_owned(), swept));
        if !asked.path.is_empty() {
            facts
                .push(("Points".to_owned(), vec![format!("{}; above stands the first", asked.points.len())]));
        }
    }
    facts
}

/// A swept parameter with its values.
fn axis(asked: &ExperimentSummary, keys: &[String]) -> String {
    let mut seen = BTreeSet::new();
    let of_points = asked.points.iter().map(|point| slice(point, |key| keys.contains(key)));
    let values: Vec<String> = of_points.filter(|value| seen.insert(value.clone())).collect();
    let values = match values.len() {
        0..=12 => values.join(", "),
        n => format!("{} values, {} to {}", n, values[0], values[n - 1]),
    };
    format!("{}: {values}", keys.join(" with "))
}

/// How a run is called: where it is in the sweep, and its seed.
fn label(asked: &ExperimentSummary, trace: &Trace) -> String {
    let key = trace.key;
    let point = usize::try_from(key.point).ok().and_then(|point| asked.points.get(point));
    let mut parts: Vec<String> =
        point.iter().flat_map(|point| &point.swept).map(|(key, value)| format!("{key} {value}")).collect();
    parts.push(participle(key.engine).to_owned());
    parts.extend(key.seed.map(|seed| format!("seed {seed}")));
    parts.join(" · ")
}

fn what_happened(asked: &ExperimentSummary, traces: &Traces) -> Vec<Block> {
    let mut panels = Vec::new();
    for trace in &traces.traces {
        let run = label(asked, trace);
        let several = trace.flows_in_all > 1;
        for (place, (flow, figures)) in trace.flows.iter().enumerate() {
            let together = if place == 0 { trace.together.as_slice() } else { &[] };
            panels.push(Panel {
                label: if several { format!("{run} · flow {flow}") } else { run.clone() },
                blocks: together.iter().chain(figures).cloned().map(Block::Figure).collect(),
            });
        }
    }
    let runs = traces.traces.len();
    let mut about = match runs {
        0 => {
            return vec![Block::Text(format!("No run recorded its series and segments: {UNRECORDED}"))];
        }
        1 => "One run in detail.".to_owned(),
        n => format!("{n} runs in detail: of a point, the one with the first seed."),
    };
    if runs < traces.wanted() {
        about += &format!(" Of {} more there is no record: {UNRECORDED}", traces.wanted() - runs);
    }
    if let Some(trace) = traces.traces.iter().find(|trace| trace.flows_in_all > trace.flows.len()) {
        about += &format!(
            " Of {} flows the {} with the most bytes are shown.",
            trace.flows_in_all,
            trace.flows.len()
        );
    }
    vec![Block::Text(about), Block::Choice(panels)]
}

fn flows(asked: &ExperimentSummary, runs: &[Run]) -> Vec<Block> {
    let all: Vec<_> = runs.iter().flat_map(|run| run.flows.iter().map(move |flow| (run, flow))).collect();
    let shown = &all[..all.len().min(FLOWS)];
    let mut table = table_of_rows(shown);
    if asked.points.len() > 1 {
        let place = |run: &Run| {
            let point = asked.points.get(usize::try_from(run.point).ok()?)?;
            Some(slice(point, |_| true))
        };
        let keys: Vec<&str> = asked.points[0].swept.iter().map(|(key, _)| key.as_str()).collect();
        table.heads.retain(|column| column.header != "point");
        table
            .heads
            .insert(0, Column::right(keys.join(" / "), shown.iter().map(|(run, _)| place(run)).collect()));
    }
    let mut blocks = vec![Block::Table(table)];
    if shown.len() < all.len() {
        blocks.push(Block::Text(format!(
            "The first {} of {} flows; `--out` keeps all of them, as Parquet.",
            shown.len(),
            all.len()
        )));
    }
    match all.len() {
        0..=12 => blocks,
        n => vec![Block::Folded(format!("{n} flows"), blocks)],
    }
}

fn provenance(asked: &ExperimentSummary, runs: &[Run]) -> Vec<Block> {
    let mut engines: BTreeMap<&str, (BTreeSet<&str>, u64, BTreeSet<u64>)> = BTreeMap::new();
    for run in runs {
        let (versions, count, seeds) = engines.entry(run.engine.name()).or_default();
        versions.insert(&run.provenance.version);
        *count += 1;
        seeds.extend(run.seed);
    }
    let engine = |(name, (versions, count, seeds)): (&str, (BTreeSet<&str>, u64, BTreeSet<u64>))| {
        let versions = versions.into_iter().collect::<Vec<_>>().join(", ");
        let runs = if count == 1 { "1 run".to_owned() } else { format!("{count} runs") };
        let seeds = match (seeds.first(), seeds.last()) {
            (Some(first), Some(last)) if first == last => format!(", seed {first}"),
            (Some(first), Some(last)) => format!(", seeds {first} to {last}"),
            _ => String::new(),
        };
        format!("{name}: {runs}{seeds}, Farpath {versions}")
    };
    let mut facts = vec![("Runs".to_owned(), engines.into_iter().map(engine).collect())];
    // A sweep's own changes are in the tables; what is common to all points was asked for beside the file.
    if let Some(first) = runs.first() {
        let swept = asked.points.first().map_or(0, |point| point.swept.len());
        let given = &first.provenance.changes[..first.provenance.changes.len().saturating_sub(swept)];
        if !given.is_empty() {
            facts.push(("Changed from the file".to_owned(), given.to_vec()));
        }
    }
    if let Some(host) = runs.iter().find(|run| !run.provenance.kernel.is_empty()) {
        facts.push(("Kernel".to_owned(), vec![host.provenance.kernel.clone()]));
    }
    let mut blocks = vec![Block::Facts(facts)];
    if let Some(host) = runs.iter().find(|run| !run.provenance.settings.is_empty()) {
        let settings = host.provenance.settings.join("\n");
        blocks.push(Block::Source("What the hosts of the emulation were given".to_owned(), settings));
    }
    if let Some(first) = runs.first() {
        blocks.push(Block::Source("The experiment".to_owned(), first.provenance.experiment.to_string()));
    }
    blocks
}
