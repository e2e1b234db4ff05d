//! Makes the missing runs on all cores, and keeps them chunk by chunk.

use crate::chunk::Chunk;
use crate::error::SweepError;
use crate::folder::Folder;
use crate::key::{PointKey, program, run_key};
use crate::plan::{Plan, Wanted};
use farpath_engine::{Job, provenance, run_all, run_one, simulate};
use farpath_experiment::{EmulationClock, Experiment, Output, Point};
use farpath_predict::predict;
use farpath_run::{Engine, Outcome, Provenance, Run};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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
    /// afford: 1 500 of them. A run of a flow takes some 6 kB until it is written.
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

/// Makes the missing runs and keeps them: those in virtual time on all cores, then those in real time, as many at once as
/// the machine keeps up with. `kept` is told of each chunk how many of the runs that are
/// asked for it holds. When `stop` is set nothing more is begun, and
/// what is done is kept. Gives how many runs were void, which are not kept: they are asked again the next time.
///
/// # Errors
/// The first one, of a run or of a file; what was kept before it stays.
pub fn run_missing(
    experiment: &Experiment,
    plan: &Plan,
    mut missing: Vec<Wanted>,
    folder: &Folder,
    limits: Limits,
    stop: &AtomicBool,
    kept: impl Fn(u64) + Sync,
) -> Result<u64, SweepError> {
    let is_real = |wanted: &mut Wanted| {
        wanted.engine == Engine::Emulate
            && experiment.point(wanted.point).scenario.emulate.clock == EmulationClock::Real
    };
    let real: Vec<Wanted> = missing.extract_if(.., is_real).collect();
    let void = AtomicU64::new(0);
    let keep = |mut runs: Vec<Run>| -> Result<(), SweepError> {
        let made = runs.len();
        runs.retain(|run| !is_void(run));
        void.fetch_add((made - runs.len()) as u64, Ordering::Relaxed);
        if !runs.is_empty() {
            let key_of = |run: &Run| plan.key(run.point, run.engine);
            folder.keep(&Chunk::encode(&runs, key_of)?)?;
            let asked = |run: &Run| {
                let seed = run.seed.unwrap_or(0);
                plan.asked_among(key_of(run), run.engine, &(seed..seed + 1))
            };
            kept(runs.iter().map(asked).sum());
        }
        Ok(())
    };
    on_all_cores(experiment, missing, limits, stop, &keep)?;
    in_real_time(experiment, real, limits, stop, &keep)?;
    Ok(void.into_inner())
}

fn is_void(run: &Run) -> bool {
    run.flows.iter().any(|flow| flow.outcome == Outcome::Void)
}

fn on_all_cores(
    experiment: &Experiment,
    missing: Vec<Wanted>,
    limits: Limits,
    stop: &AtomicBool,
    keep: &(impl Fn(Vec<Run>) -> Result<(), SweepError> + Sync),
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
            runs.extend(maker.make(point, engine, seed, stop)?);
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
            keep(runs)?;
        }
    };
    let results = rayon::broadcast(|_| {
        let result = work();
        failed.fetch_or(result.is_err(), Ordering::Relaxed);
        result
    });
    results.into_iter().collect()
}

/// A file holds what has come since the last one, whenever a chunk would be full.
fn in_real_time(
    experiment: &Experiment,
    missing: Vec<Wanted>,
    limits: Limits,
    stop: &AtomicBool,
    keep: &(impl Fn(Vec<Run>) -> Result<(), SweepError> + Sync),
) -> Result<(), SweepError> {
    let job = |point, engine, seed| Job { point, engine, seed: Some(seed), trace: false };
    let jobs: Vec<Job> = missing
        .into_iter()
        .flat_map(|wanted| wanted.seeds.map(move |seed| job(wanted.point, wanted.engine, seed)))
        .collect();
    let (mut runs, mut since) = (Vec::new(), now());
    let made = run_all(experiment, &jobs, stop, |run| {
        runs.push(run);
        if runs.len() < limits.runs && since.elapsed() < limits.time {
            return Ok(());
        }
        since = now();
        keep(std::mem::take(&mut runs))
    });
    keep(runs)?;
    made.map(drop)
}

/// Makes runs that somebody else has planned, in one chunk; fewer of them when `stop` is set, or where one is void.
///
/// # Errors
/// A point that is another one here; a run that cannot be made.
pub fn run_chunk(experiment: &Experiment, wanted: &[Wanted], stop: &AtomicBool) -> Result<Chunk, SweepError> {
    let mut maker = Maker::new(experiment);
    let mut runs = Vec::new();
    for Wanted { point, key, engine, seeds } in wanted {
        let here = (*point < experiment.points().len()).then(|| run_key(&maker.point(*point).0, *engine));
        if here.transpose()? != Some(*key) {
            return Err(SweepError::OtherPoint { point: *point, here: program() });
        }
        for seed in seeds.clone().take_while(|_| !stop.load(Ordering::Relaxed)) {
            runs.extend(maker.make(*point, *engine, seed, stop)?);
        }
    }
    runs.retain(|run| !is_void(run));
    let keys: HashMap<(u64, Engine), PointKey> =
        wanted.iter().map(|wanted| ((wanted.point as u64, wanted.engine), wanted.key)).collect();
    Chunk::encode(&runs, |run| keys[&(run.point, run.engine)])
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

    fn point(&mut self, point: usize) -> &(Cow<'a, Point>, Provenance) {
        if self.point.as_ref().is_none_or(|(current, _)| current.index != point) {
            self.point = Some(untraced(self.experiment, point));
        }
        self.point.as_ref().expect("it is there now")
    }

    /// `None` where `stop` was set before it was over.
    fn make(
        &mut self,
        point: usize,
        engine: Engine,
        seed: u64,
        stop: &AtomicBool,
    ) -> Result<Option<Run>, SweepError> {
        if engine == Engine::Emulate {
            let job = Job { point, engine, seed: Some(seed), trace: false };
            return Ok(run_one(self.experiment, job, stop)?);
        }
        let (point, provenance) = self.point(point);
        Ok(Some(match engine {
            Engine::Predict => predict(point, provenance.clone())?,
            Engine::Simulate => simulate(point, seed, provenance.clone())?,
            Engine::Emulate | Engine::Measure => return Err(SweepError::NotSwept(engine)),
        }))
    }
}

/// A point without what is recorded beside its flows, which a sweep does not keep.
fn untraced(experiment: &Experiment, index: usize) -> (Cow<'_, Point>, Provenance) {
    let mut point = experiment.point(index);
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
