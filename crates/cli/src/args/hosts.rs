//! What `farpath hosts` is told.

use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct HostsArgs {
    #[command(subcommand)]
    pub command: HostsCommand,
}

#[derive(Debug, Subcommand)]
pub enum HostsCommand {
    /// Make a host that ships as sources: lwip or slirp, in seconds
    ///
    /// lwIP's sources are Debian's, fetched by apt into a folder that is gone again, or those of a folder; libslirp is Debian's package
    /// `libslirp-dev`. Both take a C compiler.
    Build(HostsBuildArgs),
    /// List the TCP implementations that an end can have: `sender.implementation` of an experiment
    List(HostsListArgs),
}

#[derive(Debug, Args)]
pub struct HostsBuildArgs {
    /// lwip or slirp
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Folder with lwIP's sources, which is only read, in place of Debian's
    #[arg(long, value_name = "DIR")]
    pub source: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct HostsListArgs {
    /// Print JSON, one host a line
    #[arg(long)]
    pub json: bool,
}
