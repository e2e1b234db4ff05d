//! Captures that have packets twice.

use crate::common::{diagnosed, there_and_back};
use farpath_diagnose::{Limit, TcpPacket, read};

/// Data in windows of four segments, acknowledged a round trip of 40 ms later, each packet `copies` times 50 us apart.
fn windows(copies: u64) -> Vec<(u64, TcpPacket)> {
    let [data, ack] = there_and_back();
    let mut packets = Vec::new();
    for round in 0..200_u64 {
        let at = round * 40_000_000;
        for number in 0..4 {
            let seq = (round * 4 + number) as u32 * 1000;
            for copy in 0..copies {
                let segment = TcpPacket { seq, payload: 1000, window: 1000, ..data };
                packets.push((at + number * 1000 + copy * 50_000, segment));
            }
        }
        packets.push((at + 39_000_000, TcpPacket { ack: Some((round * 4 + 4) as u32 * 1000), ..ack }));
    }
    packets.sort_by_key(|packet| packet.0);
    packets
}

fn of(packets: &[(u64, TcpPacket)]) -> farpath_diagnose::ConnectionReport {
    diagnosed(packets.iter().map(|(at, packet)| (*at, packet)))
}

#[test]
fn packets_of_two_interfaces_in_one_are_said_to_be_twice_and_nothing_else_is_said() {
    let report = of(&windows(2));
    assert_eq!((report.data_packets, report.copies), (1600, 800));
    assert!(
        report.summary.starts_with("800 of 1600 packets with data are in the capture twice"),
        "{}",
        report.summary
    );
    let once = of(&windows(1));
    assert_eq!((once.data_packets, once.copies, once.retransmissions), (800, 0, 0));
}

#[test]
fn a_retransmission_is_no_copy() {
    // The first of each window is sent again 30 ms after it.
    let mut packets = windows(1);
    let again: Vec<_> =
        packets.iter().filter(|(at, packet)| packet.payload > 0 && at % 40_000_000 == 0).copied().collect();
    packets.extend(again.iter().map(|(at, packet)| (at + 30_000_000, *packet)));
    packets.sort_by_key(|packet| packet.0);
    let report = of(&packets);
    assert_eq!((report.copies, report.retransmissions), (0, 200));
    assert!(report.limits.iter().any(|found| found.limit == Limit::Loss), "{:?}", report.limits);
}

/// `tcpdump -i any`: the interface stands in the header of each packet.
#[test]
fn the_interfaces_of_a_cooked_capture_are_told_apart() {
    let mut capture = Vec::new();
    capture.extend(0xa1b2_c3d4_u32.to_le_bytes());
    capture.extend([2, 0, 4, 0]);
    for number in [0_u32, 0, 65_535, 276] {
        capture.extend(number.to_le_bytes());
    }
    for index in [7_u32, 100_007, 7, 9] {
        for number in [0_u32, 0, 20, 20] {
            capture.extend(number.to_le_bytes());
        }
        let mut header = [0_u8; 20];
        header[4..8].copy_from_slice(&index.to_be_bytes());
        capture.extend(header);
    }
    let mut interfaces = Vec::new();
    let frames = read(capture.as_slice(), |frame| interfaces.push(frame.interface)).expect("it is read");
    assert_eq!((frames, interfaces), (4, vec![0, 1, 0, 2]));
}

/// A block of pcapng, in which what follows its type is filled up to words.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let body = [body, &vec![0; body.len().wrapping_neg() % 4]].concat();
    let length = (body.len() as u32 + 12).to_le_bytes();
    [&kind.to_le_bytes()[..], &length, &body, &length].concat()
}

fn section() -> Vec<u8> {
    block(0x0a0d_0d0a, &[&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat())
}

fn described(link_type: u32) -> Vec<u8> {
    block(1, &[link_type.to_le_bytes(), [0; 4]].concat())
}

/// A packet of an interface of its section; Linux's number stands where a cooked header has it.
fn captured(interface: u32, index: u32) -> Vec<u8> {
    let fields = [interface, 0, 0, 20, 20].map(u32::to_le_bytes).concat();
    let mut header = [0_u8; 20];
    header[4..8].copy_from_slice(&index.to_be_bytes());
    block(6, &[&fields[..], &header].concat())
}

/// Files that were merged, or written one behind the other.
#[test]
fn cooked_interfaces_of_several_captures_in_one_are_told_apart() {
    const ETHERNET: u32 = 1;
    const COOKED: u32 = 276;
    let capture = [
        section(),
        described(COOKED),
        described(ETHERNET),
        described(COOKED),
        captured(0, 7),
        captured(1, 7),
        captured(2, 7),
        captured(0, 9),
        captured(2, 7),
        captured(0, 7),
        section(),
        described(COOKED),
        described(ETHERNET),
        captured(0, 7),
        captured(1, 9),
        captured(0, 7),
    ]
    .concat();
    let mut interfaces = Vec::new();
    let frames = read(capture.as_slice(), |frame| interfaces.push((frame.interface, frame.link_type)));
    assert_eq!(frames, Ok(9));
    let (cooked, ethernet) = (COOKED.cast_signed(), ETHERNET.cast_signed());
    let expected = [
        (1, cooked),
        (0, ethernet),
        (2, cooked),
        (3, cooked),
        (2, cooked),
        (1, cooked),
        (5, cooked),
        (4, ethernet),
        (5, cooked),
    ];
    assert_eq!(interfaces, expected);
}
