//! Path elements: what happens to a packet between two hosts. They own no clock.
//!
//! An element is told the time and answers when a packet leaves it, so the same delay line, queue
//! or loss process impairs simulated segments in virtual time and real IP packets in real time.
//!
//! | module | what it does |
//! | --- | --- |
//! | `element` | the two shapes, [`Transit`] (arithmetic) and [`PathElement`] (holds packets) |
//! | `spec`, `check` | a path as data, what is refused, how it becomes elements |
//! | `delay`, `link`, `loss`, `reorder`, `duplicate` | one kind of element each |
//! | `rng` | random numbers that belong to one element and direction |

mod check;
mod counters;
mod delay;
mod duplicate;
mod element;
mod link;
mod loss;
mod reorder;
mod rng;
mod spec;

pub use check::SpecError;
pub use counters::{DropCounts, ElementCounters, LinkCounters};
pub use element::{
    BoxedElement, BoxedTransit, Departure, Direction, DropCause, Fate, PacketView, PathElement, PathPacket,
    PerDirection, Transit, Verdict,
};
pub use rng::{Chance, Generator};
pub use spec::{ElementKind, ElementSpec, PacketCount, QueueLimit, base_delay};
