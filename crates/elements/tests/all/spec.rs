//! What a specification says before anything is built from it: long-run losses, delays, routers, warnings.

use crate::common::*;
use farpath_elements::{
    Bernoulli, BitErrors, ElementKind, EvenlySpaced, GilbertElliott, Hops, Link, MarkThreshold, PacketCount,
    QueueLimit, Reorder, RouterLines, base_delay, routers,
};
use farpath_path::{Direction, DropCause, PacketView, PerDirection};
use farpath_tia1039::router::RouterSettings;
use farpath_units::{Bytes, Duration, Probability};

use Direction::{Forward, Reverse};

const DATA: PacketView = PacketView { size: Bytes(1500), carries_data: true };
const ACK: PacketView = PacketView { size: Bytes(52), carries_data: false };

fn loss(kind: &ElementKind, direction: Direction, packet: PacketView) -> f64 {
    kind.spec().loss_rate(direction, packet).fraction()
}

fn router(queue: QueueLimit) -> ElementKind {
    ElementKind::FlowRouter(Box::new(RouterLines {
        rate: PerDirection { forward: rate(12_000_000), reverse: rate(6_000_000) },
        changes: PerDirection::default(),
        queue: PerDirection { forward: queue, reverse: QueueLimit::Unlimited },
        overhead: Bytes(500),
        min_packet: Bytes(100),
        settings: PerDirection::both(RouterSettings::default()),
    }))
}

#[test]
fn independent_and_evenly_spaced_losses_have_their_own_rate_in_each_direction() {
    let bernoulli = ElementKind::Bernoulli(Bernoulli {
        loss_rate: PerDirection { forward: probability(0.25), reverse: probability(0.5) },
        count: PacketCount::All,
    });
    assert_eq!((loss(&bernoulli, Forward, DATA), loss(&bernoulli, Reverse, ACK)), (0.25, 0.5));
    let every = PerDirection { forward: Some(4), reverse: None };
    let spaced = ElementKind::EvenlySpaced(EvenlySpaced { every, phase: None, count: PacketCount::All });
    assert_eq!((loss(&spaced, Forward, DATA), loss(&spaced, Reverse, DATA)), (0.25, 0.0));
}

#[test]
fn what_counts_data_only_loses_no_acks() {
    let count = PacketCount::Data;
    let loss_rate = PerDirection::both(probability(0.25));
    for kind in [
        ElementKind::Bernoulli(Bernoulli { loss_rate, count }),
        ElementKind::EvenlySpaced(EvenlySpaced { every: PerDirection::both(Some(4)), phase: None, count }),
    ] {
        assert_eq!((loss(&kind, Forward, DATA), loss(&kind, Forward, ACK)), (0.25, 0.0));
    }
}

#[test]
fn bit_errors_hit_a_packet_with_its_overhead() {
    // 2048 B are 16384 bits: 2^-15 a bit is a half in the linear form.
    let kind = ElementKind::BitErrors(BitErrors {
        ber: PerDirection { forward: ber(0.5f64.powi(15)), reverse: ber(0.0) },
        overhead: Bytes(548),
        linear: true,
    });
    assert_eq!((loss(&kind, Forward, DATA), loss(&kind, Reverse, DATA)), (0.5, 0.0));
}

#[test]
fn burst_losses_have_the_mean_of_their_two_states() {
    let kind = ElementKind::GilbertElliott(GilbertElliott {
        good_to_bad: probability(0.25),
        bad_to_good: probability(0.75),
        loss_good: probability(0.125),
        loss_bad: probability(0.5),
        active: PerDirection { forward: true, reverse: false },
    });
    // A quarter of the packets meet the bad state: 0.75 * 0.125 + 0.25 * 0.5.
    assert_eq!((loss(&kind, Forward, DATA), loss(&kind, Reverse, DATA)), (0.218_75, 0.0));
}

#[test]
fn a_full_queue_and_a_list_are_no_loss_rate() {
    assert_eq!(loss(&bare_link(1_000_000, QueueLimit::Packets(0)), Forward, DATA), 0.0);
    assert_eq!(loss(&listed(&[1]), Forward, DATA), 0.0);
}

#[test]
fn a_lone_packet_is_serialized_by_a_flow_router() {
    let specs = [spec("router", router(QueueLimit::Unlimited)), spec("delay", delay_ms(10))];
    // 2000 B on the wire: 8 bit each at 12 and at 6 Mbit/s. 52 B are padded to 100 B.
    let delay = |direction, size| base_delay(&specs, direction, Bytes(size)) - Duration::from_millis(10);
    assert_eq!(delay(Forward, 1500), Duration::from_nanos(1_333_334));
    assert_eq!(delay(Reverse, 1500), Duration::from_nanos(2_666_667));
    assert_eq!(delay(Forward, 52), Duration::from_micros(400));
}

#[test]
fn the_routers_of_a_path_add_up_in_each_direction() {
    let hops = |forward, reverse| ElementKind::Hops(Hops { routers: PerDirection { forward, reverse } });
    let specs = [spec("near", hops(3, 1)), spec("delay", delay_ms(1)), spec("far", hops(4, 5))];
    assert_eq!((routers(&specs, Forward), routers(&specs, Reverse)), (7, 6));
    assert_eq!(routers(&specs[1..2], Forward), 0);
    let most = [spec("near", hops(u32::MAX, 0)), spec("far", hops(1, 0))];
    assert_eq!(routers(&most, Forward), u32::MAX);
}

#[test]
fn a_linear_bit_error_rate_is_warned_about_from_a_packet_with_overhead_on() {
    let noise = |ber, overhead| {
        let ber = PerDirection::both(ber);
        spec("noise", ElementKind::BitErrors(BitErrors { ber, overhead: Bytes(overhead), linear: true }))
    };
    // 2^-14 on 2048 B is 1 exactly; one byte more is above it.
    assert_eq!(noise(ber(0.5f64.powi(14)), 548).warnings(), [""; 0]);
    assert_eq!(noise(ber(0.5f64.powi(14)), 549).warnings().len(), 2);
}

#[test]
fn queues_without_room_for_a_packet_are_warned_about() {
    let warnings = |limit| spec("router", router(QueueLimit::Bytes(Bytes(limit)))).warnings();
    let short = "router: forward: a queue of 1.499 kB never holds a packet of 1.5 kB: one that arrives while another is being \
                 sent is dropped";
    assert_eq!(warnings(1499), [short]);
    assert_eq!(warnings(1500), [""; 0]);
    assert_eq!(spec("link", bare_link(1_000_000, QueueLimit::Bytes(Bytes(1500)))).warnings(), [""; 0]);
}

#[test]
fn a_mark_beyond_the_queue_is_warned_about() {
    let warnings = |mark, queue| {
        let ElementKind::Link(Link { rate, overhead, min_packet, .. }) = bare_link(1_000_000, queue) else {
            unreachable!("a link")
        };
        let (mark, queue) = (PerDirection::both(mark), PerDirection::both(queue));
        spec(
            "link",
            ElementKind::Link(Link { rate, queue, mark, aqm: PerDirection::default(), overhead, min_packet }),
        )
        .warnings()
        .len()
    };
    let packets = |mark, limit| warnings(MarkThreshold::Packets(mark), QueueLimit::Packets(limit));
    assert_eq!((packets(9, 10), packets(10, 10), packets(11, 10)), (0, 2, 2));
    let bytes = |mark, limit| warnings(MarkThreshold::Bytes(Bytes(mark)), QueueLimit::Bytes(Bytes(limit)));
    assert_eq!((bytes(2999, 3000), bytes(3000, 3000)), (0, 2));
    // In different units they are not compared.
    assert_eq!(warnings(MarkThreshold::Packets(9), QueueLimit::Bytes(Bytes(3000))), 0);
}

#[test]
fn reordering_is_warned_about_only_where_it_is_asked_for_and_takes_no_time() {
    let reorder = |share: f64, extra_delay| {
        let share = PerDirection::both(Probability::new(share).expect("a share"));
        spec("reorder", ElementKind::Reorder(Reorder { share, extra_delay })).warnings().len()
    };
    assert_eq!(reorder(0.1, Duration::ZERO), 2);
    assert_eq!(reorder(0.1, Duration::from_millis(1)), 0);
    assert_eq!(reorder(0.0, Duration::ZERO), 0);
}

#[test]
fn directions_and_causes_of_drops_are_written_as_in_files_and_padded() {
    assert_eq!(format!("{:>8}|{:<8}|", Forward, Reverse), " forward|reverse |");
    let names = DropCause::ALL.map(|cause| cause.to_string()).join(" ");
    assert_eq!(
        names,
        "loss bit-errors queue-overflow policing ttl mtu link-retries stalled outage unreachable aqm"
    );
}
