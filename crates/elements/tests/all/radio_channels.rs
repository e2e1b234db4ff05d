//! The channels of packet radios: whose silence is whose, what is counted of them, and the limits of a station.

use crate::common::{Out, Packet, at_ms, ber, build, counters_of, delay_ms, offer, run, spec, take_all};
use crate::radio::{arrived, plain, radio, sized, together};
use farpath_elements::{Duplex, Oversize, RadioPower, RadioSpec, base_delay};
use farpath_path::{AirUse, ChannelTime, Direction, DropCause, Path, PathElement};
use farpath_units::{Bytes, Duration, Instant, Power};

use Direction::{Forward, Reverse};

fn backoff(channel: &ChannelTime) -> Duration {
    channel.time.time_in(AirUse::Backoff)
}

/// Runs it, and looks at its channels whenever something is due.
fn watched(
    path: &mut Path<Packet>,
    offers: &[(Instant, Direction, Packet)],
    mut look: impl FnMut(Instant, Vec<ChannelTime>),
) -> Vec<Out> {
    let mut out = Vec::new();
    offers.iter().for_each(|(at, way, packet)| out.extend(offer(path, *at, *way, packet.clone())));
    while let Some(due) = path.next_departure() {
        look(due, path.air(due));
        out.extend(take_all(path, due));
    }
    out
}

#[test]
fn who_waits_with_packets_waits_on_its_own_channel() {
    // Full-duplex radios in a row of two hops: a channel for each hop and direction. Stations wait up to 100 ms after a burst.
    let full =
        RadioSpec { hops: 2, duplex: Duplex::Full, gap: Duration::from_millis(100), burst: 1, ..plain() };
    let places = |channels: &[ChannelTime]| -> Vec<_> {
        channels.iter().map(|channel| (channel.hop, channel.direction)).collect()
    };
    for (way, first_hop) in [(Forward, 0), (Reverse, 1)] {
        let mut path = build(&radio(full.clone()), 1);
        let mut waited = Duration::ZERO;
        let out = watched(&mut path, &together(way, 1..=5, 500), |now, channels| {
            assert_eq!(
                places(&channels),
                [(0, Some(Forward)), (0, Some(Reverse)), (1, Some(Forward)), (1, Some(Reverse))]
            );
            for channel in &channels {
                let used = channel.direction == Some(way);
                assert!(used || backoff(channel).is_zero(), "{way}: nobody waits for {channel:?}");
            }
            let second = channels.iter().find(|c| c.direction == Some(way) && c.hop != first_hop);
            let second = second.expect("two hops");
            // The first packet comes to the relay after two polls and 50 ms of data.
            assert!(now > at_ms(58) || backoff(second).is_zero(), "{way}: nothing has come to {second:?}");
            let first = channels.iter().find(|c| c.direction == Some(way) && c.hop == first_hop);
            waited = backoff(first.expect("two hops"));
        });
        assert_eq!(arrived(&out).len(), 5);
        assert!(waited > Duration::from_millis(50), "{way}: four waits of 50 ms in the mean, {waited}");
    }
}

#[test]
fn half_duplex_radios_have_one_channel_a_hop() {
    let path = build(&radio(RadioSpec { hops: 3, ..plain() }), 1);
    let places: Vec<_> = path.air(at_ms(1)).iter().map(|channel| (channel.hop, channel.direction)).collect();
    assert_eq!(places, [(0, None), (1, None), (2, None)]);
}

#[test]
fn an_exchange_is_accounted_for_when_it_is_over() {
    let mut path = build(&radio(plain()), 1);
    offer(&mut path, at_ms(5), Forward, sized(1, 1000));
    let total = |path: &Path<Packet>, ms| path.air(at_ms(ms)).remove(0).time.total();
    // Called at 5 ms, won at 33 ms, over with the link ACK at 155 ms.
    for (now, accounted) in [(4, 5), (20, 5), (100, 5), (150, 5)] {
        take_all(&mut path, at_ms(now));
        assert_eq!(total(&path, now.max(5)), Duration::from_millis(accounted), "at {now} ms");
    }
    take_all(&mut path, at_ms(160));
    assert_eq!(total(&path, 160), Duration::from_millis(160));
}

#[test]
fn a_packet_is_held_until_it_is_taken_and_waits_until_it_is_acknowledged() {
    let mut path = build(&radio(plain()), 1);
    offer(&mut path, at_ms(0), Forward, sized(1, 1000));
    assert_eq!(
        (path.held(), path.backlog(Forward), path.backlog(Reverse)),
        (1, Some(Bytes(1000)), Some(Bytes(0)))
    );
    assert_eq!(take_all(&mut path, at_ms(138)).len(), 1);
    assert_eq!((path.held(), path.backlog(Forward)), (0, Some(Bytes(1000))));
    take_all(&mut path, at_ms(150));
    assert_eq!(path.backlog(Forward), Some(Bytes(0)));
}

#[test]
fn a_link_header_is_sent_with_each_frame() {
    let headed = RadioSpec { header: Bytes(20), ..plain() };
    assert_eq!(base_delay(&radio(headed.clone()), Forward, Bytes(480)), Duration::from_millis(88));
    let mut path = build(&radio(headed), 1);
    let out = run(&mut path, &together(Forward, 1..=2, 480));
    // 38 ms of access, and 500 B each: 50 ms.
    assert_eq!(arrived(&out), [(1, 88), (2, 138)]);
    let link = counters_of(&path, "radio", Forward).link.expect("a link");
    assert_eq!((link.bytes_sent, link.max_backlog), (Bytes(1000), Bytes(960)));
}

#[test]
fn a_hopeless_frame_is_sent_as_often_as_it_may() {
    let hopeless = RadioSpec { ber: ber(0.1), attempts: Some(3), ..plain() };
    let mut path = build(&radio(hopeless), 1);
    let out = run(&mut path, &together(Forward, 1..=1, 1000));
    assert_eq!(out[0].3, Some(DropCause::LinkRetries));
    assert_eq!(counters_of(&path, "radio", Forward).link.expect("a link").bytes_sent, Bytes(3000));
}

#[test]
fn what_goes_on_is_not_given_up_however_long_the_queue_is() {
    // A packet every 150 ms, for 3 s.
    let spec =
        RadioSpec { give_up_after: Duration::from_secs(1), burst: 1, queue: Bytes(100_000), ..plain() };
    let out = run(&mut build(&radio(spec), 1), &together(Forward, 1..=20, 1000));
    assert_eq!(arrived(&out).len(), 20);
}

#[test]
fn what_was_given_up_leaves_room() {
    let stalls =
        RadioSpec { ber: ber(0.1), give_up_after: Duration::from_secs(1), queue: Bytes(2000), ..plain() };
    let mut path = build(&radio(stalls), 1);
    run(&mut path, &together(Forward, 1..=2, 1000));
    assert_eq!(path.backlog(Forward), Some(Bytes(0)));
    assert_eq!(offer(&mut path, at_ms(100_000), Forward, sized(3, 1000)), None);
}

#[test]
fn a_packet_as_long_as_the_mtu_is_not_refused() {
    let refuse = RadioSpec { oversize: Oversize::Refuse, mtu: Bytes(576), ..plain() };
    let fate = |size| {
        let out = run(&mut build(&radio(refuse.clone()), 1), &together(Forward, 1..=1, size));
        out[0].3
    };
    assert_eq!((fate(576), fate(577)), (None, Some(DropCause::Mtu)));
}

#[test]
fn polls_of_no_length_are_answered_before_the_caller_gives_up() {
    // Nothing turns around, nothing takes time: the answer comes at the moment at which the caller would give up.
    let instant = RadioSpec { poll: Some(Bytes(0)), duplex: Duplex::Full, ..plain() };
    let mut path = build(&radio(instant), 1);
    let out = run(&mut path, &together(Forward, 1..=4, 1000));
    // The first leaves alone, before the others have come; a link ACK of 2 ms; two frames of 100 ms; another link ACK.
    assert_eq!(arrived(&out), [(1, 100), (2, 202), (3, 302), (4, 404)]);
    take_all(&mut path, at_ms(406));
    assert_eq!(path.air(at_ms(406))[0].time.time_in(AirUse::Collision), Duration::ZERO);
}

#[test]
fn what_is_lost_inside_the_radios_meets_no_element_behind_them() {
    let hopeless = RadioSpec { ber: ber(0.1), attempts: Some(1), ..plain() };
    let specs = [radio(hopeless), vec![spec("delay", delay_ms(10))]].concat();
    let mut path = build(&specs, 1);
    let out = run(&mut path, &together(Forward, 1..=1, 1000));
    assert_eq!(out, [(at_ms(138), Forward, sized(1, 1000), Some(DropCause::LinkRetries))]);
    assert_eq!(counters_of(&path, "delay", Forward).offered, 0);
}

#[test]
fn a_relay_listens_for_both_of_its_hops() {
    let power = Some(RadioPower { send: Power(2_000_000), listen: Power(1_000_000) });
    let path = build(&radio(RadioSpec { power, hops: 2, ..plain() }), 1);
    // Three transceivers for two channels: 1.5 W each while nobody sends.
    for channel in path.air(at_ms(1000)) {
        let joules = channel.energy.expect("it is known what they draw").joules(AirUse::Idle);
        assert!((joules - 1.5).abs() < 1e-9, "{joules}");
    }
}

#[test]
fn uses_of_the_air_are_written_as_in_tables() {
    let names = AirUse::ALL.map(|what| what.to_string()).join(" ");
    assert_eq!(names, "data ack others poll link-ack turnaround damaged collision backoff idle");
    assert_eq!(format!("{:>5}|", AirUse::Ack), "  ack|");
}

#[test]
fn a_lone_packet_is_processed_by_each_station_that_it_comes_to() {
    // A relay that processes for longer than it answers goes on when it has.
    for (processing, ms) in [(5, 138 + 12 + 138 + 5), (20, 138 + 20 + 138 + 20)] {
        let specs = radio(RadioSpec { hops: 2, processing: Duration::from_millis(processing), ..plain() });
        let out = run(&mut build(&specs, 1), &together(Forward, 1..=1, 1000));
        assert_eq!(arrived(&out), [(1, ms)]);
        assert_eq!(base_delay(&specs, Forward, Bytes(1000)), Duration::from_millis(ms));
    }
}

#[test]
fn an_exchange_takes_its_access_its_answer_and_half_of_the_gap_beside_its_frames() {
    let spec = RadioSpec { gap: Duration::from_millis(100), ..plain() };
    assert_eq!(spec.exchange_overhead(), Duration::from_millis(38 + 12 + 50));
}

#[test]
fn the_least_mtu_and_a_queue_of_one_packet_are_enough() {
    let least = RadioSpec { mtu: Bytes(68), queue: Bytes(68), ..plain() };
    assert_eq!(arrived(&run(&mut build(&radio(least), 1), &together(Forward, 1..=1, 60))).len(), 1);
}

#[test]
fn patience_is_counted_from_when_there_was_something_to_send() {
    let spec = RadioSpec { give_up_after: Duration::from_secs(1), ..plain() };
    let offers = [(at_ms(5000), Forward, sized(1, 1000)), (at_ms(9000), Forward, sized(2, 1000))];
    assert_eq!(arrived(&run(&mut build(&radio(spec), 1), &offers)), [(1, 5138), (2, 9138)]);
}

#[test]
fn a_wait_for_an_answer_that_has_come_does_not_end_the_next_one() {
    // Polls of 10 ms, of which four are waited for: 60 ms after it turned around, a station would give up. The frame of a
    // millisecond, which nothing answers, is over after 51 ms.
    let spec = RadioSpec { poll: Some(Bytes(100)), link_ack: None, burst: 1, ..plain() };
    let mut path = build(&radio(spec), 1);
    let out = run(&mut path, &together(Forward, 1..=3, 10));
    assert_eq!(arrived(&out), [(1, 51), (2, 102), (3, 153)]);
}

/// The draws of two stations that want the air at once, and wait after each burst: what a seed gives never changes.
#[test]
fn the_arrivals_of_a_seed_never_change() {
    let contended = RadioSpec { gap: Duration::from_secs(1), burst: 1, ..plain() };
    let mut path = build(&radio(contended), 7);
    let offers: Vec<_> = (1..=8)
        .flat_map(|id| [(at_ms(0), Forward, sized(id, 100)), (at_ms(0), Reverse, sized(id + 10, 100))])
        .collect();
    assert_eq!(
        arrived(&run(&mut path, &offers)),
        [
            (1, 366),
            (11, 668),
            (2, 1222),
            (12, 2005),
            (3, 2156),
            (13, 2857),
            (4, 2969),
            (14, 3186),
            (15, 3554),
            (16, 3625),
            (5, 4129),
            (6, 4331),
            (17, 4617),
            (18, 5001),
            (7, 5367),
            (8, 6067)
        ]
    );
}
