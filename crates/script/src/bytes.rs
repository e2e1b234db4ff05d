//! Packets as the bytes of IPv4 and IPv6, for machines that take and give these.

use crate::icmp;
use crate::machine::Refusal;
use crate::packet::{ACK, Packet};
use crate::syntax::{IcmpSpec, TcpOption};
use core::net::IpAddr;

/// Bytes of a header without options, by IPv4 and by IPv6.
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
const TCP_HEADER: usize = 20;
/// Numbers of protocols in an IP header.
const TCP: u8 = 6;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
/// Hop limit of ICMP messages that come in.
const ICMP_TTL: u8 = 255;

/// An IP packet around `payload`, its header's checksum in order.
fn ip_packet(from: IpAddr, to: IpAddr, protocol: u8, (tos, ttl): (u8, u8), payload: &[u8]) -> Vec<u8> {
    let mut bytes = match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let mut header = vec![0; IPV4_HEADER];
            header[0] = 0x45;
            header[1] = tos;
            header[2..4].copy_from_slice(&((IPV4_HEADER + payload.len()) as u16).to_be_bytes());
            header[8] = ttl;
            header[9] = protocol;
            header[12..16].copy_from_slice(&from.octets());
            header[16..20].copy_from_slice(&to.octets());
            let sum = checksum(&[&header]);
            header[10..12].copy_from_slice(&sum.to_be_bytes());
            header
        }
        (from, to) => {
            let octets = |address| match address {
                IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
                IpAddr::V6(address) => address.octets(),
            };
            let mut header = vec![0; IPV6_HEADER];
            header[0] = 0x60 | tos >> 4;
            header[1] = tos << 4;
            header[4..6].copy_from_slice(&(payload.len() as u16).to_be_bytes());
            header[6] = protocol;
            header[7] = ttl;
            header[8..24].copy_from_slice(&octets(from));
            header[24..40].copy_from_slice(&octets(to));
            header
        }
    };
    bytes.extend_from_slice(payload);
    bytes
}

/// What checksums of TCP and of ICMPv6 cover of an IP header (RFC 9293 section 3.1, RFC 8200 section 8.1).
fn pseudo_header(from: IpAddr, to: IpAddr, protocol: u8, len: usize) -> Vec<u8> {
    let octets = |address| match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    // Their order and zeros between them do not matter to the sum.
    [octets(from), octets(to), vec![0, protocol], (len as u32).to_be_bytes().to_vec()].concat()
}

/// The packet as it comes in from `remote` at `local`, both of one version of IP, its checksums in order. Its payload is zeros.
pub fn encode(packet: &Packet, local: IpAddr, remote: IpAddr) -> Vec<u8> {
    let options = encode_options(&packet.options);
    let header = TCP_HEADER + options.len();
    let mut tcp = vec![0; header + usize::from(packet.len)];
    tcp[0..2].copy_from_slice(&packet.remote.to_be_bytes());
    tcp[2..4].copy_from_slice(&packet.local.to_be_bytes());
    tcp[4..8].copy_from_slice(&packet.seq.to_be_bytes());
    tcp[8..12].copy_from_slice(&packet.ack.to_be_bytes());
    tcp[12] = ((header / 4) << 4) as u8 | (packet.flags >> 8 & 1) as u8;
    tcp[13] = packet.flags as u8;
    tcp[14..16].copy_from_slice(&packet.window.to_be_bytes());
    tcp[18..20].copy_from_slice(&packet.urgent.to_be_bytes());
    tcp[TCP_HEADER..header].copy_from_slice(&options);
    let sum = checksum(&[&pseudo_header(remote, local, TCP, tcp.len()), &tcp]);
    tcp[16..18].copy_from_slice(&sum.to_be_bytes());
    ip_packet(remote, local, TCP, (packet.tos, packet.ttl), &tcp)
}

/// An ICMP message that comes in from `remote` at `local`, about a segment that `local` sent: that segment's IP header and the first
/// 8 bytes of its TCP header are in it (RFC 792, RFC 4443).
///
/// # Errors
/// A type or a code that there is not.
pub fn encode_icmp(
    message: &IcmpSpec,
    (local_port, remote_port): (u16, u16),
    seq: u32,
    local: IpAddr,
    remote: IpAddr,
) -> Result<Vec<u8>, Refusal> {
    let mut tcp = vec![0; TCP_HEADER];
    tcp[0..2].copy_from_slice(&local_port.to_be_bytes());
    tcp[2..4].copy_from_slice(&remote_port.to_be_bytes());
    tcp[4..8].copy_from_slice(&seq.to_be_bytes());
    tcp[12] = 5 << 4;
    tcp.resize(TCP_HEADER + message.echoed.map_or(0, |(_, len)| usize::from(len.min(512))), 0);
    let about = ip_packet(local, remote, TCP, (0, 64), &tcp);
    let (kind, code) = icmp::numbers(message, local.is_ipv6())?;
    let mut icmp = vec![kind, code, 0, 0, 0, 0, 0, 0];
    if let Some(mtu) = message.mtu {
        // The low half of the word by IPv4 (RFC 1191 section 4), all of it by IPv6 (RFC 4443 section 3.2).
        icmp[4..8].copy_from_slice(&if local.is_ipv6() { mtu } else { mtu & 0xffff }.to_be_bytes());
    }
    icmp.extend(about);
    let protocol = if local.is_ipv6() { ICMPV6 } else { ICMP };
    let pseudo =
        if local.is_ipv6() { pseudo_header(remote, local, protocol, icmp.len()) } else { Vec::new() };
    let sum = checksum(&[&pseudo, &icmp]);
    icmp[2..4].copy_from_slice(&sum.to_be_bytes());
    Ok(ip_packet(remote, local, protocol, (0, ICMP_TTL), &icmp))
}

/// A packet that the end under test has sent, if the bytes are a TCP segment over IPv4, or over IPv6 without extension headers; its
/// checksums are not looked at.
pub fn decode(bytes: &[u8]) -> Option<Packet> {
    let first = *bytes.first()?;
    let word = |bytes: &[u8], at: usize| Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
    let (protocol, tos, ttl, tcp) = match first >> 4 {
        4 => {
            let header = usize::from(first & 0xf) * 4;
            if header < IPV4_HEADER {
                return None;
            }
            let tcp = bytes.get(header..usize::from(word(bytes, 2)?))?;
            (*bytes.get(9)?, bytes[1], *bytes.get(8)?, tcp)
        }
        6 => {
            let tcp = bytes.get(IPV6_HEADER..IPV6_HEADER + usize::from(word(bytes, 4)?))?;
            (bytes[6], first << 4 | bytes[1] >> 4, bytes[7], tcp)
        }
        _ => return None,
    };
    if protocol != TCP {
        return None;
    }
    let long = |at: usize| Some(u32::from(word(tcp, at)?) << 16 | u32::from(word(tcp, at + 2)?));
    let header = usize::from(*tcp.get(12)? >> 4) * 4;
    let options = tcp.get(TCP_HEADER..header)?;
    let flags = word(tcp, 12)? & 0x1ff;
    Some(Packet {
        local: word(tcp, 0)?,
        remote: word(tcp, 2)?,
        tos,
        ttl,
        seq: long(4)?,
        ack: if flags & ACK != 0 { long(8)? } else { 0 },
        flags,
        window: word(tcp, 14)?,
        urgent: word(tcp, 18)?,
        options: decode_options(options),
        len: u16::try_from(tcp.len() - header).ok()?,
    })
}

fn checksum(parts: &[&[u8]]) -> u16 {
    let mut sum: u32 = 0;
    for part in parts {
        for pair in part.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
            sum = (sum & 0xffff) + (sum >> 16);
        }
    }
    !(sum as u16)
}

fn encode_options(options: &[TcpOption]) -> Vec<u8> {
    let hexadecimal = |text: &str| -> Vec<u8> {
        let digits: Vec<u8> = text.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair.get(1).unwrap_or(&0)).collect()
    };
    let mut plain = Vec::new();
    for option in options {
        match option {
            TcpOption::End => plain.push((0, None)),
            TcpOption::Nop => plain.push((1, None)),
            TcpOption::Mss(mss) => plain.push((2, Some(mss.to_be_bytes().to_vec()))),
            TcpOption::WindowScale(shift) => plain.push((3, Some(vec![*shift]))),
            TcpOption::SackOk => plain.push((4, Some(Vec::new()))),
            TcpOption::Sack(blocks) => {
                let edges = blocks.iter().flat_map(|(start, end)| [start.to_be_bytes(), end.to_be_bytes()]);
                plain.push((5, Some(edges.flatten().collect())));
            }
            TcpOption::Timestamps(value, echo) => {
                plain.push((8, Some([value.to_be_bytes(), echo.to_be_bytes()].concat())));
            }
            TcpOption::Md5(digest) => plain.push((19, Some(hexadecimal(digest)))),
            TcpOption::FastOpen(cookie) => plain.push((34, Some(hexadecimal(cookie)))),
            TcpOption::FastOpenExperimental(cookie) => {
                plain.push((254, Some([vec![0xf9, 0x89], hexadecimal(cookie)].concat())));
            }
            TcpOption::Other(kind) => plain.push((*kind, Some(Vec::new()))),
        }
    }
    let mut bytes = Vec::new();
    for (kind, content) in plain {
        bytes.push(kind);
        if let Some(content) = content {
            bytes.push(content.len() as u8 + 2);
            bytes.extend(content);
        }
    }
    // A header is whole words, and forty bytes of options at the most.
    bytes.truncate(40);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn decode_options(mut bytes: &[u8]) -> Vec<TcpOption> {
    let mut options = Vec::new();
    while let Some((&kind, rest)) = bytes.split_first() {
        if kind < 2 {
            options.push(if kind == 0 { TcpOption::End } else { TcpOption::Nop });
            bytes = rest;
            continue;
        }
        let Some(len) =
            rest.first().map(|&len| usize::from(len)).filter(|&len| len >= 2 && len <= bytes.len())
        else {
            break;
        };
        let content = &bytes[2..len];
        let long = |at: usize| {
            content.get(at..at + 4).map_or(0, |four| u32::from_be_bytes([four[0], four[1], four[2], four[3]]))
        };
        let text = |content: &[u8]| content.iter().map(|octet| format!("{octet:02x}")).collect::<String>();
        options.push(match (kind, content.len()) {
            (2, 2) => TcpOption::Mss(u16::from_be_bytes([content[0], content[1]])),
            (3, 1) => TcpOption::WindowScale(content[0]),
            (4, 0) => TcpOption::SackOk,
            (5, len) if len % 8 == 0 => {
                TcpOption::Sack((0..len / 8).map(|block| (long(8 * block), long(8 * block + 4))).collect())
            }
            (8, 8) => TcpOption::Timestamps(long(0), long(4)),
            (19, 16) => TcpOption::Md5(text(content)),
            (34, _) => TcpOption::FastOpen(text(content)),
            (254, _) if content.starts_with(&[0xf9, 0x89]) => {
                TcpOption::FastOpenExperimental(text(&content[2..]))
            }
            _ => TcpOption::Other(kind),
        });
        bytes = &bytes[len..];
    }
    options
}
