//! The event loop: TCP endpoints over path elements in virtual time.
//!
//! Links, delays and losses are arithmetic and timers are lazy, so a segment costs one event, and its
//! share of an ACK half of one. Nothing here reads a clock or a file: a run is a pure function of its
//! [`Setup`], byte for byte.
//!
//! ```
//! use farpath_elements::{Delay, ElementKind, ElementSpec};
//! use farpath_path::PerDirection;
//! use farpath_sim::{FlowEnd, FlowSetup, Setup, Silent, simulate};
//! use farpath_tcp::Config;
//! use farpath_units::{Bytes, Duration, Instant};
//!
//! let delay = PerDirection::both(Duration::from_millis(270));
//! let hop = ElementSpec { name: "satellite".to_owned(), kind: ElementKind::Delay(Delay { delay }) };
//! let upload = FlowSetup::upload(&Config::default(), Bytes(100_000));
//! let horizon = Duration::from_secs(3600);
//! let setup = Setup { path: vec![hop], flows: vec![upload], seed: 1, horizon };
//! let flow = simulate(&setup, &mut Silent).expect("the path is sound").remove(0);
//! assert_eq!(flow.end, FlowEnd::Completed);
//! assert_eq!(flow.bytes_read, Bytes(100_000));
//! // The handshake takes one round trip of 540 ms, slow start from three segments six more, less half of one.
//! let time = flow.transfer_time(Instant::ZERO).expect("it completed").as_secs_f64();
//! assert!((3.5..4.5).contains(&time), "{time} s");
//! ```
//!
//! Who wants to see more than the end gives an [`Observer`] in place of [`Silent`]; who wants to stop in
//! between drives a [`Simulation`] step by step.

mod budget;
mod datagrams;
mod flow;
mod host;
mod jitter;
mod network;
mod observer;
mod packet;
mod setup;
mod stream;
mod writer;

pub use budget::{Bound, Budget, EVENTS, EVENTS_AT_ONE_INSTANT, EVENTS_PER_SEGMENT, Stuck};
pub use datagrams::{DatagramResult, DatagramRun, DatagramSetup, simulate_datagrams};
pub use farpath_explicit_rate::{
    DatagramDriver, DriverSettings, Outcome as RateOutcome, Plain, Trip, window_for,
};
pub use flow::{FlowEnd, FlowResult, initial_sequence_numbers};
pub use network::{Simulation, simulate};
pub use observer::{FlowView, Observer, PacketEvent, Silent};
pub use packet::{End, Packet, Qos, ResendCause};
pub use setup::{FlowSetup, Opener, Setup};
pub use stream::MessageStamps;
