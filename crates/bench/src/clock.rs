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

/// CPU time of the processes that this one has waited for, and of those that they have, in seconds: `cutime` and `cstime` (proc(5)), which
/// Linux tells in hundredths of a second.
pub fn cpu_of_children() -> Option<f64> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    // Behind the name of the program, which may hold anything, the state is field 3.
    let (_, fields) = text.rsplit_once(") ")?;
    let ticks = fields.split_whitespace().skip(13).take(2).map(|field| field.parse::<u64>().ok());
    Some(ticks.sum::<Option<u64>>()? as f64 / 100.0)
}

/// The most memory that this process has held, bytes.
pub fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}
