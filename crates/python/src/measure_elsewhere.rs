//! Where there is no Linux.

use crate::error::EngineError;
use crate::experiment::Experiment;
use crate::results::Results;
use pyo3::prelude::*;
use std::path::PathBuf;

const NOT_LINUX: &str = "`measure` asks the TCP of a Linux kernel, and this is none";

/// It cannot.
#[pyfunction]
#[pyo3(signature = (experiment, host, key = None, trace = false, progress = None))]
#[expect(unused_variables, reason = "named as on Linux")]
pub fn measure(
    experiment: &Experiment,
    host: String,
    key: Option<PathBuf>,
    trace: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Results> {
    Err(EngineError::new_err(NOT_LINUX))
}

/// It cannot.
#[pyfunction]
#[pyo3(signature = (host, size, echoes, key = None))]
#[expect(unused_variables, reason = "named as on Linux")]
pub fn measured_path(host: String, size: &str, echoes: u32, key: Option<PathBuf>) -> PyResult<Experiment> {
    Err(EngineError::new_err(NOT_LINUX))
}
