//! Values that change over time.

use crate::common::*;
use farpath_elements::{
    Aqm, Between, Codel, ElementKind, FlowQueues, Link, Offset, OverTime, Pie, QueueLimit, Setting, Trace,
    TraceLink, VaryingBitErrors, VaryingDelay, VaryingLoss,
};
use farpath_path::{Direction, Fate, PacketView, PerDirection, Transit};
use farpath_units::{Ber, Bytes, Duration};

const FORWARD: Direction = Direction::Forward;
const FULL: PacketView = PacketView { size: Bytes(1500), carries_data: true };

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// 20 ms, from 1 s on 50 ms, from 3 s on 10 ms.
fn delays(between: Between, repeat: Option<u64>, offset: Offset) -> Setting<Duration> {
    let points = vec![(ms(0), ms(20)), (ms(1000), ms(50)), (ms(3000), ms(10))];
    Setting::Changing(OverTime::new(points, between, repeat.map(ms), offset).expect("sound"))
}

fn element(delay: Setting<Duration>, reorder: bool, seed: u64) -> Box<dyn Transit + Send> {
    let kind = ElementKind::VaryingDelay(VaryingDelay { delay: PerDirection::both(delay), reorder });
    spec("delay", kind).transit(seed).expect("sound")
}

/// How long a packet is on its way that comes in at so many ms.
fn on_the_way(element: &mut dyn Transit, at: u64) -> Duration {
    match element.transit(at_ms(at), FORWARD, FULL) {
        Fate::Depart(due) => due - at_ms(at),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_packet_has_the_delay_of_the_moment_at_which_it_comes_in() {
    let start = Offset::At(Duration::ZERO);
    let mut steps = element(delays(Between::Steps, None, start), true, 1);
    let found = [0, 999, 1000, 2999, 3000, 9000].map(|at| on_the_way(&mut *steps, at));
    assert_eq!(found, [20, 20, 50, 50, 10, 10].map(ms));
    let mut lines = element(delays(Between::Lines, Some(5000), start), true, 1);
    // The end of what repeats is its beginning: 10 ms at 3 s, 20 ms at 5 s.
    let found = [0, 500, 1000, 2000, 3000, 4000, 5000, 5500].map(|at| on_the_way(&mut *lines, at));
    assert_eq!(found, [20, 35, 50, 30, 10, 15, 20, 35].map(ms));
    let mut late = element(delays(Between::Steps, None, Offset::At(ms(1500))), true, 1);
    assert_eq!([0, 1500].map(|at| on_the_way(&mut *late, at)), [50, 10].map(ms));
}

#[test]
fn a_delay_that_shrinks_keeps_packets_in_order_unless_they_may_overtake() {
    for (reorder, second) in [(false, 47), (true, 10)] {
        let mut delay = element(delays(Between::Steps, None, Offset::At(Duration::ZERO)), reorder, 1);
        assert_eq!(on_the_way(&mut *delay, 2997), ms(50));
        assert_eq!(on_the_way(&mut *delay, 3000), ms(second));
        assert_eq!(delay.keeps_order(FORWARD), !reorder);
    }
}

#[test]
fn a_random_offset_is_of_the_seed_and_the_same_both_ways() {
    let mut firsts = std::collections::BTreeSet::new();
    for seed in 0..20 {
        let mut delay = element(delays(Between::Lines, Some(5000), Offset::Random), true, seed);
        let mut first = |way| delay.transit(at_ms(0), way, FULL);
        assert_eq!(first(FORWARD), first(Direction::Reverse));
        let mut again = element(delays(Between::Lines, Some(5000), Offset::Random), true, seed);
        let (first, again) = (on_the_way(&mut *delay, 0), on_the_way(&mut *again, 0));
        assert_eq!(first, again);
        firsts.insert(first);
    }
    assert!(firsts.len() > 15, "{firsts:?}");
}

#[test]
fn means_are_over_time() {
    let start = Offset::At(Duration::ZERO);
    // 1 s of 20 ms, 2 s of 50, 2 s of 10; and half-way between them.
    assert_eq!(delays(Between::Steps, Some(5000), start).mean(), ms(28));
    assert_eq!(delays(Between::Lines, Some(5000), start).mean(), ms(25));
    assert_eq!(delays(Between::Steps, None, start).range(), (ms(10), ms(50)));
}

#[test]
fn losses_follow_their_rate() {
    let rate = OverTime::new(
        vec![(ms(0), probability(0.0)), (ms(10_000), probability(0.2))],
        Between::Steps,
        Some(ms(20_000)),
        Offset::At(Duration::ZERO),
    );
    let loss_rate = PerDirection::both(Setting::Changing(rate.expect("sound")));
    let loss = VaryingLoss { loss_rate, count: farpath_elements::PacketCount::All };
    let mut loss = spec("loss", ElementKind::VaryingLoss(loss)).transit(1).expect("sound");
    let ber = OverTime::new(
        vec![(ms(0), Ber::ZERO), (ms(10_000), Ber::new(2e-5).expect("a rate"))],
        Between::Steps,
        Some(ms(20_000)),
        Offset::At(Duration::ZERO),
    );
    let ber = PerDirection::both(Setting::Changing(ber.expect("sound")));
    let errors = VaryingBitErrors { ber, overhead: Bytes::ZERO, linear: false };
    let mut errors = spec("errors", ElementKind::VaryingBitErrors(errors)).transit(1).expect("sound");
    // A packet a millisecond, of which 1 - (1 - 2e-5)^12000 = 21.3 % meet an error in the bad ten seconds.
    for (element, share) in [(&mut loss, 0.2), (&mut errors, 0.2134)] {
        let mut lost = [0_u32; 2];
        for at in 0..20_000 {
            let is_lost = matches!(element.transit(at_ms(at), FORWARD, FULL), Fate::Drop(_));
            lost[usize::from(at >= 10_000)] += u32::from(is_lost);
        }
        assert_eq!(lost[0], 0);
        // Five standard deviations of 10 000 draws.
        assert!((f64::from(lost[1]) / 10_000.0 - share).abs() < 0.0205, "{lost:?}");
    }
}

#[test]
fn what_leaves_a_moment_without_a_value_is_refused() {
    let refused = |points: &[(u64, u64)], repeat: Option<u64>, offset| {
        let points = points.iter().map(|&(at, delay)| (ms(at), ms(delay))).collect();
        OverTime::new(points, Between::Steps, repeat.map(ms), offset).expect_err("refused")
    };
    let start = Offset::At(Duration::ZERO);
    for (fault, key, part) in [
        (refused(&[], None, start), "points", "found none"),
        (refused(&[(1, 1)], None, start), "points", "expected `0 s`"),
        (refused(&[(0, 1), (5, 1), (5, 2)], None, start), "points", "a time after 5 ms"),
        (refused(&[(0, 1), (5, 1)], Some(5), start), "repeat", "a time after 5 ms"),
        (refused(&[(0, 1)], None, Offset::Random), "offset", "a `repeat` beside it"),
    ] {
        assert!(fault.key == key && fault.reason.contains(part), "{fault:?}");
    }
}

#[test]
fn a_managed_link_with_a_trace_of_one_rate_is_the_managed_link() {
    for aqm in [
        Aqm::Codel(Codel::DEFAULT),
        Aqm::FqCodel(FlowQueues::DEFAULT, Codel::IN_FLOW_QUEUES),
        Aqm::Pie(Pie::DEFAULT),
        Aqm::FqPie(FlowQueues::DEFAULT, Pie::DEFAULT),
    ] {
        let queue = QueueLimit::Packets(200);
        let ElementKind::Link(link) = bare_link(8_000_000, queue) else { unreachable!("it is a link") };
        let aqm = PerDirection::both(aqm);
        let steady = ElementKind::Link(Link { aqm, ..link });
        let trace = Trace::of_rates(vec![(Duration::ZERO, 8_000_000)], None).expect("a rate");
        let traced = ElementKind::TraceLink(TraceLink {
            trace: PerDirection::both(trace),
            queue: PerDirection::both(queue),
            aqm,
            overhead: Bytes::ZERO,
        });
        // An eighth more than the rate, in sizes that do not divide it.
        let offers: Vec<_> = (0..4000)
            .map(|id| (at_ns(id * 700_001), FORWARD, Packet { size: 100 + id * 7919 % 1400, ..packet(id) }))
            .collect();
        let outs = [steady, traced].map(|kind| run(&mut build(&[spec("link", kind)], 7), &offers));
        assert_eq!(outs[0], outs[1], "{aqm:?}");
        assert!(outs[0].iter().any(|out| out.3.is_some()), "{aqm:?}: the queue never dropped");
    }
}
