//! Packets as the bytes of IPv4, for machines that take and give these.

use crate::packet::{ACK, Packet};
use crate::syntax::TcpOption;
use core::net::Ipv4Addr;

const IP_HEADER: usize = 20;
const TCP_HEADER: usize = 20;
/// TCP's number in an IP header.
const TCP: u8 = 6;

/// The packet as it comes in from `remote` at `local`, its checksums in order. Its payload is zeros.
pub fn encode(packet: &Packet, local: Ipv4Addr, remote: Ipv4Addr) -> Vec<u8> {
    let options = encode_options(&packet.options);
    let header = TCP_HEADER + options.len();
    let len = IP_HEADER + header + usize::from(packet.len);
    let mut bytes = vec![0; len];
    bytes[0] = 0x45;
    bytes[1] = packet.tos;
    bytes[2..4].copy_from_slice(&(len as u16).to_be_bytes());
    bytes[8] = packet.ttl;
    bytes[9] = TCP;
    bytes[12..16].copy_from_slice(&remote.octets());
    bytes[16..20].copy_from_slice(&local.octets());
    let sum = checksum(&[&bytes[..IP_HEADER]]);
    bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    let tcp = &mut bytes[IP_HEADER..];
    tcp[0..2].copy_from_slice(&packet.remote.to_be_bytes());
    tcp[2..4].copy_from_slice(&packet.local.to_be_bytes());
    tcp[4..8].copy_from_slice(&packet.seq.to_be_bytes());
    tcp[8..12].copy_from_slice(&packet.ack.to_be_bytes());
    tcp[12] = ((header / 4) << 4) as u8 | (packet.flags >> 8 & 1) as u8;
    tcp[13] = packet.flags as u8;
    tcp[14..16].copy_from_slice(&packet.window.to_be_bytes());
    tcp[18..20].copy_from_slice(&packet.urgent.to_be_bytes());
    tcp[TCP_HEADER..header].copy_from_slice(&options);
    let pseudo =
        [&remote.octets()[..], &local.octets(), &[0, TCP], &((len - IP_HEADER) as u16).to_be_bytes()];
    let sum = checksum(&[&pseudo.concat(), &bytes[IP_HEADER..]]);
    bytes[IP_HEADER + 16..IP_HEADER + 18].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// A packet that the end under test has sent, if the bytes are a TCP segment over IPv4; its checksums are not looked at.
pub fn decode(bytes: &[u8]) -> Option<Packet> {
    let first = *bytes.first()?;
    let ip_header = usize::from(first & 0xf) * 4;
    let len = usize::from(u16::from_be_bytes([*bytes.get(2)?, *bytes.get(3)?]));
    if first >> 4 != 4 || ip_header < IP_HEADER || *bytes.get(9)? != TCP {
        return None;
    }
    let tcp = bytes.get(ip_header..len)?;
    let word = |at: usize| Some(u16::from_be_bytes([*tcp.get(at)?, *tcp.get(at + 1)?]));
    let long = |at: usize| Some(u32::from(word(at)?) << 16 | u32::from(word(at + 2)?));
    let header = usize::from(*tcp.get(12)? >> 4) * 4;
    let options = tcp.get(TCP_HEADER..header)?;
    let flags = word(12)? & 0x1ff;
    Some(Packet {
        local: word(0)?,
        remote: word(2)?,
        tos: bytes[1],
        ttl: *bytes.get(8)?,
        seq: long(4)?,
        ack: if flags & ACK != 0 { long(8)? } else { 0 },
        flags,
        window: word(14)?,
        urgent: word(18)?,
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
