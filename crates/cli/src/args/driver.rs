//! What `farpath explicit-rate driver` and `farpath explicit-rate router` are told.

use clap::{Args, Subcommand, ValueEnum};
use farpath_units::{Bytes, Duration, Probability, Rate};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct DriverArgs {
    #[command(subcommand)]
    pub command: DriverCommand,
}

#[derive(Debug, Subcommand)]
pub enum DriverCommand {
    /// Attach it to devices: sockets can ask for a rate
    ///
    /// A socket asks that has the congestion control `farpath_erate` (the socket option TCP_CONGESTION), or whose program is
    /// in a control group of --cgroup. Where nobody on the path grants a rate, it goes on with the system's. Nothing changes for any
    /// other socket. It stays until `farpath explicit-rate driver detach`, which undoes all of it.
    Attach(AttachArgs),
    /// Take it off all devices, and leave nothing of it
    ///
    /// Connections that have a grant go on with plain TCP.
    Detach,
    /// Say where it is attached, what was granted and what was counted
    Status(StatusArgs),
}

#[derive(Debug, Args)]
pub struct AttachArgs {
    /// Network devices, by name
    #[arg(value_name = "DEVICE", required = true)]
    pub devices: Vec<String>,
    /// The most that is asked for, of IP packets [default: what the device says that it is capable of]
    #[arg(long, value_name = "RATE")]
    pub rate: Option<Rate>,
    /// Have all programs of this control group (version 2) ask, which do not know of it: what connects or listens from now
    /// on; may be repeated. /sys/fs/cgroup, where that is of version 2, is every program
    #[arg(long, value_name = "DIR")]
    pub cgroup: Vec<PathBuf>,
    /// What kind of rate is asked for: one that is fairly shared, or one that is kept for a connection, all of it or none, while it
    /// sends and where a router has room for guarantees [default: available]
    #[arg(long = "type", value_name = "TYPE")]
    pub rate_type: Option<DriverRateType>,
    /// Preemption priority: who of two loses a guarantee last [default: 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..64))]
    pub preemption: Option<u8>,
    /// Delay priority: whose packets of a guarantee wait least [default: 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..64))]
    pub delay: Option<u8>,
    /// So many routers must have marked a grant: 2 asks for both edges of a path. Routers and the other host have to count them (version 2);
    /// over IPv6 what is counted is lost, and with more than 1 nothing is granted [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..16))]
    pub routers: Option<u8>,
    /// Congestion control of sockets that have given a grant up [default: bbr where there is one, else the system's]
    #[arg(long, value_name = "NAME")]
    pub fallback: Option<String>,
    /// Loss above which a grant is given up [default: 10 %]
    #[arg(long, value_name = "SHARE")]
    pub loss_limit: Option<Probability>,
    /// A queue above which a grant is given up, where packets are lost too [default: 25 ms]
    #[arg(long, value_name = "TIME")]
    pub queue_limit: Option<Duration>,
    /// Send and receive buffers of sockets with a grant [default: what the rate needs while losses up to --loss-limit are
    /// repaired, where TCP makes less of them and the program has not set them]; not more than net.core.wmem_max and rmem_max
    #[arg(long, value_name = "SIZE")]
    pub buffer: Option<Bytes>,
    /// Announce all that a socket has set aside to receive into right behind its SYN/ACK, which can say 64 kB: saves a peer with a
    /// grant a round trip, where net.ipv4.tcp_rmem or the program has set more aside before it listens, and Linux is 6.11 or later
    #[arg(long)]
    pub early_window: bool,
}

/// TP of a request. A composite one has two rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DriverRateType {
    /// As much as there is, fairly shared
    Available,
    /// Guaranteed while it is used
    Maximum,
    /// Guaranteed until the connection is over
    Guaranteed,
}

#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct RouterArgs {
    /// The configuration
    #[arg(value_name = "FILE")]
    pub config: PathBuf,
    /// Only say whether the configuration can be read
    #[arg(long)]
    pub check: bool,
}
