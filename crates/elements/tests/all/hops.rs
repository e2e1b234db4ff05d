//! Routers: TTL against hop count (RFC 791 §3.2).

use crate::common::*;
use farpath_elements::{ElementKind, Hops};
use farpath_path::{Direction, DropCause, PathElement, PerDirection};

const FORWARD: Direction = Direction::Forward;

fn hops(name: &str, forward: u32, reverse: u32) -> farpath_elements::ElementSpec {
    spec(name, ElementKind::Hops(Hops { routers: PerDirection { forward, reverse } }))
}

#[test]
fn a_packet_with_ttl_n_dies_at_the_nth_router() {
    for ttl in [1, 2, 32, 64, 128, 255] {
        for routers in [0, u32::from(ttl) - 1, u32::from(ttl), 300] {
            let mut path = build(&[spec("delay", delay_ms(3)), hops("hops", routers, 0)], 1);
            let out = run(&mut path, &[(at_ms(0), FORWARD, Packet { ttl, ..packet(1) })]);
            let alive = routers < u32::from(ttl);
            assert_eq!(out[0].3, (!alive).then_some(DropCause::Ttl), "{ttl} over {routers}");
            // It dies where the routers are, at its time.
            assert_eq!(out[0].0, at_ms(3));
            if alive {
                assert_eq!(u32::from(out[0].2.ttl), u32::from(ttl) - routers);
            }
        }
    }
}

#[test]
fn routers_add_up_along_a_path_and_differ_by_direction() {
    let mut path = build(&[hops("near", 30, 1), spec("delay", delay_ms(1)), hops("far", 34, 1)], 1);
    let out = run(&mut path, &[(at_ms(0), FORWARD, packet(1)), (at_ms(0), Direction::Reverse, packet(2))]);
    let fate: Vec<_> = out.iter().map(|out| (out.2.id, out.2.ttl, out.3)).collect();
    assert_eq!(fate, [(1, 0, Some(DropCause::Ttl)), (2, 62, None)]);
    let counters = counters_of(&path, "far", FORWARD);
    assert_eq!((counters.offered, counters.delivered, counters.dropped.count_of(DropCause::Ttl)), (1, 0, 1));
    assert_eq!(path.held(), 0);
}
