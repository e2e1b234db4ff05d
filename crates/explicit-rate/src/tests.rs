mod datagrams;
mod hostile;
mod wire;

use crate::{Datagram, DriverSettings, Outcome, Paced, Plain, Trip, window_for};
use farpath_tcp::cc::Pace;
use farpath_tcp::{Connection, Endpoint, Flags, Seq};
use farpath_tia1039::{Message, QosMark, RateType, RateUnit, Rounding, Structure, Structures};
use farpath_units::{Bytes, Duration, Instant, Rate};
use wire::{Wire, at, grants, losing, lowered, mbit, ms, size, wants};

fn both(megabit_per_s: u64) -> [Option<super::DriverSettings>; 2] {
    [Some(wants(megabit_per_s)), Some(wants(megabit_per_s))]
}

#[test]
fn the_rate_is_negotiated_in_the_three_packets_of_the_handshake() {
    let mut wire = Wire::new(1_000_000, both(100), ms(20), grants(30));
    wire.run(at(45));
    let handshake: Vec<(usize, usize, QosMark)> = wire.sent[..3]
        .iter()
        .map(|(_, from, d)| (*from, d.structures.map_or(0, |structures| structures.count()), d.mark))
        .collect();
    assert_eq!(handshake, [(0, 1, QosMark::Signal), (1, 2, QosMark::Signal), (0, 1, QosMark::Signal)]);
    let [_, synack, ack] = &wire.sent[..3] else { panic!("three") };
    let messages = |d: &Datagram| d.structures.expect("it has").iter().map(|s| s.message).collect::<Vec<_>>();
    assert_eq!(messages(&synack.2), [Message::Response, Message::Request]);
    assert_eq!(messages(&ack.2), [Message::Response]);
    // Data follows at once, marked, and says nothing else.
    assert!(wire.sent[3].2.segment.len > 0 && wire.sent[3].0 == at(40));
    assert_eq!((wire.sent[3].2.mark, wire.sent[3].2.structures), (QosMark::Flow, None));
    // 30 Mbit/s is 29 984 kbit/s in the rate code.
    assert_eq!(
        wire.drivers[0].as_ref().and_then(|d| d.granted()).map(|rate| rate.bit_per_s()),
        Some(29_984_000)
    );
}

#[test]
fn the_first_round_trip_is_sent_at_the_grant_and_never_more() {
    let mut wire = Wire::new(4_000_000, both(100), ms(20), grants(30));
    wire.run(at(3000));
    assert_eq!(wire.read, 4_000_000);
    let first = wire.rate_between(at(40), at(80));
    // 100 packets, give or take a burst at either end.
    assert!((0.97 * 29.984e6..1.03 * 29.984e6).contains(&first), "{first}");
    // Never more than the rate and a burst of two packets: what a router polices.
    let mut ahead = 0.0_f64;
    let mut last = at(40);
    for (now, _, datagram) in wire.sent.iter().filter(|(_, from, d)| *from == 0 && d.segment.len > 0) {
        ahead = (ahead - 29.984e6 * (*now - last).as_secs_f64()).max(0.0) + size(datagram).0 as f64 * 8.0;
        last = *now;
        assert!(ahead <= 29.984e6 * 0.0156, "{ahead} bit at {now}");
    }
    assert_eq!(wire.ends[0].sender().stats().retransmissions, 0);
}

#[test]
fn losses_are_repaired_at_the_same_rate() {
    let mut wire = Wire::new(20_000_000, both(100), ms(20), losing(20, 3, grants(30)));
    wire.run(at(20_000));
    assert_eq!(wire.read, 20_000_000);
    for second in 0..5 {
        let rate = wire.rate_between(at(100 + 1000 * second), at(1100 + 1000 * second));
        assert!((rate / 29.984e6 - 1.0).abs() < 0.02, "{rate} in second {second}");
    }
    assert_eq!(wire.drivers[0].as_ref().map(|d| d.outcome()), Some(Outcome::Granted));
    assert_eq!(wire.ends[0].sender().stats().timeouts, 0);
}

#[test]
fn a_cut_is_followed_within_one_and_a_half_round_trips() {
    let mut pushed = false;
    let router: wire::Router = Box::new(move |now, from, datagram| {
        let cut = now >= at(500);
        let mut out = vec![lowered(datagram, if cut { 10 } else { 30 })];
        // The router says so by a packet of its own behind a data packet.
        if cut && !pushed && from == 0 && datagram.segment.len > 0 {
            pushed = true;
            let available =
                farpath_tia1039::RateUnit::KbitPerS.encode(10_000_000, farpath_tia1039::Rounding::Down);
            let push = Structure { message: Message::Renegotiate, mark: 1, ..Structure::request(available) };
            let mut segment = datagram.segment;
            (segment.len, segment.flags) = (0, Flags::ACK);
            out.push(Datagram { segment, mark: QosMark::Signal, structures: Some(Structures::one(push)) });
        }
        out
    });
    let mut wire = Wire::new(100_000_000, both(100), ms(50), router);
    wire.run(at(2000));
    let before = wire.rate_between(at(300), at(500));
    let after = wire.rate_between(at(650), at(850));
    assert!((before / 29.984e6 - 1.0).abs() < 0.02 && (after / 10e6 - 1.0).abs() < 0.03, "{before} {after}");
    let driver = wire.drivers[0].as_ref().expect("it has one");
    assert_eq!((driver.counters().cuts, driver.counters().raises), (1, 0));
    assert_eq!(wire.ends[0].sender().stats().retransmissions, 0);
}

#[test]
fn more_is_asked_for_after_128_packets_and_a_round_trip() {
    let mut wire = Wire::new(100_000_000, both(100), ms(50), grants(30));
    wire.run(at(2000));
    let asks: Vec<Instant> = wire
        .sent
        .iter()
        .filter(|(_, from, d)| {
            *from == 0 && d.structures.is_some_and(|s| s.first.message == Message::Renegotiate)
        })
        .map(|(now, ..)| *now)
        .collect();
    // 128 packets are 51 ms at this rate; the round trip of 100 ms is longer.
    assert!((17..=19).contains(&asks.len()), "{}", asks.len());
    assert!(asks.windows(2).all(|pair| pair[1] - pair[0] >= ms(100)));
    let mut short = Wire::new(100_000_000, both(100), ms(5), grants(30));
    short.run(at(2010));
    let counters = *short.drivers[0].as_ref().expect("it has one").counters();
    assert!((37..=40).contains(&counters.asked), "{counters:?}: every 51 ms");
    assert!(counters.responses + 1 >= counters.asked, "{counters:?}");
}

#[test]
fn room_that_comes_is_taken_with_the_next_renegotiation() {
    let router: wire::Router =
        Box::new(|now, _, datagram| vec![lowered(datagram, if now < at(500) { 30 } else { 80 })]);
    let mut wire = Wire::new(100_000_000, both(100), ms(20), router);
    wire.run(at(1500));
    let rate = wire.rate_between(at(800), at(1400));
    assert!((rate / 80e6 - 1.0).abs() < 0.02, "{rate}");
}

#[test]
fn only_a_proven_grant_between_capable_ends_replaces_tcp() {
    // Times of plain TCP, to the nanosecond: nothing of the driver is left.
    let plain = |settings: [Option<super::DriverSettings>; 2], router: wire::Router| {
        let mut wire = Wire::new(2_000_000, settings, ms(20), router);
        wire.run(at(10_000));
        assert_eq!(wire.read, 2_000_000);
        let sent: Vec<_> = wire.sent.iter().map(|(now, from, d)| (*now, *from, d.segment)).collect();
        (sent, wire.drivers[0].as_ref().map(|driver| driver.outcome()))
    };
    let pass = || -> wire::Router { Box::new(|_, _, datagram| vec![datagram]) };
    let (nobody, _) = plain([None, None], pass());
    let (no_peer, outcome) = plain([Some(wants(100)), None], grants(30));
    assert_eq!(outcome, Some(Outcome::Plain(Plain::PeerIncapable)));
    assert_eq!(no_peer, nobody);
    let (no_client, _) = plain([None, Some(wants(100))], grants(30));
    assert_eq!(no_client, nobody);
    let (no_router, outcome) = plain(both(100), pass());
    assert_eq!(outcome, Some(Outcome::Plain(Plain::NoRouter)));
    // The answer to the peer's request took an ACK of its own; data is where it was.
    let data = |sent: &[(Instant, usize, farpath_tcp::Segment)]| -> Vec<(Instant, u16, farpath_tcp::Seq)> {
        sent.iter().filter(|(.., s)| s.len > 0).map(|(now, _, s)| (*now, s.len, s.seq)).collect()
    };
    assert_eq!(data(&no_router), data(&nobody));
    let (granted, outcome) = plain(both(100), grants(30));
    assert_eq!(outcome, Some(Outcome::Granted));
    assert_ne!(granted, nobody);
}

#[test]
fn a_grant_is_kept_at_the_threshold_and_given_up_above_it() {
    for (per_mille, most) in [(50, None), (100, None), (150, Some(6000)), (200, Some(2500)), (500, Some(600))]
    {
        let mut wire = Wire::new(20_000_000, both(100), ms(20), losing(per_mille, 11, grants(30)));
        wire.run(at(5500));
        let driver = wire.drivers[0].as_ref().expect("it has one");
        let expected = if most.is_none() { Outcome::Granted } else { Outcome::GivenUp(Trip::Loss) };
        assert_eq!(driver.outcome(), expected, "{per_mille} of a thousand");
        let packets = wire.sent_by_grant().count();
        assert!(most.is_none_or(|most| packets < most), "{per_mille}: {packets} packets");
    }
}

#[test]
fn a_blind_bottleneck_ends_the_grant_and_the_losses() {
    let mut wire = Wire::new(200_000_000, both(100), ms(20), grants(95)).over(mbit(50), ms(60));
    wire.run(at(2000));
    assert!(matches!(wire.drivers[0].as_ref().map(|d| d.outcome()), Some(Outcome::GivenUp(_))));
    let before = wire.ends[0].sender().tally();
    wire.run(at(12_000));
    let after = wire.ends[0].sender().tally();
    let delivered = after.delivered - before.delivered;
    let share = (after.lost - before.lost) as f64 / delivered as f64;
    assert!(share < 0.05, "{share}");
    // TCP fills the line as ever.
    assert!(delivered > 50_000_000, "{delivered}");
}

#[test]
fn an_over_grant_is_seen_whether_much_is_lost_or_a_queue_stands() {
    // The line has 50, its queue 400 packets. At 52 and 55 it loses 4 and 9 % for ever, and a threshold of 10 % never notices; at 52 the
    // queue takes 2.4 s to fill.
    for (granted, trip, within) in
        [(52, Trip::Queue, 3100), (55, Trip::Queue, 1500), (60, Trip::Queue, 1500), (95, Trip::Loss, 400)]
    {
        let mut wire = Wire::new(200_000_000, both(100), ms(20), grants(granted)).over(mbit(50), ms(96));
        wire.run(at(4000));
        assert_eq!(wire.drivers[0].as_ref().map(|d| d.outcome()), Some(Outcome::GivenUp(trip)), "{granted}");
        let last = wire.sent_by_grant().last().map(|(now, ..)| *now);
        assert!(last.is_some_and(|last| last < at(within)), "{granted}: {last:?}");
    }
}

#[test]
fn an_answer_that_was_lost_with_the_third_packet_is_repeated() {
    let mut dropped = 0;
    let router: wire::Router = Box::new(move |_, from, datagram| {
        let third =
            from == 0 && !datagram.segment.flags.contains(Flags::SYN) && datagram.structures.is_some();
        if third && dropped == 0 {
            dropped += 1;
            return Vec::new();
        }
        vec![lowered(datagram, 30)]
    });
    // The server sends: what the client says is all in its ACKs.
    let mut wire = Wire::new(0, both(100), ms(20), router);
    wire.run(at(100));
    assert_eq!(wire.drivers[1].as_ref().map(|d| d.outcome()), Some(Outcome::Waiting));
    let mut unwritten = 200_000;
    unwritten -= wire.ends[1].write(unwritten);
    wire.run(at(2000));
    assert_eq!(unwritten, 0);
    assert_eq!(wire.drivers[1].as_ref().map(|d| d.outcome()), Some(Outcome::Granted));
}

#[test]
fn a_router_that_missed_the_start_is_told_again() {
    let mut asked = false;
    let router: wire::Router = Box::new(move |now, from, datagram| {
        let mut out = vec![lowered(datagram, 30)];
        if now > at(300) && !asked && from == 0 && datagram.mark == QosMark::Flow {
            asked = true;
            let missed = Structure { message: Message::MissedStart, ..Structure::default() };
            let segment = farpath_tcp::Segment { len: 0, ..datagram.segment };
            out.push(Datagram { segment, mark: QosMark::Signal, structures: Some(Structures::one(missed)) });
        }
        out
    });
    let mut wire = Wire::new(10_000_000, both(100), ms(20), router);
    wire.run(at(1000));
    let resent = wire.sent.iter().filter(|(_, from, d)| {
        *from == 0 && d.structures.is_some_and(|s| s.first.message == Message::ResendStart)
    });
    assert_eq!(resent.count(), 1);
}

#[test]
fn a_trickle_asks_for_more_by_the_clock() {
    // 4 kbit/s at first: three seconds a packet. From 300 ms on there are 30 Mbit/s.
    let router: wire::Router = Box::new(|now, _, mut datagram| {
        let trickle = now < at(300);
        let limit = farpath_tia1039::RateUnit::KbitPerS.encode(4_000, farpath_tia1039::Rounding::Down);
        for structure in datagram.structures.iter_mut().flat_map(|structures| structures.iter_mut()) {
            if trickle && structure.message.asks() {
                structure.available = limit;
            }
        }
        vec![lowered(datagram, 30)]
    });
    let mut wire = Wire::new(1_000_000, both(100), ms(20), router);
    wire.run(at(1000));
    let first = wire.sent_by_grant().take_while(|(now, ..)| *now < at(500)).count();
    assert_eq!(first, 1);
    // Asked at 500 ms, answered a round trip later; a megabyte at 30 Mbit/s takes 280 ms.
    assert_eq!(wire.read, 1_000_000);
    assert!((wire.rate_between(at(560), at(780)) / 29.984e6 - 1.0).abs() < 0.05);
}

#[test]
fn a_flow_that_is_routed_anew_is_known_to_its_new_router_within_a_round_trip() {
    // From 500 ms on another router, of 10 Mbit/s, which asks who that is (CD 4) until it is told (CD 6).
    let (mut known, mut asked_at) = (false, None);
    let router: wire::Router = Box::new(move |now, from, datagram| {
        if now < at(500) {
            return vec![lowered(datagram, 30)];
        }
        known |= datagram.structures.is_some_and(|s| s.first.message == Message::ResendStart);
        let mut out = vec![lowered(datagram, 10)];
        let again = asked_at.is_none_or(|asked| now >= asked + ms(100));
        if !known && again && from == 0 && datagram.mark == QosMark::Flow {
            asked_at = Some(now);
            let missed = Structure { message: Message::MissedStart, ..Structure::default() };
            let segment = farpath_tcp::Segment { len: 0, ..datagram.segment };
            out.push(Datagram { segment, mark: QosMark::Signal, structures: Some(Structures::one(missed)) });
        }
        out
    });
    let mut wire = Wire::new(100_000_000, both(100), ms(20), router);
    wire.run(at(1500));
    assert!((wire.rate_between(at(300), at(500)) / 29.984e6 - 1.0).abs() < 0.05);
    // Told, asked and answered: two round trips.
    let after = wire.rate_between(at(600), at(1500));
    assert!((after / 9.984e6 - 1.0).abs() < 0.02, "{after}");
    assert_eq!(wire.drivers[0].as_ref().map(|driver| driver.outcome()), Some(Outcome::Granted));
}

#[test]
fn an_edge_that_strips_structures_and_codepoints_leaves_tcp() {
    let stripped = |datagram: Datagram| Datagram::plain(datagram.segment);
    for (what, flags, outcome) in [
        ("SYN", Flags::SYN, Outcome::Plain(Plain::PeerIncapable)),
        ("SYN/ACK", Flags::SYN | Flags::ACK, Outcome::Plain(Plain::PeerIncapable)),
    ] {
        let router: wire::Router = Box::new(move |_, _, datagram| {
            let datagram = lowered(datagram, 30);
            vec![if datagram.segment.flags == flags { stripped(datagram) } else { datagram }]
        });
        let mut wire = Wire::new(1_000_000, both(100), ms(20), router);
        wire.run(at(5000));
        assert_eq!(wire.read, 1_000_000, "{what}");
        assert_eq!(wire.drivers[0].as_ref().map(|driver| driver.outcome()), Some(outcome), "{what}");
    }
    // After the handshake: what was granted stands, and nothing above it is believed.
    let router: wire::Router = Box::new(move |_, _, datagram| {
        let syn = datagram.segment.flags.contains(Flags::SYN);
        vec![if syn { lowered(datagram, 30) } else { stripped(datagram) }]
    });
    let mut wire = Wire::new(10_000_000, both(100), ms(20), router);
    wire.run(at(5000));
    assert_eq!(wire.read, 10_000_000);
    assert!((wire.rate_between(at(500), at(2000)) / 29.984e6 - 1.0).abs() < 0.02);
}

#[test]
fn buffers_that_keep_the_rate_through_repairs() {
    // By the formula with a logarithm 58 MB; measured on Linux: 64 MB are enough, 32 MB are not.
    let window = window_for(mbit(95), Duration::from_secs(1), 100).0;
    assert!((56_000_000..64_000_000).contains(&window), "{window}");
    assert_eq!(window_for(mbit(80), ms(100), 0), Bytes(1_000_000));
    // Ten packets, of which one is lost once: of two windows.
    let slow = Rate::from_bit_per_s(8 * 14_480).expect("above zero");
    assert_eq!(window_for(slow, Duration::from_secs(1), 100), Bytes(2 * 14_480));
}

#[test]
fn bursts_are_half_of_what_is_tolerated_and_one_packet_at_the_least() {
    // BT = 5 are 15.6 ms; of 30 Mbit/s 58 593 bytes, half of which are 19 packets.
    for (bit_per_s, bytes_per_s, most_burst) in
        [(64_000, 8_000, 1), (30_000_000, 3_750_000, 19), (1_000_000_000, 125_000_000, 651)]
    {
        let rate = Rate::from_bit_per_s(bit_per_s).expect("above zero");
        assert_eq!(
            wants(100).pace(rate),
            Pace { bytes_per_s, overhead: 52, least_burst: 1, most_burst, unpaced: 0 }
        );
    }
}

#[test]
fn a_connection_is_established_between_its_handshake_and_its_end() {
    let mut wire = Wire::new(0, both(100), ms(20), grants(30));
    assert!(!wire.ends[0].path().established);
    wire.run(at(45));
    assert!(wire.ends[0].path().established);
    wire.ends[0].abort(at(45));
    assert!(!wire.ends[0].path().established);
}

/// How many structures with such a message left one end.
fn said(wire: &Wire, end: usize, message: Message) -> usize {
    let all = wire.sent.iter().filter(|(_, from, _)| *from == end);
    all.flat_map(|(.., d)| d.structures).filter(|structures| structures.first.message == message).count()
}

#[test]
fn the_answer_of_the_handshake_is_repeated_until_the_peer_is_seen_to_have_it() {
    // The server sends; the client has ACKs only.
    let download = |router: wire::Router| {
        let mut wire = Wire::new(0, both(100), ms(20), router);
        wire.run(at(100));
        let sent = wire.sent.iter().filter(|(_, from, _)| *from == 0).count();
        assert_eq!(sent, 2, "a SYN, and one packet that ends the handshake");
        for packet in 0..50 {
            assert_eq!(wire.ends[1].write(1000), 1000);
            wire.run(at(150 + 50 * packet));
        }
        let acks = wire.sent.iter().filter(|(_, from, _)| *from == 0).count() - sent;
        assert!(acks > 32, "{acks}");
        wire
    };
    // Marked data says that the server has it. Later ones answer what it asks later.
    let granted = download(grants(30));
    let asked = said(&granted, 1, Message::Renegotiate);
    assert_eq!((asked > 0, said(&granted, 0, Message::Response)), (true, 1 + asked));
    // Who only acknowledges asks for no more.
    assert_eq!(said(&granted, 0, Message::Renegotiate), 0);
    // A server that was granted nothing marks nothing: 32 ACKs carry the answer.
    let plain = download(Box::new(|_, _, datagram| vec![datagram]));
    assert_eq!((said(&plain, 0, Message::Response), said(&plain, 1, Message::Renegotiate)), (32, 0));
    // The server's answer is in the SYN/ACK, and the ACK of that says that it has come.
    let mut upload = Wire::new(1_000_000, both(100), ms(20), Box::new(|_, _, datagram| vec![datagram]));
    upload.run(at(2000));
    assert_eq!((upload.read, said(&upload, 1, Message::Response)), (1_000_000, 1));
}

#[test]
fn a_guarantee_is_closed_once_when_all_is_acknowledged() {
    let mut settings = wants(30);
    settings.request.rate_type = RateType::Guaranteed;
    let mut wire = Wire::new(200_000, [Some(settings), Some(wants(30))], ms(20), grants(30));
    wire.run(at(60));
    wire.ends[0].close();
    wire.run(at(1000));
    assert_eq!((wire.read, said(&wire, 0, Message::Close)), (200_000, 1));
    let close =
        wire.sent.iter().find(|(.., d)| d.structures.is_some_and(|s| s.first.message == Message::Close));
    let last = wire.sent_by_grant().last().map(|(now, ..)| *now + ms(40));
    assert!(close.map(|(now, ..)| *now) >= last, "{close:?} {last:?}");
}

#[test]
fn less_than_the_guarantee_is_confirmed_behind_the_handshake() {
    let less = RateUnit::KbitPerS.encode(2_000_000, Rounding::Down);
    let router: wire::Router = Box::new(move |_, _, mut datagram| {
        for structure in datagram.structures.iter_mut().flat_map(|structures| structures.iter_mut()) {
            if structure.message.asks() {
                structure.guaranteed = less;
            }
        }
        vec![lowered(datagram, 30)]
    });
    let mut settings = DriverSettings { guaranteed: Some(mbit(4)), ..wants(100) };
    settings.request.rate_type = RateType::Composite;
    let mut wire = Wire::new(10_000, [Some(settings.clone()), Some(settings)], ms(20), router);
    wire.run(at(45));
    let client = wire.sent.iter().filter(|(_, from, _)| *from == 0).filter_map(|(.., d)| d.structures);
    let client: Vec<_> = client.map(|s| (s.first.message, s.first.guaranteed == less)).collect();
    assert_eq!(client, [(Message::Request, false), (Message::Response, true), (Message::Confirmation, true)]);
}

#[test]
fn after_an_idle_second_the_rate_is_asked_for_again_before_data() {
    // All that is asked for is granted: nothing else asks again.
    let mut wire = Wire::new(0, both(100), ms(20), grants(200));
    wire.run(at(100));
    assert_eq!(wire.ends[0].write(30_000), 30_000);
    wire.run(at(300));
    for (idle, asks) in [(950, 0), (1000, 0), (1001, 1), (1400, 2), (400, 2)] {
        let last = wire.sent_by_grant().last().expect("data").0;
        // Whoever looks meanwhile changes nothing.
        wire.run(last + ms(idle - 50));
        wire.run(last + ms(idle));
        assert_eq!(wire.ends[0].write(30_000), 30_000);
        wire.run(last + ms(idle + 200));
        assert_eq!(said(&wire, 0, Message::Renegotiate), asks, "{idle} ms");
    }
}

#[test]
fn a_copy_that_carries_an_answer_is_no_duplicate_ack() {
    // How much is sent again without SACK when the last ACK has come three times more.
    let repaired = |structures: Option<Structures>| {
        let mut stack = wire::stack();
        (stack.recovery.sack, stack.recovery.rack, stack.recovery.tail_loss_probe) = (false, false, false);
        let mut wire = Wire::new(5_000_000, both(100), ms(20), grants(30));
        wire.ends = [Connection::connect(&stack, Seq(1)), Connection::listen(&stack, Seq(77))];
        wire.ends.iter_mut().for_each(Paced::measure_delivery);
        wire.run(at(100));
        let come = |(sent, from, _): &&(Instant, usize, Datagram)| *from == 1 && *sent + ms(20) <= at(100);
        let last = wire.sent.iter().rev().find(come).expect("ACKs").2;
        for _ in 0..3 {
            wire.deliver(0, &Datagram { structures, ..last });
        }
        wire.run(at(110));
        wire.ends[0].sender().stats().retransmissions
    };
    assert!(repaired(None) > 0);
    let answer = Structure { message: Message::Response, ..Structure::default() };
    assert_eq!(repaired(Some(Structures::one(answer))), 0);
}
