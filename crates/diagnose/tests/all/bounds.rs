//! What can grow has an end.

use crate::common::packet;
use farpath_diagnose::{CaptureError, Diagnosis, Limit, MAX_CONNECTIONS, MAX_IN_FLIGHT, TcpPacket, read};
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};

fn end(number: u32, port: u16) -> SocketAddr {
    (Ipv4Addr::from(0x0a00_0000 + number), port).into()
}

#[test]
fn connections_beyond_those_that_are_followed_are_counted() {
    let mut diagnosis = Diagnosis::default();
    for number in 0..MAX_CONNECTIONS as u32 + 10 {
        diagnosis.packet(number.into(), 0, number.into(), &packet(end(number + 10, 1000), end(1, 80)));
    }
    let report = diagnosis.finish();
    assert_eq!((report.connections.len(), report.packets_not_followed), (MAX_CONNECTIONS, 10));
}

#[test]
fn connections_without_a_handshake_are_looked_at_within_what_is_held() {
    // All together are more than what is held of such beginnings: the later ones count as they pass.
    let (connections, segments) = (60_000, 8);
    let mut diagnosis = Diagnosis::default();
    for segment in 0..segments {
        for number in 0..connections {
            let there = packet(end(number + 10, 1000), end(1, 80));
            let data = TcpPacket { seq: 1 + segment * 1000, ack: Some(1), payload: 1000, ..there };
            diagnosis.packet(u64::from(number), 0, u64::from(segment), &data);
        }
    }
    let report = diagnosis.finish();
    assert!(connections * segments > (MAX_IN_FLIGHT / 10) as u32);
    assert_eq!(report.connections.len(), connections as usize);
    assert!(report.connections.iter().all(|found| found.bytes == u64::from(segments) * 1000));
}

/// The handshake, and as many segments as are asked for, each a millisecond behind the other; only the first half is acknowledged.
fn transfer(diagnosis: &mut Diagnosis, start_ns: u64, segments: u32) {
    let (client, server) = (end(1, 1000), end(2, 80));
    let there = packet(client, server);
    let back = packet(server, client);
    let mut at = start_ns;
    let mut pass = |packet: &TcpPacket| {
        at += 1_000_000;
        diagnosis.packet(at, 0, at, packet);
    };
    pass(&TcpPacket { syn: true, ack: None, seq: 0, window_scale: Some(7), ..there });
    pass(&TcpPacket { syn: true, ack: Some(1), seq: 0, window_scale: Some(7), ..back });
    pass(&TcpPacket { seq: 1, ack: Some(1), ..there });
    for number in 0..segments {
        pass(&TcpPacket { seq: 1 + number * 1000, ack: Some(1), payload: 1000, ..there });
        if number < segments / 2 {
            pass(&TcpPacket { seq: 1, ack: Some(1 + (number + 1) * 1000), ..back });
        }
    }
}

#[test]
fn a_handshake_of_centuries_has_a_report() {
    // Found by libFuzzer: the round trip of a handshake, added to the time of its end.
    let (client, server) = (end(1, 1000), end(2, 80));
    let (there, back) = (packet(client, server), packet(server, client));
    let mut diagnosis = Diagnosis::default();
    diagnosis.packet(1, 0, 0, &TcpPacket { syn: true, ack: None, seq: 0, ..there });
    diagnosis.packet(2, 0, u64::MAX - 2, &TcpPacket { syn: true, ack: Some(1), seq: 0, ..back });
    diagnosis.packet(3, 0, u64::MAX - 1, &TcpPacket { seq: 1, ack: Some(1), ..there });
    diagnosis.packet(4, 0, u64::MAX, &TcpPacket { seq: 1, ack: Some(1), payload: 1000, ..back });
    diagnosis.packet(5, 0, u64::MAX, &TcpPacket { seq: 1, ack: Some(1001), ..there });
    let report = diagnosis.finish();
    let connection = report.connections.first().expect("one");
    let sum: f64 = connection.limits.iter().map(|limit| limit.time_s).sum();
    assert!((sum - connection.duration_s).abs() <= 1e-6 * connection.duration_s, "{sum}: {connection:?}");
}

#[test]
fn what_connections_held_is_free_when_their_ports_are_used_again() {
    // What a connection leaves in flight is no longer held when the next one has its ports: 40 connections of 100 000 each would else
    // fill what is held for all of them.
    let mut diagnosis = Diagnosis::default();
    for number in 0..41 {
        transfer(&mut diagnosis, number * 1_000_000_000_000, if number < 40 { 200_000 } else { 1000 });
    }
    let report = diagnosis.finish();
    assert_eq!(report.connections.len(), 41);
    let last = report.connections.last().expect("the shortest");
    assert_eq!(last.bytes, 1_000_000);
    assert!(last.rtt_s.is_some(), "its round trips are measured");
}

#[test]
fn intervals_add_up_and_have_an_end() {
    let mut diagnosis = Diagnosis::with_intervals(1);
    transfer(&mut diagnosis, 0, 100);
    let connection = diagnosis.finish().connections.remove(0);
    let all: u64 = connection.intervals.iter().map(|interval| interval.to_ns - interval.from_ns).sum();
    assert!((all as f64 / 1e9 - connection.duration_s).abs() < 1e-9, "{connection:?}");
    for pair in connection.intervals.windows(2) {
        assert_eq!(pair[0].to_ns, pair[1].from_ns, "one begins where the other ends");
        assert_ne!(pair[0].limit, pair[1].limit);
    }
    let share = |limit| {
        let of = connection.intervals.iter().filter(|interval| interval.limit == limit);
        of.map(|interval| interval.to_ns - interval.from_ns).sum::<u64>() as f64 / 1e9
    };
    for found in &connection.limits {
        assert!((share(found.limit) - found.time_s).abs() < 1e-9, "{found:?}");
    }
    assert!(share(Limit::Handshake) > 0.0);
    // Who has not asked for them has none.
    let mut diagnosis = Diagnosis::with_intervals(0);
    transfer(&mut diagnosis, 0, 100);
    assert!(diagnosis.finish().connections[0].intervals.is_empty());
}

#[test]
fn a_block_that_is_longer_than_what_is_held_is_refused() {
    // A section, then a block of 64 MiB.
    let section: [u32; 7] = [0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28];
    let long: [u32; 2] = [0x0bad_0001, 64 << 20];
    let bytes: Vec<u8> = section.into_iter().chain(long).flat_map(u32::to_le_bytes).collect();
    let endless = std::io::repeat(0).take(100 << 20);
    let ended = read(std::io::Cursor::new(bytes).chain(endless), |_| panic!("no frame"));
    assert_eq!(ended, Err(CaptureError::TooLong { frames: 0 }));
}

#[test]
fn a_block_that_is_shorter_than_its_frame_is_damage() {
    let section: [u32; 7] = [0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28];
    for length in 0..12 {
        // Of a process (Apple), of Linux's packets, and of no kind that is known.
        for kind in [0x8000_0001, 6, 0x0bad_0001] {
            let words = section.into_iter().chain([kind, length, 0, 0, 0, 0]);
            for bytes in [
                words.clone().flat_map(u32::to_le_bytes).collect::<Vec<u8>>(),
                words.flat_map(u32::to_be_bytes).collect(),
            ] {
                let ended = read(&bytes[..], |_| panic!("no frame"));
                assert_eq!(ended, Err(CaptureError::Damaged { frames: 0 }), "{kind:#x}, {length}");
            }
        }
    }
}
