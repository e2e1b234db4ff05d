//! Each field of a structure in words.

use crate::{
    DecodeError, HopByHop, Message, RateType, RateUnit, RateWord, STRUCTURE_LEN, Source, Structure,
    Structures,
};
use farpath_units::Rate;

/// One field, as it lies in the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldDescription {
    /// Byte of the structure or header that it begins in.
    pub byte: usize,
    /// Its length in bits.
    pub bits: usize,
    /// Its name in the paper.
    pub name: &'static str,
    /// As it stands there, in hexadecimal.
    pub raw: String,
    /// Its value.
    pub value: String,
    /// What that means; empty where the value says it.
    pub meaning: String,
}

/// The fields of the structures that an IPv4 payload is, in their order.
///
/// # Errors
/// What is no structure.
pub fn describe_v4(payload: &[u8], unit: RateUnit) -> Result<Vec<FieldDescription>, DecodeError> {
    let structures = Structures::decode_v4(payload)?;
    let mut fields = Vec::new();
    for (number, structure) in structures.iter().enumerate() {
        let mut table = Table { bytes: payload, at: number * STRUCTURE_LEN, fields: &mut fields };
        let (address, port) = match structure.source {
            Source::V4 { address, port } => (address.to_string(), port.to_string()),
            Source::V6 { .. } => unreachable!("decoded as IPv4"),
        };
        let whose = whose_source(structure);
        table.push(0, 32, "Source Address", address, whose);
        table.common(4, structure, unit);
        table.version(12, structure);
        table.push(13, 4, "M", structure.mark.to_string(), mark_meaning(structure));
        table.push(14, 16, "Source Port", port, whose);
    }
    Ok(fields)
}

/// The fields of a hop-by-hop header, in their order.
///
/// # Errors
/// What is no structure.
pub fn describe_hop_by_hop(header: &[u8], unit: RateUnit) -> Result<Vec<FieldDescription>, DecodeError> {
    let decoded = HopByHop::decode(header)?;
    let mut fields = Vec::new();
    let mut table = Table { bytes: header, at: 0, fields: &mut fields };
    let next = match decoded.next_header {
        6 => "TCP",
        17 => "UDP",
        _ => "",
    };
    table.push(0, 8, "Next Header", decoded.next_header.to_string(), next);
    table.push(1, 8, "Hdr Ext Len", header[1].to_string(), format!("{} bytes in all", header.len()));
    for (structure, at) in decoded.structures.iter().zip([2, 18]) {
        if at == 18 {
            table.push(16, 16, "PadN", "0".to_owned(), "aligns the second option");
        }
        let meaning = "skip where unknown, may change on the way";
        table.push(at, 8, "Option Type", (decoded.option_type as u8).to_string(), meaning);
        table.push(at + 1, 8, "Option Length", header[at + 1].to_string(), "");
        table.common(at + 2, structure, unit);
        table.version(at + 10, structure);
        let flow = match structure.source {
            Source::V6 { flow } => flow.to_string(),
            Source::V4 { .. } => unreachable!("decoded as IPv6"),
        };
        if structure.message == Message::Response {
            table.push(at + 11, 20, "Flow Label", flow, "of the requester; it takes the place of M");
        } else {
            table.push(at + 11, 4, "M", structure.mark.to_string(), mark_meaning(structure));
            table.push(at + 12, 16, "Source Flow", flow, whose_source(structure));
        }
    }
    Ok(fields)
}

struct Table<'a> {
    bytes: &'a [u8],
    /// Where the structure begins.
    at: usize,
    fields: &'a mut Vec<FieldDescription>,
}

impl Table<'_> {
    /// A field that begins in byte `byte`; fields of four bits and odd lengths are cut out by [`Table::raw`].
    fn push(
        &mut self,
        byte: usize,
        bits: usize,
        name: &'static str,
        value: String,
        meaning: impl Into<String>,
    ) {
        let byte = self.at + byte;
        let raw = self.raw(byte, bits, name);
        self.fields.push(FieldDescription { byte, bits, name, raw, value, meaning: meaning.into() });
    }

    /// The bits as hexadecimal digits. CD and CH are the high halves of their bytes, TP, BT and M the low ones; the
    /// version begins with its byte, the flow label in the low half of its own.
    fn raw(&self, byte: usize, bits: usize, name: &str) -> String {
        let hex: String = self.bytes[byte..].iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        let from = usize::from(matches!(name, "TP" | "BT" | "M" | "Flow Label"));
        hex[from..from + bits / 4].to_owned()
    }

    /// AR to BT.
    fn common(&mut self, byte: usize, structure: &Structure, unit: RateUnit) {
        let rate = |word: RateWord, counts: bool| {
            let (exponent, mantissa) = (word.exponent(), word.mantissa());
            let meaning = match (word.is_not_zero(), counts) {
                (false, _) => "none".to_owned(),
                (true, true) => format!("2^{exponent} · (1 + {mantissa}/512) · {} bit/s", unit.bits()),
                (true, false) => "not of this type of rate".to_owned(),
            };
            let value =
                Rate::from_bit_per_s(unit.decode(word)).map_or("0 bit/s".to_owned(), |rate| rate.to_string());
            (value, meaning)
        };
        let (value, meaning) = rate(structure.available, structure.rate_type.has_available());
        self.push(byte, 16, "AR", value, meaning);
        let (value, meaning) = rate(structure.guaranteed, structure.rate_type.has_guaranteed());
        self.push(byte + 2, 16, "GR", value, meaning);
        let priorities = [
            (byte + 4, "PP", structure.preemption, "preemption priority"),
            (byte + 5, "DP", structure.delay, "delay priority"),
        ];
        for (byte, name, priority, kind) in priorities {
            let reserved = self.bytes[self.at + byte] & 0b11;
            let meaning = match reserved {
                0 => format!("{kind}, 0 to 63"),
                bits => format!("{kind}, 0 to 63; reserved bits {bits:02b} are ignored"),
            };
            self.push(byte, 8, name, priority.to_string(), meaning);
        }
        let message = structure.message;
        self.push(byte + 6, 4, "CD", (message as u8).to_string(), message.name());
        self.push(
            byte + 6,
            4,
            "TP",
            (structure.rate_type as u8).to_string(),
            rate_type_meaning(structure.rate_type),
        );
        let charging = structure.charging;
        self.push(byte + 7, 4, "CH", (charging as u8).to_string(), format!("{} charging", charging.name()));
        let time = structure.burst.time();
        self.push(byte + 7, 4, "BT", structure.burst.code().to_string(), format!("bursts of {time:.3}"));
    }

    fn version(&mut self, byte: usize, structure: &Structure) {
        self.push(byte, 12, "QoS version", (structure.version as u16).to_string(), "");
    }
}

fn rate_type_meaning(rate_type: RateType) -> String {
    format!("{} rate", rate_type.name())
}

fn mark_meaning(structure: &Structure) -> String {
    match (structure.mark, structure.version.highest_mark()) {
        (0, _) => "no router has marked it".to_owned(),
        (_, 1) => "a router has processed it".to_owned(),
        (count, _) => format!("{count} routers have processed it"),
    }
}

fn whose_source(structure: &Structure) -> &'static str {
    match (structure.message, structure.source.is_none()) {
        (Message::Response, _) => "the requester, as the responder sees it",
        (_, true) => "none",
        (_, false) => "the requester, before it moved",
    }
}
