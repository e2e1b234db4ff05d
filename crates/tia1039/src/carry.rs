//! Structures into an IPv4 packet of TCP, and out of it again, with lengths and checksums right.

use crate::{PacketError, QosMark, QosPacket, STRUCTURE_LEN, Structures};
use etherparse::checksum::Sum16BitWords;
use etherparse::{IpNumber, Ipv4HeaderSlice, ip_number};

/// Where in a TCP header its checksum is.
const TCP_CHECKSUM: usize = 16;

/// Puts structures behind a TCP packet without payload: a handshake segment, or a pure ACK. It is marked QoSSignal.
///
/// They count in no sequence space: who takes them out again ([`strip_v4`]) leaves the packet as TCP made it.
///
/// # Errors
/// What is no IPv4 packet of TCP.
pub fn insert_v4(packet: &mut Vec<u8>, structures: &Structures) -> Result<(), PacketError> {
    let mut bytes = [0; 2 * STRUCTURE_LEN];
    let len = structures.encode_v4(&mut bytes);
    let dscp = QosMark::Signal.dscp().expect("it has one");
    // Refused before anything is changed.
    header_len(packet)?;
    packet.extend_from_slice(&bytes[..len]);
    finish(packet, dscp)
}

/// Takes the structures out of a packet that is marked QoSSignal. `None`, and nothing is changed, where there are none.
///
/// # Errors
/// What is no IPv4 packet of TCP, and a signal that carries no structures.
pub fn strip_v4(packet: &mut Vec<u8>) -> Result<Option<Structures>, PacketError> {
    header_len(packet)?;
    let read = QosPacket::decode(packet)?;
    if read.structures.is_some() {
        packet.truncate(read.place.start);
        finish(packet, 0)?;
    }
    Ok(read.structures)
}

/// Length of the IP header.
fn header_len(packet: &[u8]) -> Result<usize, PacketError> {
    let header = Ipv4HeaderSlice::from_slice(packet).map_err(|_| PacketError::Header)?;
    if header.protocol() != ip_number::TCP {
        return Err(PacketError::Protocol(header.protocol().0));
    }
    let len = header.slice().len();
    if packet.len() < len + TCP_CHECKSUM + 2 { Err(PacketError::Header) } else { Ok(len) }
}

/// Length, codepoint (the ECN field stays) and both checksums of an IPv4 packet of TCP.
fn finish(packet: &mut [u8], dscp: u8) -> Result<(), PacketError> {
    let ip_len = header_len(packet)?;
    let actual = packet.len();
    if actual > usize::from(u16::MAX) {
        return Err(PacketError::Length { stated: usize::from(u16::MAX), actual });
    }
    finish_v4(packet, ip_len, dscp);
    let (ip, tcp) = packet.split_at_mut(ip_len);
    tcp[TCP_CHECKSUM..TCP_CHECKSUM + 2].fill(0);
    let sum = checksum(&ip[12..20], ip_number::TCP, tcp);
    tcp[TCP_CHECKSUM..TCP_CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
    Ok(())
}

/// The checksum of TCP or UDP over the pseudo header (RFC 9293 §3.1, RFC 768, RFC 8200 §8.1): both addresses, and the whole of what stands
/// behind the IP header, its checksum zero.
pub(crate) fn checksum(addresses: &[u8], protocol: IpNumber, segment: &[u8]) -> u16 {
    let sum = Sum16BitWords::new()
        .add_slice(addresses)
        .add_2bytes([0, protocol.0])
        .add_2bytes((segment.len() as u16).to_be_bytes())
        .add_slice(segment);
    sum.ones_complement().to_be()
}

/// Length, codepoint (the ECN field stays) and checksum of an IPv4 header of `ip_len` bytes, of a packet that its length field can say.
pub(crate) fn finish_v4(packet: &mut [u8], ip_len: usize, dscp: u8) {
    let len = packet.len() as u16;
    packet[1] = dscp << 2 | packet[1] & 0b11;
    packet[2..4].copy_from_slice(&len.to_be_bytes());
    packet[10..12].fill(0);
    let header = Sum16BitWords::new().add_slice(&packet[..ip_len]).ones_complement().to_be();
    packet[10..12].copy_from_slice(&header.to_be_bytes());
}
