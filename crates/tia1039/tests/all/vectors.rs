//! Structures and packets as they were captured on the wire.

use core::net::Ipv4Addr;
use farpath_tia1039::{
    BurstTolerance, Carrier, DecodeError, HopByHop, Message, OptionType, PacketError, Priority, QosMark,
    QosPacket, RateUnit, RateWord, Source, Structure, Structures, insert_v4, strip_v4,
};

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(core::str::from_utf8(pair).expect("ASCII"), 16).expect("hex");
    digits.chunks(2).map(byte).collect()
}

fn structures(hex: &str) -> Structures {
    Structures::decode_v4(&bytes(hex)).expect("a captured structure")
}

fn encoded(structures: &Structures) -> Vec<u8> {
    let mut buffer = [0; 32];
    let len = structures.encode_v4(&mut buffer);
    buffer[..len].to_vec()
}

fn v4(address: [u8; 4], port: u16) -> Source {
    Source::V4 { address: Ipv4Addr::from(address), port }
}

const SYN: &str = "00000000 610d 0000 80 80 10 05 0010 0000";
const SYN_BEHIND_THE_ROUTER: &str = "00000000 5da9 0000 80 80 10 05 0011 0000";
const SYN_ACK: &str = "0a090001 5da9 0000 80 80 20 05 0011 a052  00000000 610d 0000 80 80 10 05 0010 0000";
const ACK: &str = "0a090002 5aee 0000 80 80 20 05 0011 1389";

#[test]
fn the_captured_handshake_is_what_this_codec_writes() {
    let unit = RateUnit::KbitPerS;
    let syn = Structure::request(RateWord::from_bits(0x610d));
    assert_eq!(unit.decode(syn.available), 99_968_000);
    assert_eq!((syn.preemption, syn.burst), (Priority::MIDDLE, BurstTolerance::new(5).expect("a code")));
    assert_eq!(syn.encode_v4().to_vec(), bytes(SYN));

    let lowered = Structure { available: RateWord::from_bits(0x5da9), ..syn }.marked();
    assert_eq!(lowered.encode_v4().to_vec(), bytes(SYN_BEHIND_THE_ROUTER));

    let answer = Structures::two(lowered.response(v4([10, 9, 0, 1], 0xa052)), syn);
    assert_eq!(encoded(&answer), bytes(SYN_ACK));

    let back = Structure { available: RateWord::from_bits(0x5aee), ..syn }.marked();
    let ack = back.response(v4([10, 9, 0, 2], 0x1389));
    assert_eq!(encoded(&Structures::one(ack)), bytes(ACK));

    for text in [SYN, SYN_BEHIND_THE_ROUTER, SYN_ACK, ACK] {
        assert_eq!(encoded(&structures(text)), bytes(text));
    }
    assert_eq!(structures(SYN_ACK).first.message, Message::Response);
    assert_eq!(structures(SYN_ACK).second.expect("two").message, Message::Request);
}

const SYN_PACKET: &str = "450c004c5d8040004006c90d0a0800010a080002 e7961b582648880600000000a002faf07e5a0000 \
                          020405b40402080af4562358000000000103030a 00000000610d00008080100500100000";
const SYN_ACK_PACKET: &str = "450c005c000040004006267e0a0800020a080001 1b58e796fcdea3d726488807a012fe8846130000 \
                              020405b40402080a49d856bcf45623580103030a 0a080001610d0000808020050010e796 \
                              00000000610d00008080100500100000";
const ACK_PACKET: &str = "450c00445d8140004006c9140a0800010a080002 e7961b5826488807fcdea3d88010003f311d0000 \
                          0101080af456235849d856bc 0a080002610d00008080200500101b58";

#[test]
fn whole_ipv4_packets_show_their_flow_and_their_structures() {
    let one = "10.8.0.1:59286".parse().expect("an address");
    let other = "10.8.0.2:7000".parse().expect("an address");
    for (hex, from, to, count, place) in [
        (SYN_PACKET, one, other, 1, 60..76),
        (SYN_ACK_PACKET, other, one, 2, 60..92),
        (ACK_PACKET, one, other, 1, 52..68),
    ] {
        let packet = bytes(hex);
        let read = QosPacket::decode(&packet).expect("a captured packet");
        assert_eq!((read.source, read.destination, read.protocol), (from, to, 6));
        assert_eq!((read.dscp, read.mark, read.carrier), (3, QosMark::Signal, Carrier::Payload));
        let carried = read.structures.expect("structures");
        assert_eq!((carried.count(), read.place.clone()), (count, place));
        assert_eq!(encoded(&carried), packet[read.place]);
    }
    let syn_ack =
        QosPacket::decode(&bytes(SYN_ACK_PACKET)).expect("a packet").structures.expect("structures");
    assert_eq!(syn_ack.first.source, v4([10, 8, 0, 1], 59286), "the requester as the responder sees it");
}

#[test]
fn structures_taken_out_and_put_in_again_leave_the_captured_packet() {
    for (hex, with, without) in [(SYN_PACKET, 76, 60), (SYN_ACK_PACKET, 92, 60), (ACK_PACKET, 68, 52)] {
        let captured = bytes(hex);
        let mut packet = captured.clone();
        let structures = strip_v4(&mut packet).expect("a captured packet").expect("structures");
        assert_eq!((packet.len(), packet[1], captured.len()), (without, 0, with));
        // What is left is right by its own checksums: their sums are all ones.
        let tcp = &packet[20..];
        let pseudo = [&packet[12..20], &[0, 6], &(tcp.len() as u16).to_be_bytes(), tcp].concat();
        assert_eq!((ones_sum(&packet[..20]), ones_sum(&pseudo)), (0xffff, 0xffff));
        assert_eq!(strip_v4(&mut packet), Ok(None));
        insert_v4(&mut packet, &structures).expect("a packet");
        assert_eq!(packet, captured);
    }
    let mut udp = bytes(SYN_PACKET);
    udp[9] = 17;
    let before = udp.clone();
    let refused = insert_v4(&mut udp, &structures(ACK)).expect_err("refused");
    assert_eq!((refused, udp), (PacketError::Protocol(17), before));
}

/// The sum of RFC 1071, folded.
fn ones_sum(bytes: &[u8]) -> u32 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u32::from(low));
    let sum: u32 = bytes.chunks(2).map(word).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    (folded & 0xffff) + (folded >> 16)
}

#[test]
fn a_packet_that_is_cut_or_lies_about_itself_is_refused_by_name() {
    let packet = bytes(SYN_PACKET);
    assert_eq!(QosPacket::decode(&packet[..75]), Err(PacketError::Header));
    let mut longer = packet.clone();
    longer.push(0);
    assert_eq!(QosPacket::decode(&longer), Err(PacketError::Length { stated: 76, actual: 77 }));
    let mut icmp = packet.clone();
    icmp[9] = 1;
    assert_eq!(QosPacket::decode(&icmp), Err(PacketError::Protocol(1)));
    let mut fragment = packet.clone();
    fragment[6] = 0x20;
    assert_eq!(QosPacket::decode(&fragment), Err(PacketError::Fragment));
    let mut code = packet.clone();
    code[70] = 0x90;
    let refused = PacketError::Payload(DecodeError::Message { at: 10, found: 9 });
    assert_eq!(QosPacket::decode(&code), Err(refused));
    // The same payload under another codepoint is data.
    let mut data = code;
    data[1] = 0;
    assert_eq!(QosPacket::decode(&data).expect("an ordinary packet").structures, None);
}

const V6_SYN: &str = "06 01 20 0c 610d 0000 8080 1005 0010 0000";
const V6_SYN_ACK: &str =
    "06 03 20 0c 610d 0000 8080 2005 0010 0000  01 00 20 0c 5aee 0000 0000 1005 0010 0000";

#[test]
fn the_captured_ipv6_headers_come_back_as_they_were() {
    for (hex, count) in [(V6_SYN, 1), (V6_SYN_ACK, 2)] {
        let header = bytes(hex);
        let read = HopByHop::decode(&header).expect("a captured header");
        assert_eq!(
            (read.next_header, read.option_type, read.structures.count()),
            (6, OptionType::Tia1039, count)
        );
        let mut buffer = [0; 32];
        let len = read.encode(&mut buffer);
        assert_eq!(buffer[..len], header);
    }
    let syn_ack = HopByHop::decode(&bytes(V6_SYN_ACK)).expect("a header").structures;
    let reverse = syn_ack.second.expect("two");
    assert_eq!((reverse.available.units(), reverse.preemption), (12_000, Priority::LOWEST));
}

/// The base header of the captured SYN, from ::1 to ::2, before its hop-by-hop header and a TCP header.
fn v6_packet(options: &[u8], traffic_class: u8) -> Vec<u8> {
    let tcp = bytes("e7961b58 26488806 00000000 5002faf0 00000000");
    let payload_len = (options.len() + tcp.len()) as u16;
    let mut packet = bytes("60c9a8d0 0000 00 40");
    packet[0] |= traffic_class >> 4;
    packet[1] = traffic_class << 4 | packet[1] & 0xf;
    packet[4..6].copy_from_slice(&payload_len.to_be_bytes());
    packet.extend(core::net::Ipv6Addr::from(1).octets());
    packet.extend(core::net::Ipv6Addr::from(2).octets());
    packet.extend(options);
    packet.extend(tcp);
    packet
}

#[test]
fn an_ipv6_packet_is_known_by_its_option() {
    let options = bytes(V6_SYN);
    let read = QosPacket::decode(&v6_packet(&options, 0x0c)).expect("a packet");
    assert_eq!((read.mark, read.carrier, read.place), (QosMark::Signal, Carrier::HopByHop, 40..56));
    assert_eq!((read.flow_label, read.source.port()), (0x9a8d0, 59286));
    assert_eq!(read.structures.expect("structures").first.available.bits(), 0x610d);

    let mut other = options.clone();
    other[2] = 0x05;
    assert_eq!(QosPacket::decode(&v6_packet(&other, 0)).expect("router alert").structures, None);
    let mut short = options;
    short[3] = 10;
    let refused = QosPacket::decode(&v6_packet(&short, 0x0c)).expect_err("refused");
    assert_eq!(refused, PacketError::HopByHop(DecodeError::OptionLength { at: 3, found: 10 }));
}

#[test]
fn a_response_in_ipv6_has_a_flow_label_in_place_of_its_mark() {
    let asked =
        Structure { source: Source::NONE_V6, mark: 1, ..Structure::request(RateWord::from_bits(0x5da9)) };
    let answer = asked.response(Source::V6 { flow: 0x9a8d0 });
    let header =
        HopByHop { next_header: 6, option_type: OptionType::Experiment, structures: Structures::one(answer) };
    let mut buffer = [0; 32];
    let len = header.encode(&mut buffer);
    assert_eq!(buffer[..len], bytes("06 01 3e 0c 5da9 0000 8080 2005 0019 a8d0"));
    assert_eq!(HopByHop::decode(&buffer[..len]), Ok(header));
}
