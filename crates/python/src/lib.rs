//! `farpath._farpath`: what Python asks of Rust. Everything that a user meets is in `python/farpath`.

mod answers;
mod error;
mod experiment;
#[cfg(target_os = "linux")]
mod measure;
#[cfg(not(target_os = "linux"))]
#[path = "measure_elsewhere.rs"]
mod measure;
mod results;
mod sweep;
mod table;
mod units;
mod wait;

use pyo3::prelude::*;
use std::ffi::OsString;

/// Runs the command; gives its exit code.
#[pyfunction]
fn main(py: Python<'_>, args: Vec<OsString>) -> u8 {
    // Ctrl-C is the command's own business, as where it is a program.
    py.detach(|| farpath_cli::exit_code(args))
}

/// Has the command started as this code of an interpreter, which is the program that runs.
#[pyfunction]
fn start_program_by(interpreter: Vec<String>, code: String) {
    #[cfg(target_os = "linux")]
    farpath_emulate::start_program_by(interpreter, code);
    #[cfg(not(target_os = "linux"))]
    drop((interpreter, code));
}

/// The definition of a plot, as JSON.
#[pyfunction]
fn plot(name: &str) -> Option<String> {
    farpath_report::html::definition(name).map(|definition| definition.to_string())
}

/// The module.
#[pymodule]
fn _farpath(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("PROGRAM", farpath_sweep::program())?;
    module.add("PLOTS", farpath_report::html::plot_names())?;
    module.add("VERDICTS", answers::verdicts())?;
    error::add(module)?;
    module.add_class::<experiment::Experiment>()?;
    module.add_class::<results::Results>()?;
    module.add_class::<table::Table>()?;
    module.add_class::<sweep::Missing>()?;
    module.add_class::<sweep::Sweep>()?;
    module.add_function(wrap_pyfunction!(main, module)?)?;
    module.add_function(wrap_pyfunction!(plot, module)?)?;
    module.add_function(wrap_pyfunction!(start_program_by, module)?)?;
    module.add_function(wrap_pyfunction!(answers::explain, module)?)?;
    module.add_function(wrap_pyfunction!(answers::papers, module)?)?;
    module.add_function(wrap_pyfunction!(answers::radius, module)?)?;
    module.add_function(wrap_pyfunction!(measure::measure, module)?)?;
    module.add_function(wrap_pyfunction!(measure::measured_path, module)?)?;
    module.add_function(wrap_pyfunction!(results::run, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::run_chunk, module)?)?;
    module.add_function(wrap_pyfunction!(units::parse, module)?)?;
    module.add_function(wrap_pyfunction!(units::show, module)?)
}
