//! Loss recovery with selective acknowledgments (RFC 2018, RFC 6675).
#![allow(clippy::single_range_in_vec_init, reason = "one SACK block is a list of one range")]
#![allow(clippy::reversed_empty_ranges, reason = "a hostile block may be one")]

use crate::script::{Script, config};
use farpath_tcp::config::SackRules;
use farpath_tcp::{Config, Endpoint, Flags, State};

fn sack(change: impl FnOnce(&mut Config)) -> Config {
    config(|c| {
        c.recovery.sack = true;
        change(c);
    })
}

/// Ten segments from 1 to 10001 in flight, and no more to send.
fn in_flight(change: impl FnOnce(&mut Config)) -> Script {
    let mut t = Script::established(&sack(change));
    t.write(10_000).ignore();
    t
}

#[test]
fn three_reports_begin_recovery_and_nothing_is_inflated() {
    // RFC 6675 §5 step 4
    let mut t = in_flight(|_| {});
    t.sack(1, &[1001..2001]).sack(1, &[1001..3001]).expect_nothing();
    t.sack(1, &[1001..4001]).expect("1:1001");
    assert_eq!((t.cwnd(), t.ssthresh()), (5000, 5000));
    assert_eq!(t.sender().pipe(), 10_000 - 3000, "ten, less three SACKed and one lost, and one copy");
}

#[test]
fn more_than_two_segments_worth_in_one_report_begin_recovery() {
    // IsLost(), by bytes: ACKs of other segments were lost.
    in_flight(|_| {}).sack(1, &[1001..4001]).expect("1:1001");
}

#[test]
fn three_separate_holes_above_begin_recovery() {
    // IsLost(), by discontiguous sequences: small segments.
    let mut t = Script::established(&sack(|c| c.send.nagle = false));
    for _ in 0..7 {
        t.write(100);
    }
    // cwnd has room for all of them: first the lost, then the holes of which less is known.
    t.ignore().sack(1, &[601..701, 401..501, 201..301]).expect("1:101, 101:201, 301:401, 501:601");
}

#[test]
fn an_ack_of_new_data_that_reports_something_is_the_first_duplicate() {
    // RFC 6675 §5, step 1: small segments, so that only counting finds the loss of 101:201.
    let mut t = Script::established(&sack(|c| c.send.nagle = false));
    for _ in 0..7 {
        t.write(100);
    }
    t.ignore().sack(101, &[201..301]).sack(101, &[201..401]).expect_nothing();
    t.sack(101, &[201..501]).expect("101:201");
    assert_eq!((t.sender().stats().dup_acks, t.sender().stats().fast_retransmits), (2, 1));
}

#[test]
fn an_ack_of_new_data_that_shows_a_loss_begins_recovery_and_grows_nothing() {
    // RFC 6675 §5, step 2: the ACKs before it were lost.
    let mut t = in_flight(|_| {});
    t.sack(1001, &[2001..5001]).expect("1001:2001");
    assert_eq!((t.cwnd(), t.ssthresh()), (4500, 4500), "half of the nine segments that are left");
}

#[test]
fn a_duplicate_ack_without_news_counts_for_nothing() {
    // RFC 6675 §2: a duplicate ACK is one that reports something new.
    let mut t = in_flight(|_| {});
    t.dup_acks(5).sack(1, &[1001..2001]).dup_acks(5).expect_nothing();
    assert_eq!(t.sender().stats().dup_acks, 1);
}

#[test]
fn several_holes_are_repaired_within_one_round_trip() {
    // 1, 3001 and 6001 are lost; each ACK that reports a segment lets another one out.
    let mut t = in_flight(|_| {});
    t.at("100 ms").sack(1, &[1001..2001]).sack(1, &[1001..3001]);
    t.sack(1, &[4001..5001, 1001..3001]).expect("1:1001");
    t.sack(1, &[4001..6001, 1001..3001]).expect_nothing();
    t.sack(1, &[7001..8001, 4001..6001, 1001..3001]).expect("3001:4001");
    t.sack(1, &[7001..9001, 4001..6001, 1001..3001]).expect("6001:7001");
    t.sack(1, &[7001..10_001, 4001..6001, 1001..3001]).expect_nothing();
    t.at("200 ms").sack(3001, &[7001..10_001, 4001..6001]).ack(6001).ack(10_001).expect_nothing();
    assert_eq!(t.sender().stats().retransmissions, 3);
    assert_eq!((t.sender().stats().fast_retransmits, t.sender().stats().timeouts), (1, 0));
}

#[test]
fn lost_segments_go_before_new_data_and_new_data_before_the_unreported() {
    // NextSeg() rules 1, 2 and 3: 1 is lost, 5001 is a hole of which nothing is known.
    for (written, expected) in [(1000, "10001:11001"), (0, "5001:6001")] {
        let mut t = in_flight(|_| {});
        t.sack(1, &[1001..5001]).expect("1:1001").write(written).expect_nothing();
        t.sack(1, &[6001..7001, 1001..5001]).expect_nothing(); // pipe is 5000, as cwnd
        t.sack(1, &[6001..8001, 1001..5001]).expect(expected);
    }
}

#[test]
fn the_unreported_is_sent_while_new_data_waits_for_the_peers_window_where_that_is_wanted() {
    // NextSeg() rule 3, and ns-3, which goes by it only where there is no new data.
    let [rfc, ns3] = [SackRules::WithoutRescue, SackRules::Ns3];
    for (rules, written, sends) in [(rfc, 1000, true), (ns3, 1000, false), (rfc, 0, true), (ns3, 0, true)] {
        let mut t = in_flight(|c| c.recovery.sack_rules = rules);
        t.window = 10_000;
        t.sack(1, &[1001..5001]).expect("1:1001").write(written).expect_nothing();
        t.sack(1, &[6001..7001, 1001..5001]).expect_nothing();
        t.sack(1, &[6001..8001, 1001..5001]).expect(if sends { "5001:6001" } else { "" });
    }
}

#[test]
fn the_unreported_is_sent_only_below_the_highest_report() {
    let mut t = in_flight(|_| {});
    t.sack(1, &[1001..9001]).expect("1:1001"); // room for more, but 9001:10001 may yet arrive
}

#[test]
fn a_partial_ack_goes_on_by_the_scoreboard() {
    let mut t = in_flight(|_| {});
    t.sack(1, &[4001..9001]).expect("1:1001, 1001:2001, 2001:3001, 3001:4001");
    t.sack(2001, &[4001..9001]).expect_nothing();
    assert_eq!(t.cwnd(), 5000);
    t.ack(10_001).expect_nothing();
    assert_eq!((t.cwnd(), t.ssthresh()), (5000, 5000));
}

#[test]
fn every_partial_ack_restarts_the_timer() {
    let mut t = in_flight(|_| {});
    t.at("100 ms").sack(1, &[4001..9001]).ignore();
    for (at, ack) in [("900 ms", 1001), ("1.7 s", 2001), ("2.5 s", 3001)] {
        t.at(at).sack(ack, &[4001..9001]).expect_nothing();
    }
    t.at("3.4 s").expect_nothing();
    assert_eq!(t.sender().stats().timeouts, 0);
}

#[test]
fn what_was_reported_is_not_sent_again_after_a_timeout() {
    let mut t = in_flight(|c| c.recovery.dup_ack_threshold = 10);
    t.sack(1, &[1001..3001, 5001..6001]).at("1 s").expect("1:1001");
    t.ack(3001).expect("3001:4001, 4001:5001");
    t.ack(6001).expect("6001:7001, 7001:8001, 8001:9001");
}

#[test]
fn a_receiver_that_takes_its_reports_back_gets_everything_again() {
    // RFC 2018 §8: the timer's segment had been reported.
    let mut t = in_flight(|_| {});
    t.sack(1, &[1001..2001]).at("500 ms").ack(1001).at("2 s").expect("1001:2001");
}

#[test]
fn reports_during_repair_after_a_timeout_start_no_second_recovery() {
    // RFC 6675 §5.1
    let mut t = in_flight(|_| {});
    t.at("1 s").expect("1:1001").sack(1, &[3001..7001]).expect_nothing();
    assert_eq!((t.sender().stats().fast_retransmits, t.cwnd()), (0, 1000));
}

#[test]
fn reports_below_the_ack_or_beyond_what_was_sent_are_ignored() {
    // RFC 2883: a first block below the ACK reports a duplicate. Nobody may report what was never sent.
    let mut t = in_flight(|_| {});
    t.at("100 ms").ack(3001).sack(3001, &[1..1001]).sack(3001, &[4001..20_001]).expect_nothing();
    t.sack(3001, &[9001..8001]).expect_nothing();
    assert_eq!(t.sender().pipe(), 7000);
    assert_eq!(t.sender().stats().dup_acks, 0);
}

#[test]
fn limited_transmit_is_governed_by_pipe() {
    // RFC 6675 §5 step 3
    let mut t = in_flight(|c| c.recovery.limited_transmit = true);
    t.write(10_000).expect_nothing();
    t.sack(1, &[1001..2001]).expect("10001:11001");
    t.sack(1, &[1001..3001]).expect("11001:12001");
    t.sack(1, &[1001..4001]).expect("1:1001");
    assert_eq!(t.ssthresh(), 5000, "RFC 5681 §3.2 step 2: 12000 in flight, 2000 by limited transmit");
}

#[test]
fn without_the_peers_leave_nothing_is_reported_or_believed() {
    let mut t = Script::connect(&sack(|_| {}));
    let mut synack = t.syn_ack();
    synack.sack_permitted = false;
    t.expect("S").segment(synack).expect("ack 1");
    t.data(1001..2001).expect("ack 1");
    t.write(10_000).ignore().sack(1, &[1001..4001]).expect_nothing();
}

// ---- The receiver's reports (RFC 2018 §4) ----

#[test]
fn the_first_block_holds_what_has_just_arrived_and_older_ones_follow() {
    let mut t = Script::established(&sack(|_| {}));
    t.data(1001..2001).expect("ack 1 sack 1001:2001");
    t.data(5001..6001).expect("ack 1 sack 5001:6001 1001:2001");
    t.data(3001..4001).expect("ack 1 sack 3001:4001 5001:6001 1001:2001");
    t.data(4001..5001).expect("ack 1 sack 3001:6001 1001:2001");
    t.data(1..1001).expect("ack 2001 sack 3001:6001");
    t.data(2001..3001).expect("ack 6001");
}

#[test]
fn a_long_block_does_not_push_the_others_out_of_memory() {
    let mut t = Script::established(&sack(|_| {}));
    t.data(9001..9101).ignore();
    t.data(1001..1101).ignore();
    for start in [3001, 3101, 3201, 3301, 3401] {
        t.data(start..start + 100).ignore();
    }
    t.data(20_001..20_101).expect("ack 1 sack 20001:20101 3001:3501 1001:1101 9001:9101");
}

#[test]
fn at_most_four_blocks_and_three_beside_timestamps() {
    for (timestamps, expected) in
        [(false, "9001:9101 7001:7101 5001:5101 3001:3101"), (true, "9001:9101 7001:7101 5001:5101")]
    {
        let mut t = Script::established(&sack(|c| c.send.timestamps = timestamps));
        for start in [1001, 3001, 5001, 7001] {
            t.data(start..start + 100).ignore();
        }
        t.data(9001..9101).expect(&format!("ack 1 sack {expected}"));
        assert!(t.last().options_len() <= 40);
    }
}

#[test]
fn a_fin_beyond_a_gap_is_reported_with_what_it_follows() {
    // RFC 2018 §3 reports sequence space, and a FIN has a place in it: else its segment never counts as delivered.
    let mut t = Script::established(&sack(|_| {}));
    t.data_with(Flags::FIN, 1001..2001).expect("ack 1 sack 1001:2002");
    t.data(1..1001).expect("ack 2002");
    assert_eq!(t.end.state(), State::CloseWait);
    let mut t = Script::established(&sack(|_| {}));
    t.data_with(Flags::FIN, 1001..1001).expect("ack 1 sack 1001:1002").data(1..1001).expect("ack 1002");
    assert_eq!(t.end.readable(), 1000);
}

#[test]
fn a_report_is_not_lost_behind_data_of_our_own() {
    // Data carries no SACK option here, and a segment with payload is no duplicate ACK.
    let mut t = Script::established(&sack(|_| {}));
    t.end.write(500);
    t.data(1001..2001).expect("ack 1 sack 1001:2001, 1:501");
}
