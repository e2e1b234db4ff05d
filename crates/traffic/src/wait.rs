//! The run's time, and waiting in it.

use farpath_units::{Duration, Instant};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::thread::{current_timer_slack, set_current_timer_slack};
use std::io;
use std::num::NonZeroU64;
use std::os::fd::BorrowedFd;

/// The time since `epoch`.
pub fn now(epoch: std::time::Instant) -> Instant {
    // 584 years fit.
    Instant::from_nanos(epoch.elapsed().as_nanos() as u64)
}

/// Waits until `fd` has one of `events` (or an error, or the other end is gone), at most `longest`.
pub fn ready(fd: BorrowedFd<'_>, events: PollFlags, longest: Duration) -> io::Result<PollFlags> {
    let timeout = timespec(longest);
    // Without events to wait for it is a sleep: a poll of the descriptor would return at once for POLLHUP.
    let mut fds = [PollFd::from_borrowed_fd(fd, events)];
    let waited_on = if events.is_empty() { &mut fds[..0] } else { &mut fds[..] };
    match poll(waited_on, Some(&timeout)) {
        Ok(_) if events.is_empty() => Ok(PollFlags::empty()),
        Ok(_) => Ok(fds[0].revents()),
        Err(Errno::INTR) => Ok(PollFlags::empty()),
        Err(error) => Err(error.into()),
    }
}

/// Waits until one of several can be read (or has an error, or its other end is gone), at most `longest`.
pub fn readable<'a>(fds: impl Iterator<Item = BorrowedFd<'a>>, longest: Duration) -> io::Result<()> {
    let mut fds: Vec<PollFd<'_>> = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
    match poll(&mut fds, Some(&timespec(longest))) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn timespec(time: Duration) -> Timespec {
    let ns = time.as_nanos();
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}

/// While it lives, the calling thread wakes when it asked to: Linux is otherwise free to be 50 us late.
pub struct PromptTimers {
    before: Option<NonZeroU64>,
}

impl PromptTimers {
    pub fn new() -> PromptTimers {
        let before = current_timer_slack().ok().and_then(NonZeroU64::new);
        // Refused nowhere; and where it were, wake-ups are a little later.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        PromptTimers { before }
    }
}

impl Drop for PromptTimers {
    fn drop(&mut self) {
        let _ = set_current_timer_slack(self.before);
    }
}
