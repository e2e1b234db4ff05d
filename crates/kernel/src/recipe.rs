//! What a kernel is made from.

use crate::{Catalog, KernelError};
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use std::path::PathBuf;

/// Ticks per second that kernels may have.
pub const HZ: [u32; 3] = [100, 250, 1000];

/// Those that are meant where none are named: Debian's, and a tick of 4 ms is what the stack `linux-6` has.
pub const DEFAULT_HZ: u32 = 250;

/// The Linux whose sources are taken where none are named.
pub const DEFAULT_LINUX: &str = "6.12";

/// How it is configured, less its ticks.
pub(crate) const CONFIG: &str = include_str!("../linux.config");

/// Flags for the compiler after Linux's own. In virtual time computing takes no time, and most of what a packet costs in real time
/// are the host's system calls: fewer optimizations save a quarter of the build.
pub(crate) const FLAGS: &str = "-O1";

/// What stands between it and the host.
pub(crate) const SHIM: &str = include_str!("shim.c");

/// Where the sources come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A package of Debian's, fetched with `apt-get download`; nothing is installed.
    Debian(String),
    /// A folder with sources. It is only read.
    Tree(PathBuf),
}

impl Source {
    /// Debian's sources of a Linux such as `6.12`.
    pub fn debian(linux: &str) -> Source {
        Source::Debian(format!("linux-source-{linux}"))
    }
}

/// What a kernel is made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipe {
    /// Its sources.
    pub source: Source,
    /// Its ticks per second, one of [`HZ`].
    pub hz: u32,
    /// How it shall be called; `None` for its version and ticks.
    pub name: Option<String>,
    /// Where it will be kept.
    pub catalog: Catalog,
    /// Compilers at once.
    pub jobs: usize,
}

impl Recipe {
    /// What can be seen to be wrong with it before anything is fetched.
    pub(crate) fn check(&self) -> Result<(), KernelError> {
        if !HZ.contains(&self.hz) {
            return Err(KernelError::Hz(self.hz));
        }
        if let Source::Tree(path) = &self.source {
            let reason = |text: &str| KernelError::Source { path: path.clone(), reason: text.to_owned() };
            if !path.is_dir() {
                return Err(reason("it is no folder"));
            }
            if !path.join("arch/um/Kconfig").exists() {
                return Err(reason("there is no arch/um/Kconfig"));
            }
        }
        Ok(())
    }

    /// What a configuration must say.
    pub(crate) fn options(&self) -> Vec<String> {
        let fixed = CONFIG.lines().filter(|line| line.starts_with("CONFIG_")).map(str::to_owned);
        fixed.chain([format!("CONFIG_HZ={}", self.hz)]).collect()
    }

    /// What the same recipe makes again, for sources called `source`.
    pub(crate) fn digest(&self, source: &str) -> String {
        let mut hash = Sha256::new();
        for part in [source, CONFIG, FLAGS, SHIM, &self.hz.to_string()] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        HEXLOWER.encode(&hash.finalize())
    }

    /// How a kernel of these sources is called: `6.12.117-hz250`.
    pub(crate) fn name(&self, version: &str) -> String {
        self.name.clone().unwrap_or_else(|| format!("{version}-hz{}", self.hz))
    }
}
