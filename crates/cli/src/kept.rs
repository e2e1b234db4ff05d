//! What becomes of runs as they are made: tables and a report where these are asked for, and what is printed at the end.

use crate::error::CliError;
use crate::report;
use farpath_report::html::{ReportFile, Traces};
use farpath_run::{Asked, REPORT, ResultsDir, ResultsError, Run, RunKey, Trace};
use std::collections::BTreeSet;
use std::path::Path;

/// Runs that are kept as they come.
pub struct Kept<'a> {
    out: Option<&'a Path>,
    report: Option<&'a Path>,
    asked: Asked,
    results: Option<ResultsDir>,
    report_file: Option<ReportFile>,
    traces: Traces,
    runs: Vec<Run>,
}

impl<'a> Kept<'a> {
    /// Takes the names of what is to be written, so that it is known before the first run whether it can be.
    pub fn new(
        out: Option<&'a Path>,
        report: Option<&'a Path>,
        asked: Asked,
        traced: BTreeSet<RunKey>,
    ) -> Result<Kept<'a>, CliError> {
        out.map(report::may_write_in).transpose()?;
        let mut results = out.map(ResultsDir::create).transpose()?;
        if let Some(results) = &mut results {
            results.describe(asked.clone());
        }
        let report_file = report.map(ReportFile::create).transpose()?;
        Ok(Kept { out, report, asked, results, report_file, traces: Traces::of(traced), runs: Vec::new() })
    }

    /// One more.
    pub fn take(&mut self, mut run: Run) -> Result<(), ResultsError> {
        if let Some(results) = &mut self.results {
            results.append(&run)?;
        }
        self.traces.add(&run);
        // Traces are in the files; a sweep's would not fit into memory.
        run.series = Trace::default();
        run.segments = Trace::default();
        run.messages = Trace::default();
        self.runs.push(run);
        Ok(())
    }

    /// That was all of it, of so many that were wanted. Gives what was asked, and the runs point by point.
    pub fn finish(self, wanted: usize) -> Result<(Asked, Vec<Run>), CliError> {
        let Kept { out, report, asked, results, report_file, traces, mut runs } = self;
        // Those in real time have come last.
        runs.sort_by_key(|run| run.point);
        let complete = runs.len() == wanted;
        // Stopped before the first run was done, there is nothing to put in the place of earlier results.
        if !runs.is_empty() {
            if let Some(results) = results {
                results.finish(complete)?;
            }
            let folder = out.filter(|out| report != Some(out.join(REPORT).as_path()));
            let files = [report_file, folder.map(report::create_in).transpose()?];
            if files.iter().any(Option::is_some) {
                report::write(&asked, &runs, &traces, complete, files.into_iter().flatten())?;
            }
        }
        if !complete {
            eprintln!("farpath: interrupted: {} of {wanted} runs are shown", runs.len());
        }
        Ok((asked, runs))
    }
}
