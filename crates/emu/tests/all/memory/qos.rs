//! Bytes of real packets through a flow router.

use farpath_elements::{ElementKind, ElementSpec, QueueLimit, RouterLines, build_path};
use farpath_emu::{PartialChecksum, WirePacket};
use farpath_path::{Direction, Path, PathElement, PerDirection, Verdict};
use farpath_tcp::wire;
use farpath_tia1039::router::{QosPacket as _, RouterSettings};
use farpath_tia1039::{Carrier, Message, QosPacket, strip_v4};
use farpath_units::{Bytes, Duration, Instant, Probability, Rate};
use proptest::prelude::*;

/// As captured: a SYN that asks for 100 Mbit/s, and the ACK of the same flow.
const SYN: &str = "450c004c5d8040004006c90d0a0800010a080002e7961b582648880600000000a002faf07e5a0000\
                   020405b40402080af4562358000000000103030a00000000610d00008080100500100000";

fn bytes(hex: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex");
    (0..hex.len()).step_by(2).map(byte).collect()
}

/// Both lines of 30 Mbit/s, all of which can be granted.
fn router() -> Path<WirePacket> {
    let share = |fraction| Probability::new(fraction).expect("a share");
    let lines = RouterLines {
        rate: PerDirection::both(Rate::from_bit_per_s(30_000_000).expect("not zero")),
        changes: PerDirection::default(),
        queue: PerDirection::both(QueueLimit::Unlimited),
        overhead: Bytes::ZERO,
        min_packet: Bytes::ZERO,
        settings: PerDirection::both(RouterSettings {
            utilization: share(1.0),
            newcomers: share(0.0),
            ..RouterSettings::default()
        }),
    };
    let kind = ElementKind::FlowRouter(Box::new(lines));
    build_path(&[ElementSpec { name: "router".to_owned(), kind }], 1).expect("sound")
}

fn through(path: &mut Path<WirePacket>, ms: u64, packet: WirePacket) -> Vec<WirePacket> {
    through_to(path, ms, Direction::Forward, packet)
}

fn through_to(path: &mut Path<WirePacket>, ms: u64, to: Direction, packet: WirePacket) -> Vec<WirePacket> {
    let now = Instant::ZERO + Duration::from_millis(ms);
    assert!(matches!(path.offer(now, to, packet), Verdict::Accepted));
    let mut out = Vec::new();
    while let Some(due) = path.next_departure() {
        out.extend(path.take(due).map(|departure| departure.packet));
    }
    out
}

#[test]
fn the_bytes_of_a_captured_syn_are_lowered_and_their_checksum_is_right() {
    let mut out = through(&mut router(), 0, WirePacket::new(bytes(SYN), None, 1));
    let packet = out.remove(0);
    let read = QosPacket::decode(packet.bytes()).expect("a packet");
    assert_eq!((read.carrier, read.place.clone()), (Carrier::Payload, 60..76));
    // As the capture behind a router of 30 Mbit/s has it.
    assert_eq!(packet.bytes()[read.place], bytes("000000005da900008080100500110000"));
    let segment = wire::decode(packet.bytes()).expect("right checksums").segment;
    assert_eq!((segment.len, segment.mss), (16, Some(1460)));
    assert_eq!(out.len(), 0);
}

#[test]
fn a_checksum_that_a_device_will_finish_is_left_to_it() {
    let mut packet = bytes(SYN);
    packet[36..38].copy_from_slice(&[0x14, 0x43]);
    let partial = PartialChecksum { start: 20, offset: 16 };
    let out = through(&mut router(), 0, WirePacket::new(packet, Some(partial), 1));
    assert_eq!(out[0].bytes()[36..38], [0x14, 0x43]);
    assert_eq!(out[0].bytes()[64..66], [0x5d, 0xa9]);
}

/// A packet with data, from this port, as QoSFlow.
fn data(from: &str) -> Vec<u8> {
    let mut packet = Vec::new();
    let ends = [from, "10.8.0.2:7000"].map(|end| end.parse().expect("an address"));
    let segment =
        farpath_tcp::Segment::new(farpath_tcp::Flags::ACK, farpath_tcp::Seq(7), farpath_tcp::Seq(9));
    let segment = farpath_tcp::Segment { len: 100, ..segment };
    let marked = wire::IpFields { dscp: 7, ..wire::IpFields::default() };
    wire::encode(ends[0], ends[1], &marked, &segment, 0, &mut packet).expect("it fits");
    packet
}

/// The SYN/ACK to this port with an answer to its request, above what was granted, which changes nothing; `data` acknowledges its SYN.
fn answer(to: &str) -> Vec<u8> {
    let mut packet = Vec::new();
    let ends = ["10.8.0.2:7000", to].map(|end| end.parse().expect("an address"));
    let flags = farpath_tcp::Flags::SYN | farpath_tcp::Flags::ACK;
    let segment = farpath_tcp::Segment::new(flags, farpath_tcp::Seq(8), farpath_tcp::Seq(0));
    wire::encode(ends[0], ends[1], &wire::IpFields::default(), &segment, 0, &mut packet).expect("it fits");
    let mut structures = QosPacket::decode(&bytes(SYN)).expect("a packet").structures.expect("structures");
    structures.first.message = Message::Response;
    farpath_tia1039::insert_v4(&mut packet, &structures).expect("a packet");
    packet
}

#[test]
fn an_acknowledgement_without_its_flag_means_nothing() {
    let syn = WirePacket::new(bytes(SYN), None, 1);
    assert_eq!((syn.next_seq(), syn.acknowledged()), (Some(0x2648_8807), None));
    let data = WirePacket::new(data("10.8.0.1:5000"), None, 2);
    assert_eq!((data.next_seq(), data.acknowledged()), (Some(7), Some(9)));
}

#[test]
fn a_router_says_a_cut_in_a_packet_of_the_flow() {
    let mut path = router();
    through(&mut path, 0, WirePacket::new(bytes(SYN), None, 1));
    // A second flow, from another port: its share comes from the first as soon as it sends more than its start.
    let mut other = bytes(SYN);
    strip_v4(&mut other).expect("a packet");
    other[21] = 0x97;
    let structures = QosPacket::decode(&bytes(SYN)).expect("a packet").structures.expect("structures");
    farpath_tia1039::insert_v4(&mut other, &structures).expect("a packet");
    through(&mut path, 1, WirePacket::new(other, None, 1));
    for port in ["10.8.0.1:59286", "10.8.0.1:59287"] {
        through_to(&mut path, 1, Direction::Reverse, WirePacket::new(answer(port), None, 1));
    }
    through(&mut path, 2, WirePacket::new(data("10.8.0.1:59287"), None, 1));
    let out = through(&mut path, 300, WirePacket::new(data("10.8.0.1:59286"), None, 2));
    assert_eq!(out.len(), 2, "the packet, and behind it what the router says");
    let said = QosPacket::decode(out[1].bytes()).expect("a packet");
    let cut = said.structures.expect("structures").first;
    assert_eq!((cut.message, cut.available.units(), cut.mark), (Message::Renegotiate, 14_992, 1));
    assert_eq!((said.source.port(), said.destination.port()), (0xe796, 7000));
    let segment = wire::decode(out[1].bytes()).expect("right checksums").segment;
    assert_eq!((segment.flags, segment.len), (farpath_tcp::Flags::ACK, 16));
}

#[test]
fn in_ipv6_it_is_an_option_before_the_tcp_header() {
    let mut packet = Vec::new();
    let ends = ["[fd00::1]:50000", "[fd00::2]:7000"].map(|end| end.parse().expect("an address"));
    let segment =
        farpath_tcp::Segment::new(farpath_tcp::Flags::ACK, farpath_tcp::Seq(7), farpath_tcp::Seq(9));
    let segment = farpath_tcp::Segment { len: 100, ..segment };
    wire::encode(ends[0], ends[1], &wire::IpFields::default(), &segment, 0, &mut packet).expect("it fits");
    let structure = farpath_tia1039::Structure::request(farpath_tia1039::RateWord::from_bits(0x5da9));
    let said = farpath_tia1039::signal(&packet, &structure).expect("a TCP packet");
    let read = QosPacket::decode(&said).expect("a packet");
    assert_eq!((read.carrier, read.dscp, read.place), (Carrier::HopByHop, 3, 40..56));
    assert_eq!(read.structures.expect("structures").first.available.bits(), 0x5da9);
    let decoded = wire::decode(&said).expect("right checksums");
    assert_eq!((decoded.source, decoded.segment.len, decoded.segment.seq), (ends[0], 0, farpath_tcp::Seq(7)));
}

/// Bytes that are a captured packet but for some of them, or none at all.
fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    let change = (any::<prop::sample::Index>(), any::<u8>());
    let changed =
        (any::<bool>(), prop::collection::vec(change, 0..6), 0..100_usize).prop_map(|(v6, changes, cut)| {
            let mut packet = bytes(SYN);
            if v6 {
                // Its TCP header behind IPv6 and the structure as an option.
                let options = "0601200c610d00008080100500100000";
                let tail = packet.split_off(20);
                packet = bytes("600000000038004000000000000000000000000000000001");
                packet.extend(bytes("00000000000000000000000000000002"));
                packet.extend(bytes(options));
                packet.extend(&tail[..40]);
            }
            for (at, byte) in changes {
                let at = at.index(packet.len());
                packet[at] = byte;
            }
            let len = packet.len();
            packet.truncate(len - if cut < 10 { cut } else { 0 });
            packet
        });
    prop_oneof![3 => changed, 1 => prop::collection::vec(any::<u8>(), 0..100)]
}

proptest! {
    /// Whatever comes: a router changes nothing but structures that it understands, and what it changes it can be held to.
    #[test]
    fn no_bytes_are_a_surprise_to_a_router(packets in prop::collection::vec(any_bytes(), 1..30)) {
        let mut path = router();
        let mut now = Instant::ZERO;
        for bytes in packets {
            now += Duration::from_millis(1);
            let before = QosPacket::decode(&bytes);
            let checksums = wire::decode(&bytes).is_ok();
            let packet = WirePacket::new(bytes.clone(), None, 1);
            // What is dropped by policing was marked as data of a flow.
            if matches!(path.offer(now, Direction::Forward, packet), Verdict::Dropped { .. }) {
                continue;
            }
            let due = path.next_departure().expect("it was accepted");
            let after = path.take(due).expect("it is due").packet;
            match before.map(|read| (read.structures, read)) {
                Ok((Some(asked), read)) => {
                    let outside = |bytes: &[u8]| [&bytes[..read.place.start], &bytes[read.place.end..]].concat();
                    let checksum = read.carrier == Carrier::Payload;
                    prop_assert!(checksum || outside(after.bytes()) == outside(&bytes));
                    let told = QosPacket::decode(after.bytes()).expect("still a packet").structures.expect("structures");
                    for (told, asked) in told.iter().zip(asked.iter()) {
                        prop_assert!(told.available.units() <= asked.available.units());
                        prop_assert_eq!(told.message, asked.message);
                    }
                    prop_assert!(!checksums || wire::decode(after.bytes()).is_ok(), "a right checksum stays right");
                }
                _ => prop_assert_eq!(after.bytes(), &bytes[..]),
            }
            while let Some(due) = path.next_departure() {
                path.take(due);
            }
            // The other tools meet the same bytes.
            let _ = strip_v4(&mut bytes.clone());
            let _ = farpath_tia1039::signal(&bytes, &farpath_tia1039::Structure::default());
        }
    }
}

/// An IPv6 packet that ESP hides: hop-by-hop options with a structure or none, and `len` bytes of what looks like chance.
fn encrypted(from: u8, to: u8, label: u32, structure: Option<&str>, len: usize) -> WirePacket {
    let esp = vec![0xa5; 8 + len];
    let options = structure.map_or(Vec::new(), |structure| bytes(&format!("3201200c{structure}")));
    let dscp: u32 = if options.is_empty() { 0b000111 } else { 0b000011 };
    let mut packet = (6 << 28 | dscp << 22 | label).to_be_bytes().to_vec();
    packet.extend(((options.len() + esp.len()) as u16).to_be_bytes());
    packet.extend([if options.is_empty() { 50 } else { 0 }, 64]);
    for last in [from, to] {
        packet.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    packet.extend(options);
    packet.extend(esp);
    WirePacket::new(packet, None, 1)
}

#[test]
fn an_encrypted_flow_is_granted_a_rate_and_held_to_it() {
    const LABEL: u32 = 0xa_bcde;
    let mut path = router();
    // 100 Mbit/s are asked for outside of what is encrypted, and lowered to 30.
    let request = "610d00008080100500100000";
    let out = through(&mut path, 0, encrypted(1, 2, LABEL, Some(request), 60)).remove(0);
    let read = QosPacket::decode(out.bytes()).expect("a packet");
    assert_eq!((read.protocol, read.flow_label, read.carrier), (50, LABEL, Carrier::HopByHop));
    let told = read.structures.expect("it carries one").first;
    assert_eq!((told.message, told.mark), (Message::Request, 1));
    assert_eq!(out.bytes()[44..46], bytes("5da9"));
    // The way back has a label of its own; the response names the one that it answers.
    let response = format!("5da90000808020050{:03x}{LABEL:05x}", 1).replacen("20050001", "2005001", 1);
    let back = encrypted(2, 1, 0x1_2345, Some(&response), 60);
    let now = Instant::ZERO + Duration::from_millis(20);
    assert!(matches!(path.offer(now, Direction::Reverse, back), Verdict::Accepted));
    // A second of 30 Mbit/s passes; what is sent at twice the rate is cut down to it, and another label is nobody's.
    let mut passed = 0;
    for n in 0..4000_u64 {
        let now = Instant::ZERO + Duration::from_millis(40) + Duration::from_micros(200 * n);
        let packet = encrypted(1, 2, LABEL, None, 1452);
        if matches!(path.offer(now, Direction::Forward, packet), Verdict::Accepted) {
            passed += 1500;
        }
        while path.next_departure().is_some_and(|due| due <= now) {
            path.take(now);
        }
    }
    // 60 Mbit/s for 0.8 s, of which half may pass, and a burst.
    let rate = f64::from(passed) * 8.0 / 0.8;
    assert!((29.9e6..31.0e6).contains(&rate), "{rate}");
}
