//! Path elements: what happens to a packet between two hosts. They own no clock.
//!
//! An element is told the time and answers when a packet leaves it, so the same delay line, queue
//! or loss process impairs simulated segments in virtual time and real IP packets in real time.
//!
//! ```
//! use farpath_path::{Direction, ElementKind, ElementSpec, Path, PathElement, PathPacket, PerDirection};
//! use farpath_units::{Bytes, Duration, Instant};
//!
//! #[derive(Clone)]
//! struct Packet;
//! impl PathPacket for Packet {
//!     fn wire_size(&self) -> Bytes {
//!         Bytes(1500)
//!     }
//!     fn carries_data(&self) -> bool {
//!         true
//!     }
//! }
//!
//! let delay = PerDirection::both(Duration::from_millis(250));
//! let hop = ElementSpec { name: "hop".to_owned(), kind: ElementKind::Delay { delay } };
//! let mut path = Path::build(&[hop], 1).expect("the specification is sound");
//! path.offer(Instant::ZERO, Direction::Forward, Packet);
//! let due = path.next_departure().expect("a packet is on its way");
//! assert_eq!(due, Instant::ZERO + Duration::from_millis(250));
//! assert_eq!(path.take(due).expect("it is due").direction, Direction::Forward);
//! ```
//!
//! | module | what it does |
//! | --- | --- |
//! | `element` | the two shapes, [`Transit`] (arithmetic) and [`PathElement`] (holds packets) |
//! | `spec`, `check` | a path as data, what is refused, how it becomes elements |
//! | `delay`, `hops`, `link`, `loss`, `reorder`, `duplicate`, `flow_router`, `radio` | one kind of element each |
//! | `stage`, `chain` | elements one behind the other |
//! | `rng` | random numbers that belong to one element and direction |

mod chain;
mod check;
mod counters;
mod delay;
mod duplicate;
mod element;
mod flow_router;
mod hops;
mod link;
mod loss;
mod radio;
mod reorder;
mod rng;
mod schedule;
mod spec;
mod stage;
mod transmitter;

pub use chain::{MOST_PACKETS, Path};
pub use check::SpecError;
pub use counters::{ChannelTime, DropCounts, ElementCounters, LinkCounters, RouterFigures};
pub use element::{
    BoxedElement, BoxedTransit, Departure, Direction, DropCause, Fate, PacketView, PathElement, PathPacket,
    PerDirection, Signal, Transit, Verdict,
};
pub use flow_router::FlowRouter;
pub use radio::{
    AirEnergy, AirTime, AirUse, Backoff, Duplex, Oversize, Radio, RadioFault, RadioPower, RadioSpec,
    Turnaround,
};
pub use rng::{Chance, Generator};
pub use spec::{
    ElementKind, ElementSpec, MarkThreshold, PacketCount, QueueLimit, RateChange, RouterLines, WaitKind,
    base_delay, routers,
};
pub use stage::Stage;
