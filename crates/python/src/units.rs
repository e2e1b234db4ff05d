//! Quantities: parsed and shown as experiment files have them.

use crate::error::UnitError;
use farpath_units::{Bytes, Duration, Probability, Rate};
use pyo3::prelude::*;

/// A quantity with its unit as a number: of s, B, bit/s, or a share.
#[pyfunction]
pub fn parse(kind: &str, text: &str) -> PyResult<f64> {
    let parsed = match kind {
        "duration" => text.parse().map(Duration::as_secs_f64),
        "size" => text.parse().map(|size: Bytes| size.0 as f64),
        "rate" => text.parse().map(|rate: Rate| rate.bit_per_s() as f64),
        _ => text.parse().map(|share: Probability| share.fraction()),
    };
    parsed.map_err(|error| UnitError::new_err(error.to_string()))
}

/// The number with its unit, as files have it; `None` where it is out of the range of these.
#[pyfunction]
pub fn show(kind: &str, value: f64) -> Option<String> {
    let whole = (0.0..1.8e19).contains(&value).then_some(value as u64);
    match kind {
        "duration" => (0.0..1.8e10).contains(&value).then(|| Duration::from_secs_f64(value).to_string()),
        "size" => whole.map(|size| Bytes(size).to_string()),
        "rate" => whole.and_then(Rate::from_bit_per_s).map(|rate| rate.to_string()),
        _ => Probability::new(value).map(|share| share.to_string()),
    }
}
