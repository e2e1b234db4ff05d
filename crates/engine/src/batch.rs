//! Many runs on all cores, handed over in a fixed order.

use crate::{CaptureDir, EngineError, predict, provenance, simulate};
use farpath_experiment::{Experiment, Output};
use farpath_run::{Engine, Run, RunKey};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

/// One run to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    /// Index of the point.
    pub point: usize,
    /// Who makes it.
    pub engine: Engine,
    /// Seed, for an engine that draws.
    pub seed: Option<u64>,
    /// Record series and segments, also where the experiment does not ask for them.
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
    let mut jobs = Vec::new();
    for point in experiment.points() {
        for &engine in engines {
            let scenario = &point.scenario;
            let seeds = match engine {
                Engine::Predict => vec![None],
                _ => (scenario.seed..scenario.seed + scenario.seeds).map(Some).collect(),
            };
            jobs.extend(seeds.into_iter().map(|seed| Job { point: point.index, engine, seed, trace: false }));
        }
    }
    jobs
}

/// Makes the runs on all cores and hands each to `take`, in the order of `jobs` whichever is done first. When `stop`
/// is set, what has begun is finished and handed over, and nothing more is begun. Gives how many were handed over.
///
/// # Errors
/// The first one, of a run or of `take`. It sets `stop`, and what else has begun is finished and dropped.
pub fn run_all<E: From<EngineError> + Send>(
    experiment: &Experiment,
    jobs: &[Job],
    stop: &AtomicBool,
    take: impl FnMut(Run) -> Result<(), E> + Send,
) -> Result<usize, E> {
    run_all_captured(experiment, jobs, stop, None, take)
}

/// The same, and where there are `captures` every simulated run writes its packets there.
///
/// # Errors
/// As [`run_all`]; of a run also that its capture cannot be written.
pub fn run_all_captured<E: From<EngineError> + Send>(
    experiment: &Experiment,
    jobs: &[Job],
    stop: &AtomicBool,
    captures: Option<&CaptureDir>,
    mut take: impl FnMut(Run) -> Result<(), E> + Send,
) -> Result<usize, E> {
    // Bounded: who writes traces is slower than all cores that make them.
    let (sender, receiver) = mpsc::sync_channel(2 * rayon::current_num_threads());
    let mut taken = 0;
    let result = std::thread::scope(|scope| {
        scope.spawn(move || {
            // Begun in their order, so that few finished runs wait for an earlier one: halves of the list, which is
            // how indices are split by default, would keep every result of the second half in memory.
            (0..jobs.len()).par_bridge().for_each_with(sender, |sender, index| {
                if !stop.load(Ordering::Relaxed) {
                    // The receiver is gone only when it has failed and nobody wants the rest.
                    let _ = sender.send((index, run_one(experiment, jobs[index], captures)));
                }
            });
        });
        let mut early = BTreeMap::new();
        let mut next = 0;
        for (index, run) in receiver {
            early.insert(index, run);
            while let Some(run) = early.remove(&next) {
                next += 1;
                taken += 1;
                if let Err(error) = run.map_err(E::from).and_then(&mut take) {
                    stop.store(true, Ordering::Relaxed);
                    return Err(error);
                }
            }
        }
        // Interrupted: behind the gaps there are finished runs too.
        for run in early.into_values() {
            taken += 1;
            run.map_err(E::from).and_then(&mut take)?;
        }
        Ok(())
    });
    result.map(|()| taken)
}

fn run_one(experiment: &Experiment, job: Job, captures: Option<&CaptureDir>) -> Result<Run, EngineError> {
    let point = &experiment.points()[job.point];
    let provenance = provenance(experiment, point);
    let mut traced;
    let point = if job.trace {
        traced = point.clone();
        traced.scenario.output = Output { series: true, segments: true };
        &traced
    } else {
        point
    };
    match job.engine {
        Engine::Predict => predict(point, provenance),
        Engine::Simulate => {
            let seed = job.seed.unwrap_or(point.scenario.seed);
            match captures {
                Some(captures) => captures.simulate(point, seed, provenance),
                None => simulate(point, seed, provenance),
            }
        }
        Engine::Emulate | Engine::Measure => Err(EngineError::NotBuilt(job.engine)),
    }
}
