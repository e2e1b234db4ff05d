//! Losses by time: RACK (RFC 8985 §6), and PRR and the rescue retransmission beside it.
#![allow(clippy::single_range_in_vec_init, reason = "one SACK block is a list of one range")]

use crate::script::{Script, config};
use crate::time;
use farpath_tcp::config::{RateReduction, RepairTimer, SackRules};
use farpath_tcp::{Config, Endpoint, Timestamps};
use farpath_units::Bytes;

fn rack(change: impl FnOnce(&mut Config)) -> Config {
    config(|c| {
        (c.recovery.sack, c.recovery.rack) = (true, true);
        change(c);
    })
}

/// Connected at 100 ms, over a round trip of as much.
fn connected(change: impl FnOnce(&mut Config)) -> Script {
    let mut t = Script::connect(&rack(change));
    let synack = t.syn_ack();
    t.expect("S").at("100 ms").segment(synack).expect("ack 1");
    t
}

/// As many segments in flight from 1 on, sent at 100 ms.
fn in_flight(segments: u64, change: impl FnOnce(&mut Config)) -> Script {
    let mut t = connected(change);
    t.write(segments * 1000).ignore();
    t
}

#[test]
fn a_segment_is_lost_a_quarter_of_a_round_trip_after_a_later_one_arrived() {
    // §6.2 steps 4 and 5: one report is enough.
    let mut t = connected(|_| {});
    t.write(3000).ignore();
    t.at("200 ms").sack(1, &[1001..2001]).expect_nothing();
    t.at("224 ms").expect_nothing().at("225 ms").expect("1:1001");
    assert_eq!(t.sender().stats().fast_retransmits, 1);
    // 2001:3001 was sent after what has arrived: nothing is known of it.
    t.at("300 ms").sack(1, &[1001..3001]).expect_nothing();
}

#[test]
fn three_reports_need_no_time_while_no_reordering_was_seen() {
    // §6.2 step 4: DupThresh segments SACKed take the reordering window away.
    let mut t = connected(|_| {});
    t.write(10_000).ignore();
    t.at("200 ms").sack(1, &[1001..2001]).sack(1, &[1001..3001]).expect_nothing();
    t.sack(1, &[1001..4001]).expect("1:1001");
}

#[test]
fn after_reordering_three_reports_are_no_loss() {
    // §6.2 step 3: a segment that was sent once came after a later one.
    let mut t = connected(|_| {});
    t.write(10_000).ignore();
    t.at("200 ms").sack(1, &[1001..2001]).ack(2001).expect_nothing();
    t.sack(2001, &[3001..6001]).at("224 ms").expect_nothing().at("225 ms").expect("2001:3001");
}

#[test]
fn a_lost_retransmission_is_found_by_what_was_sent_after_it() {
    let mut t = in_flight(10, |_| {});
    t.at("200 ms").sack(1, &[1001..4001]).expect("1:1001").write(5000).expect_nothing();
    t.sack(1, &[1001..10_001]).expect("10001:11001, 11001:12001, 12001:13001, 13001:14001");
    // The first new segment arrives: sent after the copy, a round trip ago.
    t.at("300 ms").sack(1, &[1001..11_001]).expect("1:1001, 14001:15001");
    assert_eq!((t.sender().stats().timeouts, t.sender().stats().fast_retransmits), (0, 1));
}

#[test]
fn over_no_distance_a_retransmission_is_not_lost_for_what_left_before_it() {
    // Nothing takes time: the copy leaves when what has arrived did, and after it.
    let mut t = Script::established(&rack(|c| c.congestion.initial_window = 20));
    t.write(20_000).ignore();
    t.sack(1, &[1001..18_001]).expect("1:1001");
    t.sack(1, &[1001..19_001]).sack(1, &[1001..20_001]).expect_nothing();
    // New data leaves after it, and arrives: now it is.
    t.write(1000).expect("20001:21001").sack(1, &[1001..21_001]).expect("1:1001");
}

#[test]
fn a_retransmission_that_is_answered_too_soon_proves_nothing() {
    // §6.2 step 2: the original arrived, and what was sent before the copy is not lost for that.
    let mut t = in_flight(10, |_| {});
    t.at("200 ms").sack(1, &[1001..4001]).expect("1:1001");
    // Within less than min_rtt of the copy; 4001:5001 and on were sent with the original.
    t.at("201 ms").ack(4001).at("299 ms").expect_nothing();
    assert_eq!(t.sender().pipe(), 6000);
}

/// Over a round trip of 100 ms, at 200 ms: four copies leave, of 1:1001, 1001:2001, 2001:3001 and 4001:5001.
fn four_copies_in_flight() -> Script {
    let mut t = Script::connect(&rack(|c| {
        (c.mss, c.send.timestamps, c.congestion.initial_window) = (Bytes(1012), true, 20);
    }));
    let mut synack = t.syn_ack();
    synack.timestamps = Some(Timestamps { value: 1000, echo: 1 });
    t.expect("S").at("100 ms").segment(synack).expect("ack 1");
    t.timestamps = Some(Timestamps { value: 1000, echo: 101 });
    t.write(20_000).ignore();
    t.at("200 ms").sack(1, &[3001..4001, 5001..20_001]);
    t.expect("1:1001, 1001:2001, 2001:3001, 4001:5001");
    t
}

#[test]
fn beyond_a_gap_the_echo_tells_nothing_of_a_copy() {
    // RFC 7323 §4.3: it is the last segment's in sequence, older than any copy.
    let mut t = four_copies_in_flight();
    t.at("300 ms").sack(1, &[2001..4001, 5001..20_001]).expect("1:1001, 1001:2001");
    // Sooner than any segment has arrived: the copy of before, late. 1:1001 is not lost for that.
    t.at("350 ms").sack(1, &[1001..4001, 5001..20_001]).expect_nothing();
}

#[test]
fn where_the_gap_ends_the_echo_tells_which_transmission_ended_it() {
    // §6.2 step 2: the copy of 300 ms, and then what left at 200 ms is lost; or an earlier one.
    for (echo, expected) in [(301, "4001:5001"), (201, "")] {
        let mut t = four_copies_in_flight();
        t.at("300 ms").sack(1, &[2001..4001, 5001..20_001]).ignore();
        t.timestamps = Some(Timestamps { value: 1001, echo });
        t.at("400 ms").sack(1001, &[2001..4001, 5001..20_001]).expect(expected);
    }
}

#[test]
fn a_timeout_loses_only_what_has_had_its_time() {
    // §6.3
    let mut t = in_flight(1, |c| c.send.nagle = false);
    t.at("1.09 s").write(1000).expect("1001:2001").at("1.1 s").expect("1:1001");
    assert_eq!(t.sender().pipe(), 2000, "the copy, and what was sent 10 ms ago");
    t.at("1.19 s").sack(1, &[1001..2001]).at("1.2 s").ack(2001).expect_nothing();
}

#[test]
fn duplicates_reported_widen_the_reordering_window() {
    // §6.2 step 4: RACK.reo_wnd_mult, once a round.
    let mut t = connected(|_| {});
    t.write(10_000).ignore();
    t.at("200 ms").sack(1, &[1001..2001]).ack(2001).sack(2001, &[1..1001]).sack(2001, &[1..1001]);
    t.sack(2001, &[3001..6001]).at("249 ms").expect_nothing().at("250 ms").expect("2001:3001");
}

#[test]
fn without_sack_duplicates_are_counted() {
    let mut t = Script::established(&config(|c| c.recovery.rack = true));
    t.write(10_000).ignore().dup_acks(3).expect("1:1001");
}

#[test]
fn the_reordering_timer_stops_when_the_late_segment_arrives() {
    let mut t = connected(|_| {});
    t.write(3000).ignore();
    t.at("200 ms").sack(1, &[1001..2001]).expect_nothing();
    assert_eq!(t.end.next_due(), Some(time("225 ms")));
    t.at("210 ms").ack(2001).at("300 ms").expect_nothing();
    assert_eq!(t.sender().stats().fast_retransmits, 0);
}

#[test]
fn a_timeout_sends_one_segment_beside_what_was_sent_a_moment_ago() {
    // §6.3: that is not lost yet, and a window of one segment would wait for it.
    let mut t = in_flight(3, |_| {});
    t.at("1050 ms").write(1000).expect("3001:4001").at("1.1 s").expect("1:1001");
    assert_eq!((t.cwnd(), t.sender().pipe()), (2000, 2000), "the new one, and the copy");
}

// ---- PRR (RFC 6937, RFC 9937) ----

fn reducing(bound: RateReduction) -> Script {
    let mut t = Script::established(&config(|c| {
        (c.recovery.sack, c.recovery.rate_reduction) = (true, bound);
        c.congestion.initial_window = 20;
    }));
    t.write(40_000).ignore();
    t
}

#[test]
fn one_segment_leaves_for_every_two_that_arrive() {
    // RFC 6937 §3, where RFC 6675 waits for half a window of silence.
    let sent = |bound| {
        let mut t = reducing(bound);
        t.sack(1, &[1001..2001]).sack(1, &[1001..3001]).expect_nothing();
        t.sack(1, &[1001..4001]).expect("1:1001");
        let mut sent = Vec::new();
        for n in 4..=19 {
            let before = t.sender().stats().data_segments;
            t.sack(1, &[1001..1001 + 1000 * n]).ignore();
            sent.push(t.sender().stats().data_segments - before);
        }
        t.ack(20_001).ignore();
        assert_eq!((t.cwnd(), t.ssthresh()), (10_000, 10_000), "{bound:?}");
        sent
    };
    assert_eq!(sent(RateReduction::AtOnce), [0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
    // ceil(n * 10 / 18) after n segments, the first one ahead of its time; at the end ten of eighteen.
    assert_eq!(sent(RateReduction::SafeAck), [0, 0, 1, 0, 1, 0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 1]);
}

#[test]
fn in_a_burst_of_losses_as_much_is_sent_as_arrives() {
    // RFC 6937 §3: sixteen of twenty are lost, pipe falls far below ssthresh.
    let burst = |bound| {
        let mut t = reducing(bound);
        t.sack(1, &[16_001..20_001]);
        let first = t.sender().stats().retransmissions;
        t.ignore().ack(1001).ignore();
        (first, t.sender().stats().retransmissions - first)
    };
    assert_eq!(burst(RateReduction::AtOnce), (10, 1), "a burst of half the window");
    assert_eq!(burst(RateReduction::Conservative), (4, 1));
    assert_eq!(burst(RateReduction::SlowStart), (5, 2));
    assert_eq!(burst(RateReduction::SafeAck), (4, 2));
}

// ---- The rescue retransmission (RFC 6675 §4, NextSeg rule 4) ----

#[test]
fn the_end_of_the_flight_is_sent_again_once_where_nothing_else_may_be() {
    for (rules, expected) in
        [(SackRules::WithoutRescue, "1:1001"), (SackRules::Rfc6675, "1:1001, 9001:10001")]
    {
        let mut t = Script::established(&config(|c| {
            (c.recovery.sack, c.recovery.sack_rules) = (true, rules);
        }));
        t.write(10_000).ignore();
        t.sack(1, &[1001..9001]).expect(expected);
        t.at("100 ms").ack(9001).expect_nothing();
    }
}

#[test]
fn the_repair_of_the_first_segment_restarts_the_timer_where_that_follows_it() {
    for (timer, due) in [
        (RepairTimer::None, "1.1 s"),
        (RepairTimer::FastRetransmit, "1.2 s"),
        (RepairTimer::FirstSegment, "1.2 s"),
    ] {
        let mut t = in_flight(10, |c| c.recovery.repair_timer = timer);
        t.at("200 ms").sack(1, &[1001..4001]).expect("1:1001");
        t.at("1.9 s").expect_timed(&format!("{due} 1:1001"));
    }
}

#[test]
fn a_report_of_what_left_before_the_repair_restarts_the_timer() {
    // tcp_rearm_rto() with FLAG_SET_XMIT_TIMER: of the repair itself there can be no news yet.
    for (timer, due) in [(RepairTimer::FastRetransmit, "1.2 s"), (RepairTimer::FirstSegment, "1.25 s")] {
        let mut t = in_flight(10, |c| c.recovery.repair_timer = timer);
        t.at("200 ms").sack(1, &[1001..4001]).expect("1:1001");
        t.at("250 ms").sack(1, &[1001..10_001]).expect_nothing();
        t.at("2 s").expect_timed(&format!("{due} 1:1001"));
    }
}
