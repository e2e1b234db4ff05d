//! Several stations on one air: who waits for whom, who hits whom, and what the air was used for.

use crate::common::{Packet, any_offers, at_ms, build, rate, run, take_all};
use crate::radio::{any_radio, late_and_prompt, plain, radio, sized, together};
use farpath_elements::{
    Arrivals, Backoff, Duplex, HiddenFrom, OnOff, OtherStations, Peer, RadioSpec, Turnaround, build_path,
};
use farpath_path::{AirUse, ChannelTime, Direction, Path, PathElement, StationCounts};
use farpath_units::{Bytes, Duration, Instant, Rate};
use proptest::prelude::*;

use Direction::{Forward, Reverse};

/// So many that send packets of 500 B to the far station, and are heard by all.
fn others(stations: u32, bit_per_s: u64) -> OtherStations {
    OtherStations {
        stations,
        hop: 0,
        rate: rate(bit_per_s),
        packet: Bytes(500),
        arrivals: Arrivals::Poisson,
        on_off: None,
        to: Peer::Far,
        hidden_from: HiddenFrom::Nobody,
        queue: Bytes(8192),
    }
}

fn with(groups: &[OtherStations]) -> RadioSpec {
    RadioSpec { others: groups.to_vec(), ..plain() }
}

fn at_s(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

/// The first hop at the end, where packets of 500 B come forward as fast as they go.
fn saturated(spec: RadioSpec, seconds: u64, seed: u64) -> ChannelTime {
    let mut path = build(&radio(spec), seed);
    let mut id = 0;
    for ms in (0..seconds * 1000).step_by(200) {
        take_all(&mut path, at_ms(ms));
        while path.backlog(Forward).is_some_and(|backlog| backlog < Bytes(4000)) {
            path.offer(at_ms(ms), Forward, sized(id, 500));
            id += 1;
        }
    }
    path.air(at_s(seconds)).remove(0)
}

fn alone(spec: RadioSpec, seconds: u64, seed: u64) -> ChannelTime {
    let path: Path<Packet> = build(&radio(spec), seed);
    path.air(at_s(seconds)).remove(0)
}

fn sum(stations: &[StationCounts], count: impl Fn(&StationCounts) -> u64) -> u64 {
    stations.iter().map(count).sum()
}

#[test]
fn others_that_cannot_work_are_refused() {
    let one = || others(2, 1_000);
    let refused = |group: OtherStations| {
        let error = build_path::<Packet>(&radio(with(&[group])), 1).expect_err("it cannot work");
        error.to_string().strip_prefix("radio: others.").expect("it is of the others").to_owned()
    };
    for (group, expected) in [
        (OtherStations { stations: 1001, ..one() }, "stations: expected at most 1000 in all, found 1001"),
        (OtherStations { stations: 3, to: Peer::Pairs, ..one() }, "stations: 3 are no pairs"),
        (OtherStations { hop: 1, ..one() }, "hop: expected from 1 to 1, found 2"),
        (others(2, 880_000), "rate: 880 kbit/s are more than 10 times the 80 kbit/s of the air"),
        (
            OtherStations { packet: Bytes(1501), ..one() },
            "packet: expected from 1 B to the MTU of 1.5 kB, found 1.501 kB",
        ),
        (
            OtherStations { packet: Bytes(0), ..one() },
            "packet: expected from 1 B to the MTU of 1.5 kB, found 0 B",
        ),
        (OtherStations { queue: Bytes(499), ..one() }, "queue: 499 B never hold a packet of 500 B"),
        (
            OtherStations {
                on_off: Some(OnOff { on: Duration::from_secs(3), off: Duration::ZERO }),
                ..one()
            },
            "on: a packet comes every 4 s: expected at least that",
        ),
        (
            OtherStations { hidden_from: HiddenFrom::Far, ..one() },
            "hidden_from: who gets their packets has to hear them",
        ),
        (
            OtherStations { to: Peer::Pairs, hidden_from: HiddenFrom::All, ..one() },
            "hidden_from: pairs that nobody else hears have an air of their own",
        ),
    ] {
        assert_eq!(refused(group), expected);
    }
    let full = RadioSpec { duplex: Duplex::Full, ..with(&[one()]) };
    let error = build_path::<Packet>(&radio(full), 1).expect_err("there are two airs").to_string();
    assert_eq!(
        error,
        "radio: others: others share one air with the stations of the path: expected `duplex = \"half\"`"
    );
    // What is as much as there may be.
    for group in [others(1000, 800_000), OtherStations { queue: Bytes(500), packet: Bytes(500), ..one() }] {
        assert!(build_path::<Packet>(&radio(with(&[group])), 1).is_ok());
    }
}

#[test]
fn a_station_of_others_gets_what_one_of_the_path_gets() {
    // Without gaps nothing is drawn: the exchanges of a saturated station follow each other.
    let lone = alone(with(&[others(1, 80_000)]), 1000, 1).stations[2];
    let silent = with(&[OtherStations { stations: 0, ..others(0, 1) }]);
    let of_path = saturated(silent, 1000, 1).stations[0];
    // 150 ms each, with two packets: 6.67 exchanges a second. The first packet of the others comes alone.
    assert_eq!(of_path.calls, 6666);
    assert!(lone.calls.abs_diff(of_path.calls) <= 2, "{lone:?} {of_path:?}");
    assert!(lone.delivered.abs_diff(of_path.delivered) <= 4, "{lone:?} {of_path:?}");
}

#[test]
fn stations_that_hear_one_another_share_the_air_alike() {
    let spec = RadioSpec { gap: Duration::from_millis(20), ..with(&[others(5, 80_000)]) };
    let air = saturated(spec, 20_000, 3);
    let shares: Vec<u64> = air.stations.iter().map(|station| station.delivered).collect();
    // The far station only answers.
    assert_eq!(shares[1], 0);
    let senders = [&shares[..1], &shares[2..]].concat();
    let mean = senders.iter().sum::<u64>() as f64 / 6.0;
    // 3 % was seen; who was unanswered waits longer, so that exchanges of one station come in rows, and shares vary more than by their number.
    for share in senders {
        assert!((share as f64 / mean - 1.0).abs() < 0.1, "{shares:?}");
    }
    assert_eq!(sum(&air.stations, |station| station.hit), 0);
}

#[test]
fn hidden_stations_hit_frames_and_heard_ones_do_not() {
    let gap = Duration::from_millis(20);
    let stations = |hidden_from| {
        let group = OtherStations { hidden_from, ..others(3, 4_000) };
        saturated(RadioSpec { gap, ..with(&[group]) }, 4_000, 5)
    };
    let (heard, hidden) = (stations(HiddenFrom::Nobody), stations(HiddenFrom::Near));
    let hits = |air: &ChannelTime| sum(&air.stations, |station| station.hit);
    assert_eq!(hits(&heard), 0);
    assert!(hits(&hidden) > 100, "{:?}", hidden.stations);
    assert!(hidden.time.time_in(AirUse::Damaged) > Duration::ZERO);
    // All that is theirs gets less through; the station that they are hidden from may gain by it.
    let theirs = |air: &ChannelTime| sum(&air.stations[2..], |station| station.delivered);
    assert!(theirs(&hidden) < theirs(&heard) * 9 / 10, "{} {}", theirs(&hidden), theirs(&heard));
}

#[test]
fn longer_frames_are_hit_more_often_by_hidden_stations() {
    let share = |packet| {
        let group = OtherStations { packet: Bytes(packet), hidden_from: HiddenFrom::All, ..others(6, 2_000) };
        let air = alone(RadioSpec { burst: 1, ..with(&[group]) }, 8_000, 5);
        sum(&air.stations, |station| station.hit) as f64 / sum(&air.stations, |station| station.frames) as f64
    };
    let (short, long) = (share(200), share(1000));
    assert!(long > 1.5 * short, "{short} {long}");
}

/// Stations that send unasked, and hear only who they send to.
fn aloha(stations: u32, bit_per_s: u64) -> RadioSpec {
    let group =
        OtherStations { packet: Bytes(100), hidden_from: HiddenFrom::All, ..others(stations, bit_per_s) };
    RadioSpec {
        turnaround: Turnaround::default(),
        poll: None,
        link_ack: Some(Bytes::ZERO),
        burst: 1,
        // A frame takes 10 ms: waits that are drawn from 4 s spread those that have met over 400 of them. Of two that meet the
        // first one has its answer, that nothing arrived, and waits for the gap; nobody heard the second, which backs off.
        gap: Duration::from_secs(4),
        backoff: Backoff { base: Duration::from_secs(4), max_exponent: 0 },
        ..with(&[group])
    }
}

#[test]
fn without_polls_and_carriers_it_is_aloha() {
    for bit_per_s in [5, 15, 25] {
        let spec = aloha(400, bit_per_s);
        let air = alone(spec, 20_000, 9);
        let calls = sum(&air.stations, |station| station.calls) as f64;
        let load = calls * 0.010 / 20_000.0;
        let through = sum(&air.stations, |station| station.delivered) as f64 / calls;
        // Abramson 1970: of frames that begin as a Poisson process a share of exp(-2 G) meets no other.
        // Some 50 000 to 350 000 calls: 0.01 is at least five standard errors, and leaves room for 400 stations being no endless number.
        assert!((through - (-2.0 * load).exp()).abs() < 0.01, "{load} {through}");
    }
}

#[test]
fn who_hears_the_carrier_at_once_hits_nobody() {
    let spec = aloha(50, 1_000);
    let group = OtherStations { hidden_from: HiddenFrom::Nobody, ..spec.others[0].clone() };
    let spec = RadioSpec { others: vec![group], gap: Duration::from_millis(100), ..spec };
    let air = alone(spec, 2_000, 9);
    assert_eq!(sum(&air.stations, |station| station.hit), 0);
}

/// Pairs of stations, their share of the air's rate in percent, the length of their packets, whether they come as a Poisson process.
type Traffic = (u32, u64, u64, bool);

/// Milliseconds with packets and without, who gets them, who does not hear them, on which hop.
type Who = (Option<(u64, u64)>, u8, u8, u32);

fn any_others(spec: RadioSpec) -> impl Strategy<Value = RadioSpec> {
    let group = (
        (0u32..3, 1u64..60, spec.mtu.0 / 2..=spec.mtu.0, any::<bool>()),
        (prop::option::of((0u64..3000, 0u64..3000)), 0u8..3, 0u8..3, 0u32..spec.hops),
    );
    prop::collection::vec(group, 1..3).prop_map(move |groups| {
        let group = |(traffic, who): (Traffic, Who)| {
            let ((pairs, share, packet, poisson), (on_off, to, hidden, hop)) = (traffic, who);
            let bit_per_s = (spec.rate.bit_per_s() * share / 100).max(1);
            let rate = Rate::from_bit_per_s(bit_per_s).expect("not zero");
            let (to, hidden_from) = match (to, hidden) {
                (0, 1) => (Peer::Near, HiddenFrom::Far),
                (0, 2) => (Peer::Near, HiddenFrom::All),
                (0, _) => (Peer::Near, HiddenFrom::Nobody),
                (1, 1) => (Peer::Far, HiddenFrom::Near),
                (1, 2) => (Peer::Far, HiddenFrom::All),
                (1, _) => (Peer::Far, HiddenFrom::Nobody),
                (_, 1) => (Peer::Pairs, HiddenFrom::Near),
                (_, 2) => (Peer::Pairs, HiddenFrom::Far),
                _ => (Peer::Pairs, HiddenFrom::Nobody),
            };
            OtherStations {
                stations: 2 * pairs,
                hop,
                rate,
                packet: Bytes(packet),
                arrivals: if poisson { Arrivals::Poisson } else { Arrivals::Periodic },
                on_off: on_off.map(|(on, off)| OnOff {
                    on: rate.time_to_send(Bytes(packet)) + Duration::from_millis(on),
                    off: Duration::from_millis(off),
                }),
                to,
                hidden_from,
                queue: spec.queue,
            }
        };
        RadioSpec { duplex: Duplex::Half, others: groups.into_iter().map(group).collect(), ..spec.clone() }
    })
}

fn any_cell() -> impl Strategy<Value = RadioSpec> {
    any_radio().prop_flat_map(any_others)
}

proptest! {
    /// Each packet of the path comes out once, and in its order; of the others what came in is delivered, lost or waits.
    #[test]
    fn every_packet_comes_out_once_and_in_order(radios in any_cell(), offers in any_offers(60), seed: u64) {
        let mut path = build(&radio(radios.clone()), seed);
        let out = run(&mut path, &offers);
        prop_assert_eq!(out.len(), offers.len());
        prop_assert_eq!(path.held(), 0);
        for direction in Direction::BOTH {
            let arrived = out.iter().filter(|out| out.1 == direction && out.3.is_none());
            prop_assert!(arrived.is_sorted_by_key(|out| out.2.id));
        }
        let end = out.last().map_or(Instant::ZERO, |out| out.0) + Duration::from_secs(2);
        let most = |packet: Bytes| radios.queue.0 / packet.0 + 1;
        for (hop, channel) in path.air(end).iter().enumerate() {
            for station in &channel.stations {
                let waiting = station.offered - station.delivered - station.dropped;
                if let Some(group) = station.group {
                    let group = &radios.others[group as usize];
                    prop_assert_eq!(group.hop as usize, hop);
                    prop_assert!(waiting <= most(group.packet), "{:?}", station);
                    prop_assert_eq!(station.delivered_bytes.0, station.delivered * group.packet.0);
                } else {
                    prop_assert_eq!(waiting, 0);
                }
                prop_assert!(station.unanswered <= station.calls && station.hit <= station.frames);
            }
        }
    }

    /// What an air was used for adds up to all of the time but what is under way, and to all of it where nothing is.
    #[test]
    fn the_time_of_an_air_adds_up(radios in any_cell(), offers in any_offers(30), seed: u64, looks in prop::collection::vec(0u64..2_000, 2)) {
        let mut path = build(&radio(radios.clone()), seed);
        let out = run(&mut path, &offers);
        // By then nothing of the path is under way, sent again or given up.
        let last = out.last().map_or(Instant::ZERO, |out| out.0) + Duration::from_secs(40);
        let longest = longest_exchange(&radios);
        for ms in looks {
            let now = last + Duration::from_millis(ms);
            for channel in path.air(now) {
                let total = channel.time.total();
                prop_assert!(total <= now.since_start());
                prop_assert!(total + longest >= now.since_start(), "{:?} {total} {longest}", now);
            }
        }
        // Others that have long been silent leave nothing open.
        let quiet = RadioSpec { others: radios.others.iter().map(silent).collect(), ..radios };
        let mut path = build(&radio(quiet), seed);
        run(&mut path, &offers);
        let end = Instant::ZERO + Duration::from_secs(100_000);
        for channel in path.air(end) {
            prop_assert_eq!(channel.time.total(), end.since_start());
        }
    }

    #[test]
    fn a_late_caller_changes_nothing(
        radios in any_cell(), offers in any_offers(40), seed: u64, late in prop::collection::vec(any::<bool>(), 40),
    ) {
        let [late, prompt] = late_and_prompt(radios, &offers, seed, late);
        prop_assert_eq!(late, prompt);
    }

    /// Others that send nothing are as if they were not there.
    #[test]
    fn silent_others_change_nothing(radios in any_cell(), offers in any_offers(60), seed: u64) {
        let silenced = RadioSpec { others: radios.others.iter().map(silent).collect(), ..radios.clone() };
        let nobody = RadioSpec { others: Vec::new(), ..radios };
        let mut one = run(&mut build(&radio(silenced), seed), &offers);
        let mut two = run(&mut build(&radio(nobody), seed), &offers);
        one.sort();
        two.sort();
        prop_assert_eq!(one, two);
    }
}

/// From the first turnaround to the link ACK, or to the end of the wait for an answer that does not come.
fn longest_exchange(spec: &RadioSpec) -> Duration {
    let frames = spec.frame_time(spec.mtu) * u64::from(spec.burst);
    spec.turnaround.retune + spec.access_time() + frames + spec.answer_time() + spec.poll_timeout()
}

/// The same stations, in a pause that ends long after the last packet: in 584 years, in the mean.
fn silent(others: &OtherStations) -> OtherStations {
    let on = others.rate.time_to_send(others.packet).max(Duration::from_nanos(1));
    OtherStations { on_off: Some(OnOff { on, off: Duration::MAX }), ..others.clone() }
}

#[test]
fn who_is_silent_uses_no_air() {
    let mut path = build(&radio(with(&[others(4, 1_000)])), 1);
    run(&mut path, &together(Reverse, 0..4, 500));
    let air = path.air(at_s(1_000)).remove(0);
    assert!(air.time.time_in(AirUse::Others) > Duration::ZERO);
    let nobody = build(&radio(plain()), 1).air(at_s(1_000)).remove(0);
    assert_eq!((nobody.time.time_in(AirUse::Others), nobody.stations.len()), (Duration::ZERO, 0));
}

#[test]
fn a_relay_holds_back_on_the_air_that_it_hears_others_on_and_on_no_other() {
    // A pair that is on the first hop's air nearly all the time; the relay hears it, and has its packets a second after they came.
    let pair = OtherStations { to: Peer::Pairs, ..others(2, 80_000) };
    let spec = RadioSpec { hops: 2, processing: Duration::from_secs(1), ..with(&[pair]) };
    let mut path = build(&radio(spec), 1);
    let offers: Vec<_> = (0..40).map(|id| (at_s(id * 10), Forward, sized(id, 500))).collect();
    run(&mut path, &offers);
    let air = path.air(at_s(500));
    let [first, second] = &air[..] else { panic!("two hops") };
    assert!(first.time.time_in(AirUse::Others) > Duration::from_secs(250), "{:?}", first.time);
    assert!(first.stations[0].held_back > 0, "{:?}", first.stations);
    // Nothing is in the way of the second one's packets.
    assert_eq!(second.time.time_in(AirUse::Data), Duration::from_secs(2), "{:?}", second.time);
    assert_eq!(second.time.time_in(AirUse::Backoff), Duration::ZERO, "{:?}", second.time);
}
