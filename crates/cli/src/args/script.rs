//! What `farpath script` is told.

use super::source::new_path;
use clap::{Args, ValueEnum};
use farpath_units::Duration;
use std::path::PathBuf;

/// What scripts are played on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ScriptEngine {
    /// Simulated stacks
    Simulate,
    /// A Linux kernel
    Emulate,
    /// Simulated stacks, and a Linux kernel beside them
    Both,
}

/// An end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ScriptEnd {
    /// The one that sent more data
    Sender,
    /// The other one
    Receiver,
}

#[derive(Debug, Clone, Args)]
pub struct ScriptArgs {
    /// Scripts in packetdrill's language, or folders of them (`*.pkt`)
    #[arg(value_name = "FILE|DIR", required_unless_present = "from")]
    pub files: Vec<PathBuf>,
    /// Write the script that replays what one end of a connection saw, and play none: a capture (pcap, pcapng; IPv4), or a results
    /// folder, whose run is made again
    #[arg(long, value_name = "CAPTURE|RUN", conflicts_with = "files")]
    pub from: Option<PathBuf>,
    /// With `--from RUN`: the point of the sweep, from 0 [default: the first one]
    #[arg(long, value_name = "N", requires = "from")]
    pub point: Option<u64>,
    /// With `--from RUN`: the seed [default: the first one]
    #[arg(long, value_name = "N", requires = "from")]
    pub seed: Option<u64>,
    /// With `--from`: the connection, counted from 1 by first packets
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..), requires = "from")]
    pub flow: u32,
    /// With `--from`: the end that sent more data, or the other one
    #[arg(long, value_enum, default_value = "sender", requires = "from")]
    pub end: ScriptEnd,
    /// With `--from`: so many packets at the most
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=5000), requires = "from")]
    pub packets: u32,
    /// Play them against this simulated stack; several are compared in one table (`farpath stacks` lists them)
    #[arg(long, value_name = "NAME", default_value = "linux-6")]
    pub stack: Vec<String>,
    /// Play them on an engine: simulated stacks, or a Linux kernel's TCP (`emulate`); with `--from RUN`: whose run, where it has both
    #[arg(long, value_enum, default_value = "simulate")]
    pub engine: ScriptEngine,
    /// With `emulate`: on the running kernel in real time, in a network namespace, or on a user-mode kernel whose clock jumps over waits
    #[arg(long, value_enum, default_value = "virtual")]
    pub clock: super::ClockName,
    /// Play them against a stack in user space behind this TUN device, in real time: its packets, and nothing of its program
    #[arg(long, value_name = "DEVICE", conflicts_with_all = ["stack", "engine", "kernel", "repeat"])]
    pub tun: Option<String>,
    /// With `--tun`: run this command where a script calls `connect()`, and end it with the script
    #[arg(long, value_name = "COMMAND", requires = "tun")]
    pub connect: Option<String>,
    /// The user-mode kernel, as `farpath kernel list` names it [default: the first one]
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,
    /// With `emulate`: play each script so often, until it does not pass
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub repeat: u32,
    /// With `emulate`: give a guest up after so much real time
    #[arg(long, alias = "patience", value_name = "TIME", default_value = "600 s")]
    pub give_up_after: Duration,
    /// Let times be off by so much [default: what the script says, else 4 ms]
    #[arg(long, value_name = "TIME")]
    pub tolerance: Option<Duration>,
    /// Write each script that fails anew, with what came in place of what it expected, for review
    #[arg(long)]
    pub update: bool,
    /// Print JSON: an object for each script and stack, one a line
    #[arg(long, conflicts_with = "tap")]
    pub json: bool,
    /// Print TAP, as Linux's kselftest does
    #[arg(long)]
    pub tap: bool,
    /// Write a JUnit report into this file too
    #[arg(long, value_name = "FILE", value_parser = new_path())]
    pub junit: Option<PathBuf>,
}
