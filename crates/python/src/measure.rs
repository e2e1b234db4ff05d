//! A real network, and the host at the other end of it.

use crate::error;
use crate::experiment::{Experiment, quantity};
use crate::results::Results;
use crate::wait::{Going, wait};
use farpath_engine::{jobs, provenance};
use farpath_measure::{Family, Key, Peer, Probing, can_be_measured, estimate, measure as measure_point};
use farpath_report::html::summary_of_experiment;
use farpath_run::{Engine, Run};
use farpath_units::{Bytes, Duration};
use pyo3::prelude::*;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// A host that cannot be reached, does not let this one in, or is lost.
type Failed = Box<dyn Error + Send + Sync>;

fn peer(host: &str, key: Option<&Path>, going: &Going) -> Result<Peer, Failed> {
    let key = key.map(Key::read).transpose()?;
    Ok(Peer::connect(host, Family::Any, key.as_ref(), &going.stop)?)
}

/// Measures the transfers of an experiment between this host and the peer.
#[pyfunction]
#[pyo3(signature = (experiment, host, key = None, trace = false, progress = None))]
pub fn measure(
    py: Python<'_>,
    experiment: &Experiment,
    host: String,
    key: Option<PathBuf>,
    trace: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Results> {
    let experiment = experiment.0.clone();
    let possible = experiment.points().try_for_each(|point| can_be_measured(&point));
    possible.map_err(|refused| error::engine(py, &refused))?;
    let jobs = jobs(&experiment, &[Engine::Measure]);
    let (asked, wanted) = (summary_of_experiment(&experiment, jobs.len() as u64), jobs.len());
    let going = Going::default();
    going.total.store(wanted as u64, Ordering::Relaxed);
    let made = wait(py, going, progress, move |going| {
        let mut peer = peer(&host, key.as_deref(), going)?;
        let mut runs: Vec<Run> = Vec::new();
        for job in &jobs {
            let mut point = experiment.point(job.point).into_owned();
            point.scenario.output.series |= trace;
            point.scenario.output.messages |= trace;
            let (seed, from) = (job.seed.unwrap_or_default(), provenance(&experiment, &point));
            runs.extend(measure_point(&mut peer, &point, seed, from, &going.stop, &mut |_| {})?);
            going.done.fetch_add(1, Ordering::Relaxed);
        }
        Ok(runs)
    })?;
    let runs = made.map_err(|failed: Failed| error::engine(py, &*failed))?;
    Ok(Results::new(asked, runs, wanted, trace))
}

/// Looks at the path to a host, and gives it as an experiment with a transfer of this size.
#[pyfunction]
#[pyo3(signature = (host, size, echoes, key = None))]
pub fn measured_path(
    py: Python<'_>,
    host: String,
    size: &str,
    echoes: u32,
    key: Option<PathBuf>,
) -> PyResult<Experiment> {
    let size: Bytes = quantity("size", size)?;
    let origin = host.clone();
    let made = wait(py, Going::default(), None, move |going| {
        let probing = Probing { echoes: echoes.clamp(10, 100_000), interval: Duration::from_millis(5) };
        let found = estimate(&mut peer(&host, key.as_deref(), going)?, probing, &going.stop, &mut |_| {})?;
        Ok(found.to_toml(size))
    })?;
    let text = made.map_err(|failed: Failed| error::engine(py, &*failed))?;
    Experiment::parse(py, &text, &origin, Vec::new())
}
