//! Timers against paths on which nothing comes back: when an end speaks again, and when it gives up.

use crate::common::{self, delay, download, drops, duration, loss, observed, run, setup, time, upload};
use farpath_elements::{ElementKind, ElementSpec, Hops};
use farpath_path::{Direction, DropCause, PerDirection};
use farpath_sim::{End, FlowEnd, FlowResult, FlowSetup, Observer, Packet, PacketEvent};
use farpath_tcp::config::HandshakeRules;
use farpath_tcp::{CloseReason, Config, Flags, State};
use farpath_units::{Bytes, Duration, Instant};

/// When each end sent a SYN or SYN/ACK, and when it sent data.
#[derive(Debug, Default)]
struct Sent {
    syns: [Vec<Instant>; 2],
    data: Vec<Instant>,
}

impl Observer for Sent {
    fn packet(&mut self, now: Instant, event: PacketEvent, _: Direction, packet: &Packet) {
        if event != PacketEvent::Sent {
            return;
        }
        if packet.segment.flags.contains(Flags::SYN) {
            self.syns[packet.from as usize].push(now);
        } else if packet.segment.len > 0 {
            self.data.push(now);
        }
    }
}

fn watched(path: Vec<ElementSpec>, flow: FlowSetup, horizon: &str) -> (FlowResult, Sent) {
    let mut sent = Sent::default();
    let mut setup = setup(path, vec![flow], 1);
    setup.horizon = duration(horizon);
    (observed(&setup, &mut sent).remove(0), sent)
}

fn seconds(times: &[u64]) -> Vec<Instant> {
    times.iter().map(|&s| Instant::ZERO + Duration::from_secs(s)).collect()
}

fn opener(initial_rto: u64, syns: u32) -> Config {
    let mut c = Config::default();
    c.rto.initial = Duration::from_secs(initial_rto);
    c.rto.max = Duration::from_secs(120);
    c.handshake.syn_attempts = Some(syns);
    c
}

#[test]
fn syns_into_the_void_are_sent_as_scheduled_and_given_up() {
    let linear = |syns, linear| {
        let mut c = opener(1, syns);
        c.handshake.syn_linear_timeouts = linear;
        c
    };
    for (name, stack, schedule, gives_up) in [
        // OPNET and Riverbed: three retransmissions, 3 · (2^4 - 1) s.
        ("opnet", opener(3, 4), &[0, 3, 9, 21][..], 45),
        // Windows 2003: two retransmissions, abandoned at 21 s.
        ("windows 2003", opener(3, 3), &[0, 3, 9], 21),
        // Linux until 6.4: tcp_syn_retries 6.
        ("linux", opener(1, 7), &[0, 1, 3, 7, 15, 31, 63], 127),
        // Linux from 6.5 on: tcp_syn_linear_timeouts 4.
        ("linux 6.5", linear(7, 4), &[0, 1, 2, 3, 4, 5, 7], 11),
    ] {
        let (result, sent) = watched(vec![delay("20 ms"), loss(1.0, 1.0)], upload(&stack, 1000), "1 h");
        assert_eq!(sent.syns[End::Sender as usize], seconds(schedule), "{name}");
        assert_eq!(result.end, FlowEnd::Failed(CloseReason::ConnectTimedOut), "{name}");
        assert_eq!(result.ended_at, seconds(&[gives_up])[0], "{name}");
        assert_eq!(result.drops.forward.total(), schedule.len() as u64, "{name}");
    }
}

#[test]
fn a_timer_on_a_tick_waits_for_the_tick() {
    let mut stack = opener(3, 3);
    stack.rto.tick = duration("500 ms");
    let flow = FlowSetup { start: time("0.3 s"), ..upload(&stack, 1000) };
    let (result, sent) = watched(vec![loss(1.0, 1.0)], flow, "1 h");
    assert_eq!(sent.syns[0], [time("0.3 s"), time("3.5 s"), time("9.5 s")]);
    assert_eq!(result.ended_at, time("21.5 s"));
}

/// The SYN arrives, no SYN/ACK does: each end gives up by its own schedule, and the listener listens again.
#[test]
fn an_unheard_server_forgets_the_half_open_connection() {
    let mut stack = opener(1, 2);
    stack.handshake.synack_attempts = Some(3);
    let mut flow = upload(&stack, 1000);
    flow.receiver.handshake.synack_attempts = Some(3);
    let (result, sent) = watched(vec![delay("20 ms"), loss(0.0, 1.0)], flow, "1 h");
    assert_eq!((result.end, result.ended_at), (FlowEnd::Failed(CloseReason::ConnectTimedOut), time("3 s")));
    // For the SYN, for the SYN that was sent again (which starts the timer anew), and by the timer.
    assert_eq!(sent.syns[1], [time("20 ms"), time("1.02 s"), time("2.02 s")]);
    assert_eq!(result.receiver.state(), State::SynReceived, "the client has gone first");
}

/// The third segment of the handshake never arrives, and the client has nothing to say: it believes in a connection
/// that the server has forgotten. No timer runs at either end; that is the horizon's to end.
#[test]
fn a_client_without_a_request_waits_for_a_server_that_has_forgotten_it() {
    let mut stack = opener(1, 7);
    stack.handshake.synack_attempts = Some(6);
    let reverse: Vec<u64> = (2..1000).collect();
    let (result, sent) =
        watched(vec![delay("20 ms"), drops(&[], &reverse)], download(&stack, 1000, 0), "1 h");
    let expected: Vec<Instant> = [0, 1, 3, 7, 15, 31].map(|s| time("20 ms") + Duration::from_secs(s)).into();
    assert_eq!(sent.syns[End::Sender as usize], expected);
    assert_eq!((result.end, result.ended_at), (FlowEnd::Horizon, time("1 h")));
    assert_eq!((result.sender.state(), result.sender.closed()), (State::Listen, None));
    assert_eq!(result.receiver.state(), State::Established);
    assert_eq!(result.bytes_read, Bytes::ZERO);
}

/// The same with data to send: they reach a listener, which answers with a reset.
#[test]
fn data_for_a_forgotten_connection_is_answered_with_a_reset() {
    let mut stack = opener(1, 7);
    stack.handshake.synack_attempts = Some(1);
    // The server's only SYN/ACK is good until 1.02 s. What the client sends in the first second is lost.
    let (result, _) = watched(vec![delay("20 ms"), drops(&[2], &[])], upload(&stack, 1000), "1 h");
    assert_eq!(result.end, FlowEnd::Failed(CloseReason::Reset));
    // Sent again a second after it was sent at 40 ms; there and back.
    assert_eq!(result.ended_at, time("1.08 s"));
    assert_eq!(result.receiver.state(), State::Listen);

    // A listener that sends no resets: the client spends its retries.
    stack.handshake.rules = HandshakeRules::Ns3;
    stack.handshake.data_retries = Some(3);
    let (result, _) = watched(vec![delay("20 ms"), drops(&[2], &[])], upload(&stack, 1000), "1 h");
    assert_eq!(result.end, FlowEnd::Failed(CloseReason::RetriesExhausted));
    assert_eq!(result.ended_at, time("15.04 s"));
}

#[test]
fn retries_of_one_segment_run_out_at_their_time() {
    let mut stack = opener(1, 7);
    stack.handshake.data_retries = Some(3);
    let forward: Vec<u64> = (2..1000).collect();
    let (result, sent) = watched(vec![delay("20 ms"), drops(&forward, &[])], upload(&stack, 1000), "1 h");
    // The RTO is its floor of 1 s: data at 40 ms, then after 1, 2 and 4 s; given up 8 s after the last.
    assert_eq!(sent.data, [time("40 ms"), time("1.04 s"), time("3.04 s"), time("7.04 s")]);
    assert_eq!(result.end, FlowEnd::Failed(CloseReason::RetriesExhausted));
    assert_eq!(result.ended_at, time("15.04 s"));
    assert_eq!(result.sender.closed(), Some((CloseReason::RetriesExhausted, time("15.04 s"))));
    assert_eq!(result.receiver.closed(), None, "nobody tells the other end");
}

/// The mean window of a transfer that stalls is that until the horizon, not until the last event.
#[test]
fn a_horizon_ends_what_is_under_way() {
    let mut stack = opener(1, 7);
    stack.handshake.data_retries = None;
    stack.rto.max = Duration::from_secs(50_000);
    let forward: Vec<u64> = (2..1000).collect();
    let (result, sent) =
        watched(vec![delay("20 ms"), drops(&forward, &[])], upload(&stack, 100_000), "4000 s");
    assert_eq!((result.end, result.ended_at), (FlowEnd::Horizon, time("4000 s")));
    assert!(*sent.data.last().expect("data") < time("2100 s"), "{:?}", sent.data.last());
    // Three segments for a second, then one.
    common::assert_close(result.mean_cwnd, 1460.0 * (1.0 + 2.0 / 3999.96), 1e-6);

    let mut setup = setup(vec![delay("20 ms")], vec![upload(&Config::default(), 10_000_000)], 1);
    setup.horizon = duration("1 s");
    let result = run(&setup).remove(0);
    assert_eq!((result.end, result.ended_at), (FlowEnd::Horizon, time("1 s")));
    assert!(result.bytes_read > Bytes(100_000) && result.bytes_read < Bytes(10_000_000));
    assert_eq!(result.transfer_time(Instant::ZERO), None);
}

/// IP's TTL is an octet: 254 routers may stand between two hosts, and nothing passes 255 (the protocol-radius paper, R000-04).
#[test]
fn a_connection_opens_over_as_many_routers_as_its_ttl_allows() {
    let over = |routers: u32, ttl: u8| {
        let mut stack = Config::default();
        stack.send.ttl = ttl;
        let kind = ElementKind::Hops(Hops { routers: PerDirection::both(routers) });
        let path = vec![delay("10 ms"), ElementSpec { name: "hops".to_owned(), kind }];
        let flow = run(&setup(path, vec![upload(&stack, 20_000)], 1)).remove(0);
        (flow.end, flow.drops.forward.count_of(DropCause::Ttl))
    };
    for ttl in [1, 32, 64, 128, 255] {
        assert_eq!(over(u32::from(ttl) - 1, ttl), (FlowEnd::Completed, 0), "{ttl}");
        let (end, died) = over(ttl.into(), ttl);
        assert_eq!((end, died), (FlowEnd::Failed(CloseReason::ConnectTimedOut), 8), "{ttl}");
    }
}
