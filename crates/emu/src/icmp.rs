//! What a router says of a packet that it does not pass on.

use crate::checksum;
use crate::headers::{IPV4_LEN, ipv4};
use farpath_elements::{ElementSpec, Oversize};
use farpath_path::DropCause;

const PROTOCOL_ICMP: u8 = 1;
const DESTINATION_UNREACHABLE: u8 = 3;
/// Codes of it (RFC 792).
const NETWORK: u8 = 0;
const FRAGMENTATION_NEEDED: u8 = 4;
/// Types that ask and answer; all others tell of errors.
const QUERIES: [u8; 8] = [0, 8, 9, 10, 13, 14, 15, 16];
const ICMP_LEN: usize = 8;
/// Bytes of the packet behind its IP header that come back with it (RFC 792).
const QUOTED: usize = 8;

/// The MTU that a path tells of; `None` where it tells of none.
pub(crate) fn told_mtu(path: &[ElementSpec]) -> Option<u16> {
    let mtu = |element: &ElementSpec| {
        element.spec().mtu().filter(|&(_, oversize)| oversize == Oversize::Icmp).map(|(mtu, _)| mtu.0)
    };
    path.iter().filter_map(mtu).min().map(|mtu| mtu.min(u16::MAX.into()) as u16)
}

/// What is told of a packet that was dropped for this cause, where its sender is told at all: "fragmentation needed" with the next hop's MTU
/// (RFC 1191 §3) where the path tells of one, or "network unreachable" (RFC 792).
pub(crate) fn message(cause: DropCause, told_mtu: Option<u16>, packet: &[u8]) -> Option<Vec<u8>> {
    match cause {
        DropCause::Mtu => unreachable(packet, FRAGMENTATION_NEEDED, told_mtu?),
        DropCause::Unreachable => unreachable(packet, NETWORK, 0),
        _ => None,
    }
}

/// "Destination unreachable" to who sent this packet and as if from where it went, as the routers of a path have no address. Nothing for what
/// is not IPv4.
fn unreachable(packet: &[u8], code: u8, mtu: u16) -> Option<Vec<u8>> {
    let first = *packet.first()?;
    let header_len = usize::from(first & 0x0f) * 4;
    if first >> 4 != 4 || header_len < IPV4_LEN || packet.len() < header_len + QUOTED {
        return None;
    }
    // Of an error there is no error, nor of a fragment that is not the first (RFC 1122 section 3.2.2).
    let is_error = packet[ipv4::PROTOCOL] == PROTOCOL_ICMP && !QUERIES.contains(&packet[header_len]);
    let offset = u16::from_be_bytes([packet[6], packet[7]]) & 0x1fff;
    if is_error || offset > 0 {
        return None;
    }
    let mut message = vec![0; IPV4_LEN + ICMP_LEN];
    message.extend(&packet[..header_len + QUOTED]);
    let len = message.len() as u16;
    let (header, icmp) = message.split_at_mut(IPV4_LEN);
    header[0] = 0x45;
    header[ipv4::TOTAL_LEN].copy_from_slice(&len.to_be_bytes());
    header[8] = 64;
    header[ipv4::PROTOCOL] = PROTOCOL_ICMP;
    let (source, destination) = packet[ipv4::ADDRESSES].split_at(4);
    header[ipv4::ADDRESSES].copy_from_slice(&[destination, source].concat());
    let sum = !checksum::sum(header);
    header[ipv4::CHECKSUM].copy_from_slice(&sum.to_be_bytes());
    icmp[0] = DESTINATION_UNREACHABLE;
    icmp[1] = code;
    icmp[6..8].copy_from_slice(&mtu.to_be_bytes());
    let sum = !checksum::sum(icmp);
    icmp[2..4].copy_from_slice(&sum.to_be_bytes());
    Some(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_sent_it_is_told_with_what_it_sent() {
        let mut packet = vec![0x45, 0, 5, 220, 0, 1, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet.extend(0..100);
        let told = message(DropCause::Mtu, Some(576), &packet).expect("it is IPv4");
        assert_eq!(told.len(), 56);
        assert_eq!((&told[12..16], &told[16..20]), (&[10, 0, 0, 2][..], &[10, 0, 0, 1][..]));
        assert_eq!((told[20], told[21], &told[26..28]), (3, 4, &576u16.to_be_bytes()[..]));
        assert_eq!(&told[28..], &packet[..28]);
        // Sums over what has its checksum in it (RFC 1071 §1).
        assert_eq!((checksum::sum(&told[..20]), checksum::sum(&told[20..])), (0xffff, 0xffff));
        assert_eq!(message(DropCause::Mtu, Some(576), &[0x60; 60]), None);
        // Of a message of this kind, and of the rest of a packet, nothing is told.
        assert_eq!(message(DropCause::Unreachable, None, &told), None);
        let mut rest = packet.clone();
        rest[7] = 1;
        assert_eq!(message(DropCause::Unreachable, None, &rest), None);
        let told = message(DropCause::Unreachable, None, &packet).expect("it is IPv4");
        assert_eq!((told[20], told[21], &told[26..28]), (3, 0, &[0, 0][..]));
    }
}
