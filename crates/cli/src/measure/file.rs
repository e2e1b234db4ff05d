//! An experiment's transfers, between this host and the peer.

use crate::args::{MeasureArgs, PathArgs, SourceArgs, TableFormat};
use crate::error::CliError;
use crate::result_sink::{Finished, ResultSink};
use crate::source::{self, Source};
use crate::{Ending, interrupt, progress, report, run};
use farpath_engine::{jobs, provenance};
use farpath_measure::{Key, can_be_measured, measure as measure_point};
use farpath_report::html;
use farpath_run::Engine;
use std::collections::BTreeSet;

/// Measures each point, run by run.
pub fn measure(args: &MeasureArgs, host: &str, key: Option<&Key>) -> Result<Ending, CliError> {
    let asked = SourceArgs {
        file: Some(args.what.clone().into()),
        path: PathArgs::default(),
        seeds: args.seeds,
        set: args.set.clone(),
    };
    let Source { experiment, file } = source::load(&asked, true)?;
    for point in experiment.points() {
        can_be_measured(&point).map_err(|source| CliError::NotMeasured { file: file.clone(), source })?;
    }
    let mut jobs = jobs(&experiment, &[Engine::Measure]);
    let wants_report = args.out.is_some() || args.report.is_some();
    let traced = if wants_report { report::trace(&experiment, &mut jobs) } else { BTreeSet::new() };
    let mut peer = super::peer(args, host, key)?;
    let asked = html::summary_of_experiment(&experiment, jobs.len() as u64);
    let mut sink = ResultSink::new(args.out.as_deref(), args.report.as_deref(), traced)?;
    let bar = progress::bar(jobs.len() as u64, "runs");
    let mut failed = None;
    for job in &jobs {
        let mut point = experiment.point(job.point).into_owned();
        point.scenario.output.series |= job.trace;
        point.scenario.output.messages |= job.trace;
        let mut seen =
            |seen: farpath_measure::Seen| bar.set_message(format!("runs; {}", progress::measured(seen)));
        let provenance = provenance(&experiment, &point);
        match measure_point(
            &mut peer,
            &point,
            job.seed.unwrap_or_default(),
            provenance,
            interrupt::flag(),
            &mut seen,
        ) {
            Ok(run) => {
                if !run.is_some_and(|run| sink.take(run)) {
                    break;
                }
            }
            // What is finished is kept; then the reason is given.
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
        bar.inc(1);
    }
    drop(bar);
    let Finished { runs, written } = sink.finish(&asked, jobs.len());
    if !runs.is_empty() {
        let rows = if args.flows { run::Rows::Flows } else { run::Rows::Points };
        let format = (!args.json).then_some(TableFormat::Text);
        run::print(&experiment, &asked, &runs, format, rows)?;
    }
    written?;
    match failed {
        Some(error) => Err(error.into()),
        None if runs.len() < jobs.len() => Ok(Ending::Interrupted),
        None => Ok(Ending::Done),
    }
}
