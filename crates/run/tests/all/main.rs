//! Results: tables, traces, summaries.
//!
//! One program for all tests of the crate: linking one takes as long as compiling them.

mod support;

mod commit;
mod results;
mod summary;
mod traces;
