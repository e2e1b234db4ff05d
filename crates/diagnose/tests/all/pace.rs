//! A pace and a window that leave alike are told apart by when they leave.

use farpath_diagnose::{Diagnosis, Limit, Link, TcpPacket, parse};
use std::net::{Ipv4Addr, SocketAddr};

const MS: u64 = 1_000_000;
const SEGMENT: u32 = 1448;

/// Two segments each 10 ms over a round trip of 100 ms, seen at the sender: they leave `late_ns` behind the acknowledgment of those before.
fn pairs(late_ns: u64) -> Vec<(Limit, f64)> {
    let mut bytes = [0; 40];
    bytes[..4].copy_from_slice(&[0x45, 0, 0, 40]);
    (bytes[9], bytes[32], bytes[33]) = (6, 0x50, 0x10);
    let template = parse(Link::Raw, &bytes, 40).expect("a packet");
    let end = |number, port| SocketAddr::from((Ipv4Addr::new(10, 0, 0, number), port));
    let there = TcpPacket { source: end(1, 1000), destination: end(2, 80), window: 60_000, ..template };
    let back = TcpPacket { source: there.destination, destination: there.source, ..there };
    let mut packets = vec![
        (0, TcpPacket { syn: true, ack: None, mss: Some(1460), window_scale: Some(7), ..there }),
        (100 * MS, TcpPacket { syn: true, ack: Some(1), mss: Some(1460), window_scale: Some(7), ..back }),
        (100 * MS, TcpPacket { seq: 1, ack: Some(1), ..there }),
    ];
    for pair in 0..200 {
        let at = 100 * MS + u64::from(pair) * 10 * MS;
        for half in [0, 1] {
            let seq = 1 + (2 * pair + half) * SEGMENT;
            packets.push((at, TcpPacket { seq, ack: Some(1), payload: SEGMENT, ..there }));
        }
        let ack = 1 + 2 * (pair + 1) * SEGMENT;
        packets.push((at + 100 * MS - late_ns, TcpPacket { seq: 1, ack: Some(ack), ..back }));
    }
    // An acknowledgment comes before what it lets go.
    packets.sort_by_key(|(at, packet)| (*at, packet.payload));
    let mut diagnosis = Diagnosis::default();
    for (number, (at, packet)) in (1..).zip(&packets) {
        diagnosis.packet(number, 0, *at, packet);
    }
    let connection = diagnosis.finish().connections.remove(0);
    connection.limits.iter().map(|share| (share.limit, share.time_s / connection.duration_s)).collect()
}

fn share(limits: &[(Limit, f64)], limit: Limit) -> f64 {
    limits.iter().find(|(found, _)| *found == limit).map_or(0.0, |(_, share)| *share)
}

#[test]
fn what_leaves_with_acknowledgments_waits_for_the_window() {
    let limits = pairs(0);
    assert!(share(&limits, Limit::CongestionWindow) > 0.8, "{limits:?}");
    assert!(share(&limits, Limit::Paced) < 0.1, "{limits:?}");
}

#[test]
fn what_leaves_between_acknowledgments_is_paced() {
    let limits = pairs(4 * MS);
    assert!(share(&limits, Limit::Paced) > 0.8, "{limits:?}");
    assert_eq!(share(&limits, Limit::CongestionWindow), 0.0, "{limits:?}");
}
