//! Closing, resets, and segments that do not belong (RFC 9293 §3.6, §3.10.7; RFC 5961).

use crate::script::{PEER_ISN, Script, config};
use crate::time;
use farpath_tcp::config::HandshakeRules;
use farpath_tcp::{CloseReason, Endpoint, Flags, Segment, Seq, State};

fn open() -> Script {
    Script::established(&config(|c| c.handshake.time_wait = crate::duration("60 s")))
}

/// Brings a connection into each synchronized state.
fn in_state(state: State) -> Script {
    let mut t = open();
    match state {
        State::Established => {}
        State::FinWait1 => drop(t.close()),
        State::FinWait2 => drop(t.close().ignore().ack(2)),
        State::CloseWait => drop(t.fin()),
        State::Closing => drop(t.close().ignore().fin()),
        State::LastAck => drop(t.fin().ignore().close()),
        State::TimeWait => drop(t.close().ignore().ack(2).fin()),
        other => panic!("{other:?} is not synchronized"),
    }
    t.ignore();
    assert_eq!(t.end.state(), state);
    t
}

const SYNCHRONIZED: [State; 7] = [
    State::Established,
    State::FinWait1,
    State::FinWait2,
    State::CloseWait,
    State::Closing,
    State::LastAck,
    State::TimeWait,
];

#[test]
fn the_end_that_closes_first_waits() {
    let mut t = open();
    t.write(500).expect("1:501").close().expect("501:501 F");
    assert_eq!(t.end.state(), State::FinWait1);
    t.ack(502).expect_nothing();
    assert_eq!(t.end.state(), State::FinWait2);
    t.at("10 s").fin().expect("ack 2");
    assert_eq!(
        (t.end.state(), t.end.closed()),
        (State::TimeWait, Some((CloseReason::Finished, time("10 s"))))
    );
    t.at("69.9 s").expect_nothing();
    assert_eq!(t.end.state(), State::TimeWait);
    t.at("70 s").expect_nothing();
    assert_eq!((t.end.state(), t.end.next_due()), (State::Closed, None));
}

#[test]
fn the_end_that_closes_second_is_done_with_its_last_ack() {
    let mut t = open();
    t.fin().expect("ack 2");
    assert_eq!(t.end.state(), State::CloseWait);
    t.close().expect("1:1 F");
    assert_eq!(t.end.state(), State::LastAck);
    t.at("1 s").expect("1:1 F").ack(2).expect_nothing();
    assert_eq!(t.end.closed(), Some((CloseReason::Finished, time("1 s"))));
}

#[test]
fn both_ends_may_close_at_once() {
    // RFC 9293 §3.6, Figure 13
    let mut t = open();
    t.close().expect("1:1 F").fin().expect("ack 2");
    assert_eq!(t.end.state(), State::Closing);
    t.ack(2).expect_nothing();
    assert_eq!(t.end.state(), State::TimeWait);
}

#[test]
fn a_fin_that_acknowledges_ours_goes_straight_to_time_wait() {
    let mut t = open();
    t.close().expect("1:1 F");
    t.peer_acks = 2;
    t.fin().expect("ack 2");
    assert_eq!(t.end.state(), State::TimeWait);
}

#[test]
fn a_half_closed_connection_still_carries_data_the_other_way() {
    let mut t = open();
    t.fin().expect("ack 2").write(2000).expect("1:1001, 1001:2001").ack(2001).expect_nothing();
    let mut t = in_state(State::FinWait2);
    t.data(1..1001).data(1001..2001).expect("ack 2001");
    assert_eq!(t.end.readable(), 2000);
}

#[test]
fn nothing_can_be_written_after_close() {
    let mut t = open();
    assert_eq!(t.close().ignore().end.write(100), 0);
}

#[test]
fn a_lost_fin_is_sent_again_with_its_data() {
    let mut t = open();
    t.end.write(300);
    t.close().expect("1:301 F").at("1 s").expect("1:301 F").ack(302).expect_nothing();
    assert_eq!(t.end.state(), State::FinWait2);
}

#[test]
fn a_fin_that_overtakes_its_data_counts_when_the_data_is_there() {
    let mut t = open();
    t.data_with(Flags::FIN, 1001..2001).expect("ack 1");
    assert_eq!(t.end.state(), State::Established);
    t.data(1..1001).expect("ack 2002");
    assert_eq!((t.end.state(), t.end.readable()), (State::CloseWait, 2000));

    let mut t = open();
    t.data_with(Flags::FIN, 2001..2001).expect("ack 1").data(1..1001).ignore();
    t.data(1001..2001).expect("ack 2002");
    assert_eq!(t.end.receiver().duplicate_segments(), 0);
}

#[test]
fn nothing_follows_a_fin() {
    let mut t = open();
    t.fin().expect("ack 2").data(2..502).expect("ack 2");
    assert_eq!(t.end.readable(), 0);
    let mut t = open();
    t.data_with(Flags::FIN, 1001..1501).ignore().data_with(Flags::FIN, 501..601).ignore();
    t.data(1001..3001).ignore().data(1..1001).expect("ack 1502");
}

#[test]
fn a_segment_that_covers_a_block_and_meets_the_next_joins_both() {
    let mut t = open();
    t.data(501..601).ignore().data(1001..1501).ignore().data(1..1001).expect("ack 1501");
}

#[test]
fn time_wait_acknowledges_the_fin_again_and_waits_anew() {
    let mut t = in_state(State::TimeWait);
    t.at("30 s").data_with(Flags::FIN, 1..1).expect("ack 2").at("89 s").expect_nothing();
    assert_eq!(t.end.state(), State::TimeWait);
    t.at("90 s").expect_nothing();
    assert_eq!(t.end.state(), State::Closed);
}

#[test]
fn a_reset_at_the_expected_number_ends_every_state() {
    // RFC 5961 §3.2
    for state in SYNCHRONIZED {
        let mut t = in_state(state);
        let next = t.end.receiver().next();
        t.reset(next).expect_nothing();
        assert_eq!(t.end.state(), State::Closed, "from {state:?}");
        let reason = if state == State::TimeWait { CloseReason::Finished } else { CloseReason::Reset };
        assert_eq!(t.end.closed().map(|(reason, _)| reason), Some(reason), "from {state:?}");
    }
}

#[test]
fn a_reset_elsewhere_in_the_window_is_questioned_and_outside_of_it_ignored() {
    for state in SYNCHRONIZED {
        let mut t = in_state(state);
        let next = t.end.receiver().next();
        t.reset(next + 100).expect(&format!("ack {next}")).reset(next + 1_000_000).expect_nothing();
        assert_eq!(t.end.state(), state);
    }
}

#[test]
fn a_syn_is_questioned_wherever_it_lies() {
    // RFC 5961 §4.2
    for state in SYNCHRONIZED {
        for place in [0, 1, 50, 10_000_000] {
            let mut t = in_state(state);
            let mut syn = Segment::new(Flags::SYN, PEER_ISN.advanced_by(place), Seq(0));
            syn.window = 1000;
            let next = t.end.receiver().next();
            t.segment(syn).expect(&format!("ack {next}"));
            assert_eq!(t.end.state(), state);
        }
    }
}

#[test]
fn an_ack_of_what_was_never_sent_or_from_long_ago_is_questioned() {
    // RFC 9293 §3.10.7.4, fifth step; RFC 5961 §5.2
    let mut t = open();
    t.write(1000).ignore().ack(1002).expect("ack 1").ack(1001).expect_nothing();
    let mut old = t.peer_segment(Flags::ACK);
    old.ack = Seq(old.ack.0.wrapping_sub(1_000_000));
    old.len = 100;
    t.segment(old).expect("ack 1");
    assert_eq!(t.end.readable(), 0);
}

#[test]
fn data_outside_of_the_window_is_refused_with_an_ack_and_old_data_is_counted() {
    let mut t = open();
    t.data(1..1001).ignore().data(1..1001).expect("ack 1001").data(100_001..100_101).expect("ack 1001");
    assert_eq!(t.end.receiver().duplicate_segments(), 1);
}

#[test]
fn a_segment_without_ack_is_dropped() {
    let mut t = open();
    let mut segment = t.peer_segment(Flags::ACK);
    (segment.flags, segment.len) = (Flags::PSH, 100);
    t.segment(segment).expect_nothing();
    assert_eq!((t.end.readable(), t.end.stats().segments_refused), (0, 1));
}

#[test]
fn an_abort_tells_the_peer() {
    let mut t = open();
    t.data(1..101).write(100).ignore();
    t.end.abort(t.now);
    t.poll();
    t.expect("R. 101 ack 101");
    assert_eq!(t.end.closed(), Some((CloseReason::Aborted, time("0 s"))));
}

#[test]
fn there_is_nothing_to_abort_where_both_ends_have_closed() {
    let mut t = in_state(State::TimeWait);
    t.end.abort(t.now);
    t.poll();
    t.expect_nothing();
    assert_eq!(t.end.state(), State::Closed);
}

#[test]
fn a_closed_connection_answers_with_a_reset_unless_it_is_ns3() {
    let mut t = in_state(State::LastAck);
    t.ack(2).expect_nothing().ack(2).expect("R 2");
    let mut syn = t.syn();
    syn.len = 10;
    t.segment(syn).expect("R. 2501 ack 11"); // sequence number zero itself
    t.reset(5).expect_nothing();
    let mut t = Script::established(&config(|c| c.handshake.rules = HandshakeRules::Ns3));
    t.reset(1).data(1..101).expect_nothing();
}

#[test]
fn ten_challenges_are_answered_in_five_seconds() {
    // RFC 5961 §7
    let mut t = open();
    let mut syn = Segment::new(Flags::SYN, PEER_ISN.advanced_by(1), Seq(0));
    syn.window = 1000;
    t.at("1 s");
    for _ in 0..10 {
        t.segment(syn).expect("ack 1");
    }
    t.segment(syn).expect_nothing().reset(2).expect_nothing();
    t.at("5.999 s").segment(syn).expect_nothing().at("6 s").segment(syn).expect("ack 1");
    assert_eq!(t.end.state(), State::Established);
}
