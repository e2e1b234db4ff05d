//! The command, as a user meets it.
//!
//! One program for all tests of the crate: linking one takes as long as compiling them.

#[cfg(target_os = "linux")]
mod support;

mod architecture;
mod bpf;
mod browser;
mod command;
mod diagnose;
#[cfg(target_os = "linux")]
mod diagnose_live;
mod docs;
mod driver;
mod emulate;
mod exec;
mod explain;
mod explicit_rate;
mod files;
mod hosts;
mod import;
mod limits;
mod measure;
mod progress;
mod qos;
mod report;
mod router;
mod script;
mod shell;
mod sweep;
mod virtual_time;
