//! `farpath explicit-rate qos encode`: a QoS Structure from what it is to say.

use crate::args::{QosEncodeArgs, QosMessage, QosRateType};
use data_encoding::HEXLOWER;
use farpath_tia1039::{
    BurstTolerance, Charging, HopByHop, Message, OptionType, Priority, QosVersion, RateType, RateUnit,
    RateWord, Rounding, STRUCTURE_LEN, Source, Structure, Structures,
};
use farpath_units::Rate;

/// TCP, as IPv6 numbers what follows a header.
const TCP: u8 = 6;

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
