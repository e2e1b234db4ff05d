//! The elements of a path: delay, link, loss, reordering, radios, flow routers. They own no clock.
//!
//! ```
//! use farpath_elements::{ElementKind, ElementSpec, build_path};
//! use farpath_path::{Direction, PerDirection};
//! use farpath_units::Duration;
//!
//! let delay = PerDirection::both(Duration::from_millis(250));
//! let hop = ElementSpec { name: "hop".to_owned(), kind: ElementKind::Delay { delay } };
//! assert_eq!(farpath_elements::base_delay(&[hop], Direction::Forward, farpath_units::Bytes(1500)), delay.forward);
//! ```
//!
//! | module | what it does |
//! | --- | --- |
//! | `spec`, `check` | a path as data, what is refused, how it becomes elements |
//! | `build` | from a path as data to a chain of elements |
//! | `delay`, `hops`, `link`, `loss`, `reorder`, `duplicate`, `flow_router`, `radio` | one kind of element each |

mod build;
mod check;
mod delay;
mod duplicate;
mod flow_router;
mod hops;
mod link;
mod loss;
mod radio;
mod reorder;
mod spec;
mod transmitter;

pub use build::build_path;
pub use check::SpecError;
pub use flow_router::{ExplicitRatePacket, FlowRouter, RouterFigures};
pub use radio::{Backoff, Duplex, Oversize, Radio, RadioFault, RadioPower, RadioSpec, Turnaround};
pub use spec::{
    ElementKind, ElementSpec, MarkThreshold, PacketCount, QueueLimit, RateChange, RouterLines, WaitKind,
    base_delay, routers,
};
