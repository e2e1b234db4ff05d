//! What bounds a transfer, traps, remedies.
//!
//! One program for all tests of the crate: linking one takes as long as compiling them.

mod common;

mod advice;
mod budget;
mod effort;
mod theory;
mod traps;
