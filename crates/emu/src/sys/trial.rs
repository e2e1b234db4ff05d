//! Trying what cannot be undone, in a child that ends with it.

use nix::sched::{CloneFlags, unshare};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// What of it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    EnterUserNamespace,
    MapUser,
    MakeNetworkNamespace,
}

/// Whether `user`, without any privilege, may make a network namespace in a user namespace of its own.
pub(crate) fn user_namespace_of(user: u32) -> io::Result<Result<(), (Step, io::Error)>> {
    let maps = [("/proc/self/setgroups", "deny".to_string())]
        .into_iter()
        .chain(["/proc/self/uid_map", "/proc/self/gid_map"].map(|path| (path, format!("{user} {user} 1"))));
    let maps: Vec<_> = maps.collect();
    let tried = move || -> Result<(), (Step, io::Error)> {
        // Who changes users is not looked into by way of /proc, not even by itself, unless it allows it.
        let _ = nix::sys::prctl::set_dumpable(true);
        unshare(CloneFlags::CLONE_NEWUSER).map_err(|error| (Step::EnterUserNamespace, error.into()))?;
        for (path, text) in &maps {
            std::fs::write(path, text).map_err(|error| (Step::MapUser, error))?;
        }
        unshare(CloneFlags::CLONE_NEWNET).map_err(|error| (Step::MakeNetworkNamespace, error.into()))
    };
    // The one thing that comes back from before an exec is an error number.
    let mut command = Command::new("/");
    command.uid(user).gid(user);
    // SAFETY: between fork and exec only system calls are made: no lock is taken and no memory asked for; the paths
    // are short enough for the stack.
    unsafe {
        command.pre_exec(move || {
            Err(io::Error::from_raw_os_error(match tried() {
                Ok(()) => DONE,
                Err((step, error)) => step as i32 * STEP + error.raw_os_error().unwrap_or(libc::EIO) + STEP,
            }))
        });
    }
    match command.spawn() {
        Ok(mut child) => {
            let _ = child.wait();
            Err(io::Error::other("a child that was to end went on"))
        }
        Err(error) => match error.raw_os_error() {
            Some(DONE) => Ok(Ok(())),
            Some(code) if code > STEP => {
                let step = match code / STEP {
                    1 => Step::EnterUserNamespace,
                    2 => Step::MapUser,
                    _ => Step::MakeNetworkNamespace,
                };
                Ok(Err((step, io::Error::from_raw_os_error(code % STEP))))
            }
            // It did not come so far: no fork, no change of user.
            _ => Err(error),
        },
    }
}

/// Above every error number (MAX_ERRNO is 4095).
const STEP: i32 = 10_000;
const DONE: i32 = 5_000;
