//! What this machine can do for emulation, found by trying it; nothing of the machine is changed.

#[cfg(target_os = "linux")]
mod devices;
#[cfg(target_os = "linux")]
mod machine;
#[cfg(target_os = "linux")]
mod privileges;

#[cfg(target_os = "linux")]
pub use devices::{clean, devices};

use std::fmt;

/// How well a machine does something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// As it should be.
    Ok,
    /// Emulation runs, with less.
    Limited,
    /// It is not there.
    Missing,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            State::Ok => "ok",
            State::Limited => "limited",
            State::Missing => "missing",
        })
    }
}

/// One thing that was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What.
    pub name: &'static str,
    /// How well it does.
    pub state: State,
    /// What was found.
    pub found: String,
    /// What that means for emulation.
    pub meaning: String,
    /// How to get what is missing; `None` where nothing is, or nothing can be done.
    pub remedy: Option<String>,
}

impl Finding {
    fn new(
        name: &'static str,
        state: State,
        found: impl Into<String>,
        meaning: impl Into<String>,
    ) -> Finding {
        Finding { name, state, found: found.into(), meaning: meaning.into(), remedy: None }
    }

    #[cfg(target_os = "linux")]
    fn remedy(self, remedy: impl Into<String>) -> Finding {
        Finding { remedy: Some(remedy.into()), ..self }
    }
}

/// Who made a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maker {
    /// A process that goes on.
    Lives(u32),
    /// One that is dead: the device is left over.
    Dead(u32),
    /// One in a container, or somebody else who took such a name.
    Unknown,
}

/// A device with a name of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighting {
    /// Its name.
    pub device: String,
    /// The network namespace that it is in, as /proc names it.
    pub namespace: String,
    /// Whose it is.
    pub maker: Maker,
    /// The processes that are in that namespace, or have it open: number and name.
    pub holders: Vec<(u32, String)>,
}

/// All that were seen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sightings {
    /// Devices.
    pub devices: Vec<Sighting>,
    /// Namespaces that this user may not look into.
    pub closed: usize,
}

/// There are none.
#[cfg(not(target_os = "linux"))]
pub fn devices() -> Sightings {
    Sightings::default()
}

/// There is nothing to remove.
#[cfg(not(target_os = "linux"))]
pub fn clean() -> Result<Vec<Sighting>, crate::HostError> {
    Ok(Vec::new())
}

/// Tries everything.
///
/// A process without privileges is in a user namespace of its own afterwards, where it may enter one: to be called
/// before other threads start.
#[cfg(target_os = "linux")]
pub fn probe() -> Vec<Finding> {
    let steal = machine::Steal::begin();
    let mut findings = vec![machine::kernel(), privileges::privileges(), privileges::user_namespaces()];
    findings.push(privileges::network_namespaces());
    findings.push(privileges::tun());
    findings.push(privileges::packet_sockets());
    findings.push(privileges::real_time());
    findings.push(machine::timers());
    findings.push(machine::congestion_controls());
    findings.push(machine::ipv6());
    findings.push(machine::cores());
    findings.push(steal.end());
    findings.push(machine::memory());
    findings.push(machine::socket_buffers());
    findings
}

/// There is nothing to try.
#[cfg(not(target_os = "linux"))]
pub fn probe() -> Vec<Finding> {
    let found = std::env::consts::OS;
    let meaning = "emulation is of the Linux kernel's TCP; prediction and simulation run here";
    vec![Finding {
        remedy: Some("use a Linux machine, or a virtual one".to_string()),
        ..Finding::new("kernel", State::Missing, found, meaning)
    }]
}

/// Whether emulation runs at all on a machine where this was found.
pub fn emulates(findings: &[Finding]) -> bool {
    let there = |name| findings.iter().any(|finding| finding.name == name && finding.state != State::Missing);
    there("network namespaces") && (there("TUN") || there("packet sockets"))
}
