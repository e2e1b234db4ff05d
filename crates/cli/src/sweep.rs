//! `farpath sweep`: what is missing of a sweep, and how much is there.

use crate::args::{SweepArgs, SweepCommand, SweepRunArgs};
use crate::error::CliError;
use crate::run::summary_json;
use crate::source::{self, Source};
use crate::{Ending, interrupt, output, progress};
use farpath_emulate::{can_all_be_emulated, may_emulate};
use farpath_engine::can_all_be_answered;
use farpath_experiment::Experiment;
use farpath_report::html;
use farpath_report::tables::ComparisonTable;
use farpath_run::{Engine, FolderLock, PointSummary, Statistic};
use farpath_sweep::{
    Cleaned, Folder, Limits, POINTS, Plan, Precision, Search, Status, SweepError, Threshold, more_seeds,
    program, run_missing, value_of, write_points,
};
use serde_json::json;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The most points that are printed as a table.
const SHOWN: usize = 200;

/// The most runs that are summed up after Ctrl-C, whose user waits for the end.
const SUMMED_UP_AFTER_STOP: u64 = 1 << 16;

/// `farpath sweep`
pub fn sweep(args: &SweepArgs) -> Result<Ending, CliError> {
    match &args.command {
        Some(SweepCommand::Status(args)) => status(&args.folder, args.json),
        Some(SweepCommand::Points(args)) => points(&args.folder, args.json),
        Some(SweepCommand::Gc(args)) => gc(&args.folder.folder, args.dry_run, args.folder.json),
        None => run(&args.run),
    }
}

fn run(args: &SweepRunArgs) -> Result<Ending, CliError> {
    let out = args.out.as_deref().expect("clap asks for it");
    if args.cluster.is_some() {
        return Err(CliError::NoCluster);
    }
    let precision = precision(args)?;
    let mut engines: Vec<Engine> = Vec::new();
    for engine in args.engine.iter().map(|&engine| Engine::from(engine)) {
        if !engines.contains(&engine) {
            engines.push(engine);
        }
    }
    let search = match (&args.find, &args.crosses) {
        (Some(key), Some(value)) => Some(Search::new(key, &args.of, value)?),
        _ => None,
    };
    let emulates = engines.contains(&Engine::Emulate);
    let Source { experiment, file } = source::load_with(&args.source, emulates, args.clock.changes())?;
    let failed = |source| CliError::Engine { file: file.clone(), source };
    can_all_be_answered(&experiment, &engines).map_err(failed)?;
    if emulates {
        if experiment.emulates_in_real_time() {
            // Before any thread is started: a process of several cannot enter a user namespace.
            may_emulate().map_err(CliError::Emulation)?;
        }
        progress::during("trying whether hosts can be made", || can_all_be_emulated(&experiment))
            .map_err(|error| failed(error.into()))?;
    }
    source::start_threads(args.threads)?;
    let mut plan = progress::during("planning the runs", || Plan::new(&experiment, &engines))?;
    let searching = search.map(|search| search.begin(&experiment, &mut plan)).transpose()?;
    let (folder, _lock) = Folder::create(out, &experiment, &engines)?;
    let limits = Limits { runs: args.chunk as usize, ..Limits::default() };
    let stop = interrupt::flag();
    let mut first = true;
    if let Some(searching) = &searching {
        searching.more_points(&mut plan, &folder)?;
    }
    let (void, status, runs) = loop {
        let there = folder.inventory()?;
        let status = plan.status(&there);
        if first && there.runs > 0 {
            eprintln!("farpath: {}", going_on(status, there.runs));
        }
        first = false;
        let bar = progress::bar_from(status.done, status.wanted, "runs");
        let missing = plan.missing(&there);
        let made = AtomicU64::new(0);
        let void = run_missing(&experiment, &plan, missing, &folder, limits, stop, |runs| {
            made.fetch_add(runs, Ordering::Relaxed);
            bar.inc(runs);
        })?;
        drop(bar);
        let made = made.into_inner();
        let more = !stop.load(Ordering::Relaxed)
            && (precision
                .as_ref()
                .map_or(Ok(false), |precision| more_seeds(&mut plan, &folder, precision))?
                || searching.as_ref().map_or(Ok(false), |one| one.more_points(&mut plan, &folder))?);
        if !more {
            break (void, Status { done: status.done + made, ..status }, there.runs + made);
        }
    };
    // What was made before Ctrl-C is summed up all the same, where that does not take long.
    let (stopped, never) = (stop.load(Ordering::Relaxed), AtomicBool::new(false));
    let summed_up = if stopped && runs > SUMMED_UP_AFTER_STOP {
        Err(SweepError::Stopped.into())
    } else {
        let stop = if stopped { &never } else { stop };
        match &searching {
            Some(searching) => {
                let found = searching.thresholds(&plan, &folder)?;
                print_thresholds(&experiment, searching.search(), &found, args.json)?;
                write_points(&experiment, &plan, &folder, stop, |_, _| ()).map_err(CliError::from)
            }
            None => print(&experiment, &plan, &folder, stop, args.json),
        }
    };
    let is_summed_up = match summed_up {
        Err(CliError::Sweep(SweepError::Stopped)) => false,
        other => other.map(|()| true)?,
    };
    if !is_summed_up {
        eprintln!(
            "farpath: {POINTS} is not written anew, which takes a while for {runs} runs: `farpath sweep points {}` does",
            folder.path().display()
        );
    }
    if void > 0 && !stopped {
        eprintln!(
            "farpath: {void} emulated runs were void, as this machine was not in time, and are not kept: the same \
             command asks for them again"
        );
        return Ok(Ending::Failed);
    }
    if status.done < status.wanted || !is_summed_up {
        eprintln!(
            "farpath: interrupted: {} of {} runs are there; the same command goes on",
            status.done, status.wanted
        );
        return Ok(Ending::Interrupted);
    }
    Ok(Ending::Done)
}

fn precision(args: &SweepRunArgs) -> Result<Option<Precision>, CliError> {
    let precision =
        args.until.clone().map(|until| Precision { statistic: args.of.clone(), most: args.most, ..until });
    precision.iter().try_for_each(Precision::check).map_err(CliError::Precision)?;
    Ok(precision)
}

fn going_on(Status { wanted, done }: Status, there: u64) -> String {
    let others = match there.saturating_sub(done) {
        0 => String::new(),
        others => format!(
            "; {others} more are of other points, seeds or programs: `farpath sweep gc` removes what is not asked for"
        ),
    };
    format!("{done} of {wanted} runs are there{others}")
}

/// Writes the points, and prints them: as lines of JSON, or as a table where they are few.
fn print(
    experiment: &Experiment,
    plan: &Plan,
    folder: &Folder,
    stop: &AtomicBool,
    json: bool,
) -> Result<(), CliError> {
    if json {
        let mut out = output::stdout();
        let mut printed = Ok(());
        write_points(experiment, plan, folder, stop, |summary, caveats| {
            let line = || summary_json(experiment, summary, caveats.iter().map(String::as_str));
            if printed.is_ok() {
                printed = writeln!(out, "{}", line());
            }
        })?;
        return Ok(printed?);
    }
    let few = experiment.points().len() <= SHOWN;
    let mut summaries: Vec<(PointSummary, Vec<String>)> = Vec::new();
    let bar = progress::bar(plan.wanted().len() as u64, "points summed up");
    let written = write_points(experiment, plan, folder, stop, |summary, caveats| {
        bar.inc(1);
        if few {
            summaries.push((summary.clone(), caveats.to_vec()));
        }
    });
    drop(bar);
    if !summaries.is_empty() {
        let runs = summaries.iter().map(|(summary, _)| summary.runs).sum();
        let table =
            ComparisonTable::from_summaries(&html::summary_of_experiment(experiment, runs), summaries);
        output::print(&table.table().to_text(output::width()))?;
        output::print("")?;
    }
    written?;
    Ok(output::print(&format!("{}", folder.path().join(POINTS).display()))?)
}

fn print_thresholds(
    experiment: &Experiment,
    search: &Search,
    found: &[Threshold],
    json: bool,
) -> Result<(), CliError> {
    for threshold in found {
        if json {
            output::print(&threshold.to_json(experiment, search).to_string())?;
            continue;
        }
        let engine = threshold.engine.name();
        let others = threshold.others(experiment, &search.key);
        let others: Vec<String> = others.into_iter().map(|(key, value)| format!(", {key} {value}")).collect();
        let Search { key, statistic, value } = search;
        let text = match &threshold.between {
            None => format!("{statistic} is on one side of {value} at both ends of {key}"),
            Some(ends) => {
                let [from, to] = ends.each_ref().map(|(point, sample)| {
                    let at = value_of(experiment, *point, key);
                    format!("{at} ({})", sample.as_ref().map_or("unknown".to_owned(), shown))
                });
                let clear =
                    if threshold.is_clear(*value) { "" } else { "; an interval holds it: more seeds" };
                format!("{statistic} crosses {value} between {key} {from} and {to}{clear}")
            }
        };
        output::print(&format!("{engine}{}: {text}", others.concat()))?;
    }
    Ok(())
}

fn shown(sample: &Statistic) -> String {
    let interval = sample.ci95().map(|half| format!(" ± {half:.3}")).unwrap_or_default();
    format!("{:.3}{interval}", sample.mean)
}

fn status(path: &Path, json: bool) -> Result<Ending, CliError> {
    let (folder, experiment, engines) = Folder::open(path)?;
    let there = folder.inventory()?;
    let Status { wanted, done } = Plan::new(&experiment, &engines)?.status(&there);
    let running = FolderLock::take(path).is_err();
    if json {
        let json = json!({
            "wanted": wanted, "done": done, "runs": there.runs, "files": there.files, "bytes": there.bytes,
            "running": running, "program": program(),
        });
        output::print(&json.to_string())?;
    } else {
        let now = if running { "; it is being run" } else { "" };
        output::print(&format!(
            "{}\n{}{now}\n{} files, {} B",
            experiment.title,
            going_on(Status { wanted, done }, there.runs),
            there.files,
            there.bytes
        ))?;
    }
    Ok(Ending::Done)
}

fn points(path: &Path, json: bool) -> Result<Ending, CliError> {
    let (folder, experiment, engines) = Folder::open(path)?;
    let _lock = FolderLock::take(path)?;
    let plan = progress::during("planning the runs", || Plan::new(&experiment, &engines))?;
    match print(&experiment, &plan, &folder, interrupt::flag(), json) {
        Err(CliError::Sweep(SweepError::Stopped)) => Ok(Ending::Interrupted),
        other => other.map(|()| Ending::Done),
    }
}

fn gc(path: &Path, dry_run: bool, json: bool) -> Result<Ending, CliError> {
    let (folder, experiment, engines) = Folder::open(path)?;
    let _lock = FolderLock::take(path)?;
    let cleaned = folder.clean(&Plan::new(&experiment, &engines)?, !dry_run)?;
    let Cleaned { runs, files, bytes } = cleaned;
    match json {
        true => output::print(&json!({ "runs": runs, "files": files, "bytes": bytes }).to_string())?,
        false => {
            let would = if dry_run { "would be removed" } else { "removed" };
            output::print(&format!("{would}: {runs} runs that are not asked for; {files} files, {bytes} B"))?;
        }
    }
    Ok(Ending::Done)
}
