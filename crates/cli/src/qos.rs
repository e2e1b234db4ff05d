//! `farpath explicit-rate qos`: what explicit-rate signalling says, field by field and from end to end, and the bytes that say it.

mod encode;
pub mod error;

use crate::args::{QosArgs, QosCommand, QosDecodeArgs, QosExchangeArgs};
use crate::error::CliError;
use crate::qos::error::QosError;
use crate::{Ending, output, source};
use farpath_engine::{provenance, simulate};
use farpath_experiment::Override;
use farpath_report::sequence_diagram::{SequenceDiagram, lanes};
use farpath_tia1039::advice::ScopedOption;
use farpath_tia1039::{
    Carrier, DecodeError, FieldDescription, HopByHop, Message, QosPacket, RateUnit, STRUCTURE_LEN, Structure,
    Structures, describe_hop_by_hop, describe_v4,
};
use farpath_units::Rate;
use serde_json::{Value, json};

/// `farpath explicit-rate qos`
pub fn qos(args: &QosArgs) -> Result<Ending, CliError> {
    match &args.command {
        QosCommand::Decode(args) => {
            let shown = decode(&bytes(&args.hex.join(" "))?, args)?;
            output::print(&if args.json { shown.json().to_string() } else { shown.text() })?;
        }
        QosCommand::Encode(args) => output::print(&encode::encode(args))?,
        QosCommand::Exchange(args) => return exchange(args),
    }
    Ok(Ending::Done)
}

/// Simulates one run, and draws its opening.
fn exchange(args: &QosExchangeArgs) -> Result<Ending, CliError> {
    let recorded = "output.segments=true".parse::<Override>().expect("a key and a value");
    let experiment = source::of_file(&args.file, &args.set)?.only(args.point, &[recorded])?;
    let point = &experiment.point(0);
    let run = simulate(point, experiment.seed, provenance(&experiment, point))
        .map_err(|source| CliError::Engine { file: args.file.clone(), source: source.into() })?;
    let sequence_diagram = SequenceDiagram::opening(&run, &lanes(&point.scenario));
    output::print(&sequence_diagram.map_err(QosError::Exchange)?.text())?;
    Ok(Ending::Done)
}

/// Hexadecimal digits, with spaces, colons and a `0x` in between.
fn bytes(text: &str) -> Result<Vec<u8>, QosError> {
    let plain = text.replace("0x", "  ");
    let mut digits = Vec::with_capacity(plain.len());
    for (at, found) in plain.chars().enumerate() {
        match found.to_digit(16) {
            Some(digit) => digits.push(digit as u8),
            None if found.is_whitespace() || matches!(found, ':' | '-' | '|') => {}
            None => return Err(QosError::Digit { found, at: at + 1 }),
        }
    }
    let (pairs, rest) = digits.as_chunks::<2>();
    if rest.is_empty() {
        Ok(pairs.iter().map(|[high, low]| high << 4 | low).collect())
    } else {
        Err(QosError::HalfByte(digits.len()))
    }
}

/// What was found.
enum Shown {
    Structures { what: String, form: &'static str, packet: Option<Box<QosPacket>>, shown: Described },
    Advice(ScopedOption),
}

struct Described {
    structures: Structures,
    fields: Vec<FieldDescription>,
    unit: RateUnit,
}

fn decode(bytes: &[u8], args: &QosDecodeArgs) -> Result<Shown, QosError> {
    let unit = args.unit.into();
    let v4 = |bytes: &[u8]| -> Result<Described, DecodeError> {
        let structures = Structures::decode_v4(bytes)?;
        Ok(Described { structures, fields: describe_v4(bytes, unit)?, unit })
    };
    let v6 = |bytes: &[u8]| -> Result<Described, DecodeError> {
        let structures = HopByHop::decode(bytes)?.structures;
        Ok(Described { structures, fields: describe_hop_by_hop(bytes, unit)?, unit })
    };
    match bytes {
        [253 | 254, ..] if bytes.len() == 6 => {
            Ok(Shown::Advice(ScopedOption::decode(bytes).map_err(QosError::Advice)?))
        }
        // An option of our types and length at its place; as a structure of IPv4 it would name a requester before a move.
        [_, 1 | 3, 0x20 | 0x3e, ..] if matches!(bytes.len(), 16 | 32) => {
            let shown = v6(bytes).map_err(QosError::HopByHop)?;
            let what = format!("IPv6 hop-by-hop header, {}", counted(&shown.structures));
            Ok(Shown::Structures { what, form: "ipv6-hop-by-hop", packet: None, shown })
        }
        _ if states_its_length(bytes) || bytes.len() > 2 * STRUCTURE_LEN => {
            let packet = QosPacket::decode(bytes).map_err(QosError::Packet)?;
            let place = &bytes[packet.place.clone()];
            let mut shown = match packet.structures {
                None => return Err(QosError::Nothing(packet.dscp)),
                Some(_) if packet.carrier == Carrier::HopByHop => v6(place).map_err(QosError::HopByHop)?,
                Some(_) => v4(place).map_err(QosError::Structure)?,
            };
            shown.fields.iter_mut().for_each(|field| field.byte += packet.place.start);
            let what = packet_line(&packet, &shown.structures);
            Ok(Shown::Structures { what, form: "ip-packet", packet: Some(Box::new(packet)), shown })
        }
        _ if matches!(bytes.len(), 16 | 32) => {
            let shown = v4(bytes).map_err(QosError::Structure)?;
            let what = format!("IPv4, {}", counted(&shown.structures));
            Ok(Shown::Structures { what, form: "ipv4", packet: None, shown })
        }
        _ => Err(QosError::Length(bytes.len())),
    }
}

/// Whether it is as long as it says if it is an IP packet.
fn states_its_length(bytes: &[u8]) -> bool {
    let Some(&[first, _, third, fourth, fifth, sixth]) = bytes.first_chunk::<6>() else { return false };
    match first >> 4 {
        4 => usize::from(u16::from_be_bytes([third, fourth])) == bytes.len(),
        6 => usize::from(u16::from_be_bytes([fifth, sixth])) + 40 == bytes.len(),
        _ => false,
    }
}

fn counted(structures: &Structures) -> &'static str {
    if structures.count() == 1 { "one QoS Structure" } else { "two QoS Structures" }
}

fn protocol(packet: &QosPacket) -> &'static str {
    if packet.protocol == 6 { "TCP" } else { "UDP" }
}

fn packet_line(packet: &QosPacket, structures: &Structures) -> String {
    let QosPacket { source, destination, dscp, mark, place, .. } = packet;
    let version = if source.is_ipv4() { "IPv4" } else { "IPv6" };
    let carrier = match packet.carrier {
        Carrier::Payload => "the payload",
        Carrier::HopByHop => "the hop-by-hop options",
    };
    format!(
        "{version} packet, {} {source} to {destination}, DSCP {dscp} ({}), {} in {carrier}, bytes {} to {}",
        protocol(packet),
        mark.name(),
        counted(structures),
        place.start,
        place.end - 1
    )
}

/// What a structure says, in a line.
fn summary(structure: &Structure, unit: RateUnit) -> String {
    let rate =
        |word| Rate::from_bit_per_s(unit.decode(word)).map_or("no rate".to_owned(), |rate| rate.to_string());
    let mut rates = Vec::new();
    if structure.rate_type.has_guaranteed() {
        let kind =
            if structure.rate_type == farpath_tia1039::RateType::Maximum { "Maximum" } else { "Guaranteed" };
        rates.push(format!("{kind} Rate {}", rate(structure.guaranteed)));
    }
    if structure.rate_type.has_available() {
        rates.push(format!("Available Rate {}", rate(structure.available)));
    }
    let seen = match (structure.message, structure.mark) {
        (Message::Response, 0) => ", not marked by a router, or of IPv6, where a response shows no mark",
        (message, 0) if message.asks() => ", not marked by a router yet",
        (_, 0) => "",
        _ => ", marked by a router",
    };
    format!("{}: {}{seen}", structure.message.name(), rates.join(" and "))
}

impl Shown {
    fn text(&self) -> String {
        match self {
            Shown::Advice(option) => format!(
                "SCONE TCP option: throughput advice, {}\nA ceiling for applications over {}; it grants nothing.",
                option.advice,
                farpath_tia1039::advice::MONITORING_PERIOD
            ),
            Shown::Structures { what, shown, .. } => {
                let mut lines = vec![what.clone()];
                lines.extend(shown.structures.iter().map(|structure| summary(structure, shown.unit)));
                lines.push(String::new());
                lines.extend(table(&shown.fields));
                lines.join("\n")
            }
        }
    }

    fn json(&self) -> Value {
        match self {
            Shown::Advice(option) => json!({
                "form": "scone-tcp-option",
                "advice_bit_per_s": option.advice.bit_per_s(),
                "reserved": option.reserved,
            }),
            Shown::Structures { form, packet, shown, .. } => json!({
                "form": form,
                "packet": packet.as_ref().map(|packet| json!({
                    "source": packet.source.to_string(),
                    "destination": packet.destination.to_string(),
                    "protocol": protocol(packet),
                    "flow_label": packet.flow_label,
                    "dscp": packet.dscp,
                    "mark": packet.mark.name(),
                })),
                "unit": shown.unit.name(),
                "structures": shown.structures.iter().map(|one| structure_json(one, shown.unit)).collect::<Vec<_>>(),
                "fields": shown.fields.iter().map(field_json).collect::<Vec<_>>(),
            }),
        }
    }
}

fn structure_json(structure: &Structure, unit: RateUnit) -> Value {
    json!({
        "message": structure.message.name(),
        "rate_type": structure.rate_type.name(),
        "available_bit_per_s": unit.decode(structure.available),
        "guaranteed_bit_per_s": unit.decode(structure.guaranteed),
        "preemption_priority": structure.preemption.level(),
        "delay_priority": structure.delay.level(),
        "charging": structure.charging.name(),
        "burst_tolerance_ns": structure.burst.time().as_nanos(),
        "version": structure.version as u16,
        "mark": structure.mark,
    })
}

fn field_json(field: &FieldDescription) -> Value {
    let FieldDescription { byte, bits, name, raw, value, meaning } = field;
    json!({"byte": byte, "bits": bits, "name": name, "raw": raw, "value": value, "meaning": meaning})
}

/// One line a field, in columns.
fn table(fields: &[FieldDescription]) -> Vec<String> {
    let head = ["byte", "bits", "field", "hex", "value", "meaning"].map(str::to_owned);
    let row = |field: &FieldDescription| {
        let FieldDescription { byte, bits, name, raw, value, meaning } = field;
        [byte.to_string(), bits.to_string(), (*name).to_owned(), raw.clone(), value.clone(), meaning.clone()]
    };
    let rows: Vec<[String; 6]> = core::iter::once(head).chain(fields.iter().map(row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 6] = core::array::from_fn(width);
    let line = |[byte, bits, name, raw, value, meaning]: &[String; 6]| {
        let [byte_width, bits_width, name_width, raw_width, value_width, _] = widths;
        let line = format!(
            "{byte:>byte_width$}  {bits:>bits_width$}  {name:name_width$}  {raw:raw_width$}  {value:value_width$}  {meaning}"
        );
        line.trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}
