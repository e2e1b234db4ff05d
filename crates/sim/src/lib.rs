//! The event loop: TCP endpoints over path elements in virtual time.
//!
//! Links, delays and losses are arithmetic and timers are lazy, so a segment costs one event, and its
//! share of an ACK half of one. Nothing here reads a clock or a file: a run is a pure function of its
//! [`Setup`], byte for byte.

mod flow;
mod network;
mod observer;
mod packet;
mod setup;

pub use flow::{FlowEnd, FlowResult};
pub use network::{Simulation, simulate};
pub use observer::{FlowView, Observer, PacketEvent, Silent};
pub use packet::{End, Packet};
pub use setup::{FlowSetup, Opener, Setup};
