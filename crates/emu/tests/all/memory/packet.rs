//! One packet: its size, its mark of congestion, its checksum.

use crate::common::{V4, V6, data, packet};
use farpath_emu::{PartialChecksum, WirePacket};
use farpath_path::PathPacket;
use farpath_tcp::{Ecn, Flags, Segment, Seq};
use farpath_units::Bytes;

#[test]
fn size_and_payload_are_those_of_the_ip_packet() {
    for (ends, headers) in [(V4, 40), (V6, 60)] {
        let with_data = WirePacket::new(packet(ends, &data(0, 100), 0), None, 1);
        assert_eq!((with_data.wire_size(), with_data.carries_data()), (Bytes(headers + 100), true));
        let ack = WirePacket::new(packet(ends, &data(0, 0), 0), None, 1);
        assert_eq!((ack.wire_size(), ack.carries_data()), (Bytes(headers), false));
    }
    for other in [&[][..], &[0x45], &[0xff; 100]] {
        assert!(!WirePacket::new(other.to_vec(), None, 1).carries_data());
    }
}

#[test]
fn only_ecn_capable_packets_are_marked_and_checksums_stay_right() {
    for ends in [V4, V6] {
        for (ecn, marked) in [(Ecn::NotEct, false), (Ecn::Ect0, true), (Ecn::Ect1, true), (Ecn::Ce, false)] {
            let mut segment = data(0, 10);
            segment.ecn = ecn;
            let mut packet = WirePacket::new(packet(ends, &segment, 0), None, 1);
            assert_eq!(packet.mark_ce(), marked, "{ecn:?}");
            let found = packet.decode().expect("right checksums").segment.ecn;
            assert_eq!(found, if marked { Ecn::Ce } else { ecn });
        }
    }
    for other in [&[][..], &[0x45], &[0x45, 2, 3], &[0xff; 100]] {
        assert!(!WirePacket::new(other.to_vec(), None, 1).mark_ce());
    }
}

#[test]
fn a_partial_checksum_is_finished_once() {
    for (ends, tcp_at) in [(V4, 20), (V6, 40)] {
        let whole = packet(ends, &data(3, 101), 3);
        let mut bytes = whole.clone();
        // The complement of the whole sum is what the rest adds up to; without it the pseudo-header's sum is left.
        let segment_sum = ones_sum(&whole[tcp_at..]);
        let field = u16::from_be_bytes([whole[tcp_at + 16], whole[tcp_at + 17]]);
        let rest = ones_sub(segment_sum, field);
        let pseudo_header = ones_sub(!field, rest);
        bytes[tcp_at + 16..tcp_at + 18].copy_from_slice(&pseudo_header.to_be_bytes());
        let partial = PartialChecksum { start: tcp_at as u16, offset: 16 };
        let mut packet = WirePacket::new(bytes.clone(), Some(partial), 9);
        assert_eq!(packet.decode().expect("read all the same").segment, data(3, 101));
        assert_eq!(packet.finished()[..], whole);
        assert_eq!(packet.bytes(), bytes, "asking changes nothing");
        packet.finish_checksum();
        packet.finish_checksum();
        assert_eq!((packet.bytes(), packet.partial_checksum(), packet.number()), (&whole[..], None, 9));
    }
}

#[test]
fn a_wrong_complete_checksum_is_found() {
    let mut bytes = packet(V4, &Segment::new(Flags::ACK, Seq(1), Seq(2)), 0);
    bytes[25] ^= 1;
    assert!(WirePacket::new(bytes, None, 1).decode().is_err());
}

fn ones_sum(bytes: &[u8]) -> u16 {
    let words =
        bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u32::from(low)));
    words.fold(0, |sum, word| ((sum + word) & 0xffff) + ((sum + word) >> 16)) as u16
}

fn ones_sub(from: u16, what: u16) -> u16 {
    let sum = u32::from(from) + u32::from(!what);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

#[test]
fn routers_take_one_off_the_ttl_each_and_checksums_stay_right() {
    for ends in [V4, V6] {
        for (routers, left) in [(0, 64), (1, 63), (63, 1), (64, 0), (300, 0)] {
            let mut packet = WirePacket::new(packet(ends, &data(0, 10), 0), None, 1);
            assert_eq!(packet.pass_routers(routers), left > 0, "{routers}");
            assert_eq!(packet.decode().expect("right checksums").ip.ttl, left, "{routers}");
        }
    }
    // What has no such field passes.
    for other in [&[][..], &[0x45], &[0x60, 0, 0], &[0xff; 100]] {
        assert!(WirePacket::new(other.to_vec(), None, 1).pass_routers(255));
    }
}
