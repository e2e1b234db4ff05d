//! A TCP endpoint that owns no socket, no thread and no clock.
//!
//! Time is an argument, so a connection is a pure function of what it is told: the same endpoint is
//! simulated a million segments a second, and put on a real device to talk to a Linux kernel.

pub mod config;
mod segment;
mod seq;

pub use config::Config;
pub use segment::{Flags, SackBlock, SackBlocks, Segment, Timestamps};
pub use seq::Seq;
