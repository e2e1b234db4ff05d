//! The BPF file system, in which the driver outlives the command that attached it.

use crate::DriverError;
use nix::mount::{MsFlags, mount};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};
use nix::unistd::getppid;
use std::fs;
use std::path::{Path, PathBuf};

/// What the mount table calls one that was mounted for the driver: it is there with the mount, whenever the command is killed.
pub(crate) const SOURCE: &str = "farpath";

/// Sees to it that there is one. Whether it had to be mounted.
pub(crate) fn ensure(path: &Path) -> Result<bool, DriverError> {
    let failed = |errno: nix::Error| DriverError::NoBpffs { path: PathBuf::from(path), source: errno.into() };
    if statfs(path).map_err(failed)?.filesystem_type() == BPF_FS_MAGIC {
        return Ok(false);
    }
    if is_transient() {
        return Err(DriverError::Transient);
    }
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some(SOURCE), path, Some("bpf"), flags, Some("mode=700")).map_err(failed)?;
    Ok(true)
}

/// Whether the one at this place was mounted for the driver.
pub(crate) fn is_ours(path: &Path) -> bool {
    let Ok(path) = path.canonicalize() else { return false };
    let table = fs::read_to_string("/proc/thread-self/mountinfo").unwrap_or_default();
    topmost(&table, &path).is_some_and(|(kind, source)| kind == "bpf" && source == SOURCE)
}

/// Whether the mount namespace was made for this command, and ends with it: what is mounted in it is gone then, and what is mounted elsewhere may
/// be hidden. `ip netns exec` does that; it calls its /sys by the name of the network namespace.
pub(crate) fn is_transient() -> bool {
    let namespace = |process: &str| fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
    let made_for_it = match (namespace("self"), namespace(&getppid().to_string())) {
        (Some(own), Some(parents)) => own != parents,
        _ => false,
    };
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    made_for_it || is_of_netns(&table, |name| Path::new("/run/netns").join(name).exists())
}

/// Whether /sys has the name of a network namespace.
fn is_of_netns(table: &str, is_one: impl Fn(&str) -> bool) -> bool {
    topmost(table, Path::new("/sys")).is_some_and(|(kind, name)| kind == "sysfs" && is_one(name))
}

/// Kind and source of what is mounted at this place, last of all (proc_pid_mountinfo(5)).
fn topmost<'table>(table: &'table str, path: &Path) -> Option<(&'table str, &'table str)> {
    let at = |line: &&str| line.split(' ').nth(4).is_some_and(|place| Path::new(place) == path);
    let (_, kind) = table.lines().rfind(at)?.split_once(" - ")?;
    let mut words = kind.split(' ');
    Some((words.next()?, words.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
24 30 0:22 / /sys rw,relatime shared:7 - sysfs sysfs rw
300 24 0:31 / /sys/fs/bpf rw,nosuid shared:9 - bpf bpf rw,mode=700
400 30 0:50 / /sys rw,relatime - sysfs blue rw
410 400 0:51 / /sys/fs/bpf rw,nosuid - bpf farpath rw,mode=700
";

    #[test]
    fn of_mounts_at_one_place_the_last_one_is_seen() {
        assert_eq!(topmost(TABLE, Path::new("/sys/fs/bpf")), Some(("bpf", "farpath")));
        assert_eq!(topmost(TABLE, Path::new("/sys/fs")), None);
        assert_eq!(topmost("", Path::new("/sys")), None);
    }

    #[test]
    fn a_sys_of_a_network_namespace_is_known_by_its_name() {
        assert!(is_of_netns(TABLE, |name| name == "blue"));
        assert!(!is_of_netns(TABLE, |_| false));
        assert!(!is_of_netns(TABLE.lines().next().expect("a line"), |name| name == "blue"));
    }
}
