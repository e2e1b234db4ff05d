//! The link against its definition: exact serialization, exact limits.

use crate::common::*;
use farpath_elements::{ElementKind, ElementSpec, Link, MarkThreshold, QueueLimit, base_delay};
use farpath_path::{Direction, DropCause, Fate, PacketView, PathElement, PerDirection};
use farpath_units::{Bytes, Duration, Instant};
use proptest::prelude::*;

const FORWARD: Direction = Direction::Forward;

/// One direction of a link, the slow way: fractions of a nanosecond kept, every packet remembered.
struct Reference {
    bit_per_s: u128,
    limit: QueueLimit,
    mark: MarkThreshold,
    /// When the busy period began, and the bits accepted since.
    busy_since: u128,
    bits: u128,
    /// Of every packet that ever waited: when its sending started, and its size.
    waited: Vec<(u128, u64)>,
}

impl Reference {
    fn busy_until(&self) -> u128 {
        self.busy_since + (self.bits * 1_000_000_000).div_ceil(self.bit_per_s)
    }

    /// When the packet leaves, and whether it is marked.
    fn send(&mut self, now: u64, size: u64, on_wire: u64) -> Option<(u128, bool)> {
        let now = u128::from(now);
        let mut marks = false;
        if self.busy_until() <= now {
            (self.busy_since, self.bits) = (now, 0);
        } else {
            let waiting: Vec<u64> =
                self.waited.iter().filter(|(start, _)| *start >= now).map(|(_, size)| *size).collect();
            let fits = match self.limit {
                QueueLimit::Unlimited => true,
                QueueLimit::Bytes(limit) => waiting.iter().sum::<u64>() + size <= limit.0,
                QueueLimit::Packets(limit) => (waiting.len() as u64) < limit,
            };
            if !fits {
                return None;
            }
            marks = match self.mark {
                MarkThreshold::Never => false,
                MarkThreshold::Bytes(mark) => waiting.iter().sum::<u64>() + size > mark.0,
                MarkThreshold::Packets(mark) => waiting.len() as u64 + 1 > mark,
                MarkThreshold::Delay(mark) => self.busy_until() - now > u128::from(mark.as_nanos()),
            };
            self.waited.push((self.busy_until(), size));
        }
        self.bits += u128::from(on_wire) * 8;
        Some((self.busy_until(), marks))
    }
}

proptest! {
    #[test]
    fn arithmetic_agrees_with_remembering_every_packet(
        exponent in 0u32..13, digits in 1u64..10, offset in 0u64..1000,
        limit in prop_oneof![
            Just(QueueLimit::Unlimited),
            (0u64..6000).prop_map(|bytes| QueueLimit::Bytes(Bytes(bytes))),
            (0u64..5).prop_map(QueueLimit::Packets),
        ],
        mark in prop_oneof![
            Just(MarkThreshold::Never),
            (0u64..6000).prop_map(|bytes| MarkThreshold::Bytes(Bytes(bytes))),
            (0u64..5).prop_map(MarkThreshold::Packets),
            (0u64..2000).prop_map(|us| MarkThreshold::Delay(Duration::from_micros(us))),
        ],
        overhead in 0u64..50, min_packet in 0u64..100,
        offers in prop::collection::vec((0u64..4, 1u64..1600), 1..100),
    ) {
        let bit_per_s = digits * 10u64.pow(exponent) + offset;
        let kind = ElementKind::Link(Link {
            rate: PerDirection::both(rate(bit_per_s)),
            queue: PerDirection::both(limit),
            mark: PerDirection::both(mark),
            aqm: PerDirection::default(),
            overhead: Bytes(overhead),
            min_packet: Bytes(min_packet),
        });
        let mut link = spec("link", kind).transit(0).expect("sound");
        let mut reference = Reference {
            bit_per_s: bit_per_s.into(), limit, mark, busy_since: 0, bits: 0, waited: Vec::new(),
        };
        // Gaps of the order of a packet, so that queues come and go at every rate.
        let step = rate(bit_per_s).time_to_send(Bytes(500)).as_nanos();
        let (mut now, mut busy_until) = (0, Instant::ZERO);
        for (gap, size) in offers {
            now += gap * step;
            let fate = link.transit(at_ns(now), FORWARD, PacketView { size: Bytes(size), carries_data: true });
            let expected = match reference.send(now, size, size.max(min_packet) + overhead) {
                Some((due, marks)) => {
                    let due = at_ns(u64::try_from(due).expect("short of 584 years"));
                    let wait = core::mem::replace(&mut busy_until, due).saturating_since(at_ns(now));
                    if marks { Fate::Mark(due, wait) } else { Fate::Queue(due, wait) }
                }
                None => Fate::Drop(DropCause::QueueOverflow),
            };
            prop_assert_eq!(fate, expected);
        }
    }
}

fn departures(specs: &[ElementSpec], packets: u64) -> Vec<Instant> {
    let offers: Vec<_> = (1..=packets).map(|id| (Instant::ZERO, FORWARD, packet(id))).collect();
    run(&mut build(specs, 0), &offers).into_iter().filter(|out| out.3.is_none()).map(|out| out.0).collect()
}

#[test]
fn packets_back_to_back_are_one_serialization_time_apart() {
    let link = spec("link", bare_link(12_000_000, QueueLimit::Unlimited));
    assert_eq!(departures(&[link], 4), [1, 2, 3, 4].map(at_ms));
}

#[test]
fn rounding_to_nanoseconds_never_adds_up() {
    // 1500 B at 7 Gbit/s: 1714.2857... ns.
    let link = spec("link", bare_link(7_000_000_000, QueueLimit::Unlimited));
    let times = departures(&[link], 70_000);
    for (n, time) in (1u64..).zip(&times) {
        let exact_times_7 = n * 12_000;
        assert_eq!(time.as_nanos(), exact_times_7.div_ceil(7), "packet {n}");
    }
    assert_eq!(times[69_999], at_ns(120_000_000));
}

#[test]
fn a_small_packet_on_a_fast_link_gets_the_whole_rate() {
    // 100 Gbit/s, 78 B: 6.24 ns each.
    let mut path = build(&[spec("link", bare_link(100_000_000_000, QueueLimit::Unlimited))], 0);
    let ack = |id| Packet { id, size: 78, data: false, ecn: Ecn::NotEct, ttl: 64 };
    let offers: Vec<_> = (0..100).map(|id| (Instant::ZERO, FORWARD, ack(id))).collect();
    assert_eq!(run(&mut path, &offers).last().map(|out| out.0), Some(at_ns(624)));
}

#[test]
fn framing_and_padding_cost_time() {
    let ethernet = spec(
        "ethernet",
        ElementKind::Link(Link {
            rate: PerDirection::both(rate(1_000_000_000)),
            queue: PerDirection::both(QueueLimit::Unlimited),
            mark: PerDirection::both(MarkThreshold::Never),
            aqm: PerDirection::default(),
            overhead: Bytes(38),
            min_packet: Bytes(46),
        }),
    );
    let specs = [ethernet];
    for (size, wire) in [(1500, 1538), (47, 85), (46, 84), (40, 84)] {
        let mut path = build(&specs, 0);
        let out = run(
            &mut path,
            &[(Instant::ZERO, FORWARD, Packet { id: 0, size, data: true, ecn: Ecn::NotEct, ttl: 64 })],
        );
        assert_eq!(out[0].0, at_ns(wire * 8), "{size} B");
        assert_eq!(base_delay(&specs, FORWARD, Bytes(size)).as_nanos(), wire * 8);
        let link = counters_of(&path, "ethernet", FORWARD).link.expect("it is a link");
        assert_eq!(link.bytes_sent, Bytes(wire));
    }
}

#[test]
fn a_queue_of_bytes_is_full_at_its_last_byte() {
    // One packet is being sent and does not count.
    let accepted =
        |limit| departures(&[spec("l", bare_link(1_000_000, QueueLimit::Bytes(Bytes(limit))))], 10).len();
    assert_eq!(accepted(4499), 3);
    assert_eq!(accepted(4500), 4);
    assert_eq!(accepted(4501), 4);
    assert_eq!(accepted(0), 1);
}

#[test]
fn a_queue_of_packets_holds_so_many_beside_the_one_being_sent() {
    let accepted =
        |limit| departures(&[spec("l", bare_link(1_000_000, QueueLimit::Packets(limit)))], 10).len();
    assert_eq!([0, 1, 5, 9, 100].map(accepted), [1, 2, 6, 10, 10]);
}

#[test]
fn room_appears_when_the_next_packet_starts_not_when_it_ends() {
    // 1 ms per packet, room for one: 1 is sent, 2 waits until 1 ms.
    let mut path = build(&[spec("l", bare_link(12_000_000, QueueLimit::Packets(1)))], 0);
    assert_eq!(offer(&mut path, at_ms(0), FORWARD, packet(1)), None);
    assert_eq!(offer(&mut path, at_ms(0), FORWARD, packet(2)), None);
    let just_before = at_ns(999_999);
    let drop = offer(&mut path, just_before, FORWARD, packet(3));
    assert_eq!(drop, Some((just_before, FORWARD, packet(3), Some(DropCause::QueueOverflow))));
    assert_eq!(offer(&mut path, at_ns(1_000_001), FORWARD, packet(4)), None);
    assert_eq!(take_all(&mut path, at_ms(9)).last(), Some(&(at_ms(3), FORWARD, packet(4), None)));
}

#[test]
fn an_arrival_comes_before_the_packet_that_makes_room_in_the_same_instant() {
    // 1 ms per packet, room for one: 2 is sent from 1 ms on, and still waits as 3 comes. At 2 ms the link is idle.
    let mut path = build(&[spec("l", bare_link(12_000_000, QueueLimit::Packets(1)))], 0);
    assert_eq!(offer(&mut path, at_ms(0), FORWARD, packet(1)), None);
    assert_eq!(offer(&mut path, at_ms(0), FORWARD, packet(2)), None);
    let drop = offer(&mut path, at_ms(1), FORWARD, packet(3));
    assert_eq!(drop, Some((at_ms(1), FORWARD, packet(3), Some(DropCause::QueueOverflow))));
    assert_eq!(offer(&mut path, at_ms(2), FORWARD, packet(4)), None);
    assert_eq!(take_all(&mut path, at_ms(9)).last(), Some(&(at_ms(3), FORWARD, packet(4), None)));
}

/// What ten packets offered at once to a link of 1 ms per packet come out as: `1` is marked, `.` is not.
fn marked(queue: QueueLimit, mark: MarkThreshold, ecn: Ecn) -> String {
    let mut kind = bare_link(12_000_000, queue);
    if let ElementKind::Link(Link { mark: threshold, .. }) = &mut kind {
        *threshold = PerDirection { forward: mark, reverse: MarkThreshold::Never };
    }
    let mut path = build(&[spec("l", kind)], 0);
    let offers: Vec<_> = (0..10).map(|id| (Instant::ZERO, FORWARD, Packet { ecn, ..packet(id) })).collect();
    let out = run(&mut path, &offers);
    let delivered = out.iter().filter(|out| out.3.is_none());
    let text: String = delivered.map(|out| if out.2.ecn == Ecn::Ce { '1' } else { '.' }).collect();
    let fresh = if ecn == Ecn::Ce { 0 } else { text.matches('1').count() };
    assert_eq!(counters_of(&path, "l", FORWARD).marked, fresh as u64);
    text
}

#[test]
fn ecn_capable_packets_are_marked_where_more_than_the_threshold_waits() {
    let unlimited = |mark| marked(QueueLimit::Unlimited, mark, Ecn::Ect);
    assert_eq!(unlimited(MarkThreshold::Never), "..........");
    // The first is being sent and does not count, the packet itself does.
    assert_eq!(unlimited(MarkThreshold::Packets(3)), "....111111");
    assert_eq!(unlimited(MarkThreshold::Packets(0)), ".111111111");
    assert_eq!(unlimited(MarkThreshold::Bytes(Bytes(4500))), "....111111");
    assert_eq!(unlimited(MarkThreshold::Bytes(Bytes(4499))), "...1111111");
    assert_eq!(unlimited(MarkThreshold::Delay(Duration::from_millis(3))), "....111111");
}

#[test]
fn packets_that_cannot_be_marked_pass_until_the_limit_drops_them() {
    let (limit, mark) = (QueueLimit::Packets(6), MarkThreshold::Packets(3));
    assert_eq!(marked(limit, mark, Ecn::Ect), "....111");
    assert_eq!(marked(limit, mark, Ecn::NotEct), ".......");
    assert_eq!(marked(limit, mark, Ecn::Ce), "1111111", "marked before");
}

#[test]
fn a_mark_that_the_queue_never_reaches_is_worth_a_warning() {
    let warnings = |queue, mark| {
        let mut kind = bare_link(12_000_000, queue);
        if let ElementKind::Link(Link { mark: threshold, .. }) = &mut kind {
            threshold.forward = mark;
        }
        spec("l", kind).warnings().join("; ")
    };
    let bytes = |limit| QueueLimit::Bytes(Bytes(limit));
    assert_eq!(warnings(bytes(30_000), MarkThreshold::Bytes(Bytes(29_999))), "");
    assert_eq!(
        warnings(bytes(30_000), MarkThreshold::Bytes(Bytes(30_000))),
        "l: forward: a mark above 30 kB is never set in a queue of at most 30 kB"
    );
    assert_eq!(
        warnings(QueueLimit::Packets(20), MarkThreshold::Packets(30)),
        "l: forward: a mark above 30 packets is never set in a queue of at most 20 packets"
    );
    assert_eq!(warnings(QueueLimit::Unlimited, MarkThreshold::Packets(30)), "");
}

#[test]
fn an_idle_link_takes_a_packet_that_is_longer_than_its_queue() {
    assert_eq!(departures(&[spec("l", bare_link(12_000_000, QueueLimit::Bytes(Bytes(100))))], 2), [at_ms(1)]);
}

#[test]
fn backlog_is_what_waits_as_of_the_last_offer() {
    let mut path =
        build(&[spec("d", delay_ms(5)), spec("l", bare_link(12_000_000, QueueLimit::Unlimited))], 0);
    assert_eq!(path.backlog(FORWARD), Some(Bytes(0)));
    for id in 0..4 {
        offer(&mut path, at_ms(0), FORWARD, packet(id));
    }
    assert_eq!(path.backlog(FORWARD), Some(Bytes(4500)));
    assert_eq!(path.backlog(Direction::Reverse), Some(Bytes(0)));
    offer(&mut path, at_ns(3_000_001), FORWARD, packet(5));
    assert_eq!(path.backlog(FORWARD), Some(Bytes(1500)));
    let link = counters_of(&path, "l", FORWARD).link.expect("it is a link");
    assert_eq!((link.max_backlog, link.bytes_sent), (Bytes(4500), Bytes(7500)));
    assert_eq!(counters_of(&path, "d", FORWARD).link, None);
    assert_eq!(build(&[spec("d", delay_ms(5))], 0).backlog(FORWARD), None);
}

#[test]
fn a_corrupted_packet_has_cost_the_time_of_the_link() {
    let link = spec("l", bare_link(12_000_000, QueueLimit::Unlimited));
    let after = [link.clone(), spec("loss", listed(&[1]))];
    assert_eq!(departures(&after, 2), [at_ms(2)]);
    let before = [spec("loss", listed(&[1])), link];
    assert_eq!(departures(&before, 2), [at_ms(1)]);
}

#[test]
fn the_two_directions_of_a_link_do_not_share_its_rate() {
    let mut path = build(&[spec("l", bare_link(12_000_000, QueueLimit::Unlimited))], 0);
    let offers = Direction::BOTH.map(|direction| (at_ms(0), direction, packet(1)));
    let due: Vec<Instant> = run(&mut path, &offers).iter().map(|out| out.0).collect();
    assert_eq!(due, [at_ms(1), at_ms(1)]);
}

// The cost of a packet must not depend on how many wait: this took minutes if it did.
#[test]
fn a_million_waiting_packets_are_no_slower_than_none() {
    let mut link = spec("l", bare_link(1_000, QueueLimit::Bytes(Bytes::MAX))).transit(0).expect("sound");
    let view = PacketView { size: Bytes(1500), carries_data: true };
    for n in 1..=1_000_000 {
        let (begun, sent) = (at_ns(1 + (n - 1) * 12_000_000_000), at_ns(1 + n * 12_000_000_000));
        assert_eq!(link.transit(at_ns(n), FORWARD, view), Fate::Queue(sent, begun - at_ns(n)));
    }
    assert_eq!(link.backlog(FORWARD), Some(Bytes(1500 * 999_999)));
}
