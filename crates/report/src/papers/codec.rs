//! Checks of the codec of explicit rate: what it reads from bytes, and what holds for every code.

use super::number::Numbers;
use crate::signals::from_hex;
use core::str::FromStr;
use farpath_tia1039::{
    BurstTolerance, FieldDescription, QosMark, QosPacket, RateWord, Rounding, STRUCTURE_LEN, Structure,
    describe_hop_by_hop, describe_v4, insert_v4, strip_v4,
};
use farpath_tia1039::{Carrier, RateUnit};
use farpath_units::Rate;
use serde::Deserialize;
use std::collections::BTreeSet;

/// What is asked of the codec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Codec {
    /// The lengths of the fields in bits.
    Bits,
    /// The values of the fields, rates in bit/s.
    Values,
    /// In which of so many ways each field can be filled so that it reads as something of its own.
    Levels,
    /// 1 where the bytes are refused, 0 where they are read.
    Refused,
    /// Of all structures that differ from the bytes in one byte and are read: how many are not written as they were, reserved
    /// bits aside.
    LossyBytes,
    /// Bytes that differ when the structures are taken out of the packet and put in again, checksums included.
    LossyPacket,
    /// Of the 65 536 words of the rate code, those that are not `nz 2^e (1 + m/512)`.
    WrongRates,
    /// Of the 16 384 words with `nz`, those that are below the one before.
    FallingRates,
    /// The largest share of a rate by which rounding is off, either way, from 512 units on.
    RateStep,
    /// The largest rate, in units.
    LargestRate,
    /// Seconds of each burst tolerance, from 0 on.
    BurstTimes,
    /// The byte of the IP header that QoSSignal and QoSFlow are, without ECN.
    DscpBytes,
}

/// Bytes to read.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bytes {
    /// The payload of an IPv4 packet.
    Payload(String),
    /// A hop-by-hop header of IPv6.
    HopByHop(String),
    /// A whole IP packet.
    Packet(String),
}

/// Bits that a reader ignores: bit 15 of AR and of GR, and the two low ones of PP and of DP.
const RESERVED: [(usize, u8); 4] = [(4, 0x80), (6, 0x80), (8, 0b11), (9, 0b11)];

/// What the codec says.
pub(super) fn ask(codec: Codec, bytes: Option<&Bytes>, fields: &[String]) -> Result<Numbers, String> {
    let given = || bytes.ok_or_else(|| "the check needs `bytes`".to_owned());
    Ok(Numbers(match codec {
        Codec::Bits => read(given()?, fields)?.iter().map(|field| field.bits as f64).collect(),
        Codec::Values => read(given()?, fields)?.iter().map(value).collect::<Result<_, _>>()?,
        Codec::Levels => levels(given()?, fields)?,
        Codec::Refused => vec![f64::from(u8::from(described(given()?, &hex(given()?)?).is_err()))],
        Codec::LossyBytes => vec![lossy_bytes(&hex(given()?)?)? as f64],
        Codec::LossyPacket => vec![lossy_packet(&hex(given()?)?)? as f64],
        Codec::WrongRates => vec![(0..=u16::MAX).filter(|&bits| is_wrong(bits)).count() as f64],
        Codec::FallingRates => {
            let units = |bits| RateWord::from_bits(bits).units();
            vec![(0x4001..=0x7fff).filter(|&bits| units(bits) < units(bits - 1)).count() as f64]
        }
        Codec::RateStep => vec![rate_step()],
        Codec::LargestRate => vec![RateWord::MAX.units() as f64],
        Codec::BurstTimes => {
            (0..16).filter_map(BurstTolerance::new).map(|burst| burst.time().as_secs_f64()).collect()
        }
        Codec::DscpBytes => {
            let dscp = [QosMark::Signal, QosMark::Flow].map(|mark| mark.dscp().unwrap_or(0));
            dscp.map(|dscp| f64::from(dscp << 2)).into()
        }
    }))
}

fn hex(bytes: &Bytes) -> Result<Vec<u8>, String> {
    let (Bytes::Payload(text) | Bytes::HopByHop(text) | Bytes::Packet(text)) = bytes;
    from_hex(text).map_err(|error| format!("bytes: {error}"))
}

/// Every field of such bytes.
fn described(kind: &Bytes, bytes: &[u8]) -> Result<Vec<FieldDescription>, String> {
    let unit = RateUnit::default();
    let described = match kind {
        Bytes::Payload(_) => describe_v4(bytes, unit),
        Bytes::HopByHop(_) => describe_hop_by_hop(bytes, unit),
        Bytes::Packet(_) => {
            let packet = QosPacket::decode(bytes).map_err(|error| error.to_string())?;
            let structures = &bytes[packet.place];
            match packet.carrier {
                Carrier::Payload => describe_v4(structures, unit),
                Carrier::HopByHop => describe_hop_by_hop(structures, unit),
            }
        }
    };
    described.map_err(|error| error.to_string())
}

/// The fields of these names, in this order; all without names. A name stands for the field in each structure.
fn read(bytes: &Bytes, fields: &[String]) -> Result<Vec<FieldDescription>, String> {
    let described = described(bytes, &hex(bytes)?)?;
    if fields.is_empty() {
        return Ok(described);
    }
    let mut found = Vec::new();
    for name in fields {
        let before = found.len();
        found.extend(described.iter().filter(|field| field.name == name).cloned());
        if found.len() == before {
            return Err(format!("there is no field `{name}`"));
        }
    }
    Ok(found)
}

fn value(field: &FieldDescription) -> Result<f64, String> {
    let number = field.value.parse().ok();
    let rate = || Rate::from_str(&field.value).ok().map(|rate| rate.bit_per_s() as f64);
    let zero = || (field.value == "0 bit/s").then_some(0.0);
    let raw = || u64::from_str_radix(&field.raw, 16).ok().map(|raw| raw as f64);
    number
        .or_else(rate)
        .or_else(zero)
        .or_else(raw)
        .ok_or_else(|| format!("{}: `{}` is no number", field.name, field.value))
}

/// Puts every code into a field, and counts what it is read as.
fn levels(kind: &Bytes, fields: &[String]) -> Result<Vec<f64>, String> {
    let bytes = hex(kind)?;
    let mut counts = Vec::new();
    for field in read(kind, fields)? {
        // The low half of its byte, or from the high one on.
        let low_half = field.bits == 4 && matches!(field.name, "TP" | "BT" | "M");
        let len = field.bits.div_ceil(8);
        let shift = len * 8 - field.bits - if low_half { 4 } else { 0 };
        let mut seen = BTreeSet::new();
        for code in 0..1_u64 << field.bits.min(16) {
            let mut changed = bytes.clone();
            let place = &mut changed[field.byte..field.byte + len];
            let kept = place.iter().fold(0_u64, |all, &byte| all << 8 | u64::from(byte));
            let mask = ((1_u64 << field.bits) - 1) << shift;
            let filled = kept & !mask | code << shift;
            place.copy_from_slice(&filled.to_be_bytes()[8 - len..]);
            let read = described(kind, &changed).unwrap_or_default();
            let same = read.into_iter().find(|other| (other.name, other.byte) == (field.name, field.byte));
            seen.extend(same.map(|field| field.value));
        }
        counts.push(seen.len() as f64);
    }
    Ok(counts)
}

fn lossy_bytes(bytes: &[u8]) -> Result<usize, String> {
    let whole = bytes.first_chunk::<STRUCTURE_LEN>().filter(|_| bytes.len() == STRUCTURE_LEN);
    let whole = whole.ok_or_else(|| format!("{} bytes; expected one structure of 16", bytes.len()))?;
    let mut lossy = 0;
    for at in 0..STRUCTURE_LEN {
        for byte in 0..=u8::MAX {
            let mut one = *whole;
            one[at] = byte;
            let Ok(structure) = Structure::decode_v4(&one) else { continue };
            for (place, reserved) in RESERVED {
                one[place] &= !reserved;
            }
            lossy += usize::from(structure.encode_v4() != one);
        }
    }
    Ok(lossy)
}

fn lossy_packet(bytes: &[u8]) -> Result<usize, String> {
    let mut packet = bytes.to_vec();
    let structures = strip_v4(&mut packet).map_err(|error| error.to_string())?;
    let structures = structures.ok_or("the packet carries no structures")?;
    insert_v4(&mut packet, &structures).map_err(|error| error.to_string())?;
    let differ = packet.iter().zip(bytes).filter(|(a, b)| a != b).count();
    Ok(differ + packet.len().abs_diff(bytes.len()))
}

/// By the three fields of the word, in parts of 1/512.
fn is_wrong(bits: u16) -> bool {
    let (nz, e, m) = (u128::from(bits >> 14 & 1), u32::from(bits >> 9 & 31), u128::from(bits & 511));
    u128::from(RateWord::from_bits(bits).units()) != nz * (512 + m) * (1 << e) / 512
}

fn rate_step() -> f64 {
    let mut largest: f64 = 0.0;
    for bits in 0x4000 + (9 << 9)..0x7fff {
        // Between a word and the next one: the rates that are farthest from both.
        let (low, high) = (RateWord::from_bits(bits).units(), RateWord::from_bits(bits + 1).units());
        for units in [low + 1, high - 1] {
            for rounding in [Rounding::Down, Rounding::Up] {
                let rounded = RateWord::from_units(units, rounding).units();
                largest = largest.max(rounded.abs_diff(units) as f64 / units as f64);
            }
        }
    }
    largest
}
