//! What `farpath shell` is told.

use super::ProgramClockArgs;
use super::source::{IN_PLACE_OF_FILE, new_path, parse_loss};
use clap::Args;
use farpath_experiment::{ListeningPort, Override};
use farpath_units::{Duration, Probability, Rate};
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct ShellArgs {
    /// Path: an experiment file, or the name of an experiment or of a ready-made path (see `farpath paths`)
    #[arg(value_name = "PATH")]
    pub file: Option<PathBuf>,
    /// Propagation each way, such as `300 ms`
    #[arg(long, help_heading = IN_PLACE_OF_FILE, value_name = "TIME", group = "length", requires = "rate", conflicts_with = "file")]
    pub delay: Option<Duration>,
    /// The same as a round trip: twice the propagation each way
    #[arg(long, help_heading = IN_PLACE_OF_FILE, value_name = "TIME", group = "length", requires = "rate", conflicts_with = "file")]
    pub rtt: Option<Duration>,
    /// Link rate both ways, such as `10 Mbit/s`; the queue before it holds one bandwidth-delay product
    #[arg(long, help_heading = IN_PLACE_OF_FILE, value_name = "RATE", requires = "length", conflicts_with = "file")]
    pub rate: Option<Rate>,
    /// Independent loss per packet, each way [default: 0 %]
    #[arg(long, help_heading = IN_PLACE_OF_FILE, value_name = "SHARE", value_parser = parse_loss, requires = "rate")]
    pub loss: Option<Probability>,
    /// Write the path as an experiment file, which must be new
    #[arg(long, help_heading = IN_PLACE_OF_FILE, value_name = "FILE", requires = "rate", conflicts_with = "file", value_parser = new_path())]
    pub save: Option<PathBuf>,
    /// Change a value of the file, such as `path.loss=1%`; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<Override>,
    /// Seed of what the path draws: the packet of the same number meets the same fate [default: the file's]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Command that runs on the far host, by a shell: started first, ended last
    #[arg(long, value_name = "COMMAND")]
    pub far: Option<OsString>,
    /// Start the near command when the far host listens at this TCP port, or UDP port such as `4433/udp`
    #[arg(long, value_name = "PORT")]
    pub far_port: Option<ListeningPort>,
    /// Put this machine's own network behind the path, with its name servers: real time, root
    #[arg(long, conflicts_with_all = ["far", "far_port"])]
    pub uplink: bool,
    /// Configure both hosts' kernels like the experiment's stacks, in place of this kernel's defaults
    #[arg(long)]
    pub like_stacks: bool,
    #[command(flatten)]
    pub clock: ProgramClockArgs,
    /// Write all packets to this file, which must be new, as pcapng
    #[arg(long, value_name = "FILE", value_parser = new_path())]
    pub capture: Option<PathBuf>,
    /// Say nothing at the end of what the path did
    #[arg(long, short)]
    pub quiet: bool,
    /// Command that runs on the near host, and its arguments [default: your shell]
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub struct ExecArgs {
    /// Experiment file with `[[program]]`
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Change a value of the file, such as `path.loss=1%`; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<Override>,
    /// Number of runs of each point, with the file's seed and those that follow [default: the file's]
    #[arg(long, value_name = "N")]
    pub seeds: Option<u64>,
    #[command(flatten)]
    pub clock: ProgramClockArgs,
    /// Configure both hosts' kernels like the experiment's stacks, in place of this kernel's defaults
    #[arg(long)]
    pub like_stacks: bool,
    /// Keep results in this folder, which must be new or empty: tables, a report, runs.jsonl, and what the programs print
    #[arg(long, value_name = "DIR", value_parser = new_path())]
    pub out: Option<PathBuf>,
    /// Write all packets of each run as pcapng beside what its programs print
    #[arg(long, requires = "out")]
    pub capture: bool,
    /// Print JSON, one run a line
    #[arg(long)]
    pub json: bool,
}
