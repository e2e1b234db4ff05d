//! Makes the missing runs on all cores, and keeps them chunk by chunk.

use crate::chunk::Chunk;
use crate::error::SweepError;
use crate::folder::Folder;
use crate::key::{PointKey, point_key, program};
use crate::plan::Wanted;
use farpath_engine::{predict, provenance, simulate};
use farpath_experiment::{Experiment, Output, Point};
use farpath_run::{Engine, Provenance, Run};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// When a chunk is full.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// After so many runs ...
    pub runs: usize,
    /// ... or so long.
    pub time: Duration,
}

impl Default for Limits {
    /// Two seconds of a thread are what a crash costs, and a file for each is what a sweep of a million runs of 3 ms can
    /// afford: 1 500 of them. A run of a flow takes 1 kB until it is written.
    fn default() -> Limits {
        Limits { runs: 4096, time: Duration::from_secs(2) }
    }
}

/// What is missing, handed out run by run.
struct Queue {
    spans: std::vec::IntoIter<Wanted>,
    now: Option<Wanted>,
}

impl Queue {
    fn next(&mut self) -> Option<(usize, Engine, u64)> {
        loop {
            if let Some(wanted) = &mut self.now
                && let Some(seed) = wanted.seeds.next()
            {
                return Some((wanted.point, wanted.engine, seed));
            }
            self.now = Some(self.spans.next()?);
        }
    }
}

/// Makes the missing runs and keeps them; `kept` is told of each chunk how many it holds. When `stop` is set nothing more
/// is begun, and what is done is kept.
///
/// # Errors
/// The first one, of a run or of a file; what was kept before it stays.
pub fn run_missing(
    experiment: &Experiment,
    keys: &[PointKey],
    missing: Vec<Wanted>,
    folder: &Folder,
    limits: Limits,
    stop: &AtomicBool,
    kept: impl Fn(u64) + Sync,
) -> Result<(), SweepError> {
    let queue = Mutex::new(Queue { spans: missing.into_iter(), now: None });
    let failed = AtomicBool::new(false);
    let over = || stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed);
    let make_chunk = |maker: &mut Maker| -> Result<Vec<Run>, SweepError> {
        let began = now();
        let mut runs = Vec::new();
        while runs.len() < limits.runs && began.elapsed() < limits.time && !over() {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((point, engine, seed)) = next else { break };
            runs.push(maker.make(point, engine, seed)?);
        }
        Ok(runs)
    };
    let work = || -> Result<(), SweepError> {
        let mut maker = Maker::new(experiment);
        loop {
            let runs = make_chunk(&mut maker)?;
            if runs.is_empty() {
                return Ok(());
            }
            folder.keep(&Chunk::of(&runs, |point| keys[point as usize])?)?;
            kept(runs.len() as u64);
        }
    };
    let results = rayon::broadcast(|_| {
        let result = work();
        failed.fetch_or(result.is_err(), Ordering::Relaxed);
        result
    });
    results.into_iter().collect()
}

/// Makes runs that somebody else has planned, in one chunk; fewer of them when `stop` is set.
///
/// # Errors
/// A point that is another one here; a run that cannot be made.
pub fn run_chunk(experiment: &Experiment, wanted: &[Wanted], stop: &AtomicBool) -> Result<Chunk, SweepError> {
    let mut maker = Maker::new(experiment);
    let mut keys = HashMap::new();
    let mut runs = Vec::new();
    for Wanted { point, key, engine, seeds } in wanted {
        if experiment.points().get(*point).map(point_key) != Some(*key) {
            return Err(SweepError::OtherPoint { point: *point, here: program() });
        }
        keys.insert(*point as u64, *key);
        for seed in seeds.clone().take_while(|_| !stop.load(Ordering::Relaxed)) {
            runs.push(maker.make(*point, *engine, seed)?);
        }
    }
    Chunk::of(&runs, |point| keys[&point])
}

/// Makes runs, most of them of the point before.
struct Maker<'a> {
    experiment: &'a Experiment,
    point: Option<(Cow<'a, Point>, Provenance)>,
}

impl<'a> Maker<'a> {
    fn new(experiment: &'a Experiment) -> Maker<'a> {
        Maker { experiment, point: None }
    }

    fn make(&mut self, point: usize, engine: Engine, seed: u64) -> Result<Run, SweepError> {
        let (point, provenance) = match &mut self.point {
            Some(current) if current.0.index == point => current,
            current => current.insert(untraced(self.experiment, point)),
        };
        Ok(match engine {
            Engine::Predict => predict(point, provenance.clone())?,
            Engine::Simulate => simulate(point, seed, provenance.clone())?,
            Engine::Emulate | Engine::Measure => return Err(SweepError::NotSwept(engine)),
        })
    }
}

/// A point without what is recorded beside its flows, which a sweep does not keep.
fn untraced(experiment: &Experiment, index: usize) -> (Cow<'_, Point>, Provenance) {
    let mut point = Cow::Borrowed(&experiment.points()[index]);
    if point.scenario.output != Output::default() {
        point.to_mut().scenario.output = Output::default();
    }
    let provenance = provenance(experiment, &point);
    (point, provenance)
}

#[expect(clippy::disallowed_methods, reason = "how long a chunk has taken, which no number depends on")]
fn now() -> Instant {
    Instant::now()
}
