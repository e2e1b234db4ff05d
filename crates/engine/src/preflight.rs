//! Whether what an experiment is made of is there, before anything runs.

use crate::{EngineError, foreign};
use farpath_experiment::Experiment;
use farpath_run::Engine;

/// Whether these engines have all that the experiment's ends are made of, where they ask no kernel.
///
/// # Errors
/// An end has a congestion controller that only a kernel runs, or is a program that is not there.
pub fn can_all_be_answered(experiment: &Experiment, engines: &[Engine]) -> Result<(), EngineError> {
    let asks_none = engines.iter().find(|engine| matches!(engine, Engine::Predict | Engine::Simulate));
    if let (Some(engine), Some(point)) = (asks_none, experiment.first_with_bpf()) {
        point.scenario.needs_no_kernel(engine.name())?;
    }
    if engines.contains(&Engine::Simulate) && experiment.has_foreign_hosts() {
        experiment.points().try_for_each(|point| foreign::are_there(&point.scenario))?;
    }
    Ok(())
}
