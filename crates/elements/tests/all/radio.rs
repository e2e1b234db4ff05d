//! Packet radios: what an exchange costs, who gets the air, and what happens where nobody does.

use crate::common::{
    self, Out, Packet, any_offers, at_ms, ber, build, counters_of, packet, rate, run, spec, take_all,
};
use farpath_elements::{
    Backoff, Between, Duplex, ElementKind, ElementSpec, Offset, OverTime, Oversize, RadioPower, RadioSpec,
    Setting, SpecError, Turnaround, base_delay, build_path,
};
use farpath_path::{AirUse, Direction, DropCause, Path, PathElement};
use farpath_units::{Bytes, Duration, Instant, Power};
use proptest::prelude::*;

use Direction::{Forward, Reverse};

/// 80 kbit/s: 100 us a byte. Turning around takes 10 ms, polls 4 ms each, link ACKs 2 ms, headers nothing.
pub fn plain() -> RadioSpec {
    RadioSpec {
        hops: 1,
        rate: rate(80_000),
        rate_over_time: None,
        duplex: Duplex::Half,
        turnaround: Turnaround {
            rx_to_tx: Duration::from_millis(10),
            tx_to_rx: Duration::from_millis(8),
            retune: Duration::from_millis(5),
        },
        poll: Some(Bytes(40)),
        header: Bytes::ZERO,
        link_ack: Some(Bytes(20)),
        burst: 2,
        gap: Duration::ZERO,
        backoff: Backoff { base: Duration::from_millis(20), max_exponent: 6 },
        queue: Bytes(8192),
        flow_control: true,
        ber: ber(0.0),
        attempts: None,
        processing: Duration::ZERO,
        mtu: Bytes(1500),
        oversize: Oversize::Fragment,
        give_up_after: Duration::from_secs(300),
        power: None,
        others: Vec::new(),
    }
}

pub fn radio(radio: RadioSpec) -> Vec<ElementSpec> {
    vec![spec("radio", ElementKind::Radio(Box::new(radio)))]
}

pub fn sized(id: u64, size: u64) -> Packet {
    Packet { size, ..packet(id) }
}

/// Packets offered together, one way.
pub fn together(
    direction: Direction,
    ids: impl Iterator<Item = u64>,
    size: u64,
) -> Vec<(Instant, Direction, Packet)> {
    ids.map(|id| (Instant::ZERO, direction, sized(id, size))).collect()
}

pub fn arrived(out: &[Out]) -> Vec<(u64, u64)> {
    out.iter()
        .filter(|out| out.3.is_none())
        .map(|(at, _, packet, _)| (packet.id, at.as_nanos() / 1_000_000))
        .collect()
}

/// Fractions of the time until `end`, one channel's.
fn share(path: &Path<Packet>, end: Instant, what: AirUse) -> f64 {
    let air = path.air(end).remove(0).time;
    air.time_in(what).as_secs_f64() / end.as_secs_f64()
}

#[test]
fn a_lone_packet_waits_for_three_turns_and_a_poll() {
    let specs = radio(plain());
    let out = run(&mut build(&specs, 1), &[(at_ms(5), Forward, sized(1, 1000))]);
    // 10 turn, 4 poll, 10 turn, 4 answer, 10 turn, 100 data.
    assert_eq!(arrived(&out), [(1, 5 + 138)]);
    assert_eq!(base_delay(&specs, Forward, Bytes(1000)), Duration::from_millis(138));
}

#[test]
fn a_burst_is_answered_once() {
    let mut path = build(&radio(plain()), 1);
    let out = run(&mut path, &together(Forward, 1..=3, 500));
    // Two in the first exchange, which ends with a turn and a link ACK of 2 ms; the third after another poll.
    assert_eq!(arrived(&out), [(1, 88), (2, 138), (3, 138 + 12 + 88)]);
    let end = at_ms(138 + 12 + 88 + 12);
    take_all(&mut path, end);
    let air = path.air(end).remove(0).time;
    let ms = |what| air.time_in(what).as_nanos() / 1_000_000;
    assert_eq!(AirUse::ALL.map(ms), [150, 0, 0, 16, 4, 80, 0, 0, 0, 0]);
    assert_eq!(air.total(), end.since_start());
}

#[test]
fn without_turnaround_a_burst_takes_what_is_sent() {
    let free = RadioSpec { turnaround: Turnaround::default(), ..plain() };
    let out = run(&mut build(&radio(free), 1), &together(Forward, 1..=1, 1000));
    assert_eq!(arrived(&out), [(1, 108)]);
}

#[test]
fn a_burst_has_the_rate_of_the_moment_at_which_the_air_is_won() {
    let free = RadioSpec { turnaround: Turnaround::default(), ..plain() };
    let at = |seconds, rate| (Duration::from_secs(seconds), rate);
    let points = vec![at(0, rate(80_000)), at(2, rate(160_000))];
    let over = OverTime::new(points, Between::Steps, None, Offset::At(Duration::ZERO)).expect("rising");
    let changing = RadioSpec { rate_over_time: Some(Setting::Changing(over)), ..free };
    let mut path = build(&radio(changing), 1);
    let offers = [(Instant::ZERO, Forward, sized(1, 1000)), (at_ms(3000), Forward, sized(2, 1000))];
    // Two polls of 40 B and a frame: 108 ms at 80 kbit/s, half of that at twice the rate.
    assert_eq!(arrived(&run(&mut path, &offers)), [(1, 108), (2, 3054)]);
}

#[test]
fn stations_that_call_together_hear_nobody_and_wait() {
    let mut path = build(&radio(plain()), 1);
    let offers = [(Instant::ZERO, Forward, sized(1, 500)), (Instant::ZERO, Reverse, sized(2, 40))];
    let out = run(&mut path, &offers);
    assert_eq!(arrived(&out).len(), 2);
    // Turn 10 ms, then a turn and four polls of 4 ms without an answer; then two to four times 20 ms, and twice 20 ms.
    let first = out[0].0.as_nanos() / 1_000_000;
    assert!((36 + 80 + 38..=36 + 120 + 88).contains(&first), "{first}");
    let end = out.last().expect("two").0 + Duration::from_millis(12);
    assert_eq!(path.air(end).remove(0).time.time_in(AirUse::Collision), Duration::from_millis(36));
    assert!(share(&path, end, AirUse::Backoff) > 0.2);
}

#[test]
fn full_duplex_stations_do_not_meet() {
    let full = RadioSpec { duplex: Duplex::Full, ..plain() };
    let mut path = build(&radio(full), 1);
    let offers = [(Instant::ZERO, Forward, sized(1, 500)), (Instant::ZERO, Reverse, sized(2, 40))];
    let out = run(&mut path, &offers);
    // Nothing turns around: a poll, the answer, the frame.
    assert_eq!(arrived(&out), [(2, 12), (1, 58)]);
    assert_eq!(path.air(at_ms(60)).len(), 2);
}

#[test]
fn a_relay_carries_each_frame_twice_and_retunes_for_an_answer() {
    let specs = radio(RadioSpec { hops: 2, ..plain() });
    let offers = [(at_ms(0), Forward, sized(1, 1000)), (at_ms(1000), Reverse, sized(2, 100))];
    let out = run(&mut build(&specs, 1), &offers);
    // The relay answers, for 12 ms, before it goes on. It called forward last: its call backwards takes 5 ms more.
    assert_eq!(arrived(&out), [(1, 2 * 138 + 12), (2, 1000 + 2 * 48 + 12 + 5)]);
    assert_eq!(base_delay(&specs, Forward, Bytes(1000)), Duration::from_millis(288));
}

#[test]
fn a_relay_that_is_full_lets_its_neighbour_wait() {
    // What the relay receives it can send on only later, when more has come.
    let spec = RadioSpec { hops: 2, queue: Bytes(2000), processing: Duration::from_secs(1), ..plain() };
    let offers: Vec<_> = (1..=400).map(|id| (at_ms(id * 150), Forward, sized(id, 600))).collect();
    let lost_at_entry = |flow_control| -> Vec<bool> {
        let out = run(&mut build(&radio(RadioSpec { flow_control, ..spec.clone() }), 1), &offers);
        let lost = out.iter().filter(|out| out.3 == Some(DropCause::QueueOverflow));
        lost.map(|out| out.0 == at_ms(out.2.id * 150)).collect()
    };
    // What does not fit is dropped where it comes in, and nowhere else.
    let lost = lost_at_entry(true);
    assert!(!lost.is_empty() && lost.iter().all(|&at_entry| at_entry), "{lost:?}");
    assert!(lost_at_entry(false).contains(&false));
}

#[test]
fn a_queue_holds_what_is_being_sent_until_that_is_acknowledged() {
    let mut path = build(&radio(plain()), 1);
    let out = run(&mut path, &together(Forward, 1..=10, 1000));
    assert_eq!(arrived(&out).len(), 8);
    assert_eq!(counters_of(&path, "radio", Forward).dropped.count_of(DropCause::QueueOverflow), 2);
}

#[test]
fn damaged_frames_are_sent_again_in_order() {
    // 1000 B are hit with a probability of 0.55.
    let noisy = RadioSpec { ber: ber(1e-4), queue: Bytes(1_000_000), burst: 4, ..plain() };
    let mut path = build(&radio(noisy), 7);
    let out = run(&mut path, &together(Forward, 1..=200, 1000));
    let ids: Vec<u64> = arrived(&out).iter().map(|arrival| arrival.0).collect();
    assert_eq!(ids, (1..=200).collect::<Vec<_>>());
    // Frames in a row out of a burst of four, with p = exp(-0.8): p + p^2 + p^3 + p^4 = 0.78 of four.
    let end = out.last().expect("all").0;
    let useful = share(&path, end, AirUse::Data)
        / (share(&path, end, AirUse::Data) + share(&path, end, AirUse::Damaged));
    assert!((0.15..0.25).contains(&useful), "{useful}: expected 0.195");
}

#[test]
fn without_link_acks_what_is_damaged_is_lost() {
    let bare = RadioSpec { ber: ber(1e-4), queue: Bytes(1_000_000), link_ack: None, ..plain() };
    let mut path = build(&radio(bare), 7);
    let out = run(&mut path, &together(Forward, 1..=400, 1000));
    let lost = out.iter().filter(|out| out.3 == Some(DropCause::BitErrors)).count();
    // 1 - exp(-0.8) = 0.55; three standard deviations of 400 draws are 0.075.
    assert!((190..=250).contains(&lost), "{lost}");
    assert_eq!(arrived(&out).len() + lost, 400);
}

#[test]
fn a_frame_is_sent_so_many_times_and_no_more() {
    let hopeless = RadioSpec { ber: ber(0.1), attempts: Some(3), ..plain() };
    let mut path = build(&radio(hopeless), 1);
    let out = run(&mut path, &together(Forward, 1..=2, 1000));
    assert!(out.iter().all(|out| out.3 == Some(DropCause::LinkRetries)), "{out:?}");
    assert_eq!(out.len(), 2);
}

#[test]
fn a_chain_that_gets_nothing_through_gives_up_and_says_so() {
    let give_up_after = Duration::from_secs(20);
    let mut path = build(&radio(RadioSpec { ber: ber(0.1), give_up_after, ..plain() }), 1);
    let out = run(&mut path, &together(Forward, 1..=5, 1000));
    assert_eq!(out.iter().filter(|out| out.3 == Some(DropCause::Stalled)).count(), 5);
    let given_up = out[0].0.since_start();
    assert!(given_up > give_up_after && given_up < give_up_after + Duration::from_secs(1), "{given_up}");
    assert_eq!(path.held(), 0);
    assert_eq!(path.next_departure(), None);
}

#[test]
fn packets_over_the_mtu_are_cut_or_refused() {
    let small = RadioSpec { mtu: Bytes(576), ..plain() };
    let out = run(&mut build(&radio(small.clone()), 1), &together(Forward, 1..=1, 1500));
    // 572 + 572 B in the first burst, 396 B in a second: 38 access, 114.4 data, 12 answer, 38 access, 39.6 data.
    assert_eq!(arrived(&out), [(1, 242)]);
    assert_eq!(base_delay(&radio(small.clone()), Forward, Bytes(1500)), out[0].0.since_start());
    for oversize in [Oversize::Refuse, Oversize::Icmp] {
        let refuse = RadioSpec { oversize, ..small.clone() };
        let out = run(&mut build(&radio(refuse), 1), &together(Forward, 1..=1, 1500));
        assert_eq!(out[0].3, Some(DropCause::Mtu));
    }
}

#[test]
fn without_polls_a_burst_is_sent_unasked() {
    let unasked = RadioSpec { poll: None, ..plain() };
    let mut path = build(&radio(unasked.clone()), 1);
    assert_eq!(arrived(&run(&mut path, &together(Forward, 1..=1, 1000))), [(1, 110)]);
    // Two that begin together are both in vain.
    let mut path = build(&radio(unasked), 1);
    let offers = [(Instant::ZERO, Forward, sized(1, 500)), (Instant::ZERO, Reverse, sized(2, 500))];
    let out = run(&mut path, &offers);
    assert_eq!(arrived(&out).len(), 2);
    let end = out.last().expect("two").0 + Duration::from_millis(12);
    // 10 turn, 50 data, 10 turn, 2 link ACK.
    assert_eq!(path.air(end).remove(0).time.time_in(AirUse::Collision), Duration::from_millis(72));
}

#[test]
fn what_could_never_work_is_refused() {
    let cases: [(&str, RadioSpec); 7] = [
        ("hops", RadioSpec { hops: 0, ..plain() }),
        ("burst", RadioSpec { burst: 0, ..plain() }),
        ("attempts", RadioSpec { attempts: Some(0), ..plain() }),
        ("mtu", RadioSpec { mtu: Bytes(67), ..plain() }),
        ("queue", RadioSpec { queue: Bytes(1499), ..plain() }),
        ("backoff", RadioSpec { backoff: Backoff { base: Duration::ZERO, max_exponent: 6 }, ..plain() }),
        ("give_up_after", RadioSpec { give_up_after: Duration::ZERO, ..plain() }),
    ];
    for (key, case) in cases {
        match build_path::<Packet>(&radio(case), 1) {
            Err(SpecError::Fault { element, fault }) => {
                assert_eq!((&element[..], &fault.key[..]), ("radio", key))
            }
            other => panic!("{key}: {other:?}"),
        }
    }
}

#[test]
fn one_more_hop_leaves_the_draws_of_the_others_alone() {
    let noisy = |hops| RadioSpec { hops, ber: ber(5e-5), queue: Bytes(100_000), burst: 1, ..plain() };
    let first_hop = |hops| {
        let mut path = build(&radio(noisy(hops)), 3);
        run(&mut path, &[(Instant::ZERO, Forward, sized(1, 1500))]);
        path.air(at_ms(0)).remove(0).time.time_in(AirUse::Damaged)
    };
    assert_eq!(first_hop(1), first_hop(2));
}

/// What leaves, sorted: where some offers come before what was due is taken, and where all is taken as it is due.
pub fn late_and_prompt(
    radios: RadioSpec,
    offers: &[(Instant, Direction, Packet)],
    seed: u64,
    late: Vec<bool>,
) -> [Vec<Out>; 2] {
    let mut prompt = run(&mut build(&radio(radios.clone()), seed), offers);
    let mut path = build(&radio(radios), seed);
    let mut out = Vec::new();
    for ((now, direction, packet), late) in offers.iter().zip(late) {
        if !late {
            out.extend(take_all(&mut path, *now));
        }
        out.extend(common::offer(&mut path, *now, *direction, packet.clone()));
    }
    out.extend(take_all(&mut path, Instant::MAX));
    out.sort();
    prompt.sort();
    [out, prompt]
}

pub fn any_radio() -> impl Strategy<Value = RadioSpec> {
    let times = (0u64..20, 0u64..20, 0u64..12, 0u64..6, 1u64..30, 0u32..7, 0u64..90);
    let sizes =
        (prop::option::of(0u64..60), 0u64..20, prop::option::of(0u64..20), 1u32..6, 68u64..1800, 0u64..9000);
    let rest = (
        1u32..4,
        1_000u64..10_000_000,
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        0.0f64..3e-4,
        prop::option::of(1u32..9),
    );
    (times, sizes, rest).prop_map(|(times, sizes, rest)| {
        let (rx_to_tx, tx_to_rx, retune, gap, base, max_exponent, processing) = times;
        let (poll, header, link_ack, burst, mtu, more) = sizes;
        let (hops, bit_per_s, full, flow_control, refuse, errors, attempts) = rest;
        let ms = Duration::from_millis;
        RadioSpec {
            hops,
            rate: rate(bit_per_s),
            rate_over_time: None,
            duplex: if full { Duplex::Full } else { Duplex::Half },
            turnaround: Turnaround { rx_to_tx: ms(rx_to_tx), tx_to_rx: ms(tx_to_rx), retune: ms(retune) },
            poll: poll.map(Bytes),
            header: Bytes(header),
            link_ack: link_ack.map(Bytes),
            burst,
            gap: ms(gap),
            backoff: Backoff { base: ms(base), max_exponent },
            queue: Bytes(mtu + more),
            flow_control,
            ber: ber(errors),
            attempts,
            processing: ms(processing),
            mtu: Bytes(mtu),
            oversize: if refuse { Oversize::Refuse } else { Oversize::Fragment },
            give_up_after: ms(30_000),
            power: None,
            others: Vec::new(),
        }
    })
}

proptest! {
    /// Each packet comes out once; those of one direction in their order; the account of each channel is that of all time.
    #[test]
    fn every_packet_comes_out_once_and_in_order(radios in any_radio(), offers in any_offers(60), seed: u64) {
        let mut path = build(&radio(radios), seed);
        let out = run(&mut path, &offers);
        prop_assert_eq!(out.len(), offers.len());
        prop_assert_eq!(path.held(), 0);
        for direction in Direction::BOTH {
            let of_direction = out.iter().filter(|out| out.1 == direction);
            let (lost, arrived): (Vec<_>, Vec<_>) = of_direction.partition(|out| out.3.is_some());
            prop_assert!(arrived.is_sorted_by_key(|out| out.2.id));
            let counters = counters_of(&path, "radio", direction);
            prop_assert_eq!((counters.delivered, counters.dropped.total()), (arrived.len() as u64, lost.len() as u64));
        }
        prop_assert!(out.iter().all(|out| out.0 >= offers[out.2.id as usize].0), "one left before it came");
        // Long after everything, nothing is under way.
        let end = Instant::ZERO + Duration::from_secs(100_000);
        for channel in path.air(end) {
            prop_assert_eq!(channel.time.total(), end.since_start());
        }
    }

    #[test]
    fn a_late_caller_changes_nothing(
        radios in any_radio(), offers in any_offers(40), seed: u64, late in prop::collection::vec(any::<bool>(), 40),
    ) {
        let [late, prompt] = late_and_prompt(radios, &offers, seed, late);
        prop_assert_eq!(late, prompt);
    }
}

#[test]
fn energy_goes_by_who_sends_and_who_only_listens() {
    let power = Some(RadioPower { send: Power(2_000_000), listen: Power(1_000_000) });
    let mut path = build(&radio(RadioSpec { power, ..plain() }), 1);
    run(&mut path, &together(Forward, 1..=3, 500));
    let end = at_ms(1000);
    take_all(&mut path, end);
    let energy = path.air(end).remove(0).energy.expect("it is known what they draw");
    // 150 ms of data by one at 2 W while the other listens at 1 W; 80 ms of turning and 750 ms of nothing by both at 1 W.
    let joules =
        [(AirUse::Data, 0.45), (AirUse::Turnaround, 0.16), (AirUse::Poll, 0.048), (AirUse::Idle, 1.5)];
    for (what, expected) in joules {
        assert!((energy.joules(what) - expected).abs() < 1e-9, "{what}: {}", energy.joules(what));
    }
}
