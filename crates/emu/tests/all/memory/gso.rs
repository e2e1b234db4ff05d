//! Super-packets split: the payload comes out whole, checksums are right, and nothing makes it panic.

use crate::common::{V4, V6, data, packet, payload_of, stream, super_packet};
use farpath_emu::gso::{Intake, split};
use farpath_emu::{Malformed, PartialChecksum, VirtioHeader, WirePacket};
use farpath_tcp::{Flags, Timestamps};
use proptest::prelude::*;

fn pieces(header: VirtioHeader, bytes: &[u8]) -> (Intake, Vec<WirePacket>) {
    let mut packets = Vec::new();
    let intake = split(header, bytes, |bytes, checksum| {
        let number = packets.len() as u64 + 1;
        packets.push(WirePacket::new(bytes, checksum, number));
    });
    assert_eq!(intake.packets, packets.len());
    (intake, packets)
}

fn refusal(header: VirtioHeader, bytes: &[u8]) -> Option<Malformed> {
    let (intake, packets) = pieces(header, bytes);
    assert!(packets.is_empty(), "{intake:?}");
    intake.malformed
}

proptest! {
    #[test]
    fn the_segments_are_the_whole_in_order(
        v6: bool, offset in 0u64..1 << 33, len in 1u16..60_000, mss in 500u16..9000, stamped: bool,
        flags in prop::sample::select(vec![0u8, Flags::PSH.0, Flags::FIN.0 | Flags::PSH.0, Flags::CWR.0, Flags::ECE.0]),
    ) {
        let mut segment = data(offset, len);
        segment.flags |= Flags(flags);
        segment.timestamps = stamped.then_some(Timestamps { value: 7, echo: 9 });
        let (header, bytes) = super_packet(if v6 { V6 } else { V4 }, &segment, offset, mss);
        let (intake, packets) = pieces(header, &bytes);
        prop_assert_eq!(intake.malformed, None);
        prop_assert_eq!(packets.len(), usize::from(len).div_ceil(usize::from(mss)));

        let mut next = offset;
        for (number, packet) in packets.iter().enumerate() {
            let (first, last) = (number == 0, number + 1 == packets.len());
            prop_assert!(packet.partial_checksum().is_some());
            // Complete, the strict decoder verifies lengths and both checksums.
            let mut packet = packet.clone();
            packet.finish_checksum();
            let decoded = packet.decode().expect("a sound packet");
            prop_assert_eq!(decoded.segment.seq, segment.seq.advanced_by(next - offset));
            prop_assert!(last || decoded.segment.len == mss);
            let kept = |flag: Flags, here: bool| if here { flags & flag.0 } else { 0 };
            let expected = Flags::ACK.0 | flags & Flags::ECE.0
                | kept(Flags::CWR, first) | kept(Flags::PSH, last) | kept(Flags::FIN, last);
            prop_assert_eq!(decoded.segment.flags.0, expected);
            prop_assert_eq!(decoded.ip.id, if v6 { 0 } else { number as u16 });
            prop_assert_eq!(decoded.segment.timestamps, segment.timestamps);
            prop_assert_eq!(payload_of(packet.bytes()), &stream(next, decoded.payload.len())[..]);
            next += decoded.payload.len() as u64;
        }
        prop_assert_eq!(next, offset + u64::from(len));
    }

    /// Whatever the bytes and the header say: no panic, and either packets or a kind.
    #[test]
    fn nothing_makes_it_panic(
        mut bytes in prop::collection::vec(any::<u8>(), 0..300), version in 0u8..4, flags: u8,
        gso_type in prop::sample::select(vec![0u8, 1, 3, 4, 5, 0x81, 0x84]), numbers: [u16; 4],
    ) {
        if let Some(first) = bytes.first_mut() {
            *first = [0x45, 0x60, 0x4f, *first][usize::from(version)];
        }
        let [header_len, gso_size, checksum_start, checksum_offset] = numbers;
        let header = VirtioHeader { flags, gso_type, header_len, gso_size, checksum_start, checksum_offset };
        check(header, &bytes)?;
    }

    /// The same with packets that were sound before some bytes of them were changed.
    #[test]
    fn changed_super_packets_are_split_or_refused(
        v6: bool, mss in 0u16..3, cut in 0usize..4,
        changes in prop::collection::vec((0usize..60, any::<u8>()), 1..4),
    ) {
        let segment = data(5, 700);
        let (header, mut bytes) = super_packet(if v6 { V6 } else { V4 }, &segment, 5, mss * 300);
        for (place, value) in changes {
            bytes[place] = value;
        }
        bytes.truncate(bytes.len() - cut);
        check(header, &bytes)?;
    }
}

fn check(header: VirtioHeader, bytes: &[u8]) -> Result<(), TestCaseError> {
    let (intake, packets) = pieces(header, bytes);
    prop_assert_eq!(packets.is_empty(), intake.malformed.is_some_and(|kind| !passes(kind, header)));
    for packet in packets {
        prop_assert!(packet.bytes().len() <= bytes.len());
        let _ = (packet.decode(), packet.finished());
    }
    Ok(())
}

fn passes(kind: Malformed, header: VirtioHeader) -> bool {
    kind.passes() && header.gso_type == VirtioHeader::GSO_NONE
}

#[test]
fn a_lone_packet_passes_as_it_is() {
    let whole = packet(V4, &data(0, 100), 0);
    let (intake, packets) = pieces(VirtioHeader::default(), &whole);
    assert_eq!(intake, Intake { malformed: None, other_protocol: false, packets: 1 });
    assert_eq!((packets[0].bytes(), packets[0].partial_checksum()), (&whole[..], None));

    let header = VirtioHeader {
        flags: VirtioHeader::NEEDS_CHECKSUM,
        checksum_start: 20,
        checksum_offset: 16,
        ..VirtioHeader::default()
    };
    let (_, packets) = pieces(header, &whole);
    assert_eq!(packets[0].partial_checksum(), Some(PartialChecksum { start: 20, offset: 16 }));
}

#[test]
fn a_super_packet_of_one_segment_is_one() {
    for len in [0, 1, 1448] {
        let (header, bytes) = super_packet(V4, &data(0, len), 0, 1448);
        assert_eq!(pieces(header, &bytes).1.len(), 1);
    }
}

#[test]
fn each_fault_has_its_kind() {
    let (header, bytes) = super_packet(V4, &data(0, 3000), 0, 1000);
    let changed = |place: usize, value: u8| {
        let mut bytes = bytes.clone();
        bytes[place] = value;
        bytes
    };
    assert_eq!(refusal(header, &[]), Some(Malformed::IpHeader));
    assert_eq!(refusal(header, &bytes[..19]), Some(Malformed::IpHeader));
    assert_eq!(refusal(header, &changed(0, 0x95)), Some(Malformed::IpHeader));
    assert_eq!(refusal(header, &changed(0, 0x44)), Some(Malformed::IpHeader));
    assert_eq!(refusal(header, &bytes[..2999]), Some(Malformed::Length));
    assert_eq!(refusal(header, &changed(6, 0x20)), Some(Malformed::Fragment));
    assert_eq!(refusal(header, &changed(7, 0x01)), Some(Malformed::Fragment));
    assert_eq!(refusal(header, &changed(9, 17)), Some(Malformed::Gso), "UDP");
    assert_eq!(refusal(header, &changed(32, 0x40)), Some(Malformed::TcpHeader));
    let header_with = |change: fn(&mut VirtioHeader)| {
        let mut header = header;
        change(&mut header);
        header
    };
    assert_eq!(refusal(header_with(|header| header.gso_size = 0), &bytes), Some(Malformed::Gso));
    assert_eq!(
        refusal(header_with(|header| header.gso_type = 4), &bytes),
        Some(Malformed::Gso),
        "IPv4 as IPv6"
    );
    assert_eq!(refusal(header_with(|header| header.gso_type = 5), &bytes), Some(Malformed::Gso), "UDP's");
    assert_eq!(
        refusal(header_with(|header| header.checksum_start = 4000), &bytes),
        Some(Malformed::Checksum)
    );

    let (header, bytes) = super_packet(V6, &data(0, 3000), 0, 1000);
    let changed = |place: usize, value: u8| {
        let mut bytes = bytes.clone();
        bytes[place] = value;
        bytes
    };
    assert_eq!(refusal(header, &changed(6, 44)), Some(Malformed::Fragment));
    assert_eq!(refusal(header, &changed(6, 0)), Some(Malformed::ExtensionHeader));
    let mut jumbo = bytes.clone();
    jumbo[4..6].fill(0);
    assert_eq!(refusal(header, &jumbo), Some(Malformed::Length));
}

#[test]
fn what_is_odd_but_a_packet_passes_and_is_counted() {
    let whole = packet(V4, &data(0, 100), 0);
    let changed = |place: usize, value: u8| {
        let mut bytes = whole.clone();
        bytes[place] = value;
        pieces(VirtioHeader::default(), &bytes).0
    };
    let passed = |kind| Intake { malformed: Some(kind), other_protocol: false, packets: 1 };
    assert_eq!(changed(6, 0x20), passed(Malformed::Fragment));
    assert_eq!(changed(3, 7), passed(Malformed::Length));
    assert_eq!(changed(32, 0xf0), Intake { malformed: None, other_protocol: false, packets: 1 }, "60 B fit");
    assert_eq!(changed(32, 0x10), passed(Malformed::TcpHeader));
    assert_eq!(changed(9, 1), Intake { malformed: None, other_protocol: true, packets: 1 }, "ICMP");
    assert_eq!(changed(0, 0x25).malformed, Some(Malformed::IpHeader));
    assert_eq!(changed(0, 0x25).packets, 0);
}
