//! Runs in real time: many at once where they are slow, alone where they are not.

use super::InOrder;
use crate::EngineError;
use crate::job::Job;
use farpath_emulate::MAX_LOAD;
use farpath_run::Run;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

/// The most runs at once, however slow they are: each has a loop and two programs of its own.
const RUNS: usize = 64;

/// Makes the runs, each on a thread of its own, and hands them over in their order.
pub(super) fn run<E: From<EngineError> + Send>(
    jobs: &[Job],
    stop: &AtomicBool,
    load: impl Fn(&Job) -> f64,
    make: impl Fn(&Job) -> Result<Option<Run>, EngineError> + Sync,
    take: &mut (impl FnMut(Run) -> Result<(), E> + Send),
) -> Result<usize, E> {
    let (sender, receiver) = mpsc::channel();
    let mut queue = InOrder::new(stop, take);
    let mut waiting = (0..jobs.len()).map(|index| (index, load(&jobs[index]))).peekable();
    std::thread::scope(|scope| {
        let mut running: Vec<(usize, f64)> = Vec::new();
        loop {
            let busy: f64 = running.iter().map(|(_, load)| load).sum();
            let fits = |&(_, load): &(usize, f64)| {
                running.is_empty() || (busy + load <= MAX_LOAD && running.len() < RUNS)
            };
            if !stop.load(Ordering::Relaxed)
                && let Some((index, load)) = waiting.next_if(fits)
            {
                running.push((index, load));
                let (sender, make) = (sender.clone(), &make);
                scope.spawn(move || {
                    // A panic is sent too: nobody would come for whoever waits.
                    let made = panic::catch_unwind(AssertUnwindSafe(|| make(&jobs[index])));
                    // The receiver is gone only when it has failed and nobody wants the rest.
                    let _ = sender.send((index, made));
                });
                continue;
            }
            if running.is_empty() {
                return queue.finish();
            }
            let (index, made) = receiver.recv().expect("a sender is here");
            running.retain(|&(other, _)| other != index);
            let run = made.unwrap_or_else(|panicked| {
                stop.store(true, Ordering::Relaxed);
                panic::resume_unwind(panicked)
            });
            queue.put(index, run)?;
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpath_run::{Engine, Provenance};
    use std::sync::Mutex;
    use std::sync::atomic::AtomicUsize;

    fn jobs(n: u64) -> Vec<Job> {
        let job = |seed| Job { point: 0, engine: Engine::Emulate, seed: Some(seed), trace: false };
        (0..n).map(job).collect()
    }

    fn made(job: &Job) -> Run {
        Run::new(job.key(), Provenance::default())
    }

    /// Those that are too much for the machine go one after the other, and all come in order.
    #[test]
    fn heavy_runs_go_alone_and_light_ones_together() {
        for (load, together) in [(MAX_LOAD * 10.0, 1), (MAX_LOAD, 1), (MAX_LOAD / 3.5, 3)] {
            let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let together_now = std::sync::Barrier::new(together);
            let seen = Mutex::new(Vec::new());
            let taken = run::<EngineError>(
                &jobs(6),
                &AtomicBool::new(false),
                |_| load,
                |job| {
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    // Nobody goes on before as many are here as may be at once.
                    together_now.wait();
                    now.fetch_sub(1, Ordering::SeqCst);
                    Ok(Some(made(job)))
                },
                &mut |run: Run| {
                    seen.lock().unwrap().push(run.seed);
                    Ok(())
                },
            );
            assert_eq!(taken.unwrap(), 6);
            assert_eq!(most.into_inner(), together, "at a load of {load}");
            assert_eq!(seen.into_inner().unwrap(), (0..6).map(Some).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_run_that_panics_stops_the_others_and_is_a_panic_of_the_caller() {
        let stop = AtomicBool::new(false);
        let both_run = std::sync::Barrier::new(2);
        let make = |job: &Job| {
            both_run.wait();
            assert!(job.seed != Some(0), "the first one fails");
            while !stop.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            Ok(None)
        };
        let batch = || run::<EngineError>(&jobs(2), &stop, |_| MAX_LOAD / 2.0, make, &mut |_| Ok(()));
        assert!(panic::catch_unwind(AssertUnwindSafe(batch)).is_err());
    }

    #[test]
    fn a_stop_gives_up_what_runs_and_begins_nothing() {
        let stop = AtomicBool::new(false);
        let begun = AtomicUsize::new(0);
        let taken = run::<EngineError>(
            &jobs(5),
            &stop,
            |_| MAX_LOAD,
            |job| {
                begun.fetch_add(1, Ordering::SeqCst);
                if job.seed == Some(1) {
                    stop.store(true, Ordering::SeqCst);
                    return Ok(None);
                }
                Ok(Some(made(job)))
            },
            &mut |_| Ok(()),
        );
        assert_eq!((taken.unwrap(), begun.into_inner()), (1, 2));
    }
}
