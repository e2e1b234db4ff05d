//! A sender that was granted a rate (TIA-1039) keeps to it, however its packets and acknowledgments fall together.

use crate::common::{diagnosed, share, there_and_back};
use farpath_diagnose::{ConnectionReport, Limit, TcpPacket};
use farpath_tia1039::{QosMark, RateUnit, Rounding, Source, Structure, Structures};

const SEGMENT: u32 = 1448;
const SEGMENTS: u32 = 3000;
const RTT: u64 = 100_000_000;

/// 100 Mbit/s were asked for and so many given, over a round trip of 100 ms. A segment leaves each `every_ns`, at the same moment as an
/// acknowledgment comes; `later_ns` of the round trip lie between the capture and the sender.
fn transfer(given: u64, every_ns: u64, later_ns: u64, marked: bool) -> ConnectionReport {
    transfer_with(given, every_ns, later_ns, marked, u32::MAX)
}

/// The same; behind so many segments the sender waits for their acknowledgment: a window that is not scaled lets no more go.
fn transfer_with(given: u64, every_ns: u64, later_ns: u64, marked: bool, at_first: u32) -> ConnectionReport {
    let [there, back] = there_and_back();
    let request = Structure::request(RateUnit::KbitPerS.encode(100_000_000, Rounding::Up));
    let lowered = RateUnit::KbitPerS.encode(given, Rounding::Down);
    let available = if given < 100_000_000 { lowered } else { request.available };
    let response = Structure { available, ..request }.marked().response(Source::NONE_V4);
    let signal = |packet: TcpPacket, structure| TcpPacket {
        qos: QosMark::Signal,
        structures: Some(Structures::one(structure)),
        ..packet
    };
    let syn = TcpPacket { syn: true, ack: None, mss: Some(1460), window_scale: Some(10), ..there };
    let syn_ack = TcpPacket { syn: true, ack: Some(1), mss: Some(1460), window_scale: Some(10), ..back };
    // Times as they are at the sender.
    let mut packets = vec![
        (0, false, signal(syn, request)),
        (RTT, true, signal(syn_ack, response)),
        (RTT, false, TcpPacket { seq: 1, ack: Some(1), ..there }),
        // The window of a SYN is not scaled: an acknowledgment right behind it says how long it is.
        (RTT, true, TcpPacket { seq: 1, ack: Some(1), ..back }),
    ];
    let qos = if marked { QosMark::Flow } else { QosMark::None };
    for number in 0..SEGMENTS {
        let pause = if number < at_first { 0 } else { RTT - u64::from(at_first) * every_ns };
        let at = RTT + u64::from(number) * every_ns + pause;
        let seq = 1 + number * SEGMENT;
        packets.push((at, false, TcpPacket { seq, ack: Some(1), payload: SEGMENT, qos, ..there }));
        packets.push((at + RTT, true, TcpPacket { seq: 1, ack: Some(seq + SEGMENT), ..back }));
        if number % 128 == 127 {
            // More is asked for, behind the headers of an acknowledgment.
            packets.push((
                at,
                false,
                signal(TcpPacket { seq: seq + SEGMENT, ack: Some(1), ..there }, request),
            ));
        }
    }
    let shift = |(at, is_back, packet)| (if is_back { at - later_ns / 2 } else { at + later_ns / 2 }, packet);
    let mut packets: Vec<(u64, TcpPacket)> = packets.into_iter().map(shift).collect();
    packets.sort_by_key(|(at, packet)| (*at, packet.payload));
    diagnosed(packets.iter().map(|(at, packet)| (*at, packet)))
}

/// 1500 B at 99.968 Mbit/s and at 29.984 Mbit/s.
const ALL: u64 = 120_039;
const LESS: u64 = 400_214;

#[test]
fn a_granted_rate_is_a_pace_from_the_first_data_on_wherever_it_is_seen() {
    for later_ns in [0, RTT / 2, RTT] {
        let report = transfer(100_000_000, ALL, later_ns, true);
        let whole = report.duration_s - 0.2;
        let time = share(&report, Limit::Paced) * report.duration_s;
        assert!(
            time > 0.95 * whole && share(&report, Limit::SlowStart) == 0.0,
            "{later_ns}: {:?}",
            report.limits
        );
        assert!(report.summary.contains("granted, 100.10 Mbit/s with headers"), "{}", report.summary);
        assert_eq!(report.bytes, u64::from(SEGMENTS * SEGMENT), "what is asked for is no data");
    }
}

#[test]
fn a_burst_at_the_granted_rate_is_no_rate_of_the_path() {
    for later_ns in [0, RTT] {
        let report = transfer_with(100_000_000, ALL, later_ns, true, 41);
        assert_eq!(share(&report, Limit::PathRate), 0.0, "{later_ns}: {:?}", report.limits);
        // Of 0.36 s.
        let paced = share(&report, Limit::Paced) * report.duration_s;
        assert!(paced > 0.34, "{later_ns}: {:?}", report.limits);
    }
}

#[test]
fn less_than_was_asked_for_is_all_that_the_path_has() {
    let report = transfer(30_000_000, LESS, 0, true);
    // Of 1.2 s; until a round trip has been delivered at it, it is a pace alone.
    let time = |limit| share(&report, limit) * report.duration_s;
    assert!(time(Limit::PathRate) > 1.0, "{:?}", report.limits);
    assert!(time(Limit::PathRate) + time(Limit::Paced) > 1.19, "{:?}", report.limits);
    assert_eq!(report.granted_bit_per_s, Some(29_984_000));
}

#[test]
fn what_was_granted_and_is_not_used_is_no_pace() {
    let report = transfer(30_000_000, LESS, 0, false);
    assert_eq!(
        (report.granted_bit_per_s, share(&report, Limit::PathRate)),
        (None, 0.0),
        "{:?}",
        report.limits
    );
}

/// Ten segments leave at once, and the next ten when 50 Mbit/s let them; the path of 100 Mbit/s brings them to the receiver.
const BURST: u64 = 10;

/// Seen at the receiver or at the sender, where the request passes no router before the capture; `apart_ns` lie between segments that leave together.
fn bursts(at_receiver: bool, apart_ns: u64, every_ns: u64, together: u64) -> ConnectionReport {
    let [there, back] = there_and_back();
    let request = Structure::request(RateUnit::KbitPerS.encode(50_000_000, Rounding::Up));
    let response = request.marked().response(Source::NONE_V4);
    let signal = |packet: TcpPacket, structure| TcpPacket {
        qos: QosMark::Signal,
        structures: Some(Structures::one(structure)),
        ..packet
    };
    let asked = if at_receiver { request.marked() } else { request };
    let syn = TcpPacket { syn: true, ack: None, mss: Some(1460), window_scale: Some(10), ..there };
    let syn_ack = TcpPacket { syn: true, ack: Some(1), mss: Some(1460), window_scale: Some(10), ..back };
    let mut packets = vec![
        (0, false, signal(syn, asked)),
        (RTT, true, signal(syn_ack, response)),
        (RTT, false, TcpPacket { seq: 1, ack: Some(1), ..there }),
        (RTT, true, TcpPacket { seq: 1, ack: Some(1), ..back }),
    ];
    for number in 0..u64::from(SEGMENTS) {
        let at = RTT + number / together * together * every_ns + number % together * apart_ns;
        let seq = 1 + number as u32 * SEGMENT;
        let data = TcpPacket { seq, ack: Some(1), payload: SEGMENT, qos: QosMark::Flow, ..there };
        packets.push((at, false, data));
        packets.push((at + RTT, true, TcpPacket { seq: 1, ack: Some(seq + SEGMENT), ..back }));
    }
    let later = if at_receiver { RTT / 2 } else { 0 };
    let shift = |(at, is_back, packet)| (if is_back { at - later } else { at + later }, packet);
    let mut packets: Vec<(u64, TcpPacket)> = packets.into_iter().map(shift).collect();
    packets.sort_by_key(|(at, packet)| (*at, packet.payload));
    diagnosed(packets.iter().map(|(at, packet)| (*at, packet)))
}

/// 1500 B at 49.984 Mbit/s, and at the path's 100 Mbit/s.
const GRANTED: u64 = 240_077;
const PATH: u64 = 120_000;

#[test]
fn a_granted_rate_is_kept_by_what_leaves_together_too() {
    // Within a millisecond hosts let several segments go at once.
    for (at_receiver, apart_ns, together) in [(false, 0, 4), (true, PATH, 4), (true, PATH, 2)] {
        let report = bursts(at_receiver, apart_ns, GRANTED, together);
        let paced = share(&report, Limit::Paced) * report.duration_s;
        assert!(paced > report.duration_s - 0.25, "{together}, {at_receiver}: {:?}", report.limits);
    }
    // Ten take 2.4 ms of the rate: such a pause is none of it.
    let report = bursts(false, 0, GRANTED, BURST);
    assert!(share(&report, Limit::Paced) < 0.9, "{:?}", report.limits);
}

#[test]
fn a_path_that_brings_nothing_faster_than_granted_has_no_more() {
    let time = |report: &ConnectionReport, limit| share(report, limit) * report.duration_s;
    let report = bursts(true, GRANTED, GRANTED, 2);
    assert!(time(&report, Limit::PathRate) > report.duration_s - 0.45, "{:?}", report.limits);
    // Before the router nothing is known of it, and all that was asked for was given.
    let report = bursts(false, GRANTED, GRANTED, 2);
    assert_eq!(time(&report, Limit::PathRate), 0.0, "{:?}", report.limits);
    // Two segments that come faster show a path that has more.
    let report = bursts(true, PATH, GRANTED, 2);
    assert_eq!(time(&report, Limit::PathRate), 0.0, "{:?}", report.limits);
}
