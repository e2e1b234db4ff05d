//! What needs no privilege: hosts that lie in memory, and packets alone.
//!
//! One program: to compile and link one for each file takes longer than all of them run.

#[path = "../common/mod.rs"]
mod common;

mod dress;
mod emulator;
mod endpoint;
mod gso;
mod packet;
mod qos;
