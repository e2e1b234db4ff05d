//! Many runs, handed over in a fixed order: those in virtual time on all cores, then those in real time, as many at
//! once as the machine keeps up with.

mod real_time;

use crate::job::Job;
use crate::{CaptureDir, EngineError, foreign, simulate, simulate_captured};
use farpath_emulate::{EmulatedRun, Progress, load};
use farpath_experiment::{EmulationClock, Experiment, Output};
use farpath_observe::provenance;
use farpath_predict::predict;
use farpath_run::{Engine, Run};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

/// Makes the runs and hands each to `take`: those in virtual time first, on all cores, then those in real time; both
/// in the order of `jobs`, whichever is done first. When `stop` is set nothing more is begun, what has begun in virtual
/// time is finished and handed over, and what has begun in real time is given up. Gives how many were handed over.
///
/// # Errors
/// The first one, of a run or of `take`. It sets `stop`, and what else has begun is finished and dropped.
pub fn run_all<E: From<EngineError> + Send>(
    experiment: &Experiment,
    jobs: &[Job],
    stop: &AtomicBool,
    take: impl FnMut(Run) -> Result<(), E> + Send,
) -> Result<usize, E> {
    run_all_with(experiment, jobs, stop, Extras::default(), take)
}

/// What else is wanted of a batch.
#[derive(Debug, Clone, Copy, Default)]
pub struct Extras<'a> {
    /// Every simulated or emulated run writes its packets there.
    pub captures: Option<&'a CaptureDir>,
    /// Every emulated run says there how far it is.
    pub progress: Option<&'a Progress>,
}

/// The same, with what else is wanted.
///
/// # Errors
/// As [`run_all`]; of a run also that its capture cannot be written.
pub fn run_all_with<E: From<EngineError> + Send>(
    experiment: &Experiment,
    jobs: &[Job],
    stop: &AtomicBool,
    extras: Extras<'_>,
    mut take: impl FnMut(Run) -> Result<(), E> + Send,
) -> Result<usize, E> {
    let clock = |job: &Job| experiment.point(job.point).scenario.emulate.clock.clone();
    let is_real = |job: &Job| job.engine.in_real_time() && clock(job) == EmulationClock::Real;
    let (real, virtual_time): (Vec<Job>, Vec<Job>) = jobs.iter().partition(|job| is_real(job));
    let make = |job: &Job| run_with(experiment, *job, stop, extras);
    let mut taken = on_all_cores(&virtual_time, stop, make, &mut take)?;
    taken += real_time::run(&real, stop, |job| load(&experiment.point(job.point).scenario), make, &mut take)?;
    Ok(taken)
}

/// What `make` gives for each job, by as many threads as there are cores.
fn on_all_cores<E: From<EngineError> + Send>(
    jobs: &[Job],
    stop: &AtomicBool,
    make: impl Fn(&Job) -> Result<Option<Run>, EngineError> + Send + Sync,
    take: &mut (impl FnMut(Run) -> Result<(), E> + Send),
) -> Result<usize, E> {
    // Bounded: who writes traces is slower than all cores that make them.
    let (sender, receiver) = mpsc::sync_channel(2 * rayon::current_num_threads());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // Begun in their order, so that few finished runs wait for an earlier one: halves of the list, which is
            // how indices are split by default, would keep every result of the second half in memory.
            (0..jobs.len()).par_bridge().for_each_with(sender, |sender, index| {
                if !stop.load(Ordering::Relaxed) {
                    // The receiver is gone only when it has failed and nobody wants the rest.
                    let _ = sender.send((index, make(&jobs[index])));
                }
            });
        });
        let mut queue = InOrder::new(stop, take);
        for (index, run) in receiver {
            queue.put(index, run)?;
        }
        queue.finish()
    })
}

/// Hands over what comes in any order in the order of its numbers.
struct InOrder<'a, T> {
    stop: &'a AtomicBool,
    take: &'a mut T,
    early: BTreeMap<usize, Result<Option<Run>, EngineError>>,
    next: usize,
    taken: usize,
}

impl<'a, T> InOrder<'a, T> {
    fn new(stop: &'a AtomicBool, take: &'a mut T) -> InOrder<'a, T> {
        InOrder { stop, take, early: BTreeMap::new(), next: 0, taken: 0 }
    }

    /// One more is there. On an error `stop` is set.
    fn put<E: From<EngineError>>(
        &mut self,
        index: usize,
        run: Result<Option<Run>, EngineError>,
    ) -> Result<(), E>
    where
        T: FnMut(Run) -> Result<(), E>,
    {
        self.early.insert(index, run);
        while let Some(run) = self.early.remove(&self.next) {
            self.next += 1;
            if let Err(error) = self.hand_over(run) {
                self.stop.store(true, Ordering::Relaxed);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Nothing more comes. Where that is because of an interrupt, there are finished runs behind the gaps too.
    fn finish<E: From<EngineError>>(mut self) -> Result<usize, E>
    where
        T: FnMut(Run) -> Result<(), E>,
    {
        for run in std::mem::take(&mut self.early).into_values() {
            self.hand_over(run)?;
        }
        Ok(self.taken)
    }

    fn hand_over<E: From<EngineError>>(&mut self, run: Result<Option<Run>, EngineError>) -> Result<(), E>
    where
        T: FnMut(Run) -> Result<(), E>,
    {
        let Some(run) = run? else { return Ok(()) };
        self.taken += 1;
        (self.take)(run)
    }
}

/// Makes one run; `None` where `stop` was set before it was over.
///
/// # Errors
/// A run that cannot be made.
pub fn run_one(experiment: &Experiment, job: Job, stop: &AtomicBool) -> Result<Option<Run>, EngineError> {
    run_with(experiment, job, stop, Extras::default())
}

/// Makes one run, and writes its packets to `out` as pcapng, the first `snaplen` bytes of each; `None` where `stop` was set before it was over.
///
/// # Errors
/// A run that cannot be made or has no packets, or a file that cannot be written.
pub fn run_captured(
    experiment: &Experiment,
    job: Job,
    stop: &AtomicBool,
    snaplen: u32,
    out: &File,
) -> Result<Option<Run>, EngineError> {
    make_one(experiment, job, seed_of(experiment, job), stop, None, Some((out, snaplen)))
}

/// The seed of a run: its own, else the first one of its point.
fn seed_of(experiment: &Experiment, job: Job) -> u64 {
    job.seed.unwrap_or_else(|| experiment.point(job.point).scenario.seed)
}

/// One run, with its capture where captures are wanted; `None` where it has been given up because of `stop`.
fn run_with(
    experiment: &Experiment,
    job: Job,
    stop: &AtomicBool,
    extras: Extras<'_>,
) -> Result<Option<Run>, EngineError> {
    let seed = seed_of(experiment, job);
    let make =
        |capture: Option<(&File, u32)>| make_one(experiment, job, seed, stop, extras.progress, capture);
    match extras.captures.filter(|_| job.engine != Engine::Predict) {
        Some(folder) => {
            let captured = |out: &File, snaplen| make(Some((out, snaplen)));
            folder.write(job.engine, job.point, seed, captured, Option::is_some)
        }
        None => make(None),
    }
}

fn make_one(
    experiment: &Experiment,
    job: Job,
    seed: u64,
    stop: &AtomicBool,
    progress: Option<&Progress>,
    capture: Option<(&File, u32)>,
) -> Result<Option<Run>, EngineError> {
    let mut point = experiment.point(job.point);
    let provenance = provenance(experiment, &point);
    if job.trace {
        point.to_mut().scenario.output = Output { series: true, segments: true, messages: true };
    }
    let point = &*point;
    match job.engine {
        Engine::Predict => Ok(Some(predict(point, provenance)?)),
        Engine::Simulate => match capture {
            Some((out, snaplen)) => {
                Ok(Some(simulate_captured(point, seed, provenance, snaplen, BufWriter::new(out))?))
            }
            None => Ok(Some(simulate(point, seed, provenance)?)),
        },
        Engine::Emulate if point.scenario.foreign_hosts().next().is_some() => {
            Ok(Some(foreign::not_emulated(point, seed, provenance)))
        }
        Engine::Emulate => {
            let run = EmulatedRun { experiment, point: job.point, seed, trace: job.trace, capture };
            Ok(run.make(stop, progress)?)
        }
        Engine::Measure => Err(EngineError::NotBuilt(job.engine)),
    }
}
