//! Whole experiments: predicted, simulated, and on the running kernel.
//!
//! One program: to compile and link one for each file takes longer than all of them run.

mod common;

mod budget;
mod capture;
mod changing_paths;
mod datagrams_kernel;
mod delays;
mod granted;
mod lossy;
mod predictions;
mod radio;
mod radio_kernel;
mod radius;
mod radius_kernel;
mod recording;
mod streams;
mod triangle;
