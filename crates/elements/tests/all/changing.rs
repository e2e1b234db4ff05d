//! Elements that change over time, and those that draw a delay.

use crate::common::*;
use farpath_elements::{
    Contact, ContactPlan, Contacts, Distribution, ElementKind, Excess, Jitter, Outside, QueueLimit,
    TokenBucket, Trace, TraceLink, parse_plan,
};
use farpath_path::{Direction, DropCause, Fate, PacketView, PerDirection};
use farpath_units::{Bytes, Duration, Instant, Probability};
use std::sync::Arc;

const FORWARD: Direction = Direction::Forward;
const FULL: PacketView = PacketView { size: Bytes(1500), carries_data: true };

fn jitter(distribution: Distribution, correlation: f64, reorder: bool) -> ElementKind {
    let deviation = match distribution {
        Distribution::Normal => Duration::from_millis(2),
        _ => Duration::ZERO,
    };
    ElementKind::Jitter(Jitter {
        mean: PerDirection::both(Duration::from_millis(10)),
        distribution,
        deviation,
        correlation: probability(correlation),
        reorder,
    })
}

/// Extra delays of packets that are a second apart, in s.
fn extra_delays(kind: ElementKind, count: u64) -> Vec<f64> {
    let mut element = spec("jitter", kind).transit(1).expect("sound");
    let delay = |number| {
        let now = Instant::ZERO + Duration::from_secs(20 * number);
        match element.transit(now, FORWARD, FULL) {
            Fate::Depart(due) => (due - now).as_secs_f64(),
            other => panic!("{other:?}"),
        }
    };
    (0..count).map(delay).collect()
}

#[test]
fn extra_delays_have_their_distribution() {
    // 20 000 draws: the standard error of the mean of exponential ones is 0.7 %, of the share of a half 0.35 %.
    for (distribution, median) in [
        (Distribution::Uniform, 10e-3),
        (Distribution::Exponential, 10e-3 * 2f64.ln()),
        (Distribution::Normal, 10e-3),
        // (2^(2/3) - 1) / 2 of the mean.
        (Distribution::Pareto, 10e-3 * (2f64.powf(2.0 / 3.0) - 1.0) / 2.0),
    ] {
        let delays = extra_delays(jitter(distribution.clone(), 0.0, true), 20_000);
        let below = delays.iter().filter(|delay| **delay < median).count() as f64 / delays.len() as f64;
        assert!((below - 0.5).abs() < 0.02, "{distribution:?}: {below} below the median");
        let mean = delays.iter().sum::<f64>() / delays.len() as f64;
        // The mean of a Pareto distribution of shape 3/2 has no variance to judge it by.
        assert!(
            distribution == Distribution::Pareto || (mean / 10e-3 - 1.0).abs() < 0.03,
            "{distribution:?}: {mean}"
        );
    }
}

#[test]
fn listed_delays_are_drawn_all_alike() {
    let list: Arc<[Duration]> = [0, 0, 10, 30].map(Duration::from_millis).into();
    let ElementKind::Jitter(mut listed) = jitter(Distribution::Uniform, 0.0, true) else { unreachable!() };
    listed.distribution = Distribution::Listed(PerDirection::both(list));
    let delays = extra_delays(ElementKind::Jitter(listed), 4000);
    for (delay, share) in [(0.0, 0.5), (10e-3, 0.25), (30e-3, 0.25)] {
        let drawn = delays.iter().filter(|drawn| **drawn == delay).count() as u64;
        crate::loss::within_4_sigma(drawn, 4000, share);
    }
}

#[test]
fn neighbours_are_as_alike_as_the_correlation_says() {
    let delays = extra_delays(jitter(Distribution::Uniform, 0.6, true), 20_000);
    let alike = delays.windows(2).filter(|pair| pair[0] == pair[1]).count() as f64 / 19_999.0;
    assert!((alike - 0.6).abs() < 0.02, "{alike}");
    let mean = delays.iter().sum::<f64>() / 20_000.0;
    assert!((mean / 10e-3 - 1.0).abs() < 0.04, "{mean}");
}

#[test]
fn packets_keep_their_order_unless_they_may_overtake() {
    for (reorder, overtakes) in [(false, false), (true, true)] {
        let mut path = build(&[spec("jitter", jitter(Distribution::Exponential, 0.0, reorder))], 1);
        let offers: Vec<_> = (0..1000).map(|id| (at_ms(id), FORWARD, packet(id))).collect();
        let ids: Vec<u64> = run(&mut path, &offers).into_iter().map(|(_, _, packet, _)| packet.id).collect();
        assert_eq!(!ids.is_sorted(), overtakes);
        assert_eq!(ids.len(), 1000);
    }
}

fn bucket(excess: Excess, queue: QueueLimit) -> ElementKind {
    // 1000 B a millisecond.
    ElementKind::TokenBucket(TokenBucket {
        rate: PerDirection::both(rate(8_000_000)),
        burst: PerDirection::both(Bytes(4500)),
        excess,
        queue: PerDirection::both(queue),
    })
}

#[test]
fn a_policer_passes_its_burst_and_then_its_rate() {
    let mut element = spec("policer", bucket(Excess::Drop, QueueLimit::Unlimited)).transit(1).expect("sound");
    let mut send = |ns: u64| element.transit(at_ns(ns), FORWARD, FULL);
    assert_eq!([send(0), send(0), send(0)], [0, 0, 0].map(|ns| Fate::Depart(at_ns(ns))));
    // 1500 B of tokens have come after 1.5 ms, and not a nanosecond before.
    assert_eq!(send(0), Fate::Drop(DropCause::Policing));
    assert_eq!(send(1_499_999), Fate::Drop(DropCause::Policing));
    assert_eq!(send(1_500_000), Fate::Depart(at_ns(1_500_000)));
    assert_eq!(send(1_500_001), Fate::Drop(DropCause::Policing));
    // A bucket holds no more than its burst.
    let later = 1_000_000_000;
    assert_eq!([send(later), send(later), send(later)], [later; 3].map(|ns| Fate::Depart(at_ns(ns))));
    assert_eq!(send(later), Fate::Drop(DropCause::Policing));
}

#[test]
fn a_shaper_lets_the_rest_wait_within_its_queue() {
    let mut element = spec("shaper", bucket(Excess::Wait, QueueLimit::Packets(2))).transit(1).expect("sound");
    let mut send = |ns: u64| element.transit(at_ns(ns), FORWARD, FULL);
    let waits = |at: u64, ns| Fate::Queue(at_ns(at + ns), Duration::from_nanos(ns));
    assert_eq!([send(0), send(0), send(0)], [Fate::Depart(at_ns(0)); 3]);
    assert_eq!([send(0), send(0)], [waits(0, 1_500_000), waits(0, 3_000_000)]);
    assert_eq!(send(0), Fate::Drop(DropCause::QueueOverflow));
    // In the instant in which one leaves, it still waits.
    assert_eq!(send(1_500_000), Fate::Drop(DropCause::QueueOverflow));
    assert_eq!(send(1_500_001), waits(1_500_001, 2_999_999));
}

fn contacts(plan: ContactPlan, outside: Outside) -> ElementKind {
    ElementKind::Contacts(Contacts { plan, outside, queue: PerDirection::both(QueueLimit::Unlimited) })
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn packets_pass_during_contacts_and_wait_between() {
    let listed = ContactPlan::Listed(PerDirection::both(vec![
        Contact { from: seconds(1), to: seconds(3) },
        Contact { from: seconds(10), to: seconds(11) },
    ]));
    let periodic = ContactPlan::Periodic { period: seconds(9), contact: seconds(2), offset: seconds(10) };
    let cases = [
        // Plan, come at ms, leave at ms when held.
        (&listed, 0, Some(1000)),
        (&listed, 1000, Some(1000)),
        (&listed, 2999, Some(2999)),
        (&listed, 3000, Some(10_000)),
        (&listed, 11_000, None),
        (&periodic, 0, Some(1000)),
        (&periodic, 2999, Some(2999)),
        (&periodic, 3000, Some(10_000)),
        (&periodic, 12_000, Some(19_000)),
    ];
    for (plan, come, leave) in cases {
        for outside in Outside::ALL {
            let mut element = spec("contacts", contacts(plan.clone(), outside)).transit(1).expect("sound");
            let expected = match leave {
                Some(leave) if leave == come => Fate::Depart(at_ms(leave)),
                Some(leave) if outside == Outside::Hold => {
                    Fate::Queue(at_ms(leave), Duration::from_millis(leave - come))
                }
                _ if outside == Outside::Refuse => Fate::Drop(DropCause::Unreachable),
                _ => Fate::Drop(DropCause::Outage),
            };
            assert_eq!(element.transit(at_ms(come), FORWARD, FULL), expected, "{plan:?} {outside:?} {come}");
        }
    }
    assert_eq!(listed.longest_gap(FORWARD), seconds(7));
    assert_eq!(periodic.longest_gap(FORWARD), seconds(7));
}

#[test]
fn contact_plans_are_read_as_ion_writes_them() {
    let text = "# moon\nm horizon +0\na contact +3600 +6000 2 1 125000\na contact +0 +2400 1 2 125000 0.9\na range +0 +9000 1 2 1\n";
    let plan = parse_plan(text).expect("a plan");
    let expected =
        [(0, 2400), (3600, 6000)].map(|(from, to)| Contact { from: seconds(from), to: seconds(to) });
    assert_eq!(plan, expected);
    for (text, error) in [
        ("", "expected lines such as `a contact +0 +2400 1 2 125000`, found none"),
        (
            "a contact\n",
            "line 1: expected the beginning of a contact in seconds since the start, such as `+2400`, found `nothing`",
        ),
        (
            "\na contact +1 2026/11/26 1 2 3\n",
            "line 2: expected the end of a contact in seconds since the start, such as `+2400`, found `2026/11/26`",
        ),
    ] {
        assert_eq!(parse_plan(text).expect_err(text), error);
    }
}

#[test]
fn plans_that_contradict_themselves_are_refused() {
    let overlapping =
        vec![Contact { from: seconds(0), to: seconds(5) }, Contact { from: seconds(4), to: seconds(6) }];
    let backwards = vec![Contact { from: seconds(5), to: seconds(5) }];
    for (listed, part) in
        [(overlapping, "before 5 s"), (backwards, "an end after 5 s"), (Vec::new(), "found none")]
    {
        let kind = contacts(ContactPlan::Listed(PerDirection::both(listed)), Outside::Hold);
        let error = spec("contacts", kind).validate().expect_err("refused").to_string();
        assert!(error.starts_with("contacts: plan: ") && error.contains(part), "{error}");
    }
    let long = ContactPlan::Periodic { period: seconds(5), contact: seconds(6), offset: seconds(0) };
    assert!(spec("contacts", contacts(long, Outside::Hold)).validate().is_err());
}

#[test]
fn a_link_with_a_trace_queues_what_comes_during_an_outage() {
    let trace = Trace::parse("# repeat 2\n0,12000000\n1,0\n").expect("a trace");
    let kind = ElementKind::TraceLink(TraceLink {
        aqm: PerDirection::default(),
        trace: PerDirection::both(trace),
        queue: PerDirection::both(QueueLimit::Packets(1)),
        overhead: Bytes::ZERO,
    });
    let mut element = spec("link", kind).transit(1).expect("sound");
    let mut send = |ms: u64| element.transit(at_ms(ms), FORWARD, FULL);
    // 1500 B take 1 ms.
    let sent = |at, wait| Fate::Queue(at_ms(at), Duration::from_millis(wait));
    assert_eq!([send(0), send(999)], [sent(1, 0), sent(1000, 0)]);
    // The first one is being sent while the line has no rate, and waits for nothing but that.
    assert_eq!([send(1500), send(1500)], [sent(2001, 0), sent(2002, 501)]);
    assert_eq!(send(1500), Fate::Drop(DropCause::QueueOverflow));
    // A constant rate as a trace is a link.
    let constant = Trace::parse("0,8000000\n").expect("a trace");
    let as_trace = ElementKind::TraceLink(TraceLink {
        aqm: PerDirection::default(),
        trace: PerDirection::both(constant),
        queue: PerDirection::both(QueueLimit::Bytes(Bytes(20_000))),
        overhead: Bytes::ZERO,
    });
    let as_link = bare_link(8_000_000, QueueLimit::Bytes(Bytes(20_000)));
    let [mut one, mut other] = [as_trace, as_link].map(|kind| spec("link", kind).transit(1).expect("sound"));
    for number in 0..5000_u64 {
        let (now, size) = (at_ns(number * 700_001), Bytes(40 + number * 7919 % 1460));
        let packet = PacketView { size, carries_data: true };
        assert_eq!(one.transit(now, FORWARD, packet), other.transit(now, FORWARD, packet), "{number}");
    }
}

#[test]
fn no_jitter_is_none() {
    let kind = ElementKind::Jitter(Jitter {
        mean: PerDirection::both(Duration::ZERO),
        distribution: Distribution::Pareto,
        deviation: Duration::ZERO,
        correlation: Probability::ZERO,
        reorder: true,
    });
    assert!(extra_delays(kind, 100).iter().all(|delay| *delay == 0.0));
}
