//! Which comes first of what is due together, and of what is known before its time.

use crate::chain::HalfDuplex;
use crate::common::*;
use farpath_elements::{ElementKind, Listed, Reorder};
use farpath_path::{BoxedElement, Direction, DropCause, Path, PathElement, PerDirection};
use farpath_units::{Duration, Instant};

use Direction::{Forward, Reverse};

/// A medium for one packet at a time, and 2 ms between it and the data receiver.
fn medium_before_delay() -> Path<Packet> {
    let elements: Vec<BoxedElement<Packet>> =
        vec![Box::<HalfDuplex>::default(), Box::new(build(&[spec("far", delay_ms(2))], 0))];
    Path::from_elements(elements)
}

fn order(path: &mut Path<Packet>) -> Vec<(Instant, u64)> {
    take_all(path, Instant::MAX).into_iter().map(|out| (out.0, out.2.id)).collect()
}

#[test]
fn an_offer_comes_before_a_hop_that_is_due_at_the_same_time() {
    let mut path = medium_before_delay();
    offer(&mut path, at_ms(0), Reverse, packet(1));
    // Packet 1 reaches the medium at 2 ms, too.
    offer(&mut path, at_ms(2), Forward, packet(2));
    // 2: a millisecond on the medium, 2 ms behind it. 1: a millisecond later on the medium.
    assert_eq!(order(&mut path), [(at_ms(4), 1), (at_ms(5), 2)]);
}

#[test]
fn what_has_left_is_taken_before_a_hop_that_is_due_at_the_same_time() {
    let mut path = medium_before_delay();
    offer(&mut path, at_ms(0), Reverse, packet(1));
    offer(&mut path, at_ms(1), Reverse, packet(2));
    // Packet 1 leaves at 3 ms, when packet 2 reaches the medium.
    let first = path.take(at_ms(3)).expect("it is due");
    assert_eq!((first.due, first.packet.id), (at_ms(3), 1));
    // Who answers at once is on the medium before packet 2.
    offer(&mut path, at_ms(3), Forward, packet(3));
    assert_eq!(order(&mut path), [(at_ms(5), 2), (at_ms(6), 3)]);
}

#[test]
fn a_drop_that_is_known_before_its_time_waits_for_what_leaves_before_it() {
    let share = PerDirection { forward: probability(1.0), reverse: probability(0.0) };
    let specs = [
        spec("reorder", ElementKind::Reorder(Reorder { share, extra_delay: Duration::from_millis(10) })),
        spec("delay", delay_ms(100)),
        spec(
            "loss",
            ElementKind::Listed(Listed {
                times: PerDirection::default(),
                packets: PerDirection { forward: vec![1], reverse: vec![] },
                count: farpath_elements::PacketCount::All,
            }),
        ),
    ];
    let mut path = build(&specs, 0);
    offer(&mut path, at_ms(0), Forward, packet(1));
    offer(&mut path, at_ms(0), Reverse, packet(2));
    // That packet 1 is lost at 110 ms is known from 10 ms on. The caller is late.
    assert_eq!(
        take_all(&mut path, Instant::MAX),
        [(at_ms(100), Reverse, packet(2), None), (at_ms(110), Forward, packet(1), Some(DropCause::Loss)),]
    );
}
