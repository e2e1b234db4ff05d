//! What a router does to the bytes of a packet: whose it is, structures in place of others, packets of its own.

use core::net::SocketAddr;
use farpath_tcp::{Flags, Segment, Seq, wire};
use farpath_tia1039::router::FlowKey;
use farpath_tia1039::{
    Carrier, HopByHop, OptionType, PacketError, QosMark, QosPacket, RateWord, Source, Structure, Structures,
    insert_v4, signal,
};

const V4: [&str; 2] = ["10.8.0.1:59286", "10.8.0.2:7000"];
const V6: [&str; 2] = ["[fd00::1]:50000", "[fd00::2]:7000"];

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

fn tcp(from: &str, to: &str, flags: Flags, len: u16) -> Vec<u8> {
    let mut packet = Vec::new();
    let segment = Segment { len, window: 500, mss: Some(1460), ..Segment::new(flags, Seq(7), Seq(9)) };
    let ip = wire::IpFields { dscp: 7, ..wire::IpFields::default() };
    wire::encode(address(from), address(to), &ip, &segment, 0, &mut packet).expect("it fits");
    packet
}

/// A UDP packet of IPv4 with this payload, and without a checksum (RFC 768).
fn udp(from: &str, to: &str, dscp: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = tcp(from, to, Flags::ACK, 0);
    packet.truncate(20);
    packet[1] = dscp << 2;
    packet[9] = 17;
    let ports = [address(from).port(), address(to).port()].map(u16::to_be_bytes).concat();
    packet.extend_from_slice(&ports);
    packet.extend_from_slice(&(8 + payload.len() as u16).to_be_bytes());
    packet.extend_from_slice(&[0, 0]);
    packet.extend_from_slice(payload);
    let total = packet.len() as u16;
    packet[2..4].copy_from_slice(&total.to_be_bytes());
    packet
}

/// What ESP hides, from ::`from` to ::`to`, behind options with these structures.
fn encrypted(from: u8, to: u8, label: u32, structures: &Structures) -> Vec<u8> {
    let header = HopByHop { next_header: 50, option_type: OptionType::Tia1039, structures: *structures };
    let mut options = [0; 32];
    let len = header.encode(&mut options);
    let mut packet = (6_u32 << 28 | label).to_be_bytes().to_vec();
    packet.extend_from_slice(&(len as u16 + 16).to_be_bytes());
    packet.extend_from_slice(&[0, 64]);
    for end in [from, to] {
        packet.extend_from_slice(&[0; 15]);
        packet.push(end);
    }
    packet.extend_from_slice(&options[..len]);
    packet.extend_from_slice(&[0xa5; 16]);
    packet
}

fn read(packet: &[u8]) -> QosPacket {
    QosPacket::decode(packet).expect("a packet")
}

fn request(bits: u16) -> Structure {
    Structure::request(RateWord::from_bits(bits))
}

#[test]
fn a_flow_of_ipv4_is_its_addresses_ports_and_protocol_both_ways() {
    let key = FlowKey([10, 8, 0, 1, 0xe7, 0x96, 10, 8, 0, 2, 0x1b, 0x58, 6, 0, 0, 0]);
    assert_eq!(read(&tcp(V4[0], V4[1], Flags::ACK, 0)).flow_key(1), key);
    assert_eq!(read(&tcp(V4[1], V4[0], Flags::SYN, 0)).flow_key(2), key);
    let udp = read(&udp(V4[0], V4[1], 0, &[1, 2, 3]));
    assert_eq!((udp.protocol, udp.source, udp.destination), (17, address(V4[0]), address(V4[1])));
    assert_eq!(udp.flow_key(1), FlowKey([10, 8, 0, 1, 0xe7, 0x96, 10, 8, 0, 2, 0x1b, 0x58, 17, 0, 0, 0]));
}

#[test]
fn a_flow_of_ipv6_is_a_hash_that_a_seed_keys() {
    let key = |from, to, seed| read(&tcp(from, to, Flags::ACK, 0)).flow_key(seed);
    let one = key(V6[0], V6[1], 1);
    assert_eq!(one, key(V6[1], V6[0], 1));
    for other in [
        key(V6[0], V6[1], 2),
        key("[fd00::1]:50001", V6[1], 1),
        key("[fd00::3]:50000", V6[1], 1),
        key(V6[0], "[fd00::2]:7001", 1),
    ] {
        assert_ne!(one, other);
    }
}

#[test]
fn what_is_encrypted_is_of_one_way_and_of_its_flow_label() {
    let structures = Structures::one(request(0x5da9));
    let packet = |from, to, label| read(&encrypted(from, to, label, &structures));
    let there = packet(1, 2, 77);
    assert!(there.is_encrypted() && !read(&tcp(V6[0], V6[1], Flags::ACK, 0)).is_encrypted());
    assert_eq!((there.protocol, there.flow_label, there.source.port()), (50, 77, 0));
    let key = there.flow_key(1);
    assert_eq!(key, packet(1, 2, 77).flow_key(1));
    for other in [packet(2, 1, 77), packet(1, 2, 78), packet(1, 3, 77)] {
        assert_ne!(key, other.flow_key(1));
    }
    assert_ne!(key, there.flow_key(2));
    // A response comes back with a label of its own, and names that of the request.
    let back = packet(2, 1, 5);
    let response = Structure { source: Source::V6 { flow: 77 }, ..request(0x5da9) };
    assert_eq!(back.answered_key(1, &response), key);
    let unnamed = Structure { source: Source::NONE_V4, ..response };
    assert_eq!(back.answered_key(1, &unnamed), back.flow_key(1));
    // Whoever shows ports is answered by them.
    let shown = read(&tcp(V6[1], V6[0], Flags::ACK, 0));
    assert_eq!(shown.answered_key(1, &response), shown.flow_key(1));
}

#[test]
fn structures_are_written_where_they_stood_and_the_checksum_is_made_right() {
    for second in [None, Some(request(0x610d))] {
        let mut packet = tcp(V4[0], V4[1], Flags::SYN | Flags::ACK, 0);
        insert_v4(&mut packet, &Structures { first: request(0x610d), second }).expect("a packet");
        // Words with many bits, so that additions carry.
        for bits in [0x4001, 0x5da9, 0x7fff] {
            let lowered = Structures { first: request(bits).marked(), second: second.map(|_| request(bits)) };
            let before = packet.clone();
            let place = read(&packet).place;
            read(&before).rewrite(&mut packet, &lowered, true);
            assert_eq!(read(&packet).structures, Some(lowered));
            wire::decode(&packet).expect("right checksums");
            // Nothing else is another.
            let mut rest = [before.clone(), packet.clone()];
            for bytes in &mut rest {
                bytes[place.clone()].fill(0);
                bytes[36..38].fill(0);
            }
            assert_eq!(rest[0], rest[1]);
            // Where a device will finish it, it stays as it was.
            let mut unfinished = before.clone();
            read(&before).rewrite(&mut unfinished, &lowered, false);
            assert_eq!(unfinished[36..38], before[36..38]);
            assert_eq!(unfinished[place.clone()], packet[place]);
        }
    }
}

/// The checksum of a UDP packet of IPv4 without options, by the definition: the pseudo header, the header and the payload (RFC 768).
fn udp_checksum(packet: &[u8]) -> u16 {
    let udp = &packet[20..];
    let pseudo =
        [&packet[12..20], &[0, 17], &(udp.len() as u16).to_be_bytes(), &udp[..6], &[0, 0], &udp[8..]]
            .concat();
    let words = pseudo.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    if sum == 0xffff { 0xffff } else { !(sum as u16) }
}

fn datagram_with(structure: Structure, checksum: bool) -> Vec<u8> {
    let mut packet = udp(V4[0], V4[1], QosMark::Signal.dscp().expect("it has one"), &structure.encode_v4());
    if checksum {
        let sum = udp_checksum(&packet).to_be_bytes();
        packet[26..28].copy_from_slice(&sum);
    }
    packet
}

#[test]
fn structures_of_a_datagram_are_written_with_its_checksum_or_without_one() {
    // Words with many bits, so that additions carry.
    for bits in [0x4001, 0x5da9, 0x7fff] {
        for (checksum, finished) in [(false, true), (true, true), (true, false)] {
            let mut packet = datagram_with(request(0x610d), checksum);
            let before = packet.clone();
            let lowered = Structures::one(request(bits).marked());
            read(&before).rewrite(&mut packet, &lowered, finished);
            assert_eq!(read(&packet).structures, Some(lowered));
            assert_eq!(packet[..26], before[..26]);
            if checksum && finished {
                assert_eq!(u16::from_be_bytes([packet[26], packet[27]]), udp_checksum(&packet));
            } else {
                assert_eq!(packet[26..28], before[26..28]);
            }
        }
    }
}

#[test]
fn a_checksum_of_udp_that_is_zero_is_shown_as_all_ones() {
    // Of all the words of a rate one brings the sum to zero.
    let sums = (0x4000..0x8000).map(|bits| {
        let mut packet = datagram_with(request(0x610d), true);
        let before = packet.clone();
        read(&before).rewrite(&mut packet, &Structures::one(request(bits)), true);
        assert_eq!(u16::from_be_bytes([packet[26], packet[27]]), udp_checksum(&packet));
        udp_checksum(&packet)
    });
    assert!(sums.min() > Some(0));
}

#[test]
fn options_are_written_where_they_stood() {
    let mut packet = encrypted(1, 2, 77, &Structures::two(request(0x610d), request(0x610e)));
    let before = packet.clone();
    let lowered = Structures::two(request(0x5da9), request(0x5daa));
    read(&before).rewrite(&mut packet, &lowered, true);
    let carried = read(&packet).structures.expect("structures");
    assert_eq!(
        (carried.first.available.bits(), carried.second.expect("two").available.bits()),
        (0x5da9, 0x5daa)
    );
    assert_eq!((&packet[..40], &packet[72..]), (&before[..40], &before[72..]));
}

#[test]
fn what_a_router_says_is_the_headers_of_the_packet_with_one_structure() {
    for (ends, place, carrier) in [(V4, 44..60, Carrier::Payload), (V6, 40..56, Carrier::HopByHop)] {
        let mut packet = tcp(ends[0], ends[1], Flags::SYN | Flags::ACK | Flags::FIN | Flags::PSH, 100);
        // The two bits of ECN are those of the packet.
        let at = if carrier == Carrier::Payload { 1 } else { 0 };
        if at == 1 {
            packet[1] |= 2;
        } else {
            packet[1] |= 2 << 4;
        }
        let said = signal(&packet, &request(0x5da9)).expect("a TCP packet");
        let told = read(&said);
        assert_eq!((told.carrier, told.place.clone(), told.mark), (carrier, place, QosMark::Signal));
        assert_eq!((told.source, told.destination), (address(ends[0]), address(ends[1])));
        let structures = told.structures.expect("structures");
        assert_eq!((structures.count(), structures.first.available.bits()), (1, 0x5da9));
        let tos = if at == 1 { said[1] } else { said[0] << 4 | said[1] >> 4 };
        assert_eq!((tos >> 2, tos & 3), (3, 2));
        let decoded = wire::decode(&said).expect("right checksums and lengths").segment;
        assert_eq!((decoded.flags, decoded.seq, decoded.ack), (Flags::ACK, Seq(7), Seq(9)));
        assert_eq!(usize::from(decoded.len), if at == 1 { 16 } else { 0 });
        assert_eq!(decoded.mss, Some(1460), "its options too");
        // In IPv6 a structure of a router names no flow.
        if at == 0 {
            assert_eq!(structures.first.source, Source::NONE_V6);
        }
    }
}

#[test]
fn what_a_router_says_behind_a_datagram_is_a_datagram() {
    for len in [0, 1, 40, 1472] {
        let mut packet = udp(V4[0], V4[1], QosMark::Flow.dscp().expect("it has one"), &vec![7; len]);
        packet[1] |= 1;
        let said = signal(&packet, &request(0x5da9)).expect("a UDP packet");
        let told = read(&said);
        assert_eq!((told.source, told.destination, told.protocol), (address(V4[0]), address(V4[1]), 17));
        assert_eq!((told.mark, told.structures), (QosMark::Signal, Some(Structures::one(request(0x5da9)))));
        assert_eq!((said.len(), said[1] & 3), (44, 1));
        assert_eq!(u16::from_be_bytes([said[24], said[25]]), 24);
        assert_eq!(u16::from_be_bytes([said[26], said[27]]), udp_checksum(&said));
        assert_eq!(read(&said).flow_key(1), read(&packet).flow_key(1));
    }
    let packet = udp(V4[0], V4[1], 0, &[]);
    for len in 0..28 {
        assert_eq!(signal(&packet[..len], &request(0x5da9)), None, "{len} bytes");
    }
    // A header that says to be shorter than it can be.
    let mut short = packet;
    short[0] = 0x40;
    assert_eq!(signal(&short, &request(0x5da9)), None);
}

#[test]
fn only_a_whole_tcp_header_is_answered() {
    for ends in [V4, V6] {
        let packet = tcp(ends[0], ends[1], Flags::ACK, 10);
        let headers = packet.len() - 10;
        assert!(signal(&packet[..headers], &request(0x5da9)).is_some());
        for len in 0..headers {
            assert_eq!(signal(&packet[..len], &request(0x5da9)), None, "{len} bytes");
        }
    }
    assert_eq!(signal(&encrypted(1, 2, 77, &Structures::one(request(1))), &request(0x5da9)), None);
    // Neither is IPv4 nor IPv6.
    let mut other = tcp(V4[0], V4[1], Flags::ACK, 10);
    other[0] = 0x55;
    assert_eq!(signal(&other, &request(0x5da9)), None);
}

#[test]
fn what_is_too_short_for_a_checksum_of_tcp_stays_as_it_is() {
    let whole = tcp(V4[0], V4[1], Flags::ACK, 0);
    for (len, fits) in (20..=38).map(|len| (len, len == 38)) {
        let mut packet = whole[..len].to_vec();
        packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
        let before = packet.clone();
        let inserted = insert_v4(&mut packet, &Structures::one(request(0x5da9)));
        assert_eq!((inserted.is_ok(), packet == before), (fits, !fits), "{len} bytes");
    }
}

#[test]
fn a_tcp_header_that_says_less_than_20_bytes_is_taken_for_20() {
    for (ends, at) in [(V4, 20), (V6, 40)] {
        let mut packet = tcp(ends[0], ends[1], Flags::ACK, 10);
        packet[at + 12] = 0;
        let said = signal(&packet, &request(0x5da9)).expect("a TCP packet");
        assert_eq!(said.len(), at + 20 + 16);
    }
}

#[test]
fn only_encrypted_packets_of_ipv6_show_no_ports() {
    // ESP (50) in IPv4, ICMPv6 (58) in IPv6.
    let mut v4 = udp(V4[0], V4[1], 0, &[0; 8]);
    v4[9] = 50;
    assert_eq!(QosPacket::decode(&v4), Err(PacketError::Protocol(50)));
    let mut v6 = encrypted(1, 2, 77, &Structures::one(request(0x5da9)));
    v6[40] = 58;
    assert_eq!(QosPacket::decode(&v6), Err(PacketError::Protocol(58)));
}

#[test]
fn options_are_looked_for_in_an_options_header_of_ipv6_only() {
    // What stands behind the addresses looks like options of 8 bytes, the first of which has a type of ours: ports 0xc300 and
    // 0x2000 here, data there.
    let v6 = tcp("[fd00::1]:49920", "[fd00::2]:8192", Flags::ACK, 0);
    let mut v4 = udp(V4[0], V4[1], 0, &[0; 40]);
    v4[42] = 0x20;
    for packet in [v6, v4] {
        assert_eq!(read(&packet).structures, None);
    }
}
