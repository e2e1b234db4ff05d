//! Captures that begin in the middle of a connection: what tells their place and the scale of windows in place of the handshake.

use crate::common::{self, share, there_and_back};
use farpath_diagnose::{ConnectionReport, Limit, MOST_HELD, ScaleToldBy, TcpPacket, ToldBy, Vantage};

const MS: u64 = 1_000_000;
const RTT: u64 = 100 * MS;
const SEGMENT: u32 = 1448;
/// Segments in a window, and its field with a scale of 3.
const WINDOW: u32 = 40;
const FIELD: u16 = (WINDOW * SEGMENT / 8) as u16;

/// Packets of a sender that is held by a window of 40 segments, with their times at the sender; `is_back` of those of the receiver.
fn packets(rounds: u32) -> Vec<(u64, bool, TcpPacket)> {
    let [there, back] = there_and_back();
    let there = TcpPacket { window: 500, ttl: 64, ..there };
    let back = TcpPacket { window: FIELD, ttl: 57, ..back };
    let mut packets = Vec::new();
    for round in 0..rounds {
        for number in 0..WINDOW {
            // Each a millisecond behind the other, by what the one of a round trip before has freed.
            let at = u64::from(round) * RTT + u64::from(number) * MS;
            let seq = (round * WINDOW + number) * SEGMENT;
            let stamp = |at: u64| (at / MS) as u32;
            let echo = stamp(at.saturating_sub(RTT / 2));
            let data = TcpPacket { seq, ack: Some(1), payload: SEGMENT, ..there };
            packets.push((at, false, TcpPacket { timestamps: Some((stamp(at), echo)), ..data }));
            let ack = TcpPacket { seq: 1, ack: Some(seq + SEGMENT), ..back };
            // It leaves the receiver half of a round trip later, and says so.
            let stamps = Some((stamp(at + RTT / 2), stamp(at)));
            packets.push((at + RTT, true, TcpPacket { timestamps: stamps, ..ack }));
        }
    }
    packets
}

/// As they pass where `later_ns` of the round trip lie between the capture and the sender.
fn diagnosed(packets: &[(u64, bool, TcpPacket)], later_ns: u64) -> ConnectionReport {
    let place = |(at, is_back, packet): &(u64, bool, TcpPacket)| {
        (RTT + if *is_back { at - later_ns / 2 } else { at + later_ns / 2 }, *is_back, *packet)
    };
    let mut packets: Vec<_> = packets.iter().map(place).collect();
    // An acknowledgment comes before what it lets go.
    packets.sort_by_key(|(at, is_back, _)| (*at, !is_back));
    common::diagnosed(packets.iter().map(|(at, _, packet)| (*at, packet)))
}

#[test]
fn timestamps_tell_the_place_and_what_is_filled_the_window() {
    // The second is longer than what is held at the beginning.
    for rounds in [20, MOST_HELD as u32 / WINDOW] {
        let packets = packets(rounds);
        for (later_ns, vantage) in
            [(0, Vantage::NearSender), (RTT / 2, Vantage::Middle), (RTT, Vantage::NearReceiver)]
        {
            let report = diagnosed(&packets, later_ns);
            let inferred = report.inferred.expect("something is known");
            assert_eq!((report.vantage, inferred.place_by), (vantage, ToldBy::Timestamps));
            assert_eq!((inferred.window_scale, inferred.scale_by), (3, ScaleToldBy::Filled));
            assert_eq!(report.window, Some(u64::from(FIELD) << 3));
            let rtt = report.min_rtt_s.expect("measured");
            assert!((rtt - 0.1).abs() < 0.002, "{rtt}");
            assert!(share(&report, Limit::ReceiveWindow) > 0.85, "{vantage:?}: {:?}", report.limits);
            assert_eq!(report.data_packets, u64::from(rounds * WINDOW));
        }
    }
}

#[test]
fn without_timestamps_hosts_are_known_by_what_no_router_has_counted() {
    let mut packets = packets(20);
    packets.iter_mut().for_each(|(_, _, packet)| packet.timestamps = None);
    let report = diagnosed(&packets, 0);
    assert_eq!(report.inferred.map(|inferred| inferred.place_by), Some(ToldBy::Ttl));
    assert_eq!(report.vantage, Vantage::NearSender);
    assert!(share(&report, Limit::ReceiveWindow) > 0.85, "{:?}", report.limits);
    // Between routers nothing tells.
    packets.iter_mut().for_each(|(_, _, packet)| packet.ttl = 60);
    let report = diagnosed(&packets, 0);
    assert_eq!((report.vantage, report.inferred), (Vantage::Unknown, None));
    assert!(share(&report, Limit::Unclear) > 0.9, "{:?}", report.limits);
}

#[test]
fn windows_that_are_never_filled_hold_nobody_and_have_no_size() {
    let mut packets = packets(20);
    packets.iter_mut().for_each(|(_, _, packet)| packet.window = packet.window * 3 / 2);
    let report = diagnosed(&packets, 0);
    let inferred = report.inferred.expect("something is known");
    assert_eq!((inferred.window_scale, inferred.scale_by), (3, ScaleToldBy::AtLeast));
    assert_eq!((report.window, share(&report, Limit::ReceiveWindow)), (None, 0.0), "{:?}", report.limits);
    assert!(share(&report, Limit::CongestionWindow) > 0.7, "{:?}", report.limits);
}

#[test]
fn a_window_whose_edge_stays_tells_its_scale() {
    let mut packets = packets(20);
    // Each second time the receiver reads nothing: by as much as was acknowledged the window is smaller.
    for (place, (_, _, packet)) in packets.iter_mut().filter(|(_, is_back, _)| *is_back).enumerate() {
        packet.window = 2 * FIELD - if place % 2 == 1 { (SEGMENT / 8) as u16 } else { 0 };
    }
    let inferred = diagnosed(&packets, 0).inferred.expect("something is known");
    assert_eq!((inferred.window_scale, inferred.scale_by), (3, ScaleToldBy::Edge));
}

#[test]
fn the_first_round_trip_is_unclear_and_not_slow_start() {
    let mut packets = packets(20);
    packets.iter_mut().for_each(|(_, _, packet)| packet.window = packet.window * 3 / 2);
    let report = diagnosed(&packets, 0);
    assert_eq!(share(&report, Limit::SlowStart), 0.0, "{:?}", report.limits);
    let unclear = share(&report, Limit::Unclear) * report.duration_s;
    assert!((0.05..0.25).contains(&unclear), "{:?}", report.limits);
}

/// A window of so many segments, which doubles each round trip of 100 ms, from the first data of the connection on; before it there were others
/// where `before` says so.
fn doubling(first: u32, before: bool) -> ConnectionReport {
    let [there, back] = there_and_back();
    let there = TcpPacket { ttl: 64, ..there };
    let back = TcpPacket { ttl: 57, ..back };
    let mut packets = Vec::new();
    let mut seq = 1_000_000;
    if before {
        packets.push((RTT / 4, true, TcpPacket { ack: Some(seq - SEGMENT), ..back }));
    }
    for round in 0..4_u32 {
        for number in 0..first << round {
            let at = u64::from(round) * RTT + u64::from(number) * MS / 10;
            packets.push((at, false, TcpPacket { seq, ack: Some(1), payload: SEGMENT, ..there }));
            seq += SEGMENT;
            packets.push((at + RTT, true, TcpPacket { seq: 1, ack: Some(seq), ..back }));
        }
    }
    diagnosed(&packets, 0)
}

#[test]
fn a_connection_that_begins_with_its_data_begins_with_slow_start() {
    let report = doubling(10, false);
    // But for a millisecond in which the first ten leave.
    assert!(share(&report, Limit::Unclear) * report.duration_s < 0.001, "{:?}", report.limits);
    assert!(share(&report, Limit::SlowStart) > 0.7, "{:?}", report.limits);
    // What was in flight before, or leaves at once in such numbers, was a window that had grown already.
    for (first, before) in [(10, true), (20, false)] {
        let report = doubling(first, before);
        let unclear = share(&report, Limit::Unclear) * report.duration_s;
        assert!((0.05..0.15).contains(&unclear), "{first}, {before}: {:?}", report.limits);
    }
}

#[test]
fn a_window_is_filled_by_the_last_of_what_leaves_together() {
    // Twenty segments leave at once when all before them were acknowledged.
    let [there, back] = there_and_back();
    let mut packets = Vec::new();
    for round in 0..40 {
        for number in 0..20 {
            let seq = (round * 20 + number) * SEGMENT;
            let data = TcpPacket { seq, ack: Some(1), payload: SEGMENT, ttl: 64, ..there };
            packets.push((u64::from(round) * RTT, false, data));
        }
        let (ack, window) = (Some((round + 1) * 20 * SEGMENT), (20 * SEGMENT / 4) as u16);
        let ack = TcpPacket { seq: 1, ack, window, ttl: 57, ..back };
        packets.push((u64::from(round + 1) * RTT, true, ack));
    }
    let report = diagnosed(&packets, 0);
    let inferred = report.inferred.expect("something is known");
    assert_eq!((inferred.window_scale, inferred.scale_by), (2, ScaleToldBy::Filled));
    assert!(share(&report, Limit::ReceiveWindow) > 0.8, "{:?}", report.limits);
}
