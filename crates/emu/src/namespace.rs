//! Network namespaces without a name: they are gone when the last descriptor, socket and thread in them is.

use crate::host_error::{BE_ROOT, HostError};
use crate::netlink::Netlink;
use nix::sched::{CloneFlags, setns, unshare};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::{panic, thread};

/// Capabilities that emulation takes (linux/capability.h).
const CAP_NET_ADMIN: u64 = 1 << 12;
const CAP_SYS_ADMIN: u64 = 1 << 21;

/// A network namespace: devices, addresses, routes and sysctls of its own. It has no name, so that nothing is left of
/// it when the process ends, however it ends.
#[derive(Debug)]
pub struct Namespace {
    file: OwnedFd,
}

impl Namespace {
    /// A new one, with `lo` up in it and nothing else. The calling thread stays where it is.
    pub fn new() -> Result<Namespace, HostError> {
        // A thread that moves into a namespace stays there: a thread of its own makes it and ends.
        on_a_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET)
                .map_err(|error| HostError::kernel("make a network namespace", BE_ROOT, error))?;
            let lo_up = |error| HostError::kernel("bring `lo` up in a new network namespace", BE_ROOT, error);
            let mut netlink = Netlink::open().map_err(lo_up)?;
            let lo = netlink.link("lo").map_err(lo_up)?;
            netlink.set_up(lo.index).map_err(lo_up)?;
            let file = File::open("/proc/thread-self/ns/net")
                .map_err(|error| HostError::kernel("open /proc/thread-self/ns/net", "mount /proc", error))?;
            Ok(Namespace { file: file.into() })
        })
    }

    /// That of a process.
    pub fn of_process(pid: u32) -> io::Result<Namespace> {
        Ok(Namespace { file: File::open(format!("/proc/{pid}/ns/net"))?.into() })
    }

    /// The same namespace once more.
    pub fn try_clone(&self) -> Result<Namespace, HostError> {
        let file = self.file.try_clone();
        let file = file.map_err(|error| HostError::kernel("keep a network namespace", "", error))?;
        Ok(Namespace { file })
    }

    /// Moves the calling thread into it for good. Sockets that it opens from now on are in it.
    pub fn enter(&self) -> Result<(), HostError> {
        setns(&self.file, CloneFlags::CLONE_NEWNET)
            .map_err(|error| HostError::kernel("enter a network namespace", BE_ROOT, error))
    }

    /// Runs `work` on a thread inside and gives its result. A panic in it is a panic of the caller.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, HostError> {
        on_a_thread(|| {
            self.enter()?;
            Ok(work())
        })
    }

    /// Sets a sysctl of this namespace alone, named with dots: `net.ipv4.tcp_sack`.
    pub fn set_sysctl(&self, name: &str, value: &str) -> Result<(), HostError> {
        self.run(|| set_sysctl(name, value))?
    }

    /// A sysctl as it is in this namespace; `None` where this kernel has none of that name.
    pub fn sysctl(&self, name: &str) -> Option<String> {
        let path = sysctl_path(name)?;
        let value = self.run(|| fs::read_to_string(path)).ok()?.ok()?;
        Some(value.trim_end().to_string())
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Sets a sysctl of the network namespace in which the calling thread is.
///
/// # Errors
/// A name that is none of a network setting, or a value that the kernel refuses.
pub fn set_sysctl(name: &str, value: &str) -> Result<(), HostError> {
    let refused =
        |reason: String| HostError::Sysctl { name: name.to_string(), value: value.to_string(), reason };
    // Anything else belongs to the whole machine, which is not ours.
    let Some(path) = sysctl_path(name) else {
        return Err(refused(
            "expected the name of a network setting, such as `net.ipv4.tcp_sack`".to_string(),
        ));
    };
    // As sysctl(8) has it: the kernel parses what one write brings, and wants it whole.
    fs::OpenOptions::new().write(true).open(&path).and_then(|mut file| io::Write::write_all(&mut file, value.as_bytes())).map_err(
        |error| {
            refused(match error.kind() {
                io::ErrorKind::NotFound if name.ends_with("tcp_congestion_control") => {
                    format!("this kernel has no congestion control of that name; it has {}", available())
                }
                io::ErrorKind::NotFound => format!("this kernel has no setting of that name in a network namespace ({error})"),
                io::ErrorKind::PermissionDenied if name.ends_with("tcp_congestion_control") => format!(
                    "a namespace's default may only be one that is allowed to everybody on this machine, \
                     net.ipv4.tcp_allowed_congestion_control ({error}); set it on the socket instead, or allow it there"
                ),
                io::ErrorKind::PermissionDenied => {
                    format!("this kernel keeps it for the whole machine, or /proc/sys is read-only here ({error})")
                }
                io::ErrorKind::InvalidInput => format!("the kernel takes no such value for it ({error})"),
                _ => error.to_string(),
            })
        },
    )
}

/// Whether the namespace in which the calling thread is has a sysctl of this name.
pub(crate) fn has_sysctl(name: &str) -> bool {
    sysctl_path(name).is_some_and(|path| fs::read(path).is_ok())
}

/// As [`set_sysctl`]; a kernel without IPv6 has nothing of it to set.
pub(crate) fn set_sysctl_if_ipv6(name: &str, value: &str) -> Result<(), HostError> {
    if name.starts_with("net.ipv6.") && !has_ipv6() { Ok(()) } else { set_sysctl(name, value) }
}

/// Whether this kernel has IPv6.
pub(crate) fn has_ipv6() -> bool {
    Path::new("/proc/sys/net/ipv6").exists()
}

fn available() -> String {
    fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").map_or_else(
        |error| format!("a list that cannot be read ({error})"),
        |list| list.trim().replace(' ', ", "),
    )
}

/// Where a network sysctl lies; `None` where the name is not one of such.
fn sysctl_path(name: &str) -> Option<PathBuf> {
    let plain = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
    };
    let mut parts = name.split('.');
    (parts.next() == Some("net") && name.contains('.') && parts.clone().all(plain))
        .then(|| ["/proc/sys/net"].into_iter().chain(parts).collect())
}

/// Whether this process may make and configure network namespaces as it is.
pub fn has_privileges() -> bool {
    // Where /proc is missing, what is tried says so.
    fs::read_to_string("/proc/self/status").is_ok_and(|status| capable(&status))
}

/// Gives a process without privileges a user namespace in which it has all of them, over the network namespaces that
/// it will make. User and group stay who they are. Does nothing where the process has the privileges already.
///
/// To be called before any other thread starts.
pub fn enter_user_namespace() -> Result<(), HostError> {
    let status = fs::read_to_string("/proc/self/status")
        .map_err(|error| HostError::kernel("read /proc/self/status", "mount /proc", error))?;
    if capable(&status) {
        return Ok(());
    }
    let threads = status_field(&status, "Threads").and_then(|threads| threads.parse().ok()).unwrap_or(1);
    if threads != 1 {
        return Err(HostError::Threads { threads });
    }
    let (user, group) = (nix::unistd::geteuid(), nix::unistd::getegid());
    unshare(CloneFlags::CLONE_NEWUSER)
        .map_err(|error| HostError::kernel("enter a user namespace", BE_ROOT, error))?;
    // user_namespaces(7): without the privilege to set groups outside, groups must be given up before they are mapped.
    for (file, text) in [
        ("setgroups", "deny".to_string()),
        ("uid_map", format!("{user} {user} 1")),
        ("gid_map", format!("{group} {group} 1")),
    ] {
        let path = format!("/proc/self/{file}");
        fs::write(&path, text).map_err(|error| {
            HostError::kernel(format!("write {path} in a user namespace"), BE_ROOT, error)
        })?;
    }
    Ok(())
}

/// Whether a process of that `/proc/PID/status` may make and configure network namespaces.
pub(crate) fn capable(status: &str) -> bool {
    let effective =
        status_field(status, "CapEff").and_then(|bits| u64::from_str_radix(bits, 16).ok()).unwrap_or(0);
    let needed = CAP_SYS_ADMIN | CAP_NET_ADMIN;
    effective & needed == needed
}

pub(crate) fn status_field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

/// Runs `work` on a thread that nothing else runs on; its panic goes on in the caller.
fn on_a_thread<T: Send>(work: impl FnOnce() -> Result<T, HostError> + Send) -> Result<T, HostError> {
    thread::scope(|scope| {
        let worker = thread::Builder::new()
            .name("farpath-host".to_string())
            .spawn_scoped(scope, work)
            .map_err(|error| HostError::kernel("start a thread", "", error))?;
        worker.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_network_settings_have_a_path() {
        assert_eq!(sysctl_path("net.ipv4.tcp_sack"), Some(PathBuf::from("/proc/sys/net/ipv4/tcp_sack")));
        for other in ["kernel.hostname", "net", "net.", "net..x", "net.ipv4/../../kernel.hostname", ""] {
            assert_eq!(sysctl_path(other), None, "{other}");
        }
    }

    #[test]
    fn privileges_are_read_from_the_effective_set() {
        assert!(capable("CapInh:\t0000000000000000\nCapEff:\t000001ffffffffff\n"));
        assert!(!capable("CapPrm:\t000001ffffffffff\nCapEff:\t0000000000001000\n"));
        assert!(!capable(""));
    }
}
