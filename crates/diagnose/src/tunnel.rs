//! The IP packet inside of a tunnel.
//!
//! | tunnel | by |
//! | --- | --- |
//! | IP in IP, 6in4 | RFC 2003, RFC 2473, RFC 4213 |
//! | GRE | RFC 2784, RFC 2890 |
//! | VXLAN, Geneve | RFC 7348, RFC 8926 |
//! | GTP-U | 3GPP TS 29.281 §5 |
//! | PPPoE | RFC 2516, RFC 1661 |
//! | MPLS | RFC 3032, with RFC 4385's control word for Ethernet |

use crate::packet::Link;
use etherparse::{LaxNetSlice, LaxSlicedPacket, TransportSlice, ip_number};
use serde::Serialize;

/// Headers of tunnels, tags and labels that are looked behind, one within the other.
pub const MOST_NESTED: usize = 16;

const MPLS: [u16; 2] = [0x8847, 0x8848];
const VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];
const PPPOE: u16 = 0x8864;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// An Ethernet frame within GRE or Geneve.
const BRIDGED: u16 = 0x6558;
/// Linux's VXLAN began before the other port was assigned.
const VXLAN_PORTS: [u16; 2] = [4789, 8472];
const GENEVE_PORT: u16 = 6081;
const GTP_U_PORT: u16 = 2152;

/// What a packet was in: of several tunnels the innermost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tunnel {
    /// IPv4 or IPv6 in either.
    IpInIp,
    /// Generic Routing Encapsulation.
    Gre,
    /// Virtual eXtensible Local Area Network.
    Vxlan,
    /// Generic Network Virtualization Encapsulation.
    Geneve,
    /// User data of a mobile network.
    GtpU,
    /// PPP over Ethernet.
    Pppoe,
    /// Labels.
    Mpls,
}

impl Tunnel {
    /// As its standard spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Tunnel::IpInIp => "IP in IP",
            Tunnel::Gre => "GRE",
            Tunnel::Vxlan => "VXLAN",
            Tunnel::Geneve => "Geneve",
            Tunnel::GtpU => "GTP-U",
            Tunnel::Pppoe => "PPPoE",
            Tunnel::Mpls => "MPLS",
        }
    }
}

/// What begins at a place of a frame.
#[derive(Debug, Clone, Copy)]
enum Header {
    Ethernet,
    /// What an EtherType says.
    Typed(u16),
    Ip,
}

fn word(data: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*data.get(at)?, *data.get(at + 1)?]))
}

/// Where the IP packet with TCP begins in a frame that has it in a tunnel, and in which; `None` where there is none.
pub(crate) fn inner(link: Link, data: &[u8]) -> Option<(usize, Tunnel)> {
    let (mut header, mut at) = match link {
        Link::Ethernet => (Header::Ethernet, 0),
        Link::Raw => (Header::Ip, 0),
        Link::Null => (Header::Ip, 4),
        Link::Cooked => (Header::Typed(word(data, 14)?), 16),
        Link::Cooked2 => (Header::Typed(word(data, 0)?), 20),
    };
    let mut tunnel = None;
    for _ in 0..MOST_NESTED {
        (header, at) = match header {
            Header::Ethernet => (Header::Typed(word(data, at + 12)?), at + 14),
            Header::Typed(IPV4 | IPV6) => (Header::Ip, at),
            Header::Typed(BRIDGED) => (Header::Ethernet, at),
            Header::Typed(kind) if VLAN.contains(&kind) => (Header::Typed(word(data, at + 2)?), at + 4),
            Header::Typed(kind) if MPLS.contains(&kind) => {
                tunnel = Some(Tunnel::Mpls);
                let is_last = data.get(at + 2)? & 1 == 1;
                match data.get(at + 4)? >> 4 {
                    _ if !is_last => (Header::Typed(kind), at + 4),
                    4 | 6 => (Header::Ip, at + 4),
                    0 => (Header::Ethernet, at + 8),
                    _ => return None,
                }
            }
            Header::Typed(PPPOE) => {
                tunnel = Some(Tunnel::Pppoe);
                match (word(data, at)?, word(data, at + 6)?) {
                    (0x1100, 0x0021 | 0x0057) => (Header::Ip, at + 8),
                    _ => return None,
                }
            }
            Header::Typed(_) => return None,
            Header::Ip => {
                let packet = LaxSlicedPacket::from_ip(data.get(at..)?).ok()?;
                match &packet.transport {
                    Some(TransportSlice::Tcp(_)) => return tunnel.map(|tunnel| (at, tunnel)),
                    Some(TransportSlice::Udp(udp)) => {
                        let payload = at_of(data, udp.slice())? + 8;
                        let (next, found) = in_udp(udp.destination_port(), data, payload)?;
                        tunnel = Some(found);
                        next
                    }
                    _ => {
                        let (next, found) = in_ip(&packet, data)?;
                        tunnel = Some(found);
                        next
                    }
                }
            }
        };
    }
    None
}

/// Where a part of the frame begins.
fn at_of(data: &[u8], part: &[u8]) -> Option<usize> {
    (part.as_ptr() as usize).checked_sub(data.as_ptr() as usize)
}

fn in_ip(packet: &LaxSlicedPacket<'_>, data: &[u8]) -> Option<((Header, usize), Tunnel)> {
    let payload = match packet.net.as_ref()? {
        LaxNetSlice::Ipv4(ip) => ip.payload(),
        LaxNetSlice::Ipv6(ip) => ip.payload(),
        LaxNetSlice::Arp(_) => return None,
    };
    let at = at_of(data, payload.payload)?;
    match payload.ip_number {
        _ if payload.fragmented => None,
        ip_number::IPV4 | ip_number::IPV6 => Some(((Header::Ip, at), Tunnel::IpInIp)),
        ip_number::GRE => {
            let flags = word(data, at)?;
            // Routing information (RFC 1701) and PPTP's version say otherwise how long the header is.
            if flags & 0x4007 != 0 {
                return None;
            }
            let optional = [0x8000, 0x2000, 0x1000].into_iter().filter(|bit| flags & bit != 0).count();
            Some(((Header::Typed(word(data, at + 2)?), at + 4 + 4 * optional), Tunnel::Gre))
        }
        _ => None,
    }
}

fn in_udp(port: u16, data: &[u8], at: usize) -> Option<((Header, usize), Tunnel)> {
    let first = *data.get(at)?;
    match port {
        // The identifier is valid.
        _ if VXLAN_PORTS.contains(&port) && first & 8 != 0 => {
            Some(((Header::Ethernet, at + 8), Tunnel::Vxlan))
        }
        // Version 0; the length of options is in words.
        GENEVE_PORT if first >> 6 == 0 => {
            let options = usize::from(first & 0x3f) * 4;
            Some(((Header::Typed(word(data, at + 2)?), at + 8 + options), Tunnel::Geneve))
        }
        // Version 1, GTP and not GTP', and data.
        GTP_U_PORT if first >> 4 == 3 && *data.get(at + 1)? == 0xff => {
            let mut next = at + 8;
            if first & 7 != 0 {
                let mut extension = *data.get(at + 11)?;
                next += 4;
                for _ in 0..MOST_NESTED {
                    if first & 4 == 0 || extension == 0 {
                        break;
                    }
                    next += 4 * usize::from(*data.get(next)?).max(1);
                    extension = *data.get(next - 1)?;
                }
            }
            Some(((Header::Ip, next), Tunnel::GtpU))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{ip_packet, parse};

    /// 100 bytes of data of TCP, from port 1000 to port 80.
    fn tcp() -> Vec<u8> {
        let mut tcp = vec![0; 20 + 100];
        (tcp[0], tcp[1], tcp[3], tcp[12], tcp[13]) = (3, 0xe8, 80, 0x50, 0x18);
        ipv4(6, 1, &tcp)
    }

    fn ipv4(protocol: u8, host: u8, payload: &[u8]) -> Vec<u8> {
        let [high, low] = (20 + payload.len() as u16).to_be_bytes();
        let mut packet = vec![0x45, 0, high, low, 0, 0, 0, 0, 64, protocol, 0, 0];
        packet.extend_from_slice(&[10, 0, 0, host, 10, 0, 0, host + 1]);
        packet.extend_from_slice(payload);
        packet
    }

    fn ipv6(next: u8, payload: &[u8]) -> Vec<u8> {
        let [high, low] = (payload.len() as u16).to_be_bytes();
        let mut packet = vec![0x60, 0, 0, 0, high, low, next, 64];
        packet.extend_from_slice(&[0xfd; 32]);
        packet.extend_from_slice(payload);
        packet
    }

    fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
        let [high, low] = (8 + payload.len() as u16).to_be_bytes();
        let [to_high, to_low] = port.to_be_bytes();
        let header = [0x12, 0x34, to_high, to_low, high, low, 0, 0];
        ipv4(17, 101, &[&header, payload].concat())
    }

    fn ethernet(kind: u16, payload: &[u8]) -> Vec<u8> {
        [&[2; 12][..], &kind.to_be_bytes(), payload].concat()
    }

    fn tunnels() -> Vec<(Tunnel, Link, Vec<u8>)> {
        let tcp = &tcp();
        let frame = &ethernet(IPV4, tcp);
        let tagged = &ethernet(0x8100, &[&[0, 5, 8, 0], &tcp[..]].concat());
        vec![
            (Tunnel::IpInIp, Link::Raw, ipv4(4, 101, tcp)),
            (Tunnel::IpInIp, Link::Raw, ipv6(4, tcp)),
            (Tunnel::IpInIp, Link::Ethernet, ethernet(IPV4, &ipv4(41, 101, &ipv6(4, tcp)))),
            (Tunnel::Gre, Link::Raw, ipv4(47, 101, &[&[0, 0, 8, 0], &tcp[..]].concat())),
            // With checksum, key and sequence number, and a frame inside.
            (Tunnel::Gre, Link::Raw, ipv4(47, 101, &[&[0xb0, 0, 0x65, 0x58], &[9; 12][..], frame].concat())),
            (Tunnel::Vxlan, Link::Raw, udp(4789, &[&[8, 0, 0, 0, 0, 0, 7, 0], &tagged[..]].concat())),
            (Tunnel::Vxlan, Link::Raw, udp(8472, &[&[8, 0, 0, 0, 0, 0, 7, 0], &frame[..]].concat())),
            // With two words of options.
            (Tunnel::Geneve, Link::Raw, udp(6081, &[&[2, 0, 0x65, 0x58], &[0; 12][..], frame].concat())),
            (Tunnel::Geneve, Link::Raw, udp(6081, &[&[0, 0, 8, 0, 0, 0, 7, 0], &tcp[..]].concat())),
            (Tunnel::GtpU, Link::Raw, udp(2152, &[&[0x30, 0xff, 0, 140, 0, 0, 0, 1], &tcp[..]].concat())),
            // With a number and the extension of a PDU session.
            (
                Tunnel::GtpU,
                Link::Raw,
                udp(2152, &[&[0x34, 0xff, 0, 148, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0, 9, 0], &tcp[..]].concat()),
            ),
            (
                Tunnel::Pppoe,
                Link::Ethernet,
                ethernet(PPPOE, &[&[0x11, 0, 0, 1, 0, 142, 0, 0x21], &tcp[..]].concat()),
            ),
            (
                Tunnel::Mpls,
                Link::Ethernet,
                ethernet(0x8847, &[&[0, 1, 0, 64, 0, 2, 1, 64], &tcp[..]].concat()),
            ),
            // A frame behind a control word, and Linux's cooked capture of it.
            (
                Tunnel::Mpls,
                Link::Ethernet,
                ethernet(0x8847, &[&[0, 1, 1, 64, 0, 0, 0, 0], &frame[..]].concat()),
            ),
            (Tunnel::Mpls, Link::Cooked, [&[0; 14][..], &[0x88, 0x47, 0, 1, 1, 64], &tcp[..]].concat()),
        ]
    }

    #[test]
    fn tcp_is_found_in_each_tunnel_with_its_own_addresses_and_length() {
        let plain = parse(Link::Raw, &tcp(), 140).expect("TCP");
        assert_eq!((plain.payload, plain.tunnel), (100, None));
        for (tunnel, link, data) in tunnels() {
            let found = parse(link, &data, data.len() as u32).unwrap_or_else(|| panic!("{tunnel:?}"));
            assert_eq!(found.tunnel, Some(tunnel));
            assert_eq!((found.source, found.destination), (plain.source, plain.destination), "{tunnel:?}");
            assert_eq!((found.payload, found.push), (100, true), "{tunnel:?}");
            assert_eq!(ip_packet(link, &data), Some(&tcp()[..]), "{tunnel:?}");
        }
    }

    #[test]
    fn of_a_packet_that_is_cut_off_nothing_is_said_or_what_its_headers_say() {
        for (tunnel, link, data) in tunnels() {
            for kept in 0..data.len() {
                if let Some(found) = parse(link, &data[..kept], data.len() as u32) {
                    assert_eq!((found.payload, found.tunnel), (100, Some(tunnel)), "{kept} of {tunnel:?}");
                    assert!(kept >= data.len() - 100, "{kept} of {tunnel:?}: without all of its header");
                }
            }
        }
    }

    #[test]
    fn tunnels_beyond_the_bound_are_not_looked_behind() {
        let nested = |times: usize| (0..times).fold(tcp(), |inner, _| ipv4(4, 101, &inner));
        let found = |data: Vec<u8>| parse(Link::Raw, &data, data.len() as u32).map(|packet| packet.payload);
        assert_eq!(found(nested(MOST_NESTED - 1)), Some(100));
        assert_eq!(found(nested(MOST_NESTED)), None);
        // Extensions of GTP-U, too, whose lengths may be zero.
        let endless = [&[0x34, 0xff, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x85][..], &[0x85; 400]].concat();
        assert_eq!(found(udp(2152, &endless)), None);
    }

    #[test]
    fn what_only_looks_like_a_tunnel_is_none() {
        let tcp = tcp();
        let found = |data: Vec<u8>| parse(Link::Raw, &data, data.len() as u32);
        assert_eq!(found(udp(4789, &[&[0; 8], &ethernet(IPV4, &tcp)[..]].concat())), None, "no identifier");
        assert_eq!(found(udp(6081, &[&[0x40, 0, 8, 0, 0, 0, 7, 0], &tcp[..]].concat())), None, "version 1");
        assert_eq!(found(udp(2152, &[&[0x30, 1, 0, 140, 0, 0, 0, 1], &tcp[..]].concat())), None, "an echo");
        assert_eq!(found(udp(53, &[&[8, 0, 0, 0, 0, 0, 7, 0], &tcp[..]].concat())), None, "another port");
        assert_eq!(
            found(ipv4(47, 101, &[&[0x30, 1, 0x88, 0x0b], &[0; 12][..], &tcp].concat())),
            None,
            "PPTP"
        );
        // A fragment of what is in a tunnel has not all of it.
        let mut fragment = ipv4(4, 101, &tcp);
        fragment[6] = 0x20;
        assert_eq!(found(fragment), None);
    }
}
