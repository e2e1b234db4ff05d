//! `farpath report`, and the reports of runs.

use crate::args::ReportArgs;
use crate::error::CliError;
use crate::{Ending, output, progress};
use farpath_engine::Job;
use farpath_experiment::{Experiment, Scenario};
use farpath_report::html::{
    ReportError, ReportFile, Traces, may_write, run_page, summary_of_results, to_trace,
};
use farpath_run::{ExperimentSummary, REPORT, Results, Run, RunKey};
use std::collections::BTreeSet;
use std::path::Path;

/// The most segments of data of all runs together that are traced unasked, 500 MB in segments of 1460 B. Each takes
/// about 1 kB of memory until it is written, with its ACK and what changes by it, and with many cores no run may be
/// written before the last has begun.
const TRACED_SEGMENTS: u64 = 350_000;

/// Segments of data that a scenario sends if none is lost.
fn segments(scenario: &Scenario) -> u64 {
    let mss = scenario.sender.config.mss.min(scenario.receiver.config.mss).0.max(1);
    scenario.flows.iter().fold(0, |sum, flow| sum.saturating_add(flow.size.0.div_ceil(mss)))
}

/// Marks the jobs whose traces a report shows, the smallest first, as far as they do not take too much memory.
pub fn trace(experiment: &Experiment, jobs: &mut [Job]) -> BTreeSet<RunKey> {
    let wanted = to_trace(jobs.iter().map(Job::key));
    let size = |job: &Job| segments(&experiment.point(job.point).scenario);
    let mut shown: Vec<&mut Job> = jobs.iter_mut().filter(|job| wanted.contains(&job.key())).collect();
    shown.sort_by_key(|job| size(job));
    let mut left = TRACED_SEGMENTS;
    for job in shown {
        let Some(rest) = left.checked_sub(size(job)) else { break };
        left = rest;
        job.trace = true;
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

/// Writes the report of some runs into each of the files.
pub fn write(
    asked: &ExperimentSummary,
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
    let path = args.out.clone().unwrap_or_else(|| results.path().join(REPORT));
    let file = ReportFile::create(&path)?;
    let bar = progress::bar(1, "results to read");
    let wanted = to_trace(results.provenances().keys().copied());
    let asked = summary_of_results(&results);
    let runs = results.runs_traced(|key| wanted.contains(key))?;
    let mut traces = Traces::for_runs(wanted);
    for run in &runs {
        traces.add(run);
    }
    drop(bar);
    write(&asked, &runs, &traces, results.is_complete(), [file])?;
    if let Some(warning) = results.warning() {
        output::tell(&warning.to_string());
    }
    output::print(&path.display().to_string())?;
    Ok(Ending::Done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpath_engine::jobs;
    use farpath_experiment::shipped_experiments;
    use farpath_run::Engine;

    /// The points that are traced unasked of a sweep.
    fn traced(changes: &[&str]) -> Vec<usize> {
        let shipped = shipped_experiments();
        let file = shipped.iter().find(|file| file.name == "single-drop").expect("it ships");
        let changes: Vec<_> = changes.iter().map(|text| text.parse().expect("a change")).collect();
        let experiment = Experiment::parse(file.text, file.name, &changes).expect("good");
        let mut jobs = jobs(&experiment, &[Engine::Simulate]);
        trace(&experiment, &mut jobs);
        jobs.iter().filter(|job| job.trace).map(|job| job.point).collect()
    }

    #[test]
    fn what_is_traced_unasked_is_bounded_over_all_runs_by_its_segments() {
        let sizes = "sweep.transfer.size=['2 GB', '200 MB', '1 kB', '300 MB', '100 MB']";
        assert_eq!(traced(&[sizes]), [1, 2, 4], "the smallest, as long as there is room");
        assert_eq!(traced(&[sizes, "receiver.mss=100 B"]), [2], "the smaller MSS counts");
        assert_eq!(traced(&[sizes, "flow=[{count=4}]"]), [2, 4], "and every flow");
        assert_eq!(traced(&[]), [0]);
    }
}
