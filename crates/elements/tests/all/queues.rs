//! Queues that manage themselves.

use crate::common::*;
use farpath_elements::{
    Aqm, Codel, ElementKind, ElementSpec, FlowQueues, Link, MarkThreshold, Pie, QueueLimit,
};
use farpath_path::{Direction, DropCause, PathElement, PerDirection};
use farpath_units::{Bytes, Duration, Instant};
use proptest::prelude::*;

/// A link of 12 Mbit/s, which sends 1500 B in 1 ms, managed forward.
fn managed(aqm: Aqm, queue: QueueLimit) -> ElementSpec {
    let ElementKind::Link(link) = bare_link(12_000_000, queue) else { unreachable!("it is a link") };
    let aqm = PerDirection { forward: aqm, reverse: Aqm::DropTail };
    spec("link", ElementKind::Link(Link { aqm, ..link }))
}

const ALL: [Aqm; 4] = [
    Aqm::Codel(Codel::DEFAULT),
    Aqm::FqCodel(FlowQueues::DEFAULT, Codel::IN_FLOW_QUEUES),
    Aqm::Pie(Pie::DEFAULT),
    Aqm::FqPie(FlowQueues::DEFAULT, Pie::DEFAULT),
];

fn any_aqm() -> impl Strategy<Value = Aqm> {
    let codel = (1u64..20_000, 10u64..100_000, any::<bool>(), prop::option::of(1u64..5000));
    let codel = codel.prop_map(|(target, interval, ecn, ce)| Codel {
        target: Duration::from_micros(target),
        interval: Duration::from_micros(interval),
        ecn,
        ce_threshold: ce.map(Duration::from_micros),
    });
    let pie = (1u64..20_000, 1u64..30, 0u32..=32, 0u32..=32, any::<bool>(), any::<bool>());
    let pie = pie.prop_map(|(target, tupdate, alpha, beta, ecn, bytemode)| Pie {
        target: Duration::from_micros(target),
        tupdate: Duration::from_millis(tupdate),
        alpha,
        beta,
        ecn,
        bytemode,
        ..Pie::DEFAULT
    });
    let queues = (1u32..4, 256u64..4000, 1u32..5).prop_map(|(flows, quantum, drop_batch)| FlowQueues {
        flows,
        quantum: Bytes(quantum),
        drop_batch,
    });
    (0..4, queues, codel, pie).prop_map(|(which, queues, codel, pie)| match which {
        0 => Aqm::Codel(codel),
        1 => Aqm::FqCodel(queues, codel),
        2 => Aqm::Pie(pie),
        _ => Aqm::FqPie(queues, pie),
    })
}

fn any_limit() -> impl Strategy<Value = QueueLimit> {
    prop_oneof![
        Just(QueueLimit::Unlimited),
        (0u64..30).prop_map(QueueLimit::Packets),
        (0u64..20_000).prop_map(|bytes| QueueLimit::Bytes(Bytes(bytes))),
    ]
}

/// Packets of up to four flows, often more than the link sends.
fn of_flows(offers: Vec<(Instant, Direction, Packet)>) -> Vec<(Instant, Direction, Packet)> {
    let with_flow = |(at, way, packet): (Instant, Direction, Packet)| {
        let id = packet.id + ((packet.id % 4) << 32);
        (at, way, Packet { id, ..packet })
    };
    offers.into_iter().map(with_flow).collect()
}

proptest! {
    #[test]
    fn every_packet_comes_out_once_in_time_order(
        forward in any_aqm(), reverse in any_aqm(), queue in any_limit(), offers in any_offers(120), seed: u64,
    ) {
        let mut spec = managed(forward, queue);
        if let ElementKind::Link(link) = &mut spec.kind {
            link.aqm.reverse = reverse;
        }
        let offers = of_flows(offers);
        let mut path = build(&[spec], seed);
        let out = run(&mut path, &offers);
        prop_assert_eq!(path.held(), 0);
        let mut ids: Vec<u64> = out.iter().map(|(_, _, packet, _)| packet.id).collect();
        ids.sort_unstable();
        let mut offered: Vec<u64> = offers.iter().map(|(_, _, packet)| packet.id).collect();
        offered.sort_unstable();
        prop_assert_eq!(ids, offered);
        let dropped = out.iter().filter(|(.., cause)| cause.is_some()).count() as u64;
        prop_assert_eq!(path.counters().iter().map(|c| c.dropped.total()).sum::<u64>(), dropped);
        let marked = out.iter().filter(|(_, _, packet, _)| {
            offers.iter().any(|(_, _, before)| before.id == packet.id && before.ecn != packet.ecn)
        });
        prop_assert_eq!(path.counters().iter().map(|c| c.marked).sum::<u64>(), marked.count() as u64);
        // What is sent by one line does not overlap.
        for way in Direction::BOTH {
            let sent: Vec<_> = out.iter().filter(|(_, to, _, cause)| *to == way && cause.is_none()).collect();
            for pair in sent.windows(2) {
                prop_assert!(pair[1].0 >= pair[0].0 + rate(12_000_000).time_to_send(Bytes(pair[1].2.size)).saturating_sub(Duration::from_nanos(1)));
            }
        }
    }

    #[test]
    fn a_late_caller_changes_no_fate(
        aqm in any_aqm(), queue in any_limit(), offers in any_offers(120), seed: u64,
        late in prop::collection::vec(any::<bool>(), 120),
    ) {
        let specs = [managed(aqm, queue), spec("delay", delay_ms(1))];
        let offers = of_flows(offers);
        let mut prompt = run(&mut build(&specs, seed), &offers);
        let mut path = build(&specs, seed);
        let mut out = Vec::new();
        for ((now, way, packet), late) in offers.iter().zip(late) {
            if !late {
                out.extend(take_all(&mut path, *now));
            }
            out.extend(offer(&mut path, *now, *way, packet.clone()));
        }
        out.extend(take_all(&mut path, Instant::MAX));
        out.sort();
        prompt.sort();
        prop_assert_eq!(out, prompt);
    }

    /// Below its threshold an algorithm is the plain link, and the way that has none is so always.
    #[test]
    fn a_managed_queue_that_never_acts_is_drop_tail(
        queue in any_limit(), offers in any_offers(120), seed: u64,
    ) {
        let patient = Codel { target: Duration::from_secs(900), ..Codel::DEFAULT };
        let plain = run(&mut build(&[spec("link", bare_link(12_000_000, queue))], seed), &offers);
        let out = run(&mut build(&[managed(Aqm::Codel(patient), queue)], seed), &offers);
        prop_assert_eq!(out, plain);
    }
}

/// Fates of `count` packets, one each `gap_us`, of `ecn`.
fn overload(aqm: Aqm, count: u64, gap_us: u64, ecn: Ecn) -> Vec<Out> {
    let mut offers = steady(Direction::Forward, count, gap_us * 1000);
    offers.iter_mut().for_each(|offer| offer.2.ecn = ecn);
    run(&mut build(&[managed(aqm, QueueLimit::Unlimited)], 7), &offers)
}

/// RFC 8289 §5.3: the first drop comes when the delay has been above 5 ms for 100 ms, the next ones 100 ms / sqrt(n) apart. As in Linux the
/// root is one step of Newton's method for each drop, which makes 0.5 of 1/sqrt(2), and is near from the third on.
#[test]
fn codel_drops_by_its_control_law() {
    let out = overload(Aqm::Codel(Codel::DEFAULT), 4000, 950, Ecn::NotEct);
    let drops: Vec<f64> = out
        .iter()
        .filter(|(.., cause)| *cause == Some(DropCause::Aqm))
        .map(|(at, ..)| (*at - Instant::ZERO).as_secs_f64() * 1e3)
        .collect();
    // The queue grows by 1 ms in each 20: above 5 ms from 100 ms on, and 100 ms more.
    assert!((195.0..215.0).contains(&drops[0]), "{}", drops[0]);
    let (mut due, mut root) = (drops[0], 1.0);
    for (number, at) in drops.iter().enumerate().skip(1).take(30) {
        let count = number as f64;
        root *= (3.0 - count * root * root) / 2.0;
        due += 100.0 * root;
        // A drop waits for the end of a packet of 1 ms; the root has 16 bits, the unit of time is 1.024 us.
        assert!((-0.1..1.1).contains(&(at - due)), "drop {number} at {at} ms, and not at {due} ms");
    }
}

#[test]
fn a_drop_is_a_mark_where_the_packet_can_carry_one() {
    for aqm in ALL {
        let ecn = match aqm {
            Aqm::Codel(codel) => Aqm::Codel(Codel { ecn: true, ..codel }),
            Aqm::Pie(pie) => Aqm::Pie(Pie { ecn: true, ecn_prob: 100, ..pie }),
            Aqm::FqPie(queues, pie) => Aqm::FqPie(queues, Pie { ecn: true, ecn_prob: 100, ..pie }),
            Aqm::DropTail | Aqm::FqCodel(..) => aqm,
        };
        let out = overload(ecn, 5000, 900, Ecn::Ect);
        assert!(out.iter().all(|(.., cause)| cause.is_none()), "{aqm}");
        assert!(out.iter().any(|(_, _, packet, _)| packet.ecn == Ecn::Ce), "{aqm}");
    }
}

#[test]
fn a_mark_threshold_marks_beside_the_algorithm() {
    let codel = Codel { ce_threshold: Some(Duration::from_millis(2)), ..Codel::DEFAULT };
    let out = overload(Aqm::Codel(codel), 100, 500, Ecn::Ect);
    for (sent, _, packet, _) in out {
        let waited = (sent - at_ns(packet.id * 500_000)).saturating_sub(Duration::from_millis(1));
        // CoDel counts in units of 1024 ns.
        let near = waited.as_nanos().abs_diff(2_000_000) < 2048;
        assert!(near || (packet.ecn == Ecn::Ce) == (waited > Duration::from_millis(2)), "{waited}");
    }
}

/// RFC 8033 §4: under a load of 1.25 that answers nothing the controller finds the drops that hold the target.
#[test]
fn pie_holds_its_target() {
    let out = overload(Aqm::Pie(Pie::DEFAULT), 40_000, 800, Ecn::NotEct);
    let waits: Vec<f64> = out
        .iter()
        .filter(|(at, .., cause)| cause.is_none() && *at > at_ms(10_000))
        .map(|(at, _, packet, _)| (*at - at_ns(packet.id * 800_000)).as_secs_f64() * 1e3 - 1.0)
        .collect();
    let mean = waits.iter().sum::<f64>() / waits.len() as f64;
    // An integral controller has no error in the long run: what is left are its swings.
    assert!((13.0..17.0).contains(&mean), "{mean} ms");
    let dropped = out.iter().filter(|(at, .., cause)| cause.is_some() && *at > at_ms(10_000)).count();
    let share = dropped as f64 / (waits.len() + dropped) as f64;
    assert!((share - 0.2).abs() < 0.01, "{share}");
}

#[test]
fn a_sparse_flow_does_not_wait_for_a_bulk_flow() {
    for aqm in [ALL[1], ALL[3]] {
        let mut offers = steady(Direction::Forward, 3000, 700_000);
        for offer in offers.iter_mut().filter(|offer| offer.2.id % 50 == 0) {
            offer.2.id += 1 << 32;
        }
        let out = run(&mut build(&[managed(aqm, QueueLimit::Packets(10_240))], 1), &offers);
        let longest = |sparse: bool| {
            let of_flow = out.iter().filter(|out| (out.2.id >> 32 == 1) == sparse && out.3.is_none());
            of_flow.map(|out| out.0 - at_ns((out.2.id & 0xffff_ffff) * 700_000)).max().expect("some")
        };
        // Itself, what is being sent, and one of the other flow.
        assert!(longest(true) <= Duration::from_millis(3), "{aqm}: {}", longest(true));
        assert!(longest(false) > Duration::from_millis(20), "{aqm}: {}", longest(false));
    }
}

#[test]
fn the_longest_queue_pays_for_a_full_one() {
    let mut offers = steady(Direction::Forward, 400, 100_000);
    for offer in offers.iter_mut().filter(|offer| offer.2.id % 40 == 0) {
        offer.2.id += 1 << 32;
    }
    let out = run(&mut build(&[managed(ALL[1], QueueLimit::Packets(50))], 1), &offers);
    let lost = |flow| out.iter().filter(|out| out.2.id >> 32 == flow && out.3.is_some()).count();
    assert_eq!(lost(1), 0);
    assert!(lost(0) > 200, "{}", lost(0));
}

#[test]
fn a_mark_and_an_algorithm_contradict_each_other() {
    let mut spec = managed(ALL[0], QueueLimit::Unlimited);
    if let ElementKind::Link(link) = &mut spec.kind {
        link.mark.reverse = MarkThreshold::Packets(3);
    }
    assert!(spec.validate().is_ok());
    if let ElementKind::Link(link) = &mut spec.kind {
        link.mark.forward = MarkThreshold::Packets(3);
    }
    assert!(spec.validate().expect_err("both are there").to_string().contains("ce_threshold"));
}
