//! A program that waits for messages of its peer's is told from Nagle's algorithm and from windows of TCP.

use crate::common::{diagnosed, share, there_and_back};
use farpath_diagnose::{ConnectionReport, Limit, TcpPacket};

const MS: u64 = 1_000_000;
const SEGMENT: u32 = 1448;

fn opened() -> ([TcpPacket; 2], Vec<(u64, TcpPacket)>) {
    let [there, back] = there_and_back();
    let packets = vec![
        (0, TcpPacket { syn: true, ack: None, mss: Some(1460), window_scale: Some(7), ..there }),
        (100 * MS, TcpPacket { syn: true, ack: Some(1), mss: Some(1460), window_scale: Some(7), ..back }),
        (100 * MS, TcpPacket { seq: 1, ack: Some(1), ..there }),
    ];
    ([there, back], packets)
}

/// Short requests, each sent at once behind the answer to the one before; the answer takes the acknowledgment along, or follows it.
fn requests(bare_first: bool) -> ConnectionReport {
    let ([there, back], mut packets) = opened();
    for turn in 0..50 {
        let at = 100 * MS + u64::from(turn) * 100 * MS;
        let (seq, answer) = (1 + 200 * turn, 1 + 100 * turn);
        packets.push((at, TcpPacket { seq, ack: Some(answer), payload: 200, push: true, ..there }));
        let ack = Some(seq + 200);
        if bare_first {
            packets.push((at + 99 * MS, TcpPacket { seq: answer, ack, ..back }));
        }
        packets.push((at + 100 * MS, TcpPacket { seq: answer, ack, payload: 100, push: true, ..back }));
    }
    packets.sort_by_key(|(at, packet)| (*at, packet.source != back.source));
    diagnosed(packets.iter().map(|(at, packet)| (*at, packet)))
}

#[test]
fn requests_wait_for_answers_and_not_for_nagles_algorithm() {
    for bare_first in [false, true] {
        let report = requests(bare_first);
        assert_eq!(share(&report, Limit::Nagle), 0.0, "{:?}", report.limits);
        assert!(share(&report, Limit::Application) > 0.9, "{:?}", report.limits);
    }
}

/// 100 segments of 1 ms each, and the next 100 behind the peer's message, 20 ms after the last of them was acknowledged.
fn windows() -> ConnectionReport {
    let ([there, back], mut packets) = opened();
    for turn in 0..20 {
        let at = 100 * MS + u64::from(turn) * 220 * MS;
        for segment in 0..100 {
            let seq = 1 + (100 * turn + segment) * SEGMENT;
            packets.push((
                at + u64::from(segment) * MS / 100,
                TcpPacket { seq, ack: Some(1), payload: SEGMENT, ..there },
            ));
            let back = TcpPacket { seq: 1 + 36 * turn, ack: Some(seq + SEGMENT), ..back };
            packets.push((at + 100 * MS + u64::from(segment) * MS, back));
        }
        let ack = Some(1 + 100 * (turn + 1) * SEGMENT);
        let message = TcpPacket { seq: 1 + 36 * turn, ack, payload: 36, push: true, ..back };
        packets.push((at + 220 * MS, message));
    }
    packets.sort_by_key(|(at, packet)| (*at, packet.source != back.source));
    diagnosed(packets.iter().map(|(at, packet)| (*at, packet)))
}

#[test]
fn a_window_of_the_programs_own_is_known_by_the_message_that_opens_it() {
    let report = windows();
    assert!(share(&report, Limit::Application) > 0.8, "{:?}", report.limits);
}
