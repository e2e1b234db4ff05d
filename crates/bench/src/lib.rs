//! Farpath against ns-3: the same transfers asked of both, for `make oracle` and `make bench`.
//!
//! A tool for development. ns-3 comes as its wheel from PyPI, which brings headers and libraries; a program of ours
//! ([`ns3`]) is compiled against them. What a [`case`] says becomes arguments for that program and an experiment for us.

pub mod case;
pub mod cause;
pub mod clock;
pub mod diagnose;
#[cfg(target_os = "linux")]
pub mod emulation;
pub mod figure;
pub mod gate;
pub mod grid;
pub mod ns3;
#[cfg(target_os = "linux")]
pub mod programs;
#[cfg(target_os = "linux")]
pub mod radius;
pub mod report;
pub mod rounds;
pub mod router;
pub mod scenarios;
pub mod script;
pub mod sweep;
pub mod trace;
pub mod transfers;
