//! What the first process of a machine does beside its work.

use crate::KernelError;
use crate::boot::WORK_DIR;
use nix::mount::{MsFlags, mount, umount};
use nix::sys::reboot::{RebootMode, reboot};
use std::convert::Infallible;
use std::env;
use std::fs;
use std::os::unix::fs::{chroot, symlink};
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
    let work_dir = fs::canonicalize(&work_dir).map_err(KernelError::with_path(work_dir))?;
    for (kind, place) in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", MEMORY)] {
        mount(Some(kind), place, Some(kind), MsFlags::empty(), None::<&str>)
            .map_err(failed(|| format!("mounting {kind} at {place}")))?;
    }
    Ok(work_dir)
}

/// Puts a private writable layer over this machine's files, in the guest's memory, and makes it the root folder; programs find in
/// `/dev` what they are used to. For a process that runs programs of the user, before it starts any.
///
/// # Errors
/// This kernel has no overlayfs, or something cannot be mounted.
pub fn make_root_writable() -> Result<(), KernelError> {
    let none = None::<&str>;
    for (kind, place) in [("devpts", "/dev/pts"), ("tmpfs", "/dev/shm")] {
        fs::create_dir_all(place).map_err(KernelError::with_path(place))?;
        mount(Some(kind), place, Some(kind), MsFlags::empty(), none)
            .map_err(failed(|| format!("mounting {kind} at {place}")))?;
    }
    for (name, descriptor) in [("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")] {
        let link = Path::new("/dev").join(name);
        symlink(format!("/proc/self/fd{descriptor}"), &link).map_err(KernelError::with_path(link))?;
    }
    let [upper, work, root] = ["upper", "work", "root"].map(|name| Path::new(MEMORY).join(name));
    for folder in [&upper, &work, &root] {
        fs::create_dir(folder).map_err(KernelError::with_path(folder))?;
    }
    let layers = format!("lowerdir=/,upperdir={},workdir={}", upper.display(), work.display());
    mount(Some("overlay"), &root, Some("overlay"), MsFlags::empty(), Some(layers.as_str())).map_err(
        failed(|| {
            "mounting a writable layer (overlay), for which `farpath kernel build` makes a newer kernel"
                .to_owned()
        }),
    )?;
    for (place, flags) in [
        ("proc", MsFlags::MS_REC),
        ("sys", MsFlags::MS_REC),
        ("dev", MsFlags::MS_REC),
        ("run", MsFlags::empty()),
    ] {
        let from = Path::new("/").join(place);
        mount(Some(&from), &root.join(place), none, MsFlags::MS_BIND | flags, none)
            .map_err(failed(|| format!("mounting {} once more", from.display())))?;
    }
    chroot(&root).and_then(|()| env::set_current_dir("/")).map_err(KernelError::with_path(root))
}

/// Copies a folder of the guest's into `to`, a folder of the host's that is there and can be written. Nothing of the host
/// can be written before: a host's answers take real time, and would be seen in virtual time.
///
/// # Errors
/// It cannot be mounted or written.
pub fn hand_out(from: &Path, to: &Path) -> Result<(), KernelError> {
    let place = PathBuf::from(MEMORY).join("out");
    fs::create_dir_all(&place).map_err(KernelError::with_path(&place))?;
    mount(Some("none"), &place, Some("hostfs"), MsFlags::empty(), Some(to))
        .map_err(failed(|| format!("mounting {} of the host", to.display())))?;
    for entry in fs::read_dir(from).map_err(KernelError::with_path(from))? {
        let entry = entry.map_err(KernelError::with_path(from))?;
        let path = entry.path();
        if path.is_file() {
            let copy = place.join(entry.file_name());
            fs::copy(&path, &copy).map_err(KernelError::with_path(copy))?;
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
