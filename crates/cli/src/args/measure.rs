//! What `farpath measure` and `farpath serve` are told.

use super::source::new_path;
use clap::Args;
use farpath_experiment::Override;
use farpath_units::{Bytes, Duration, ParseQuantityError, Rate};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct MeasureArgs {
    /// The peer, as HOST, HOST:PORT or [ADDRESS]:PORT; with --to, the experiment file, or the name of one that ships
    #[arg(value_name = "HOST|FILE")]
    pub what: String,
    /// The peer of an experiment
    #[arg(long, value_name = "HOST[:PORT]")]
    pub to: Option<String>,
    /// The key that both hosts have (see `farpath serve --key`)
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Use IPv4 alone
    #[arg(short = '4', conflicts_with = "v6")]
    pub v4: bool,
    /// Use IPv6 alone
    #[arg(short = '6')]
    pub v6: bool,
    /// Look at the path, and write what was found as an experiment file that `farpath run` takes
    #[arg(long, value_name = "FILE", conflicts_with_all = ["to", "out", "report"])]
    pub as_path: Option<PathBuf>,
    /// Size of the transfers of a measurement without a file [default: what the path moves in some seconds]
    #[arg(long, value_name = "SIZE", conflicts_with = "to", value_parser = parse_some)]
    pub size: Option<Bytes>,
    /// Datagrams that are sent back: the more, the surer is the share that is lost
    #[arg(long, value_name = "N", default_value_t = 1000, conflicts_with = "to")]
    #[arg(value_parser = clap::value_parser!(u32).range(10..=100_000))]
    pub echoes: u32,
    /// How far apart these are
    #[arg(long, value_name = "TIME", default_value = "5 ms", conflicts_with = "to")]
    pub interval: Duration,
    /// Runs per point, one after the other [default: as the file says]
    #[arg(long, value_name = "N", requires = "to")]
    pub seeds: Option<u64>,
    /// Change a value of the file; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "to")]
    pub set: Vec<Override>,
    /// Write the result tables into this folder, as Parquet, with traces, and a report of them as HTML
    #[arg(long, value_name = "DIR", value_parser = new_path())]
    pub out: Option<PathBuf>,
    /// Write a report with figures into this file: HTML that needs no network
    #[arg(long, value_name = "FILE", value_parser = new_path())]
    pub report: Option<PathBuf>,
    /// Print one row for each flow, in place of one for each point
    #[arg(long)]
    pub flows: bool,
    /// Print JSON, one object a line
    #[arg(long)]
    pub json: bool,
}

/// Before the path is measured for it.
fn parse_some(text: &str) -> Result<Bytes, String> {
    match text.parse() {
        Ok(Bytes::ZERO) => Err(format!("expected a size above zero, found `{text}`")),
        Ok(size) => Ok(size),
        Err(error) => Err(ParseQuantityError::to_string(&error)),
    }
}

#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Where to wait; may be repeated. `0.0.0.0` is every IPv4 address, `::` every IPv6 address [default: this host alone,
    /// 127.0.0.1 and ::1]
    #[arg(long, value_name = "ADDRESS[:PORT]", value_parser = parse_bind)]
    pub bind: Vec<(IpAddr, Option<u16>)>,
    /// Port, where --bind names none
    #[arg(long, value_name = "PORT", default_value_t = DEFAULT_PORT)]
    pub port: u16,
    /// Let in only who has the key in this file: 16 bytes at least
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Ports that data may take, TCP and UDP, where a firewall lets only some through: one for each flow at once
    /// [default: any that the kernel chooses]
    #[arg(long, value_name = "FIRST-LAST", value_parser = parse_ports)]
    pub data_ports: Option<(u16, u16)>,
    /// Clients at once; two from one address
    #[arg(long, value_name = "N", default_value_t = 4)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub max_clients: u32,
    /// How fast each flow of a client may send and is sent to, such as `100 Mbit/s` [default: as fast as it goes]
    #[arg(long, value_name = "RATE")]
    pub max_rate: Option<Rate>,
    /// What an address may send and be sent in an hour
    #[arg(long, value_name = "SIZE", default_value = "20 GB")]
    pub max_bytes: Bytes,
    /// How long a client may stay
    #[arg(long, value_name = "TIME", default_value = "1 h")]
    pub max_time: Duration,
}

/// Where `farpath serve` waits.
pub const DEFAULT_PORT: u16 = 5277;

/// The first of some ports and the last.
fn parse_ports(text: &str) -> Result<(u16, u16), String> {
    let ports =
        text.split_once('-').and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
    ports
        .filter(|(first, last)| 0 < *first && first <= last)
        .ok_or_else(|| "expected the first port and the last, such as `40000-40099`".to_owned())
}

/// An address, with a port or without.
fn parse_bind(text: &str) -> Result<(IpAddr, Option<u16>), String> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse() {
        return Ok((address, None));
    }
    match text.parse::<SocketAddr>() {
        Ok(address) => Ok((address.ip(), Some(address.port()))),
        Err(_) => {
            Err("expected an address of this host, such as `192.0.2.1`, `0.0.0.0:5277` or `[::]:5277`"
                .to_owned())
        }
    }
}
