//! Real time as a run's time.

use farpath_units::Instant;
/// When Linux's count of ticks is zero, seconds after its start.
#[cfg(target_os = "linux")]
const TICKS_BEGIN: i64 = 300;

/// The time since a run began, by the kernel's monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    epoch: std::time::Instant,
}

impl Clock {
    /// A clock that says zero now.
    #[expect(clippy::disallowed_methods, reason = "emulation is in real time")]
    pub fn start() -> Clock {
        Clock { epoch: std::time::Instant::now() }
    }

    /// A clock that says zero as the kernel's count of ticks does, which is waited for: Linux begins at minus five minutes
    /// (`INITIAL_JIFFIES`). Waits end with a multiple of 8, 64 ... ticks, the longer the coarser, and so they are from the
    /// run's beginning what they are in the simulator.
    #[cfg(target_os = "linux")]
    #[expect(clippy::disallowed_methods, reason = "emulation is in real time")]
    pub fn start_with_the_ticks() -> Clock {
        use nix::errno::Errno;
        use nix::sys::prctl;
        use nix::sys::time::TimeSpec;
        use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};

        // As in the emulator: a run that begins 50 us into a tick is not at its beginning.
        let _ = prctl::set_timerslack(1);
        const CLOCK: ClockId = ClockId::CLOCK_MONOTONIC;
        if let Ok(now) = clock_gettime(CLOCK) {
            // With a tick at least, on a kernel that is older.
            let zero = TimeSpec::new(TICKS_BEGIN.max(now.tv_sec() + 1), 0);
            while let Err(Errno::EINTR) = clock_nanosleep(CLOCK, ClockNanosleepFlags::TIMER_ABSTIME, &zero) {}
        }
        Clock { epoch: std::time::Instant::now() }
    }

    /// What is zero on this clock.
    pub fn epoch(&self) -> std::time::Instant {
        self.epoch
    }

    /// Now.
    pub fn now(&self) -> Instant {
        // 584 years fit.
        Instant::from_nanos(self.epoch.elapsed().as_nanos() as u64)
    }
}
