//! What `farpath script` is told.

use clap::Args;
use farpath_units::Duration;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct ScriptArgs {
    /// Scripts in packetdrill's language, or folders of them (`*.pkt`)
    #[arg(value_name = "FILE|DIR", required = true)]
    pub files: Vec<PathBuf>,
    /// Play them against this simulated stack; several are compared in one table (`farpath stacks` lists them)
    #[arg(long, value_name = "NAME", default_value = "linux-6")]
    pub stack: Vec<String>,
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
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
}
