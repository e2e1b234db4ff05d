//! What `farpath import` is told.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct ImportArgs {
    #[command(subcommand)]
    pub command: ImportCommand,
}

#[derive(Debug, Subcommand)]
pub enum ImportCommand {
    /// `tc` of Linux: netem, tbf, pfifo, bfifo, police
    Tc {
        /// Which packets they are about
        #[arg(long, value_enum, default_value_t = ImportWay::Forward)]
        direction: ImportWay,
        #[command(flatten)]
        text: ImportText,
    },
    /// mahimahi's shells: mm-delay, mm-loss, mm-link
    Mahimahi(ImportText),
}

#[derive(Debug, Args)]
pub struct ImportText {
    /// Command lines, in quotes
    #[arg(value_name = "COMMAND", required = true)]
    pub commands: Vec<String>,
    /// Write the path into this file [default: print it]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ImportWay {
    /// The data sender's
    Forward,
    /// The data receiver's
    Reverse,
    /// Those of both ends
    Both,
}
