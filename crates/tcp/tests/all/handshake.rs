//! Opening: three-way handshake, its retransmissions and its ends (RFC 9293 §3.5, RFC 6298 §5.7).

use crate::script::{ISN, PEER_ISN, Script, config};
use crate::{duration, time};
use farpath_tcp::config::{HandshakeRules, RetransmittedSyn, SynLoss};
use farpath_tcp::{CloseReason, Config, Endpoint, Flags, Seq, State, Timestamps};
use farpath_units::{Bytes, Duration};

fn opnet(change: impl FnOnce(&mut Config)) -> Config {
    config(|c| {
        c.rto.initial = duration("3 s");
        c.handshake.syn_attempts = Some(4);
        change(c);
    })
}

/// A server that has sent its SYN/ACK.
fn half_open(change: impl FnOnce(&mut Config)) -> Script {
    let mut t = Script::listen(&opnet(change));
    let syn = t.syn();
    t.segment(syn).expect("S.");
    t
}

#[test]
fn three_segments_open_a_connection() {
    let mut t = Script::connect(&config(|_| {}));
    let synack = t.syn_ack();
    t.expect("S").at("80 ms").segment(synack).expect("ack 1");
    assert_eq!((t.end.state(), t.end.established_at()), (State::Established, Some(time("80 ms"))));
    assert_eq!(t.sender().rtt().srtt(), Some(duration("80 ms")), "the SYN was timed");

    let mut t = half_open(|_| {});
    assert_eq!(t.end.state(), State::SynReceived);
    t.at("80 ms").ack(1).expect_nothing();
    assert_eq!((t.end.state(), t.end.established_at()), (State::Established, Some(time("80 ms"))));
}

#[test]
fn the_syn_offers_what_is_configured_and_the_synack_only_what_was_offered() {
    let config = config(|c| {
        c.receive.buffer = Bytes(1 << 20);
        (c.send.timestamps, c.send.window_scaling, c.recovery.sack) = (true, true, true);
    });
    let mut t = Script::connect(&config);
    let syn = t.expect("S").last();
    assert_eq!((syn.mss, syn.window_scale, syn.sack_permitted), (Some(1000), Some(5), true));
    assert_eq!((syn.window, syn.timestamps.is_some()), (65_535, true), "RFC 7323 §2.2: never scaled");

    let mut t = Script::listen(&config);
    let plain = t.syn();
    let synack = t.segment(plain).expect("S.").last();
    assert_eq!((synack.window_scale, synack.sack_permitted, synack.timestamps), (None, false, None));
}

#[test]
fn a_peer_that_names_no_mss_gets_536() {
    // RFC 9293 §3.7.1; RFC 6691: options come off the segment.
    for (timestamps, smss) in [(false, 536), (true, 524)] {
        let mut t = Script::connect(&config(|c| c.send.timestamps = timestamps));
        let mut synack = t.syn_ack();
        synack.mss = None;
        synack.timestamps = timestamps.then_some(farpath_tcp::Timestamps { value: 5, echo: 1 });
        t.ignore().segment(synack).ignore();
        assert_eq!(t.sender().smss(), smss);
    }
}

#[test]
fn an_unanswered_syn_is_sent_at_0_3_9_21_s_and_given_up_at_45_s() {
    for tick in [Duration::ZERO, duration("500 ms")] {
        let mut t = Script::connect(&opnet(|c| c.rto.tick = tick));
        t.expect("S").at("100 s").expect_timed("3 s S, 9 s S, 21 s S");
        assert_eq!(t.end.closed(), Some((CloseReason::ConnectTimedOut, time("45 s"))));
        assert_eq!(t.end.next_due(), None);
    }
}

#[test]
fn linux_sends_four_syns_a_second_apart_before_it_doubles() {
    let mut t = Script::connect(&config(|c| {
        c.rto.max = duration("120 s");
        (c.handshake.syn_attempts, c.handshake.syn_linear_timeouts) = (Some(11), 4);
    }));
    t.expect("S")
        .at("200 s")
        .expect_timed("1 s S, 2 s S, 3 s S, 4 s S, 5 s S, 7 s S, 11 s S, 19 s S, 35 s S, 67 s S");
    assert_eq!(t.end.closed(), Some((CloseReason::ConnectTimedOut, time("131 s"))));
}

#[test]
fn a_time_for_the_whole_opening_ends_it_before_the_syns_do() {
    let mut t = Script::connect(&config(|c| {
        (c.handshake.syn_attempts, c.handshake.connect_timeout) = (Some(5), Some(duration("21 s")));
    }));
    t.expect("S").at("200 s").expect_timed("1 s S, 3 s S, 7 s S, 15 s S");
    assert_eq!(t.end.closed(), Some((CloseReason::ConnectTimedOut, time("21 s"))));
}

#[test]
fn syns_go_on_for_ever_where_there_is_no_limit() {
    let mut t = Script::connect(&opnet(|c| {
        (c.handshake.syn_attempts, c.rto.max) = (None, Duration::MAX);
    }));
    t.expect("S").at("2000 s").ignore();
    assert_eq!((t.end.state(), t.end.stats().syns), (State::SynSent, 10));
    let synack = t.syn_ack();
    t.segment(synack).expect("ack 1"); // R000-09: the answer of an RTT of 1000 s is taken
}

#[test]
fn a_synack_is_sent_again_and_then_forgotten() {
    let mut t = half_open(|c| c.handshake.synack_attempts = Some(3));
    t.at("100 s").expect_timed("3 s S., 9 s S.");
    assert_eq!((t.end.state(), t.end.closed()), (State::Listen, None));
}

#[test]
fn a_forgotten_peer_is_answered_with_a_reset_and_the_listener_opens_anew() {
    let mut t = half_open(|c| c.handshake.synack_attempts = Some(1));
    t.at("4 s").expect_nothing().data(1..101).expect("R 1");
    let syn = t.syn();
    t.segment(syn).expect("S.").ack(1).expect_nothing();
    assert_eq!(t.end.state(), State::Established);
}

#[test]
fn a_syn_that_comes_after_its_connection_was_forgotten_does_not_bring_it_to_life() {
    // Linux 6.18 resets it: what answers a SYN there has another initial sequence number each time.
    let mut t = half_open(|c| c.handshake.synack_attempts = Some(1));
    let late = t.peer_segment(Flags::ACK);
    let syn = t.syn();
    t.at("4 s").segment(syn).expect("S.");
    t.segment(late).ignore();
    assert_eq!((t.last().flags, t.last().seq), (Flags::RST, late.ack));
    assert_eq!(t.end.established_at(), None);
}

#[test]
fn a_forgotten_peer_is_left_without_an_answer_by_ns3() {
    let mut t =
        half_open(|c| (c.handshake.synack_attempts, c.handshake.rules) = (Some(1), HandshakeRules::Ns3));
    t.at("4 s").data(1..101).ack(1).expect_nothing();
}

#[test]
fn what_was_written_to_a_listener_survives_a_forgotten_peer() {
    let mut t = half_open(|c| c.handshake.synack_attempts = Some(1));
    t.write(500).at("4 s").expect_nothing();
    let syn = t.syn();
    t.segment(syn).expect("S.").ack(1).expect("1:501");
}

#[test]
fn a_duplicate_syn_gets_the_synack_again() {
    let mut t = half_open(|_| {});
    let syn = t.syn();
    t.at("1 s").segment(syn).expect("S.");
    t.at("2 s").segment(syn).expect("S.");
    assert_eq!(t.end.state(), State::SynReceived);
}

#[test]
fn answers_to_duplicate_syns_cost_no_attempts_except_in_ns3() {
    let attempts = |rules| {
        let mut t = half_open(|c| {
            (c.handshake.synack_attempts, c.handshake.rules) = (Some(3), rules);
        });
        let syn = t.syn();
        for _ in 0..5 {
            t.segment(syn).ignore();
        }
        t.at("100 s").ignore();
        t.end.stats().synacks
    };
    assert_eq!(attempts(HandshakeRules::Rfc9293), 3 + 5);
    assert_eq!(attempts(HandshakeRules::Ns3), 3);
}

#[test]
fn a_lost_third_ack_is_sent_again_when_the_synack_comes_again() {
    let mut t = Script::established(&config(|_| {}));
    let synack = t.syn_ack();
    t.at("3 s").segment(synack).expect("ack 1");
    assert_eq!(t.end.stats().segments_refused, 1);
}

#[test]
fn data_does_for_a_lost_third_ack() {
    let mut t = half_open(|_| {});
    t.data(1..101).data(101..201).expect("ack 201");
    assert_eq!(t.end.state(), State::Established);
}

#[test]
fn both_ends_may_open_at_once() {
    // RFC 9293 §3.5, Figure 7
    let mut t = Script::connect(&config(|_| {}));
    let syn = t.syn();
    t.expect("S").segment(syn).expect("S.");
    assert_eq!(t.end.state(), State::SynReceived);
    let mut synack = t.syn();
    synack.flags |= Flags::ACK;
    synack.ack = ISN.advanced_by(1);
    t.segment(synack).expect("ack 1");
    assert_eq!(t.end.state(), State::Established);
    t.segment(synack).expect("ack 1"); // and no SYN/ACK for a SYN/ACK, for ever
}

#[test]
fn a_retransmitted_syn_is_not_measured() {
    // Karn; R000-13: which of the SYNs was answered cannot be told.
    let mut t = Script::connect(&opnet(|_| {}));
    let synack = t.syn_ack();
    t.expect("S").at("3.04 s").expect("S").segment(synack).ignore();
    assert_eq!(t.sender().rtt().srtt(), None);
}

#[test]
fn a_synack_sent_twice_for_two_syns_is_not_measured() {
    let mut t = half_open(|_| {});
    let syn = t.syn();
    t.at("1 s").segment(syn).expect("S.").at("1.1 s").ack(1).expect_nothing();
    assert_eq!(t.sender().rtt().srtt(), None);
}

#[test]
fn ns3_measures_a_retransmitted_syn_from_the_first() {
    let mut t = Script::connect(&opnet(|c| c.rto.retransmitted_syn = RetransmittedSyn::MeasuredFromFirst));
    let synack = t.syn_ack();
    t.expect("S").at("3.04 s").expect("S").segment(synack).ignore();
    assert_eq!(t.sender().rtt().srtt(), Some(duration("3.04 s")));
}

#[test]
fn a_syn_timeout_starts_data_with_three_seconds_and_one_segment() {
    // RFC 6298 §5.7; RFC 5681 §3.1
    let mut t = Script::connect(&config(|_| {}));
    let synack = t.syn_ack();
    t.expect("S").at("1.5 s").expect("S").segment(synack).expect("ack 1");
    assert_eq!(t.sender().rtt().rto(), duration("3 s"));
    t.write(5000).expect("1:1001").at("4.5 s").expect("1:1001");
}

/// Opened with timestamps after so many SYNs, of which the first leaves at 0, by a SYN/ACK that echoes the one that left when the
/// clock showed `echo`, at 7.5 s; then a file is written.
fn opened_again(echo: u32, change: impl FnOnce(&mut Config)) -> Script {
    let mut t = Script::connect(&config(|c| {
        (c.send.timestamps, c.recovery.eifel) = (true, true);
        change(c);
    }));
    let mut synack = t.syn_ack();
    synack.timestamps = Some(Timestamps { value: 5, echo });
    t.expect("S").at("1 s").expect("S").at("3 s").expect("S").at("7 s").expect("S");
    t.at("7.5 s").segment(synack).expect("ack 1").write(2500);
    t
}

#[test]
fn an_echo_tells_how_long_a_repeated_syn_took() {
    // RFC 7323 §4.1: Karn's ambiguity is none
    let t = opened_again(7001, |_| {});
    assert_eq!(t.sender().rtt().srtt(), Some(duration("500 ms")));
    assert_eq!(opened_again(1, |_| {}).sender().rtt().srtt(), Some(duration("7.5 s")));
    let from_the_first =
        opened_again(7001, |c| c.rto.retransmitted_syn = RetransmittedSyn::MeasuredFromFirst);
    assert_eq!(from_the_first.sender().rtt().srtt(), Some(duration("7.5 s")));
}

#[test]
fn one_segment_after_lost_syns_unless_the_first_was_answered() {
    // RFC 5681 §3.1; RFC 3522
    let cwnd = |echo, change: fn(&mut Config)| opened_again(echo, change).sender().window().cwnd / 988;
    assert_eq!(cwnd(7001, |_| {}), 1);
    assert_eq!(cwnd(1, |_| {}), 10, "none was lost");
    assert_eq!(cwnd(1, |c| c.recovery.eifel = false), 1);
    assert_eq!(cwnd(7001, |c| c.congestion.one_segment_after_syn_loss = SynLoss::Never), 10);
}

#[test]
fn one_segment_only_after_the_second_lost_syn_where_the_stack_is_like_that() {
    // tcp_init_transfer()
    for (again, segments) in [("1 s", 10), ("3 s", 1)] {
        let mut t = Script::connect(&config(|c| c.congestion.one_segment_after_syn_loss = SynLoss::Second));
        let synack = t.syn_ack();
        t.expect("S").at("1 s").expect("S").at(again);
        if segments == 1 {
            t.expect("S");
        }
        t.segment(synack).expect("ack 1");
        assert_eq!(t.sender().window().cwnd, segments * 1000);
    }
}

#[test]
fn data_begin_with_three_seconds_too_where_a_syn_came_again() {
    // Its SYN/ACK has left twice: nothing was measured, whoever had it sent again.
    let mut t = half_open(|_| {});
    let syn = t.syn();
    t.at("500 ms").segment(syn).expect("S.").at("1 s").ack(1).expect_nothing();
    assert_eq!(t.sender().rtt().rto(), duration("3 s"));
}

#[test]
fn an_ack_of_nothing_sent_is_reset_while_opening() {
    let mut t = Script::connect(&config(|_| {}));
    let mut synack = t.syn_ack();
    synack.ack = ISN.advanced_by(7);
    t.expect("S").segment(synack).expect("R 7");
    assert_eq!(t.end.state(), State::SynSent);

    let mut t = half_open(|_| {});
    t.ack(0).expect("R 0").ack(7).expect("R 7"); // RFC 9293 §3.10.7.4, fifth step
    assert_eq!(t.end.state(), State::SynReceived);
}

#[test]
fn a_reset_refuses_a_syn_if_it_acknowledges_it() {
    let mut t = Script::connect(&config(|_| {}));
    t.expect("S");
    let mut reset = t.syn();
    reset.flags = Flags::RST;
    t.segment(reset).expect_nothing();
    (reset.flags, reset.ack) = (Flags::RST | Flags::ACK, ISN.advanced_by(3));
    t.segment(reset).expect_nothing();
    assert_eq!(t.end.state(), State::SynSent);
    reset.ack = ISN.advanced_by(1);
    t.segment(reset).expect_nothing();
    assert_eq!(t.end.closed(), Some((CloseReason::Refused, time("0 s"))));
}

#[test]
fn a_listener_answers_an_ack_with_a_reset_and_ignores_a_reset() {
    let mut t = Script::listen(&config(|_| {}));
    t.ack(5).expect("R 5").reset(0).expect_nothing();
    assert_eq!(t.end.state(), State::Listen);
}

#[test]
fn a_reset_or_a_new_syn_sends_a_half_open_connection_back_to_listen() {
    // RFC 9293 §3.10.7.4, second and fourth step
    let mut t = half_open(|_| {});
    t.reset(1).expect_nothing();
    assert_eq!(t.end.state(), State::Listen);
    let mut t = half_open(|_| {});
    let mut syn = t.syn();
    syn.seq = PEER_ISN.advanced_by(100);
    t.segment(syn).expect_nothing().segment(syn).expect("S.");
    assert_eq!(t.last().ack, PEER_ISN.advanced_by(101));
}

#[test]
fn a_restarted_client_with_a_far_isn_is_asked_by_ack_and_resets() {
    let mut t = half_open(|_| {});
    let mut syn = t.syn();
    syn.seq = Seq(PEER_ISN.0.wrapping_sub(1_000_000));
    t.segment(syn).expect("ack 1").reset(1).segment(syn).expect("S.");
}

#[test]
fn what_was_written_and_closed_before_the_handshake_follows_it() {
    let mut t = Script::connect(&config(|_| {}));
    let synack = t.syn_ack();
    t.expect("S").write(1500).close().expect_nothing();
    t.segment(synack).expect("1:1001, 1001:1501 F");
    assert_eq!(t.end.state(), State::FinWait1);
}
