//! One run of many, and which there are.

use farpath_experiment::{Experiment, Scenario};
use farpath_run::{Engine, RunKey};

/// One run to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    /// Index of the point.
    pub point: usize,
    /// Who makes it.
    pub engine: Engine,
    /// Seed, for an engine that draws.
    pub seed: Option<u64>,
    /// Record series, segments and messages, also where the experiment does not ask for them.
    pub trace: bool,
}

impl Job {
    /// Which run it makes.
    pub fn key(&self) -> RunKey {
        RunKey { point: self.point as u64, engine: self.engine, seed: self.seed }
    }
}

/// The runs of an experiment: point by point, engine by engine, seed by seed. A prediction is made once a point.
pub fn jobs(experiment: &Experiment, engines: &[Engine]) -> Vec<Job> {
    let of_points = experiment.map_points(|point| {
        let Scenario { seed, seeds, emulate, .. } = &point.scenario;
        (*seed, *seeds, emulate.seeds.min(*seeds))
    });
    let mut jobs = Vec::new();
    for (point, (first, seeds, emulated)) in of_points.into_iter().enumerate() {
        for &engine in engines {
            let seeds: Vec<Option<u64>> = match engine {
                Engine::Predict => vec![None],
                // Real time costs what it takes: as many as the experiment wants of these.
                Engine::Emulate | Engine::Measure => (first..first + emulated).map(Some).collect(),
                Engine::Simulate => (first..first + seeds).map(Some).collect(),
            };
            jobs.extend(seeds.into_iter().map(|seed| Job { point, engine, seed, trace: false }));
        }
    }
    jobs
}
