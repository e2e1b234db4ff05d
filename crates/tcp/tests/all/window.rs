//! The receive window, zero-window probes, silly windows, scaling (RFC 9293 §3.8.6, RFC 7323 §2).

use crate::script::{PEER_ISN, Script, config};
use crate::time;
use farpath_tcp::{CloseReason, Config, Endpoint, Flags, State};
use farpath_units::Bytes;

fn receiver(buffer: u64) -> Script {
    Script::established(&config(|c| {
        c.receive.buffer = Bytes(buffer);
        c.receive.ack_every = 1;
    }))
}

/// A sender that has filled a peer's window of 4000 and has 6000 more to send.
fn shut_out(change: impl FnOnce(&mut Config)) -> Script {
    let mut t = Script::established_to(&config(change), 4000);
    t.write(10_000).expect("1:1001, 1001:2001, 2001:3001, 3001:4001");
    t.window = 0;
    t.ack(4001).expect_nothing();
    t
}

#[test]
fn an_assumed_window_is_one_that_the_peer_can_announce() {
    // RFC 7323 §2.3: at most 65535 << 14. A stack file may say that its receive buffer is 2^64 - 1 B.
    let mut t = Script::established_to(&config(|_| ()), 1000);
    t.end.assume_peer_window(Bytes::MAX);
    t.write(3000).expect("1:1001, 1001:2001, 2001:3001");
    assert_eq!(t.sender().rwnd(), 65_535 << 14);
}

#[test]
fn the_window_closes_while_nobody_reads() {
    let mut t = receiver(4000);
    for (n, window) in [(1, 3000), (2, 2000), (3, 1000), (4, 0)] {
        t.data((n - 1) * 1000 + 1..n * 1000 + 1).expect(&format!("ack {}", n * 1000 + 1));
        assert_eq!(t.last().window, window);
    }
    assert_eq!(t.end.readable(), 4000);
}

#[test]
fn a_full_receiver_refuses_the_probe_and_says_so() {
    let mut t = receiver(1000);
    t.data(1..1001).expect("ack 1001").data(1001..1002).expect("ack 1001");
    assert_eq!((t.last().window, t.end.readable()), (0, 1000));
}

#[test]
fn the_ack_in_a_refused_probe_is_taken() {
    // RFC 9293 §3.10.7.4: with no window, valid ACKs and RSTs are still accepted.
    let mut t = receiver(1000);
    t.write(500).expect("1:501").data(1..1001).ignore();
    t.peer_acks = 501;
    t.data(1001..1002).expect("ack 1001");
    assert_eq!(t.sender().flight_size(), 0);
    t.reset(1001);
    assert_eq!(t.end.state(), State::Closed);
}

#[test]
fn acks_and_a_fin_at_the_edge_of_a_filled_window_are_taken() {
    // The peer has filled the window; its first segment is lost.
    let mut t = receiver(2000);
    t.write(500).expect("1:501").data(1001..2001).expect("ack 1");
    t.ack(501).expect_nothing();
    assert_eq!(t.sender().flight_size(), 0);
    t.fin().expect("ack 1").data(1..1001).expect("ack 2002");
}

#[test]
fn reading_announces_the_window_once_it_is_worth_it() {
    // RFC 9293 §3.8.6.2.2: two segments, or half the buffer.
    let mut t = receiver(10_000);
    for n in 0..10 {
        t.data(n * 1000 + 1..n * 1000 + 1001).ignore();
    }
    t.read(1000).expect_nothing().read(500).expect_nothing();
    t.read(500).expect("ack 10001");
    assert_eq!(t.last().window, 2000);
}

#[test]
fn after_a_fin_no_window_is_announced() {
    // A Linux kernel that has had its FIN acknowledged knows the connection no more, and answers with a reset.
    let mut t = receiver(4000);
    t.data(1..3001).ignore().fin().expect("ack 3002");
    t.read(3000).expect_nothing();
}

#[test]
fn a_silly_window_is_not_announced() {
    let mut t = receiver(4000);
    for n in 0..4 {
        t.data(n * 1000 + 1..n * 1000 + 1001).ignore();
    }
    t.read(400).expect_nothing().data(4001..4002).expect("ack 4001");
    assert_eq!(t.last().window, 0, "400 bytes are free");
}

#[test]
fn the_right_edge_never_moves_left() {
    let mut t = receiver(4000);
    t.data(1..301).expect("ack 301");
    let mut edge = 301 + u64::from(t.last().window);
    assert_eq!(edge, 4001);
    for n in 0..6 {
        let start = 301 + n * 300;
        t.data(start..start + 300).ignore();
        let now = start + 300 + u64::from(t.last().window);
        assert!(now >= edge, "{now} after {edge}");
        edge = now;
        t.read(37).ignore();
    }
}

#[test]
fn a_shut_window_is_probed_with_doubling_waits() {
    // RFC 9293 §3.8.6.1
    let mut t = shut_out(|c| c.send.persist_max = crate::duration("6 s"));
    t.at("25 s").expect_timed(
        "1 s 4001:4002, 3 s 4001:4002, 7 s 4001:4002, 13 s 4001:4002, 19 s 4001:4002, 25 s 4001:4002",
    );
    assert_eq!((t.sender().stats().probes, t.sender().stats().timeouts), (6, 0));
    assert_eq!(t.cwnd(), 11_000, "a shut window is no congestion");
}

#[test]
fn a_window_update_lets_the_rest_out() {
    let mut t = shut_out(|_| {});
    t.at("500 ms").expect_nothing();
    t.window = 4000;
    t.dup_acks(1).expect("4001:5001, 5001:6001, 6001:7001, 7001:8001");
    t.at("1.5 s").expect("4001:5001"); // the retransmission timer is on again
}

#[test]
fn the_octet_of_a_refused_probe_goes_first_when_the_window_opens() {
    let mut t = shut_out(|_| {});
    t.at("1 s").expect("4001:4002").dup_acks(1).expect_nothing();
    t.window = 4000;
    t.dup_acks(1).expect("4001:4002, 4002:5002, 5002:6002, 6002:7002");
    t.at("2 s").expect("4001:4002");
}

#[test]
fn an_accepted_probe_is_followed_by_what_the_window_allows() {
    let mut t = shut_out(|_| {});
    t.at("1 s").expect("4001:4002");
    t.window = 3000;
    t.ack(4002).expect("4002:5002, 5002:6002, 6002:7002");
    let mut t = shut_out(|_| {});
    t.at("1 s").expect("4001:4002").ack(4002).expect_nothing();
    t.at("2 s").expect("4002:4003"); // still shut: a new wait begins
}

#[test]
fn a_peer_that_answers_probes_is_never_given_up() {
    let mut t = shut_out(|c| c.handshake.data_retries = Some(3));
    for _ in 0..600 {
        t.after("1 s").ignore().dup_acks(1).expect_nothing();
    }
    assert_eq!(t.end.state(), State::Established);
}

#[test]
fn a_peer_that_answers_no_probe_is_given_up_like_any_other() {
    let mut t = shut_out(|c| c.handshake.data_retries = Some(3));
    t.at("100 s").expect_timed("1 s 4001:4002, 3 s 4001:4002, 7 s 4001:4002");
    assert_eq!(t.end.closed(), Some((CloseReason::RetriesExhausted, time("15 s"))));
}

#[test]
fn a_window_taken_back_over_data_in_flight_is_not_held_against_the_peer() {
    let mut t = Script::established(&config(|c| c.handshake.data_retries = Some(2)));
    t.write(3000).ignore();
    t.window = 0;
    t.dup_acks(1).expect_nothing();
    for _ in 0..600 {
        t.after("1 s").ignore().dup_acks(1).ignore();
    }
    assert_eq!(t.end.state(), State::Established);
}

#[test]
fn our_acks_stay_within_a_window_taken_back() {
    let mut t = Script::established(&config(|c| c.receive.ack_every = 1));
    t.write(3000).ignore();
    t.window = 1000;
    t.dup_acks(1).data(1..101).expect("ack 101");
    assert_eq!(t.last().seq, crate::script::ISN.advanced_by(1001));
}

#[test]
fn a_small_window_is_left_until_half_the_largest_is_open() {
    // RFC 9293 §3.8.6.2.1, the sender's side
    let mut t = shut_out(|_| {});
    t.window = 900;
    t.dup_acks(1).expect_nothing();
    t.window = 2000;
    t.dup_acks(1).expect("4001:5001, 5001:6001");
}

#[test]
fn a_probe_takes_what_a_silly_window_has_room_for() {
    let mut t = shut_out(|_| {});
    t.window = 300;
    t.dup_acks(1).at("1 s").expect("4001:4301");
}

#[test]
fn a_fin_passes_a_shut_window() {
    let mut t = Script::established_to(&config(|_| {}), 1000);
    t.write(1000).ignore();
    t.window = 0;
    t.ack(1001).close().expect("1001:1001 F");
    let mut t = receiver(1000);
    t.data(1..1001).ignore().fin().expect("ack 1002");
    assert_eq!(t.end.state(), State::CloseWait);
}

#[test]
fn an_old_segment_does_not_update_the_window() {
    // RFC 9293 §3.10.7.4, fifth step: SND.WL1, SND.WL2
    let mut t = Script::established(&config(|_| {}));
    t.write(2000).ignore().ack(1001).data(1..101).ignore();
    let mut old = t.peer_segment(Flags::ACK);
    (old.seq, old.window) = (PEER_ISN.advanced_by(1), 7);
    t.segment(old).ignore();
    old.seq = PEER_ISN.advanced_by(101);
    old.ack = crate::script::ISN.advanced_by(1);
    t.segment(old).ignore();
    assert_eq!(t.sender().rwnd(), 60_000);
}

// ---- Scaling ----

fn scaled(change: impl FnOnce(&mut Config)) -> Config {
    config(|c| {
        c.receive.buffer = Bytes(256 * 1024);
        c.receive.ack_every = 1;
        c.send.window_scaling = true;
        change(c);
    })
}

#[test]
fn a_large_window_is_announced_and_used() {
    let mut t = Script::established_to(&scaled(|c| c.congestion.initial_window = 1000), 8192);
    assert_eq!(t.last().window, (256 * 1024 / 8) as u16, "a shift of 3 makes 256 KiB fit");
    t.dup_acks(1); // the SYN/ACK's window was not scaled; this one is, by the same shift
    assert_eq!(t.sender().rwnd(), 65_536);
    t.write(1_000_000);
    assert_eq!(t.ignore().sender().flight_size(), 65_000);
}

#[test]
fn without_the_peers_offer_no_window_is_scaled() {
    let mut t = Script::connect(&scaled(|c| c.congestion.initial_window = 1000));
    let mut synack = t.syn_ack();
    synack.window_scale = None;
    t.expect("S").segment(synack).expect("ack 1");
    assert_eq!(t.last().window, u16::MAX);
    t.dup_acks(1);
    assert_eq!(t.sender().rwnd(), 60_000);
}

/// A buffer of no whole number of units: the last byte of it cannot be announced, and no byte more is.
#[test]
fn what_the_scale_can_announce_of_the_buffer_is_taken() {
    let mut t = Script::established(&scaled(|c| c.receive.buffer = Bytes(262_145)));
    let edge = 1 + u64::from(t.last().window) * 8;
    assert_eq!(edge, 1 + 262_144);
    for start in (1..edge).step_by(16_384) {
        t.data(start..edge.min(start + 16_384)).ignore();
    }
    assert_eq!(t.end.receiver().next(), edge);
}

#[test]
fn a_shift_above_14_is_taken_as_14() {
    // RFC 7323 §2.3
    let mut t = Script::connect(&scaled(|_| {}));
    let mut synack = t.syn_ack();
    synack.window_scale = Some(200);
    t.ignore().segment(synack).ignore();
    t.window = 2;
    t.dup_acks(1);
    assert_eq!(t.sender().rwnd(), 2 << 14);
}
