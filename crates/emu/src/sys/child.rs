//! Programs in a process namespace of their own, which end with the one that started them.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The program of `command` runs under a first process of its namespace, which the kernel makes of the calling thread's next child
/// (pid_namespaces(7)). That process sees to three things:
/// - it is killed when the thread ends that starts it, or sees that the whole process has, and so ends all that it has started;
/// - `/proc` is that of the namespace, where the kernel lets it be mounted;
/// - SIGTERM and SIGHUP to it go to all programs in the namespace.
///
/// `alive` is the reading end of a pipe whose other end only this process has, until the program has ended. Asking to be killed with
/// the thread is not enough: where it is asked for after that thread has gone, but before the last thread of its process closes what
/// they share, nobody is told any more. The program takes SIGINT and SIGQUIT as usual, whatever this process does with them.
pub(crate) fn under_a_first_process(command: &mut Command, alive: BorrowedFd<'_>, held: BorrowedFd<'_>) {
    let (alive, held) = (alive.as_raw_fd(), held.as_raw_fd());
    let prepare = move || become_first(alive, held);
    // SAFETY: between fork and exec only system calls are made, which signal-safety(7) allows; nothing is allocated and no lock taken.
    unsafe { command.pre_exec(prepare) };
}

/// Returns in the program's process, and never in the first one.
fn become_first(alive: RawFd, held: RawFd) -> io::Result<()> {
    // SAFETY: prctl(2) with PR_SET_PDEATHSIG takes a number; no memory is touched.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) })?;
    let mut polled = libc::pollfd { fd: alive, events: 0, revents: 0 };
    // SAFETY: the descriptors are this process's copies; poll(2) writes to `polled` alone.
    let gone = unsafe {
        libc::close(held);
        libc::poll(&raw mut polled, 1, 0) > 0
    };
    if gone {
        // SAFETY: _exit(2) does not return.
        unsafe { libc::_exit(0) };
    }
    for signal in [libc::SIGINT, libc::SIGQUIT] {
        // SAFETY: signal(2) with SIG_DFL installs no function of ours.
        if unsafe { libc::signal(signal, libc::SIG_DFL) } == libc::SIG_ERR {
            return Err(io::Error::last_os_error());
        }
    }
    let proc: &CStr = c"proc";
    let place: &CStr = c"/proc";
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    // In a user namespace the kernel refuses where parts of /proc are covered, as in containers: then it stays the machine's.
    // SAFETY: the strings end with NUL and outlive the call.
    let _ = unsafe { libc::mount(proc.as_ptr(), place.as_ptr(), proc.as_ptr(), flags, std::ptr::null()) };

    let mut signals = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset(3) makes the set whole before anything reads it; no old set is asked for.
    let signals = unsafe {
        libc::sigemptyset(signals.as_mut_ptr());
        for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGCHLD] {
            libc::sigaddset(signals.as_mut_ptr(), signal);
        }
        signals.assume_init()
    };
    // Before there is a child: none of its signals is lost. A blocked signal reaches a first process without a handler, too.
    // SAFETY: the set is whole.
    check(unsafe { libc::sigprocmask(libc::SIG_BLOCK, &raw const signals, std::ptr::null_mut()) })?;
    // Not fork(3), which runs what libraries have asked for.
    // SAFETY: clone(2) with SIGCHLD alone and no stack is fork(2).
    let program = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
    match program {
        0 => {
            // SAFETY: the set is whole.
            check(unsafe { libc::sigprocmask(libc::SIG_UNBLOCK, &raw const signals, std::ptr::null_mut()) })
        }
        ..0 => Err(io::Error::last_os_error()),
        _ => look_after(program, &signals, alive),
    }
}

/// What the first process does until the program ends, or who started it.
fn look_after(program: libc::c_long, signals: &libc::sigset_t, alive: RawFd) -> ! {
    // Who reads what the program writes shall see its end, and who started it that it was started: only `alive` stays open, as 0.
    // SAFETY: dup2(2), close_range(2) and close(2) take numbers, signalfd(2) a whole set; nothing of this process uses a descriptor after it
    // but these two.
    let signalled = unsafe {
        libc::dup2(alive, 0);
        if libc::syscall(libc::SYS_close_range, 1, libc::c_uint::MAX, 0) != 0 {
            (1..65_536).for_each(|fd| {
                libc::close(fd);
            });
        }
        libc::signalfd(-1, signals, libc::SFD_NONBLOCK)
    };
    loop {
        let mut polled = [
            libc::pollfd { fd: 0, events: 0, revents: 0 },
            libc::pollfd { fd: signalled, events: libc::POLLIN, revents: 0 },
        ];
        // SAFETY: poll(2) writes to the two entries alone.
        unsafe { libc::poll(polled.as_mut_ptr(), 2, -1) };
        if polled[0].revents != 0 || signalled < 0 {
            // SAFETY: _exit(2) does not return. All others in the namespace end with this process.
            unsafe { libc::_exit(0) };
        }
        let mut told = std::mem::MaybeUninit::<libc::signalfd_siginfo>::zeroed();
        // SAFETY: there is room for one of what the descriptor gives, and what is not written is zero.
        let signal = unsafe {
            libc::read(signalled, told.as_mut_ptr().cast(), size_of::<libc::signalfd_siginfo>());
            told.assume_init().ssi_signo.cast_signed()
        };
        if signal == libc::SIGTERM || signal == libc::SIGHUP {
            // SAFETY: kill(2) takes numbers; -1 means all in this process namespace but its first process.
            unsafe { libc::kill(-1, signal) };
        }
        loop {
            let mut status = 0;
            // SAFETY: waitpid(2) writes to `status` alone.
            let ended = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
            if libc::c_long::from(ended) == program {
                let signalled = libc::WIFSIGNALED(status);
                let code = if signalled { 128 + libc::WTERMSIG(status) } else { libc::WEXITSTATUS(status) };
                // SAFETY: _exit(2) does not return. All others in the namespace end with this process.
                unsafe { libc::_exit(code) };
            }
            if ended <= 0 {
                break;
            }
        }
    }
}

fn check(returned: libc::c_int) -> io::Result<()> {
    if returned == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// SIGINT and SIGQUIT, which a terminal sends to all programs in its foreground, do nothing to this process from now on.
pub fn ignore_interrupts() {
    for signal in [libc::SIGINT, libc::SIGQUIT] {
        // SAFETY: signal(2) with SIG_IGN installs no function of ours.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}
