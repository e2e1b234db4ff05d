//! The QoS Structure on the wire.
//!
//! One program for all tests of the crate: linking one takes as long as compiling them.

mod codec;
mod describe;
mod rewrite;
mod vectors;
