//! Measuring between a client and its responder.
//!
//! One program for all tests of the crate: linking one takes as long as compiling them.

mod common;
#[path = "common/path.rs"]
mod path;

mod bounds;
mod estimates;
mod hostile;
mod requests;
mod transfers;
mod trust;
