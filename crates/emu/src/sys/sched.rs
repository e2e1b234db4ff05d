//! Real-time scheduling of the calling thread.

use std::io;
use std::marker::PhantomData;

/// Above every ordinary program, below the kernel's own threads (50): one packet's worth of work is some microseconds.
const LOOP: libc::c_int = 20;
/// Below the loop's: what packets wait for goes first.
const PROGRAM: libc::c_int = 10;

/// The calling thread runs before all ordinary ones (`SCHED_FIFO`) until this is dropped.
#[derive(Debug)]
pub struct RealTime {
    /// Policy and priority.
    before: (libc::c_int, libc::c_int),
    /// It is about a thread, so it stays on it.
    _not_send: PhantomData<*const ()>,
}

impl RealTime {
    /// Asks for it, for the loop.
    ///
    /// # Errors
    /// `EPERM` without root, CAP_SYS_NICE or an RLIMIT_RTPRIO of 20.
    pub(crate) fn enter() -> io::Result<RealTime> {
        RealTime::with_priority(LOOP)
    }

    /// Asks for it, for a program at one end: while one that holds its socket waits for a processor, what arrives waits for
    /// it, and is acknowledged late and at once. Not for programs that keep the processors busy: the kernel's own threads
    /// that hand packets on are ordinary ones.
    ///
    /// # Errors
    /// `EPERM` without root, CAP_SYS_NICE or an RLIMIT_RTPRIO of 10.
    pub fn of_program() -> io::Result<RealTime> {
        RealTime::with_priority(PROGRAM)
    }

    fn with_priority(priority: libc::c_int) -> io::Result<RealTime> {
        let before = current()?;
        set(libc::SCHED_FIFO, priority)?;
        Ok(RealTime { before, _not_send: PhantomData })
    }
}

impl Drop for RealTime {
    fn drop(&mut self) {
        // It is always allowed to go back to less. Were it not, the thread would only stay ahead of others.
        let _ = set(self.before.0, self.before.1);
    }
}

// The kernel is asked itself: musl's functions of these names only say ENOSYS, and its `sched_param` has other fields.

/// Policy and priority of the calling thread.
fn current() -> io::Result<(libc::c_int, libc::c_int)> {
    let mut priority: libc::c_int = 0;
    // SAFETY: no pointer is passed; 0 is the calling thread.
    let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
    // SAFETY: the kernel's `sched_param` is one int; `priority` outlives the call, which writes to it.
    let result = unsafe { libc::syscall(libc::SYS_sched_getparam, 0, &raw mut priority) };
    if policy < 0 || result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok((policy as libc::c_int, priority))
    }
}

fn set(policy: libc::c_int, priority: libc::c_int) -> io::Result<()> {
    // SAFETY: the kernel's `sched_param` is one int; `priority` outlives the call, which only reads it.
    let result = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpath_testing::Need;

    #[test]
    fn a_thread_is_real_time_for_as_long_as_it_asks() {
        let before = current().expect("a thread may ask what it is").0;
        match RealTime::enter() {
            Ok(guard) => {
                assert_eq!(current().expect("as before").0, libc::SCHED_FIFO);
                drop(guard);
            }
            Err(error) => farpath_testing::skip(Need::Root, format!("real-time scheduling: {error}")),
        }
        assert_eq!(current().expect("as before").0, before);
    }
}
