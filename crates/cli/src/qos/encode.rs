//! `farpath qos encode`: a QoS Structure from what it is to say.

use super::QosUnit;
use clap::{Args, ValueEnum};
use data_encoding::HEXLOWER;
use farpath_tia1039::{
    BurstTolerance, Charging, HopByHop, Message, OptionType, Priority, QosVersion, RateType, RateUnit,
    RateWord, Rounding, STRUCTURE_LEN, Source, Structure, Structures,
};
use farpath_units::Rate;
use std::net::SocketAddrV4;

/// TCP, as IPv6 numbers what follows a header.
const TCP: u8 = 6;

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

/// The bytes in hexadecimal, field by field.
pub fn encode(args: &QosEncodeArgs) -> String {
    let structure = structure(args);
    let mut buffer = [0; 2 * STRUCTURE_LEN];
    let (len, fields): (usize, &[usize]) = if args.ipv6 {
        let header = HopByHop {
            next_header: TCP,
            option_type: OptionType::default(),
            structures: Structures::one(structure),
        };
        (header.encode(&mut buffer), &[1, 1, 1, 1, 2, 2, 1, 1, 1, 1, 2, 2])
    } else {
        (Structures::one(structure).encode_v4(&mut buffer), &[4, 2, 2, 1, 1, 1, 1, 2, 2])
    };
    let mut rest = &buffer[..len];
    let mut words = Vec::new();
    for &field in fields {
        let (bytes, after) = rest.split_at(field);
        words.push(HEXLOWER.encode(bytes));
        rest = after;
    }
    words.join(" ")
}

fn structure(args: &QosEncodeArgs) -> Structure {
    let message = match args.message {
        QosMessage::Forward => Message::Forward,
        QosMessage::Request => Message::Request,
        QosMessage::Response => Message::Response,
        QosMessage::Confirmation => Message::Confirmation,
        QosMessage::MissedStart => Message::MissedStart,
        QosMessage::Renegotiate => Message::Renegotiate,
        QosMessage::ResendStart => Message::ResendStart,
        QosMessage::Close => Message::Close,
    };
    let rate_type = match args.rate_type {
        QosRateType::Available => RateType::Available,
        QosRateType::Composite => RateType::Composite,
        QosRateType::Maximum => RateType::Maximum,
        QosRateType::Guaranteed => RateType::Guaranteed,
    };
    let unit = RateUnit::from(args.unit);
    // Who asks rounds up, who gives rounds down.
    let rounding = if message.asks() && !args.marked { Rounding::Up } else { Rounding::Down };
    let word =
        |rate: Option<Rate>| rate.map_or(RateWord::ZERO, |rate| unit.encode(rate.bit_per_s(), rounding));
    let level = |level| Priority::new(level).expect("checked to be below 64");
    Structure {
        message,
        rate_type,
        available: word(args.available),
        guaranteed: word(args.guaranteed),
        preemption: level(args.preemption),
        delay: level(args.delay),
        charging: if args.reverse_charging { Charging::Reverse } else { Charging::Forward },
        burst: BurstTolerance::new(args.burst).expect("checked to be below 16"),
        version: QosVersion::Marking,
        mark: u8::from(args.marked),
        source: match (args.source, args.ipv6) {
            (Some(source), _) => Source::V4 { address: *source.ip(), port: source.port() },
            (None, true) => Source::V6 { flow: 0 },
            (None, false) => Structure::default().source,
        },
    }
}
