//! A packet, a caller and random paths for the tests of this crate.

#![allow(dead_code, reason = "each test file uses a part of it")]

use farpath_elements::{
    Bernoulli, BitErrors, Delay, Draws, Duplicate, ElementKind, ElementSpec, EvenlySpaced,
    ExplicitRatePacket, GilbertElliott, Hops, Link, Listed, MarkThreshold, PacketCount, QueueLimit, Reorder,
    Wait, WaitKind, build_path,
};
use farpath_path::{
    Departure, Direction, DropCause, ElementCounters, Path, PathElement, PathPacket, PerDirection, Verdict,
};
use farpath_units::{Ber, Bytes, Duration, Instant, Probability, Rate};
use proptest::prelude::*;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Packet {
    pub id: u64,
    pub size: u64,
    pub data: bool,
    pub ecn: Ecn,
    pub ttl: u8,
}

/// The ECN field, as far as a queue cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ecn {
    NotEct = 0,
    Ect1 = 1,
    Ect = 2,
    Ce = 3,
}

impl ExplicitRatePacket for Packet {}

impl PathPacket for Packet {
    fn wire_size(&self) -> Bytes {
        Bytes(self.size)
    }
    fn carries_data(&self) -> bool {
        self.data
    }
    fn mark_ce(&mut self) -> bool {
        let marks = matches!(self.ecn, Ecn::Ect | Ecn::Ect1);
        if marks {
            self.ecn = Ecn::Ce;
        }
        marks
    }
    fn ecn(&self) -> u8 {
        self.ecn as u8
    }
    /// The upper half of its number.
    fn flow_hash(&self) -> u64 {
        self.id >> 32
    }
    fn pass_routers(&mut self, routers: u32) -> bool {
        self.ttl = self.ttl.saturating_sub(u8::try_from(routers).unwrap_or(u8::MAX));
        self.ttl > 0
    }
}

/// A data packet of 1500 B.
pub fn packet(id: u64) -> Packet {
    Packet { id, size: 1500, data: true, ecn: Ecn::NotEct, ttl: 64 }
}

pub fn at_ns(ns: u64) -> Instant {
    Instant::from_nanos(ns)
}

pub fn at_ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

pub fn rate(bit_per_s: u64) -> Rate {
    Rate::from_bit_per_s(bit_per_s).expect("not zero")
}

pub fn probability(fraction: f64) -> Probability {
    Probability::new(fraction).expect("within 0 and 1")
}

pub fn ber(errors_per_bit: f64) -> Ber {
    Ber::new(errors_per_bit).expect("within 0 and 1")
}

pub fn spec(name: &str, kind: ElementKind) -> ElementSpec {
    ElementSpec { name: name.to_owned(), kind }
}

pub fn delay_ms(ms: u64) -> ElementKind {
    ElementKind::Delay(Delay { delay: PerDirection::both(Duration::from_millis(ms)) })
}

/// A link of the same rate both ways, without framing.
pub fn bare_link(bit_per_s: u64, queue: QueueLimit) -> ElementKind {
    ElementKind::Link(Link {
        rate: PerDirection::both(rate(bit_per_s)),
        queue: PerDirection::both(queue),
        mark: PerDirection::both(MarkThreshold::Never),
        aqm: PerDirection::default(),
        overhead: Bytes::ZERO,
        min_packet: Bytes::ZERO,
    })
}

pub fn bernoulli(loss_rate: f64) -> ElementKind {
    ElementKind::Bernoulli(Bernoulli {
        loss_rate: PerDirection::both(probability(loss_rate)),
        count: PacketCount::All,
    })
}

pub fn listed(packets: &[u64]) -> ElementKind {
    ElementKind::Listed(Listed {
        times: PerDirection::default(),
        packets: PerDirection::both(packets.to_vec()),
        count: PacketCount::All,
    })
}

pub fn build(specs: &[ElementSpec], seed: u64) -> Path<Packet> {
    build_path(specs, seed).expect("the specification is sound")
}

/// A packet that came out of an element: when, which way, and why not if it was dropped.
pub type Out = (Instant, Direction, Packet, Option<DropCause>);

/// Offers a packet; a drop comes back at once.
pub fn offer(
    element: &mut dyn PathElement<Packet>,
    now: Instant,
    direction: Direction,
    packet: Packet,
) -> Option<Out> {
    match element.offer(now, direction, packet) {
        Verdict::Accepted => None,
        Verdict::Dropped { at, cause, packet } => Some((at, direction, packet, Some(cause))),
    }
}

/// Takes everything that is due by `now`.
pub fn take_all(element: &mut dyn PathElement<Packet>, now: Instant) -> Vec<Out> {
    let taken = core::iter::from_fn(|| element.take(now));
    taken
        .map(|Departure { due, direction, packet, dropped }| {
            assert!(due <= now, "it left before it was due");
            (due, direction, packet, dropped)
        })
        .collect()
}

/// Offers every packet at its time, taking what is due by then first, and at the end takes the rest.
pub fn run(element: &mut dyn PathElement<Packet>, offers: &[(Instant, Direction, Packet)]) -> Vec<Out> {
    let mut out = Vec::new();
    for (now, direction, packet) in offers {
        while let Some(due) = element.next_departure().filter(|due| due <= now) {
            out.extend(take_all(element, due));
            assert!(element.next_departure().is_none_or(|next| next > due), "no progress at {due}");
        }
        out.extend(offer(element, *now, *direction, packet.clone()));
    }
    while let Some(due) = element.next_departure() {
        out.extend(take_all(element, due));
    }
    out
}

/// `count` data packets in one direction, `gap_ns` apart, numbered from 1.
pub fn steady(direction: Direction, count: u64, gap_ns: u64) -> Vec<(Instant, Direction, Packet)> {
    (1..=count).map(|id| (at_ns(id * gap_ns), direction, packet(id))).collect()
}

/// The counters of the element with this name.
pub fn counters_of(element: &dyn PathElement<Packet>, name: &str, direction: Direction) -> ElementCounters {
    let found = element.counters().into_iter().find(|c| c.name == name && c.direction == direction);
    found.expect("an element of this name")
}

fn per_direction<T: Clone + core::fmt::Debug>(
    value: impl Strategy<Value = T> + Clone,
) -> impl Strategy<Value = PerDirection<T>> {
    (value.clone(), value).prop_map(|(forward, reverse)| PerDirection { forward, reverse })
}

fn any_probability() -> impl Strategy<Value = Probability> + Clone {
    prop_oneof![Just(0.0), Just(1.0), 0.0..0.5].prop_map(probability)
}

fn any_count() -> impl Strategy<Value = PacketCount> {
    prop_oneof![Just(PacketCount::All), Just(PacketCount::Data)]
}

fn any_queue() -> impl Strategy<Value = QueueLimit> + Clone {
    prop_oneof![
        Just(QueueLimit::Unlimited),
        (0u64..10_000).prop_map(|bytes| QueueLimit::Bytes(Bytes(bytes))),
        (0u64..10).prop_map(QueueLimit::Packets),
    ]
}

fn any_mark() -> impl Strategy<Value = MarkThreshold> + Clone {
    prop_oneof![
        Just(MarkThreshold::Never),
        (0u64..10_000).prop_map(|bytes| MarkThreshold::Bytes(Bytes(bytes))),
        (0u64..10).prop_map(MarkThreshold::Packets),
        any_duration().prop_map(MarkThreshold::Delay),
    ]
}

fn any_duration() -> impl Strategy<Value = Duration> + Clone {
    prop_oneof![Just(0), 0u64..5_000_000].prop_map(Duration::from_nanos)
}

/// Any one element.
pub fn any_kind() -> impl Strategy<Value = ElementKind> {
    let list = prop::collection::btree_set(1u64..60, 0..10).prop_map(|set| set.into_iter().collect());
    let every = prop_oneof![Just(None), (1u64..8).prop_map(Some)];
    // As the elements themselves draw it.
    let drawn = prop::collection::vec(any::<u64>(), 60)
        .prop_map(|numbers| ElementKind::draw(&mut Draws::new(numbers)))
        .prop_filter("no packets are held", |kind| spec("it", kind.clone()).transit(1).is_ok());
    prop_oneof![
        drawn,
        per_direction(any_duration()).prop_map(|delay| ElementKind::Delay(Delay { delay })),
        any_link(),
        (per_direction(any_probability()), any_count())
            .prop_map(|(loss_rate, count)| ElementKind::Bernoulli(Bernoulli { loss_rate, count })),
        (per_direction(every), prop::option::of(0u64..10), any_count()).prop_map(|(every, phase, count)| {
            ElementKind::EvenlySpaced(EvenlySpaced { every, phase, count })
        }),
        (per_direction(list), any_count()).prop_map(|(packets, count)| ElementKind::Listed(Listed {
            times: PerDirection::default(),
            packets,
            count
        })),
        (
            any_probability(),
            any_probability(),
            any_probability(),
            any_probability(),
            per_direction(any::<bool>())
        )
            .prop_map(|(good_to_bad, bad_to_good, loss_good, loss_bad, active)| {
                ElementKind::GilbertElliott(GilbertElliott {
                    good_to_bad,
                    bad_to_good,
                    loss_good,
                    loss_bad,
                    active,
                })
            }),
        (per_direction((0.0f64..1e-3).prop_map(ber)), 0u64..60, any::<bool>()).prop_map(
            |(ber, overhead, linear)| ElementKind::BitErrors(BitErrors {
                ber,
                overhead: Bytes(overhead),
                linear
            })
        ),
        (per_direction(any_probability()), any_duration())
            .prop_map(|(share, extra_delay)| ElementKind::Reorder(Reorder { share, extra_delay })),
        per_direction(any_probability()).prop_map(|share| ElementKind::Duplicate(Duplicate { share })),
        per_direction(prop_oneof![0u32..40, 60u32..300])
            .prop_map(|routers| ElementKind::Hops(Hops { routers })),
        per_direction(any_duration())
            .prop_map(|delay| ElementKind::Wait(Wait { what: WaitKind::Processing, delay })),
    ]
}

fn any_link() -> impl Strategy<Value = ElementKind> {
    let rate = prop_oneof![1u64..1_000_000, 1_000_000u64..1_000_000_000_000].prop_map(rate);
    let marks = per_direction(any_mark());
    (per_direction(rate), per_direction(any_queue()), marks, 0u64..60, 0u64..100).prop_map(
        |(rate, queue, mark, overhead, min_packet)| {
            ElementKind::Link(Link {
                rate,
                queue,
                mark,
                aqm: PerDirection::default(),
                overhead: Bytes(overhead),
                min_packet: Bytes(min_packet),
            })
        },
    )
}

/// A chain of up to `longest` elements, each with a name of its own.
pub fn any_chain(longest: usize) -> impl Strategy<Value = Vec<ElementSpec>> {
    prop::collection::vec(any_kind(), 0..=longest).prop_map(|kinds| {
        kinds.into_iter().enumerate().map(|(n, kind)| spec(&format!("element-{n}"), kind)).collect()
    })
}

/// Up to `most` packets, both ways, never backwards in time, often together.
pub fn any_offers(most: usize) -> impl Strategy<Value = Vec<(Instant, Direction, Packet)>> {
    let gap = prop_oneof![Just(0u64), 0u64..20_000, 0u64..3_000_000];
    let ecn = prop_oneof![Just(Ecn::NotEct), Just(Ecn::Ect1), Just(Ecn::Ect), Just(Ecn::Ce)];
    let one = (gap, any::<bool>(), 20u64..1600, any::<bool>(), ecn);
    prop::collection::vec(one, 0..=most).prop_map(|offers| {
        let mut now = 0;
        let offers = offers.into_iter().enumerate().map(|(id, (gap, forward, size, data, ecn))| {
            now += gap;
            let direction = if forward { Direction::Forward } else { Direction::Reverse };
            (at_ns(now), direction, Packet { id: id as u64, size, data, ecn, ttl: 64 })
        });
        offers.collect()
    })
}
