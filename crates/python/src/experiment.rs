//! Experiments.

use crate::error;
use farpath_experiment::{Override, QuickPath, shipped_experiments};
use farpath_units::{Bytes, Duration, Probability, Rate};
use pyo3::prelude::*;
use std::path::Path;
use std::sync::Arc;

/// A checked experiment.
#[pyclass(frozen, module = "farpath")]
pub struct Experiment(pub Arc<farpath_experiment::Experiment>);

fn changes(py: Python<'_>, texts: &[String]) -> PyResult<Vec<Override>> {
    texts.iter().map(|text| text.parse().map_err(|refused| error::change(py, &refused))).collect()
}

pub fn quantity<T: std::str::FromStr<Err = farpath_units::ParseQuantityError>>(
    name: &str,
    text: &str,
) -> PyResult<T> {
    text.parse().map_err(|refused| error::UnitError::new_err(format!("{name}: {refused}")))
}

#[pymethods]
impl Experiment {
    /// A file, or what ships by that name.
    #[staticmethod]
    fn load(py: Python<'_>, file: &str, set: Vec<String>) -> PyResult<Experiment> {
        let set = changes(py, &set)?;
        let shipped = shipped_experiments().into_iter().find(|shipped| shipped.name == file);
        match shipped {
            Some(shipped) if !Path::new(file).exists() => {
                farpath_experiment::Experiment::parse(shipped.text, shipped.name, &set)
            }
            _ => farpath_experiment::Experiment::load(Path::new(file), &set),
        }
        .and_then(farpath_experiment::Experiment::with_transfers)
        .map(|experiment| Experiment(Arc::new(experiment)))
        .map_err(|refused| error::experiment(py, &refused))
    }

    /// The text of a file that is called `origin`.
    #[staticmethod]
    pub fn parse(py: Python<'_>, text: &str, origin: &str, set: Vec<String>) -> PyResult<Experiment> {
        farpath_experiment::Experiment::parse(text, origin, &changes(py, &set)?)
            .and_then(farpath_experiment::Experiment::with_transfers)
            .map(|experiment| Experiment(Arc::new(experiment)))
            .map_err(|refused| error::experiment(py, &refused))
    }

    /// A path in a few numbers.
    #[staticmethod]
    #[pyo3(signature = (delay, rate, size, loss, stack, window, set))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn quick_path(
        py: Python<'_>,
        delay: &str,
        rate: &str,
        size: &str,
        loss: Option<&str>,
        stack: Option<String>,
        window: Option<&str>,
        set: Vec<String>,
    ) -> PyResult<Experiment> {
        let quick_path = QuickPath {
            delay: quantity::<Duration>("delay", delay)?,
            rate: quantity::<Rate>("rate", rate)?,
            loss: loss.map_or(Ok(Probability::ZERO), |loss| quantity("loss", loss))?,
            size: quantity::<Bytes>("size", size)?,
            stack,
            window: window.map(|window| quantity("window", window)).transpose()?,
        };
        Experiment::parse(py, &quick_path.to_toml(), "keywords", set)
    }

    #[getter]
    fn title(&self) -> &str {
        &self.0.title
    }

    #[getter]
    fn text(&self) -> &str {
        &self.0.text
    }

    #[getter]
    fn origin(&self) -> &str {
        &self.0.origin
    }

    #[getter]
    fn changes(&self) -> Vec<String> {
        self.0.overrides.iter().map(|change| change.text().to_owned()).collect()
    }

    #[getter]
    fn seeds(&self) -> u64 {
        self.0.seeds
    }

    #[getter]
    fn axes(&self) -> Vec<Vec<String>> {
        self.0.axes.iter().map(|axis| axis.keys.clone()).collect()
    }

    /// The keys and values that make each point.
    #[getter]
    fn points(&self) -> Vec<Vec<(String, String)>> {
        (0..self.0.points().len()).map(|index| self.0.swept(index)).collect()
    }

    #[getter]
    fn warnings(&self) -> Vec<Vec<String>> {
        self.0.points().map(|point| point.scenario.warnings.clone()).collect()
    }
}
