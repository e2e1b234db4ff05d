//! The running kernel asks, a flow router grants, and TCP sends at it.
#![cfg(target_os = "linux")]

use crate::common;

use common::{
    Bench, Signal, Transfer, V6, WAYS, delay, element, link, losing, rate, router, router_lines, skipped,
    unless_held_up,
};
use farpath_driver::{Buffers, Counter, Limits, Outcome, Settings};
use farpath_elements::{ElementKind, RateChange};
use farpath_emu::{Backend, PacketEvent};
use farpath_explicit_rate::window_for;
use farpath_path::Direction::{Forward, Reverse};
use farpath_tcp::{Flags, Segment, wire};
use farpath_tia1039::{Carrier, Message, Priority, RateType, RateUnit, RateWord};
use farpath_units::{Bytes, Duration, Instant};

const TUN: common::Way = (Backend::Tun, true);

fn payload(signal: &Signal) -> String {
    signal.bytes[signal.read.place.clone()].iter().map(|byte| format!("{byte:02x}")).collect()
}

fn messages(signals: &[Signal]) -> Vec<Message> {
    signals
        .iter()
        .flat_map(|signal| signal.read.structures.unwrap().iter().map(|one| one.message).collect::<Vec<_>>())
        .collect()
}

/// Of payload, in bit/s, where so many bits/s of IP packets of 1500 bytes are granted.
fn paced(granted: u64) -> u64 {
    granted / 8 * 1448 / 1500 * 8
}

fn settings() -> Settings {
    Settings::new("cubic")
}

#[test]
fn the_handshake_carries_the_bytes_of_the_trials() {
    if skipped() {
        return;
    }
    let path = vec![delay(5), router(30_000_000, 12_000_000)];
    for way in WAYS {
        let bench = Bench::new(path.clone(), way, &settings(), 99_968_000);
        let done = bench.transfer(&Transfer::of(20_000));
        assert_eq!(done.control, bench.control);
        // As a kernel's exchange was captured once, over a router of 30 Mbit/s and 12 Mbit/s back.
        let sent = bench.signals(PacketEvent::Sent, Forward);
        assert_eq!(payload(&sent[0]), "00000000610d00008080100500100000");
        let arrived = bench.signals(PacketEvent::Received, Forward);
        assert_eq!(payload(&arrived[0]), "000000005da900008080100500110000");
        let back = bench.signals(PacketEvent::Sent, Reverse);
        assert_eq!(payload(&back[0]), "0a0900015da90000808020050011a05200000000610d00008080100500100000");
        let arrived = bench.signals(PacketEvent::Received, Reverse);
        assert_eq!(payload(&arrived[0]), "0a0900015da90000808020050011a052000000005aee00008080100500110000");
        assert_eq!(payload(&sent[1]), "0a0900025aee00008080200500111389");
        for signal in bench.signals(PacketEvent::Received, Forward) {
            wire::decode(&signal.bytes).expect("its checksums are right");
        }
        assert_eq!(*bench.watch.malformed.lock().unwrap(), [""; 0]);
        // All data is marked, and paced at 29.984 Mbit/s of IP packets.
        let (data, marked) = *bench.watch.data.lock().unwrap();
        assert!(data > 0 && data == marked, "{marked} of {data} marked");
        assert_eq!(done.info.pacing_rate.map(|rate| rate.bit_per_s()), Some(paced(29_984_000)));
    }
}

#[test]
fn ipv6_says_the_same_in_hop_by_hop_options() {
    if skipped() {
        return;
    }
    let path = vec![delay(5), router(30_000_000, 12_000_000)];
    for way in WAYS {
        let bench = Bench::new(path.clone(), way, &settings(), 99_968_000);
        let done = bench.transfer(&Transfer { ends: V6, ..Transfer::of(1_000_000) });
        let sent = bench.signals(PacketEvent::Sent, Forward);
        assert_eq!(payload(&sent[0]), "0601200c610d00008080100500100000");
        assert!(sent.iter().all(|signal| signal.read.carrier == Carrier::HopByHop));
        let arrived = bench.signals(PacketEvent::Received, Reverse);
        let label = sent[0].read.flow_label;
        let answer =
            format!("0603200c5da9000080802005{:08x}0100200c5aee00008080100500110000", 0x0010_0000 | label);
        assert_eq!(payload(&arrived[0]), answer, "with the flow label over M");
        for signal in sent.iter().chain(&arrived) {
            wire::decode(&signal.bytes).expect("its checksums are right");
        }
        // 700 packets: asked for again, and answered.
        assert!(messages(&sent).contains(&Message::Renegotiate), "{:?}", messages(&sent));
        assert_eq!(*bench.watch.malformed.lock().unwrap(), [""; 0]);
        assert_eq!((bench.count(Counter::Malformed), bench.count(Counter::Failed)), (0, 0));
        // Headers take 20 bytes more.
        let paced = 29_984_000_u64 / 8 * 1428 / 1500 * 8;
        assert_eq!(done.info.pacing_rate.map(|rate| rate.bit_per_s()), Some(paced));
        assert_eq!(done.last_flow().cuts + done.last_flow().raises, 0);
    }
}

#[test]
fn a_line_that_shrinks_is_followed_and_one_that_grows_too() {
    if skipped() {
        return;
    }
    unless_held_up(|| {
        let at = |ms, bit_per_s| RateChange {
            at: Instant::ZERO + Duration::from_millis(ms),
            rate: rate(bit_per_s),
        };
        let mut lines = router_lines(30_000_000, 12_000_000);
        lines.changes.forward = vec![at(600, 10_000_000), at(1200, 20_000_000)];
        // Beside the sender, nothing is on its way to the router when the answer passes.
        let path = vec![element("router", ElementKind::FlowRouter(Box::new(lines))), delay(10)];
        let bench = Bench::new(path, TUN, &settings(), 100_000_000);
        let done = bench.transfer(&Transfer::of(4_000_000));
        let rates: Vec<u64> =
            done.watched.iter().filter_map(|(_, info, _)| Some(info.pacing_rate?.bit_per_s())).collect();
        for granted in [29_984_000, 10_000_000, 20_000_000] {
            assert!(rates.contains(&paced(granted)), "never paced for a grant of {granted}: {rates:?}");
        }
        let flow = done.last_flow();
        assert!(flow.cuts >= 1 && flow.raises >= 1, "{flow:?}");
        // The router polices a cut as soon as its answer has passed. What a busy machine is late by until TCP has its next ACK leaves at
        // the old rate: in 120 ms 20 Mbit/s too much are 200 packets, and until the line grows, where nobody follows, 1000. No queue
        // drops anything.
        let dropped = bench.watch.dropped.lock().unwrap().clone();
        assert!(flow.lost <= 200 && dropped.iter().all(|cause| cause == "Policing"), "{flow:?} {dropped:?}");
        // Every 128 packets, of 2800; and it was obeyed, so that nobody had to say it twice.
        assert!((10..40).contains(&flow.requests), "{flow:?}");
        assert_eq!(bench.count(Counter::UnaskedRaises) + bench.count(Counter::AboveRequest), 0);
        // Were the peer's driver gone, TCP would take a signal for data, but for a sequence number that it has acknowledged.
        let signals = bench.signals(PacketEvent::Sent, Forward);
        let seq = |signal: &Signal| u32::from_be_bytes(signal.bytes[24..28].try_into().unwrap());
        let first_data = seq(&signals[0]).wrapping_add(1);
        let mut acknowledged = first_data;
        for signal in &signals[2..] {
            wire::decode(&signal.bytes).expect("its checksums are right");
            // 16 bytes of it end where what is acknowledged ends; that never goes back.
            let end = seq(signal).wrapping_add(16);
            assert!(end.wrapping_sub(acknowledged) < 1 << 31, "{end} before {acknowledged}");
            acknowledged = end;
        }
        assert!(acknowledged != first_data);
    });
}

#[test]
fn a_guarantee_is_asked_for_kept_and_taken_back() {
    if skipped() {
        return;
    }
    let fall = RateChange { at: Instant::ZERO + Duration::from_millis(700), rate: rate(10_000_000) };
    for (rate_type, code) in [(RateType::Maximum, 2), (RateType::Guaranteed, 3)] {
        let mut lines = router_lines(30_000_000, 30_000_000);
        lines.changes.forward = vec![fall];
        let path = vec![delay(5), element("router", ElementKind::FlowRouter(Box::new(lines)))];
        let mut settings = settings();
        settings.request.rate_type = rate_type;
        settings.request.preemption = Priority::HIGHEST;
        let bench = Bench::new(path, TUN, &settings, 15_000_000);
        let done = bench.transfer(&Transfer::of(4_000_000));
        // GR in place of AR, of type 2 or 3, and priority 63.
        let sent = bench.signals(PacketEvent::Sent, Forward);
        let asked = sent[0].read.structures.expect("a request").first;
        assert_eq!(
            (asked.rate_type, asked.available, asked.preemption),
            (rate_type, RateWord::ZERO, Priority::HIGHEST)
        );
        assert_eq!(RateUnit::KbitPerS.decode(asked.guaranteed), 15_008_000);
        assert_eq!(payload(&sent[0])[16..24], format!("fc801{code}05"), "PP, DP, CD and TP, CH and BT");
        let rates: Vec<u64> =
            done.watched.iter().filter_map(|(_, info, _)| Some(info.pacing_rate?.bit_per_s())).collect();
        assert!(rates.contains(&paced(15_008_000)), "{rates:?}");
        // A line of 10 Mbit/s has no room for it.
        assert_eq!(bench.plain(Outcome::Withdrawn), 1, "{:?}", done.last_flow());
        assert_eq!(bench.count(Counter::AboveRequest) + bench.count(Counter::Malformed), 0);
    }
}

#[test]
fn a_guarantee_that_does_not_fit_is_refused_and_let_go_of() {
    if skipped() {
        return;
    }
    // The first router has room for it, the second has not.
    let [first, second] = [("near", 30_000_000), ("far", 10_000_000)].map(|(name, bit_per_s)| {
        element(name, ElementKind::FlowRouter(Box::new(router_lines(bit_per_s, 30_000_000))))
    });
    let path = vec![first, delay(5), second];
    let mut settings = settings();
    settings.request.rate_type = RateType::Guaranteed;
    let bench = Bench::new(path, TUN, &settings, 15_000_000);
    let done = bench.transfer(&Transfer::of(400_000));
    assert_eq!((done.control.as_str(), bench.plain(Outcome::Refused)), ("cubic", 1));
    let said = messages(&bench.signals(PacketEvent::Sent, Forward));
    assert!(said.contains(&Message::Confirmation), "{said:?}");
    let (data, marked) = *bench.watch.data.lock().unwrap();
    assert!(data > 0 && marked == 0, "{marked} of {data} marked");
}

#[test]
fn a_lost_third_packet_is_made_good_by_the_next_ones() {
    if skipped() {
        return;
    }
    // Forward: the SYN is packet 1, the ACK packet 2.
    let bench = Bench::new(
        vec![delay(5), losing(&[2]), router(30_000_000, 12_000_000)],
        TUN,
        &settings(),
        99_968_000,
    );
    bench.transfer_back(&Transfer::of(300_000));
    let answers: Vec<_> = bench.signals(PacketEvent::Received, Forward);
    assert_eq!(messages(&answers)[..2], [Message::Request, Message::Response], "again");
    let (data, marked) = *bench.watch.data_back.lock().unwrap();
    assert!(
        marked > 0 && data > marked,
        "{marked} of {data}: what left before the answer came is not marked"
    );
    assert_eq!(bench.plain(Outcome::PeerIncapable), 0);
}

#[test]
fn without_a_router_or_a_peer_that_knows_it_is_plain_tcp() {
    if skipped() {
        return;
    }
    // Nobody marks the request.
    let bench = Bench::new(vec![delay(2)], TUN, &settings(), 100_000_000);
    let done = bench.transfer(&Transfer::of(100_000));
    assert_eq!((done.control.as_str(), bench.plain(Outcome::NoRouter)), ("cubic", 2));
    let (data, marked) = *bench.watch.data.lock().unwrap();
    assert!(data > 0 && marked == 0);

    // The far host has no driver: its TCP ignores what is in the SYN, and gets nothing else.
    for ends in [common::V4, V6] {
        let mut bench = Bench::bare(vec![delay(2), router(30_000_000, 12_000_000)], TUN, &settings());
        bench.attach(true, 100_000_000);
        let done = bench.transfer(&Transfer { far_explicit: false, ends, ..Transfer::of(100_000) });
        assert_eq!((done.control.as_str(), bench.plain(Outcome::PeerIncapable)), ("cubic", 1));
        assert_eq!(bench.signals(PacketEvent::Sent, Forward).len(), 1);
        assert_eq!(bench.signals(PacketEvent::Sent, Reverse).len(), 0);
    }

    // A program that does not ask, over devices that could.
    let bench = Bench::new(vec![delay(2), router(30_000_000, 12_000_000)], TUN, &settings(), 100_000_000);
    bench.transfer(&Transfer { near_explicit: false, ..Transfer::of(100_000) });
    assert_eq!(bench.watch.signals.lock().unwrap().len(), 0);
}

#[test]
fn a_host_that_asks_for_nothing_answers_those_who_do() {
    if skipped() {
        return;
    }
    let bench = Bench::new(vec![delay(2), router(30_000_000, 12_000_000)], TUN, &settings(), 100_000_000);
    let done = bench.transfer(&Transfer { far_explicit: false, ..Transfer::of(1_000_000) });
    assert_eq!(done.control, bench.control);
    let back = bench.signals(PacketEvent::Sent, Reverse);
    assert_eq!(back[0].read.structures.unwrap().count(), 1, "the answer alone");
    assert!(back.len() > 2, "renegotiations are answered too");
}

#[test]
fn a_program_asks_for_no_more_than_it_allows_itself() {
    if skipped() {
        return;
    }
    let bench = Bench::new(vec![delay(2), router(30_000_000, 12_000_000)], TUN, &settings(), 100_000_000);
    // 10 Mbit/s.
    let done = bench.transfer(&Transfer { program_limit: Some(1_250_000), ..Transfer::of(100_000) });
    assert_eq!(payload(&bench.signals(PacketEvent::Sent, Forward)[0])[8..12], *"5a71");
    assert!(done.info.pacing_rate.unwrap().bit_per_s() <= 10_000_000);
}

#[test]
fn buffers_are_as_large_as_repair_needs_them_unless_the_program_has_set_them() {
    if skipped() {
        return;
    }
    // 150 kB for 40 ms: more than the 131 kB that TCP would make of it here (net.ipv4.tcp_wmem).
    let path = vec![delay(20), router(10_000_000, 10_000_000)];
    let bench = Bench::new(path, TUN, &Settings { buffers: Buffers::Sized, ..settings() }, 100_000_000);
    let done = bench.transfer(&Transfer::of(100_000));
    let granted = done.last_flow().rate().expect("it is granted");
    let most = bench.near.namespace().run(|| Limits::now().send.most).unwrap();
    let needed = window_for(granted, done.info.srtt.expect("of the handshake"), 100).min(most);
    assert_eq!(done.send_buffer as u64, 2 * needed.0, "{:?}", done.info.srtt);

    let own = Transfer { own_buffer: Some(50_000), ports: [0xa053, 0x1389], ..Transfer::of(100_000) };
    assert_eq!(bench.transfer(&own).send_buffer, 100_000);
    let bench = Bench::new(
        vec![delay(20), router(10_000_000, 10_000_000)],
        TUN,
        &Settings { buffers: Buffers::Fixed(Bytes(60_000)), ..settings() },
        100_000_000,
    );
    assert_eq!(bench.transfer(&own).send_buffer, 120_000);
}

#[test]
fn a_window_that_no_syn_ack_can_say_is_said_behind_it() {
    if skipped() {
        return;
    }
    for (way, ends) in [(TUN, common::V4), (TUN, V6), (WAYS[3], common::V4)] {
        let first_flight = |early_window| {
            let path = vec![delay(150), router(30_000_000, 12_000_000)];
            let bench = Bench::new(path, way, &Settings { early_window, ..settings() }, 99_968_000);
            bench.transfer(&Transfer { ends, own_buffer: Some(1_000_000), ..Transfer::of(1_000_000) });
            let signals = bench.signals(PacketEvent::Received, Reverse);
            let syn_ack = wire::decode(&signals[0].bytes).expect("its checksums are right").segment;
            let back = std::mem::take(&mut *bench.watch.back.lock().unwrap());
            let ack_of_data = back
                .iter()
                .position(|(bytes, _)| wire::decode(bytes).expect("sound").segment.ack != syn_ack.ack);
            let ack_of_data = ack_of_data.expect("data are acknowledged");
            let announced: Vec<_> = back[..ack_of_data].iter().map(|(bytes, _)| bytes.clone()).collect();
            assert_eq!(bench.count(Counter::SentWindows), announced.len() as u64);
            assert_eq!((bench.count(Counter::Failed), bench.count(Counter::Malformed)), (0, 0));
            assert_eq!(*bench.watch.malformed.lock().unwrap(), [""; 0]);
            (syn_ack, announced, back[ack_of_data].1)
        };
        // A SYN/ACK says 64 kB, 45 segments, and no more.
        let (_, announced, packets) = first_flight(false);
        assert!(announced.is_empty() && packets <= 46, "{packets} packets, {announced:?}");

        let (syn_ack, announced, packets) = first_flight(true);
        let [ack] = &announced[..] else { panic!("{announced:?}") };
        let ack = wire::decode(ack).expect("its checksums are right").segment;
        let expected = Segment {
            window: ack.window,
            timestamps: syn_ack.timestamps,
            ..Segment::new(Flags::ACK, syn_ack.seq.advanced_by(1), syn_ack.ack)
        };
        assert_eq!(ack, expected, "an ACK as any other");
        // Half of the receive buffer of 16 MB (net.ipv4.tcp_rmem): the rest is for what the kernel needs itself.
        let window = u64::from(ack.window) << syn_ack.window_scale.expect("it scales");
        assert!((7_990_000..=8_000_000).contains(&window), "{window}");
        // 691 are all; a busy machine may hold up the program that sends.
        assert!(packets > 100, "{packets} packets");
    }
}

#[test]
fn a_router_cuts_a_flow_that_does_not_ask() {
    if skipped() {
        return;
    }
    unless_held_up(|| {
        let mut lines = router_lines(30_000_000, 12_000_000);
        let at = Instant::ZERO + Duration::from_millis(600);
        lines.changes.forward = vec![RateChange { at, rate: rate(10_000_000) }];
        let path = vec![delay(10), element("router", ElementKind::FlowRouter(Box::new(lines)))];
        // With all that it asked for, and no renegotiation in 128 packets, only the router can tell it.
        let mut settings = settings();
        settings.request.packets_between = u32::MAX;
        let bench = Bench::new(path, TUN, &settings, 29_984_000);
        let done = bench.transfer(&Transfer::of(3_000_000));
        let flow = done.last_flow();
        assert_eq!((flow.outcome, flow.rate()), (Outcome::Granted, Some(rate(10_000_000))), "{flow:?}");
        assert!(flow.cuts >= 1, "{flow:?}");
        // What the far host hears, and the near one never said, is the router's: CD 5, lowered and marked.
        let renegotiations = |event| {
            let mut signals = bench.signals(event, Forward);
            signals.retain(|signal| messages(std::slice::from_ref(signal)) == [Message::Renegotiate]);
            signals
        };
        let (sent, arrived) = (renegotiations(PacketEvent::Sent), renegotiations(PacketEvent::Received));
        assert!(arrived.len() > sent.len(), "{} of {}", arrived.len(), sent.len());
        let cut =
            arrived.iter().find(|one| sent.iter().all(|own| own.number != one.number)).expect("the router's");
        let structure = cut.read.structures.unwrap().iter().next().copied().unwrap();
        assert_eq!((structure.available, structure.mark), (flow.granted, 1));
        wire::decode(&cut.bytes).expect("its checksums are right");
        assert_eq!(*bench.watch.malformed.lock().unwrap(), [""; 0]);
        let unasked = [Counter::UnaskedRaises, Counter::Malformed, Counter::Implausible, Counter::Failed];
        assert_eq!(unasked.map(|counter| bench.count(counter)), [0; 4]);
    });
}

#[test]
fn a_grant_above_what_a_blind_line_has_is_given_up_and_the_router_is_told() {
    if skipped() {
        return;
    }
    let path = vec![delay(5), router(40_000_000, 12_000_000), link(20_000_000, 30_000)];
    let bench = Bench::new(path, TUN, &Settings { fallback: "bbr".to_owned(), ..settings() }, 100_000_000);
    let done = bench.transfer(&Transfer::of(4_000_000));
    let given_up = bench.plain(Outcome::Loss) + bench.plain(Outcome::Queue);
    assert_eq!(given_up, 1, "{:?}", bench.driver.counters());
    assert_eq!(done.last_control, "bbr");
    let sent = messages(&bench.signals(PacketEvent::Sent, Forward));
    assert!(sent.contains(&Message::Close), "{sent:?}");
}

#[test]
fn a_grant_given_up_in_the_first_round_trip_goes_on_with_what_has_arrived() {
    if skipped() {
        return;
    }
    // Of the 400 packets that the buffer holds half: 104 are allowed. What is repaired at two a round trip takes 100 of them.
    let lost: Vec<u64> = (120..320).collect();
    let path = vec![losing(&lost), delay(50), router(100_000_000, 12_000_000)];
    let settings = Settings { early_window: true, ..settings() };
    let bench = Bench::new(path, TUN, &settings, 99_968_000);
    let done = bench.transfer(&Transfer { own_buffer: Some(300_000), ..Transfer::of(1_000_000) });
    assert_eq!(bench.plain(Outcome::Loss), 1, "{:?}", bench.driver.counters());
    assert_eq!(done.last_control, "cubic");
    let windows: Vec<u32> = done.watched.iter().filter_map(|(_, info, _)| info.snd_ssthresh).collect();
    assert!(!windows.is_empty() && windows.iter().all(|&window| window >= 10), "{windows:?}");
}

#[test]
fn when_the_driver_goes_connections_go_on() {
    if skipped() {
        return;
    }
    let bench = Bench::new(vec![delay(5), router(30_000_000, 12_000_000)], TUN, &settings(), 100_000_000);
    let done = bench.transfer(&Transfer { detach_after: Some(500_000), ..Transfer::of(2_000_000) });
    assert_eq!(done.control, bench.control);
    assert_eq!(done.last_control, "cubic");
}
