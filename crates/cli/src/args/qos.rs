//! What `farpath explicit-rate qos` is told.

use clap::{Args, Subcommand, ValueEnum};
use farpath_experiment::Override;
use farpath_tia1039::RateUnit;
use farpath_units::Rate;
use std::net::SocketAddrV4;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct QosArgs {
    #[command(subcommand)]
    pub command: QosCommand,
}

#[derive(Debug, Subcommand)]
pub enum QosCommand {
    /// Name each field of a QoS Structure, its value and what it means
    ///
    /// HEX is one structure (16 bytes) or two as the payload of an IPv4 packet, an IPv6 hop-by-hop header with them, a whole
    /// IP packet from its IP header on, or a SCONE TCP option. Which of these it is is seen by its bytes.
    Decode(QosDecodeArgs),
    /// Print the bytes of a QoS Structure, in hexadecimal, that `decode` reads
    Encode(QosEncodeArgs),
    /// Draw what the ends and the routers of an experiment say until the first data arrive
    ///
    /// One run is simulated: the first seed of one point, the first flow.
    Exchange(QosExchangeArgs),
}

#[derive(Debug, Args)]
pub struct QosExchangeArgs {
    /// An experiment file, or the name of one that ships
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Change a value of the file, such as `path.edge.rate=10 Mbit/s`; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<Override>,
    /// Which point of a sweep, from 0
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub point: usize,
}

#[derive(Debug, Args)]
pub struct QosDecodeArgs {
    /// Hexadecimal digits; spaces, colons and 0x may stand between bytes
    #[arg(value_name = "HEX", required = true)]
    pub hex: Vec<String>,
    /// What a rate counts: one unit for all nodes of a deployment, which no byte tells
    #[arg(long, value_name = "UNIT", default_value = "kbit/s")]
    pub unit: QosUnit,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Units of the 16-bit rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum QosUnit {
    /// 1000 bit/s of IP packets
    #[value(name = "kbit/s")]
    KbitPerS,
    /// 1 bit/s of IP packets
    #[value(name = "bit/s")]
    BitPerS,
    /// ATM cells, of 384 bits each
    #[value(name = "cells/s")]
    CellsPerS,
}

impl From<QosUnit> for RateUnit {
    fn from(unit: QosUnit) -> RateUnit {
        match unit {
            QosUnit::KbitPerS => RateUnit::KbitPerS,
            QosUnit::BitPerS => RateUnit::BitPerS,
            QosUnit::CellsPerS => RateUnit::CellsPerS,
        }
    }
}

#[derive(Debug, Args)]
pub struct QosEncodeArgs {
    /// What it says
    #[arg(long, value_name = "WHAT", default_value = "request")]
    pub message: QosMessage,
    /// The rate that is asked for or granted is one to be shared, a guaranteed one, both, or guaranteed while it is used
    #[arg(long = "type", value_name = "TYPE", default_value = "available")]
    pub rate_type: QosRateType,
    /// Available Rate (AR), such as `30 Mbit/s`
    #[arg(long, value_name = "RATE")]
    pub available: Option<Rate>,
    /// Guaranteed or Maximum Rate (GR)
    #[arg(long, value_name = "RATE")]
    pub guaranteed: Option<Rate>,
    /// Preemption priority
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u8).range(0..64))]
    pub preemption: u8,
    /// Delay priority
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u8).range(0..64))]
    pub delay: u8,
    /// Burst tolerance: 2^(-N-1) s
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u8).range(0..16))]
    pub burst: u8,
    /// The receiver pays
    #[arg(long)]
    pub reverse_charging: bool,
    /// A router has processed it
    #[arg(long)]
    pub marked: bool,
    /// Whom a response answers, or who a requester was before a move: an IPv4 address with its port
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "ipv6")]
    pub source: Option<SocketAddrV4>,
    /// As an IPv6 hop-by-hop header in front of TCP, in place of the payload of an IPv4 packet
    #[arg(long)]
    pub ipv6: bool,
    /// What a rate counts: one unit for all nodes of a deployment
    #[arg(long, value_name = "UNIT", default_value = "kbit/s")]
    pub unit: QosUnit,
}

/// CD.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum QosMessage {
    /// No action
    Forward,
    /// Of a SYN or SYN/ACK: rates are rounded up, in all others down
    Request,
    /// What came of it
    Response,
    /// What routers before the one that gave less can let go of
    Confirmation,
    /// A router has no record of the flow
    MissedStart,
    /// Asks again in mid-flow
    Renegotiate,
    /// Answers a missed start
    ResendStart,
    /// It is over
    Close,
}

/// TP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum QosRateType {
    /// AR, as much as there is, fairly shared
    Available,
    /// GR, and AR on top of it
    Composite,
    /// GR while it is used
    Maximum,
    /// GR until it is closed
    Guaranteed,
}
