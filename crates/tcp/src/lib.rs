//! A TCP endpoint that owns no socket, no thread and no clock.
//!
//! Time is an argument, so a connection is a pure function of what it is told: the same endpoint is
//! simulated a million segments a second, and put on a real device to talk to a Linux kernel.
//!
//! [`Connection`] is one end; [`Config`] is everything in which stacks differ. Positions inside are
//! `u64` and never wrap; a [`Segment`] carries 32-bit sequence numbers, options and a payload length,
//! and [`wire`] turns it into the bytes of an IP packet and back.

pub mod cc;
pub mod config;
mod connection;
mod endpoint;
mod information;
mod intervals;
pub mod pattern;
pub mod receiver;
mod rtt;
mod scoreboard;
mod segment;
mod sender;
mod seq;
pub mod wire;

pub use config::Config;
pub use connection::{CloseReason, Connection, State, Stats};
pub use endpoint::Endpoint;
pub use information::{INFORMATION, InformationField};
pub use intervals::IntervalSet;
pub use receiver::Receiver;
pub use rtt::RttEstimator;
pub use scoreboard::Tally;
pub use segment::{Ecn, Flags, HEADERS, MAX_MSS, SackBlock, SackBlocks, Segment, TIMESTAMPS, Timestamps};
pub use sender::{SendLimit, SendMemory, SendStats, Sender};
pub use seq::Seq;
