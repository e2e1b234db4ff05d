//! One tree of exceptions, with what caused each.

use farpath_experiment::{ExperimentError as Refused, ParseOverrideError};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyOSError};
use pyo3::prelude::*;
use std::error::Error;
use std::io;

create_exception!(farpath, FarpathError, PyException, "Everything that Farpath refuses or fails at.");
create_exception!(
    farpath,
    ExperimentError,
    FarpathError,
    "An experiment is refused; `file` and `key` say where."
);
create_exception!(
    farpath,
    EngineError,
    FarpathError,
    "An engine has no answer, or this machine cannot ask it."
);
create_exception!(farpath, ResultsError, FarpathError, "Results cannot be written or read.");
create_exception!(farpath, SweepError, FarpathError, "A sweep cannot be run, written or read.");
create_exception!(farpath, CommandError, FarpathError, "What the command refuses.");
create_exception!(farpath, UnitError, FarpathError, "A quantity that is none, or has another unit.");

pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("FarpathError", py.get_type::<FarpathError>())?;
    module.add("ExperimentError", py.get_type::<ExperimentError>())?;
    module.add("EngineError", py.get_type::<EngineError>())?;
    module.add("ResultsError", py.get_type::<ResultsError>())?;
    module.add("SweepError", py.get_type::<SweepError>())?;
    module.add("CommandError", py.get_type::<CommandError>())?;
    module.add("UnitError", py.get_type::<UnitError>())
}

/// An exception for an error, its causes behind it.
fn with_causes<T: pyo3::PyTypeInfo>(py: Python<'_>, error: &(dyn Error + 'static)) -> PyErr {
    let raised = PyErr::new::<T, _>(error.to_string());
    let cause = error.source().map(|source| match source.downcast_ref::<io::Error>() {
        // With its number it becomes a FileNotFoundError and the like.
        Some(error) => match error.raw_os_error() {
            Some(number) => PyOSError::new_err((number, error.to_string())),
            None => PyOSError::new_err(error.to_string()),
        },
        None => with_causes::<FarpathError>(py, source),
    });
    raised.set_cause(py, cause);
    raised
}

pub fn experiment(py: Python<'_>, error: &Refused) -> PyErr {
    let raised = with_causes::<ExperimentError>(py, error);
    if let Some(at) = error.location() {
        // Attributes of an exception of ours can be set.
        let value = raised.value(py);
        let _ = value.setattr("file", &at.origin).and_then(|()| value.setattr("key", &at.key));
    }
    raised
}

pub fn change(py: Python<'_>, error: &ParseOverrideError) -> PyErr {
    with_causes::<ExperimentError>(py, error)
}

pub fn engine(py: Python<'_>, error: &(dyn Error + 'static)) -> PyErr {
    with_causes::<EngineError>(py, error)
}

pub fn results(py: Python<'_>, error: &farpath_run::ResultsError) -> PyErr {
    with_causes::<ResultsError>(py, error)
}

pub fn sweep(py: Python<'_>, error: &farpath_sweep::SweepError) -> PyErr {
    with_causes::<SweepError>(py, error)
}

pub fn command(py: Python<'_>, error: &(dyn Error + 'static)) -> PyErr {
    with_causes::<CommandError>(py, error)
}
