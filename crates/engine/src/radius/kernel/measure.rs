//! The measurement: all of it at once, for it takes minutes.

use super::{Counts, KernelRadii, Measurement, Way};
use crate::{EngineError, simulate};
use farpath_emu::{Clock, KernelProfile};
use farpath_emulate::{emulate, kernel_release, silence};
use farpath_run::{Outcome, Provenance, Run};
use farpath_units::Duration;
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// How often `watch` is told.
const TELL_EVERY: std::time::Duration = std::time::Duration::from_millis(200);

/// Asks the running kernel: everything at once, each in namespaces of its own. `watch` is told for how long it has been
/// going on. Where `stop` is set before it is over, there is what was seen by then.
///
/// # Errors
/// Hosts or their paths cannot be made.
pub fn measure_radii(
    what: &Measurement,
    stop: &AtomicBool,
    watch: impl Fn(Duration),
) -> Result<KernelRadii, EngineError> {
    let clock = Clock::start();
    let (silence, runs) = thread::scope(|scope| {
        let starts: Vec<Duration> = (0..what.connections).map(|number| what.start(number)).collect();
        let silence = scope.spawn(move || silence(&what.stack, &starts, what.takes(), stop));
        let emulated = |index| emulate(&what.point(index), 1, Provenance::default(), stop);
        let runs: Vec<_> = (0..what.ways.len()).map(|index| scope.spawn(move || emulated(index))).collect();
        while !silence.is_finished() || runs.iter().any(|run| !run.is_finished()) {
            watch(clock.now().saturating_since(farpath_units::Instant::ZERO));
            // One that failed makes the others useless.
            thread::park_timeout(TELL_EVERY);
        }
        let runs: Vec<_> = runs.into_iter().map(|run| joined(run.join())).collect();
        (joined(silence.join()), runs)
    });
    let mut ways = Vec::new();
    for (index, run) in runs.into_iter().enumerate() {
        // One that was stopped tells nothing.
        let Some(run) = run? else { continue };
        let (rtt, predicted) = what.ways[index];
        let simulated = counts(&simulate(&what.point(index), 1, Provenance::default())?);
        let kernel = run.grade.as_ref().is_none_or(|grade| grade.void.is_none()).then(|| counts(&run));
        ways.push(Way { rtt, predicted, simulated, kernel });
    }
    let caveats = KernelProfile::of_stack(&what.stack, &what.stack).unmatched;
    let complete = !stop.load(Ordering::Relaxed);
    Ok(KernelRadii { kernel: kernel_release(), silence: silence?, ways, caveats, complete })
}

fn counts(run: &Run) -> Counts {
    Counts {
        connections: run.flows.len(),
        opened: run.flows.iter().filter(|flow| flow.connect_time.is_some()).count(),
        usable: run.flows.iter().filter(|flow| flow.outcome == Outcome::Completed).count(),
    }
}

fn joined<T>(result: thread::Result<T>) -> T {
    result.unwrap_or_else(|panic| panic::resume_unwind(panic))
}
