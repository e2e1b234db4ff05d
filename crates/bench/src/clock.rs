//! CPU time and memory of this process, as Linux tells them. A machine that is shared stretches the wall clock.

use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::time::Duration;

/// CPU time of this process since it began, of all its threads. `/proc/thread-self/schedstat` says it too, but only as
/// of the last tick of the scheduler: 4 ms too little, of the 20 ms that some of the scenarios take.
fn cpu() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime).try_into().expect("it counts from zero")
}

/// Does it, and gives the CPU seconds that it took.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let before = cpu();
    let result = work();
    (result, (cpu() - before).as_secs_f64())
}

/// The most memory that this process has held, bytes.
pub fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}
