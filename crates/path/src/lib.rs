//! What happens to a packet between two hosts: the shapes that every element of a path has, and the chain of them.
//!
//! An element is told the time and answers when a packet leaves it, so the same delay line, queue or loss process impairs
//! simulated segments in virtual time and real IP packets in real time. The elements themselves are in `farpath-elements`; one
//! of your own is a [`Transit`] or a [`PathElement`]:
//!
//! ```
//! use farpath_path::{Direction, Fate, PacketView, Path, PathElement, PathPacket, Stage, Transit};
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
//! struct Satellite;
//! impl Transit for Satellite {
//!     fn transit(&mut self, now: Instant, _: Direction, _: PacketView) -> Fate {
//!         Fate::Depart(now + Duration::from_millis(250))
//!     }
//! }
//!
//! let stages = Stage::fuse(vec![("satellite".to_owned(), Box::new(Satellite))]);
//! let mut path = Path::from_elements(stages.into_iter().map(|stage| Box::new(stage) as _).collect());
//! path.offer(Instant::ZERO, Direction::Forward, Packet);
//! let due = path.next_departure().expect("a packet is on its way");
//! assert_eq!(due, Instant::ZERO + Duration::from_millis(250));
//! assert_eq!(path.take(due).expect("it is due").direction, Direction::Forward);
//! ```
//!
//! | module | what it does |
//! | --- | --- |
//! | `element` | the two shapes, [`Transit`] (arithmetic) and [`PathElement`] (holds packets) |
//! | `stage`, `chain` | elements one behind the other |
//! | `counters`, `air` | what elements count, and what the time of a radio channel is used for |
//! | `schedule` | packets in the order of their due times |
//! | `rng` | random numbers that belong to one element and direction |

mod air;
mod chain;
mod counters;
mod element;
mod rng;
mod schedule;
mod stage;

pub use air::{AirEnergy, AirTime, AirUse, StationCounts};
pub use chain::{MOST_PACKETS, Path};
pub use counters::{ChannelTime, DropCounts, ElementCounters, LinkCounters, OwnFigures};
pub use element::{
    BoxedElement, BoxedTransit, Departure, Direction, DropCause, Fate, PacketView, PathElement, PathPacket,
    PerDirection, Signal, Transit, Verdict,
};
pub use rng::{Chance, Generator};
pub use schedule::Schedule;
pub use stage::Stage;
