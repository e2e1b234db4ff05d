//! TCP stacks that are not ours, as hosts of a path in virtual time.
//!
//! A [`Host`] is one end of one connection. It is told the time and given the IP packets that arrive; it answers with the packets
//! that it sends, what its program has done, and when it wants to be called again. There are three: our own endpoint ([`Ours`]), smoltcp
//! ([`Smoltcp`]), and a program of anybody's ([`Program`]), which is told the same over its standard input and output
//! ([`protocol`]). lwIP and libslirp are such programs; [`recipe`] makes them of the distribution's packages.

mod catalog;
mod ours;
mod program;
pub mod protocol;
pub mod recipe;
mod smoltcp;

pub use crate::smoltcp::{Card, Smoltcp};
pub use catalog::Catalog;
pub use ours::Ours;
pub use program::{Program, SILENCE};
pub use protocol::ProtocolError;

use farpath_units::{Bytes, Instant};
use std::io;
use std::net::SocketAddrV4;
use std::path::PathBuf;

/// What a host is told before the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostSetup {
    /// It opens the connection; else it waits for the other host to do so.
    pub opens: bool,
    /// It writes the bytes, and closes; else it reads them to their end, and closes then.
    pub sends: bool,
    /// How many bytes the transfer has. They are [`farpath_tcp::pattern`]'s.
    pub size: Bytes,
    /// Its address and port.
    pub local: SocketAddrV4,
    /// Those of the other host.
    pub remote: SocketAddrV4,
    /// The longest IP packet that it may send, in bytes.
    pub mtu: u16,
    /// The most that it holds written and not acknowledged.
    pub send_buffer: Bytes,
    /// The most that it holds received and not read: the largest window that it announces.
    pub receive_buffer: Bytes,
    /// The congestion controller that the experiment names, as stack files spell it. A host that has only one leaves it.
    pub control: &'static str,
    /// What its random numbers are drawn from.
    pub seed: u64,
}

/// What a host does when it is called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// IP packets that it sends now, in this order.
    pub packets: Vec<Vec<u8>>,
    /// Bytes that its program has read since the connection began; `None` where that is as before.
    pub read: Option<u64>,
    /// The connection is open now.
    pub connected: bool,
    /// It owes nobody anything: all that it sent, its FIN included, is acknowledged, and it has read to the end of what it gets.
    pub closed: bool,
    /// The connection failed, and why.
    pub failed: Option<String>,
    /// When it wants to be called although nothing has arrived; `None` for never.
    pub next_due: Option<Instant>,
}

/// One end of a connection. It owns no clock, and time never goes backwards.
pub trait Host: Send {
    /// What it is, with its version.
    fn name(&self) -> &str;

    /// Its program begins: it connects, or listens.
    ///
    /// # Errors
    /// The host does not do as agreed; that is a fault of its own, and none of the path or of the other host.
    fn start(&mut self, now: Instant) -> Result<Answer, HostError>;

    /// An IP packet arrives.
    ///
    /// # Errors
    /// As of [`Host::start`].
    fn packet(&mut self, now: Instant, packet: &[u8]) -> Result<Answer, HostError>;

    /// Nothing arrives, and it is as late as this: all timers that are due run.
    ///
    /// # Errors
    /// As of [`Host::start`].
    fn timer(&mut self, now: Instant) -> Result<Answer, HostError>;
}

/// Why a host cannot go on, or not begin.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// A name that is neither ours nor that of a program in the folder.
    #[error("expected `farpath`, `smoltcp` or a program in {}, found `{name}`{}", folder.display(), remedy(name))]
    Unknown {
        /// What was asked for.
        name: String,
        /// Where programs are.
        folder: PathBuf,
    },
    /// The program does not start.
    #[error("cannot start {}: {source}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// What it says is not the protocol.
    #[error("{host}: {source}")]
    Protocol {
        /// The program.
        host: String,
        /// What is wrong.
        source: ProtocolError,
    },
    /// It ended, or closed its standard output, before the run was over.
    #[error("{host} ended before the run was over{}", because(said))]
    Ended {
        /// The program.
        host: String,
        /// The end of what it wrote to its standard error.
        said: String,
    },
    /// It neither answers nor ends.
    #[error("{host} has not answered `{request}` for {} s{}", waited.as_secs_f64(), because(said))]
    Silent {
        /// The program.
        host: String,
        /// The first word of what it was told.
        request: &'static str,
        /// How long it was waited for, in real time.
        waited: std::time::Duration,
        /// The end of what it wrote to its standard error.
        said: String,
    },
    /// Our own endpoint makes a segment that fits no packet.
    #[error("cannot put a segment into a packet: {0}")]
    Segment(#[from] farpath_tcp::wire::EncodeError),
    /// smoltcp refuses to open or to listen.
    #[error("smoltcp: {0}")]
    Smoltcp(String),
}

fn remedy(name: &str) -> String {
    match recipe::RECIPES.iter().any(|recipe| recipe.name == name) {
        true => format!("; `farpath hosts build {name}` makes it"),
        false => String::new(),
    }
}

fn because(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!("; it said: {said}") }
}
