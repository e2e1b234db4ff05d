//! The simulator on whole paths.
//!
//! One program: to compile and link one for each file takes longer than all of them run.

mod common;

mod application;
mod bbr;
mod bbr3;
mod budget;
mod conservation;
mod cost;
mod cubic;
mod determinism;
mod ecn;
mod exact;
mod explicit_rate;
mod explicit_rate_datagrams;
mod explicit_rate_shared;
mod golden;
mod many_flows;
mod ns3;
mod recovery;
mod statistics;
mod streams;
mod timers;
