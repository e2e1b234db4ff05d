//! QoS Structures as IPv6 hop-by-hop options (RFC 8200 §4.2, §4.3).

use crate::structure::{decode_version, decode_version_and_mark};
use crate::{DecodeError, STRUCTURE_LEN, Source, Structure, Structures};

/// The type of the option. Its high bits are 001 in both: skip where unknown, and it may change on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum OptionType {
    /// 0x20, the paper's.
    #[default]
    Tia1039 = 0x20,
    /// 0x3e, for experiments by RFC 4727 §3.6.
    Experiment = 0x3e,
}

impl OptionType {
    const fn from_byte(byte: u8) -> Option<OptionType> {
        match byte {
            0x20 => Some(OptionType::Tia1039),
            0x3e => Some(OptionType::Experiment),
            _ => None,
        }
    }
}

/// The data of one option: AR to BT, version, M, Source Flow.
const OPTION_DATA: u8 = 12;
/// The first option stands behind Next Header and Hdr Ext Len: 4n + 2, so that its fields are aligned.
const FIRST_OPTION: usize = 2;
/// PadN without data brings the second one to 4n + 2 again.
const PADDING: [u8; 2] = [1, 0];
const PADDING_AT: usize = STRUCTURE_LEN;
const SECOND_OPTION: usize = PADDING_AT + PADDING.len();

/// A hop-by-hop options header that carries one structure or two, and nothing else.
///
/// One makes 16 bytes. Two make 32: a header can be there once only, so that the request of a SYN/ACK stands behind its
/// response, padded to the same alignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HopByHop {
    /// What follows: 6 for TCP.
    pub next_header: u8,
    /// Of all options.
    pub option_type: OptionType,
    /// One or two.
    pub structures: Structures,
}

impl HopByHop {
    /// Length in bytes.
    pub const fn encoded_len(&self) -> usize {
        STRUCTURE_LEN * self.structures.count()
    }

    /// Writes it to the front of `buffer`, and gives how long it is. Sources of IPv4 are written as none, and a mark in
    /// a response not at all.
    pub fn encode(&self, buffer: &mut [u8; 2 * STRUCTURE_LEN]) -> usize {
        let len = self.encoded_len();
        buffer[0] = self.next_header;
        buffer[1] = (len / 8 - 1) as u8;
        for (structure, at) in self.structures.iter().zip([FIRST_OPTION, SECOND_OPTION]) {
            buffer[at] = self.option_type as u8;
            buffer[at + 1] = OPTION_DATA;
            buffer[at + 2..at + 10].copy_from_slice(&structure.common());
            buffer[at + 10..at + 14].copy_from_slice(&tail(structure));
        }
        if self.structures.count() == 2 {
            buffer[PADDING_AT..SECOND_OPTION].copy_from_slice(&PADDING);
        }
        len
    }

    /// Of a whole header, from its Next Header on.
    ///
    /// # Errors
    /// Other lengths, options of other types, and what no structure may say.
    pub fn decode(bytes: &[u8]) -> Result<HopByHop, DecodeError> {
        let (first, second) = match bytes.len() {
            STRUCTURE_LEN => (bytes, None),
            len if len == 2 * STRUCTURE_LEN => (&bytes[..STRUCTURE_LEN], Some(&bytes[SECOND_OPTION..])),
            found => return Err(DecodeError::Length { found }),
        };
        if bytes.len() != (usize::from(bytes[1]) + 1) * 8 {
            return Err(DecodeError::ExtensionLength { found: bytes[1], actual: bytes.len() });
        }
        let (option_type, first) = decode_option(&first[FIRST_OPTION..], FIRST_OPTION)?;
        let second = match second {
            Some(option) => {
                let found = [bytes[PADDING_AT], bytes[PADDING_AT + 1]];
                if found != PADDING {
                    return Err(DecodeError::Padding { at: PADDING_AT, found });
                }
                let (found, structure) = decode_option(option, SECOND_OPTION)?;
                if found != option_type {
                    let (expected, found) = (option_type as u8, found as u8);
                    return Err(DecodeError::MixedTypes { at: SECOND_OPTION, expected, found });
                }
                Some(structure)
            }
            None => None,
        };
        Ok(HopByHop { next_header: bytes[0], option_type, structures: Structures { first, second } })
    }
}

/// Version, and M and Source Flow, or in a response the flow label.
fn tail(structure: &Structure) -> [u8; 4] {
    let flow = match structure.source {
        Source::V6 { flow } => flow,
        Source::V4 { .. } => 0,
    };
    let low = if structure.message == crate::Message::Response {
        flow & 0xf_ffff
    } else {
        u32::from(structure.mark & 0xf) << 16 | flow & 0xffff
    };
    ((structure.version as u32) << 20 | low).to_be_bytes()
}

/// One option, of 14 bytes, which begins at byte `at` of the header.
fn decode_option(option: &[u8], at: usize) -> Result<(OptionType, Structure), DecodeError> {
    let &[kind, len, ar0, ar1, gr0, gr1, pp, dp, cd_tp, ch_bt, tail0, tail1, tail2, tail3] = option else {
        return Err(DecodeError::Length { found: option.len() });
    };
    let option_type = OptionType::from_byte(kind).ok_or(DecodeError::OptionType { at, found: kind })?;
    if len != OPTION_DATA {
        return Err(DecodeError::OptionLength { at: at + 1, found: len });
    }
    let common = Structure::decode_common([ar0, ar1, gr0, gr1, pp, dp, cd_tp, ch_bt], at + 2)?;
    let word = u32::from_be_bytes([tail0, tail1, tail2, tail3]);
    let (version, mark, flow) = if common.message == crate::Message::Response {
        (decode_version((word >> 20) as u16, at + 10)?, 0, word & 0xf_ffff)
    } else {
        let (version, mark) = decode_version_and_mark([tail0, tail1], at + 10)?;
        (version, mark, word & 0xffff)
    };
    Ok((option_type, Structure { version, mark, source: Source::V6 { flow }, ..common }))
}
