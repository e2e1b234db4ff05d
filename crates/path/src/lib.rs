//! Path elements: what happens to a packet between two hosts. They own no clock.
//!
//! An element is told the time and answers when a packet leaves it, so the same delay line, queue
//! or loss process impairs simulated segments in virtual time and real IP packets in real time.

mod element;
mod spec;

pub use element::{
    Departure, Direction, DropCause, Fate, PacketView, PathElement, PathPacket, PerDirection, Transit,
    Verdict,
};
pub use spec::{ElementKind, ElementSpec, PacketCount, QueueLimit};
