//! Emulation: the Linux kernel's TCP over path elements, in real time.
//!
//! Two hosts, each a network namespace with one device; between them a loop that takes IP packets from one, offers
//! them to a [`farpath_path::Path`] and hands them to the other when they are due.

mod clock;
mod dress;
mod port;

pub use clock::Clock;
pub use dress::{Dress, RouteMetrics, Sysctl};
pub use port::{Port, Received, VirtioHeader};
