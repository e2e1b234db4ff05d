//! NewReno's partial acknowledgments and its guard (RFC 6582).

use crate::script::{Script, config};
use farpath_tcp::Config;
use farpath_tcp::config::*;

/// Ten segments from 1001 to 11001 in flight, and fast recovery begun by the loss of the first.
fn recovering(change: impl FnOnce(&mut Config)) -> Script {
    let mut t = Script::established(&config(change));
    t.write(11_000).ignore().at("100 ms").ack(1001).ignore();
    t.at("200 ms").dup_acks(3).expect("1001:2001");
    assert_eq!((t.cwnd(), t.ssthresh()), (8000, 5000));
    t
}

#[test]
fn a_partial_ack_retransmits_the_next_hole_and_halves_nothing() {
    let mut t = recovering(|_| {});
    t.at("300 ms").ack(4001).expect("4001:5001");
    assert_eq!(t.ssthresh(), 5000);
    assert_eq!(t.cwnd(), 8000 - 3000 + 1000, "deflated by what was acknowledged, less one segment");
    t.ack(7001).expect("7001:8001");
    assert_eq!(t.sender().stats().fast_retransmits, 1);
}

#[test]
fn a_full_ack_ends_recovery_without_a_burst() {
    let mut t = recovering(|_| {});
    t.write(20_000).ignore();
    t.ack(11_001).expect("11001:12001, 12001:13001");
    // RFC 6582 §3.2 step 3, option 1: min(ssthresh, max(FlightSize, SMSS) + SMSS), nothing being in flight.
    assert_eq!((t.cwnd(), t.ssthresh()), (2000, 5000));
}

#[test]
fn impatient_restarts_the_timer_on_the_first_partial_ack_only() {
    // RFC 6582 §4. Nothing has changed the RTO from its floor of 1 s.
    let mut t = recovering(|_| {});
    t.at("700 ms").ack(2001).expect("2001:3001");
    t.at("1400 ms").ack(3001).expect("3001:4001");
    t.at("2 s").expect_timed("1.7 s 3001:4001");
    assert_eq!(t.sender().stats().timeouts, 1);
}

#[test]
fn slow_but_steady_restarts_the_timer_on_every_partial_ack() {
    let mut t = recovering(|c| c.recovery.partial_ack_timer = PartialAckTimer::SlowButSteady);
    t.at("700 ms").ack(2001).expect("2001:3001");
    t.at("1400 ms").ack(3001).expect("3001:4001");
    t.at("2.1 s").ack(4001).expect("4001:5001");
    t.at("3.2 s").expect_timed("3.1 s 4001:5001");
}

#[test]
fn fast_retransmit_restarts_the_timer() {
    let mut t = recovering(|_| {});
    t.at("1.1 s").expect_nothing().at("1.2 s").expect("1001:2001");
}

#[test]
fn dup_acks_of_what_a_timeout_sent_again_start_no_recovery() {
    // RFC 6582 §3.2 step 1 and §4.
    let mut t = Script::established(&config(|_| {}));
    t.write(10_000).ignore().at("1 s").expect("1:1001");
    t.ack(1001).expect("1001:2001, 2001:3001").dup_acks(5).expect_nothing();
    assert_eq!(t.sender().stats().fast_retransmits, 0);
}

#[test]
fn the_guard_ends_where_recover_is_passed() {
    let mut t = recovering(|_| {});
    t.ack(11_001).write(3000).expect("11001:12001, 12001:13001");
    t.dup_acks(3).expect_nothing(); // 11001 is exactly `recover`: these may be of the last recovery
    t.ack(12_001).ignore().dup_acks(3).expect("12001:13001");
}

#[test]
fn a_loss_right_after_recovery_is_found_by_plain_reno() {
    let mut t = recovering(|c| c.recovery.recover_guard = RecoverGuard::Off);
    t.ack(11_001).write(2000).ignore();
    t.dup_acks(3).expect("11001:12001");
}

#[test]
fn a_window_of_holes_is_repaired_one_per_round_trip() {
    let mut t = recovering(|_| {});
    for hole in [3001, 5001, 7001, 9001] {
        t.after("100 ms").ack(hole).expect(&format!("{hole}:{}", hole + 1000));
    }
    t.after("100 ms").ack(11_001).expect_nothing();
    assert_eq!(t.sender().stats().timeouts, 0);
}
