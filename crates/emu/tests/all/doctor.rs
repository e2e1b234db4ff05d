//! The doctor finds what is there, and leaves it as it is.

#![cfg(target_os = "linux")]

use farpath_emu::doctor::{self, State};
use farpath_emu::{Backend, Host, HostSettings};
use std::collections::BTreeSet;
use std::fs;

#[test]
fn findings_are_what_happens_when_it_is_tried() {
    let changes =
        ["/proc/modules", "/proc/self/uid_map", "/proc/self/cgroup"].map(|path| fs::read(path).ok());
    let findings = doctor::probe();
    let names: BTreeSet<_> = findings.iter().map(|finding| finding.name).collect();
    assert_eq!(names.len(), findings.len(), "each is there once");
    let state = |name| findings.iter().find(|finding| finding.name == name).expect("it is looked at").state;
    for (name, backend) in [("TUN", Backend::Tun), ("packet sockets", Backend::Packet)] {
        let host = Host::new(&HostSettings { backend, ..HostSettings::near() });
        assert_eq!(state(name) == State::Ok, host.is_ok(), "{name}");
    }
    assert_eq!(doctor::emulates(&findings), Host::new(&HostSettings::near()).is_ok());
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert!(findings[0].found.contains(release.trim()));
    for finding in &findings {
        assert!(!finding.found.is_empty() && !finding.meaning.is_empty(), "{finding:?}");
    }
    let after = ["/proc/modules", "/proc/self/uid_map", "/proc/self/cgroup"].map(|path| fs::read(path).ok());
    assert_eq!(changes, after);
}
