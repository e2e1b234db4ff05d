//! The driver in the running kernel.
//!
//! One program for all tests of the crate: linking one takes as long as compiling them.

mod common;

mod attach;
mod exchange;
mod hostile;
mod objects;
