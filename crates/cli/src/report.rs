//! `farpath report`, and the reports of runs.

use crate::args::ReportArgs;
use crate::error::CliError;
use crate::{Ending, output, progress};
use farpath_engine::Job;
use farpath_experiment::{Experiment, Scenario};
use farpath_report::html::{ReportError, ReportFile, Traces, asked_of, may_write, run_page, to_trace};
use farpath_run::{Asked, REPORT, Results, Run, RunKey};
use std::collections::BTreeSet;
use std::path::Path;

/// The most application bytes of a run that is traced unasked. A segment takes half a kB of memory until it is
/// written: a run of 10 GB would take more than many machines have.
const TRACED_BYTES: u64 = 500_000_000;

/// Marks the jobs whose traces a report shows, where that does not take too much memory.
pub fn trace(experiment: &Experiment, jobs: &mut [Job]) -> BTreeSet<RunKey> {
    let wanted = to_trace(jobs.iter().map(Job::key));
    let bytes =
        |scenario: &Scenario| scenario.flows.iter().fold(0_u64, |sum, flow| sum.saturating_add(flow.size.0));
    for job in jobs {
        let small = bytes(&experiment.points()[job.point].scenario) <= TRACED_BYTES;
        job.trace = small && wanted.contains(&job.key());
    }
    wanted
}

/// Refuses a folder in which the report would replace something else.
pub fn may_write_in(folder: &Path) -> Result<(), ReportError> {
    match folder.is_dir() {
        true => may_write(&folder.join(REPORT)),
        // Missing, or no folder: whoever writes the tables says so.
        false => Ok(()),
    }
}

/// Takes the name of the report of a results folder.
pub fn create_in(folder: &Path) -> Result<ReportFile, ReportError> {
    ReportFile::create(folder.join(REPORT))
}

/// Writes the report of some runs into each of the files.
pub fn write(
    asked: &Asked,
    runs: &[Run],
    traces: &Traces,
    complete: bool,
    files: impl IntoIterator<Item = ReportFile>,
) -> Result<(), CliError> {
    let html = run_page(asked, runs, traces, complete).render();
    for file in files {
        file.finish(&html)?;
    }
    Ok(())
}

/// Makes the report of a results folder.
pub fn report(args: &ReportArgs) -> Result<Ending, CliError> {
    let results = Results::read(&args.folder)?;
    let bar = progress::bar(1, "results to read");
    let wanted = to_trace(results.provenances().keys().copied());
    let asked = asked_of(&results);
    let runs = results.runs_traced(|key| wanted.contains(key))?;
    let mut traces = Traces::of(wanted);
    for run in &runs {
        traces.add(run);
    }
    let path = args.out.clone().unwrap_or_else(|| results.path().join(REPORT));
    bar.finish_and_clear();
    write(&asked, &runs, &traces, results.is_complete(), [ReportFile::create(&path)?])?;
    if let Some(warning) = results.warning() {
        eprintln!("farpath: {warning}");
    }
    output::print(&path.display().to_string())?;
    Ok(Ending::Done)
}
