//! Why there is no kernel, or none that runs.

use std::io;
use std::path::PathBuf;

/// Why there is no kernel, or none that runs.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// None is kept.
    #[error("no kernel is built; `farpath kernel build` makes one, in some four minutes of one core")]
    None,
    /// None of that name is kept.
    #[error("no kernel is called `{name}`; there are: {known}; `farpath kernel build` makes one")]
    NoSuch {
        /// As asked for.
        name: String,
        /// Those that are kept, or `none`.
        known: String,
    },
    /// One that was built before computing could cost time.
    #[error(
        "kernel `{0}` was built by an older farpath, and computing costs no time in it; `farpath kernel build` builds it anew"
    )]
    FreeComputing(String),
    /// Ticks that are not offered.
    #[error("--hz: expected 100, 250 or 1000, found {0}")]
    Hz(u32),
    /// What is needed to make one is missing.
    #[error("a kernel is made with {missing}, which {are} not here (Debian: apt-get install {packages})")]
    Tools {
        /// Programs.
        missing: String,
        /// "is" or "are".
        are: &'static str,
        /// Where they come from.
        packages: String,
    },
    /// The sources are no kernel's.
    #[error("--source {}: expected a folder with the sources of a Linux kernel: {reason}", path.display())]
    Source {
        /// What was named.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Sources that lack what is needed.
    #[error("Linux {release} cannot be configured with {missing}: {why}")]
    Lacks {
        /// Of the sources.
        release: String,
        /// Options.
        missing: String,
        /// What that means.
        why: &'static str,
    },
    /// A package that is not to be had.
    #[error(
        "apt-get offers no package {package} here: as root, `apt-get update` where its lists are old; else name the \
         sources of a kernel with --source DIR"
    )]
    Package {
        /// Its name.
        package: String,
    },
    /// A step of the build failed.
    #[error("{what} failed; the end of {}:\n{tail}", log.display())]
    Step {
        /// Which one.
        what: String,
        /// All that was printed.
        log: PathBuf,
        /// Its last lines.
        tail: String,
    },
    /// It was interrupted.
    #[error("interrupted; nothing is kept of it")]
    Interrupted,
    /// A file or folder.
    #[error("{}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What is kept beside a kernel cannot be understood.
    #[error("{}", path.display())]
    About {
        /// The file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// It does not even start.
    #[error("cannot start the kernel {}", path.display())]
    Start {
        /// The kernel.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A call of the guest's kernel failed.
    #[error("in the guest: {what}")]
    Guest {
        /// What was tried.
        what: String,
        /// Why.
        source: io::Error,
    },
}

impl KernelError {
    /// For `map_err`: it is about this file.
    pub(crate) fn with_path(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> KernelError {
        let path = path.into();
        move |source| KernelError::File { path, source }
    }
}
