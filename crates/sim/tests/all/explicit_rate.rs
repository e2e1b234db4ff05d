//! Ends that ask for a rate, and flow routers that grant one, over whole paths (claims R001-14, 19 to 21, 23 to 25).

use crate::common::{bottleneck, delay, loss, rate, setup, stacks, time, upload};
use farpath_elements::{ElementKind, ElementSpec, QueueLimit, RateChange, RouterLines};
use farpath_explicit_rate::{Outcome, Plain, Trip};
use farpath_path::PerDirection;
use farpath_path::{Direction, DropCause};
use farpath_sim::{End, FlowResult, FlowSetup, Observer, Packet, PacketEvent, Silent, simulate};
use farpath_tcp::Config;
use farpath_tcp::config::CongestionControlKind;
use farpath_tia1039::QosMark;
use farpath_tia1039::router::RouterSettings;
use farpath_units::{Bytes, Duration, Instant};

/// Linux's CUBIC, with an end that asks for 100 Mbit/s and knows the peer's buffer.
fn cubic() -> Config {
    let mut stack = stacks::linux(64 << 20);
    stack.explicit_rate.wanted = Some(rate("100 Mbit/s"));
    stack.explicit_rate.early_window = true;
    stack
}

pub fn router(name: &str, line: &str, changes: &[(&str, &str)]) -> ElementSpec {
    let changes: Vec<RateChange> =
        changes.iter().map(|(at, to)| RateChange { at: time(at), rate: rate(to) }).collect();
    let lines = RouterLines {
        rate: PerDirection::both(rate(line)),
        changes: PerDirection { forward: changes, reverse: Vec::new() },
        queue: PerDirection::both(QueueLimit::Unlimited),
        overhead: Bytes(0),
        min_packet: Bytes::ZERO,
        settings: PerDirection::both(RouterSettings::default()),
    };
    ElementSpec { name: name.to_owned(), kind: ElementKind::FlowRouter(Box::new(lines)) }
}

/// When each data packet left, how long it is, and whether it left by a grant.
#[derive(Default)]
struct Sent(Vec<(Instant, u64, bool)>);

impl Observer for Sent {
    fn packet(&mut self, now: Instant, event: PacketEvent, _direction: Direction, packet: &Packet) {
        if event == PacketEvent::Sent && packet.from == End::Sender && packet.segment.len > 0 {
            self.0.push((now, packet.segment.ipv4_size().0, packet.qos.mark == QosMark::Flow));
        }
    }
}

impl Sent {
    /// IP bits per second between two times.
    fn rate(&self, from: &str, to: &str) -> f64 {
        let (from, to) = (time(from), time(to));
        let bytes: u64 =
            self.0.iter().filter(|(at, ..)| (from..to).contains(at)).map(|(_, size, _)| size).sum();
        bytes as f64 * 8.0 / (to - from).as_secs_f64()
    }
}

fn run(path: Vec<ElementSpec>, flow: FlowSetup) -> (FlowResult, Sent) {
    let mut sent = Sent::default();
    let flow = simulate(&setup(path, vec![flow], 1), &mut sent).expect("a sound path").remove(0);
    (flow, sent)
}

fn outcome(flow: &FlowResult) -> Outcome {
    flow.driver.as_ref().expect("it asks").outcome()
}

#[test]
fn each_router_only_lowers_and_the_first_data_leave_at_the_least_rate() {
    // 100 asked for; an edge with 35, a core that knows nothing, an edge with 30; two in a hundred are kept.
    let path = vec![
        router("edge", "35 Mbit/s", &[]),
        bottleneck("1 Gbit/s", 0, QueueLimit::Unlimited),
        delay("20 ms"),
        router("far-edge", "30 Mbit/s", &[]),
    ];
    let (flow, sent) = run(path, upload(&cubic(), 4_000_000));
    assert_eq!(outcome(&flow), Outcome::Granted);
    // 30 Mbit/s, 98 % of it, a new flow may have what is kept for newcomers too.
    let first = sent.rate("40.2 ms", "80.2 ms");
    assert!((28.0e6..30.3e6).contains(&first), "{first}");
    assert_eq!(flow.sender.sender().stats().retransmissions, 0);
    // One handshake of 40 ms, 4 MB in 1500 of 1448 B at 29.4 Mbit/s, half a round trip: TCP alone is in slow start for eight.
    let seconds = flow.transfer_time(Instant::ZERO).expect("it completes").as_secs_f64();
    assert!((1.15..1.26).contains(&seconds), "{seconds}");
    assert!(sent.0.iter().all(|(.., granted)| *granted));
}

#[test]
fn losses_do_not_slow_it_down() {
    let path = vec![router("edge", "30 Mbit/s", &[]), loss(0.02, 0.02), delay("20 ms")];
    let (flow, sent) = run(path, upload(&cubic(), 20_000_000));
    assert_eq!(outcome(&flow), Outcome::Granted);
    let whole = sent.rate("0.5 s", "5.5 s");
    for (from, to) in [("0.5 s", "1.5 s"), ("1.5 s", "2.5 s"), ("2.5 s", "3.5 s"), ("4.5 s", "5.5 s")] {
        let part = sent.rate(from, to);
        assert!((part / whole - 1.0).abs() < 0.02, "{part} of {whole} from {from} on");
    }
    // What arrives is 0.98 of what is sent: 20 MB at 29 Mbit/s of packets take 5.9 s.
    let seconds = flow.transfer_time(Instant::ZERO).expect("it completes").as_secs_f64();
    assert!((5.6..6.4).contains(&seconds), "{seconds}");
}

#[test]
fn a_sound_grant_is_kept_where_one_ack_tells_of_a_hundred_losses() {
    // RACK holds losses back for 125 ms, until recovery begins, while what was sent around them is counted as delivered.
    for seed in 1..=20 {
        let path = vec![router("edge", "100 Mbit/s", &[]), loss(0.1, 0.1), delay("250 ms")];
        let setup = setup(path, vec![upload(&cubic(), 8_000_000)], seed);
        let flow = simulate(&setup, &mut Silent).expect("a sound path").remove(0);
        // A handshake that loses its request asks nobody, and is CUBIC.
        if outcome(&flow) != Outcome::Plain(Plain::PeerIncapable) {
            assert_eq!(outcome(&flow), Outcome::Granted, "seed {seed}");
            let seconds = flow.transfer_time(Instant::ZERO).expect("it completes").as_secs_f64();
            assert!((2.0..9.0).contains(&seconds), "seed {seed}: {seconds} s");
        }
    }
}

#[test]
fn a_line_that_shrinks_is_followed_within_a_round_trip_and_a_half() {
    let path = vec![router("edge", "30 Mbit/s", &[("3 s", "10 Mbit/s")]), delay("50 ms")];
    let (flow, sent) = run(path, upload(&cubic(), 20_000_000));
    let (before, after) = (sent.rate("2 s", "3 s"), sent.rate("3.15 s", "4.15 s"));
    assert!(before > 28e6 && after < 10e6 && after > 9e6, "{before} {after}");
    assert_eq!(outcome(&flow), Outcome::Granted);
    let dropped = flow.drops.forward.count_of(DropCause::QueueOverflow);
    assert_eq!((flow.sender.sender().stats().retransmissions, dropped), (0, 0));
}

#[test]
fn a_blind_bottleneck_trips_the_guard_and_tcp_goes_on() {
    for fallback in [CongestionControlKind::Cubic, CongestionControlKind::Bbr] {
        let path = vec![
            router("edge", "95 Mbit/s", &[]),
            bottleneck("50 Mbit/s", 0, QueueLimit::Packets(400)),
            delay("20 ms"),
        ];
        let mut stack = cubic();
        stack.explicit_rate.fallback = fallback;
        let (flow, sent) = run(path, upload(&stack, 100_000_000));
        assert!(matches!(outcome(&flow), Outcome::GivenUp(Trip::Loss | Trip::Queue)), "{:?}", outcome(&flow));
        let granted = sent.0.iter().filter(|(.., granted)| *granted).map(|(at, ..)| *at).max();
        assert!(granted.is_some_and(|last| last < time("2 s")), "{granted:?}");
        // It ends near the line's rate: 16 s.
        let seconds = flow.transfer_time(Instant::ZERO).expect("it completes").as_secs_f64();
        assert!((16.0..20.0).contains(&seconds), "{fallback:?}: {seconds} s");
        let lost = flow.sender.sender().stats().retransmissions as f64 / (100_000_000.0 / 1448.0);
        assert!(lost < 0.06, "{fallback:?}: {lost}");
    }
}

#[test]
fn a_channel_above_the_threshold_ends_the_grant_and_bbr_bears_it() {
    let path = vec![router("edge", "40 Mbit/s", &[]), loss(0.15, 0.0), delay("20 ms")];
    let (flow, _) = run(path, upload(&cubic(), 20_000_000));
    assert_eq!(outcome(&flow), Outcome::GivenUp(Trip::Loss));
    // 14 Mbit/s; CUBIC, in place of it, has a tenth of that.
    let seconds = flow.transfer_time(Instant::ZERO).expect("it completes").as_secs_f64();
    assert!(seconds < 16.0, "{seconds}");
}

#[test]
fn a_grant_is_served_before_what_nobody_asked_a_rate_for() {
    // The sender does not slow down for a queue: if ordinary packets took turns with it, its own would grow without an end.
    let ordinary = FlowSetup { start: time("1 s"), ..upload(&stacks::linux(64 << 20), 5_000_000) };
    let path = vec![router("edge", "40 Mbit/s", &[]), delay("20 ms")];
    let flows = vec![upload(&cubic(), 40_000_000), ordinary];
    let flows = simulate(&setup(path, flows, 1), &mut Silent).expect("a sound path");
    let seconds = (flows[0].ended_at - Instant::ZERO).as_secs_f64();
    // 40 MB at 0.98 of 0.98 of the line, headers off.
    assert!((8.6..9.2).contains(&seconds), "{seconds}");
    let srtt = flows[0].sender.sender().rtt().srtt().expect("measured");
    assert!(srtt < Duration::from_millis(45), "{srtt}");
    assert_eq!(flows[0].sender.sender().stats().retransmissions, 0);
}

#[test]
fn without_a_router_or_a_driver_at_the_peer_it_is_plain_tcp() {
    let over = |first: ElementSpec| vec![first, delay("20 ms")];
    let link = || bottleneck("30 Mbit/s", 0, QueueLimit::Unlimited);
    let (no_router, _) = run(over(link()), upload(&cubic(), 2_000_000));
    assert_eq!(outcome(&no_router), Outcome::Plain(Plain::NoRouter));
    let mut mixed = upload(&cubic(), 2_000_000);
    mixed.receiver = stacks::linux(64 << 20);
    let (no_peer, _) = run(over(router("edge", "30 Mbit/s", &[])), mixed);
    assert_eq!(outcome(&no_peer), Outcome::Plain(Plain::PeerIncapable));
    let (plain, _) = run(over(link()), upload(&stacks::linux(64 << 20), 2_000_000));
    assert!(plain.driver.is_none());
    let seconds = |flow: &FlowResult| flow.transfer_time(Instant::ZERO).expect("it completes").as_secs_f64();
    // 48 bytes of structures in the handshake, at 30 Mbit/s: 13 us.
    assert!((seconds(&no_router) - seconds(&plain)).abs() < 1e-4);
    assert!((seconds(&no_peer) - seconds(&plain)).abs() < 2e-3, "{} {}", seconds(&no_peer), seconds(&plain));
    let mut silent = Silent;
    let pair = setup(over(link()), vec![upload(&cubic(), 0)], 1);
    assert!(simulate(&pair, &mut silent).is_ok());
}

#[test]
fn two_on_one_router_get_the_same() {
    let flow = |start: &str| FlowSetup { start: time(start), ..upload(&cubic(), 10_000_000) };
    let path = vec![router("edge", "40 Mbit/s", &[]), delay("20 ms")];
    let flows = simulate(&setup(path, vec![flow("0 s"), flow("10 ms")], 1), &mut Silent).expect("sound");
    let times: Vec<Duration> = flows.iter().map(|flow| flow.ended_at - Instant::ZERO).collect();
    let ratio = times[0].as_secs_f64() / times[1].as_secs_f64();
    assert!((0.8..1.25).contains(&ratio), "{times:?}");
    assert_eq!(flows.iter().map(|flow| flow.sender.sender().stats().retransmissions).sum::<u64>(), 0);
}
