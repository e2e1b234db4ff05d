//! Predictions and simulations of whole experiments.
//!
//! One program: to compile and link one for each file takes longer than all of them run.

#[path = "../common/mod.rs"]
mod common;

mod granted;
mod lossy;
mod predictions;
mod radio;
mod radius;
mod recording;
mod streams;
mod triangle;
