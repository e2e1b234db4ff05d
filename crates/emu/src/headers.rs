//! Where the parts of an IP packet lie, as far as it can be told.

use crate::{Malformed, checksum};
use farpath_tia1039::{QosPacket, STRUCTURE_LEN};

/// Bytes of an IPv6 header, and of the IPv4 and TCP ones without options.
pub(crate) const IPV6_LEN: usize = 40;
pub(crate) const IPV4_LEN: usize = 20;
pub(crate) const TCP_LEN: usize = 20;

/// Most bytes that the headers of a TCP packet take up: IPv6 with two QoS Structures, and TCP with all options.
pub(crate) const MAX_HEADERS: usize = IPV6_LEN + 2 * STRUCTURE_LEN + 60;

/// Places of fields in an IPv4 header, from its beginning.
pub(crate) mod ipv4 {
    use std::ops::Range;
    pub const TOTAL_LEN: Range<usize> = 2..4;
    pub const ID: Range<usize> = 4..6;
    pub const FRAGMENT: Range<usize> = 6..8;
    pub const PROTOCOL: usize = 9;
    pub const CHECKSUM: Range<usize> = 10..12;
    pub const ADDRESSES: Range<usize> = 12..20;
}

/// Places of fields in an IPv6 header.
pub(crate) mod ipv6 {
    use std::ops::Range;
    pub const PAYLOAD_LEN: Range<usize> = 4..6;
    pub const NEXT_HEADER: usize = 6;
    pub const ADDRESSES: Range<usize> = 8..40;
}

/// Places of fields in a TCP header, from its beginning.
pub(crate) mod tcp {
    use std::ops::Range;
    pub const PORTS: Range<usize> = 0..4;
    pub const SEQ: Range<usize> = 4..8;
    pub const ACK: Range<usize> = 8..12;
    pub const DATA_OFFSET: usize = 12;
    pub const FLAGS: usize = 13;
    pub const WINDOW: Range<usize> = 14..16;
    pub const CHECKSUM: Range<usize> = 16..18;
}

/// IANA's numbers of TCP and UDP.
pub(crate) const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;
/// Bytes of a UDP header (RFC 768).
const UDP_LEN: usize = 8;
/// Hop-by-hop, routing, fragment, ESP, authentication, destination options, mobility, HIP, shim6 (IANA, IPv6 extension
/// header types).
const EXTENSION_HEADERS: [u8; 9] = [0, 43, 44, 50, 51, 60, 135, 139, 140];
const HOP_BY_HOP: u8 = 0;
const FRAGMENT_HEADER: u8 = 44;
/// More fragments, and the fragment's offset.
const IPV4_FRAGMENT_BITS: u16 = 0x3fff;

/// A TCP packet's parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Headers {
    pub v6: bool,
    pub tcp_at: usize,
    pub payload_at: usize,
}

/// What a packet that is sound as far as it was looked at holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    Tcp(Headers),
    Udp(Datagram),
    Other,
}

/// What a whole UDP packet says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Datagram {
    /// Source and destination.
    pub ports: [u16; 2],
    pub payload_at: usize,
}

impl Headers {
    /// Both addresses, source first.
    pub fn addresses<'a>(&self, packet: &'a [u8]) -> &'a [u8] {
        if self.v6 { &packet[ipv6::ADDRESSES] } else { &packet[ipv4::ADDRESSES] }
    }

    /// The sum of the pseudo-header of `packet`, but for its length.
    pub fn pseudo_header(&self, packet: &[u8]) -> u16 {
        checksum::add(checksum::sum(self.addresses(packet)), u16::from(PROTOCOL_TCP))
    }

    /// Makes the headers at the beginning of `packet` those of one of `len` bytes: lengths, IPv4's checksum, and TCP's,
    /// which stays partial: its field holds the sum of the pseudo-header, of which `pseudo_header` is all but the length.
    pub fn set_len(&self, packet: &mut [u8], len: u16, pseudo_header: u16) {
        let tcp_len = len - self.tcp_at as u16;
        if self.v6 {
            packet[ipv6::PAYLOAD_LEN].copy_from_slice(&(len - IPV6_LEN as u16).to_be_bytes());
        } else {
            packet[ipv4::TOTAL_LEN].copy_from_slice(&len.to_be_bytes());
            packet[ipv4::CHECKSUM].fill(0);
            let sum = !checksum::sum(&packet[..self.tcp_at]);
            packet[ipv4::CHECKSUM].copy_from_slice(&sum.to_be_bytes());
        }
        let sum = checksum::add(pseudo_header, tcp_len);
        packet[self.tcp_at..][tcp::CHECKSUM].copy_from_slice(&sum.to_be_bytes());
    }
}

/// Whether an IPv6 packet shows ESP (RFC 4303) behind no header but hop-by-hop options.
pub(crate) fn is_esp(packet: &[u8]) -> bool {
    const ESP: u8 = 50;
    let next = |at: usize| packet.get(at).copied();
    match (packet.first().map(|first| first >> 4), next(6)) {
        (Some(6), Some(0)) => next(40) == Some(ESP),
        (Some(6), other) => other == Some(ESP),
        _ => false,
    }
}

/// Looks at lengths, fragmentation and protocol; at no checksum.
pub(crate) fn inspect(packet: &[u8]) -> Result<Content, Malformed> {
    let (v6, tcp_at, protocol) = match packet.first().map(|first| first >> 4) {
        Some(4) => inspect_ipv4(packet)?,
        Some(6) => inspect_ipv6(packet)?,
        _ => return Err(Malformed::IpHeader),
    };
    if protocol == PROTOCOL_UDP && packet.len() >= tcp_at + UDP_LEN {
        let ports = [u16_at(packet, tcp_at), u16_at(packet, tcp_at + 2)];
        return Ok(Content::Udp(Datagram { ports, payload_at: tcp_at + UDP_LEN }));
    }
    if protocol != PROTOCOL_TCP {
        return Ok(Content::Other);
    }
    let data_offset = *packet.get(tcp_at + tcp::DATA_OFFSET).ok_or(Malformed::TcpHeader)?;
    let tcp_len = usize::from(data_offset >> 4) * 4;
    let payload_at = tcp_at + tcp_len;
    if tcp_len < TCP_LEN || payload_at > packet.len() {
        return Err(Malformed::TcpHeader);
    }
    Ok(Content::Tcp(Headers { v6, tcp_at, payload_at }))
}

fn inspect_ipv4(packet: &[u8]) -> Result<(bool, usize, u8), Malformed> {
    let header_len = usize::from(packet[0] & 0x0f) * 4;
    if header_len < IPV4_LEN || packet.len() < header_len {
        return Err(Malformed::IpHeader);
    }
    if usize::from(u16_at(packet, ipv4::TOTAL_LEN.start)) != packet.len() {
        return Err(Malformed::Length);
    }
    if u16_at(packet, ipv4::FRAGMENT.start) & IPV4_FRAGMENT_BITS != 0 {
        return Err(Malformed::Fragment);
    }
    Ok((false, header_len, packet[ipv4::PROTOCOL]))
}

fn inspect_ipv6(packet: &[u8]) -> Result<(bool, usize, u8), Malformed> {
    if packet.len() < IPV6_LEN {
        return Err(Malformed::IpHeader);
    }
    // A jumbogram (RFC 2675) says zero here.
    if IPV6_LEN + usize::from(u16_at(packet, ipv6::PAYLOAD_LEN.start)) != packet.len() {
        return Err(Malformed::Length);
    }
    match packet[ipv6::NEXT_HEADER] {
        FRAGMENT_HEADER => Err(Malformed::Fragment),
        HOP_BY_HOP => match QosPacket::decode(packet) {
            // Its place ends where the transport header begins.
            Ok(read) if read.structures.is_some() => Ok((true, read.place.end, read.protocol)),
            _ => Err(Malformed::ExtensionHeader),
        },
        next if EXTENSION_HEADERS.contains(&next) => Err(Malformed::ExtensionHeader),
        next => Ok((true, IPV6_LEN, next)),
    }
}

/// The big-endian word at `at`, which is within `bytes`.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// The big-endian double word at `at`, which is within `bytes`.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
