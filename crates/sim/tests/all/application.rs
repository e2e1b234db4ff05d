//! The programs at the ends: how fast they read, how much they may write, who speaks first.

use crate::common::{
    self, assert_close, delay, download, drops, duration, link, run_one, seconds, setup, stacks, time, upload,
};
use farpath_elements::{Duplicate, ElementKind, Listed, PacketCount};
use farpath_path::{Direction, PerDirection};
use farpath_sim::{End, FlowEnd, FlowSetup, FlowView, Observer, Opener, Packet, PacketEvent};
use farpath_tcp::Config;
use farpath_units::{Bytes, Instant, Writing};

/// When the first data segments left each end, and the smallest window that the receiver announced.
#[derive(Debug, Default)]
struct Watch {
    first_data: [Option<Instant>; 2],
    data_received: [u64; 2],
    smallest_window: Option<u16>,
    read: Vec<(Instant, u64)>,
}

impl Observer for Watch {
    fn packet(&mut self, now: Instant, event: PacketEvent, _: Direction, packet: &Packet) {
        let end = packet.from as usize;
        match event {
            PacketEvent::Sent if packet.segment.len > 0 => {
                self.first_data[end].get_or_insert(now);
            }
            PacketEvent::Sent if packet.from == End::Receiver => {
                let window = packet.segment.window;
                self.smallest_window = Some(self.smallest_window.map_or(window, |least| least.min(window)));
            }
            PacketEvent::Received => self.data_received[end] += u64::from(packet.segment.len),
            _ => {}
        }
    }

    fn state(&mut self, now: Instant, flow: FlowView<'_>) {
        if self.read.last().is_none_or(|&(_, read)| read != flow.bytes_read) {
            self.read.push((now, flow.bytes_read));
        }
    }
}

#[test]
fn a_slow_reader_sets_the_pace_and_shuts_the_window() {
    let mut stack = Config::default();
    stack.receive.buffer = Bytes(14_600);
    stack.receive.read_rate = Some(10_000);
    let mut watch = Watch::default();
    let flows = vec![upload(&stack, 200_000)];
    let result = common::observed(&setup(vec![delay("20 ms")], flows, 1), &mut watch).remove(0);
    // 20 s at the reader's rate; the first byte is there after the handshake and one way.
    assert_close(seconds(&result), 20.06, 0.001);
    assert_eq!(watch.smallest_window, Some(0), "the window shuts");
    assert!(result.sender.sender().stats().retransmissions == 0, "nothing is lost: nothing is repaired");
}

/// A window over (the round trip, and the link's time for what one update allows).
#[test]
fn a_window_of_the_programs_own_is_a_ceiling_on_the_rate() {
    let stack = stacks::linux(4 << 20);
    let payload = 10e6 * 1448.0 / 1500.0;
    for update_every in [None, Some(Bytes(10_000))] {
        let writing = Writing { window: Some(Bytes(100_000)), update_every, ..Writing::default() };
        let time = |size| {
            let flow = FlowSetup { writing, ..upload(&stack, size) };
            let result = run_one(vec![link("10 Mbit/s", 0), delay("100 ms")], flow);
            assert_eq!((result.end, result.sender.sender().stats().retransmissions), (FlowEnd::Completed, 0));
            seconds(&result)
        };
        let step = update_every.unwrap_or(Bytes(50_000));
        let cycle = 0.2 + step.bits() as f64 / payload;
        let rate = 8.0 * 4_000_000.0 / (time(6_000_000) - time(2_000_000));
        assert_close(rate, 100_000.0 * 8.0 / cycle, 0.01);
    }
}

#[test]
fn a_program_that_thinks_between_its_writes_sets_the_pace() {
    let writing =
        Writing { write_size: Some(Bytes(10_000)), think_time: duration("50 ms"), ..Writing::default() };
    let flow = FlowSetup { writing, ..upload(&stacks::linux(4 << 20), 200_000) };
    let result = run_one(vec![delay("20 ms")], flow);
    // Nineteen pauses, and the way of the last piece: who opens writes the first one before the handshake is over.
    assert_close(seconds(&result), 19.0 * 0.050 + 0.020, 1e-3);
    assert_eq!(result.sender.sender().stats().data_segments, 20 * 7, "no piece waits for the next");
}

/// Pieces that no segment is long enough for, or that are longer than the send buffer: all arrives.
#[test]
fn pieces_of_any_size_arrive_whole() {
    let mut small = stacks::linux(4 << 20);
    small.send.buffer = Some(Bytes(20_000));
    for stack in [small, Config::default()] {
        for (window, write_size) in
            [(None, 1), (None, 999), (Some(1), 100), (Some(777), 64_000), (Some(1 << 20), 300_000)]
        {
            let writing = Writing {
                window: window.map(Bytes),
                write_size: Some(Bytes(write_size)),
                ..Writing::default()
            };
            let flow = FlowSetup { writing, ..download(&stack, 20_001, 100) };
            let result = run_one(vec![link("10 Mbit/s", 0), delay("1 ms")], flow);
            assert_eq!((result.end, result.bytes_read), (FlowEnd::Completed, Bytes(20_001)), "{writing:?}");
        }
    }
}

/// What a window field cannot announce is as if it were not there: no window update asks for it.
#[test]
fn a_buffer_beyond_what_can_be_announced_changes_nothing() {
    let acks = |buffer| {
        let mut stack = Config::default();
        stack.receive.buffer = Bytes(buffer);
        let result = run_one(vec![link("10 Mbit/s", 0), delay("279 ms")], upload(&stack, 1_000_000));
        (seconds(&result).to_bits(), result.receiver.stats().pure_acks)
    };
    assert_eq!(acks(65_535), acks(700_000));
}

/// Windows are announced in units of 2^14 B at this size. Rounding each of them up let the buffer take in any file.
#[test]
fn a_reader_that_reads_nothing_is_not_sent_more_than_its_buffer() {
    let mut stack = stacks::long_fat(1_000_000_000);
    stack.receive.read_rate = Some(1);
    let mut setup = setup(vec![link("10 Gbit/s", 0), delay("5 ms")], vec![upload(&stack, 2_000_000_000)], 1);
    setup.horizon = duration("3 s");
    let result = common::run(&setup).remove(0);
    let held = result.receiver.receiver().readable();
    assert!((999_000_000..=1_000_000_000).contains(&held), "{held} B");
}

#[test]
fn a_window_that_stays_shut_is_probed() {
    // 1000 B/s: two segments' worth of room takes 2.9 s, longer than the first probe's second.
    let mut stack = Config::default();
    stack.receive.buffer = Bytes(8760);
    stack.receive.read_rate = Some(1000);
    let result = run_one(vec![delay("20 ms")], upload(&stack, 50_000));
    assert_eq!(result.end, FlowEnd::Completed);
    assert!(result.sender.sender().stats().probes > 0, "{:?}", result.sender.sender().stats());
    assert_close(seconds(&result), 50.06, 0.001);
}

#[test]
fn a_reader_never_reads_faster_than_its_rate_however_small_the_segments() {
    let mut flow = upload(&Config::default(), 100_000);
    flow.sender.mss = Bytes(300);
    flow.receiver.receive.read_rate = Some(10_000);
    let mut watch = Watch::default();
    let result = common::observed(&setup(vec![delay("20 ms")], vec![flow], 1), &mut watch).remove(0);
    assert!(seconds(&result) >= 10.06, "{} s", seconds(&result));
    let begun = watch.read.iter().find(|&&(_, read)| read > 0).expect("something is read").0;
    for &(at, read) in watch.read.iter().filter(|&&(_, read)| read > 0) {
        let possible = (at - begun).as_secs_f64() * 10_000.0 + 1460.0;
        assert!(read as f64 <= possible + 1.0, "{read} B at {at}");
    }
}

#[test]
fn a_program_that_never_reads_gets_nothing_and_is_probed_for_ever() {
    let mut stack = Config::default();
    stack.receive.read_rate = Some(0);
    let mut setup = setup(vec![delay("20 ms")], vec![upload(&stack, 200_000)], 1);
    setup.horizon = duration("1 h");
    let result = common::run(&setup).remove(0);
    assert_eq!((result.end, result.bytes_read), (FlowEnd::Horizon, Bytes::ZERO));
    // RFC 9293 §3.8.6.1: while the probes are answered there is no giving up, whatever the number of retries.
    let probes = result.sender.sender().stats().probes;
    assert!((55..=70).contains(&probes), "{probes} probes, one a minute");
}

#[test]
fn a_send_buffer_smaller_than_the_window_is_the_window() {
    let mut stack = Config::default();
    stack.receive.ack_every = 1;
    stack.send.buffer = Some(Bytes(14_600));
    stack.send.nagle = false;
    let result = run_one(vec![delay("50 ms")], upload(&stack, 2_000_000));
    // Ten segments a round trip of 100 ms, after the handshake; slow start costs two round trips more.
    assert_close(seconds(&result), 0.1 + 0.1 * 2_000_000.0 / 14_600.0, 0.02);
}

#[test]
fn the_answer_follows_the_whole_request() {
    let mut watch = Watch::default();
    let flow = download(&Config::default(), 10_000, 3_000);
    let path = vec![link("1 Mbit/s", 0), delay("20 ms")];
    let result = common::observed(&setup(path, vec![flow], 1), &mut watch).remove(0);
    assert_eq!(result.end, FlowEnd::Completed);
    assert_eq!(watch.data_received[End::Receiver as usize], 3_000);
    let asked = watch.first_data[End::Receiver as usize].expect("it asks");
    let answered = watch.first_data[End::Sender as usize].expect("it answers");
    // Three segments of request: 3120 B at 1 Mbit/s and 20 ms on the way.
    assert!(answered - asked >= duration("44.9 ms"), "asked {asked}, answered {answered}");
}

#[test]
fn a_request_may_be_longer_than_the_send_buffer() {
    let mut stack = Config::default();
    stack.send.buffer = Some(Bytes(2_000));
    let result = run_one(vec![delay("20 ms")], download(&stack, 10_000, 9_000));
    assert_eq!((result.end, result.bytes_read), (FlowEnd::Completed, Bytes(10_000)));
}

#[test]
fn a_download_without_a_request_is_answered_when_the_handshake_is_over() {
    let mut watch = Watch::default();
    let flow = download(&Config::default(), 10_000, 0);
    common::observed(&setup(vec![delay("20 ms")], vec![flow], 1), &mut watch);
    assert_eq!(watch.first_data[End::Sender as usize], Some(time("60 ms")));
}

#[test]
fn an_empty_file_is_complete_when_its_end_has_arrived() {
    for opener in [Opener::Sender, Opener::Receiver] {
        let mut flow = upload(&Config::default(), 0);
        flow.opener = opener;
        let result = run_one(vec![delay("20 ms")], flow);
        assert_eq!(result.end, FlowEnd::Completed);
        let expected = if opener == Opener::Sender { "60 ms" } else { "80 ms" };
        assert_eq!(result.ended_at, time(expected), "{opener:?}: handshake, then FIN");
    }
}

/// What is read is told of when it is read, not when the sender hears of it.
#[test]
fn reading_is_seen_at_the_time_of_reading() {
    let mut watch = Watch::default();
    let flow = upload(&Config::default(), 1_000);
    let result = common::observed(&setup(vec![delay("1 s")], vec![flow], 1), &mut watch).remove(0);
    assert_eq!(watch.read.last(), Some(&(result.ended_at, 1_000)));
}

/// The congestion window is averaged over the transfer, not over the closing handshake that follows it.
#[test]
fn the_mean_window_is_that_of_the_transfer() {
    let mut stack = Config::default();
    stack.receive.ack_every = 1;
    let quick = run_one(vec![delay("20 ms")], upload(&stack, 30_000));
    // The FIN of the receiver and two of its retransmissions are lost: seconds of closing.
    let acks = quick.receiver.stats().segments_sent;
    let fins: Vec<u64> = (acks..acks + 3).collect();
    let slow = run_one(vec![delay("20 ms"), drops(&[], &fins)], upload(&stack, 30_000));
    assert!(slow.receiver.closed().expect("closed").1 > time("1 s"), "{:?}", slow.receiver.closed());
    assert_eq!(slow.ended_at, quick.ended_at);
    assert_eq!(slow.mean_cwnd, quick.mean_cwnd);
    // 3 segments for one round trip, 6 for the next, 12 for the half in which the last data are under way.
    assert_eq!(quick.mean_cwnd, (4380.0 * 40.0 + 8760.0 * 40.0 + 17_520.0 * 20.0) / 100.0);
}

/// A retransmission is spurious where the receiver had its payload; what the network copies is no retransmission.
#[test]
fn copies_made_by_the_network_are_not_spurious_retransmissions() {
    let copies = ElementKind::Duplicate(Duplicate { share: PerDirection::both(common::probability(1.0)) });
    let packets = PerDirection { forward: vec![5], reverse: Vec::new() };
    let loss =
        ElementKind::Listed(Listed { times: PerDirection::default(), packets, count: PacketCount::Data });
    let path = vec![delay("20 ms"), common::element("loss", loss), common::element("copies", copies)];
    let result = run_one(path, upload(&Config::default(), 20_000));
    assert_eq!(result.sender.sender().stats().retransmissions, 1);
    assert_eq!(result.spurious_retransmissions, 0);
}

#[test]
fn a_retransmission_of_what_has_arrived_is_spurious() {
    // All ACKs of the first window are lost: the timer sends its first segment again, to a receiver that has it.
    let stack = stacks::initial_rto_3s();
    let result = run_one(vec![delay("20 ms"), drops(&[], &[2, 3])], upload(&stack, 2_920));
    let sent = result.sender.sender().stats();
    assert_eq!((sent.timeouts, sent.retransmissions), (1, 1));
    assert_eq!(result.spurious_retransmissions, 1);
}
