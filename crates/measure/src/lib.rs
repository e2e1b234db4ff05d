//! Measuring over a real network: a responder on the peer ([`serve`]), and the local host that asks it ([`Peer`]).
//!
//! One control connection says what is to be done; each flow has a connection, or datagrams, of its own. What both ends
//! know becomes one [`farpath_run::Run`].

#![cfg(target_os = "linux")]

mod control;
mod datagrams;
mod end;
mod estimate;
mod fit;
#[doc(hidden)]
pub mod fuzz;
mod kernel;
mod key;
pub mod limits;
mod peer;
mod protocol;
mod refused;
mod run;
mod said;
pub mod serve;

pub use datagrams::{Burst, Echoes, burst, echo};
pub use estimate::{PathEstimate, Probing, Queue, Way, estimate, share};
pub use key::{Key, KeyError, key_is_open};
pub use peer::{Family, MeasureError, Offset, Offsets, Peer, addresses, is_local};
pub use protocol::PROTOCOL;
pub use refused::{NotMeasured, can_be_measured};
pub use run::{Exchanges, Seen, exchange, measure};
pub use said::Said;
