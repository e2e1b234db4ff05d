//! How far runs in real time have come, for whoever watches from another thread. It costs a run two stores now and then.

use farpath_experiment::Scenario;
use farpath_units::{Bytes, Duration, Instant};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The runs in real time that are going on.
#[derive(Debug, Default)]
pub struct Progress {
    runs: Mutex<Vec<Arc<Going>>>,
}

/// How far they have come together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// How many are going on.
    pub runs: usize,
    /// Application bytes that have been read in them.
    pub read: Bytes,
    /// Of so many.
    pub size: Bytes,
    /// For how long the oldest has been going on ...
    pub elapsed: Duration,
    /// ... and when it ends at the latest.
    pub horizon: Duration,
    /// The highest number of an attempt among them: more than 1 where the machine has not been in time before.
    pub attempt: u32,
}

/// One run that is going on.
#[derive(Debug)]
pub(crate) struct Going {
    size: Bytes,
    horizon: Duration,
    read: AtomicU64,
    elapsed_ns: AtomicU64,
    attempt: AtomicU32,
}

impl Progress {
    /// How far they have come; `None` where none is going on.
    pub fn now(&self) -> Option<Now> {
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let oldest = runs.iter().max_by_key(|run| run.elapsed())?;
        let sum = |of: fn(&Going) -> u64| Bytes(runs.iter().map(|run| of(run)).fold(0, u64::saturating_add));
        Some(Now {
            runs: runs.len(),
            read: sum(|run| run.read.load(Ordering::Relaxed)),
            size: sum(|run| run.size.0),
            elapsed: oldest.elapsed(),
            horizon: oldest.horizon,
            attempt: runs.iter().map(|run| run.attempt.load(Ordering::Relaxed)).max().unwrap_or(0),
        })
    }

    /// Makes a run that is seen as long as `make` takes.
    pub(crate) fn watch<R>(
        progress: Option<&Progress>,
        scenario: &Scenario,
        make: impl FnOnce(&Going) -> R,
    ) -> R {
        let going = Arc::new(Going::new(scenario));
        let Some(progress) = progress else { return make(&going) };
        let runs = || progress.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs().push(Arc::clone(&going));
        let made = make(&going);
        runs().retain(|other| !Arc::ptr_eq(other, &going));
        made
    }
}

impl Going {
    pub fn new(scenario: &Scenario) -> Going {
        let size = scenario.flows.iter().map(|flow| flow.size.0).fold(0, u64::saturating_add);
        Going {
            size: Bytes(size),
            horizon: scenario.horizon,
            read: AtomicU64::new(0),
            elapsed_ns: AtomicU64::new(0),
            attempt: AtomicU32::new(0),
        }
    }

    /// From the beginning, perhaps once more.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "the kernel is asked on Linux alone"))]
    pub fn begin(&self) {
        self.read.store(0, Ordering::Relaxed);
        self.elapsed_ns.store(0, Ordering::Relaxed);
        self.attempt.fetch_add(1, Ordering::Relaxed);
    }

    /// So many more bytes have been read.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "the kernel is asked on Linux alone"))]
    pub fn read(&self, more: u64) {
        self.read.fetch_add(more, Ordering::Relaxed);
    }

    /// It is `now` on the run's clock.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "the kernel is asked on Linux alone"))]
    pub fn it_is(&self, now: Instant) {
        self.elapsed_ns.store(now.saturating_since(Instant::ZERO).as_nanos(), Ordering::Relaxed);
    }

    fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.elapsed_ns.load(Ordering::Relaxed))
    }
}
