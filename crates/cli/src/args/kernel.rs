//! What `farpath kernel` is told.

use clap::{Args, Subcommand};
use farpath_kernel::{DEFAULT_HZ, DEFAULT_LINUX};
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
    /// Release of Linux, of which Debian has a package of sources, such as linux-source-6.1; 6.1 and 6.12 were tried
    #[arg(long, value_name = "VERSION", default_value = DEFAULT_LINUX, value_parser = linux_version)]
    pub linux: String,
    /// Folder with the sources of a Linux kernel, which is only read, in place of Debian's
    #[arg(long, value_name = "DIR", conflicts_with = "linux")]
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

/// A release as packages name it.
fn linux_version(text: &str) -> Result<String, &'static str> {
    let number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    match text.split_once('.') {
        Some((major, minor)) if number(major) && number(minor) => Ok(text.to_owned()),
        _ => Err("expected a release such as `6.12`"),
    }
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
