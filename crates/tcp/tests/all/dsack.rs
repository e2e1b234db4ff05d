//! Duplicates reported (RFC 2883), and what a loss cost given back by such reports (RFC 3708) or by the clock of
//! timestamps (Eifel, RFC 3522).
#![allow(clippy::single_range_in_vec_init, reason = "one SACK block is a list of one range")]

use crate::script::{Script, config};
use farpath_tcp::{Config, Timestamps};

fn dsack(change: impl FnOnce(&mut Config)) -> Config {
    config(|c| {
        (c.recovery.sack, c.recovery.dsack, c.recovery.undo_by_dsack) = (true, true, true);
        change(c);
    })
}

fn receiving() -> Script {
    Script::established(&dsack(|_| {}))
}

// ---- The receiver (RFC 2883 §4) ----

#[test]
fn a_segment_that_came_twice_is_reported_in_the_first_block() {
    let mut t = receiving();
    t.data(1..1001).ignore().data(1001..2001).ignore().data(1..1001).expect("ack 2001 sack 1:1001");
    t.data(2001..3001).at("1 s").expect("ack 3001"); // once
}

#[test]
fn a_duplicate_beside_a_gap_comes_before_the_gaps_blocks() {
    // RFC 2883 §4.1.2
    let mut t = receiving();
    t.data(1..1001).ignore().data(2001..3001).expect("ack 1001 sack 2001:3001");
    t.data(1..1001).expect("ack 1001 sack 1:1001 2001:3001");
}

#[test]
fn a_duplicate_beyond_the_gap_is_followed_by_the_block_it_lies_in() {
    // RFC 2883 §4.1.3, and where it is all of that block
    let mut t = receiving();
    t.data(2001..3001).ignore().data(3001..4001).ignore().data(6001..7001).ignore();
    t.data(3001..4001).expect("ack 1 sack 3001:4001 2001:4001 6001:7001");
    t.data(6001..7001).expect("ack 1 sack 6001:7001 6001:7001 2001:4001");
}

#[test]
fn of_a_segment_that_is_partly_new_the_old_part_is_reported() {
    // RFC 2883 §4.2
    let mut t = receiving();
    t.data(1..1001).ignore().data(501..1501).expect("ack 1501 sack 501:1001");
    t.data(2501..3501).ignore().data(2001..3001).expect("ack 1501 sack 2501:3001 2001:3501");
}

#[test]
fn without_the_option_nothing_is_reported_twice() {
    let mut t = Script::established(&config(|c| c.recovery.sack = true));
    t.data(1..1001).ignore().data(1..1001).expect("ack 1001");
    let mut t = Script::established(&config(|c| c.recovery.dsack = true));
    t.data(1..1001).ignore().data(1..1001).expect("ack 1001");
}

// ---- The sender (RFC 3708) ----

/// Ten segments in flight, of which the first is thought lost and sent again.
fn repairing(change: impl FnOnce(&mut Config)) -> Script {
    let mut t = Script::established(&dsack(change));
    t.write(10_000).ignore();
    t.at("100 ms").sack(1, &[1001..4001]).expect("1:1001");
    assert_eq!((t.cwnd(), t.ssthresh()), (5000, 5000));
    t
}

#[test]
fn when_all_that_was_sent_again_had_arrived_the_window_is_given_back() {
    let mut t = repairing(|_| {});
    t.ack(10_001).expect_nothing();
    assert_eq!(t.cwnd(), 5000);
    t.sack(10_001, &[1..1001]).expect_nothing();
    assert_eq!((t.cwnd(), t.ssthresh()), (10_000, u64::MAX));
    assert_eq!((t.sender().stats().undos, t.sender().stats().dsacks), (1, 1));
}

#[test]
fn one_retransmission_of_two_that_was_for_nothing_gives_nothing_back() {
    let mut t = Script::established(&dsack(|_| {}));
    t.write(10_000).ignore();
    t.sack(1, &[2001..7001]).expect("1:1001, 1001:2001").ack(10_001).sack(10_001, &[1..1001]);
    assert_eq!((t.cwnd(), t.sender().stats().undos), (5000, 0));
    t.sack(10_001, &[1001..2001]);
    assert_eq!((t.cwnd(), t.sender().stats().undos), (10_000, 1));
}

#[test]
fn a_report_of_another_flight_gives_nothing_back() {
    let mut t = repairing(|_| {});
    t.ack(10_001).write(1000).ignore().ack(11_001).sack(11_001, &[10_001..11_001]).expect_nothing();
    assert_eq!((t.cwnd() < 10_000, t.sender().stats().undos), (true, 0));
}

#[test]
fn a_report_gives_nothing_back_where_that_is_not_wanted() {
    let mut t = repairing(|c| c.recovery.undo_by_dsack = false);
    t.ack(10_001).sack(10_001, &[1..1001]).expect_nothing();
    assert_eq!((t.cwnd(), t.sender().stats().undos, t.sender().stats().dsacks), (5000, 0, 1));
}

#[test]
fn a_report_within_a_second_repair_ends_it_where_nothing_is_left_to_send() {
    let mut t = repairing(|_| {});
    t.sack(5001, &[1..1001]).expect_nothing();
    assert_eq!((t.cwnd(), t.sender().stats().undos), (10_000, 1));
}

// ---- The clock (RFC 3522) ----

#[test]
fn an_echo_from_before_the_retransmission_gives_the_window_back() {
    for (eifel, echo, undone) in [(true, 50, true), (true, 101, false), (false, 50, false)] {
        let mut t = Script::established(&config(|c| {
            (c.recovery.sack, c.recovery.eifel, c.send.timestamps) = (true, eifel, true);
            // So that the window is remembered either way.
            c.recovery.undo_by_dsack = true;
            c.mss = farpath_units::Bytes(1012);
        }));
        t.write(10_000).ignore();
        t.at("100 ms").sack(1, &[1001..4001]).expect("1:1001");
        t.timestamps = Some(Timestamps { value: 1001, echo });
        t.at("120 ms").ack(4001).expect_nothing();
        assert_eq!(t.cwnd() >= 10_000, undone, "{}", t.cwnd());
        assert_eq!(t.sender().stats().undos, u64::from(undone));
    }
}
