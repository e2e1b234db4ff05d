//! How data was sent again, and what waited for timers.

use crate::common::{diagnosed, there_and_back};
use farpath_diagnose::{ConnectionReport, Losses, TcpPacket};

const MS: u64 = 1_000_000;
const RTT: u64 = 100 * MS;
const SEGMENT: u32 = 1000;

/// Packets of a connection whose handshake is over at 100 ms, seen at the sender.
struct Packets {
    there: TcpPacket,
    back: TcpPacket,
    all: Vec<(u64, TcpPacket)>,
}

impl Packets {
    fn new() -> Packets {
        let [there, back] = there_and_back();
        let syn = TcpPacket { syn: true, ack: None, mss: Some(1000), window_scale: Some(7), ..there };
        let syn_ack = TcpPacket { syn: true, ack: Some(1), mss: Some(1000), window_scale: Some(7), ..back };
        let ack = TcpPacket { seq: 1, ack: Some(1), ..there };
        Packets { there, back, all: vec![(0, syn), (RTT, syn_ack), (RTT, ack)] }
    }

    /// Segment of that number leaves, and says what time it is.
    fn data(&mut self, at: u64, number: u32) {
        let timestamps = Some(((at / MS) as u32, 0));
        let data = TcpPacket { seq: 1 + number * SEGMENT, ack: Some(1), payload: SEGMENT, ..self.there };
        self.all.push((at, TcpPacket { timestamps, ..data }));
    }

    /// All before that segment is acknowledged, by what had left at `echoed`; `sacked_to` the end of a segment behind.
    fn ack(&mut self, at: u64, number: u32, echoed: u64, sacked_to: Option<u32>) -> &mut TcpPacket {
        let timestamps = Some((0, (echoed / MS) as u32));
        let sacked_to = sacked_to.map(|number| 1 + (number + 1) * SEGMENT);
        let ack = TcpPacket { seq: 1, ack: Some(1 + number * SEGMENT), ..self.back };
        self.all.push((at, TcpPacket { timestamps, sacked_to, ..ack }));
        &mut self.all.last_mut().expect("it is there").1
    }

    fn told(&self) -> ConnectionReport {
        diagnosed(self.all.iter().map(|(at, packet)| (*at, packet)))
    }
}

#[test]
fn losses_are_told_by_repairs_and_runs() {
    let mut packets = Packets::new();
    (0..10).for_each(|number| packets.data(RTT, number));
    // 2, 3 and 6 are lost, and so is 6 when it is sent again.
    packets.ack(2 * RTT, 2, RTT, None);
    (4..10).filter(|number| *number != 6).for_each(|number| {
        packets.ack(2 * RTT + MS, 2, RTT, Some(number));
    });
    [2, 3, 6, 6].into_iter().for_each(|number| packets.data(2 * RTT + 2 * MS, number));
    packets.ack(3 * RTT, 6, 2 * RTT, Some(9));
    packets.ack(4 * RTT, 10, 2 * RTT, None).is_dsack = true;
    let report = packets.told();
    assert_eq!(report.retransmissions, 4);
    let expected = Losses {
        repairs: 1,
        largest_repair: 4,
        runs: 3,
        longest_run: 2,
        lost_retransmissions: 1,
        dsacks: 1,
        ..Losses::default()
    };
    assert_eq!(report.losses, expected);
}

#[test]
fn repairs_by_timeout_are_of_the_tail_or_for_nothing() {
    let mut packets = Packets::new();
    (0..10).for_each(|number| packets.data(RTT, number));
    packets.ack(2 * RTT, 9, RTT, None);
    // The last is lost.
    packets.data(5 * RTT, 9);
    packets.ack(6 * RTT, 10, 5 * RTT, None);
    // Ten are late, and the first of them is sent again.
    (10..20).for_each(|number| packets.data(7 * RTT, number));
    packets.data(10 * RTT, 10);
    packets.ack(10 * RTT + MS, 20, 7 * RTT, None);
    let report = packets.told();
    let expected = Losses {
        repairs: 2,
        by_timeout: 2,
        tail: 1,
        spurious: 1,
        largest_repair: 1,
        runs: 2,
        longest_run: 1,
        ..Losses::default()
    };
    assert_eq!(report.losses, expected);
    assert_eq!(report.initial_window, Some(10 * u64::from(SEGMENT)));
}

#[test]
fn a_lone_segment_whose_acknowledgment_is_delayed_is_told() {
    let mut packets = Packets::new();
    for number in 0..8 {
        let at = RTT + u64::from(number) * (RTT + 40 * MS);
        packets.data(at, number);
        packets.ack(at + RTT + 40 * MS, number + 1, at, None);
    }
    let timers = packets.told().timers;
    // Nothing waited for the last.
    assert_eq!((timers.delayed_acks, timers.window_probes, timers.keep_alives), (7, 0, 0));
    assert!((timers.delayed_acks_s - 0.28).abs() < 1e-6, "{timers:?}");
}

#[test]
fn probes_are_told_by_what_they_ask() {
    let mut packets = Packets::new();
    packets.data(RTT, 0);
    packets.ack(2 * RTT, 1, RTT, None).window = 0;
    // The byte before what is next, as Linux asks for a window, or whether anybody is there.
    let probe = TcpPacket { seq: SEGMENT, ack: Some(1), ..packets.there };
    packets.all.push((4 * RTT, probe));
    packets.all.push((8 * RTT, probe));
    packets.ack(9 * RTT, 1, RTT, None);
    packets.all.push((20 * RTT, probe));
    let timers = packets.told().timers;
    assert_eq!((timers.window_probes, timers.keep_alives), (2, 1), "{timers:?}");
}
