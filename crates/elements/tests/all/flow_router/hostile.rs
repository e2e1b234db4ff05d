//! Whatever somebody makes up, at any place of a path and in anybody's name.

use super::forged::{Bench, forward, reverse};
use super::{Packet, data, lines, signal, word};
use crate::common::at_ms;
use farpath_elements::{FlowRouter, QueueLimit, RouterLines};
use farpath_path::{Direction, PathElement, PerDirection, Verdict};
use farpath_tia1039::router::{Ending, FlowKey, Numbers, RouterSettings};
use farpath_tia1039::{
    BurstTolerance, Message, Priority, QosMark, RateType, RateWord, Structure, Structures,
};
use farpath_units::{Bytes, Duration, Instant};
use proptest::prelude::*;

use Direction::{Forward, Reverse};

prop_compose! {
    fn structure()(
        message in 0..8_u8, rate_type in 0..4_u8, rates in (0x4000..0x8000_u16, 0x4000..0x8000_u16),
        priorities in (0..64_u8, 0..64_u8), burst in 0..16_u8, mark in 0..16_u8,
    ) -> Structure {
        Structure {
            message: Message::from_code(message).expect("assigned"),
            rate_type: RateType::from_code(rate_type).expect("assigned"),
            guaranteed: RateWord::from_bits(rates.1),
            preemption: Priority::new(priorities.0).expect("a level"),
            delay: Priority::new(priorities.1).expect("a level"),
            burst: BurstTolerance::new(burst).expect("a code"),
            mark,
            ..Structure::request(RateWord::from_bits(rates.0))
        }
    }
}

/// What somebody sends who knows addresses and ports, and no sequence numbers: signals, ACKs, FINs and resets of these flows.
fn made_up(flows: core::ops::Range<u32>) -> impl Strategy<Value = (Direction, Packet)> {
    // Farther than a window from where the flows of the bench are.
    let number = || prop::option::weighted(0.9, 1_000_000_000..2_000_000_000_u32);
    let ending = prop::sample::select(vec![Ending::No, Ending::Fin, Ending::Reset]);
    let kind = (flows, prop::option::weighted(0.6, (structure(), prop::option::of(structure()))), ending);
    (kind, (number(), number()), any::<bool>()).prop_map(|((flow, says, ending), numbers, forward)| {
        // A flow of his own he could prove, by an ACK near the number of an answer that he made up too: nothing keeps a host from having flows.
        // Of the others' flows numbers may meet.
        let apart = if flow > 2 { 1_000_000_000 } else { 0 };
        let numbers = Numbers { next_seq: numbers.0, acknowledged: numbers.1.map(|number| number + apart) };
        let packet = match says {
            Some((first, second)) => Packet { numbers, ..signal(flow, Structures { first, second }) },
            None => Packet { numbers, ending, empty: true, size: 40, ..data(0, flow, QosMark::Flow) },
        };
        (if forward { Forward } else { Reverse }, packet)
    })
}

/// What a flow has.
fn has(bench: &Bench, flow: u128) -> (u64, u64) {
    let report = bench.router.port(Forward).flow(&FlowKey::from(flow)).expect("it is known");
    (report.available, report.guaranteed)
}

/// A flow of an Available Rate, 1, and one of a guarantee of the lowest priority, 2.
fn two_flows() -> Bench {
    let mut bench = Bench::new();
    let asked = Structure {
        rate_type: RateType::Guaranteed,
        guaranteed: word(15),
        preemption: Priority::LOWEST,
        ..Structure::request(RateWord::ZERO)
    };
    let syn = Numbers { acknowledged: None, ..forward(0, 0) };
    let told = bench.says_as(2, Forward, syn, asked);
    bench.says_as(2, Reverse, reverse(0, 0), Structure { message: Message::Response, ..told });
    bench.sends_as(2, Forward, forward(0, 0));
    assert_eq!((has(&bench, 1).0, has(&bench, 2).1), (80_000_000, 15_008_000));
    bench
}

proptest! {
    /// Signals and ACKs that somebody makes up, of his own flows and of those of others, take nothing from who is proven: neither its rate nor its guarantee,
    /// nor is it told to sink, dropped or forgotten.
    #[test]
    fn nothing_that_is_made_up_takes_from_who_is_proven(
        steps in prop::collection::vec((made_up(1..8), 0..2_000_u64), 1..150),
    ) {
        let mut bench = two_flows();
        let before = [has(&bench, 1), has(&bench, 2)];
        let level = bench.router.port(Forward).capacity();
        let mut seq = 900_000;
        for ((direction, packet), after) in steps {
            bench.now += Duration::from_micros(after);
            let flow = packet.flow;
            bench.takes(direction, packet);
            prop_assert_eq!([has(&bench, 1), has(&bench, 2)], before, "by a packet of flow {}", flow);
            // They go on, and hear nothing but their own packets.
            bench.now += Duration::from_millis(5);
            seq += 1_500;
            for flow in [1, 2] {
                let numbers = forward(seq, 0);
                let out = bench.all(Forward, Packet { numbers, ..data(1, flow, QosMark::Flow) });
                prop_assert_eq!(out.len(), 1, "flow {} is told something", flow);
            }
        }
        prop_assert_eq!(bench.router.port(Forward).capacity(), level);
        prop_assert_eq!(bench.router.port(Forward).counters().preempted, 0);
        prop_assert_eq!(bench.router.port(Forward).counters().policed, 0);
    }

    /// Whatever comes in whatever order, of any number of flows: tables and queues stay within their bounds, every packet comes out once, and
    /// guarantees stay within their share.
    #[test]
    fn tables_and_queues_stay_within_their_bounds(
        steps in prop::collection::vec((made_up(0..10_000), prop::option::weighted(0.3, 40..3_000_u64), 0..400_000_u64), 1..300),
        flows in 1..20_u32, starts in 1..20_u32, police: bool,
    ) {
        const LIMIT: Bytes = Bytes(20_000);
        let some = lines(3, QueueLimit::Bytes(LIMIT));
        let settings = RouterSettings { flows, starts, police, ..some.settings.forward.clone() };
        let some = RouterLines { settings: PerDirection::both(settings), ..some };
        let mut router = FlowRouter::new("router".to_owned(), &some, 1);
        let (mut now, mut offered, mut dropped, mut out) = (Instant::ZERO, 0, 0, 0);
        for ((direction, packet), size, after) in steps {
            now += Duration::from_micros(after);
            while router.take(now).is_some() {
                out += 1;
            }
            // Some of it is data of a flow that was made up before.
            let packet = match size {
                Some(size) => Packet { size, empty: false, carried: None, flow: packet.flow % 20, mark: QosMark::Flow, ..packet },
                None => Packet { flow: if packet.flow % 2 == 0 { packet.flow % 20 } else { packet.flow }, ..packet },
            };
            offered += 1;
            dropped += u64::from(matches!(router.offer(now, direction, packet), Verdict::Dropped { .. }));
            for way in Direction::BOTH {
                let port = router.port(way);
                prop_assert!(port.flows() <= flows as usize);
                // The sums of 2^14 buckets, 4096 timers; a flow, and where it is found, awaited and kept to be used again, in powers of two.
                let most = 16 * 16_385 + 4 * 4096 + (96 + 16 + 4 + 32) * (flows as usize).next_power_of_two().max(4);
                prop_assert!(port.state_bytes() <= most, "{} of {}", port.state_bytes(), most);
                // Of each flow that may wait, of newcomers and of ordinary packets; guarantees have what they may send ahead.
                let queues = u64::from(flows) + 2;
                if police {
                    prop_assert!(router.backlog(way).expect("it has queues") <= Bytes(queues * LIMIT.0 + 3_000_000 / 8 * 16));
                }
            }
        }
        while let Some(due) = router.next_departure() {
            prop_assert!(router.take(due).is_some());
            out += 1;
        }
        let said: u64 = router.counters().iter().map(|counters| counters.duplicated).sum();
        prop_assert_eq!((router.held(), out + dropped), (0, offered + said));
    }
}

/// Found by the property above: a request of the other way without numbers, its answer with numbers that were made up, and a reset that fits these.
#[test]
fn who_makes_up_a_flow_of_the_other_way_ends_no_proven_one() {
    let mut bench = two_flows();
    let asks = Structures {
        first: Structure { message: Message::Forward, ..Structure::request(word(0)) },
        second: Some(Structure::request(word(0))),
    };
    bench.takes(Reverse, Packet { numbers: Numbers::default(), ..signal(2, asks) });
    let answers = Structures {
        first: Structure { message: Message::Response, ..Structure::request(word(0)) },
        second: None,
    };
    let made_up = Numbers { next_seq: Some(1_230_114_876), acknowledged: None };
    bench.takes(Forward, Packet { numbers: made_up, ..signal(2, answers) });
    let numbers = Numbers { next_seq: Some(1_000_000_000), acknowledged: made_up.next_seq };
    let reset = Packet { numbers, ending: Ending::Reset, empty: true, size: 40, ..data(0, 2, QosMark::Flow) };
    bench.takes(Reverse, reset);
    assert_eq!(has(&bench, 2).1, 15_008_000);
}

#[test]
fn the_bench_has_two_flows_that_are_told_nothing_by_themselves() {
    let mut bench = two_flows();
    bench.now = at_ms(500);
    let out = bench.all(Forward, Packet { numbers: forward(900_000, 0), ..data(1, 1, QosMark::Flow) });
    assert_eq!((out.len(), bench.flows()), (1, [2, 1]));
}
