//! What the first process of a machine does beside its work.

use crate::KernelError;
use crate::boot::WORK_DIR;
use nix::mount::{MsFlags, mount, umount};
use nix::sys::reboot::{RebootMode, reboot};
use std::convert::Infallible;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// Where the guest may write: memory, gone with the guest.
pub const MEMORY: &str = "/run";

/// Mounts what a kernel offers: `/proc`, `/sys`, `/dev`, and memory at [`MEMORY`]. All else is the host's, and cannot be
/// changed. Gives the working directory, the folder that guest and host share.
///
/// # Errors
/// This is no guest, or a file system is not there.
pub fn enter() -> Result<PathBuf, KernelError> {
    let work_dir = env::var_os(WORK_DIR).filter(|_| std::process::id() == 1).ok_or_else(no_guest)?;
    // Its name is the host's, whose `/proc` is about to be covered.
    let work_dir = fs::canonicalize(&work_dir).map_err(KernelError::at(work_dir))?;
    for (kind, place) in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", MEMORY)] {
        mount(Some(kind), place, Some(kind), MsFlags::empty(), None::<&str>)
            .map_err(failed(|| format!("mounting {kind} at {place}")))?;
    }
    Ok(work_dir)
}

/// Copies a folder of the guest's into `to`, a folder of the host's that is there and can be written. Nothing of the host
/// can be written before: a host's answers take real time, and would be seen in virtual time.
///
/// # Errors
/// It cannot be mounted or written.
pub fn hand_out(from: &Path, to: &Path) -> Result<(), KernelError> {
    let place = PathBuf::from(MEMORY).join("out");
    fs::create_dir_all(&place).map_err(KernelError::at(&place))?;
    mount(Some("none"), &place, Some("hostfs"), MsFlags::empty(), Some(to))
        .map_err(failed(|| format!("mounting {} of the host", to.display())))?;
    for entry in fs::read_dir(from).map_err(KernelError::at(from))? {
        let entry = entry.map_err(KernelError::at(from))?;
        let path = entry.path();
        if path.is_file() {
            let copy = place.join(entry.file_name());
            fs::copy(&path, &copy).map_err(KernelError::at(copy))?;
        }
    }
    // Only then is it written.
    umount(&place).map_err(failed(|| format!("unmounting {} of the host", to.display())))
}

/// Switches the machine off.
///
/// # Errors
/// It is not the first process of a machine of its own.
pub fn power_off() -> Result<Infallible, KernelError> {
    // Whoever calls this by mistake must not lose their machine.
    if std::process::id() != 1 {
        return Err(no_guest());
    }
    reboot(RebootMode::RB_POWER_OFF).map_err(failed(|| "switching off".to_owned()))
}

fn no_guest() -> KernelError {
    let source = std::io::ErrorKind::PermissionDenied.into();
    KernelError::Guest { what: "this is not the first process of a guest".to_owned(), source }
}

fn failed(what: impl FnOnce() -> String) -> impl FnOnce(nix::Error) -> KernelError {
    move |source| KernelError::Guest { what: what(), source: source.into() }
}
