//! What holds for every element and every chain, whatever the parameters and the packets.

use crate::common::*;
use farpath_elements::{BitErrors, Duplicate, ElementKind, ElementSpec, base_delay};
use farpath_path::{BoxedElement, Direction, Path, PathElement, PerDirection, Stage};
use farpath_units::{Bytes, Instant, Probability};
use proptest::prelude::*;

/// How many came out on their way, and how many were dropped.
fn tally(out: &[Out]) -> (u64, u64) {
    let dropped = out.iter().filter(|(_, _, _, cause)| cause.is_some()).count() as u64;
    (out.len() as u64 - dropped, dropped)
}

/// The same chain, one stage per element.
fn unfused(specs: &[ElementSpec], seed: u64) -> Path<Packet> {
    let stages = specs.iter().flat_map(|spec| {
        let transit = spec.transit(seed).expect("the specification is sound");
        Stage::fuse(vec![(spec.name.clone(), transit)])
    });
    Path::from_elements(stages.map(|stage| Box::new(stage) as BoxedElement<Packet>).collect())
}

fn scrambles(spec: &ElementSpec) -> bool {
    let overtakes = |way| spec.spec().reordering(way).is_some_and(|(share, _)| share > Probability::ZERO);
    matches!(spec.kind, ElementKind::Duplicate(Duplicate { .. }))
        || Direction::BOTH.into_iter().any(overtakes)
}

/// Whether a lone packet waits by when it comes, or by chance.
fn varies(spec: &ElementSpec) -> bool {
    matches!(
        spec.kind,
        ElementKind::Jitter(_)
            | ElementKind::Contacts(_)
            | ElementKind::TraceLink(_)
            | ElementKind::VaryingDelay(_)
            | ElementKind::Passes(_)
    )
}

fn sorted(mut out: Vec<Out>) -> Vec<Out> {
    out.sort();
    out
}

proptest! {
    /// A mark is set once, on what can carry it, and never taken back.
    #[test]
    fn marks_are_set_by_those_who_count_them(
        mut specs in any_chain(5), offers in any_offers(60), seed: u64,
    ) {
        specs.retain(|spec| !matches!(spec.kind, ElementKind::Duplicate(Duplicate { .. })));
        let mut path = build(&specs, seed);
        let out = run(&mut path, &offers);
        let mut marked = 0;
        for (.., packet, _) in &out {
            let before = offers[packet.id as usize].2.ecn;
            if packet.ecn != before {
                prop_assert!(matches!(before, Ecn::Ect | Ecn::Ect1) && packet.ecn == Ecn::Ce);
                marked += 1;
            }
        }
        prop_assert_eq!(path.counters().iter().map(|c| c.marked).sum::<u64>(), marked);
    }
    #[test]
    fn no_packet_is_made_or_lost_without_a_count(
        specs in any_chain(5), offers in any_offers(60), seed: u64, cut in 0usize..60, wait in 0u64..5_000_000,
    ) {
        let mut path = build(&specs, seed);
        let cut = cut.min(offers.len());
        let mut out: Vec<Out> = Vec::new();
        for (now, direction, packet) in &offers[..cut] {
            out.extend(take_all(&mut path, *now));
            out.extend(offer(&mut path, *now, *direction, packet.clone()));
        }
        // At some moment in the middle of it.
        let now = offers[..cut].last().map_or(Instant::ZERO, |offer| offer.0);
        out.extend(take_all(&mut path, at_ns(now.as_nanos() + wait)));
        let (delivered, dropped) = tally(&out);
        let counters = path.counters();
        let duplicated: u64 = counters.iter().map(|c| c.duplicated).sum();
        prop_assert_eq!(cut as u64 + duplicated, delivered + dropped + path.held() as u64);
        // At the end.
        while let Some(due) = path.next_departure() {
            out.extend(take_all(&mut path, due));
        }
        let (delivered, dropped) = tally(&out);
        prop_assert_eq!(path.held(), 0);
        let counters = path.counters();
        let duplicated: u64 = counters.iter().map(|c| c.duplicated).sum();
        prop_assert_eq!(cut as u64 + duplicated, delivered + dropped);
        prop_assert_eq!(dropped, counters.iter().map(|c| c.dropped.total()).sum::<u64>());
        for c in &counters {
            prop_assert_eq!(c.offered + c.duplicated, c.delivered + c.dropped.total(), "{:?}", c);
        }
    }

    #[test]
    fn what_one_element_passes_on_the_next_is_offered(
        specs in any_chain(5), offers in any_offers(40), seed: u64,
    ) {
        let mut path = build(&specs, seed);
        let out = run(&mut path, &offers);
        for direction in Direction::BOTH {
            let mut names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
            if direction == Direction::Reverse {
                names.reverse();
            }
            let mut arriving = offers.iter().filter(|offer| offer.1 == direction).count() as u64;
            for name in names {
                let c = counters_of(&path, name, direction);
                prop_assert_eq!(c.offered, arriving, "{}", name);
                arriving = c.delivered;
            }
            let left = out.iter().filter(|(_, way, _, cause)| *way == direction && cause.is_none());
            prop_assert_eq!(left.count() as u64, arriving);
        }
    }

    #[test]
    fn time_never_goes_back(specs in any_chain(5), offers in any_offers(60), seed: u64) {
        let mut path = build(&specs, seed);
        let mut last = Instant::ZERO;
        let mut taken = Vec::new();
        for (now, direction, packet) in &offers {
            taken.extend(take_all(&mut path, *now));
            if let Some((at, ..)) = offer(&mut path, *now, *direction, packet.clone()) {
                prop_assert!(at >= *now);
            }
            prop_assert!(path.next_departure().is_none_or(|due| due >= last));
        }
        taken.extend(take_all(&mut path, Instant::MAX));
        for (due, _, packet, _) in taken {
            prop_assert!(due >= last, "{} after {}", due, last);
            prop_assert!(due >= offers[packet.id as usize].0, "it left before it came");
            last = due;
        }
    }

    #[test]
    fn one_seed_gives_one_trace(specs in any_chain(5), offers in any_offers(60), seed: u64) {
        let trace = || format!("{:?}", run(&mut build(&specs, seed), &offers));
        prop_assert_eq!(trace(), trace());
    }

    #[test]
    fn a_late_caller_changes_no_due_time(
        specs in any_chain(5), offers in any_offers(60), seed: u64, late in prop::collection::vec(any::<bool>(), 60),
    ) {
        let prompt = run(&mut build(&specs, seed), &offers);
        let mut path = build(&specs, seed);
        let mut out = Vec::new();
        for ((now, direction, packet), late) in offers.iter().zip(late) {
            if !late {
                out.extend(take_all(&mut path, *now));
            }
            out.extend(offer(&mut path, *now, *direction, packet.clone()));
        }
        out.extend(take_all(&mut path, Instant::MAX));
        prop_assert_eq!(sorted(out), sorted(prompt));
    }

    #[test]
    fn fusing_elements_changes_nothing(specs in any_chain(5), offers in any_offers(60), seed: u64) {
        let (mut fused, mut single) = (build(&specs, seed), unfused(&specs, seed));
        prop_assert_eq!(sorted(run(&mut fused, &offers)), sorted(run(&mut single, &offers)));
        prop_assert_eq!(fused.counters(), single.counters());
    }

    #[test]
    fn a_path_of_paths_is_the_path(
        specs in any_chain(5), cut in 0usize..6, offers in any_offers(60), seed: u64,
    ) {
        let (near, far) = specs.split_at(cut.min(specs.len()));
        let parts: Vec<BoxedElement<Packet>> = vec![Box::new(build(near, seed)), Box::new(build(far, seed))];
        let mut nested = Path::from_elements(parts);
        prop_assert_eq!(sorted(run(&mut nested, &offers)), sorted(run(&mut build(&specs, seed), &offers)));
    }

    #[test]
    fn packets_stay_in_order_unless_an_element_scrambles_them(
        specs in any_chain(5), offers in any_offers(60), seed: u64,
    ) {
        let specs: Vec<ElementSpec> = specs.into_iter().filter(|spec| !scrambles(spec)).collect();
        let out = run(&mut build(&specs, seed), &offers);
        for direction in Direction::BOTH {
            let on_their_way = out.iter().filter(|(_, way, _, cause)| *way == direction && cause.is_none());
            let ids: Vec<u64> = on_their_way.map(|(_, _, packet, _)| packet.id).collect();
            prop_assert!(ids.is_sorted(), "{:?}", ids);
        }
    }

    #[test]
    fn a_lone_packet_takes_the_base_delay(specs in any_chain(6), size in 20u64..9000, seed: u64) {
        let specs: Vec<ElementSpec> = specs.into_iter().filter(|spec| !scrambles(spec)).collect();
        for direction in Direction::BOTH {
            let start = at_ms(3);
            let mut path = build(&specs, seed);
            let out = run(&mut path, &[(start, direction, Packet { id: 0, size, data: true, ecn: Ecn::NotEct, ttl: 64 })]);
            let (due, _, _, dropped) = &out[0];
            let (took, base) = (*due - start, base_delay(&specs, direction, Bytes(size)));
            if dropped.is_none() {
                prop_assert!(took >= base, "{took} and {base}");
                prop_assert!(took == base || specs.iter().any(varies), "{took} and {base}");
            }
        }
    }

    #[test]
    fn a_new_element_moves_the_losses_of_no_other(
        loss in 0.05f64..0.5, others in any_chain(3), offers in any_offers(60), seed: u64,
    ) {
        let noise = spec("noise", ElementKind::BitErrors(BitErrors {
            ber: PerDirection::both(probability(loss).to_ber(Bytes(1500))),
            overhead: Bytes::ZERO,
            linear: false,
        }));
        // In front of the others, so that it is offered the same packets.
        let mut more = vec![noise.clone()];
        more.extend(others.into_iter().filter(|s| {
            !matches!(s.kind, ElementKind::BitErrors(_) | ElementKind::VaryingBitErrors(_))
        }));
        let forward: Vec<_> = offers.into_iter().filter(|offer| offer.1 == Direction::Forward).collect();
        let hit = |specs: &[ElementSpec]| {
            let out = run(&mut build(specs, seed), &forward);
            let hit = out.into_iter().filter(|out| out.3 == Some(farpath_path::DropCause::BitErrors));
            hit.map(|(_, _, packet, _)| packet.id).collect::<Vec<_>>()
        };
        prop_assert_eq!(hit(&[noise]), hit(&more));
    }
}
