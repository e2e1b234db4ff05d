//! `farpath run`, `predict`, `simulate`, `emulate`, `compare`: an experiment on the engines asked for.

use crate::args::{CommonArgs, EngineName, RunArgs, TableFormat};
use crate::error::CliError;
use crate::result_sink::{Finished, ResultSink};
use crate::source::{self, Source};
use crate::{Ending, interrupt, output, progress, report};
use farpath_emulate::{Progress, can_all_be_emulated};
use farpath_engine::{CaptureDir, EngineError, Extras, can_all_be_answered, jobs, run_all_with};
use farpath_experiment::{Experiment, Point};
use farpath_report::agreement::agreements;
use farpath_report::html;
use farpath_report::tables::{ComparisonTable, agreement_text, flows_table, routers_table};
use farpath_run::{
    Engine, ExperimentSummary, Outcome, PointSummary, Run, write_flow_lines, write_router_lines,
};
use serde_json::{Map, Value};
use std::collections::{BTreeSet, HashSet};
use std::io::Write;
use std::sync::Arc;

/// Runs the experiment and prints what came out.
pub fn run(args: &RunArgs) -> Result<Ending, CliError> {
    let Answers { experiment, asked, runs, written, ending } = answers(args)?;
    // Interrupted before the first was done: a title without a table says nothing.
    if !runs.is_empty() {
        let rows = match (args.common.flows, args.common.routers) {
            (true, _) => Rows::Flows,
            (_, true) => Rows::Routers,
            _ => Rows::Points,
        };
        let format = (!args.common.json).then_some(args.common.format);
        print(&experiment, &asked, &runs, format, rows)?;
    }
    written.map(|()| ending)
}

/// Runs the experiment on several engines and prints how far they agree.
pub fn compare(args: RunArgs) -> Result<Ending, CliError> {
    if args.engine.iter().collect::<HashSet<_>>().len() < 2 {
        return Err(CliError::OneEngine);
    }
    let Answers { asked, runs, written, ending, .. } = answers(&args)?;
    let agreements = progress::during("comparing the runs", || agreements(&runs));
    if args.common.json {
        let mut out = output::stdout();
        for agreement in &agreements {
            let json = serde_json::to_value(agreement).expect("an agreement is plain data");
            writeln!(out, "{json}")?;
        }
    } else {
        let mut comparison = ComparisonTable::from_runs(&asked, &runs);
        // The table below says it.
        comparison.agreement.clear();
        output::print_table(&comparison.table(), args.common.format)?;
        let text = agreement_text(&asked, &agreements, output::width());
        output::print(&match args.common.format {
            TableFormat::Text => format!("\n{text}"),
            TableFormat::Markdown => format!("\n```text\n{}\n```", text.trim_end()),
        })?;
    }
    written.map(|()| ending)
}

/// What each engine says, with what was asked.
struct Answers {
    experiment: Experiment,
    asked: ExperimentSummary,
    runs: Vec<Run>,
    /// Where it was to be written too: whether it was. To be told when the runs have been printed.
    written: Result<(), CliError>,
    ending: Ending,
}

fn answers(args: &RunArgs) -> Result<Answers, CliError> {
    let common = &args.common;
    let emulates = args.engine.contains(&EngineName::Emulate);
    let Source { experiment, file } = source::load_with(&common.source, emulates, args.clock.changes())?;
    let needs_privileges = emulates && experiment.emulates_in_real_time();
    if needs_privileges {
        // Before any thread is started: a process of several cannot enter a user namespace.
        farpath_emulate::may_emulate().map_err(CliError::Emulation)?;
    }
    source::start_threads(common.threads)?;
    let mut engines: Vec<Engine> = Vec::new();
    for engine in args.engine.iter().map(|&engine| engine.into()) {
        if !engines.contains(&engine) {
            engines.push(engine);
        }
    }
    let engine_error = |source| CliError::Engine { file: file.clone(), source };
    can_all_be_answered(&experiment, &engines).map_err(engine_error)?;
    if engines.contains(&Engine::Emulate) {
        progress::during("trying whether hosts can be made", || can_all_be_emulated(&experiment))
            .map_err(|error| engine_error(error.into()))?;
    }
    let (jobs, traced, asked) = progress::during("preparing the runs", || {
        warn_of_lost_traces(&experiment, common);
        let mut jobs = jobs(&experiment, &engines);
        let wants_report = common.out.is_some() || common.report.is_some();
        let traced = if wants_report { report::trace(&experiment, &mut jobs) } else { BTreeSet::new() };
        let asked = html::summary_of_experiment(&experiment, jobs.len() as u64);
        (jobs, traced, asked)
    });
    let captures = args.capture.capture.as_ref();
    let captures = captures
        .map(|folder| CaptureDir::create(folder, args.capture.snaplen, &jobs))
        .transpose()
        .map_err(|error| engine_error(error.into()))?;
    let mut sink = ResultSink::new(common.out.as_deref(), common.report.as_deref(), traced)?;

    let in_real_time = Arc::new(Progress::default());
    let bar = match needs_privileges {
        true => progress::bar_in_real_time(jobs.len() as u64, "runs", Arc::clone(&in_real_time)),
        false => progress::bar(jobs.len() as u64, "runs"),
    };
    let extras = Extras { captures: captures.as_ref(), progress: Some(&in_real_time) };
    let outcome = run_all_with(&experiment, &jobs, interrupt::flag(), extras, |run| {
        bar.inc(1);
        if sink.take(run) { Ok(()) } else { Err(Stop::NotWritten) }
    });
    drop(bar);
    match outcome {
        Err(Stop::Engine(source)) => return Err(engine_error(source)),
        Ok(_) | Err(Stop::NotWritten) => {}
    }
    let Finished { runs, written } =
        progress::during("writing the results", || sink.finish(&asked, jobs.len()));
    let ending = if runs.len() == jobs.len() { ending_of(&runs) } else { Ending::Interrupted };
    Ok(Answers { experiment, asked, runs, written, ending })
}

/// A transfer that fails is an answer; a run that is void is none, and whoever waits for the exit code must know.
fn ending_of(runs: &[Run]) -> Ending {
    // A run without a grade is void where its guest died: nothing is late in virtual time.
    let (late, died): (Vec<&Run>, Vec<&Run>) =
        runs.iter().filter(|run| is_void(run)).partition(|run| run.grade.is_some());
    if let Some(first) = died.first() {
        let (died, why) = (died.len(), first.flows.first().map_or("", |flow| &flow.detail));
        eprintln!("farpath: {died} runs in virtual time are void; the first one: {why}");
    }
    if late.is_empty() {
        return if died.is_empty() { Ending::Done } else { Ending::Failed };
    }
    say_void(late.len(), runs.iter().filter(|run| run.grade.is_some()).count());
    Ending::Failed
}

/// Says that so many of the emulated runs are void.
pub fn say_void(void: usize, of: usize) {
    eprintln!(
        "farpath: {void} of {of} emulated runs are void, as this machine was not in time: leave it alone while it \
         emulates, or see `farpath doctor`"
    );
}

fn is_void(run: &Run) -> bool {
    run.flows.iter().any(|flow| flow.outcome == Outcome::Void)
}

/// Says so where an experiment records what is written nowhere.
fn warn_of_lost_traces(experiment: &Experiment, args: &CommonArgs) {
    let records = |point: &Point| {
        let output = point.scenario.output;
        output.series || output.segments || output.messages
    };
    if args.out.is_none() && args.report.is_none() && experiment.map_points(records).contains(&true) {
        eprintln!(
            "farpath: the experiment records series, segments or messages; they are kept only with --out DIR, and shown with --report FILE"
        );
    }
}

/// What is to be known before the numbers of some runs are trusted, each once.
fn caveats<'a>(runs: impl Iterator<Item = &'a Run>) -> impl Iterator<Item = &'a str> {
    let mut seen = HashSet::new();
    runs.flat_map(|run| &run.provenance.caveats).map(String::as_str).filter(move |text| seen.insert(*text))
}

/// Why a batch stopped.
enum Stop {
    Engine(EngineError),
    /// [`ResultSink`] knows why.
    NotWritten,
}

impl From<EngineError> for Stop {
    fn from(error: EngineError) -> Stop {
        Stop::Engine(error)
    }
}

/// What a table has a row for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    /// Each point of the sweep.
    Points,
    /// Each flow.
    Flows,
    /// Each flow router and direction.
    Routers,
}

/// Prints a table, or lines of JSON where there is no format for one.
pub fn print(
    experiment: &Experiment,
    asked: &ExperimentSummary,
    runs: &[Run],
    format: Option<TableFormat>,
    rows: Rows,
) -> Result<(), CliError> {
    match (format, rows) {
        (None, Rows::Flows) => {
            let mut out = output::stdout();
            for run in runs {
                write_flow_lines(run, &mut out)?;
            }
        }
        (None, Rows::Routers) => {
            let mut out = output::stdout();
            for run in runs {
                write_router_lines(run, &mut out)?;
            }
        }
        (None, Rows::Points) => {
            let mut out = output::stdout();
            // Runs come point by point and engine by engine.
            for runs in runs.chunk_by(|a, b| (a.point, a.engine) == (b.point, b.engine)) {
                for summary in PointSummary::of_runs(runs) {
                    writeln!(out, "{}", summary_json(experiment, &summary, caveats(runs.iter())))?;
                }
            }
        }
        (Some(format), Rows::Routers) => match routers_table(runs) {
            Some(table) => output::print_table(&table, format)?,
            None => output::print("No flow router has seen a packet.")?,
        },
        (Some(format), Rows::Flows) => output::print_table(&flows_table(runs), format)?,
        (Some(format), Rows::Points) => {
            let table = || ComparisonTable::from_runs(asked, runs).table();
            output::print_table(&progress::during("making the table", table), format)?;
        }
    }
    Ok(())
}

/// A summary with its place in the sweep, what was published for it, and what to know of it.
pub fn summary_json<'a>(
    experiment: &Experiment,
    summary: &PointSummary,
    caveats: impl Iterator<Item = &'a str>,
) -> Value {
    let point = summary.point as usize;
    let swept: Map<String, Value> =
        experiment.swept(point).into_iter().map(|(key, value)| (key, value.into())).collect();
    let mut published = Map::new();
    if let Some(table) = &experiment.published {
        for column in &table.columns {
            let value = table.value(column.name, point);
            published
                .insert(column.name.to_owned(), value.map_or(Value::Null, |value| value.as_f64().into()));
        }
    }
    let mut json = summary.to_json();
    if let Value::Object(object) = &mut json {
        object.insert("swept".to_owned(), swept.into());
        object.insert("published".to_owned(), published.into());
        let caveats: Vec<Value> = caveats.map(Value::from).collect();
        object.insert("caveats".to_owned(), caveats.into());
    }
    json
}

/// What a guest's first process does; the machine is off before it returns.
#[cfg(target_os = "linux")]
pub fn guest() -> Result<Ending, CliError> {
    match farpath_emulate::guest() {
        Ok(never) => match never {},
        Err(error) => Err(CliError::Emulation(error)),
    }
}

/// What is started to emulate in place of a process that cannot.
#[cfg(target_os = "linux")]
pub fn helper(work_dir: &std::path::Path) -> Result<Ending, CliError> {
    farpath_emulate::helper(work_dir).map_err(CliError::Emulation)?;
    Ok(Ending::Done)
}
