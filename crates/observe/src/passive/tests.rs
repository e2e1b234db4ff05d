//! A simulation knows what its endpoints count: what is seen from outside must be the same.

use super::*;
use farpath_elements::{
    Aqm, Bernoulli, Delay, Duplicate, ElementKind, ElementSpec, Link, MarkThreshold, PacketCount, QueueLimit,
    Reorder,
};
use farpath_path::DropCause;
use farpath_run::Outcome;
use farpath_sim::{FlowResult, FlowSetup, FlowView, Observer, Opener, Setup, simulate};
use farpath_tcp::config::{AckClock, CongestionControlKind, EcnMode, RecoveryAlgorithm, RttSampling};
use farpath_tcp::{Config, SackBlock, Seq, State};
use farpath_units::{Bytes, Instant, Probability, Rate};
use proptest::prelude::*;

/// Takes from a simulated packet what a real one shows, and holds what is made of it against the packet.
struct Wire {
    analyzer: PassiveAnalyzer,
    flows: Vec<FlowPorts>,
    /// Whether the data receiver is closed, and how many spurious retransmissions have reached it since. A closed
    /// endpoint does not know what it had, and does not count them.
    closed: Vec<(bool, u64)>,
}

impl Wire {
    fn new(setup: &Setup) -> Wire {
        let ports = |(number, flow): (u16, &FlowSetup)| FlowPorts {
            direction: flow.direction,
            // Both ends may have the same.
            sender: 50_000 + number,
            receiver: 50_000 + 2 * number,
        };
        let flows: Vec<FlowPorts> = (0..).zip(&setup.flows).map(ports).collect();
        Wire {
            analyzer: PassiveAnalyzer::new(flows.iter().copied()),
            closed: vec![(false, 0); flows.len()],
            flows,
        }
    }
}

impl Observer for Wire {
    fn packet(&mut self, now: Instant, event: PacketEvent, direction: Direction, packet: &Packet) {
        let FlowPorts { sender, receiver, .. } = self.flows[packet.flow as usize];
        let ports = if packet.from == End::Sender { [sender, receiver] } else { [receiver, sender] };
        let seen = Seen {
            at: now,
            event,
            direction,
            number: packet.number,
            ports,
            ttl: packet.ttl,
            segment: &packet.segment,
        };
        let before = self.analyzer.flow(packet.flow).counts().spurious_retransmissions;
        // Why it was sent again is the sender's to say, and how long it waited the path's.
        let packet_as_seen = Packet { resent_by: None, queueing: Duration::ZERO, ..packet.clone() };
        assert_eq!(self.analyzer.packet(seen), Some(packet_as_seen), "{event:?} at {now}");
        let (closed, uncounted) = &mut self.closed[packet.flow as usize];
        if *closed {
            *uncounted += self.analyzer.flow(packet.flow).counts().spurious_retransmissions - before;
        }
    }

    fn state(&mut self, _now: Instant, flow: FlowView<'_>) {
        self.closed[flow.number as usize].0 = flow.receiver.state() == State::Closed;
    }
}

/// What the simulation's own rows say, in the same words.
fn counted(result: &FlowResult, setup: &FlowSetup) -> Counts {
    let sent = result.sender.sender().stats();
    let (opener, other) = match setup.opener {
        Opener::Sender => (&result.sender, &result.receiver),
        Opener::Receiver => (&result.receiver, &result.sender),
    };
    Counts {
        data_segments: sent.data_segments,
        data_bytes: sent.data_bytes,
        retransmissions: sent.retransmissions,
        spurious_retransmissions: result.spurious_retransmissions,
        dup_acks: sent.dup_acks,
        pure_acks: result.receiver.stats().pure_acks,
        syns: opener.stats().syns,
        synacks: other.stats().synacks,
        ecn_marks: result.marks,
        drops: result.drops,
    }
}

fn check(setup: &Setup) {
    let mut wire = Wire::new(setup);
    let results = simulate(setup, &mut wire).expect("the path is well formed");
    for (number, (flow, result)) in (0..).zip(setup.flows.iter().zip(&results)) {
        let mut expected = counted(result, flow);
        expected.spurious_retransmissions += wire.closed[number as usize].1;
        assert_eq!(*wire.analyzer.flow(number).counts(), expected, "flow {number}: {:?}", result.end);
    }
}

fn element(name: &str, kind: ElementKind) -> ElementSpec {
    ElementSpec { name: name.to_owned(), kind }
}

fn probability(p: f64) -> Probability {
    Probability::new(p).expect("a probability")
}

prop_compose! {
    fn stack()(
        mss in 200..2_000u64,
        buffer in 2_000..200_000u64,
        ack_every in 1..3u32,
        ack_delay in prop::sample::select(vec![0, 40, 200]),
        quick_acks in 0..4u32,
        read_rate in prop::option::weighted(0.2, 2_000..1_000_000u64),
        ecn in prop::sample::select(vec![EcnMode::Off, EcnMode::Accept, EcnMode::Request]),
        cubic in any::<bool>(),
        algorithm in prop::sample::select(vec![
            RecoveryAlgorithm::TimeoutOnly, RecoveryAlgorithm::Tahoe, RecoveryAlgorithm::Reno, RecoveryAlgorithm::NewReno,
        ]),
        [limited_transmit, sack, rack, tail_loss_probe, frto, eifel, dsack, undo_by_dsack] in any::<[bool; 8]>(),
        [window_scaling, timestamps, nagle] in any::<[bool; 3]>(),
    ) -> Config {
        let mut c = Config { mss: Bytes(mss), ..Config::default() };
        c.receive.buffer = Bytes(buffer);
        c.receive.ack_every = ack_every;
        c.receive.ack_delay = Duration::from_millis(ack_delay);
        c.receive.ack_clock = AckClock::Segment;
        c.receive.quick_acks = quick_acks;
        c.receive.read_rate = read_rate;
        c.send.ecn = ecn;
        if cubic {
            c.congestion.control = CongestionControlKind::Cubic;
        }
        c.recovery.algorithm = algorithm;
        c.recovery.limited_transmit = limited_transmit;
        c.recovery.sack = sack;
        (c.recovery.rack, c.recovery.tail_loss_probe) = (rack && sack, tail_loss_probe && sack);
        (c.recovery.frto, c.recovery.eifel) = (frto, eifel && timestamps);
        (c.recovery.dsack, c.recovery.undo_by_dsack) = (dsack && sack, undo_by_dsack && dsack && sack);
        c.send.window_scaling = window_scaling;
        c.send.timestamps = timestamps;
        c.send.nagle = nagle;
        c
    }
}

prop_compose! {
    fn flow()(
        start in 0..2_000u64,
        (backwards, download) in any::<(bool, bool)>(),
        size in 0..200_000u64,
        request in 0..5_000u64,
        access in prop_oneof![Just(0), 0..50u64],
        sender in stack(),
        receiver in stack(),
    ) -> FlowSetup {
        FlowSetup {
            start: Instant::ZERO + Duration::from_millis(start),
            direction: if backwards { Direction::Reverse } else { Direction::Forward },
            opener: if download { Opener::Receiver } else { Opener::Sender },
            size: Bytes(size),
            messages: None,
            reply: Bytes::ZERO,
            lifetime: None,
            writing: Default::default(),
            request: Bytes(request),
            sender,
            receiver,
            access: Duration::from_millis(access),
            sender_jitter: Duration::ZERO,
            receiver_jitter: Duration::ZERO,
        }
    }
}

fn path() -> impl Strategy<Value = Vec<ElementSpec>> {
    let share = |most: f64| {
        (0.0..most, 0.0..most).prop_map(|(forward, reverse)| PerDirection {
            forward: probability(forward),
            reverse: probability(reverse),
        })
    };
    let link = (100_000..100_000_000u64, 2..40u64, any::<bool>()).prop_map(|(rate, queue, marks)| {
        ElementKind::Link(Link {
            rate: PerDirection::both(Rate::from_bit_per_s(rate).expect("not zero")),
            queue: PerDirection::both(QueueLimit::Packets(queue)),
            mark: PerDirection::both(if marks {
                MarkThreshold::Packets(queue / 2)
            } else {
                MarkThreshold::Never
            }),
            aqm: PerDirection::both(Aqm::DropTail),
            overhead: Bytes(0),
            min_packet: Bytes(46),
        })
    });
    let delay = (0..200u64)
        .prop_map(|ms| ElementKind::Delay(Delay { delay: PerDirection::both(Duration::from_millis(ms)) }));
    let loss = share(0.1)
        .prop_map(|loss_rate| ElementKind::Bernoulli(Bernoulli { loss_rate, count: PacketCount::All }));
    let reorder = (share(0.1), 0..100u64).prop_map(|(share, ms)| {
        ElementKind::Reorder(Reorder { share, extra_delay: Duration::from_millis(ms) })
    });
    let copies = share(0.1).prop_map(|share| ElementKind::Duplicate(Duplicate { share }));
    prop::collection::vec(prop_oneof![link, delay, loss, reorder, copies], 0..6).prop_map(|kinds| {
        (0..).zip(kinds).map(|(number, kind): (u32, _)| element(&format!("element {number}"), kind)).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_seen_from_outside_is_what_the_endpoints_count(
        path in path(), mut flows in prop::collection::vec(flow(), 1..4), seed in any::<u64>(),
    ) {
        // What was overtaken has an old timestamp, and PAWS has the endpoint refuse it uncounted (RFC 7323 §5.3). What is
        // seen from outside is what arrived.
        if path.iter().any(|element| matches!(element.kind, ElementKind::Reorder(Reorder { .. }))) {
            for flow in &mut flows {
                (flow.sender.send.timestamps, flow.receiver.send.timestamps) = (false, false);
            }
        }
        check(&Setup { path, flows, seed, horizon: Duration::from_secs(600) });
    }
}

#[test]
fn without_loss_the_round_trips_are_those_that_the_sender_measures() {
    let link = ElementKind::Link(Link {
        rate: PerDirection::both(Rate::from_bit_per_s(5_000_000).expect("not zero")),
        queue: PerDirection::both(QueueLimit::Unlimited),
        mark: PerDirection::both(MarkThreshold::Never),
        aqm: PerDirection::both(Aqm::DropTail),
        overhead: Bytes(0),
        min_packet: Bytes(0),
    });
    for sampling in [RttSampling::EveryAck, RttSampling::Linux] {
        let mut stack = Config::default();
        stack.rto.sampling = sampling;
        let path = vec![element("link", link.clone()), element("delay", delay(20))];
        let flows = vec![FlowSetup::upload(&stack, Bytes(500_000))];
        let setup = Setup { path, flows, seed: 1, horizon: Duration::from_secs(3600) };
        let mut wire = Wire::new(&setup);
        let results = simulate(&setup, &mut wire).expect("the path is well formed");
        assert!(results[0].rtts.count() > 100);
        assert_eq!(*wire.analyzer.flow(0).rtts(), results[0].rtts, "{sampling:?}");
    }
}

/// Shows `analyzer` an event of one segment at a time.
fn at(
    analyzer: &mut PassiveAnalyzer,
    ms: u64,
    event: PacketEvent,
    from: End,
    number: u64,
    segment: &Segment,
) {
    let (direction, ports) = match from {
        End::Sender => (Direction::Forward, [1, 2]),
        End::Receiver => (Direction::Reverse, [2, 1]),
    };
    let at = Instant::ZERO + Duration::from_millis(ms);
    analyzer.packet(Seen { at, event, direction, number, ports, ttl: 64, segment });
}

#[test]
fn an_ack_that_covers_what_was_sent_again_is_not_measured() {
    use PacketEvent::{Received, Sent};
    let mut analyzer = one_flow();
    connects(&mut analyzer, [Seq(0), Seq(0)]);
    let handshake = analyzer.flow(0).rtts().count();
    let ack = |to: u32| Segment { window: 65_535, ..Segment::new(Flags::ACK, Seq(1), Seq(to)) };
    at(&mut analyzer, 100, Sent, End::Sender, 2, &data(Seq(1), 1000));
    at(&mut analyzer, 110, Sent, End::Sender, 3, &data(Seq(1001), 1000));
    at(&mut analyzer, 300, Sent, End::Sender, 4, &data(Seq(1), 1000));
    at(&mut analyzer, 310, Sent, End::Sender, 5, &data(Seq(2001), 1000));
    // It covers the first, of which it may acknowledge either sending, and what waited for it.
    at(&mut analyzer, 400, Received, End::Receiver, 2, &ack(3001));
    assert_eq!(analyzer.flow(0).rtts().count(), handshake);
    at(&mut analyzer, 500, Sent, End::Sender, 6, &data(Seq(3001), 1000));
    at(&mut analyzer, 505, Sent, End::Sender, 7, &data(Seq(4001), 1000));
    at(&mut analyzer, 600, Received, End::Receiver, 3, &ack(5001));
    assert_eq!(analyzer.flow(0).rtts().count(), handshake + 1);
    assert_eq!(
        analyzer.flow(0).rtts().longest(),
        Some(Duration::from_millis(100)),
        "since the first of the two"
    );
}

/// Paths and stacks that a random draw seldom meets.
fn rare(path: Vec<ElementKind>, stack: &Config, change: impl Fn(&mut Config)) {
    let mut stack = stack.clone();
    change(&mut stack);
    let path =
        (0..).zip(path).map(|(number, kind): (u32, _)| element(&format!("element {number}"), kind)).collect();
    let horizon = Duration::from_secs(3600);
    check(&Setup { path, flows: vec![FlowSetup::upload(&stack, Bytes(50_000))], seed: 1, horizon });
}

fn delay(ms: u64) -> ElementKind {
    ElementKind::Delay(Delay { delay: PerDirection::both(Duration::from_millis(ms)) })
}

fn slow_reader(c: &mut Config) {
    c.receive.buffer = Bytes(4000);
    c.receive.read_rate = Some(500);
}

#[test]
fn answers_to_a_probe_of_a_shut_window_are_no_duplicates() {
    let loss_rate = PerDirection::both(probability(0.05));
    let loss = ElementKind::Bernoulli(Bernoulli { loss_rate, count: PacketCount::All });
    rare(vec![delay(20)], &Config::default(), slow_reader);
    rare(vec![delay(20), loss], &Config::default(), slow_reader);
}

/// One flow on port 1 against port 2, forward.
fn one_flow() -> PassiveAnalyzer {
    PassiveAnalyzer::new([FlowPorts { direction: Direction::Forward, sender: 1, receiver: 2 }])
}

/// Shows `analyzer` that the data sender, or else the receiver, sends this and that it arrives.
fn passes(analyzer: &mut PassiveAnalyzer, from: End, number: u64, segment: &Segment) {
    let (direction, ports) = match from {
        End::Sender => (Direction::Forward, [1, 2]),
        End::Receiver => (Direction::Reverse, [2, 1]),
    };
    for event in [PacketEvent::Sent, PacketEvent::Received] {
        let packet =
            analyzer.packet(Seen { at: Instant::ZERO, event, direction, number, ports, ttl: 64, segment });
        assert_eq!(packet.map(|packet| (packet.flow, packet.from)), Some((0, from)));
    }
}

fn data(seq: Seq, len: u16) -> Segment {
    Segment { len, ..Segment::new(Flags::ACK, seq, Seq(1)) }
}

/// The handshake, with these initial sequence numbers.
fn connects(analyzer: &mut PassiveAnalyzer, [own, peer]: [Seq; 2]) {
    let window = |segment: Segment| Segment { window: 65_535, ..segment };
    passes(analyzer, End::Sender, 1, &window(Segment::new(Flags::SYN, own, Seq(0))));
    passes(
        analyzer,
        End::Receiver,
        1,
        &window(Segment::new(Flags::SYN | Flags::ACK, peer, own.advanced_by(1))),
    );
}

#[test]
fn sequence_numbers_wrap_and_positions_do_not() {
    let isn = Seq(u32::MAX - 1500);
    let mut analyzer = one_flow();
    connects(&mut analyzer, [isn, Seq(0)]);
    for (number, position) in [(2, 1), (3, 1001), (4, 2001), (5, 1001)] {
        passes(&mut analyzer, End::Sender, number, &data(isn.advanced_by(position), 1000));
    }
    let counts = analyzer.flow(0).counts();
    assert_eq!((counts.data_segments, counts.data_bytes), (4, 4000));
    assert_eq!((counts.retransmissions, counts.spurious_retransmissions), (1, 1));
}

#[test]
fn a_copy_that_the_network_makes_is_no_retransmission() {
    let mut analyzer = one_flow();
    connects(&mut analyzer, [Seq(0), Seq(0)]);
    passes(&mut analyzer, End::Sender, 2, &data(Seq(1), 1000));
    passes(&mut analyzer, End::Sender, 3, &data(Seq(1), 1000));
    let copy = data(Seq(1), 1000);
    for number in [2, 3] {
        let seen = Seen {
            at: Instant::ZERO,
            event: PacketEvent::Received,
            direction: Direction::Forward,
            number,
            ports: [1, 2],
            ttl: 64,
            segment: &copy,
        };
        assert_eq!(analyzer.packet(seen).map(|packet| packet.retransmission), Some(number == 3));
    }
    assert_eq!(analyzer.flow(0).counts().spurious_retransmissions, 1);
}

#[test]
fn a_connection_that_is_begun_anew_has_new_numbers() {
    let mut analyzer = one_flow();
    connects(&mut analyzer, [Seq(7), Seq(1_000_000)]);
    // The listener had forgotten the first SYN when the second came.
    connects(&mut analyzer, [Seq(7), Seq(3_000_000_000)]);
    let request = Segment { len: 100, ..Segment::new(Flags::ACK, Seq(3_000_000_001), Seq(8)) };
    passes(&mut analyzer, End::Receiver, 3, &request);
    let again = analyzer.packet(Seen {
        at: Instant::ZERO,
        event: PacketEvent::Sent,
        direction: Direction::Reverse,
        number: 4,
        ports: [2, 1],
        ttl: 64,
        segment: &request,
    });
    assert!(again.is_some_and(|packet| packet.retransmission));
    assert_eq!((analyzer.flow(0).counts().syns, analyzer.flow(0).counts().synacks), (2, 2));
}

#[test]
fn a_window_is_scaled_where_both_ends_said_so() {
    for (peer_scales, spurious) in [(false, 0), (true, 1)] {
        let mut analyzer = one_flow();
        let syn = Segment { window_scale: Some(3), window: 100, ..Segment::new(Flags::SYN, Seq(0), Seq(0)) };
        passes(&mut analyzer, End::Receiver, 1, &syn);
        let window_scale = peer_scales.then_some(0);
        let synack = Segment { window_scale, ..Segment::new(Flags::SYN | Flags::ACK, Seq(0), Seq(1)) };
        passes(&mut analyzer, End::Sender, 1, &synack);
        passes(
            &mut analyzer,
            End::Receiver,
            2,
            &Segment { window: 100, ..Segment::new(Flags::ACK, Seq(1), Seq(1)) },
        );
        // 100 bytes have room, or 800.
        for (number, position) in [(2, 1), (3, 101), (4, 101)] {
            passes(&mut analyzer, End::Sender, number, &data(Seq(position), 100));
        }
        assert_eq!(analyzer.flow(0).counts().spurious_retransmissions, spurious, "{peer_scales}");
    }
}

#[test]
fn an_ack_from_before_what_has_come_since_is_not_heard() {
    for (request, dup_acks) in [(0, 1), (100, 0)] {
        let mut analyzer = one_flow();
        let open = |segment: Segment| Segment { window: 65_535, ..segment };
        for (from, flags) in [(End::Sender, Flags::SYN), (End::Receiver, Flags::SYN | Flags::ACK)] {
            let syn = Segment { sack_permitted: true, ..open(Segment::new(flags, Seq(0), Seq(1))) };
            passes(&mut analyzer, from, 1, &syn);
        }
        if request > 0 {
            let request = Segment { len: request, ..open(Segment::new(Flags::ACK, Seq(1), Seq(1))) };
            passes(&mut analyzer, End::Receiver, 2, &request);
        }
        for (number, position) in [(2, 1), (3, 1001)] {
            passes(&mut analyzer, End::Sender, number, &data(Seq(position), 1000));
        }
        let mut old = open(Segment::new(Flags::ACK, Seq(1), Seq(1)));
        old.sack.push(SackBlock { start: Seq(1001), end: Seq(2001) });
        passes(&mut analyzer, End::Receiver, 3, &old);
        assert_eq!(analyzer.flow(0).counts().dup_acks, dup_acks, "request of {request}");
    }
}

#[test]
fn a_stranger_is_no_flow() {
    let mut analyzer = one_flow();
    let segment = data(Seq(1), 1000);
    for (direction, ports) in
        [(Direction::Forward, [2, 1]), (Direction::Reverse, [1, 2]), (Direction::Forward, [1, 3])]
    {
        let seen = Seen {
            at: Instant::ZERO,
            event: PacketEvent::Sent,
            direction,
            number: 1,
            ports,
            ttl: 64,
            segment: &segment,
        };
        assert_eq!(analyzer.packet(seen), None);
    }
    assert_eq!(*analyzer.flow(0).counts(), Counts::default());
}

#[test]
fn counts_become_columns() {
    let mut counts = Counts { data_segments: 10, data_bytes: 12_500, dup_acks: 3, ..Counts::default() };
    counts.drops.forward.add(DropCause::Loss);
    counts.drops.reverse.add(DropCause::Loss);
    counts.drops.forward.add(DropCause::QueueOverflow);
    let mut row = FlowRow {
        transfer_time: Some(Duration::from_millis(100)),
        bytes_read: Bytes(10_000),
        ..FlowRow::new(0, "forward", Outcome::Completed, Bytes(10_000))
    };
    counts.enter(&mut row);
    assert_eq!((row.data_segments, row.dup_acks, row.retransmissions), (Some(10.0), Some(3.0), Some(0.0)));
    assert_eq!((row.throughput_bit_per_s, row.efficiency), (Some(1_000_000.0), Some(0.8)));
    assert_eq!((row.drops_data_direction, row.drops_ack_direction), (Some(2.0), Some(1.0)));
    assert_eq!(row.drops_by_cause, [("loss".into(), 2), ("queue-overflow".into(), 1)]);
}

proptest! {
    /// Whatever a host sends, in whatever order it is told.
    #[test]
    fn anything_is_counted_without_a_panic(
        segments in prop::collection::vec(any::<(u32, u32, u16, u16, u8, u8, (u32, u32), (bool, bool))>(), 1..60),
    ) {
        let mut analyzer = one_flow();
        for (number, (seq, ack, len, window, flags, scale, (start, end), (forward, sent))) in (0..).zip(segments) {
            let mut segment = Segment { len, window, ..Segment::new(Flags(flags), Seq(seq), Seq(ack)) };
            segment.window_scale = Some(scale);
            segment.sack_permitted = true;
            segment.sack.push(SackBlock { start: Seq(start), end: Seq(end) });
            let (direction, ports) = if forward { (Direction::Forward, [1, 2]) } else { (Direction::Reverse, [2, 1]) };
            let event = if sent { PacketEvent::Sent } else { PacketEvent::Received };
            let packet = analyzer.packet(Seen { at: Instant::ZERO, event, direction, number, ports, ttl: 64, segment: &segment });
            prop_assert!(packet.is_some());
        }
        let counts = analyzer.flow(0).counts();
        prop_assert!(counts.spurious_retransmissions <= counts.retransmissions);
        prop_assert!(counts.retransmissions <= counts.data_segments);
    }
}
