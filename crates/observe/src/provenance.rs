//! Where the runs of a point come from.

use farpath_experiment::{Experiment, Point};
use farpath_run::Provenance;

/// Where the runs of a point come from; an engine adds its caveats.
pub fn provenance(experiment: &Experiment, point: &Point) -> Provenance {
    let overrides = experiment.overrides.iter().map(|change| change.text().to_owned());
    let swept = point.swept.iter().map(|(key, value)| format!("{key}={value}"));
    Provenance {
        experiment: experiment.text.clone(),
        changes: overrides.chain(swept).collect(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        kernel: String::new(),
        settings: Vec::new(),
        caveats: point.scenario.warnings.clone(),
    }
}
