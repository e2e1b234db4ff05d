//! Why a path is not measured.

use crate::protocol::PROTOCOL;
use crate::said::Said;
use farpath_units::{Duration, Rate};
use std::io;
use std::net::SocketAddr;

/// Why a path is not measured. Each message names the peer as it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The text is no host.
    #[error("{host}: expected HOST, HOST:PORT or [ADDRESS]:PORT")]
    NotAHost {
        /// As asked for.
        host: String,
    },
    /// No address is known for the name.
    #[error("{host}: no address is known for it: {source}")]
    Unknown {
        /// As asked for.
        host: String,
        /// What the resolver says.
        source: io::Error,
    },
    /// It has no address of that version.
    #[error("{host}: it has no {family} address")]
    NoSuchFamily {
        /// As asked for.
        host: String,
        /// `IPv4` or `IPv6`.
        family: &'static str,
    },
    /// Nobody waits there.
    #[error(
        "{address}: the connection was refused: nobody waits there; run `farpath serve --bind {}` on that host",
        address.ip()
    )]
    Refused {
        /// Which was tried last.
        address: SocketAddr,
    },
    /// Nothing comes back.
    #[error(
        "{address}: it cannot be reached: {source}; is the host up, and does every firewall on the way let TCP port {} \
         through?", address.port()
    )]
    Unreachable {
        /// Which was tried last.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// Something else waits there.
    #[error("{address}: what waits there is not `farpath serve`: {what}")]
    NotFarpath {
        /// Where.
        address: SocketAddr,
        /// What it said, or did not.
        what: String,
    },
    /// Another version.
    #[error(
        "{address}: it is farpath {theirs}, which speaks version {protocol} of the protocol; this is farpath {}, which \
         speaks version {PROTOCOL}: both hosts need the same", env!("CARGO_PKG_VERSION")
    )]
    Version {
        /// Where.
        address: SocketAddr,
        /// Of the program.
        theirs: Said,
        /// Of the protocol.
        protocol: u32,
    },
    /// It wants a key.
    #[error("{address}: it wants a key: name the file with --key")]
    KeyMissing {
        /// Where.
        address: SocketAddr,
    },
    /// The keys differ.
    #[error("{address}: it does not have the key of --key, or has another one")]
    KeyWrong {
        /// Where.
        address: SocketAddr,
    },
    /// It will not.
    #[error("{address}: it refuses: {message}")]
    Denied {
        /// Where.
        address: SocketAddr,
        /// Why, in its words.
        message: Said,
    },
    /// The control connection is over.
    #[error("{address}: the control connection was lost: {why}")]
    Lost {
        /// Where.
        address: SocketAddr,
        /// Why.
        why: String,
    },
    /// A flow with a host of its own.
    #[error(
        "flow {0} has an `access`, a `sender` or a `receiver` of its own: all flows of a measurement are between the same two hosts"
    )]
    OwnEnds(usize),
    /// This host cannot.
    #[error("this host: {0}")]
    Here(String),
    /// It allows so little that looking at the path would take too long.
    #[error(
        "{address}: it allows {rate} (--max-rate), over which {count} echoes take {takes}: fewer of them (--echoes) take less"
    )]
    TooSlow {
        /// Where.
        address: SocketAddr,
        /// What it allows.
        rate: Rate,
        /// How many were asked for.
        count: u32,
        /// How long they would take.
        takes: Duration,
    },
    /// Told to stop.
    #[error("interrupted")]
    Stopped,
}
