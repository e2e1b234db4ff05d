//! Real sockets.
//!
//! One program for all tests of the crate: linking one takes as long as compiling them.

mod datagrams;
mod loopback;
