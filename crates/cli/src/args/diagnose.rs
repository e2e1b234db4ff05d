//! What `farpath diagnose` is told.

use super::source::{IN_PLACE_OF_FILE, new_path};
use clap::{ArgGroup, Args};
use farpath_units::Duration;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("source").required(true).args(["files", "pid", "dst"])))]
pub struct DiagnoseArgs {
    /// Capture, as pcap or pcapng, may be compressed by gzip or zstd; `-` is stdin. Two captures are of the two sides of a connection
    #[arg(value_name = "FILE", num_args = 1..=2)]
    pub files: Vec<PathBuf>,
    /// Watch the connections of this process, a line a second, until it ends: what its kernel counts, without a capture
    #[arg(long, help_heading = IN_PLACE_OF_FILE, value_name = "PID")]
    pub pid: Option<u32>,
    /// Watch this machine's connections to a host, or to one port of it, until they end
    #[arg(long, help_heading = IN_PLACE_OF_FILE, value_name = "HOST[:PORT]")]
    pub dst: Option<String>,
    /// With --pid or --dst: the time from one line to the next, 10 ms at the least
    #[arg(long, value_name = "TIME", default_value = "1 s", conflicts_with = "files")]
    pub every: Duration,
    /// With --pid or --dst: watch for so long at the most
    #[arg(long = "for", value_name = "TIME", conflicts_with = "files")]
    pub within: Option<Duration>,
    /// Take the packets of this interface of the capture alone, counted from 0 [default: of each apart]
    #[arg(long, value_name = "N", requires = "files")]
    pub interface: Option<u32>,
    /// What `ss -tin` printed on the sending host at the end of the transfer: its kernel's counters take the place of what the capture lets guess
    #[arg(long, value_name = "FILE", requires = "files")]
    pub ss: Option<PathBuf>,
    /// The same of a speed test by ndt7: the JSON file that its server keeps of a download, or what its client printed as JSON; may be compressed by gzip
    #[arg(long, value_name = "FILE", requires = "files", conflicts_with = "ss")]
    pub ndt: Option<PathBuf>,
    /// What `iperf3 --json` printed on the sending host: its congestion windows are told, and where they always had room, what held was the send buffer
    #[arg(long, value_name = "FILE", requires = "files")]
    pub iperf3: Option<PathBuf>,
    /// Tell more of so many connections, those with the most data first
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub connections: usize,
    /// Write the connection with the most data as an experiment that behaves as it did; it is simulated, and how near it comes is told
    #[arg(long, value_name = "FILE", requires = "files", conflicts_with = "json", value_parser = new_path())]
    pub as_experiment: Option<PathBuf>,
    /// Draw the connection with the most data into this file: the time-sequence graph with the limits behind it, and the tables
    #[arg(long, value_name = "FILE.html", requires = "files", value_parser = new_path())]
    pub report: Option<PathBuf>,
    /// Write tables into this folder, which must be new or empty, as Parquet: of every connection and its limits, and of the intervals of the one with the
    /// most data
    #[arg(long, value_name = "DIR", requires = "files", value_parser = new_path())]
    pub out: Option<PathBuf>,
    /// Write the capture to this file, which must be new, as pcapng with a comment on each frame before which new data of that connection waited
    #[arg(long, value_name = "FILE.pcapng", requires = "files", value_parser = new_path())]
    pub annotate: Option<PathBuf>,
    /// Print JSON: an object for each of these connections, one a line
    #[arg(long)]
    pub json: bool,
}

impl DiagnoseArgs {
    /// The flag, if any, for which the capture has to be read again.
    pub fn reads_again(&self) -> Option<&'static str> {
        let asked = [("--report", &self.report), ("--annotate", &self.annotate), ("--out", &self.out)];
        asked.into_iter().find(|(_, path)| path.is_some()).map(|(flag, _)| flag)
    }
}
