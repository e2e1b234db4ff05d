//! Terminal tables, HTML reports, claims of papers.
//!
//! One program for all tests of the crate: linking one takes as long as compiling them.

mod common;

mod cbr;
mod explicit_rate;
mod high_ber;
mod html;
mod papers;
mod radius;
mod ricochet;
mod terminal;
mod verdicts;
