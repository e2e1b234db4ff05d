//! What `farpath kernel` is told.

use clap::{Args, Subcommand};
use farpath_kernel::DEFAULT_HZ;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct KernelArgs {
    #[command(subcommand)]
    pub command: KernelCommand,
}

#[derive(Debug, Subcommand)]
pub enum KernelCommand {
    /// Make a kernel from Linux's sources: some four minutes of one core
    ///
    /// It is a user-mode kernel: a program without privileges, whose clock jumps over waits. The sources come from Debian's
    /// package, fetched and not installed, or from a folder. It takes make, a C compiler, bc, and flex and bison, which
    /// are fetched too where they are not installed. What is there already is not made again.
    Build(BuildArgs),
    /// List the kernels that were built; the first one is meant where an experiment names none
    List(ListArgs),
    /// Say where a kernel came from and how it is configured
    Info(InfoArgs),
}

#[derive(Debug, Args)]
pub struct BuildArgs {
    /// Ticks per second: 100, 250 or 1000. Timers of TCP go by them
    #[arg(long, value_name = "N", default_value_t = DEFAULT_HZ)]
    pub hz: u32,
    /// Folder with the sources of a Linux kernel, which is only read; none but 6.12 was tried [default: Debian's
    /// linux-source-6.12]
    #[arg(long, value_name = "DIR")]
    pub source: Option<PathBuf>,
    /// How it is called [default: its version and ticks, such as 6.12.117-hz250]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Compilers at once [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Make it also where it is there already
    #[arg(long)]
    pub again: bool,
}

#[derive(Debug, Args)]
pub struct ListArgs {
    /// Print JSON, one kernel a line
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct InfoArgs {
    /// As `farpath kernel list` names it [default: the first one]
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
