//! Experiment files: what is read, refused, changed and written back.
//!
//! One program for all tests of the crate: linking one takes as long as compiling them.

mod bases;
mod budget;
mod changes;
mod errors;
mod guide;
mod hosts;
mod kernel;
mod properties;
mod rewriting;
mod router;
mod shipped;
mod streams;
