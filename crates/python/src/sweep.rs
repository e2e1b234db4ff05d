//! Sweeps: what is missing is made here or elsewhere, and kept here.

use crate::error;
use crate::experiment::Experiment;
use crate::results::engine;
use crate::table::Table;
use crate::wait::{Going, wait};
use farpath_emulate::can_be_emulated;
use farpath_run::{Engine, FolderLock};
use farpath_sweep::{
    Chunk, Folder, Limits, Plan, PointKey, Precision, Search, Searching, Wanted, more_seeds, program,
    run_missing, write_points,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// So many runs, some 6 kB each, are held before they are columns.
const BATCH: usize = 1 << 14;

/// Runs to be made: point, its key, engine, first seed, and the one after the last.
type Span = (usize, String, String, u64, u64);

/// A sweep in its folder, which is its own until it is released.
#[pyclass(frozen, module = "farpath")]
pub struct Sweep {
    experiment: Arc<farpath_experiment::Experiment>,
    folder: Arc<Folder>,
    plan: Mutex<Plan>,
    searching: Option<Searching>,
    lock: Mutex<Option<Arc<FolderLock>>>,
}

#[pymethods]
impl Sweep {
    #[new]
    #[pyo3(signature = (experiment, out, engines, find = None))]
    fn new(
        py: Python<'_>,
        experiment: &Experiment,
        out: PathBuf,
        engines: Vec<String>,
        find: Option<(String, String, String)>,
    ) -> PyResult<Sweep> {
        let engines: Vec<Engine> = engines.iter().map(|name| engine(name)).collect::<PyResult<_>>()?;
        let experiment = experiment.0.clone();
        let mut plan = Plan::new(&experiment, &engines).map_err(|refused| error::sweep(py, &refused))?;
        let search = find.map(|(key, of, value)| Search::new(&key, &of, &value)).transpose();
        let searching = search
            .and_then(|search| search.map(|search| search.begin(&experiment, &mut plan)).transpose())
            .map_err(|refused| PyValueError::new_err(refused.to_string()))?;
        let made = Folder::create(out, &experiment, &engines);
        let (folder, lock) = made.map_err(|refused| error::sweep(py, &refused))?;
        let (folder, plan) = (Arc::new(folder), Mutex::new(plan));
        let lock = Mutex::new(Some(Arc::new(lock)));
        Ok(Sweep { experiment, folder, plan, searching, lock })
    }

    /// Asks for the next points of a search; false where all is found, or nothing is looked for.
    fn more_points(&self, py: Python<'_>) -> PyResult<bool> {
        let Some(searching) = &self.searching else { return Ok(false) };
        let more = searching.more_points(&mut self.plan(), &self.folder);
        more.map_err(|refused| error::sweep(py, &refused))
    }

    /// What a search found, each as JSON.
    fn thresholds(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let Some(searching) = &self.searching else { return Ok(Vec::new()) };
        let found = searching.thresholds(&self.plan(), &self.folder);
        let found = found.map_err(|refused| error::sweep(py, &refused))?;
        let json = |one: farpath_sweep::Threshold| one.to_json(&self.experiment, searching.search());
        Ok(found.into_iter().map(|one| json(one).to_string()).collect())
    }

    /// How many runs are there, and how many are wanted.
    fn status(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        let there = self.folder.inventory().map_err(|refused| error::sweep(py, &refused))?;
        let status = self.plan().status(&there);
        Ok((status.done, status.wanted))
    }

    /// Makes what is missing on this machine; gives how many runs were void, and are not kept.
    #[pyo3(signature = (chunk = 4096, progress = None))]
    fn run(&self, py: Python<'_>, chunk: usize, progress: Option<Py<PyAny>>) -> PyResult<u64> {
        let there = self.folder.inventory().map_err(|refused| error::sweep(py, &refused))?;
        let plan = self.plan().clone();
        let emulated = plan.wanted().any(|wanted| wanted.engine == Engine::Emulate);
        may_emulate(py, &self.experiment, emulated)?;
        let (missing, status) = (plan.missing(&there), plan.status(&there));
        let going = Going::default();
        going.total.store(status.wanted, Ordering::Relaxed);
        going.done.store(status.done, Ordering::Relaxed);
        // The lock goes with the work: after Ctrl-C that goes on for a moment.
        let (experiment, folder, lock) = (self.experiment.clone(), self.folder.clone(), self.lock().clone());
        let made = wait(py, going, progress, move |going| {
            let _lock = lock;
            let limits = Limits { runs: chunk.max(1), ..Limits::default() };
            run_missing(&experiment, &plan, missing, &folder, limits, &going.stop, |runs| {
                going.done.fetch_add(runs, Ordering::Relaxed);
            })
        })?;
        made.map_err(|refused| error::sweep(py, &refused))
    }

    /// What is missing of what is emulated, or of all else, in tasks of so many runs.
    fn missing(&self, py: Python<'_>, runs: u64, emulated: bool) -> PyResult<Missing> {
        let there = self.folder.inventory().map_err(|refused| error::sweep(py, &refused))?;
        let mut left = self.plan().missing(&there);
        left.retain(|wanted| (wanted.engine == Engine::Emulate) == emulated);
        left.reverse();
        Ok(Missing { left, runs: runs.max(1) })
    }

    /// Keeps a chunk that was made elsewhere.
    fn keep(&self, py: Python<'_>, name: String, bytes: Vec<u8>, runs: u64) -> PyResult<()> {
        let kept = self.folder.keep(&Chunk { name, bytes, runs });
        kept.map_err(|refused| error::sweep(py, &refused))
    }

    /// Asks for more seeds where an interval is too wide; false where none is.
    fn more_seeds(&self, py: Python<'_>, until: &str, of: String, most: u64) -> PyResult<bool> {
        let until: Precision = until.parse().map_err(PyValueError::new_err)?;
        let precision = Precision { statistic: of, most, ..until };
        precision.check().map_err(|refused| PyValueError::new_err(refused.to_string()))?;
        let more = more_seeds(&mut self.plan(), &self.folder, &precision);
        more.map_err(|refused| error::sweep(py, &refused))
    }

    /// Writes the table of points; `take` is called with each summary as JSON.
    #[pyo3(signature = (take = None))]
    fn write_points(&self, py: Python<'_>, take: Option<Py<PyAny>>) -> PyResult<()> {
        let mut taken = Ok(());
        let written = write_points(
            &self.experiment,
            &self.plan(),
            &self.folder,
            &AtomicBool::new(false),
            |summary, _| {
                if let Some(take) = take.as_ref().filter(|_| taken.is_ok()) {
                    taken = take.call1(py, (summary.to_json().to_string(),)).map(drop);
                }
            },
        );
        written.map_err(|refused| error::sweep(py, &refused))?;
        taken
    }

    /// Leaves the folder to others: what is in it can still be read.
    fn release(&self) {
        self.lock().take();
    }

    /// The flows of all runs.
    fn flows(&self, py: Python<'_>) -> PyResult<Table> {
        let (mut batches, mut runs) = (Vec::new(), Vec::new());
        let plan = self.plan();
        let read = self.folder.groups(&plan, &AtomicBool::new(false), |wanted, of_point| {
            let point = wanted.point as u64;
            runs.extend(of_point.iter().cloned().map(|run| farpath_run::Run { point, ..run }));
            if runs.len() >= BATCH {
                batches.push(farpath_run::flow_batch(&std::mem::take(&mut runs)));
            }
        });
        read.map_err(|refused| error::sweep(py, &refused))?;
        batches.push(farpath_run::flow_batch(&runs));
        Ok(Table::new(farpath_run::Table::Flows.schema(), batches))
    }
}

impl Sweep {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Arc<FolderLock>>> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn plan(&self) -> std::sync::MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tasks, each made when it is asked for: a point of a large sweep takes 300 B in Python's words, and a sixth of that here.
#[pyclass(module = "farpath")]
pub struct Missing {
    /// The next one last.
    left: Vec<Wanted>,
    /// Of a task.
    runs: u64,
}

#[pymethods]
impl Missing {
    fn __bool__(&self) -> bool {
        !self.left.is_empty()
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&mut self) -> Option<Vec<Span>> {
        let (mut task, mut room) = (Vec::new(), self.runs);
        while room > 0
            && let Some(Wanted { point, key, engine, seeds }) = self.left.last_mut()
        {
            let end = seeds.end.min(seeds.start.saturating_add(room));
            room -= end - seeds.start;
            task.push((*point, key.to_string(), engine.name().to_owned(), seeds.start, end));
            seeds.start = end;
            if seeds.is_empty() {
                self.left.pop();
            }
        }
        (!task.is_empty()).then_some(task)
    }
}

/// Whether this process may do what is emulated in real time.
fn may_emulate(py: Python<'_>, experiment: &farpath_experiment::Experiment, emulated: bool) -> PyResult<()> {
    if !emulated {
        return Ok(());
    }
    let privileges = match experiment.emulates_in_real_time() {
        true => farpath_emulate::may_emulate_with_help(),
        false => Ok(()),
    };
    let possible =
        privileges.and_then(|()| experiment.points().try_for_each(|point| can_be_emulated(&point)));
    possible.map_err(|refused| error::engine(py, &refused))
}

/// Makes runs that a sweep elsewhere is missing: a chunk's name, its bytes, and how many runs it holds.
#[pyfunction]
pub fn run_chunk(
    py: Python<'_>,
    experiment: &Experiment,
    spans: Vec<Span>,
    asked_by: &str,
) -> PyResult<(String, Vec<u8>, u64)> {
    if asked_by != program() {
        let (here, told) = (program(), "the same on all of them");
        let text = format!(
            "a worker runs farpath {here}, and the sweep was asked for by {asked_by}: install {told}"
        );
        return Err(error::SweepError::new_err(text));
    }
    let wanted = |(point, key, name, first, end): Span| {
        let key = PointKey::parse(&key).ok_or_else(|| PyValueError::new_err(format!("`{key}` is no key")))?;
        Ok(Wanted { point, key, engine: engine(&name)?, seeds: first..end })
    };
    let wanted: Vec<Wanted> = spans.into_iter().map(wanted).collect::<PyResult<_>>()?;
    let experiment = experiment.0.clone();
    may_emulate(py, &experiment, wanted.iter().any(|wanted| wanted.engine == Engine::Emulate))?;
    let never = AtomicBool::new(false);
    let made = py.detach(|| farpath_sweep::run_chunk(&experiment, &wanted, &never));
    let Chunk { name, bytes, runs } = made.map_err(|refused| error::sweep(py, &refused))?;
    Ok((name, bytes, runs))
}
