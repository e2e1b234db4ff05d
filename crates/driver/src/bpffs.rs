//! The BPF file system, in which the driver outlives the command that attached it.

use crate::DriverError;
use nix::mount::{MsFlags, mount};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};
use std::path::{Path, PathBuf};

/// Sees to it that there is one. Whether it had to be mounted.
pub(crate) fn ensure(path: &Path) -> Result<bool, DriverError> {
    let failed = |errno: nix::Error| DriverError::NoBpffs { path: PathBuf::from(path), source: errno.into() };
    if statfs(path).map_err(failed)?.filesystem_type() == BPF_FS_MAGIC {
        return Ok(false);
    }
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("bpf"), path, Some("bpf"), flags, Some("mode=700")).map_err(failed)?;
    Ok(true)
}
