//! CPU time and memory of this process, as Linux tells them. A machine that is shared stretches the wall clock.

use std::fs;
use std::time::{Duration, Instant};

/// CPU time of this thread since it began; `None` where the kernel does not tell.
fn cpu() -> Option<Duration> {
    // Nanoseconds on a CPU, nanoseconds waiting for one, and how often it ran.
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

/// Does it, and gives the CPU seconds that it took; wall seconds where no CPU time is to be had.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    #[expect(clippy::disallowed_methods, reason = "a benchmark measures this machine")]
    let (wall, before) = (Instant::now(), cpu());
    let result = work();
    let taken = before.zip(cpu()).map_or(wall.elapsed(), |(before, after)| after - before);
    (result, taken.as_secs_f64())
}

/// The most memory that this process has held, bytes.
pub fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}
