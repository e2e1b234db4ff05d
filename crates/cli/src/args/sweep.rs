//! What `farpath sweep` is told.

use super::source::new_path;
use super::{ClockArgs, EngineName, SourceArgs};
use clap::{Args, Subcommand};
use farpath_sweep::Precision;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct SweepArgs {
    #[command(subcommand)]
    pub command: Option<SweepCommand>,
    #[command(flatten)]
    pub run: SweepRunArgs,
}

#[derive(Debug, Subcommand)]
pub enum SweepCommand {
    /// Say how much of a sweep is there
    Status(SweepFolderArgs),
    /// Write the table of points anew from the runs that are there, and print it
    Points(SweepFolderArgs),
    /// Remove runs that the sweep no longer asks for: of other points, engines and programs
    Gc(SweepGcArgs),
}

#[derive(Debug, Args)]
pub struct SweepRunArgs {
    #[command(flatten)]
    pub source: SourceArgs,
    /// Folder of the sweep: a new one, or one to go on with
    #[arg(long, value_name = "DIR", required = true, value_parser = new_path())]
    pub out: Option<PathBuf>,
    /// Engines, separated by commas: predict, simulate, emulate
    #[arg(long, value_name = "ENGINES", value_delimiter = ',', default_value = "simulate")]
    pub engine: Vec<EngineName>,
    #[command(flatten)]
    pub clock: ClockArgs,
    /// Add seeds to each point until half of the 95 % interval is no wider than this share of the mean, such as `5 %`
    #[arg(long, value_name = "SHARE")]
    pub until: Option<Precision>,
    /// Find by halving where along this swept key a statistic crosses the value of --crosses, and run nothing else
    #[arg(long, value_name = "KEY", requires = "crosses")]
    pub find: Option<String>,
    /// The value that --find looks for, such as `1 Mbit/s` or `60 s`
    #[arg(long, value_name = "VALUE", requires = "find")]
    pub crosses: Option<String>,
    /// The statistic that --until and --find are about, as --json names it
    #[arg(long, value_name = "NAME", default_value = "transfer_time_s")]
    pub of: String,
    /// The most seeds that --until gives a point
    #[arg(long, value_name = "N", requires = "until", default_value_t = 1000)]
    pub most: u64,
    /// Runs in a file, at the most; a file is also ended after 2 s of a thread
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..))]
    pub chunk: u32,
    /// Make the runs on a Dask cluster with this scheduler, such as `tcp://host:8786`: the Python package's command does
    #[arg(long, value_name = "ADDRESS")]
    pub cluster: Option<String>,
    /// Print JSON, one point and engine a line
    #[arg(long)]
    pub json: bool,
    /// Worker threads [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
}

#[derive(Debug, Args)]
pub struct SweepFolderArgs {
    /// Folder that `farpath sweep` wrote
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct SweepGcArgs {
    #[command(flatten)]
    pub folder: SweepFolderArgs,
    /// Say what would go, and remove nothing
    #[arg(long)]
    pub dry_run: bool,
}
