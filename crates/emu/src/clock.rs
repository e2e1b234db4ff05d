//! Real time as a run's time.

use farpath_units::Instant;

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
