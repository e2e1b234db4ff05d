//! What can keep the driver from being attached, looked at or detached.

use crate::Missing;
use std::io;
use std::path::PathBuf;

/// What can keep the driver from being attached, looked at or detached.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// The machine or the user lacks something.
    #[error("the driver cannot run here: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Missing(Vec<Missing>),
    /// No such device.
    #[error("{device}: no network device of that name here: {source}")]
    NoDevice {
        /// As asked for.
        device: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// A device whose packets are neither Ethernet frames nor IP packets.
    #[error(
        "{device}: its packets are neither Ethernet frames nor IP packets (ARPHRD {kind}); expected a device of one of these"
    )]
    Framing {
        /// Which.
        device: String,
        /// `ARPHRD_*` of linux/if_arp.h.
        kind: u16,
    },
    /// Nothing says how fast it is.
    #[error(
        "{device}: nothing says how fast it is; expected --rate, such as `100 Mbit/s`: the most that is asked for"
    )]
    NoRate {
        /// Which.
        device: String,
    },
    /// It is there already.
    #[error(
        "{device}: the driver is attached to it already; `farpath explicit-rate driver detach` takes it off"
    )]
    Attached {
        /// Which.
        device: String,
    },
    /// Settings are of all devices.
    #[error(
        "the driver is attached, and its settings are of all devices; expected none here, or `farpath explicit-rate driver detach` first"
    )]
    Settled,
    /// Somebody else has the name.
    #[error(
        "a congestion control called {0} is registered already, by a driver that is attached in another container or by another \
             program; a name can be registered once only on a machine"
    )]
    NameTaken(String),
    /// It is not there.
    #[error("the driver is not attached")]
    NotAttached,
    /// It is not there, and not nothing.
    #[error(
        "the driver is not attached, and an `attach` that was killed has left {} behind; `farpath explicit-rate driver detach` removes that",
        left.display()
    )]
    Interrupted {
        /// What is left.
        left: PathBuf,
    },
    /// What is mounted now is gone with this command.
    #[error(
        "this command has a mount namespace of its own, which ends with it, as under `ip netns exec`: what is attached here would end too, and what \
             is attached elsewhere is not seen; expected one that stays, as in `nsenter --net=/run/netns/NAME farpath explicit-rate driver ...`"
    )]
    Transient,
    /// No such congestion control.
    #[error("this kernel has no congestion control `{name}`; expected one of {available}")]
    NoControl {
        /// As asked for.
        name: String,
        /// Those that there are.
        available: String,
    },
    /// Not the bytes of this version's objects.
    #[error("the objects do not fit this program: {0}; `make bpf` builds them")]
    Object(String),
    /// The kernel refused a program.
    #[error("cannot {what}: {source}{}", tail(log))]
    Bpf {
        /// What was tried.
        what: String,
        /// What came back.
        source: libbpf_rs::Error,
        /// What libbpf had to say.
        log: String,
    },
    /// The kernel refused something else.
    #[error("cannot {what}: {source}")]
    Kernel {
        /// What was tried.
        what: String,
        /// What it said.
        source: io::Error,
    },
    /// A file system of another kind stands where ours should.
    #[error("{}: expected a BPF file system, found another kind, and none can be mounted there: {source}", path.display())]
    NoBpffs {
        /// Where.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
}

impl DriverError {
    pub(crate) fn bpf(what: impl Into<String>) -> impl FnOnce(libbpf_rs::Error) -> DriverError {
        let what = what.into();
        move |source| DriverError::Bpf { what, source, log: crate::driver::take_log() }
    }

    pub(crate) fn kernel<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> DriverError {
        let what = what.into();
        move |source| DriverError::Kernel { what, source: source.into() }
    }
}

/// The last lines, where the reason stands.
fn tail(log: &str) -> String {
    let lines: Vec<_> = log.lines().collect();
    let last = &lines[lines.len().saturating_sub(8)..];
    if last.is_empty() { String::new() } else { format!("\n{}", last.join("\n")) }
}
