//! Queues that manage themselves.

use crate::common::*;
use farpath_elements::{
    Aqm, Cake, Codel, DualPi2, ElementKind, ElementSpec, FlowQueues, Link, LowLatency, MarkThreshold, Pie,
    QueueLimit, Red,
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

/// RED whose thresholds need no limit of the queue.
const RED: Red = Red { min: Some(Bytes(30_000)), max: Some(Bytes(90_000)), ..Red::DEFAULT };

const ALL: [Aqm; 7] = [
    Aqm::Codel(Codel::DEFAULT),
    Aqm::FqCodel(FlowQueues::DEFAULT, Codel::IN_FLOW_QUEUES),
    Aqm::Pie(Pie::DEFAULT),
    Aqm::FqPie(FlowQueues::DEFAULT, Pie::DEFAULT),
    Aqm::Red(RED),
    Aqm::DualPi2(DualPi2::DEFAULT),
    Aqm::Cake(Cake::DEFAULT),
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
    let red = (3000u64..9000, 1u64..9000, 20u32..60, any::<bool>(), 0.0..=1.0);
    let red = red.prop_map(|(min, more, burst, ecn, fraction)| Red {
        min: Some(Bytes(min)),
        max: Some(Bytes(min + more)),
        probability: Some(probability(fraction)),
        burst: Some(burst),
        ecn,
        ..Red::DEFAULT
    });
    let dual = (1u64..20_000, 1u64..30, 1u32..2000, any::<bool>(), any::<bool>(), 0u32..=100);
    let dual =
        dual.prop_map(|(target, tupdate, weight, any_ect, drop_on_overload, classic_protection)| DualPi2 {
            target: Duration::from_micros(target),
            tupdate: Duration::from_millis(tupdate),
            alpha: weight,
            beta: 10 * weight,
            low_latency: if any_ect { LowLatency::AnyEct } else { LowLatency::Ect1 },
            step_threshold: Duration::from_micros(target / 2),
            classic_protection,
            drop_on_overload,
            ..DualPi2::DEFAULT
        });
    let cake = (1u64..20_000, 10u64..100_000).prop_map(|(target, interval)| Cake {
        target: Duration::from_micros(target),
        interval: Duration::from_micros(interval),
    });
    let others = (red, dual, cake);
    (0..7, queues, codel, pie, others).prop_map(
        |(which, queues, codel, pie, (red, dual, cake))| match which {
            0 => Aqm::Codel(codel),
            1 => Aqm::FqCodel(queues, codel),
            2 => Aqm::Pie(pie),
            3 => Aqm::FqPie(queues, pie),
            4 => Aqm::Red(red),
            5 => Aqm::DualPi2(dual),
            _ => Aqm::Cake(cake),
        },
    )
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
            Aqm::Red(red) => Aqm::Red(Red { ecn: true, ..red }),
            Aqm::DualPi2(dual) => Aqm::DualPi2(DualPi2 { drop_on_overload: false, ..dual }),
            Aqm::DropTail | Aqm::FqCodel(..) | Aqm::Cake(_) => aqm,
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
    for aqm in [ALL[1], ALL[3], ALL[6]] {
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

/// Floyd and Jacobson 1993, section 7: gaps between marks are spread evenly from 1 to 1/p, p by the mean queue between the thresholds.
#[test]
fn red_marks_by_the_mean_queue_at_even_gaps() {
    let red = Red { ecn: true, probability: Some(probability(0.1)), max: Some(Bytes(150_000)), ..RED };
    // 60 packets at once, and from then on as many as the link sends: the queue stays at 59 or 60.
    let mut offers = steady(Direction::Forward, 40_060, 1_000_000);
    for (number, offer) in (0..).zip(&mut offers) {
        offer.0 = at_ms(u64::saturating_sub(number, 60));
        offer.2.ecn = Ecn::Ect;
    }
    let out = run(&mut build(&[managed(Aqm::Red(red), QueueLimit::Unlimited)], 3), &offers);
    assert!(out.iter().all(|(.., cause)| cause.is_none()));
    let settled: Vec<bool> = out.iter().skip(5000).map(|(_, _, packet, _)| packet.ecn == Ecn::Ce).collect();
    let marks: Vec<usize> = (0..settled.len()).filter(|at| settled[*at]).collect();
    let gaps: Vec<usize> = marks.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let chance = 0.1 * (59.5 * 1500.0 - 30_000.0) / 120_000.0;
    let mean = gaps.iter().sum::<usize>() as f64 / gaps.len() as f64;
    let expected = (1.0 / chance + 1.0) / 2.0;
    // 3300 gaps of a deviation of 58 % of their mean: 1 %.
    assert!((mean / expected - 1.0).abs() < 0.04, "{mean} and not {expected}");
    assert!(gaps.iter().all(|gap| *gap as f64 <= 1.0 / chance + 2.0), "{:?}", gaps.iter().max());
}

#[test]
fn red_is_refused_where_its_thresholds_make_no_sense() {
    let fault = |red, queue| managed(Aqm::Red(red), queue).validate().map_err(|fault| fault.to_string());
    assert!(fault(Red::DEFAULT, QueueLimit::Bytes(Bytes(400_000))).is_ok());
    let unlimited = fault(Red::DEFAULT, QueueLimit::Unlimited).expect_err("no limit");
    assert!(unlimited.contains("`max`"), "{unlimited}");
    let crossed = Red { min: Some(Bytes(9000)), max: Some(Bytes(9000)), ..RED };
    assert!(fault(crossed, QueueLimit::Unlimited).expect_err("crossed").contains("`min` below `max`"));
    let burst = fault(Red { burst: Some(3), ..RED }, QueueLimit::Unlimited).expect_err("no burst");
    assert!(burst.contains("`burst`"), "{burst}");
    let huge = Red { max: Some(Bytes(1 << 31)), burst: Some(100), ..RED };
    assert!(fault(huge, QueueLimit::Unlimited).expect_err("32 bits").contains("`max`"));
}

/// RFC 9332 §2.1: classic packets are dropped with the square of half the probability with which low-latency ones are marked.
#[test]
fn dualpi2_couples_its_two_queues() {
    let dual = DualPi2 { step_threshold: Duration::from_secs(1), ..DualPi2::DEFAULT };
    // 90 % of the link by classic packets, 20 % by low-latency ones.
    let mut offers = steady(Direction::Forward, 110_000, 1_000_000 * 10 / 11);
    for offer in offers.iter_mut().filter(|offer| offer.2.id % 11 < 2) {
        offer.2.ecn = Ecn::Ect1;
        offer.2.id += 1 << 32;
    }
    let out = run(&mut build(&[managed(Aqm::DualPi2(dual), QueueLimit::Unlimited)], 5), &offers);
    let settled = || out.iter().filter(|(at, ..)| *at > at_ms(20_000));
    let share = |low_latency: bool, is: &dyn Fn(&Out) -> bool| {
        let of_queue = || settled().filter(|out| (out.2.id >> 32 == 1) == low_latency);
        of_queue().filter(|out| is(out)).count() as f64 / of_queue().count() as f64
    };
    let dropped = share(false, &|out| out.3.is_some());
    let marked = share(true, &|out| out.2.ecn == Ecn::Ce);
    assert!((dropped - 1.0 / 9.0).abs() < 0.01, "{dropped}");
    assert_eq!(share(true, &|out| out.3.is_some()), 0.0);
    // The probability swings: the mean of its square is above the square of its mean.
    assert!((marked / (2.0 * dropped.sqrt()) - 1.0).abs() < 0.05, "{marked} and {dropped}");
    let waits = |low_latency: bool| {
        let of_queue = settled().filter(|out| (out.2.id >> 32 == 1) == low_latency && out.3.is_none());
        let waits: Vec<f64> = of_queue
            .map(|out| (out.0 - at_ns((out.2.id & 0xffff_ffff) * 10_000_000 / 11)).as_secs_f64() * 1e3 - 1.0)
            .collect();
        waits.iter().sum::<f64>() / waits.len() as f64
    };
    // Packets of 1 ms: a low-latency one waits for the one that is being sent.
    assert!(waits(true) < 1.5, "{}", waits(true));
    assert!((12.0..20.0).contains(&waits(false)), "{}", waits(false));
}

#[test]
fn dualpi2_keeps_a_share_for_the_classic_queue() {
    // Either alone is more than the link sends.
    let mut offers = steady(Direction::Forward, 8000, 400_000);
    for offer in offers.iter_mut().filter(|offer| offer.2.id % 2 == 0) {
        offer.2.ecn = Ecn::Ect1;
    }
    let patient = DualPi2 { target: Duration::from_secs(900), ..DualPi2::DEFAULT };
    let out = run(&mut build(&[managed(Aqm::DualPi2(patient), QueueLimit::Packets(10_000))], 5), &offers);
    let sent = || out.iter().filter(|(at, .., cause)| cause.is_none() && *at < at_ms(3000));
    let classic = sent().filter(|(_, _, packet, _)| packet.ecn == Ecn::NotEct).count() as f64;
    let share = classic / sent().count() as f64;
    assert!((share - 0.1).abs() < 0.005, "{share}");
}

/// The first drop comes with the next packet of which the delay is above 5 ms, as the root of a new flow is zero in Linux; the next ones come
/// 100 ms / sqrt(n) apart.
#[test]
fn cake_drops_by_the_control_law_of_codel() {
    let out = overload(Aqm::Cake(Cake::DEFAULT), 4000, 500, Ecn::NotEct);
    let drops: Vec<f64> = out
        .iter()
        .filter(|(.., cause)| *cause == Some(DropCause::Aqm))
        .map(|(at, ..)| (*at - Instant::ZERO).as_secs_f64() * 1e3)
        .collect();
    assert!((10.0..15.0).contains(&drops[0]), "{}", drops[0]);
    let mut due = drops[0];
    for (number, at) in drops.iter().enumerate().skip(1).take(20) {
        due += 100.0 / (number as f64 + 1.0).sqrt();
        assert!((-1.1..1.2).contains(&(at - due)), "drop {number} at {at} ms, and not at {due} ms");
    }
}

/// BLUE begins where a queue is full: a flow that answers nothing is then dropped by chance.
#[test]
fn cake_drops_more_of_a_flow_that_does_not_answer() {
    let offers = steady(Direction::Forward, 20_000, 500_000);
    let out = run(&mut build(&[managed(Aqm::Cake(Cake::DEFAULT), QueueLimit::Packets(50))], 1), &offers);
    let lost = |is: DropCause| out.iter().filter(|out| out.3 == Some(is) && out.0 > at_ms(8000)).count();
    assert!(lost(DropCause::Aqm) > 50 * lost(DropCause::QueueOverflow), "{}", lost(DropCause::Aqm));
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
