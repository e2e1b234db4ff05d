//! What this process may do.

use super::{Finding, State};
use crate::host::{Backend, Host, HostSettings};
use crate::namespace::{Namespace, capable, enter_user_namespace};
use crate::sys::sched::RealTime;
use crate::sys::trial::{Step, user_namespace_of};
use nix::unistd::geteuid;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;

/// Who has no privilege on any Linux.
const NOBODY: u32 = 65_534;

pub(super) fn privileges() -> Finding {
    let user = geteuid();
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let name = "privileges";
    match (capable(&status), user.is_root()) {
        (true, true) => Finding::new(name, State::Ok, "root", "hosts are made directly"),
        (true, false) => Finding::new(
            name,
            State::Ok,
            format!("user {user}, with CAP_SYS_ADMIN and CAP_NET_ADMIN"),
            "hosts are made directly",
        ),
        (false, root) => Finding::new(
            name,
            State::Limited,
            format!(
                "{}, without CAP_SYS_ADMIN and CAP_NET_ADMIN",
                if root { "root".to_string() } else { format!("user {user}") }
            ),
            "hosts are made in a user namespace, where that is allowed",
        )
        .remedy(if root {
            "give the container these two, or --privileged"
        } else {
            "run as root, which is needed for the best timing only"
        }),
    }
}

/// Whether hosts can be made without privileges; where this process has none, it enters a user namespace here.
pub(super) fn user_namespaces() -> Finding {
    let name = "user namespaces";
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let allowed = "emulation runs without root";
    let refused = |found: String| {
        let state = if capable(&status) { State::Limited } else { State::Missing };
        let meaning = if capable(&status) {
            "emulation takes root here"
        } else {
            "emulation takes root with its privileges, which this process does not have"
        };
        let finding = Finding::new(name, state, found, meaning);
        match what_forbids_them() {
            Some(remedy) => finding.remedy(remedy),
            None => finding.remedy("run as root; in a container, allow unshare(2) by its seccomp profile"),
        }
    };
    if !capable(&status) {
        return match enter_user_namespace() {
            Ok(()) => Finding::new(name, State::Ok, "entered one", allowed),
            Err(error) => refused(error.without_help()),
        };
    }
    match user_namespace_of(NOBODY) {
        Ok(Ok(())) => {
            Finding::new(name, State::Ok, format!("user {NOBODY} may make one, and hosts in it"), allowed)
        }
        Ok(Err((step, error))) => refused(format!(
            "user {NOBODY} may not {}: {error}",
            match step {
                Step::EnterUserNamespace => "enter one",
                Step::MapUser => "name its user in one",
                Step::MakeNetworkNamespace => "make a network namespace in one",
            }
        )),
        Err(error) => Finding::new(
            name,
            State::Limited,
            format!("not tried: this process cannot become user {NOBODY}: {error}"),
            "whether emulation runs without root is not known; it runs as this user",
        ),
    }
}

/// The setting that keeps user namespaces from everybody, and how to change it.
fn what_forbids_them() -> Option<String> {
    let setting =
        |path: &str| fs::read_to_string(format!("/proc/sys/{path}")).ok().map(|it| it.trim().to_string());
    [
        ("kernel/unprivileged_userns_clone", "0", "1"),
        ("user/max_user_namespaces", "0", "15000"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "0"),
    ]
    .into_iter()
    .find(|(path, forbids, _)| setting(path).as_deref() == Some(forbids))
    .map(|(path, forbids, allows)| {
        let name = path.replace('/', ".");
        format!("{name} is {forbids}: as root, `sysctl -w {name}={allows}`; or run as root")
    })
}

pub(super) fn network_namespaces() -> Finding {
    let name = "network namespaces";
    match Namespace::new() {
        Ok(_) => Finding::new(name, State::Ok, "made one", "each host has one of its own"),
        Err(error) => Finding::new(name, State::Missing, error.without_help(), "emulation does not run here")
            .remedy("run as root, or get user namespaces allowed; the kernel needs CONFIG_NET_NS"),
    }
}

/// A device is tried in a namespace; where there is none, that is what is missing.
fn not_tried(name: &'static str) -> Option<Finding> {
    Namespace::new().err()?;
    let found = "not tried: there is no network namespace to try it in";
    let finding = Finding::new(name, State::Missing, found, "not known");
    Some(finding.remedy("get network namespaces first"))
}

pub(super) fn tun() -> Finding {
    let name = "TUN";
    if let Some(finding) = not_tried(name) {
        return finding;
    }
    let node = "/dev/net/tun";
    let mode = fs::metadata(node).map(|node| format!("mode {:04o}", node.permissions().mode() & 0o7777));
    let host = Host::new(&HostSettings { backend: Backend::Tun, ..HostSettings::near() });
    let (mode, error) = match (mode, host) {
        (Ok(mode), Ok(_)) => {
            let meaning = "the fastest way into a host; super-packets and unfinished checksums pass through";
            return Finding::new(name, State::Ok, format!("{node}, {mode}: made a device"), meaning);
        }
        (Err(error), _) => (format!("{node}: {error}"), None),
        (Ok(mode), Err(error)) => (mode, Some(error)),
    };
    let found = error.as_ref().map_or(mode.clone(), |error| format!("{mode}: {}", error.without_help()));
    let finding = Finding::new(
        name,
        State::Missing,
        found,
        "hosts take packet sockets in its place, which are half as fast",
    );
    if !fs::exists(node).unwrap_or(false) {
        finding.remedy(format!(
            "as root, `modprobe tun`, or `mkdir -p /dev/net && mknod -m 0666 {node} c 10 200`; in a container, `--device {node}`"
        ))
    } else if File::options().read(true).write(true).open(node).is_err() {
        finding.remedy(format!("as root, `chmod 0666 {node}`, as most distributions have it: who opens it can do nothing with it outside namespaces of its own"))
    } else {
        finding
    }
}

pub(super) fn packet_sockets() -> Finding {
    let name = "packet sockets";
    if let Some(finding) = not_tried(name) {
        return finding;
    }
    match Host::new(&HostSettings { backend: Backend::Packet, ..HostSettings::near() }) {
        Ok(_) => {
            Finding::new(name, State::Ok, "made a veth pair with one", "what hosts take where TUN is closed")
        }
        Err(error) => Finding::new(
            name,
            State::Missing,
            error.without_help(),
            "nothing to fall back on where TUN is closed",
        )
        .remedy("the kernel needs CONFIG_VETH (`modprobe veth`) and CONFIG_PACKET"),
    }
}

pub(super) fn real_time() -> Finding {
    let name = "real time";
    match RealTime::enter() {
        Ok(_) => Finding::new(name, State::Ok, "SCHED_FIFO", "packets leave the path on time on a busy machine too"),
        Err(error) => Finding::new(
            name,
            State::Limited,
            format!("no SCHED_FIFO: {error}"),
            "whatever else runs can make packets late by some milliseconds; a run says how late they were",
        )
        .remedy("run as root, or raise RLIMIT_RTPRIO to 20: as root, a line `USER - rtprio 20` in /etc/security/limits.conf, and a new login"),
    }
}
