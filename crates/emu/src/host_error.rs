//! What can keep a host from being set up.

use std::io;

/// What can keep a host from being set up.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// Not the right kernel.
    #[error("emulation is of the Linux kernel's TCP, and this is {}", std::env::consts::OS)]
    NotLinux,
    /// The kernel refused something.
    #[error("cannot {what}: {source}{}", help_for(source, help))]
    Kernel {
        /// What was tried.
        what: String,
        /// What would help where it is a matter of privilege.
        help: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// A setting of the kernel was refused.
    #[error("cannot set {name} to `{value}`: {reason}")]
    Sysctl {
        /// Its name, with dots.
        name: String,
        /// What it was to be.
        value: String,
        /// Why not.
        reason: String,
    },
    /// A user namespace cannot be entered by a process of several threads.
    #[error(
        "a user namespace must be entered before any other thread starts, and {threads} threads run; \
         enter it first thing in `main`, or run as root"
    )]
    Threads {
        /// So many run.
        threads: usize,
    },
    /// A program of the user cannot be started.
    #[error("cannot start `{name}`: {source}")]
    Program {
        /// As it was named.
        name: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The machine's network cannot be put behind a host.
    #[error("--uplink: {reason}")]
    Uplink {
        /// Why not, and what would help.
        reason: String,
    },
    /// No host can be made of these settings.
    #[error("{key}: expected {expected}, got `{got}`")]
    Setting {
        /// Which.
        key: &'static str,
        /// What it can be.
        expected: &'static str,
        /// What it was.
        got: String,
    },
}

#[cfg(target_os = "linux")]
impl HostError {
    pub(crate) fn kernel(
        what: impl Into<String>,
        help: &'static str,
        source: impl Into<io::Error>,
    ) -> HostError {
        HostError::Kernel { what: what.into(), help, source: source.into() }
    }

    /// For who has better help.
    pub(crate) fn without_help(&self) -> String {
        match self {
            HostError::Kernel { what, source, .. } => format!("cannot {what}: {source}"),
            other => other.to_string(),
        }
    }
}

/// Advice on privileges, where they are what is missing.
fn help_for(source: &io::Error, help: &str) -> String {
    use io::ErrorKind::{NotFound, PermissionDenied, StorageFull};
    // "No space left on device" is what unshare(2) says where `user.max_user_namespaces` allows no more of them.
    let privilege = matches!(source.kind(), PermissionDenied | NotFound | StorageFull);
    if privilege && !help.is_empty() { format!(" ({help})") } else { String::new() }
}

/// For what needs a privilege over a network namespace.
#[cfg(target_os = "linux")]
pub(crate) const BE_ROOT: &str = "run as root, or where user namespaces are allowed to everybody; `farpath doctor` says what this machine allows, and `--clock virtual` needs no privileges";
