//! Elements one behind the other: order, hops, foreign elements, refusals.

use crate::common::*;
use farpath_elements::{
    BitErrors, Delay, Duplicate, ElementKind, EvenlySpaced, ExplicitRatePacket, Hops, Link, MarkThreshold,
    PacketCount, QueueLimit, Reorder, SpecError, build_path,
};
use farpath_path::{
    BoxedElement, Departure, Direction, DropCause, Path, PathElement, PathPacket, PerDirection, Stage,
    Verdict,
};
use farpath_units::{Bytes, Duration, Instant};

use Direction::{Forward, Reverse};

#[test]
fn an_empty_chain_passes_packets_at_once() {
    let mut path = build(&[], 0);
    assert_eq!(path.next_departure(), None);
    for (id, direction) in Direction::BOTH.into_iter().enumerate() {
        assert_eq!(offer(&mut path, at_ms(5), direction, packet(id as u64)), None);
    }
    assert_eq!((path.held(), path.next_departure()), (2, Some(at_ms(5))));
    let out = take_all(&mut path, at_ms(5));
    assert_eq!(out, [(at_ms(5), Forward, packet(0), None), (at_ms(5), Reverse, packet(1), None)]);
}

#[test]
fn reverse_packets_meet_the_elements_in_the_opposite_order() {
    // The queue in front of the link overflows; what the loss takes first needs no room in it.
    let specs = [spec("loss", listed(&[1, 2])), spec("link", bare_link(12_000_000, QueueLimit::Packets(0)))];
    for (direction, survivors) in [(Forward, vec![3]), (Reverse, vec![])] {
        let mut path = build(&specs, 0);
        let offers: Vec<_> = (1..=3).map(|id| (at_ms(0), direction, packet(id))).collect();
        let out = run(&mut path, &offers);
        let on_their_way = out.iter().filter(|out| out.3.is_none()).map(|out| out.2.id);
        assert_eq!(on_their_way.collect::<Vec<_>>(), survivors, "{direction}");
    }
}

#[test]
fn a_drop_is_stamped_with_the_time_it_happened() {
    let mut path = build(&[spec("d", delay_ms(100)), spec("loss", listed(&[1]))], 0);
    let lost = Some((at_ms(100), Forward, packet(1), Some(DropCause::Loss)));
    assert_eq!(offer(&mut path, at_ms(0), Forward, packet(1)), lost);
    let lost = Some((at_ms(0), Reverse, packet(1), Some(DropCause::Loss)));
    assert_eq!(offer(&mut path, at_ms(0), Reverse, packet(1)), lost);
}

#[test]
fn a_drop_behind_a_hop_comes_out_when_it_happens() {
    // Reordering ends the first stage, so the loss behind 100 ms more is met on a hop.
    let specs = [
        spec(
            "reorder",
            ElementKind::Reorder(Reorder {
                share: PerDirection { forward: probability(1.0), reverse: probability(0.0) },
                extra_delay: Duration::from_millis(10),
            }),
        ),
        spec("d", delay_ms(100)),
        spec("loss", listed(&[1])),
    ];
    let mut path = build(&specs, 0);
    assert_eq!(offer(&mut path, at_ms(0), Forward, packet(1)), None);
    assert_eq!(offer(&mut path, at_ms(0), Forward, packet(2)), None);
    assert_eq!(path.next_departure(), Some(at_ms(10)));
    assert_eq!(path.take(at_ms(10)), None);
    assert_eq!((path.held(), path.next_departure()), (2, Some(at_ms(110))));
    assert_eq!(
        take_all(&mut path, at_ms(110)),
        [(at_ms(110), Forward, packet(1), Some(DropCause::Loss)), (at_ms(110), Forward, packet(2), None)]
    );
}

#[test]
fn a_packet_that_is_held_back_is_overtaken() {
    let reorder = spec(
        "reorder",
        ElementKind::Reorder(Reorder {
            share: PerDirection::both(probability(0.3)),
            extra_delay: Duration::from_nanos(2_500),
        }),
    );
    let offers = steady(Forward, 10_000, 1_000);
    let out = run(&mut build(&[reorder], 1), &offers);
    let late = out.iter().filter(|(due, _, packet, _)| *due > offers[packet.id as usize - 1].0).count();
    assert!((2817..=3183).contains(&late), "{late} of 10000 held back, expected 3000 ± 4 · 45.8");
    assert!(!out.iter().map(|out| out.2.id).is_sorted());
}

#[test]
fn a_copy_goes_its_own_way_behind_the_packet() {
    let specs = [
        spec(
            "twice",
            ElementKind::Duplicate(Duplicate {
                share: PerDirection { forward: probability(1.0), reverse: probability(0.0) },
            }),
        ),
        spec("link", bare_link(12_000_000, QueueLimit::Unlimited)),
    ];
    let mut path = build(&specs, 0);
    let out = run(&mut path, &[(at_ms(0), Forward, packet(7))]);
    assert_eq!(out, [(at_ms(1), Forward, packet(7), None), (at_ms(2), Forward, packet(7), None)]);
    let twice = counters_of(&path, "twice", Forward);
    assert_eq!((twice.offered, twice.delivered, twice.duplicated), (1, 2, 1));
    assert_eq!(counters_of(&path, "link", Forward).offered, 2);
}

#[test]
fn delays_in_a_row_are_added_up_and_count_each_for_itself() {
    let asymmetric = ElementKind::Delay(Delay {
        delay: PerDirection { forward: Duration::from_millis(10), reverse: Duration::from_millis(100) },
    });
    let specs = [
        spec("first", delay_ms(1)),
        spec("second", asymmetric),
        spec("loss", listed(&[2])),
        spec("third", delay_ms(1000)),
    ];
    let mut path = build(&specs, 0);
    let out = run(&mut path, &[(at_ms(0), Forward, packet(1)), (at_ms(0), Reverse, packet(1))]);
    assert_eq!(out, [(at_ms(1011), Forward, packet(1), None), (at_ms(1101), Reverse, packet(1), None)]);
    let lost = Some((at_ms(3011), Forward, packet(2), Some(DropCause::Loss)));
    assert_eq!(offer(&mut path, at_ms(3000), Forward, packet(2)), lost);
    let counted = path.counters().into_iter().map(|c| (c.name, c.direction, c.offered, c.delivered));
    let expected = [
        ("first", Forward, 2, 2),
        ("first", Reverse, 1, 1),
        ("second", Forward, 2, 2),
        ("second", Reverse, 1, 1),
        ("loss", Forward, 2, 1),
        ("loss", Reverse, 1, 1),
        ("third", Forward, 1, 1),
        ("third", Reverse, 1, 1),
    ];
    let expected = expected.map(|(name, way, offered, delivered)| (name.to_owned(), way, offered, delivered));
    assert_eq!(counted.collect::<Vec<_>>(), expected);
}

#[test]
fn elements_fuse_as_far_as_both_directions_allow() {
    let delay = || spec("d", delay_ms(1));
    let reorder = |forward, reverse| {
        spec(
            "r",
            ElementKind::Reorder(Reorder {
                share: PerDirection { forward: probability(forward), reverse: probability(reverse) },
                extra_delay: Duration::from_millis(1),
            }),
        )
    };
    let stages = |middle| {
        let chain = [delay(), middle, delay()];
        let boxed = chain.map(|spec| (spec.name.clone(), spec.transit(0).expect("sound")));
        Stage::<Packet>::fuse(boxed.into()).iter().map(|s| s.counters().len() / 2).collect::<Vec<_>>()
    };
    assert_eq!(stages(delay()), [3]);
    assert_eq!(stages(reorder(0.0, 0.0)), [3]);
    assert_eq!(stages(reorder(0.5, 0.0)), [2, 1]);
    assert_eq!(stages(reorder(0.0, 0.5)), [1, 2]);
    assert_eq!(stages(reorder(0.5, 0.5)), [1, 1, 1]);
    let twice = |share| {
        spec("t", ElementKind::Duplicate(Duplicate { share: PerDirection::both(probability(share)) }))
    };
    assert_eq!(stages(twice(0.0)), [3]);
    assert_eq!(stages(twice(0.5)), [1, 1, 1]);
}

/// A medium that one packet at a time passes, in either direction, in 1 ms; it grows packets by 1 B.
#[derive(Default)]
pub struct HalfDuplex {
    clock: Instant,
    busy_until: Instant,
    sending: Vec<(Instant, Direction, Packet)>,
}

impl PathElement<Packet> for HalfDuplex {
    fn offer(&mut self, now: Instant, direction: Direction, mut packet: Packet) -> Verdict<Packet> {
        assert!(now >= self.clock, "time went from {} to {now}", self.clock);
        self.clock = now;
        packet.size += 1;
        self.busy_until = self.busy_until.max(now) + Duration::from_millis(1);
        self.sending.push((self.busy_until, direction, packet));
        Verdict::Accepted
    }
    fn next_departure(&self) -> Option<Instant> {
        self.sending.first().map(|(due, ..)| *due)
    }
    fn take(&mut self, now: Instant) -> Option<Departure<Packet>> {
        self.next_departure().filter(|&due| due <= now)?;
        let (due, direction, packet) = self.sending.remove(0);
        Some(Departure { due, direction, packet, dropped: None })
    }
    fn held(&self) -> usize {
        self.sending.len()
    }
}

fn radio_between(near: u64, far: u64) -> Path<Packet> {
    let elements: Vec<BoxedElement<Packet>> = vec![
        Box::new(build(&[spec("near", delay_ms(near))], 0)),
        Box::<HalfDuplex>::default(),
        Box::new(build(&[spec("far", delay_ms(far))], 0)),
    ];
    Path::from_elements(elements)
}

#[test]
fn an_element_that_sees_both_directions_sees_time_go_forward() {
    // The caller takes nothing in between: the hop at 3 ms must still come before the offer at 4 ms.
    let elements: Vec<BoxedElement<Packet>> =
        vec![Box::new(build(&[spec("near", delay_ms(3))], 0)), Box::<HalfDuplex>::default()];
    let mut path = Path::from_elements(elements);
    offer(&mut path, at_ms(0), Forward, packet(1));
    offer(&mut path, at_ms(4), Reverse, packet(2));
    offer(&mut path, at_ms(20), Reverse, packet(3));
    let grown = |id| Packet { id, size: 1501, data: true, ecn: Ecn::NotEct, ttl: 64 };
    assert_eq!(
        take_all(&mut path, Instant::MAX),
        [
            (at_ms(4), Forward, grown(1), None),
            (at_ms(8), Reverse, grown(2), None),
            (at_ms(24), Reverse, grown(3), None),
        ]
    );
}

#[test]
fn the_shared_medium_serializes_both_directions() {
    let mut path = radio_between(2, 2);
    let offers: Vec<_> = Direction::BOTH.into_iter().map(|way| (at_ms(0), way, packet(1))).collect();
    let out = run(&mut path, &offers);
    // Together at the medium: the one from the data sender's side goes first.
    assert_eq!(
        out.iter().map(|out| (out.0, out.1)).collect::<Vec<_>>(),
        [(at_ms(5), Forward), (at_ms(6), Reverse)]
    );
    assert_eq!(path.counters().len(), 4);
}

#[test]
fn hops_happen_at_their_due_time_however_late_the_call() {
    let specs = [
        spec("twice", ElementKind::Duplicate(Duplicate { share: PerDirection::both(probability(1.0)) })),
        spec("link", bare_link(12_000_000, QueueLimit::Unlimited)),
    ];
    let mut path = build(&specs, 0);
    offer(&mut path, at_ms(0), Forward, packet(1));
    let out = take_all(&mut path, at_ms(1_000));
    assert_eq!(out.iter().map(|out| out.0).collect::<Vec<_>>(), [at_ms(1), at_ms(2)]);
}

#[test]
fn asking_when_changes_nothing() {
    let specs = [spec("d", delay_ms(7)), spec("loss", bernoulli(0.5))];
    let (mut asked, mut left_alone) = (build(&specs, 3), build(&specs, 3));
    for id in 0..100 {
        (0..5).for_each(|_| assert_eq!(asked.next_departure(), asked.next_departure()));
        let now = at_ns(id * 1000);
        assert_eq!(
            offer(&mut asked, now, Forward, packet(id)),
            offer(&mut left_alone, now, Forward, packet(id))
        );
    }
    assert_eq!(take_all(&mut asked, at_ms(9)), take_all(&mut left_alone, at_ms(9)));
}

#[test]
fn two_elements_of_one_name_are_refused() {
    let error = build_path::<Packet>(&[spec("a", delay_ms(1)), spec("a", bernoulli(0.1))], 0).unwrap_err();
    assert_eq!(error, SpecError::DuplicateName { element: "a".to_owned() });
    assert_eq!(error.to_string(), "a: two elements have this name");
}

#[test]
fn contradictions_are_refused_by_name() {
    let never = spec(
        "gap",
        ElementKind::EvenlySpaced(EvenlySpaced {
            every: PerDirection { forward: None, reverse: Some(0) },
            phase: None,
            count: PacketCount::All,
        }),
    );
    assert_eq!(never.validate().unwrap_err().to_string(), "gap: reverse.every: expected 1 or more, found 0");
    assert!(build_path::<Packet>(&[never], 0).is_err());
    let order = |pair| format!("{pair}; packets are listed in rising order, each once");
    for (list, reason) in [
        (vec![0, 1], "packets are counted from 1".to_owned()),
        (vec![3, 2], order("2 comes after 3")),
        (vec![4, 4], order("4 comes after 4")),
    ] {
        let error = spec("list", listed(&list)).validate().unwrap_err().to_string();
        assert_eq!(error, format!("list: forward.packets: {reason}"));
    }
    assert_eq!(spec("list", listed(&[1, 2, 9])).validate(), Ok(()));
}

#[test]
fn what_is_probably_not_meant_is_warned_about() {
    let noise = |rate, linear| {
        spec(
            "noise",
            ElementKind::BitErrors(BitErrors {
                ber: PerDirection { forward: ber(rate), reverse: ber(0.0) },
                overhead: Bytes::ZERO,
                linear,
            }),
        )
    };
    assert_eq!(
        noise(1e-4, true).warnings(),
        [
            "noise: forward: the linear form gives a packet error rate of 1.200 at 1.5 kB and drops every such \
          packet; the exact one is 0.698824"
        ]
    );
    assert_eq!(noise(8e-5, true).warnings(), [""; 0]);
    assert_eq!(noise(1e-4, false).warnings(), [""; 0]);
    let still = ElementKind::Reorder(Reorder {
        share: PerDirection::both(probability(0.1)),
        extra_delay: Duration::ZERO,
    });
    assert_eq!(spec("r", still).warnings().len(), 2);
}

#[test]
fn a_queue_too_short_for_a_packet_is_warned_about_and_one_of_nothing_too() {
    let warned = |queue| spec("link", bare_link(1_000_000, queue)).warnings();
    let short = |limit: &str| {
        format!(
            "link: forward: a queue of {limit} never holds a packet of 1.5 kB: one that arrives while another is being \
             sent is dropped"
        )
    };
    for (bytes, limit) in [(1499, "1.499 kB"), (10, "10 B"), (0, "0 B")] {
        assert_eq!(warned(QueueLimit::Bytes(Bytes(bytes)))[0], short(limit));
    }
    assert_eq!(warned(QueueLimit::Packets(0))[0], short("0 packets"));
    for enough in [QueueLimit::Bytes(Bytes(1500)), QueueLimit::Packets(1), QueueLimit::Unlimited] {
        assert_eq!(warned(enough), [""; 0]);
    }
}
/// A packet that says nothing but its size.
#[derive(Debug, Clone, PartialEq)]
struct Plain;

impl ExplicitRatePacket for Plain {}

impl PathPacket for Plain {
    fn wire_size(&self) -> Bytes {
        Bytes(1500)
    }
    fn carries_data(&self) -> bool {
        true
    }
}

#[test]
fn a_packet_without_ttl_and_ecn_passes_routers_and_is_not_marked() {
    let ElementKind::Link(Link { rate, queue, overhead, min_packet, .. }) =
        bare_link(12_000_000, QueueLimit::Unlimited)
    else {
        unreachable!("a link")
    };
    let mark = PerDirection::both(MarkThreshold::Packets(0));
    let specs = [
        spec("hops", ElementKind::Hops(Hops { routers: PerDirection::both(300) })),
        spec(
            "link",
            ElementKind::Link(Link { rate, queue, mark, aqm: PerDirection::default(), overhead, min_packet }),
        ),
    ];
    let mut path = build_path::<Plain>(&specs, 0).expect("sound");
    for _ in 0..2 {
        assert_eq!(path.offer(at_ms(0), Forward, Plain), Verdict::Accepted);
    }
    assert_eq!(path.counters()[2].marked, 0);
    let due: Vec<_> = core::iter::from_fn(|| path.take(at_ms(9)).map(|departure| departure.due)).collect();
    assert_eq!(due, [at_ms(1), at_ms(2)]);
}

#[test]
fn an_element_that_says_nothing_of_queues_has_none() {
    assert_eq!(HalfDuplex::default().backlog(Forward), None);
}

/// Each of twenty elements doubles what comes: a million packets of one.
#[test]
fn a_path_that_is_overfull_makes_no_more_copies() {
    let share = PerDirection::both(probability(1.0));
    let specs: Vec<_> =
        (0..20).map(|n| spec(&format!("d{n}"), ElementKind::Duplicate(Duplicate { share }))).collect();
    let mut path = build(&specs, 1);
    path.hold_at_most(1000);
    assert_eq!(offer(&mut path, at_ms(0), Forward, packet(1)), None);
    let out = take_all(&mut path, at_ms(0)).len() as u64;
    assert!(path.is_overfull() && path.held() == 0);
    let counters = path.counters();
    let forward = counters.iter().filter(|counter| counter.direction == Forward);
    assert_eq!(out, 1 + forward.map(|counter| counter.duplicated).sum::<u64>(), "what is made comes out");
    assert!((1000..100_000).contains(&out), "{out}");
    // It is never as it was specified again.
    offer(&mut path, at_ms(1), Forward, packet(2));
    assert_eq!(take_all(&mut path, at_ms(1)).len(), 1);
}

#[test]
fn a_path_that_is_not_full_makes_every_copy() {
    let share = PerDirection::both(probability(1.0));
    let specs: Vec<_> =
        (0..10).map(|n| spec(&format!("d{n}"), ElementKind::Duplicate(Duplicate { share }))).collect();
    let mut path = build(&specs, 1);
    offer(&mut path, at_ms(0), Forward, packet(1));
    assert_eq!(take_all(&mut path, at_ms(0)).len(), 1 << 10);
    assert!(!path.is_overfull());
}
