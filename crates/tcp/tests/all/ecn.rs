//! Explicit congestion notification (RFC 3168).

use crate::script::{PEER_ISN, Script, config};
use farpath_tcp::config::{CongestionControlKind, EcnMode, RecoveryAlgorithm};
use farpath_tcp::{Config, Ecn, Endpoint, Flags, Segment};
use farpath_units::Duration;

const SETUP: Flags = Flags(Flags::ECE.0 | Flags::CWR.0);

fn ecn(mode: EcnMode) -> Config {
    config(|c| {
        c.send.ecn = mode;
        c.congestion.initial_window = 4;
    })
}

fn established() -> Script {
    Script::established(&ecn(EcnMode::Request))
}

/// The peer's SYN with these flags beside SYN.
fn syn_with(t: &mut Script, flags: Flags) -> Segment {
    let mut syn = t.syn();
    syn.flags |= flags;
    syn
}

// ---- Handshake (§6.1.1) ----

#[test]
fn the_opener_asks_and_the_listener_agrees_with_ece_alone() {
    let mut t = Script::listen(&ecn(EcnMode::Accept));
    let syn = syn_with(&mut t, SETUP);
    t.segment(syn).expect("S. ece");
    t.ack(1).write(1000).expect("1:1001 ect");
}

#[test]
fn a_listener_that_is_off_or_is_not_asked_agrees_to_nothing() {
    for (mode, asked) in [
        (EcnMode::Off, SETUP),
        (EcnMode::Accept, Flags(0)),
        (EcnMode::Request, Flags(0)),
        // Half a request is none.
        (EcnMode::Request, Flags::ECE),
        (EcnMode::Request, Flags::CWR),
    ] {
        let mut t = Script::listen(&ecn(mode));
        let syn = syn_with(&mut t, asked);
        t.segment(syn).expect("S.");
        t.ack(1).write(1000).expect("1:1001");
        t.marked_data(Flags::ACK, Ecn::Ce, 1..1001).after("200 ms").expect("ack 1001");
    }
}

#[test]
fn only_request_asks() {
    Script::connect(&ecn(EcnMode::Off)).expect("S");
    Script::connect(&ecn(EcnMode::Accept)).expect("S");
    Script::connect(&ecn(EcnMode::Request)).expect("S ece cwr");
}

#[test]
fn a_peer_that_does_not_agree_gets_no_ecn() {
    // Both bits sent back are a peer that copies what is reserved (§6.1.1).
    for answer in [Flags(0), SETUP, Flags::CWR] {
        let mut t = Script::connect(&ecn(EcnMode::Request));
        let mut syn_ack = t.syn_ack();
        syn_ack.flags = Flags::SYN | Flags::ACK | answer;
        t.expect("S ece cwr").segment(syn_ack).expect("ack 1");
        t.write(4000).expect("1:1001, 1001:2001, 2001:3001, 3001:4001");
        t.echo(4001);
        assert_eq!((t.cwnd(), t.sender().stats().ecn_responses), (5000, 0), "ECE without ECN means nothing");
    }
}

#[test]
fn a_syn_without_an_answer_is_sent_again_without_ecn() {
    let mut t = Script::connect(&ecn(EcnMode::Request));
    t.expect("S ece cwr").at("1 s").expect("S");
    // The answer to the first, late: what was taken back is not used, but what the peer marks is echoed.
    let mut syn_ack = t.syn();
    (syn_ack.flags, syn_ack.ack) = (Flags::SYN | Flags::ACK | Flags::ECE, crate::script::ISN.advanced_by(1));
    t.segment(syn_ack).expect("ack 1").write(1000).expect("1:1001");
    t.marked_data(Flags::ACK, Ecn::Ce, 1..1001).expect("ack 1001 ece");
}

#[test]
fn a_listener_that_heard_both_kinds_of_syn_agrees_no_more() {
    let mut t = Script::listen(&ecn(EcnMode::Accept));
    let syn = syn_with(&mut t, SETUP);
    t.segment(syn).expect("S. ece");
    let again = t.syn();
    t.segment(again).expect("S.").ack(1).write(1000).expect("1:1001");
}

#[test]
fn both_ends_may_open_at_once_with_ecn() {
    let mut t = Script::connect(&ecn(EcnMode::Request));
    let syn = syn_with(&mut t, SETUP);
    t.expect("S ece cwr").segment(syn).expect("S. ece");
    let mut syn_ack = t.peer_segment(Flags::SYN | Flags::ECE);
    syn_ack.seq = PEER_ISN;
    t.segment(syn_ack).expect("ack 1").write(1000).expect("1:1001 ect");
}

// ---- What is ECN-capable (§6.1.4 to §6.1.6) ----

#[test]
fn new_data_is_ecn_capable_and_nothing_else_is() {
    let mut t = established();
    t.write(1000).expect("1:1001 ect");
    t.at("1 s").expect("1:1001").ack(1001);
    t.data(1..1001).after("200 ms").expect("ack 1001");
    t.close().expect("1001:1001 F");
}

#[test]
fn a_fast_retransmission_is_not_ecn_capable() {
    let mut t = established();
    t.write(9000).expect("1:1001 ect, 1001:2001 ect, 2001:3001 ect, 3001:4001 ect");
    t.ack(1001).expect("4001:5001 ect, 5001:6001 ect").dup_acks(3).expect("1001:2001");
}

#[test]
fn a_window_probe_is_not_ecn_capable() {
    let mut t = established();
    t.window = 0;
    t.write(1000).expect("1:1001 ect").ack(1001).write(1000).expect_nothing();
    t.at("1 s").expect("1001:1002");
    t.window = 5000;
    t.ack(1002).expect("1002:2001 ect");
}

// ---- The receiver's echo (§6.1.3) ----

#[test]
fn a_mark_is_echoed_in_every_ack_until_the_peer_says_cwr() {
    let mut t = established();
    t.marked_data(Flags::ACK, Ecn::Ce, 1..1001).expect("ack 1001 ece");
    t.marked_data(Flags::ACK, Ecn::Ect0, 1001..2001).expect_nothing();
    t.marked_data(Flags::ACK, Ecn::Ect0, 2001..3001).expect("ack 3001 ece");
    // Data carries it too.
    t.write(1000).expect("1:1001 ece ect");
    t.marked_data(Flags::CWR, Ecn::Ect0, 3001..4001).after("200 ms").expect("ack 4001");
}

#[test]
fn a_mark_on_the_segment_with_cwr_is_a_new_one() {
    let mut t = established();
    t.marked_data(Flags::ACK, Ecn::Ce, 1..1001).expect("ack 1001 ece");
    t.marked_data(Flags::CWR, Ecn::Ce, 1001..2001).expect("ack 2001 ece");
}

#[test]
fn marks_count_on_data_within_the_window_only() {
    let mut t = established();
    t.data(1..1001).after("200 ms").expect("ack 1001");
    // A pure ACK (§6.1.4), and data that had come before (§6.1.5).
    let mut ack = t.peer_segment(Flags::ACK);
    ack.ecn = Ecn::Ce;
    t.segment(ack).expect_nothing();
    t.marked_data(Flags::ACK, Ecn::Ce, 1..1001).expect("ack 1001");
    // CWR on a pure ACK ends no echo.
    t.marked_data(Flags::ACK, Ecn::Ce, 1001..2001).expect("ack 2001 ece");
    let cwr = t.peer_segment(Flags::CWR);
    t.segment(cwr).data(2001..3001).after("200 ms").expect("ack 3001 ece");
}

#[test]
fn a_marked_segment_out_of_order_is_echoed() {
    let mut t = established();
    t.marked_data(Flags::ACK, Ecn::Ce, 1001..2001).expect("ack 1 ece");
    t.data(1..1001).expect("ack 2001 ece");
}

// ---- The sender's response (§6.1.2) ----

#[test]
fn an_echo_halves_the_window_and_the_next_new_data_says_so() {
    let mut t = established();
    t.write(20_000).ignore();
    t.ack(4001).expect("4001:5001 ect, 5001:6001 ect, 6001:7001 ect, 7001:8001 ect, 8001:9001 ect");
    t.echo(5001).expect_nothing();
    assert_eq!((t.cwnd(), t.ssthresh()), (2500, 2500), "half of the five in flight");
    t.ack(7001).expect_nothing().ack(8001).expect("9001:10001 cwr ect, 10001:11001 ect");
    assert_eq!(t.sender().stats().ecn_responses, 1);
}

#[test]
fn the_window_is_reduced_once_for_a_window_of_data() {
    let mut t = established();
    t.write(40_000).ignore();
    t.ack(4001).ignore();
    t.echo(5001).expect_nothing();
    // Echoes of what was under way then, also with its last ACK; nothing grows.
    for acked in [6001, 7001, 8001, 9001] {
        t.echo(acked).ignore();
        assert_eq!(t.cwnd(), 2500, "ACK of {acked}");
    }
    // What was sent after the reduction: a second one.
    t.echo(10_001).ignore();
    assert_eq!((t.cwnd(), t.sender().stats().ecn_responses), (1250, 2));
}

#[test]
fn cubic_multiplies_by_its_own_beta() {
    let mut cubic = ecn(EcnMode::Request);
    cubic.congestion.control = CongestionControlKind::Cubic;
    cubic.congestion.initial_window = 10;
    let mut t = Script::established(&cubic);
    t.write(40_000).ignore();
    t.echo(1001).expect_nothing();
    assert_eq!((t.cwnd(), t.ssthresh()), (7000, 7000), "RFC 9438 §4.6");
}

#[test]
fn an_echo_on_a_duplicate_ack_counts_and_the_loss_behind_it_is_no_second_reason() {
    let mut t = established();
    t.write(40_000).ignore();
    t.ack(4001).expect("4001:5001 ect, 5001:6001 ect, 6001:7001 ect, 7001:8001 ect, 8001:9001 ect");
    t.echo(4001);
    assert_eq!((t.cwnd(), t.ssthresh()), (2500, 2500));
    t.dup_acks(2).expect("4001:5001");
    assert_eq!((t.cwnd(), t.ssthresh()), (2500 + 3000, 2500), "repair, and the inflation that goes with it");
    assert_eq!(t.sender().stats().fast_retransmits, 1);
}

#[test]
fn a_loss_is_told_with_cwr_and_its_echoes_change_nothing_more() {
    let mut t = established();
    t.write(40_000).ignore();
    t.ack(4001).expect("4001:5001 ect, 5001:6001 ect, 6001:7001 ect, 7001:8001 ect, 8001:9001 ect");
    t.dup_acks(3).expect("4001:5001");
    assert_eq!(t.ssthresh(), 2500);
    t.echo(9001).expect("9001:10001 cwr ect, 10001:11001 ect");
    assert_eq!((t.ssthresh(), t.sender().stats().ecn_responses), (2500, 0));
}

#[test]
fn a_timeout_is_told_with_cwr_on_the_next_new_data() {
    let mut t = established();
    t.write(1000).expect("1:1001 ect").at("1 s").expect("1:1001");
    t.ack(1001).write(1000).expect("1001:2001 cwr ect");
}

#[test]
fn the_window_goes_down_to_one_segment_and_then_waits_for_the_timer() {
    let mut t = established();
    t.write(40_000).ignore();
    t.ack(4001).ignore().echo(9001).expect("9001:10001 cwr ect, 10001:11001 ect");
    assert_eq!((t.cwnd(), t.ssthresh()), (2500, 2500));
    t.echo(11_001).expect("11001:12001 cwr ect");
    assert_eq!((t.cwnd(), t.ssthresh()), (1250, 2000), "ssthresh is two segments at the least");
    t.echo(12_001).expect("12001:13001 cwr ect");
    assert_eq!(t.cwnd(), 1000);
    t.echo(13_001).expect_nothing();
    assert_eq!(t.cwnd(), 1000);
    let rto = t.sender().rtt().rto();
    assert_eq!(rto, Duration::from_secs(1));
    t.at("0.999 s").at("1 s").expect("13001:14001 cwr ect");
    assert_eq!(t.sender().stats().timeouts, 0, "nothing was lost");
}

#[test]
fn a_held_sender_still_repairs_and_closes() {
    let mut config = ecn(EcnMode::Request);
    config.congestion.initial_window = 1;
    config.recovery.algorithm = RecoveryAlgorithm::TimeoutOnly;
    let mut t = Script::established(&config);
    t.write(1000).expect("1:1001 ect").close().expect("1001:1001 F");
    t.echo(1001).expect_nothing();
    t.at("1 s").expect("1001:1001 F").ack(1002);
    assert!(t.end.next_due().is_none());
}

/// Four segments, a timeout, and the ACK of two originals, with ECE or not; F-RTO sends new data to find out.
fn after_a_spurious_timeout(first: fn(&mut Script)) -> Script {
    let mut config = ecn(EcnMode::Request);
    config.recovery.frto = true;
    let mut t = Script::established(&config);
    t.write(20_000).expect("1:1001 ect, 1001:2001 ect, 2001:3001 ect, 3001:4001 ect");
    t.at("1 s").expect("1:1001");
    first(&mut t);
    t.expect("4001:5001 cwr ect, 5001:6001 ect").ack(3001).ignore();
    t
}

#[test]
fn a_reduction_taken_back_leaves_the_next_echo_its_answer() {
    let mut t = after_a_spurious_timeout(|t| _ = t.ack(2001));
    assert_eq!(t.sender().stats().undos, 1);
    let cwnd = t.cwnd();
    t.echo(4001).ignore();
    assert!(t.cwnd() < cwnd && t.sender().stats().ecn_responses == 1, "{} after {cwnd}", t.cwnd());
}

#[test]
fn a_reduction_is_not_taken_back_where_an_echo_says_congestion() {
    let t = after_a_spurious_timeout(|t| _ = t.echo(2001));
    assert_eq!((t.sender().stats().undos, t.ssthresh()), (0, 2000), "RFC 3522 §3.2");
}
