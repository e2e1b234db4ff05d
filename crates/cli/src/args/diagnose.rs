//! What `farpath diagnose` is told.

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct DiagnoseArgs {
    /// Capture, as pcap or pcapng, may be compressed by gzip or zstd; `-` is stdin
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Take the packets of this interface of the capture alone, counted from 0 [default: of each apart]
    #[arg(long, value_name = "N")]
    pub interface: Option<u32>,
    /// Tell more of so many connections, those with the most data first
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub connections: usize,
    /// Write the connection with the most data as an experiment that behaves as it did; it is simulated, and how near it comes is told
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub as_experiment: Option<PathBuf>,
    /// Print JSON: an object for each of these connections, one a line
    #[arg(long)]
    pub json: bool,
}
