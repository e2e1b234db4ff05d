//! Programs that end with the one that started them.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The program that `command` starts is killed when the thread ends that starts it, and takes SIGINT and SIGQUIT as usual, whatever this
/// process does with them.
pub(crate) fn die_with_parent(command: &mut Command) {
    let prepare = || {
        // SAFETY: prctl(2) with PR_SET_PDEATHSIG takes a number; no memory is touched.
        if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } != 0 {
            return Err(io::Error::last_os_error());
        }
        for signal in [libc::SIGINT, libc::SIGQUIT] {
            // SAFETY: signal(2) with SIG_DFL installs no function of ours.
            if unsafe { libc::signal(signal, libc::SIG_DFL) } == libc::SIG_ERR {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: between fork and exec only prctl(2) and signal(2) are called, which signal-safety(7) allows; nothing is allocated.
    unsafe { command.pre_exec(prepare) };
}

/// SIGINT and SIGQUIT, which a terminal sends to all programs in its foreground, do nothing to this process from now on.
pub fn ignore_interrupts() {
    for signal in [libc::SIGINT, libc::SIGQUIT] {
        // SAFETY: signal(2) with SIG_IGN installs no function of ours.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}
