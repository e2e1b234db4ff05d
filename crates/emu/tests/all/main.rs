//! Hosts, and the loop that carries their packets: in memory, and in namespaces of the running kernel.
//!
//! One program for all tests of the crate: linking one takes as long as compiling them.

mod common;
#[path = "common/wire.rs"]
mod wire;

mod doctor;
mod interop;
mod kernel;
mod memory;
