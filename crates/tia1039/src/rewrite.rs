//! What a router does to the bytes of a packet: it writes structures where they stand, and makes packets of its own.

use crate::carry::{checksum, finish_v4, insert_v4};
use crate::router::FlowKey;
use crate::{
    Carrier, HopByHop, OptionType, QosMark, QosPacket, STRUCTURE_LEN, Source, Structure, Structures,
};
use core::hash::Hasher;
use core::net::{IpAddr, SocketAddr};
use etherparse::{Ipv4Header, Ipv6Header, ip_number};
use siphasher::sip128::{Hasher128, SipHasher13};

/// Where in a TCP header its length, its control bits and its checksum are.
const DATA_OFFSET: usize = 12;
const FLAGS: usize = 13;
const CHECKSUM: usize = 16;
const ACK: u8 = 0x10;
/// Where in an IPv4 header its protocol is.
const PROTOCOL_V4: usize = 9;
/// Where in a UDP header its length and its checksum are, and how long it is.
const UDP_LENGTH: usize = 4;
const UDP_CHECKSUM: usize = 6;
const UDP_LEN: usize = 8;

impl QosPacket {
    /// Whose it is, the same both ways. IPv4 fits in as it is; of IPv6 it is a hash, which `seed` keys: who chooses
    /// addresses cannot choose to be somebody else. An encrypted packet shows no ports: its flow is of one way, by both addresses and the
    /// flow label (RFC 6437 §3).
    pub fn flow_key(&self, seed: u64) -> FlowKey {
        if self.is_encrypted() {
            return encrypted_key(seed, self.source, self.destination, self.flow_label);
        }
        let (low, high) = (self.source.min(self.destination), self.source.max(self.destination));
        match (low.ip(), high.ip()) {
            (IpAddr::V4(one), IpAddr::V4(other)) => {
                let ([a, b, c, d], [e, f, g, h]) = (one.octets(), other.octets());
                let ([i, j], [k, l]) = (low.port().to_be_bytes(), high.port().to_be_bytes());
                FlowKey([a, b, c, d, i, j, e, f, g, h, k, l, self.protocol, 0, 0, 0])
            }
            _ => {
                let mut hasher = SipHasher13::new_with_keys(seed, 0x7131_3033_3976_3600);
                for end in [low, high] {
                    write_end(&mut hasher, end);
                }
                hasher.write(&[self.protocol]);
                FlowKey(hasher.finish128().as_bytes())
            }
        }
    }

    /// Whose request a response answers. An encrypted one says so by the flow label that it names.
    pub fn answered_key(&self, seed: u64, response: &Structure) -> FlowKey {
        match response.source {
            Source::V6 { flow } if self.is_encrypted() => {
                encrypted_key(seed, self.destination, self.source, flow)
            }
            _ => self.flow_key(seed),
        }
    }

    /// Whether ESP hides what it is about.
    pub fn is_encrypted(&self) -> bool {
        self.protocol == ip_number::ENCAP_SEC.0
    }

    /// Writes other structures, as many as it carries, over those that stand in `packet`, from which it was read. The checksum
    /// of TCP or UDP is made right where it is finished; one that a device will finish is left to it.
    pub fn rewrite(&self, packet: &mut [u8], structures: &Structures, finished: bool) {
        let mut written = [0; 2 * STRUCTURE_LEN];
        let place = self.place.clone();
        match self.carrier {
            Carrier::HopByHop => {
                let Ok(header) = HopByHop::decode(&packet[place.clone()]) else { return };
                HopByHop { structures: *structures, ..header }.encode(&mut written);
                // No checksum covers it (RFC 8200 §8.1).
                packet[place.clone()].copy_from_slice(&written[..place.len()]);
            }
            Carrier::Payload => {
                structures.encode_v4(&mut written);
                let header_at = usize::from(packet[0] & 0xf) * 4;
                let is_udp = self.protocol == ip_number::UDP.0;
                let at = header_at + if is_udp { UDP_CHECKSUM } else { CHECKSUM };
                let checksum = u16::from_be_bytes([packet[at], packet[at + 1]]);
                // A zero of UDP is no checksum (RFC 768).
                if finished && !(is_udp && checksum == 0) {
                    let mut sum = !checksum;
                    for (old, new) in
                        packet[place.clone()].as_chunks::<2>().0.iter().zip(written.as_chunks::<2>().0)
                    {
                        sum = add(add(sum, !u16::from_be_bytes(*old)), u16::from_be_bytes(*new));
                    }
                    let checksum = if is_udp { shown(!sum) } else { !sum };
                    packet[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
                }
                packet[place.clone()].copy_from_slice(&written[..place.len()]);
            }
        }
    }
}

/// One's complement addition (RFC 1624).
fn add(one: u16, other: u16) -> u16 {
    let (sum, carry) = one.overflowing_add(other);
    sum + u16::from(carry)
}

/// A checksum of UDP: a zero would say that there is none (RFC 768).
fn shown(checksum: u16) -> u16 {
    if checksum == 0 { u16::MAX } else { checksum }
}

fn encrypted_key(seed: u64, source: SocketAddr, destination: SocketAddr, label: u32) -> FlowKey {
    let mut hasher = SipHasher13::new_with_keys(seed, 0x7131_3033_3965_7370);
    for end in [source, destination] {
        write_end(&mut hasher, end);
    }
    hasher.write(&label.to_be_bytes());
    FlowKey(hasher.finish128().as_bytes())
}

fn write_end(hasher: &mut SipHasher13, end: SocketAddr) {
    match end.ip() {
        IpAddr::V4(address) => hasher.write(&address.octets()),
        IpAddr::V6(address) => hasher.write(&address.octets()),
    }
    hasher.write(&end.port().to_be_bytes());
}

/// The headers of a packet of TCP, or of UDP in IPv4, with this structure and nothing else behind them: what a router says to a
/// flow's receiver. `None` of anything else, and of IPv6 with extension headers of its own.
pub fn signal(packet: &[u8], structure: &Structure) -> Option<Vec<u8>> {
    let structures = Structures::one(*structure);
    match packet.first()? >> 4 {
        4 => {
            let header_at = usize::from(packet[0] & 0xf) * 4;
            if *packet.get(PROTOCOL_V4)? == ip_number::UDP.0 && header_at >= Ipv4Header::MIN_LEN {
                let mut headers = packet.get(..header_at + UDP_LEN)?.to_vec();
                append_to_udp(&mut headers, header_at, structure);
                return Some(headers);
            }
            let mut headers = headers(packet, header_at)?;
            // Refuses what is not of TCP.
            insert_v4(&mut headers, &structures).ok()?;
            Some(headers)
        }
        6 if *packet.get(6)? == ip_number::TCP.0 => {
            let mut headers = headers(packet, Ipv6Header::LEN)?;
            insert_v6(&mut headers, &structures);
            Some(headers)
        }
        _ => None,
    }
}

/// Puts a structure behind IPv4 and UDP headers that have nothing behind them, and makes lengths, codepoint and checksums right.
fn append_to_udp(packet: &mut Vec<u8>, udp_at: usize, structure: &Structure) {
    packet.extend_from_slice(&structure.encode_v4());
    finish_v4(packet, udp_at, QosMark::Signal.dscp().expect("it has one"));
    let (ip, udp) = packet.split_at_mut(udp_at);
    let len = (udp.len() as u16).to_be_bytes();
    udp[UDP_LENGTH..UDP_LENGTH + 2].copy_from_slice(&len);
    udp[UDP_CHECKSUM..UDP_CHECKSUM + 2].fill(0);
    let sum = shown(checksum(&ip[12..20], ip_number::UDP, udp));
    udp[UDP_CHECKSUM..UDP_CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
}

/// IP and TCP headers with no other control bit than ACK: a SYN or FIN would be one more of it.
fn headers(packet: &[u8], tcp_at: usize) -> Option<Vec<u8>> {
    let tcp_len = usize::from(packet.get(tcp_at + DATA_OFFSET)? >> 4) * 4;
    let mut headers = packet.get(..tcp_at + tcp_len.max(CHECKSUM + 4))?.to_vec();
    headers[tcp_at + FLAGS] = ACK;
    Some(headers)
}

/// Puts structures before the TCP header of a packet without other extension headers and without payload.
fn insert_v6(packet: &mut Vec<u8>, structures: &Structures) {
    let unnamed = |structure: &Structure| Structure { source: Source::NONE_V6, ..*structure };
    let structures =
        Structures { first: unnamed(&structures.first), second: structures.second.as_ref().map(unnamed) };
    let header = HopByHop { next_header: ip_number::TCP.0, option_type: OptionType::Tia1039, structures };
    let mut options = [0; 2 * STRUCTURE_LEN];
    let len = header.encode(&mut options);
    let tcp = &mut packet[Ipv6Header::LEN..];
    tcp[CHECKSUM..CHECKSUM + 2].fill(0);
    let sum = checksum(&packet[8..Ipv6Header::LEN], ip_number::TCP, &packet[Ipv6Header::LEN..]);
    let at = Ipv6Header::LEN + CHECKSUM;
    packet[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    packet.splice(Ipv6Header::LEN..Ipv6Header::LEN, options[..len].iter().copied());
    let payload = packet.len() - Ipv6Header::LEN;
    packet[4..6].copy_from_slice(&(payload as u16).to_be_bytes());
    packet[6] = ip_number::IPV6_HOP_BY_HOP.0;
    // The codepoint lies across the first two bytes; the two bits of ECN stay.
    let dscp = QosMark::Signal.dscp().expect("it has one");
    packet[0] = packet[0] & 0xf0 | dscp >> 2;
    packet[1] = packet[1] & 0x3f | dscp << 6;
}
