//! What is neither a run nor a sweep: what bounds a transfer, how far TCP reaches, and what papers say. As JSON, which Python has a reader for.

use crate::error;
use crate::experiment::Experiment;
use crate::wait::{Going, wait};
use farpath_cli::{RadiusQuestion, parse_loss};
use farpath_explain::{Effort, ExplainError, Watch};
use farpath_report::papers::{Paper, PaperError, Runs, Verdict, check_paper, paper, papers as all_papers};
use farpath_units::ParseQuantityError;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::error::Error;
use std::sync::atomic::Ordering;

/// What bounds a point's transfer, and what to change.
#[pyfunction]
#[pyo3(signature = (experiment, point = 0, seeds = None, progress = None))]
pub fn explain(
    py: Python<'_>,
    experiment: &Experiment,
    point: usize,
    seeds: Option<u64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let experiment = experiment.0.clone();
    let made = wait(py, Going::default(), progress, move |going| {
        let planned = |runs| {
            going.total.fetch_add(runs, Ordering::Relaxed);
        };
        let done = || {
            going.done.fetch_add(1, Ordering::Relaxed);
        };
        let watch = Watch { stop: &going.stop, planned: &planned, done: &done };
        farpath_explain::explain(&experiment, point, Effort { seeds, ..Effort::default() }, &watch)
    })?;
    match made {
        Ok(explanation) => {
            Ok(serde_json::to_string(&explanation).expect("an explanation has no keys but text"))
        }
        Err(ExplainError::Experiment(refused)) => Err(error::experiment(py, &refused)),
        Err(refused) => Err(error::engine(py, &refused)),
    }
}

/// The radii of stacks.
#[pyfunction]
#[pyo3(signature = (stacks, to, via, rate, loss, gap, check, progress))]
#[expect(clippy::too_many_arguments, reason = "they are the keywords of the Python function")]
pub fn radius(
    py: Python<'_>,
    stacks: Vec<String>,
    to: Option<String>,
    via: Option<String>,
    rate: Option<String>,
    loss: Vec<String>,
    gap: Option<String>,
    check: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Vec<String>> {
    let refused = |refused: String| error::command(py, &*Box::<dyn Error>::from(refused));
    let question = RadiusQuestion {
        stacks,
        to,
        via,
        rate: rate
            .map(|text| text.parse().map_err(|error: ParseQuantityError| refused(error.to_string())))
            .transpose()?,
        loss: loss.iter().map(|text| parse_loss(text).map_err(refused)).collect::<PyResult<_>>()?,
        gap: gap
            .map(|text| text.parse().map_err(|error: ParseQuantityError| refused(error.to_string())))
            .transpose()?,
        check,
    };
    let made = wait(py, Going::default(), progress, move |going| {
        let watch = farpath_cli::Watch {
            stopped: &|| going.stop.load(Ordering::Relaxed),
            planned: &|radii| {
                going.total.fetch_add(radii, Ordering::Relaxed);
            },
            done: &|| {
                going.done.fetch_add(1, Ordering::Relaxed);
            },
        };
        farpath_cli::radius_lines(question, &watch)
    })?;
    made.map_err(|refused| error::command(py, &*refused))
}

/// What a check of a paper can come to, and what that means.
pub fn verdicts() -> Vec<(&'static str, &'static str)> {
    Verdict::ALL.iter().map(|verdict| (verdict.name(), verdict.meaning().trim())).collect()
}

/// The checks of papers, of all that there are where none is named; the running kernel's too with `emulate`.
#[pyfunction]
#[pyo3(signature = (ids, emulate = false, progress = None))]
pub fn papers(
    py: Python<'_>,
    ids: Vec<String>,
    emulate: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Vec<String>> {
    let refused = |refused: PaperError| match refused {
        PaperError::Unknown { .. } => PyValueError::new_err(refused.to_string()),
        other => error::engine(py, &other),
    };
    if emulate {
        farpath_emulate::may_emulate_with_help().map_err(|refused| error::engine(py, &refused))?;
    }
    let asked: Vec<Paper> = match ids.as_slice() {
        [] => all_papers(),
        ids => ids.iter().map(|id| paper(id)).collect(),
    }
    .map_err(refused)?;
    let going = Going::default();
    let checks: usize = asked.iter().flat_map(|paper| &paper.claims).map(|claim| claim.checks.len()).sum();
    going.total.store(checks as u64, Ordering::Relaxed);
    let made = wait(py, going, progress, move |going| {
        let mut lines = Vec::new();
        for paper in &asked {
            let mut runs = Runs::default();
            runs.emulate = emulate;
            check_paper(paper, &mut runs, &going.stop, |checked| {
                lines.push(checked.to_json().to_string());
                going.done.fetch_add(1, Ordering::Relaxed);
            })?;
        }
        Ok(lines)
    })?;
    made.map_err(refused)
}
