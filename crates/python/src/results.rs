//! Runs, and what is shown of them.

use crate::error;
use crate::experiment::Experiment;
use crate::table::Table;
use crate::wait::{Going, wait};
use farpath_emulate::{EmulateError, can_all_be_emulated};
use farpath_engine::{EngineError, Job, can_all_be_answered, jobs, run_all};
use farpath_report::html::{Traces, run_page, summary_of_experiment};
use farpath_report::tables::ComparisonTable;
use farpath_run::{Engine, ExperimentSummary, PointSummary, ResultsDir, Run, RunKey};
use pyo3::exceptions::{PyIndexError, PyKeyError, PyValueError};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

/// What engines have given back.
#[pyclass(frozen, module = "farpath")]
pub struct Results {
    asked: ExperimentSummary,
    runs: Vec<Run>,
    wanted: usize,
    traced: bool,
}

pub fn engine(name: &str) -> PyResult<Engine> {
    Engine::from_name(name).ok_or_else(|| {
        PyValueError::new_err(format!("engine: expected predict, simulate or emulate, found `{name}`"))
    })
}

/// Runs an experiment, or the jobs of it that `only` names by point and seed.
#[pyfunction]
#[pyo3(signature = (experiment, engines, trace = false, only = None, progress = None))]
pub fn run(
    py: Python<'_>,
    experiment: &Experiment,
    engines: Vec<String>,
    trace: bool,
    only: Option<(usize, Option<u64>)>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Results> {
    let engines: Vec<Engine> = engines.iter().map(|name| engine(name)).collect::<PyResult<_>>()?;
    let experiment = experiment.0.clone();
    let refused = |refused: EngineError| error::engine(py, &refused);
    let not_emulated = |refused: EmulateError| error::engine(py, &refused);
    if engines.contains(&Engine::Measure) {
        return Err(PyValueError::new_err(
            "engine: `measure` has a host to measure to: see Experiment.measure",
        ));
    }
    can_all_be_answered(&experiment, &engines).map_err(refused)?;
    if engines.contains(&Engine::Emulate) {
        if experiment.emulates_in_real_time() {
            farpath_emulate::may_emulate_with_help().map_err(not_emulated)?;
        }
        can_all_be_emulated(&experiment).map_err(not_emulated)?;
    }
    let mut jobs = jobs(&experiment, &engines);
    if let Some((point, seed)) = only {
        jobs.retain(|job| job.point == point && (seed.is_none() || job.seed == seed));
        jobs.truncate(1);
    }
    jobs.iter_mut().for_each(|job: &mut Job| job.trace |= trace);
    let (asked, wanted) = (summary_of_experiment(&experiment, jobs.len() as u64), jobs.len());
    let going = Going::default();
    going.total.store(wanted as u64, Ordering::Relaxed);
    let made = wait(py, going, progress, move |going| {
        let mut runs = Vec::new();
        run_all(&experiment, &jobs, &going.stop, |run| {
            runs.push(run);
            going.done.fetch_add(1, Ordering::Relaxed);
            Ok::<(), EngineError>(())
        })?;
        runs.sort_by_key(|run| run.point);
        Ok::<Vec<Run>, EngineError>(runs)
    })?;
    Ok(Results::new(asked, made.map_err(refused)?, wanted, trace))
}

#[pymethods]
impl Results {
    fn __len__(&self) -> usize {
        self.runs.len()
    }

    /// Point, engine and seed of each run.
    #[getter]
    fn keys(&self) -> Vec<(u64, &'static str, Option<u64>)> {
        self.runs.iter().map(|run| (run.point, run.engine.name(), run.seed)).collect()
    }

    /// Whether every trace of its runs was asked for.
    #[getter]
    fn traced(&self) -> bool {
        self.traced
    }

    /// One of the runs, by itself.
    fn only(&self, index: usize) -> PyResult<Results> {
        let run = self.runs.get(index).ok_or_else(|| PyIndexError::new_err(index))?;
        Ok(Results::new(self.asked.clone(), vec![run.clone()], 1, self.traced))
    }

    /// Title of the experiment.
    #[getter]
    fn title(&self) -> &str {
        &self.asked.title
    }

    /// Keys and values of each point.
    #[getter]
    fn points(&self) -> Vec<Vec<(String, String)>> {
        self.asked.points.iter().map(|point| point.swept.clone()).collect()
    }

    /// What to know of the numbers, each once.
    #[getter]
    fn caveats(&self) -> Vec<String> {
        let mut caveats = Vec::new();
        for caveat in self.runs.iter().flat_map(|run| &run.provenance.caveats) {
            if !caveats.contains(caveat) {
                caveats.push(caveat.clone());
            }
        }
        caveats
    }

    /// One of the tables, of all runs.
    fn table(&self, name: &str) -> PyResult<Table> {
        use farpath_run::Table as Kind;
        let kind = Kind::from_name(name).ok_or_else(|| {
            let known = Kind::ALL.map(Kind::name).join(", ");
            PyKeyError::new_err(format!("no table is called {name:?}; there are: {known}"))
        })?;
        let batches = match kind {
            Kind::Flows if !self.runs.is_empty() => vec![farpath_run::flow_batch(&self.runs)],
            _ => self.runs.iter().flat_map(|run| kind.batches(run)).collect(),
        };
        Ok(Table::new(kind.schema(), batches))
    }

    /// A summary for each point and engine, as JSON.
    fn summaries(&self) -> String {
        let summaries = PointSummary::of_runs(&self.runs);
        serde_json::Value::from_iter(summaries.iter().map(PointSummary::to_json)).to_string()
    }

    /// The table that the command prints.
    fn text(&self, width: u16) -> String {
        ComparisonTable::from_runs(&self.asked, &self.runs).table().to_text(Some(width))
    }

    /// The figures of the report of these runs, as JSON: plot, title, caption, what is set, and data.
    fn figures(&self) -> Vec<(String, String, String)> {
        let page = self.page();
        let figures = page.figures().into_iter();
        figures
            .map(|figure| (figure.title.clone(), figure.caption.clone(), figure.to_json().to_string()))
            .collect()
    }

    /// The report, as HTML.
    fn html(&self) -> String {
        self.page().render()
    }

    /// Writes the tables into a results folder.
    fn save(&self, py: Python<'_>, folder: PathBuf) -> PyResult<()> {
        let write = || {
            let mut results = ResultsDir::create(folder)?;
            results.describe(self.asked.clone());
            self.runs.iter().try_for_each(|run| results.append(run))?;
            results.finish(self.runs.len() == self.wanted)
        };
        write().map_err(|refused| error::results(py, &refused))
    }
}

impl Results {
    pub fn new(asked: ExperimentSummary, runs: Vec<Run>, wanted: usize, traced: bool) -> Results {
        Results { asked, runs, wanted, traced }
    }

    fn page(&self) -> farpath_report::html::Page {
        let mut traces =
            Traces::for_runs(self.runs.iter().map(Run::key).collect::<std::collections::BTreeSet<RunKey>>());
        self.runs.iter().for_each(|run| traces.add(run));
        run_page(&self.asked, &self.runs, &traces, self.runs.len() == self.wanted)
    }
}
