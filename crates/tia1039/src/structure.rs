//! A QoS Structure as values, and the 16 bytes that it is in the payload of an IPv4 packet.

use crate::{BurstTolerance, Charging, Message, Priority, QosVersion, RateType, RateWord};
use core::net::Ipv4Addr;

/// Length of one structure: in a payload, and of an IPv6 hop-by-hop header with one.
pub const STRUCTURE_LEN: usize = 16;

/// One QoS Structure, of either IP version.
///
/// In IPv4 it is the payload of a packet ([`encode_v4`](Structure::encode_v4)), in IPv6 a hop-by-hop option
/// ([`HopByHop`](crate::HopByHop)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Structure {
    /// CD: what it is for.
    pub message: Message,
    /// TP: which rates count.
    pub rate_type: RateType,
    /// AR, the Available Rate.
    pub available: RateWord,
    /// GR, the Guaranteed or Maximum Rate; zero where TP is available.
    pub guaranteed: RateWord,
    /// PP, the preemption priority.
    pub preemption: Priority,
    /// DP, the delay priority. Its place in the byte is not said anywhere: here it is PP's.
    pub delay: Priority,
    /// CH: who pays.
    pub charging: Charging,
    /// BT, the burst tolerance.
    pub burst: BurstTolerance,
    /// The version field, which says what M is.
    pub version: QosVersion,
    /// M: 0 from the sender, and what routers make of it. A response in IPv6 has no room for it: there it is 0.
    pub mark: u8,
    /// Who asked.
    pub source: Source,
}

/// The requester as a structure names it. Zero in a request, but for one that begins anew after a move: that names
/// where the requester was before. A response has the requester as the responder sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// Its IPv4 address and port.
    V4 {
        /// Source Address.
        address: Ipv4Addr,
        /// Source Port.
        port: u16,
    },
    /// Its IPv6 flow label: the low 16 bits in the field Source Flow, all 20 in a response, where they lie over M.
    V6 {
        /// At most 20 bits.
        flow: u32,
    },
}

impl Source {
    /// No one, IPv4.
    pub const NONE_V4: Source = Source::V4 { address: Ipv4Addr::UNSPECIFIED, port: 0 };
    /// No one, IPv6.
    pub const NONE_V6: Source = Source::V6 { flow: 0 };

    /// Whether it names no one.
    pub fn is_none(self) -> bool {
        self == Source::NONE_V4 || self == Source::NONE_V6
    }
}

/// Why bytes are no QoS Structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Neither one structure nor two.
    #[error("{found} bytes; expected 16 for one structure or 32 for two")]
    Length {
        /// How many there are.
        found: usize,
    },
    /// CD is not assigned.
    #[error("CD (byte {at}): {found} is not assigned; expected 0 to 7")]
    Message {
        /// Which byte.
        at: usize,
        /// The code.
        found: u8,
    },
    /// TP is not assigned.
    #[error("TP (byte {at}): {found} is not assigned; expected 0 to 3")]
    RateType {
        /// Which byte.
        at: usize,
        /// The code.
        found: u8,
    },
    /// CH is not assigned.
    #[error("CH (byte {at}): {found} is not assigned; expected 0 or 1")]
    Charging {
        /// Which byte.
        at: usize,
        /// The code.
        found: u8,
    },
    /// An unknown version.
    #[error("QoS version (byte {at}): expected 1 or 2, found {found}")]
    Version {
        /// Which byte.
        at: usize,
        /// The version.
        found: u16,
    },
    /// M is no mark of this version.
    #[error("M (byte {at}): expected 0 or 1 in version 1, found {found}")]
    Mark {
        /// Which byte.
        at: usize,
        /// M.
        found: u8,
    },
    /// The header says another length.
    #[error("Hdr Ext Len (byte 1): {found} is a header of {} bytes, and there are {actual}", (usize::from(*found) + 1) * 8)]
    ExtensionLength {
        /// In units of 8 bytes, without the first.
        found: u8,
        /// Bytes that there are.
        actual: usize,
    },
    /// A hop-by-hop option of another kind stands where a structure should.
    #[error("option type (byte {at}): expected 0x20 or 0x3e, found 0x{found:02x}")]
    OptionType {
        /// Which byte.
        at: usize,
        /// The type.
        found: u8,
    },
    /// The option has another length.
    #[error("option length (byte {at}): expected 12, found {found}")]
    OptionLength {
        /// Which byte.
        at: usize,
        /// The length.
        found: u8,
    },
    /// The two options of one header are of different types.
    #[error("option type (byte {at}): expected 0x{expected:02x} like the first, found 0x{found:02x}")]
    MixedTypes {
        /// Which byte.
        at: usize,
        /// The first option's.
        expected: u8,
        /// The type.
        found: u8,
    },
    /// No two bytes of padding between two structures.
    #[error("padding (byte {at}): expected PadN of two bytes, 01 00, found {found:02x?}")]
    Padding {
        /// Which byte.
        at: usize,
        /// What is there.
        found: [u8; 2],
    },
}

impl Default for Structure {
    /// A request for no rate, IPv4, priorities in the middle.
    fn default() -> Structure {
        Structure {
            message: Message::Request,
            rate_type: RateType::Available,
            available: RateWord::ZERO,
            guaranteed: RateWord::ZERO,
            preemption: Priority::MIDDLE,
            delay: Priority::MIDDLE,
            charging: Charging::Forward,
            burst: BurstTolerance::default(),
            version: QosVersion::Marking,
            mark: 0,
            source: Source::NONE_V4,
        }
    }
}

impl Structure {
    /// A request for an Available Rate, IPv4.
    pub fn request(available: RateWord) -> Structure {
        Structure { available, ..Structure::default() }
    }

    /// The answer to a request: all as it arrived, and who asked as the responder sees it.
    ///
    /// Of a response in IPv6 the M is lost.
    pub fn response(self, source: Source) -> Structure {
        let mark = if matches!(source, Source::V6 { .. }) { 0 } else { self.mark };
        Structure { message: Message::Response, source, mark, ..self }
    }

    /// With M as a router leaves it that has processed a request, whether it changed anything or not: a sender could
    /// not tell one that had nothing to change from one that does not know the protocol.
    #[must_use]
    pub fn marked(self) -> Structure {
        Structure { mark: (self.mark + 1).min(self.version.highest_mark()), ..self }
    }

    /// The payload of an IPv4 packet. A source of IPv6 is written as none.
    pub fn encode_v4(&self) -> [u8; STRUCTURE_LEN] {
        let (address, port) = match self.source {
            Source::V4 { address, port } => (address, port),
            Source::V6 { .. } => (Ipv4Addr::UNSPECIFIED, 0),
        };
        let mut bytes = [0; STRUCTURE_LEN];
        bytes[..4].copy_from_slice(&address.octets());
        bytes[4..12].copy_from_slice(&self.common());
        bytes[12..14]
            .copy_from_slice(&((self.version as u16) << 4 | u16::from(self.mark & 0xf)).to_be_bytes());
        bytes[14..].copy_from_slice(&port.to_be_bytes());
        bytes
    }

    /// Of the payload of an IPv4 packet. Reserved bits are ignored.
    ///
    /// # Errors
    /// A code that is not assigned, or a version or mark that is not known.
    pub fn decode_v4(bytes: &[u8; STRUCTURE_LEN]) -> Result<Structure, DecodeError> {
        Structure::decode_v4_at(bytes, 0)
    }

    /// Of 16 bytes that begin at `at` of a payload, for what an error says.
    pub(crate) fn decode_v4_at(bytes: &[u8; STRUCTURE_LEN], at: usize) -> Result<Structure, DecodeError> {
        let [a, b, c, d, common @ .., version, mark, port_high, port_low] = *bytes;
        let (version, mark) = decode_version_and_mark([version, mark], at + 12)?;
        let port = u16::from_be_bytes([port_high, port_low]);
        let source = Source::V4 { address: Ipv4Addr::new(a, b, c, d), port };
        Ok(Structure { version, mark, source, ..Structure::decode_common(common, at + 4)? })
    }

    /// AR to BT, the eight bytes that both forms share.
    pub(crate) fn common(&self) -> [u8; 8] {
        let [ar_high, ar_low] = self.available.bits().to_be_bytes();
        let [gr_high, gr_low] = self.guaranteed.bits().to_be_bytes();
        let cd_tp = (self.message as u8) << 4 | self.rate_type as u8;
        let ch_bt = (self.charging as u8) << 4 | self.burst.code();
        [ar_high, ar_low, gr_high, gr_low, self.preemption.byte(), self.delay.byte(), cd_tp, ch_bt]
    }

    /// The eight bytes that both forms share, which begin at `at`; the other fields are left at their defaults.
    pub(crate) fn decode_common(bytes: [u8; 8], at: usize) -> Result<Structure, DecodeError> {
        let [ar_high, ar_low, gr_high, gr_low, pp, dp, cd_tp, ch_bt] = bytes;
        let (cd, tp, ch, bt) = (cd_tp >> 4, cd_tp & 0xf, ch_bt >> 4, ch_bt & 0xf);
        Ok(Structure {
            message: Message::from_code(cd).ok_or(DecodeError::Message { at: at + 6, found: cd })?,
            rate_type: RateType::from_code(tp).ok_or(DecodeError::RateType { at: at + 6, found: tp })?,
            charging: Charging::from_code(ch).ok_or(DecodeError::Charging { at: at + 7, found: ch })?,
            available: RateWord::from_bits(u16::from_be_bytes([ar_high, ar_low])),
            guaranteed: RateWord::from_bits(u16::from_be_bytes([gr_high, gr_low])),
            preemption: Priority::from_byte(pp),
            delay: Priority::from_byte(dp),
            burst: BurstTolerance::new(bt).expect("four bits"),
            ..Structure::default()
        })
    }
}

/// Twelve bits of version and four of M, which begin at byte `at`.
pub(crate) fn decode_version_and_mark(bytes: [u8; 2], at: usize) -> Result<(QosVersion, u8), DecodeError> {
    let word = u16::from_be_bytes(bytes);
    let version = decode_version(word >> 4, at)?;
    let mark = (word & 0xf) as u8;
    if mark > version.highest_mark() {
        return Err(DecodeError::Mark { at: at + 1, found: mark });
    }
    Ok((version, mark))
}

/// The version of twelve bits that begin at byte `at`.
pub(crate) fn decode_version(found: u16, at: usize) -> Result<QosVersion, DecodeError> {
    QosVersion::from_code(found).ok_or(DecodeError::Version { at, found })
}
