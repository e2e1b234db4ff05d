//! A flow router among the elements of a path.

mod forged;
mod hostile;

use crate::common::{at_ms, rate};
use farpath_elements::{
    ElementKind, ElementSpec, ExplicitRatePacket, FlowRouter, Link, MarkThreshold, QueueLimit, RateChange,
    RouterFigures, RouterLines, build_path,
};
use farpath_path::{Direction, DropCause, Path, PathElement, PathPacket, PerDirection, Verdict};
use farpath_tia1039::router::{Ending, FlowKey, Numbers, QosPacket, RouterSettings};
use farpath_tia1039::{
    Message, Priority, QosMark, RateType, RateUnit, RateWord, Rounding, Source, Structure, Structures,
};
use farpath_units::{Bytes, Duration, Instant, Probability};
use proptest::prelude::*;

use Direction::{Forward, Reverse};

/// A packet of some flow, with or without structures.
#[derive(Debug, Clone, PartialEq)]
struct Packet {
    id: u32,
    flow: u32,
    /// Without data: an ACK.
    empty: bool,
    size: u64,
    mark: QosMark,
    carried: Option<Structures>,
    ending: Ending,
    numbers: Numbers,
}

/// Of packets of one connection: they fit each other.
const NUMBERS: Numbers = Numbers { next_seq: Some(0), acknowledged: Some(0) };

impl PathPacket for Packet {
    fn wire_size(&self) -> Bytes {
        Bytes(self.size)
    }
    fn carries_data(&self) -> bool {
        self.carried.is_none() && !self.empty
    }
}

impl ExplicitRatePacket for Packet {
    fn qos(&mut self) -> Option<&mut dyn QosPacket> {
        Some(self)
    }
    fn signal(&self, structure: &Structure) -> Option<Packet> {
        let carried = Some(Structures::one(*structure));
        Some(Packet { size: 56, mark: QosMark::Signal, carried, ending: Ending::No, ..self.clone() })
    }
}

impl QosPacket for Packet {
    fn flow_key(&self) -> FlowKey {
        FlowKey::from(u128::from(self.flow))
    }
    fn mark(&self) -> QosMark {
        self.mark
    }
    fn structures(&self) -> Option<Structures> {
        self.carried
    }
    fn set_structures(&mut self, structures: &Structures) {
        self.carried = Some(*structures);
    }
    fn ending(&self) -> Ending {
        self.ending
    }
    fn next_seq(&self) -> Option<u32> {
        self.numbers.next_seq
    }
    fn acknowledged(&self) -> Option<u32> {
        self.numbers.acknowledged
    }
}

fn data(id: u32, flow: u32, mark: QosMark) -> Packet {
    Packet { id, flow, size: 1500, mark, carried: None, ending: Ending::No, numbers: NUMBERS, empty: false }
}

fn signal(flow: u32, structures: Structures) -> Packet {
    let carried = Some(structures);
    Packet {
        id: 0,
        flow,
        size: 76,
        mark: QosMark::Signal,
        carried,
        ending: Ending::No,
        numbers: NUMBERS,
        empty: false,
    }
}

fn word(mbit: u64) -> RateWord {
    RateUnit::KbitPerS.encode(mbit * 1_000_000, Rounding::Up)
}

/// Both lines of this rate, all of which can be granted.
fn lines(mbit: u64, queue: QueueLimit) -> RouterLines {
    let share = |fraction| Probability::new(fraction).expect("a share");
    RouterLines {
        rate: PerDirection::both(rate(mbit * 1_000_000)),
        changes: PerDirection::default(),
        queue: PerDirection::both(queue),
        overhead: Bytes::ZERO,
        min_packet: Bytes::ZERO,
        settings: PerDirection::both(RouterSettings {
            utilization: share(1.0),
            newcomers: share(0.0),
            ..RouterSettings::default()
        }),
    }
}

fn router(name: &str, lines: RouterLines) -> ElementSpec {
    ElementSpec { name: name.to_owned(), kind: ElementKind::FlowRouter(Box::new(lines)) }
}

fn build(specs: &[ElementSpec]) -> Path<Packet> {
    build_path(specs, 3).expect("sound")
}

/// Offers a packet to an empty path and takes what comes out.
fn through(path: &mut Path<Packet>, now: Instant, direction: Direction, packet: Packet) -> Vec<Packet> {
    assert_eq!(path.offer(now, direction, packet), Verdict::Accepted);
    let mut out = Vec::new();
    while let Some(due) = path.next_departure() {
        out.extend(path.take(due).map(|departure| departure.packet));
    }
    out
}

fn first(packets: &[Packet]) -> Structures {
    packets[0].carried.expect("structures")
}

#[test]
fn figure_1_of_the_paper_in_structures() {
    // 100 Mbit/s are asked for; one edge has 35, the core is blind, the other edge has 30.
    let core = ElementKind::Link(Link {
        rate: PerDirection::both(rate(10_000_000_000)),
        queue: PerDirection::both(QueueLimit::Unlimited),
        mark: PerDirection::both(MarkThreshold::Never),
        aqm: PerDirection::default(),
        overhead: Bytes::ZERO,
        min_packet: Bytes::ZERO,
    });
    let mut path = build(&[
        router("edge", lines(35, QueueLimit::Unlimited)),
        ElementSpec { name: "core".to_owned(), kind: core },
        router("far-edge", lines(30, QueueLimit::Unlimited)),
    ]);
    let syn = Structure::request(word(100));
    assert_eq!(syn.available.units(), 100_096);
    let mut edge = build(&[router("edge", lines(35, QueueLimit::Unlimited))]);
    let lowered = first(&through(&mut edge, at_ms(0), Forward, signal(1, Structures::one(syn)))).first;
    assert_eq!((lowered.available.units(), lowered.mark), (34_944, 1));
    let arrived = first(&through(&mut path, at_ms(0), Forward, signal(1, Structures::one(syn)))).first;
    assert_eq!((arrived.available.units(), arrived.mark), (29_984, 1));
    // The SYN/ACK brings the answer back unchanged, and a request of its own that is lowered in the other order.
    let requester = Source::V4 { address: [10, 0, 0, 1].into(), port: 50_000 };
    let answer = Structures::two(arrived.response(requester), syn);
    let back = first(&through(&mut path, at_ms(10), Reverse, signal(1, answer)));
    assert_eq!(back.first, arrived.response(requester));
    let reverse = back.second.expect("two");
    assert_eq!((reverse.message, reverse.available.units(), reverse.mark), (Message::Request, 29_984, 1));
}

#[test]
fn capacity_that_a_guarantee_does_not_use_is_lent_and_given_back_within_a_packet() {
    let mut path = build(&[router("router", lines(12, QueueLimit::Unlimited))]);
    let guaranteed = Structure {
        rate_type: RateType::Guaranteed,
        guaranteed: word(6),
        ..Structure::request(RateWord::ZERO)
    };
    through(&mut path, at_ms(0), Forward, signal(1, Structures::one(guaranteed)));
    // Twice what the line can carry, of a flow that asked for nothing: a packet a millisecond leaves all the same.
    let start = at_ms(100);
    let mut out = Vec::new();
    let mut offer = |path: &mut Path<Packet>, at: Instant, packet: Packet| {
        while let Some(due) = path.next_departure().filter(|&due| due <= at) {
            out.extend(path.take(due).map(|departure| (departure.due, departure.packet)));
        }
        assert_eq!(path.offer(at, Forward, packet), Verdict::Accepted);
    };
    for half_ms in 0..400 {
        let at = start + Duration::from_micros(500 * half_ms);
        offer(&mut path, at, data(1, 2, QosMark::None));
        // The guarantee wakes up after 150 ms.
        if half_ms >= 300 && half_ms % 4 == 1 {
            offer(&mut path, at, data(2 + half_ms as u32, 1, QosMark::Flow));
        }
    }
    let lent = out.iter().filter(|(due, packet)| packet.id == 1 && *due < at_ms(250)).count();
    assert_eq!(lent, 149, "the whole line until then");
    for (due, packet) in out.iter().filter(|(_, packet)| packet.id > 1) {
        let offered = start + Duration::from_micros(500 * u64::from(packet.id - 2));
        // One packet may be on the line already; its own serialization is another millisecond.
        assert!(*due - offered <= Duration::from_millis(2), "{packet:?} waited {}", *due - offered);
    }
}

#[test]
fn who_sends_more_than_granted_is_policed_and_says_why() {
    let mut path = build(&[router("router", lines(12, QueueLimit::Unlimited))]);
    let structure = Structure {
        burst: farpath_tia1039::BurstTolerance::new(15).expect("a code"),
        ..Structure::request(word(1))
    };
    through(&mut path, at_ms(0), Forward, signal(1, Structures::one(structure)));
    let mut verdicts = (0..5).map(|id| path.offer(at_ms(50), Forward, data(id, 1, QosMark::Flow)));
    assert!(
        verdicts.by_ref().take(2).all(|verdict| verdict == Verdict::Accepted),
        "two packets are no burst"
    );
    for verdict in verdicts {
        assert!(matches!(verdict, Verdict::Dropped { cause: DropCause::Policing, .. }), "{verdict:?}");
    }
    let counters = &path.counters()[0];
    assert_eq!((counters.dropped.count_of(DropCause::Policing), counters.delivered), (3, 3));
}

#[test]
fn the_router_says_a_cut_behind_a_packet_of_the_flow() {
    let mut path = build(&[router("router", lines(12, QueueLimit::Unlimited))]);
    for flow in [1, 2] {
        let asked = signal(flow, Structures::one(Structure::request(word(12))));
        let granted = first(&through(&mut path, at_ms(0), Forward, asked)).first;
        let answer = Structure { message: Message::Response, ..granted };
        through(&mut path, at_ms(100), Reverse, signal(flow, Structures::one(answer)));
    }
    // Nobody sinks for a newcomer that has not acknowledged the answer.
    let ack = Packet { size: 52, ..data(0, 2, QosMark::Flow) };
    assert_eq!(through(&mut path, at_ms(200), Forward, data(6, 1, QosMark::Flow)).len(), 1);
    through(&mut path, at_ms(200), Forward, ack);
    let out = through(&mut path, at_ms(300), Forward, data(7, 1, QosMark::Flow));
    assert_eq!((out.len(), out[0].id, out[1].id), (2, 7, 7));
    let cut = first(&out[1..]).first;
    assert_eq!((cut.message, cut.available.units(), cut.mark), (Message::Renegotiate, 6_000, 1));
    let counters = &path.counters()[0];
    assert_eq!((counters.offered, counters.duplicated, counters.delivered), (5, 1, 6));
}

#[test]
fn a_line_that_slows_down_does_so_for_the_next_packet() {
    let mut slower = lines(12, QueueLimit::Unlimited);
    slower.changes.forward = vec![RateChange { at: at_ms(10), rate: rate(6_000_000) }];
    let mut path = build(&[router("router", slower.clone())]);
    let guarantees = [(1, 10), (2, 20)].map(|(flow, preemption)| {
        let preemption = Priority::new(preemption).expect("a level");
        let rates = Structure {
            rate_type: RateType::Guaranteed,
            guaranteed: word(5),
            preemption,
            ..Structure::default()
        };
        let told = first(&through(&mut path, at_ms(0), Forward, signal(flow, Structures::one(rates)))).first;
        // It is kept for who has seen the answer.
        let answer = Structure { message: Message::Response, ..told };
        through(&mut path, at_ms(1), Reverse, signal(flow, Structures::one(answer)));
        through(&mut path, at_ms(2), Forward, data(0, flow, QosMark::Flow));
        told.guaranteed
    });
    assert_eq!(guarantees, [word(5), word(5)]);
    let due = |path: &mut Path<Packet>, now: Instant| {
        path.offer(now, Forward, data(1, 9, QosMark::None));
        let due = path.next_departure().expect("it is on its way");
        path.take(due);
        due - now
    };
    assert_eq!(due(&mut path, at_ms(9)), Duration::from_millis(1));
    assert_eq!(due(&mut path, at_ms(10)), Duration::from_millis(2));
    // Only the one of the higher priority fits now; the other is told by its next packet.
    let out = through(&mut path, at_ms(20), Forward, data(2, 1, QosMark::Flow));
    assert_eq!(first(&out[1..]).first.guaranteed, RateWord::ZERO);
    assert_eq!(through(&mut path, at_ms(30), Forward, data(3, 2, QosMark::Flow)).len(), 1);

    slower.changes.forward.push(RateChange { at: at_ms(10), rate: rate(1_000_000) });
    let refused = build_path::<Packet>(&[router("router", slower)], 3).expect_err("refused");
    assert!(refused.to_string().contains(".changes: expected rising times"), "{refused}");
}

#[test]
fn what_waits_is_averaged_over_the_time_from_the_first_packet_to_the_last() {
    let mut path = build(&[router("router", lines(12, QueueLimit::Unlimited))]);
    for id in 0..3 {
        path.offer(at_ms(5), Forward, data(id, 1, QosMark::None));
    }
    assert_eq!(path.backlog(Forward), Some(Bytes(3000)));
    assert_eq!(path.backlog(Reverse), Some(Bytes(0)));
    while let Some(due) = path.next_departure() {
        path.take(due);
    }
    // 3000 B for a millisecond, 1500 B for another, nothing for the third.
    let figures = *path.counters()[0].own::<RouterFigures>().expect("a router");
    assert_eq!(figures.mean_backlog, 1500.0);
    assert_eq!(figures.backlog_deviation, 1_500_000.0_f64.sqrt());
    let idle = *path.counters()[1].own::<RouterFigures>().expect("a router");
    assert_eq!((idle.mean_backlog, idle.backlog_deviation), (0.0, 0.0));
}

#[test]
fn the_framing_of_a_line_is_not_granted() {
    // 2000 B on the wire for 1500 B of IP.
    let mut path =
        build(&[router("router", RouterLines { overhead: Bytes(500), ..lines(12, QueueLimit::Unlimited) })]);
    let asked = signal(1, Structures::one(Structure::request(word(100))));
    assert_eq!(
        first(&through(&mut path, at_ms(0), Forward, asked)).first.available,
        RateUnit::KbitPerS.encode(9_000_000, Rounding::Down)
    );
}

#[test]
fn packets_with_structures_are_kept_for_who_asks_in_the_order_of_time() {
    let mut path = build(&[
        router("near", lines(12, QueueLimit::Unlimited)),
        router("far", lines(6, QueueLimit::Unlimited)),
    ]);
    let asked = |flow| signal(flow, Structures::one(Structure::request(word(100))));
    through(&mut path, at_ms(0), Forward, asked(1));
    assert_eq!(path.take_signals(), [], "nobody has asked for them");
    path.keep_signals();
    through(&mut path, at_ms(10), Forward, asked(2));
    through(&mut path, at_ms(20), Reverse, asked(3));
    through(&mut path, at_ms(30), Forward, data(1, 2, QosMark::None));
    let seen: Vec<_> =
        path.take_signals().into_iter().map(|s| (s.element, s.direction, s.packet.flow)).collect();
    let expected = [("near", Forward, 2), ("far", Forward, 2), ("far", Reverse, 3), ("near", Reverse, 3)];
    assert_eq!(seen, expected.map(|(name, direction, flow)| (name.to_owned(), direction, flow)));
    assert_eq!(path.take_signals(), [], "they are given once");
}

#[test]
fn a_router_that_is_told_anew_has_other_lines_from_the_next_packet_on() {
    let mut router = FlowRouter::new("router".to_owned(), &lines(12, QueueLimit::Unlimited), 3);
    let due = |router: &mut FlowRouter<Packet>, now: Instant| {
        assert_eq!(router.offer(now, Forward, data(1, 9, QosMark::None)), Verdict::Accepted);
        let due = router.next_departure().expect("it is on its way");
        router.take(due).map(|departure| departure.due - now)
    };
    assert_eq!(due(&mut router, at_ms(0)), Some(Duration::from_millis(1)));
    router.reconfigure(&RouterLines { overhead: Bytes(1500), ..lines(6, QueueLimit::Bytes(Bytes(1500))) });
    assert_eq!(due(&mut router, at_ms(10)), Some(Duration::from_millis(4)));
    // One on the line, one in the queue, and none beyond.
    let mut verdicts = (0..3).map(|id| router.offer(at_ms(20), Forward, data(id, 9, QosMark::None)));
    assert!(verdicts.by_ref().take(2).all(|verdict| verdict == Verdict::Accepted));
    assert!(matches!(verdicts.next(), Some(Verdict::Dropped { cause: DropCause::QueueOverflow, .. })));
}

prop_compose! {
    fn packet()(
        id: u32, flow in 0..4_u32, size in 40..3000_u64, kind in 0..6, ar in 0x4000..0x6000_u16, message in 0..8_u8,
        rate_type in 0..4_u8, ending in 0..20,
    ) -> Packet {
        let structure = Structure {
            message: Message::from_code(message).expect("assigned"),
            rate_type: RateType::from_code(rate_type).expect("assigned"),
            guaranteed: RateWord::from_bits(ar),
            ..Structure::request(RateWord::from_bits(ar))
        };
        let carried = (kind < 2).then(|| Structures { first: structure, second: (kind == 0).then_some(structure) });
        let mark = if kind < 2 { QosMark::Signal } else if kind < 5 { QosMark::Flow } else { QosMark::None };
        let ending = match ending { 0 => Ending::Fin, 1 => Ending::Reset, _ => Ending::No };
        Packet { id, flow, size, mark, carried, ending, numbers: NUMBERS, empty: false }
    }
}

proptest! {
    /// Whatever passes: nothing is lost without a count, and time goes on.
    #[test]
    fn every_packet_comes_out_once(
        offers in prop::collection::vec((0..2_000_000_u64, any::<bool>(), packet()), 1..150),
        queue in prop::sample::select(vec![QueueLimit::Unlimited, QueueLimit::Packets(3), QueueLimit::Bytes(Bytes(0))]),
    ) {
        let mut path = build(&[router("router", lines(20, queue))]);
        let (mut now, mut last, mut out, mut dropped) = (Instant::ZERO, Instant::ZERO, 0, 0);
        for (after, forward, packet) in &offers {
            now += Duration::from_nanos(*after);
            // A late caller takes only now and then.
            if packet.id % 3 == 0 {
                while let Some(departure) = path.take(now) {
                    prop_assert!(departure.due >= last && departure.due <= now);
                    last = departure.due;
                    out += 1;
                }
            }
            let way = if *forward { Forward } else { Reverse };
            if matches!(path.offer(now, way, packet.clone()), Verdict::Dropped { .. }) {
                dropped += 1;
            }
            let said: u64 = path.counters().iter().map(|counters| counters.duplicated).sum();
            prop_assert_eq!(path.held() as u64 + out + dropped, said + path.counters().iter().map(|c| c.offered).sum::<u64>());
        }
        while let Some(due) = path.next_departure() {
            prop_assert!(due >= last);
            last = due;
            prop_assert!(path.take(due).is_some());
            out += 1;
        }
        prop_assert_eq!(path.held(), 0);
        prop_assert_eq!(out, path.counters().iter().map(|counters| counters.delivered).sum::<u64>());
        for counters in path.counters() {
            prop_assert_eq!(counters.offered + counters.duplicated, counters.delivered + counters.dropped.total());
        }
    }

    /// To packets of which none asks for anything it is the link that it stands for.
    #[test]
    fn without_signals_it_is_a_link(
        offers in prop::collection::vec((0..1_500_000_u64, 40..3000_u64), 1..100),
        queue in prop::sample::select(vec![QueueLimit::Unlimited, QueueLimit::Bytes(Bytes(4500)), QueueLimit::Bytes(Bytes(0))]),
        overhead in 0..60_u64,
    ) {
        let plain = ElementKind::Link(Link {
            rate: PerDirection::both(rate(20_000_000)),
            queue: PerDirection::both(queue),
            mark: PerDirection::both(MarkThreshold::Never),
            aqm: PerDirection::default(),
            overhead: Bytes(overhead),
            min_packet: Bytes(60),
        });
        let lines = RouterLines { overhead: Bytes(overhead), min_packet: Bytes(60), ..lines(20, queue) };
        let mut paths = [
            build(&[ElementSpec { name: "link".to_owned(), kind: plain }]),
            build(&[router("router", lines)]),
        ];
        let out = paths.each_mut().map(|path| {
            let (mut now, mut out) = (Instant::ZERO, Vec::new());
            for (id, (after, size)) in (0..).zip(&offers) {
                now += Duration::from_nanos(*after);
                while let Some(departure) = path.take(now) {
                    out.push((departure.packet.id, Some(departure.due)));
                }
                let packet = Packet { size: *size, ..data(id, 1, QosMark::None) };
                if matches!(path.offer(now, Forward, packet), Verdict::Dropped { .. }) {
                    out.push((id, None));
                }
            }
            while let Some(due) = path.next_departure() {
                out.extend(path.take(due).map(|departure| (departure.packet.id, Some(departure.due))));
            }
            out
        });
        prop_assert_eq!(&out[0], &out[1]);
    }
}
