//! Hosts of the running kernel, in namespaces of their own.
//!
//! One program: to compile and link one for each file takes longer than all of them run.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/wire.rs"]
mod wire;

mod chaos;
mod dress_kernel;
mod hosts;
mod interfaces;
mod malformed;
mod metrics;
