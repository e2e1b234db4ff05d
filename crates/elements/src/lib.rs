//! The elements of a path: delay, link, loss, reordering, radios, flow routers. They own no clock.
//!
//! ```
//! use farpath_elements::{Delay, ElementKind, ElementSpec};
//! use farpath_path::{Direction, PerDirection};
//! use farpath_units::Duration;
//!
//! let delay = PerDirection::both(Duration::from_millis(250));
//! let hop = ElementSpec { name: "hop".to_owned(), kind: ElementKind::Delay(Delay { delay }) };
//! assert_eq!(farpath_elements::base_delay(&[hop], Direction::Forward, farpath_units::Bytes(1500)), delay.forward);
//! ```
//!
//! To add one: its file, and its line in `list`.
//!
//! | module | what it does |
//! | --- | --- |
//! | `element` | what an element says of itself: [`Element`], [`Declared`] |
//! | `list` | the list of elements |
//! | `spec` | a path as data, and how it becomes a chain of elements |
//! | `delay`, `wait`, `hops`, `link`, `trace_link`, `loss`, `reorder`, `duplicate`, `jitter`, `token_bucket`, `contacts`, `flow_router`, `radio` | one kind of element each |
//! | `orbit` | satellites: the delay over them, and when there is contact |
//! | `over_time` | values that change over time: [`Setting`] |
//! | [`trace`] | rates over time, from files and from models |
//! | [`keys`] | the keys of an element, whatever kind of file they stand in |
//! | `draw` | what property tests draw for elements |
//! | `aqm` | queues that manage themselves: CoDel, PIE, RED, DualPI2, CAKE, flow queues |
//! | `queue`, `line`, `transmitter` | what elements with a line have in common |

mod aqm;
mod contacts;
mod delay;
mod draw;
mod duplicate;
mod element;
mod flow_router;
mod hops;
mod jitter;
pub mod keys;
mod line;
mod link;
mod list;
mod loss;
mod orbit;
mod over_time;
mod queue;
mod radio;
mod reorder;
mod spec;
mod token_bucket;
pub mod trace;
mod trace_link;
mod transmitter;
mod wait;
mod waiting;
mod words;

pub use aqm::{Aqm, Cake, Codel, DualPi2, FlowQueues, LowLatency, Pie, Red};
pub use contacts::{Contact, ContactPlan, Contacts, Gaps, Outside, parse_plan};
pub use delay::{Delay, VaryingDelay};
pub use draw::Draws;
pub use duplicate::Duplicate;
pub use element::{Built, Declared, DelayKind, DelayPart, DelayTime, Element, Fault, Inflow};
pub use flow_router::{ExplicitRatePacket, FlowRouter, RateChange, RouterFigures, RouterLines};
pub use hops::Hops;
pub use jitter::{Distribution, Jitter};
pub use line::Line;
pub use link::Link;
pub use list::{ElementKind, element_docs, element_names};
pub use loss::{
    Bernoulli, BitErrors, EvenlySpaced, GilbertElliott, Listed, PacketCount, VaryingBitErrors, VaryingLoss,
};
pub use orbit::{Body, Orbit, Passes, Place, Satellite, Tle, parse_tle};
pub use over_time::{Between, Changes, Offset, OverTime, Setting};
pub use queue::{MarkThreshold, QueueLimit};
pub use radio::{
    Arrivals, Backoff, Duplex, HiddenFrom, OnOff, OtherStations, Oversize, Peer, Radio, RadioPower,
    RadioSpec, Turnaround,
};
pub use reorder::Reorder;
pub use spec::{ElementSpec, SpecError, base_delay, build_path, routers};
pub use token_bucket::{Excess, TokenBucket};
pub use trace::Trace;
pub use trace_link::TraceLink;
pub use wait::{Wait, WaitKind};
