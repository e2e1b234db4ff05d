//! The loop between two hosts that lie in memory: no privilege, real time.

use crate::common::{MemoryPort, V4, V6, data, packet, payload_of, stream, super_packet};
use farpath_elements::{
    Bernoulli, Delay, Duplicate, ElementKind, ElementSpec, Link, Listed, MarkThreshold, PacketCount,
    QueueLimit, build_path,
};
use farpath_emu::{
    Clock, EmuError, Emulator, LoopReport, Malformed, PacketEvent, Queues, RealtimeGrant, Recorder, Settings,
    VirtioHeader, WirePacket, gso,
};
use farpath_path::{Direction, DropCause, PathElement, PathPacket, PerDirection, Verdict};
use farpath_testing::{Need, skip};
use farpath_units::{Bytes, Duration, Instant, Probability, Rate};
use std::sync::atomic::{AtomicBool, Ordering};

fn element(name: &str, kind: ElementKind) -> ElementSpec {
    ElementSpec { name: name.to_owned(), kind }
}

fn delay(ms: u64) -> ElementSpec {
    element("delay", ElementKind::Delay(Delay { delay: PerDirection::both(Duration::from_millis(ms)) }))
}

fn losing(numbers: &[u64]) -> ElementSpec {
    let packets = PerDirection { forward: numbers.to_vec(), reverse: Vec::new() };
    element(
        "losses",
        ElementKind::Listed(Listed { times: PerDirection::default(), packets, count: PacketCount::All }),
    )
}

/// Two hosts in memory, and how the loop between them is to run.
struct Bench {
    near: MemoryPort,
    far: MemoryPort,
    settings: Settings,
    clock: Clock,
}

/// What happened to packets. It stops the loop when so many have come to their end.
struct Log<'a> {
    events: Vec<(Instant, PacketEvent, Direction, u64)>,
    to_come: u64,
    stop: &'a AtomicBool,
    longest_queue: Bytes,
}

impl Recorder for Log<'_> {
    fn packet(
        &mut self,
        at: Instant,
        event: PacketEvent,
        direction: Direction,
        packet: &WirePacket,
        queues: Queues<'_>,
    ) {
        self.events.push((at, event, direction, packet.number()));
        self.longest_queue = self.longest_queue.max(queues.backlog(direction).unwrap_or(Bytes::ZERO));
        if event != PacketEvent::Sent {
            self.to_come -= 1;
            self.stop.store(self.to_come == 0, Ordering::Relaxed);
        }
    }
}

/// What a loop left behind.
struct Outcome {
    report: LoopReport,
    events: Vec<(Instant, PacketEvent, Direction, u64)>,
    longest_queue: Bytes,
}

impl Bench {
    fn new() -> Bench {
        let settings = Settings { realtime: false, ..Settings::default() };
        Bench { near: MemoryPort::default(), far: MemoryPort::default(), settings, clock: Clock::start() }
    }

    /// Runs the loop until `packets` have arrived or been dropped.
    fn run(&self, path: &[ElementSpec], packets: u64) -> Result<Outcome, EmuError> {
        let (near, far) = (Box::new(self.near.clone()), Box::new(self.far.clone()));
        let mut emulator = Emulator::new(path, 7, self.settings, near, far, self.clock)?;
        let stop = AtomicBool::new(false);
        let mut log = Log { events: Vec::new(), to_come: packets, stop: &stop, longest_queue: Bytes::ZERO };
        let report = emulator.run(&stop, &mut log)?;
        Ok(Outcome { report, events: log.events, longest_queue: log.longest_queue })
    }
}

fn numbers(outcome: &Outcome, event: PacketEvent) -> Vec<u64> {
    outcome.events.iter().filter(|entry| entry.1 == event).map(|entry| entry.3).collect()
}

#[test]
fn packets_arrive_one_delay_later_never_earlier() {
    let bench = Bench::new();
    for (number, port) in [&bench.near, &bench.far, &bench.near, &bench.far].into_iter().enumerate() {
        let ends = if number % 2 == 0 { V4 } else { [V4[1], V4[0]] };
        let at = Instant::from_nanos(number as u64 * 3_000_000);
        port.send_at(at, VirtioHeader::default(), packet(ends, &data(0, 100), 0));
    }
    let outcome = bench.run(&[delay(20)], 4).expect("a sound path");
    for direction in Direction::BOTH {
        let times = |event| {
            let of =
                |entry: &&(Instant, PacketEvent, Direction, u64)| entry.1 == event && entry.2 == direction;
            outcome.events.iter().filter(of).map(|entry| entry.0).collect::<Vec<_>>()
        };
        let (sent, received) = (times(PacketEvent::Sent), times(PacketEvent::Received));
        assert_eq!((sent.len(), received.len()), (2, 2));
        let on_the_way: Vec<Duration> = received.iter().zip(&sent).map(|(&to, &from)| to - from).collect();
        assert!(on_the_way.iter().all(|&time| time >= Duration::from_millis(20)), "{on_the_way:?}");
        // What the packets were late is what the report says, to the nanosecond.
        let lateness = &outcome.report.lateness[direction];
        let latest = on_the_way.iter().max().expect("two").saturating_sub(Duration::from_millis(20));
        assert_eq!((lateness.packets(), lateness.max()), (2, latest));
        let port = if direction == Direction::Forward { &bench.far } else { &bench.near };
        assert_eq!(port.memory().got.iter().map(|got| got.0).collect::<Vec<_>>(), received);
    }
    assert_eq!(outcome.report.left_under_way, 0);
    assert!(outcome.report.elapsed >= Duration::from_millis(26));
}

#[test]
fn the_same_seed_and_number_meet_the_same_fate_as_in_a_simulation() {
    let loss = Probability::new(0.3).expect("a probability");
    let path = [
        element(
            "loss",
            ElementKind::Bernoulli(Bernoulli {
                loss_rate: PerDirection::both(loss),
                count: PacketCount::Data,
            }),
        ),
        element("twice", ElementKind::Duplicate(Duplicate { share: PerDirection::both(loss) })),
    ];
    let mut simulated = build_path(&path, 7).expect("a sound path");
    let (mut dropped, mut arrived) = (Vec::new(), Vec::new());
    for number in 1..=400u64 {
        let whole = packet(V4, &data(0, if number % 5 == 0 { 0 } else { 500 }), 0);
        match simulated.offer(Instant::ZERO, Direction::Forward, WirePacket::new(whole, None, number)) {
            Verdict::Dropped { packet, .. } => dropped.push(packet.number()),
            Verdict::Accepted => {}
        }
    }
    while let Some(departure) = simulated.take(Instant::ZERO) {
        arrived.push(departure.packet.number());
    }

    // Four data segments come as one super-packet, then an ACK: the segments count, not what they came in.
    let bench = Bench::new();
    for _ in 0..80 {
        let (header, bytes) = super_packet(V4, &data(0, 2000), 0, 500);
        bench.near.send_at(Instant::ZERO, header, bytes);
        bench.near.send_at(Instant::ZERO, VirtioHeader::default(), packet(V4, &data(2000, 0), 0));
    }
    let outcome = bench.run(&path, (dropped.len() + arrived.len()) as u64).expect("a sound path");
    assert!(dropped.len() > 50 && arrived.len() > 300, "the path does something");
    assert_eq!(numbers(&outcome, PacketEvent::Dropped(DropCause::Loss)), dropped);
    assert_eq!(numbers(&outcome, PacketEvent::Received), arrived);
    let counts = outcome.report.packets.forward;
    assert_eq!((counts.taken, counts.offered), (160, 400));
    assert_eq!((counts.dropped, counts.delivered), (dropped.len() as u64, arrived.len() as u64));
    assert_eq!(outcome.report.elements[0].dropped.total(), dropped.len() as u64);
}

#[test]
fn survivors_are_joined_where_asked_and_never_over_a_gap() {
    for ends in [V4, V6] {
        let mut bench = Bench::new();
        bench.settings.coalesce = true;
        let (header, bytes) = super_packet(ends, &data(0, 9_500), 0, 1000);
        bench.near.send_at(Instant::ZERO, header, bytes);
        let outcome = bench.run(&[losing(&[4])], 10).expect("a sound path");
        let got = std::mem::take(&mut bench.far.memory().got);
        let payloads: Vec<&[u8]> = got.iter().map(|(_, _, bytes)| payload_of(bytes)).collect();
        assert_eq!(payloads, [&stream(0, 3000)[..], &stream(4000, 5500)]);
        let counts = outcome.report.packets.forward;
        assert_eq!((counts.delivered, counts.handed_over, counts.dropped), (9, 2, 1));
        // Split again they are the segments that went in; finished, the strict decoder likes them.
        let mut next = 0;
        for (_, header, bytes) in &got {
            assert_eq!(header.gso_size, 1000);
            gso::split(*header, bytes, |bytes, checksum| {
                let mut segment = WirePacket::new(bytes, checksum, 1);
                segment.finish_checksum();
                let decoded = segment.decode().expect("a sound segment");
                next += if next == 3000 { 1000 } else { 0 };
                assert_eq!(decoded.segment.seq, data(next, 0).seq);
                next += u64::from(decoded.segment.len);
            });
        }
        assert_eq!(next, 9_500);
    }
}

#[test]
fn nothing_is_joined_unless_asked() {
    let bench = Bench::new();
    let (header, bytes) = super_packet(V4, &data(0, 9_500), 0, 1000);
    bench.near.send_at(Instant::ZERO, header, bytes);
    let outcome = bench.run(&[], 10).expect("a path of nothing");
    assert_eq!(outcome.report.packets.forward.handed_over, 10);
    assert!(bench.far.memory().got.iter().all(|(_, header, _)| header.gso_type == VirtioHeader::GSO_NONE));
}

#[test]
fn segments_that_differ_in_more_than_their_place_go_alone() {
    let mut bench = Bench::new();
    bench.settings.coalesce = true;
    let mut acks_more = data(2000, 1000);
    acks_more.ack = acks_more.ack.advanced_by(1);
    let mut other_window = data(3000, 1000);
    other_window.window += 1;
    let segments = [data(0, 1000), data(1000, 1000), acks_more, other_window, data(4000, 0), data(4000, 900)];
    for segment in &segments {
        let (header, bytes) = super_packet(V4, segment, 0, 1000);
        bench.near.send_at(Instant::ZERO, header, bytes);
    }
    let outcome = bench.run(&[delay(30)], 6).expect("a sound path");
    assert_eq!(outcome.report.packets.forward.delivered, 6);
    let got = &bench.far.memory().got;
    let len = |bytes: &Vec<u8>| payload_of(bytes).len();
    // They may be due some microseconds apart: the first two go together or not, the others never.
    let lengths: Vec<usize> = got.iter().map(|(_, _, bytes)| len(bytes)).collect();
    let apart = [1000, 1000, 1000, 1000, 0, 900];
    assert!(lengths == apart || lengths[0] == 2000 && lengths[1..] == apart[2..], "{lengths:?}");
}

#[test]
fn a_queue_is_seen_to_fill_and_to_overflow() {
    let link = element(
        "link",
        ElementKind::Link(Link {
            rate: PerDirection::both(Rate::from_bit_per_s(100_000_000).expect("not zero")),
            queue: PerDirection::both(QueueLimit::Packets(4)),
            mark: PerDirection::both(MarkThreshold::Never),
            aqm: PerDirection::default(),
            overhead: Bytes::ZERO,
            min_packet: Bytes::ZERO,
        }),
    );
    let bench = Bench::new();
    let (header, bytes) = super_packet(V4, &data(0, 10_000), 0, 1000);
    bench.near.send_at(Instant::ZERO, header, bytes);
    let outcome = bench.run(&[link], 10).expect("a sound path");
    assert_eq!(numbers(&outcome, PacketEvent::Received), [1, 2, 3, 4, 5]);
    assert_eq!(numbers(&outcome, PacketEvent::Dropped(DropCause::QueueOverflow)), [6, 7, 8, 9, 10]);
    assert_eq!(outcome.longest_queue, Bytes(4 * 1040));
    let arrivals: Vec<Instant> = bench.far.memory().got.iter().map(|got| got.0).collect();
    let five = Duration::from_nanos(5 * 1040 * 80);
    assert!(arrivals[4].saturating_since(Instant::ZERO) >= five, "a link never beats its rate");
}

#[test]
fn too_much_under_way_ends_the_run_and_says_so() {
    let mut bench = Bench::new();
    bench.settings.memory = Bytes(20_000);
    for number in 0..20 {
        bench.near.send_at(Instant::ZERO, VirtioHeader::default(), packet(V4, &data(number * 1000, 1000), 0));
    }
    let error = bench.run(&[delay(60_000)], 20).err().expect("a minute's delay holds all of them");
    let EmuError::Memory { held, memory } = &error else { panic!("{error}") };
    assert!(*memory == Bytes(20_000) && *held > Bytes(20_000) && *held < Bytes(22_000), "{error}");
    assert!(error.to_string().contains("allow more"), "{error}");
}

#[test]
fn copies_count_as_memory_until_they_are_gone() {
    let twice =
        element("twice", ElementKind::Duplicate(Duplicate { share: PerDirection::both(Probability::ONE) }));
    let bench = Bench::new();
    for _ in 0..10 {
        bench.near.send_at(Instant::ZERO, VirtioHeader::default(), packet(V4, &data(0, 960), 0));
    }
    let report = bench.run(&[twice, delay(30)], 20).expect("a sound path").report;
    // All twenty are under way at once: nothing arrives for 30 ms. A packet is 1000 B, and its bookkeeping.
    assert!((20_000..24_000).contains(&report.peak_held.0), "{}", report.peak_held);
}

#[test]
fn what_a_device_refuses_is_counted_and_the_rest_goes_on() {
    const EINVAL: i32 = 22;
    let bench = Bench::new();
    bench.far.memory().refuses_with = Some(EINVAL);
    for port in [&bench.near, &bench.far] {
        port.send_at(Instant::ZERO, VirtioHeader::default(), packet(V4, &data(0, 10), 0));
    }
    let outcome = bench.run(&[], 2).expect("a path of nothing");
    assert_eq!(outcome.report.send_errors.into_iter().collect::<Vec<_>>(), [(EINVAL, 1)]);
    let counts = outcome.report.packets;
    assert_eq!((counts.forward.refused, counts.forward.delivered, counts.reverse.delivered), (1, 0, 1));
    assert!(outcome.events.iter().any(|entry| entry.1 == PacketEvent::Refused));
    assert_eq!(outcome.report.lateness.forward.packets(), 0, "what was not handed over was not late");
}

#[test]
fn malformed_packets_are_counted_by_kind_and_those_that_can_be_go_on() {
    let bench = Bench::new();
    let whole = packet(V4, &data(0, 10), 0);
    let mut fragment = whole.clone();
    fragment[6] = 0x20;
    let mut ping = whole.clone();
    ping[9] = 1;
    let (mut header, supers) = super_packet(V4, &data(0, 3000), 0, 1000);
    header.gso_size = 0;
    bench.near.send_at(Instant::ZERO, VirtioHeader::default(), vec![0; 30]);
    bench.near.send_at(Instant::ZERO, header, supers);
    for packet in [fragment, ping, whole] {
        bench.near.send_at(Instant::ZERO, VirtioHeader::default(), packet);
    }
    let report = bench.run(&[], 3).expect("a path of nothing").report;
    let malformed = report.malformed.forward;
    let kinds =
        [Malformed::IpHeader, Malformed::Gso, Malformed::Fragment].map(|kind| malformed.count_of(kind));
    assert_eq!((kinds, malformed.total(), report.other_protocols.forward), ([1, 1, 1], 3, 1));
    assert_eq!((report.packets.forward.taken, report.packets.forward.offered), (5, 3));
}

#[test]
fn a_window_is_clamped_before_it_is_split_and_seen() {
    let mut bench = Bench::new();
    bench.settings.clamp.reverse = Some(Bytes(500));
    let turned = [V4[1], V4[0]];
    let syn = |ends| {
        let mut segment = data(0, 0);
        segment.flags = farpath_tcp::Flags::SYN;
        packet(ends, &segment, 0)
    };
    bench.near.send_at(Instant::ZERO, VirtioHeader::default(), syn(V4));
    bench.far.send_at(Instant::from_nanos(1_000_000), VirtioHeader::default(), syn(turned));
    let (header, bytes) = super_packet(turned, &data(0, 2000), 0, 1000);
    bench.far.send_at(Instant::from_nanos(2_000_000), header, bytes);
    bench.run(&[], 4).expect("a path of nothing");
    let windows = |port: &MemoryPort| -> Vec<u16> {
        let got = &port.memory().got;
        got.iter().map(|(_, _, bytes)| u16::from_be_bytes([bytes[34], bytes[35]])).collect()
    };
    assert_eq!((windows(&bench.near), windows(&bench.far)), (vec![500; 3], vec![1000]));
}

#[test]
fn real_time_is_granted_or_said_not_to_be() {
    let mut bench = Bench::new();
    bench.settings.realtime = true;
    bench.near.send_at(Instant::ZERO, VirtioHeader::default(), packet(V4, &data(0, 10), 0));
    match bench.run(&[], 1).expect("a path of nothing").report.realtime {
        RealtimeGrant::Granted => {}
        RealtimeGrant::Refused(why) => {
            skip(Need::Root, format!("real-time scheduling: {why}"));
            assert!(why.contains("ulimit"), "{why}");
        }
        RealtimeGrant::NotAsked => panic!("it was asked for"),
    }
}

#[test]
fn a_stopped_loop_returns_and_goes_on_when_asked() {
    let bench = Bench::new();
    bench.near.send_at(Instant::ZERO, VirtioHeader::default(), packet(V4, &data(0, 10), 0));
    let (near, far) = (Box::new(bench.near.clone()), Box::new(bench.far.clone()));
    let mut emulator =
        Emulator::new(&[delay(500)], 7, bench.settings, near, far, bench.clock).expect("a sound path");
    let stop = AtomicBool::new(false);
    let mut log = Log { events: Vec::new(), to_come: 1, stop: &stop, longest_queue: Bytes::ZERO };
    std::thread::scope(|scope| {
        let running = scope.spawn(|| emulator.run(&stop, &mut log));
        stop.store(true, Ordering::Relaxed);
        let report = running.join().expect("no panic").expect("nothing failed");
        assert_eq!(report.packets.forward.delivered, 0, "it does not wait for what is under way");
    });
    stop.store(false, Ordering::Relaxed);
    let report = emulator.run(&stop, &mut log).expect("nothing failed");
    assert_eq!((report.packets.forward.delivered, report.left_under_way), (1, 0));
}

#[test]
fn a_path_that_contradicts_itself_is_refused() {
    let bench = Bench::new();
    let error = bench.run(&[delay(1), delay(2)], 1).err().expect("two elements of one name");
    assert!(error.to_string().contains("two elements have this name"), "{error}");
}

#[test]
fn wire_packets_have_the_size_that_the_simulator_reckons_with() {
    for len in [0, 1, 1460] {
        let segment = data(0, len);
        assert_eq!(WirePacket::new(packet(V4, &segment, 0), None, 1).wire_size(), segment.ipv4_size());
    }
}
