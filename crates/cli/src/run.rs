//! `farpath run`, `predict`, `simulate`, `emulate`, `agree`: an experiment on the engines asked for.

use crate::args::{CommonArgs, EngineName, RunArgs};
use crate::error::CliError;
use crate::source::{self, Source};
use crate::{Ending, interrupt, output, progress, report};
use farpath_engine::{CaptureDir, EngineError, Extras, Progress, can_be_emulated, jobs, run_all_with};
use farpath_experiment::{Experiment, Point};
use farpath_report::agreement::agreements;
use farpath_report::html::{self, ReportFile, Traces};
use farpath_report::terminal::{agreement_text, flows_table};
use farpath_run::{Asked, Engine, PointSummary, REPORT, ResultsDir, Run, Trace, write_flow_lines};
use serde_json::{Map, Value};
use std::collections::{BTreeSet, HashSet};
use std::io::Write;
use std::sync::Arc;

/// Runs the experiment and prints what came out.
pub fn run(args: &RunArgs) -> Result<Ending, CliError> {
    let (experiment, asked, runs, ending) = answers(args)?;
    // Interrupted before the first was done: a title without a table says nothing.
    if !runs.is_empty() {
        print(&experiment, &asked, &runs, &args.common)?;
    }
    Ok(ending)
}

/// Runs the experiment on several engines and prints how far they agree.
pub fn agree(args: RunArgs) -> Result<Ending, CliError> {
    if args.engine.iter().collect::<HashSet<_>>().len() < 2 {
        return Err(CliError::OneEngine);
    }
    let (_, asked, runs, ending) = answers(&args)?;
    let agreements = agreements(&runs);
    if args.common.json {
        let mut out = output::stdout();
        for agreement in &agreements {
            let json = serde_json::to_value(agreement).expect("an agreement is plain data");
            writeln!(out, "{json}")?;
        }
    } else {
        let mut comparison = html::comparison(&asked, &runs);
        // The table below says it.
        comparison.agreement.clear();
        output::print(&comparison.render(output::width()))?;
        output::print(&format!("\n{}", agreement_text(&asked, &agreements, output::width())))?;
    }
    Ok(ending)
}

/// What each engine says, with what was asked; written where that is asked for too.
fn answers(args: &RunArgs) -> Result<(Experiment, Asked, Vec<Run>, Ending), CliError> {
    let common = &args.common;
    let emulates = args.engine.contains(&EngineName::Emulate);
    if emulates {
        // Before any thread is started: a process of several cannot enter a user namespace.
        farpath_engine::may_emulate().map_err(CliError::Emulation)?;
    }
    let Source { experiment, file } = source::load(&common.source, emulates)?;
    source::start_threads(common.threads)?;
    let mut engines: Vec<Engine> = Vec::new();
    for engine in args.engine.iter().map(|&engine| engine.into()) {
        if !engines.contains(&engine) {
            engines.push(engine);
        }
    }
    let engine_error = |source| CliError::Engine { file: file.clone(), source };
    if engines.contains(&Engine::Emulate) {
        experiment.points().iter().try_for_each(can_be_emulated).map_err(engine_error)?;
    }
    warn_of_lost_traces(&experiment, common);
    let mut jobs = jobs(&experiment, &engines);
    let wants_report = common.out.is_some() || common.report.is_some();
    let traced = if wants_report { report::trace(&experiment, &mut jobs) } else { BTreeSet::new() };
    let asked = html::asked(&experiment, jobs.len() as u64);
    let captures = args.capture.capture.as_ref();
    let captures = captures
        .map(|folder| CaptureDir::create(folder, args.capture.snaplen, &jobs))
        .transpose()
        .map_err(|error| engine_error(error.into()))?;
    common.out.as_deref().map(report::may_write_in).transpose()?;
    let mut results = common.out.as_ref().map(ResultsDir::create).transpose()?;
    if let Some(results) = &mut results {
        results.describe(asked.clone());
    }
    let report_file = common.report.as_ref().map(ReportFile::create).transpose()?;
    let mut traces = Traces::of(traced);

    let in_real_time = Arc::new(Progress::default());
    let bar = match engines.contains(&Engine::Emulate) {
        true => progress::bar_in_real_time(jobs.len() as u64, "runs", Arc::clone(&in_real_time)),
        false => progress::bar(jobs.len() as u64, "runs"),
    };
    let extras = Extras { captures: captures.as_ref(), progress: Some(&in_real_time) };
    let mut runs = Vec::with_capacity(jobs.len());
    let outcome = run_all_with(&experiment, &jobs, interrupt::flag(), extras, |mut run| {
        if let Some(results) = &mut results {
            results.append(&run).map_err(Stop::Results)?;
        }
        traces.add(&run);
        // Traces are in the files; a sweep's would not fit into memory.
        run.series = Trace::default();
        run.segments = Trace::default();
        run.messages = Trace::default();
        runs.push(run);
        bar.inc(1);
        Ok(())
    });
    bar.finish_and_clear();
    outcome.map_err(|stop| match stop {
        Stop::Engine(source) => engine_error(source),
        Stop::Results(error) => CliError::Results(error),
    })?;
    // Those in real time have come last.
    runs.sort_by_key(|run| run.point);
    let complete = runs.len() == jobs.len();
    // Stopped before the first run was done, there is nothing to put in the place of earlier results.
    if !runs.is_empty() {
        if let Some(results) = results {
            results.finish(complete)?;
        }
        if wants_report {
            let folder = common.out.as_deref().filter(|out| common.report != Some(out.join(REPORT)));
            let files = [report_file, folder.map(report::create_in).transpose()?];
            report::write(&asked, &runs, &traces, complete, files.into_iter().flatten())?;
        }
    }
    if !complete {
        eprintln!("farpath: interrupted: {} of {} runs are shown", runs.len(), jobs.len());
    }
    let ending = if complete { ending_of(&runs) } else { Ending::Interrupted };
    Ok((experiment, asked, runs, ending))
}

/// A transfer that fails is an answer; a run that is void is none, and whoever waits for the exit code must know.
fn ending_of(runs: &[Run]) -> Ending {
    let void = runs.iter().filter(|run| run.grade.as_ref().is_some_and(|grade| grade.void.is_some())).count();
    if void == 0 {
        return Ending::Done;
    }
    let of = runs.iter().filter(|run| run.grade.is_some()).count();
    eprintln!(
        "farpath: {void} of {of} emulated runs are void, as this machine was not in time: leave it alone while it \
         emulates, or see `farpath doctor`"
    );
    Ending::Failed
}

/// Says so where an experiment records what is written nowhere.
fn warn_of_lost_traces(experiment: &Experiment, args: &CommonArgs) {
    let records = |point: &Point| {
        let output = point.scenario.output;
        output.series || output.segments || output.messages
    };
    if args.out.is_none() && args.report.is_none() && experiment.points().iter().any(records) {
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
    Results(farpath_run::ResultsError),
}

impl From<EngineError> for Stop {
    fn from(error: EngineError) -> Stop {
        Stop::Engine(error)
    }
}

fn print(experiment: &Experiment, asked: &Asked, runs: &[Run], args: &CommonArgs) -> Result<(), CliError> {
    match (args.json, args.flows) {
        (true, true) => {
            let mut out = output::stdout();
            for run in runs {
                write_flow_lines(run, &mut out)?;
            }
        }
        (true, false) => {
            let mut out = output::stdout();
            // Runs come point by point and engine by engine.
            for runs in runs.chunk_by(|a, b| (a.point, a.engine) == (b.point, b.engine)) {
                for summary in PointSummary::of_runs(runs) {
                    writeln!(out, "{}", summary_json(experiment, &summary, runs))?;
                }
            }
        }
        (false, true) => output::print(&flows_table(runs, output::width()))?,
        (false, false) => output::print(&html::comparison(asked, runs).render(output::width()))?,
    }
    Ok(())
}

/// The summary of some runs, with its place in the sweep, what was published for it, and what to know of it.
fn summary_json(experiment: &Experiment, summary: &PointSummary, runs: &[Run]) -> Value {
    let point = &experiment.points()[summary.point as usize];
    let swept: Map<String, Value> =
        point.swept.iter().map(|(key, value)| (key.clone(), value.as_str().into())).collect();
    let mut published = Map::new();
    if let Some(table) = &experiment.published {
        for column in &table.columns {
            let value = table.value(column.name, point.index);
            published
                .insert(column.name.to_owned(), value.map_or(Value::Null, |value| value.as_f64().into()));
        }
    }
    let mut json = summary.to_json();
    if let Value::Object(object) = &mut json {
        object.insert("swept".to_owned(), swept.into());
        object.insert("published".to_owned(), published.into());
        let caveats: Vec<Value> = caveats(runs.iter()).map(Value::from).collect();
        object.insert("caveats".to_owned(), caveats.into());
    }
    json
}
