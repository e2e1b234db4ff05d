//! A pace and a window that leave alike are told apart by when they leave.

use crate::common::{diagnosed, share, there_and_back};
use farpath_diagnose::{ConnectionReport, Limit, TcpPacket};

const MS: u64 = 1_000_000;
const SEGMENT: u32 = 1448;

/// Two segments each 10 ms over a round trip of 100 ms, seen at the sender: they leave `late_ns` behind the acknowledgment of those before.
fn pairs(late_ns: u64) -> ConnectionReport {
    let [there, back] = there_and_back();
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
    diagnosed(packets.iter().map(|(at, packet)| (*at, packet)))
}

#[test]
fn what_leaves_with_acknowledgments_waits_for_the_window() {
    let report = pairs(0);
    assert!(share(&report, Limit::CongestionWindow) > 0.8, "{:?}", report.limits);
    assert!(share(&report, Limit::Paced) < 0.1, "{:?}", report.limits);
}

#[test]
fn what_leaves_between_acknowledgments_is_paced() {
    let report = pairs(4 * MS);
    assert!(share(&report, Limit::Paced) > 0.8, "{:?}", report.limits);
    assert_eq!(share(&report, Limit::CongestionWindow), 0.0, "{:?}", report.limits);
}

/// Forty segments a round trip of 100 ms; once 300 of them stood in a queue of 10 Mbit/s, whose acknowledgments let nothing go until 100 are left in
/// flight.
#[test]
fn a_window_that_shrinks_while_the_path_is_full_leaves_it_full() {
    const EVERY: u64 = 1_200_000;
    let [there, back] = there_and_back();
    let mut packets = vec![
        (0, TcpPacket { syn: true, ack: None, mss: Some(1460), window_scale: Some(7), ..there }),
        (100 * MS, TcpPacket { syn: true, ack: Some(1), mss: Some(1460), window_scale: Some(7), ..back }),
        (100 * MS, TcpPacket { seq: 1, ack: Some(1), ..there }),
    ];
    let ack_at = |number: u64| 200 * MS + number * EVERY;
    for number in 0..900_u64 {
        // 300 in flight; 500 to 699 wait until 600 are acknowledged, and 100 are in flight from then on.
        let at = match number {
            0..300 => 100 * MS,
            300..700 => ack_at(number - 300),
            _ => ack_at(number - 100),
        };
        let seq = 1 + number as u32 * SEGMENT;
        packets.push((at, TcpPacket { seq, ack: Some(1), payload: SEGMENT, ..there }));
        packets.push((ack_at(number), TcpPacket { seq: 1, ack: Some(seq + SEGMENT), ..back }));
    }
    packets.sort_by_key(|(at, packet)| (*at, packet.payload));
    let report = diagnosed(packets.iter().map(|(at, packet)| (*at, packet)));
    // The silence of 0.24 s begins when the queue has stood for a round trip.
    assert!(share(&report, Limit::CongestionWindow) < 0.1, "{:?}", report.limits);
    assert!(share(&report, Limit::PathRate) > 0.6, "{:?}", report.limits);
}

/// A program reads a segment each 70 us over a round trip of 2 ms; the sender waits for ten of them, fills the window, and what left together comes to
/// the receiver over a time in which the window goes on.
#[test]
fn what_came_together_fills_the_window_that_it_left_with() {
    const WINDOW: u64 = 30;
    const TOGETHER: u64 = 10;
    const READ: u64 = 70_000;
    let [there, back] = there_and_back();
    let mut packets = vec![
        (0, TcpPacket { syn: true, ack: None, mss: Some(1460), window_scale: Some(0), ..there }),
        (0, TcpPacket { syn: true, ack: Some(1), mss: Some(1460), window_scale: Some(0), ..back }),
        (2 * MS, TcpPacket { seq: 1, ack: Some(1), window: WINDOW as u16 * SEGMENT as u16, ..there }),
    ];
    // When each segment comes: a window of them, and then ten of them a millisecond after the last of ten was read.
    let comes = |number: u64| match number.checked_sub(WINDOW) {
        None => 2 * MS + number * 20_000,
        Some(more) => 5 * MS + more / TOGETHER * TOGETHER * READ + more % TOGETHER * 20_000,
    };
    let segments = WINDOW + 200 * TOGETHER;
    for number in 0..segments {
        let seq = 1 + number as u32 * SEGMENT;
        packets.push((comes(number), TcpPacket { seq, ack: Some(1), payload: SEGMENT, ..there }));
    }
    for read in 0..segments - WINDOW {
        // What of it is the last of ten reaches the sender a millisecond before the next ten come.
        let at = 3 * MS + read / TOGETHER * TOGETHER * READ - (TOGETHER - 1 - read % TOGETHER) * READ;
        let come = (0..segments).take_while(|number| comes(*number) < at).count() as u64;
        let window = ((WINDOW + read + 1 - come) * u64::from(SEGMENT)) as u16;
        packets.push((at, TcpPacket { seq: 1, ack: Some(1 + come as u32 * SEGMENT), window, ..back }));
    }
    packets.sort_by_key(|(at, packet)| (*at, packet.payload));
    let report = diagnosed(packets.iter().map(|(at, packet)| (*at, packet)));
    assert!(share(&report, Limit::ReceiveWindow) > 0.8, "{:?}", report.limits);
}

/// Segments that leave together within a millisecond of a pace, seen at the sender: eight each 0.6 ms over a round trip of 2 ms, in which
/// acknowledgments come all the time.
#[test]
fn what_a_pace_lets_go_together_is_followed_by_as_long_a_pause() {
    const EVERY: u64 = 600_000;
    let [there, back] = there_and_back();
    let mut packets = vec![
        (0, TcpPacket { syn: true, ack: None, mss: Some(1460), window_scale: Some(7), ..there }),
        (2 * MS, TcpPacket { syn: true, ack: Some(1), mss: Some(1460), window_scale: Some(7), ..back }),
        (2 * MS, TcpPacket { seq: 1, ack: Some(1), ..there }),
    ];
    for number in 0..1600_u64 {
        let at = 2 * MS + number / 8 * EVERY;
        let seq = 1 + number as u32 * SEGMENT;
        packets.push((at, TcpPacket { seq, ack: Some(1), payload: SEGMENT, ..there }));
        let acked = at + 2 * MS + number % 8 * 20_000;
        packets.push((acked, TcpPacket { seq: 1, ack: Some(seq + SEGMENT), ..back }));
    }
    packets.sort_by_key(|(at, packet)| (*at, packet.payload));
    let report = diagnosed(packets.iter().map(|(at, packet)| (*at, packet)));
    assert_eq!(share(&report, Limit::Application), 0.0, "{:?}", report.limits);
    assert!(share(&report, Limit::Paced) > 0.8, "{:?}", report.limits);
}

/// So many segments leave with the acknowledgments of those of a round trip of 100 ms before.
fn rounds(sizes: &[u32]) -> ConnectionReport {
    let [there, back] = there_and_back();
    let mut packets = vec![
        (0, TcpPacket { syn: true, ack: None, mss: Some(1460), window_scale: Some(10), ..there }),
        (100 * MS, TcpPacket { syn: true, ack: Some(1), mss: Some(1460), window_scale: Some(10), ..back }),
        (100 * MS, TcpPacket { seq: 1, ack: Some(1), ..there }),
        (100 * MS, TcpPacket { seq: 1, ack: Some(1), ..back }),
    ];
    let mut seq = 1;
    for (round, size) in (1..).zip(sizes) {
        for number in 0..*size {
            // Within 10 ms, so that each round trip is told from the next.
            let at = round * 100 * MS + u64::from(number) * 10 * MS / u64::from(*size);
            packets.push((at, TcpPacket { seq, ack: Some(1), payload: SEGMENT, ..there }));
            seq += SEGMENT;
            packets.push((at + 100 * MS, TcpPacket { seq: 1, ack: Some(seq), ..back }));
        }
    }
    packets.sort_by_key(|(at, packet)| (*at, packet.payload));
    diagnosed(packets.iter().map(|(at, packet)| (*at, packet)))
}

#[test]
fn growth_by_a_half_is_slow_start_where_nothing_has_doubled() {
    let time = |report: &ConnectionReport, limit| share(report, limit) * report.duration_s;
    let halves = rounds(&[10, 15, 22, 33, 50, 75, 112]);
    assert!(time(&halves, Limit::SlowStart) > 0.5, "{:?}", halves.limits);
    // CUBIC behind its slow start (RFC 9438 §4.4).
    let doubled = rounds(&[10, 20, 40, 80, 118, 175, 260]);
    let slow = time(&doubled, Limit::SlowStart);
    assert!((0.3..0.45).contains(&slow), "{:?}", doubled.limits);
}
