//! Path elements and paths of them.
//!
//! One program: to compile and link one for each file takes longer than all of them run.

mod common;

mod chain;
mod changing;
mod docs;
mod flow_router;
mod hops;
mod link;
mod loss;
mod over_time;
mod properties;
mod queues;
mod radio;
mod radio_cell;
mod radio_channels;
mod spec;
mod ties;
