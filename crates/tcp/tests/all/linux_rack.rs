//! RACK by Linux's rules: what is reordering, which D-SACKs are believed, what is sent again at all.
#![allow(clippy::single_range_in_vec_init, reason = "one SACK block is a list of one range")]

use crate::script::{Script, config};
use farpath_tcp::config::{RackRules, SlowStartGrowth};
use farpath_tcp::{Config, Timestamps};
use farpath_units::Bytes;

/// Connected at 100 ms, over a round trip of as much, with timestamps; 30 segments fit into the window.
fn connected(change: impl FnOnce(&mut Config)) -> Script {
    let mut t = Script::connect(&config(|c| {
        (c.recovery.sack, c.recovery.rack, c.recovery.rack_rules) = (true, true, RackRules::Linux);
        (c.recovery.eifel, c.recovery.undo_by_dsack, c.recovery.dsack) = (true, true, true);
        (c.mss, c.send.timestamps, c.congestion.initial_window) = (Bytes(1012), true, 30);
        c.congestion.slow_start = SlowStartGrowth::AllAcked;
        c.congestion.growth_by_delivery = true;
        change(c);
    }));
    let mut synack = t.syn_ack();
    synack.timestamps = Some(Timestamps { value: 1000, echo: 1 });
    t.expect("S").at("100 ms").segment(synack).expect("ack 1");
    echo(&mut t, 101);
    t
}

/// What comes from now on echoes this time, in milliseconds.
fn echo(t: &mut Script, ms: u32) {
    t.timestamps = Some(Timestamps { value: 1000, echo: ms });
}

#[test]
fn an_ack_that_advances_and_reports_at_once_is_no_reordering() {
    // tcp_ack() takes prior_fack first. A delayed ACK makes one of every second loss: 1:1001 in order, 2001:3001 beyond a hole.
    for rules in [RackRules::Linux, RackRules::Rfc8985] {
        let mut t = connected(|c| c.recovery.rack_rules = rules);
        t.write(10_000).ignore().at("200 ms").sack(1001, &[2001..3001]).sack(1001, &[2001..4001]);
        t.sack(1001, &[2001..5001]).expect("1001:2001");
    }
}

#[test]
fn a_duplicate_from_the_path_widens_nothing() {
    // tcp_dsack_seen(): without reordering, and beyond what was sent again, it tells nothing.
    let mut t = connected(|_| {});
    t.write(10_000).ignore().at("200 ms").sack(1001, &[1..1001]).sack(1001, &[1..1001]);
    t.sack(1001, &[2001..3001]).at("224 ms").expect_nothing().at("225 ms").expect("1001:2001");
}

#[test]
fn after_reordering_a_duplicate_that_was_sent_again_widens_the_window() {
    let mut t = connected(|_| {});
    // 1:1001 is overtaken, and sent again; the original comes, and then the copy.
    t.write(12_000).ignore().at("200 ms").sack(1, &[1001..5001]).expect("1:1001");
    t.ack(5001).ignore().at("230 ms").sack(5001, &[1..1001]).ignore();
    assert_eq!(t.sender().stats().undos, 1);
    // Overtaken once more, which is reordering now: half of the round trip is waited for, not a quarter.
    t.sack(5001, &[6001..7001]).ignore();
    let before = t.sender().stats().retransmissions;
    t.at("270 ms").ignore();
    assert_eq!(t.sender().stats().retransmissions, before);
}

#[test]
fn a_partial_ack_of_an_original_is_reordering() {
    // tcp_try_undo_partial(): two holes are sent again, and the first of them was only late.
    let mut t = connected(|_| {});
    t.write(12_000).ignore().at("200 ms").sack(1, &[1001..4001, 5001..8001]).expect("1:1001, 4001:5001");
    // The echo is of before the copies. The other copy is under way: nothing is undone yet, nothing more is lost.
    t.at("210 ms").sack(4001, &[5001..8001]).ignore();
    assert_eq!((t.sender().stats().undos, t.sender().stats().retransmissions), (0, 2));
    // The other one was late, too: now it is undone.
    t.ack(8001).ignore();
    assert_eq!(t.sender().stats().undos, 1);
    // Three reports are no proof any more.
    t.write(8000).ignore().sack(8001, &[9001..12_001]).expect_nothing();
}

#[test]
fn where_many_are_overtaken_reports_are_progress() {
    // tcp_may_raise_cwnd(): more than three, and the window grows with each report.
    let mut t = connected(|_| {});
    t.write(30_000).ignore().at("200 ms").sack(1, &[1001..3001]).sack(1, &[1001..6001]);
    t.ignore();
    echo(&mut t, 101);
    // The late original is acknowledged with six that had overtaken it.
    t.sack(1, &[1001..7001]).ack(7001).ignore();
    assert_eq!(t.sender().stats().undos, 1);
    let before = t.cwnd();
    t.sack(7001, &[8001..9001]).sack(7001, &[8001..11_001]).ignore();
    assert_eq!(t.cwnd() - before, 3000);
}

#[test]
fn what_is_merely_unreported_is_not_sent_again() {
    // RFC 6675's NextSeg rule 3 is none of RACK's: time has a reason for each.
    let mut t = connected(|_| {});
    t.write(8000)
        .ignore()
        .at("200 ms")
        .sack(1, &[1001..2001])
        .ack(2001)
        .sack(2001, &[3001..5001])
        .expect_nothing();
    // Reordering was seen: a quarter of a round trip is waited for.
    t.write(4000).ignore().at("224 ms").expect_nothing().at("225 ms").expect("2001:3001");
    t.at("300 ms").sack(2001, &[3001..8001, 9001..12_001]).expect_nothing();
    t.at("324 ms").expect_nothing().at("325 ms").expect("8001:9001");
}

#[test]
fn what_was_sent_since_a_repair_began_and_lost_is_a_loss_of_its_own() {
    // tcp_time_to_recover(): sent again within the repair, it is still lost when that ends, and cwnd comes down once more.
    let mut t = connected(|c| c.congestion.initial_window = 10);
    t.write(30_000).ignore().at("200 ms").sack(1, &[1001..5001]).expect("1:1001");
    t.sack(1, &[1001..6001]).ignore().sack(1, &[1001..8001]).ignore();
    t.at("210 ms").ignore().sack(1, &[1001..8001, 9001..10_001]).ignore();
    let (reduced, sent) = (t.ssthresh(), t.sender().flight_size());
    assert!(sent > 11_000, "new data: {sent}");
    // The first hole is filled; 10001:11001 was sent since, and is lost.
    echo(&mut t, 201);
    t.at("300 ms").ignore().sack(8001, &[9001..10_001, 11_001..sent + 1]);
    t.expect("10001:11001, 13001:14001, 14001:15001, 15001:16001");
    assert_eq!((t.sender().stats().fast_retransmits, t.ssthresh()), (1, reduced));
    echo(&mut t, 211);
    t.at("310 ms").ignore().sack(10_001, &[11_001..sent + 1]).expect_nothing();
    assert_eq!(t.sender().stats().fast_retransmits, 1, "it was sent again before");
    assert!(t.ssthresh() < reduced, "{} {reduced}", t.ssthresh());
}
