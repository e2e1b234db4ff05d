//! What becomes of runs as they are made: tables and a report where these are asked for, and what is printed at the end.

use crate::error::CliError;
use crate::report;
use farpath_report::html::{ReportFile, Traces};
use farpath_run::{ExperimentSummary, REPORT, ResultsDir, ResultsError, Run, RunKey, Trace};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Runs that are kept as they come.
pub struct ResultSink<'a> {
    out: Option<&'a Path>,
    report: Option<&'a Path>,
    results: Option<ResultsDir>,
    report_file: Option<ReportFile>,
    /// Why the results folder takes no more.
    failed: Option<ResultsError>,
    traces: Traces,
    runs: Vec<Run>,
}

/// The runs that were made, to be printed first, and whether they were written.
pub struct Finished {
    /// Point by point.
    pub runs: Vec<Run>,
    /// The first thing that could not be written.
    pub written: Result<(), CliError>,
}

impl<'a> ResultSink<'a> {
    /// Takes the names of what is to be written, so that it is known before the first run whether it can be.
    pub fn new(
        out: Option<&'a Path>,
        report: Option<&'a Path>,
        traced: BTreeSet<RunKey>,
    ) -> Result<ResultSink<'a>, CliError> {
        out.map(report::may_write_in).transpose()?;
        let new = out.filter(|out| !out.exists());
        let results = out.map(ResultsDir::create).transpose()?;
        // It may be in that folder.
        let report_file = match report.map(ReportFile::create).transpose() {
            Ok(report_file) => report_file,
            Err(error) => {
                drop(results);
                // Empty, as it was made here.
                let _ = new.map(fs::remove_dir);
                return Err(error.into());
            }
        };
        let traces = Traces::for_runs(traced);
        Ok(ResultSink { out, report, results, report_file, failed: None, traces, runs: Vec::new() })
    }

    /// One more. False where it could not be written: no more is wanted then.
    #[must_use]
    pub fn take(&mut self, mut run: Run) -> bool {
        if let Some(results) = self.results.as_mut().filter(|_| self.failed.is_none()) {
            self.failed = results.append(&run).err();
        }
        self.traces.add(&run);
        // Traces are in the files; a sweep's would not fit into memory.
        run.series = Trace::default();
        run.segments = Trace::default();
        run.messages = Trace::default();
        self.runs.push(run);
        self.failed.is_none()
    }

    /// That was all of it, of so many that were wanted.
    pub fn finish(mut self, asked: &ExperimentSummary, wanted: usize) -> Finished {
        // Those in real time have come last.
        self.runs.sort_by_key(|run| run.point);
        let complete = self.runs.len() == wanted;
        if !complete {
            let why = if self.failed.is_some() { "not written" } else { "interrupted" };
            eprintln!("farpath: {why}: {} of {wanted} runs are shown", self.runs.len());
        }
        let ResultSink { out, report, results, report_file, failed, traces, runs } = self;
        // Stopped before the first run was done, there is nothing to put in the place of earlier results.
        if runs.is_empty() {
            return Finished { runs, written: Ok(()) };
        }
        let tables = || -> Result<Option<ResultsDir>, CliError> {
            let Some(mut results) = results else { return Ok(None) };
            failed.map_or(Ok(()), Err)?;
            results.describe(asked.clone());
            results.close(complete)?;
            Ok(Some(results))
        };
        let (results, tables) = tables().map_or_else(|error| (None, Err(error)), |results| (results, Ok(())));
        // The report of a folder comes into its place with the tables, and may be the one that was asked for by its name.
        let is_named = out.is_some_and(|out| report == Some(out.join(REPORT).as_path()));
        let pages = || -> Result<(), CliError> {
            let beside = report_file.filter(|_| !is_named || results.is_none());
            let within = results.as_ref().map(|results| ReportFile::create(results.report())).transpose()?;
            let files: Vec<ReportFile> = beside.into_iter().chain(within).collect();
            if !files.is_empty() {
                report::write(asked, &runs, &traces, complete, files)?;
            }
            Ok(())
        };
        let pages = pages();
        // Tables without a report are worth more than neither: `farpath report` makes it of them.
        let committed = results.map_or(Ok(()), |results| Ok(results.commit()?));
        Finished { runs, written: tables.and(committed).and(pages) }
    }
}
