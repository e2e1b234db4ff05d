//! Tail loss probes (RFC 8985 §7), and spurious timeouts (F-RTO, RFC 5682).
#![allow(clippy::single_range_in_vec_init, reason = "one SACK block is a list of one range")]

use crate::script::{Script, config};
use crate::{duration, time};
use farpath_tcp::config::CongestionControlKind;
use farpath_tcp::{Config, Endpoint};
use farpath_units::Bytes;

/// Connected at 100 ms, over a round trip of as much.
fn connected(change: impl FnOnce(&mut Config)) -> Script {
    let mut t = Script::connect(&config(change));
    let synack = t.syn_ack();
    t.expect("S").at("100 ms").segment(synack).expect("ack 1");
    t
}

fn probing(change: impl FnOnce(&mut Config)) -> Script {
    connected(|c| {
        (c.recovery.sack, c.recovery.rack, c.recovery.tail_loss_probe) = (true, true, true);
        change(c);
    })
}

// ---- Probes ----

#[test]
fn a_lost_tail_is_probed_after_two_round_trips_and_repaired_without_a_timeout() {
    let mut t = probing(|_| {});
    t.write(10_000).ignore();
    t.at("200 ms").ack(7001).expect_nothing(); // 7001 to 10001 are lost
    t.at("399 ms").expect_nothing().at("400 ms").expect("9001:10001"); // §7.3: the highest segment again
    t.at("500 ms").sack(7001, &[9001..10_001]).expect("7001:8001, 8001:9001");
    t.at("600 ms").ack(10_001).expect_nothing();
    let stats = t.sender().stats();
    assert_eq!(
        (stats.loss_probes, stats.timeouts, stats.fast_retransmits, stats.retransmissions),
        (1, 0, 1, 3)
    );
}

#[test]
fn a_lone_segment_waits_for_a_withheld_ack_as_well() {
    // §7.2
    let mut t = probing(|c| c.recovery.probe_ack_delay = duration("40 ms"));
    t.write(1000).ignore().at("339 ms").expect_nothing().at("340 ms").expect("1:1001");
}

#[test]
fn no_probe_comes_later_than_the_retransmission_timer() {
    // §7.2; it comes in its place, and the timer starts anew.
    let mut t = probing(|c| c.recovery.probe_ack_delay = duration("5 s"));
    t.write(1000).ignore().at("1.1 s").expect("1:1001");
    assert_eq!((t.sender().stats().loss_probes, t.sender().stats().timeouts), (1, 0));
    t.at("2.099 s").expect_nothing().at("2.1 s").expect("1:1001");
    assert_eq!((t.sender().stats().loss_probes, t.sender().stats().timeouts), (1, 1));
}

#[test]
fn new_data_is_the_better_probe_whatever_cwnd_says() {
    // §7.3
    let mut t = probing(|c| c.congestion.initial_window = 3);
    t.write(10_000).expect("1:1001, 1001:2001, 2001:3001").at("300 ms").expect("3001:4001");
    assert_eq!(t.sender().stats().retransmissions, 0);
    t.at("400 ms").sack(1, &[3001..4001]).expect("1:1001, 1001:2001");
}

#[test]
fn the_peers_window_holds_for_probes_too() {
    let mut t = Script::connect(&config(|c| {
        (c.recovery.sack, c.recovery.tail_loss_probe) = (true, true);
    }));
    t.window = 3000;
    let synack = t.syn_ack();
    t.expect("S").at("100 ms").segment(synack).expect("ack 1").write(10_000).ignore();
    t.at("300 ms").expect("2001:3001");
}

#[test]
fn one_probe_is_in_flight_at_most() {
    // §7.3, its first condition
    let mut t = probing(|_| {});
    t.write(3000).ignore().at("300 ms").expect("2001:3001");
    // Its end is not acknowledged: the timer expires in vain, and starts the retransmission timer anew.
    t.at("310 ms").ack(1001).at("600 ms").expect_nothing();
    assert_eq!(t.sender().stats().loss_probes, 1);
    assert!(t.end.next_due() > Some(time("1.5 s")));
}

#[test]
fn what_the_probe_repaired_alone_was_a_loss_all_the_same() {
    // §7.4.2: the ACK beyond the probe's end, with no sign of a duplicate.
    let mut t = probing(|_| {});
    t.write(10_000).ignore().at("200 ms").ack(9001).at("600 ms").expect("9001:10001");
    t.at("700 ms").ack(10_001).expect_nothing();
    let before = t.cwnd();
    t.write(10_000).ignore().at("800 ms").ack(12_001).expect_nothing();
    assert!(t.cwnd() <= before / 2 && t.sender().stats().fast_retransmits == 0, "{} of {before}", t.cwnd());
}

#[test]
fn a_probe_that_arrived_twice_costs_nothing() {
    // §7.4.2: by D-SACK, or by a bare duplicate ACK.
    for blocks in [vec![9001..10_001], vec![]] {
        let mut t = probing(|_| {});
        t.write(10_000).ignore().at("200 ms").ack(9001).at("600 ms").expect("9001:10001");
        t.at("610 ms").ack(10_001).at("710 ms").sack(10_001, &blocks);
        let before = t.cwnd();
        t.write(10_000).ignore().at("810 ms").ack(12_001).expect_nothing();
        assert!(t.cwnd() >= before, "{} of {before}", t.cwnd());
    }
}

#[test]
fn reports_stop_the_probe_timer() {
    // §7.2: RACK is at work then.
    let mut t = probing(|c| c.recovery.rack = false);
    t.write(10_000).ignore().at("200 ms").sack(1, &[1001..2001]).at("1.09 s").expect_nothing();
    assert_eq!(t.sender().stats().loss_probes, 0);
}

#[test]
fn without_sack_there_is_no_probe() {
    let mut t = connected(|c| c.recovery.tail_loss_probe = true);
    t.write(3000).ignore().at("1 s").expect_nothing().at("1.1 s").expect("1:1001");
}

// ---- F-RTO ----

/// Ten segments in flight and a timeout at 1.1 s, with more to send.
fn timed_out(sack: bool, change: impl FnOnce(&mut Config)) -> Script {
    let mut t = connected(|c| {
        (c.recovery.sack, c.recovery.frto) = (sack, true);
        change(c);
    });
    t.write(30_000).ignore().at("1.1 s").expect("1:1001");
    assert_eq!((t.cwnd(), t.ssthresh()), (1000, 5000));
    t
}

#[test]
fn acks_that_were_only_late_give_the_window_back() {
    // RFC 5682 §2.1 and §3.1, steps 2b and 3b
    for sack in [false, true] {
        let mut t = timed_out(sack, |_| {});
        t.at("1.2 s").ack(1001).expect("10001:11001, 11001:12001");
        t.ack(2001).ignore();
        assert_eq!(t.sender().stats().undos, 1, "SACK: {sack}");
        assert!(t.cwnd() >= 10_000 && t.ssthresh() == u64::MAX, "{} {}", t.cwnd(), t.ssthresh());
        t.ack(10_001).ignore();
        assert_eq!(t.sender().stats().retransmissions, 1, "nothing else was sent twice");
    }
}

#[test]
fn cubic_goes_on_from_where_it_was() {
    // RFC 9438 §4.9.1: in congestion avoidance before, in congestion avoidance after.
    let mut t = connected(|c| {
        (c.recovery.sack, c.recovery.frto) = (true, true);
        c.congestion.control = CongestionControlKind::Cubic;
        c.congestion.initial_ssthresh = Some(Bytes(8000));
    });
    t.write(30_000).ignore().at("1.1 s").expect("1:1001");
    assert_eq!((t.cwnd(), t.ssthresh()), (1000, 7000));
    t.at("1.2 s").ack(1001).ignore().ack(2001).ignore();
    assert_eq!((t.cwnd() / 1000, t.ssthresh()), (10, 8000));
}

#[test]
fn a_duplicate_after_the_retransmission_means_a_loss_without_sack() {
    // RFC 5682 §2.1 step 2a
    let mut t = timed_out(false, |_| {});
    t.dup_acks(1).ack(1001).expect("1001:2001, 2001:3001");
}

#[test]
fn a_duplicate_after_new_data_means_a_loss() {
    // Step 3a: slow start goes on with what was not acknowledged.
    let mut t = timed_out(false, |_| {});
    t.at("1.2 s").ack(1001).expect("10001:11001, 11001:12001");
    t.at("1.3 s").dup_acks(1).expect("1001:2001, 2001:3001");
    assert_eq!(t.sender().stats().undos, 0);
    let mut t = timed_out(true, |_| {});
    t.at("1.2 s").ack(1001).expect("10001:11001, 11001:12001");
    t.at("1.3 s").sack(1001, &[10_001..11_001]).expect("1001:2001");
    assert_eq!(t.sender().stats().undos, 0);
}

#[test]
fn with_sack_a_report_of_what_was_sent_once_tells_as_well() {
    // RFC 5682 §3.1 step 3b: the second is lost, the third was late.
    let mut t = timed_out(true, |_| {});
    t.at("1.2 s").ack(1001).ignore().sack(1001, &[2001..3001]).ignore();
    assert_eq!(t.sender().stats().undos, 1);
}

#[test]
fn with_sack_a_report_before_the_first_answer_leaves_the_question_open() {
    // RFC 5682 §3.1 step 2
    let mut t = timed_out(true, |_| {});
    t.at("1.2 s").sack(1, &[4001..5001]).expect_nothing().ack(1001).expect("10001:11001, 11001:12001");
}

#[test]
fn without_new_data_the_question_is_not_asked() {
    // RFC 5682 §2.1 step 2b
    let mut t = connected(|c| c.recovery.frto = true);
    t.write(10_000).ignore().at("1.1 s").expect("1:1001").ack(1001).expect("1001:2001, 2001:3001");
}

#[test]
fn an_ack_of_everything_ends_the_question() {
    // RFC 5682 §2.1 step 2a
    for sack in [false, true] {
        let mut t = timed_out(sack, |_| {});
        t.ack(10_001).expect("10001:11001, 11001:12001");
        assert_eq!((t.sender().stats().undos, t.ssthresh()), (0, 5000));
    }
}

#[test]
fn a_timeout_within_a_repair_asks_nothing() {
    // RFC 5682 §2.1 step 1
    let mut t = connected(|c| c.recovery.frto = true);
    t.write(30_000).ignore().at("200 ms").dup_acks(3).ignore();
    t.at("1.2 s").expect("1:1001").ack(1001).expect("1001:2001, 2001:3001");
}

#[test]
fn fast_recovery_makes_the_answer_to_a_probe_irrelevant() {
    // RFC 8985 §7.1: the loss that the probe showed has been answered.
    let mut t = probing(|_| {});
    t.write(10_000).ignore();
    t.at("200 ms").ack(7001).expect_nothing().at("400 ms").expect("9001:10001");
    t.at("500 ms").sack(7001, &[9001..10_001]).expect("7001:8001, 8001:9001");
    t.at("600 ms").ack(10_001).expect_nothing();
    let ssthresh = t.ssthresh();
    t.write(1000).expect("10001:11001").at("700 ms").ack(11_001).expect_nothing();
    assert_eq!(t.ssthresh(), ssthresh);
}
