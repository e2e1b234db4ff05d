//! Fast retransmit and fast recovery without SACK: Tahoe, Reno (RFC 5681 §3.2), limited transmit (RFC 3042).

use crate::script::{Script, config};
use farpath_tcp::Config;
use farpath_tcp::config::*;
use farpath_units::{Bytes, Duration};

fn with(algorithm: RecoveryAlgorithm) -> Config {
    config(|c| {
        c.recovery.algorithm = algorithm;
        c.recovery.recover_guard = RecoverGuard::Off;
    })
}

/// Ten segments in flight, the first one acknowledged.
fn in_flight(config: &Config) -> Script {
    let mut t = Script::established(config);
    t.write(10_000).ignore();
    t.at("100 ms").ack(1001).expect_nothing();
    t
}

#[test]
fn third_dup_ack_retransmits_without_waiting_for_the_rto() {
    let mut t = in_flight(&with(RecoveryAlgorithm::Reno));
    t.at("150 ms").dup_acks(2).expect_nothing();
    t.dup_acks(1).expect("1001:2001"); // RFC 5681 §3.2 step 3
    assert_eq!(t.ssthresh(), 4500, "step 2: half of the 9000 in flight");
    assert_eq!(t.cwnd(), 4500 + 3000, "step 3: and three segments that have left");
}

#[test]
fn a_threshold_of_two_is_kept_to() {
    let mut config = with(RecoveryAlgorithm::Reno);
    config.recovery.dup_ack_threshold = 2;
    in_flight(&config).dup_acks(1).expect_nothing().dup_acks(1).expect("1001:2001");
}

#[test]
fn each_further_dup_ack_inflates_and_may_release_a_new_segment() {
    let mut t = in_flight(&with(RecoveryAlgorithm::Reno));
    t.write(10_000).ignore(); // cwnd 11000: 10001..12001 leave
    assert_eq!(t.sender().flight_size(), 11_000);
    t.dup_acks(3).expect("1001:2001");
    assert_eq!(t.cwnd(), 5500 + 3000);
    t.dup_acks(3).expect_nothing(); // step 4: 11500 for 11000 in flight
    t.dup_acks(1).expect("12001:13001"); // step 5
    assert_eq!(t.cwnd(), 12_500);
}

#[test]
fn the_first_new_ack_deflates_reno_to_ssthresh() {
    let mut t = in_flight(&with(RecoveryAlgorithm::Reno));
    t.dup_acks(6).expect("1001:2001").ack(5001).expect_nothing(); // step 6, even though it is partial
    assert_eq!((t.cwnd(), t.ssthresh()), (4500, 4500));
}

#[test]
fn two_drops_in_one_window_make_reno_time_out() {
    let mut t = in_flight(&with(RecoveryAlgorithm::Reno));
    t.at("200 ms").dup_acks(7).expect("1001:2001"); // 1001 and 5001 are lost
    t.at("300 ms").ack(5001).expect_nothing(); // deflated to 4500; 5000 in flight, and no more ACKs to come
    t.at("5 s").expect_timed("1.3 s 5001:6001, 3.3 s 5001:6001");
    assert_eq!(t.sender().stats().timeouts, 2);
}

#[test]
fn newreno_repairs_what_makes_reno_time_out() {
    let mut t = in_flight(&with(RecoveryAlgorithm::NewReno));
    t.dup_acks(7).expect("1001:2001").ack(5001).expect("5001:6001").ack(10_001).expect_nothing();
    assert_eq!(t.sender().stats().timeouts, 0);
}

#[test]
fn dup_acks_after_a_timeout_retransmit_again_without_the_guard() {
    let mut t = in_flight(&with(RecoveryAlgorithm::Reno));
    t.at("1.1 s").expect("1001:2001");
    t.dup_acks(2).expect_nothing();
    t.dup_acks(1).ignore();
    assert_eq!(t.sender().stats().fast_retransmits, 1);
    assert_eq!(t.cwnd(), 4500 + 3000);
}

#[test]
fn tahoe_starts_slowly_again_from_the_first_hole() {
    let mut t = in_flight(&with(RecoveryAlgorithm::Tahoe));
    t.dup_acks(3).expect("1001:2001");
    assert_eq!((t.cwnd(), t.ssthresh()), (1000, 4500));
    t.dup_acks(6).expect_nothing(); // no inflation
    t.ack(5001).expect("5001:6001, 6001:7001"); // and everything behind it again
}

#[test]
fn without_fast_retransmit_only_the_timer_repairs() {
    let mut t = in_flight(&with(RecoveryAlgorithm::TimeoutOnly));
    t.dup_acks(9).expect_nothing();
    t.at("1.1 s").expect("1001:2001");
}

#[test]
fn an_ack_with_payload_or_another_window_is_no_duplicate() {
    // RFC 5681 §2, definition of DUPLICATE ACKNOWLEDGMENT.
    let mut t = in_flight(&with(RecoveryAlgorithm::Reno));
    t.dup_acks(2).data(1..501).expect_nothing();
    t.data(501..1001).expect("ack 1001");
    t.window -= 100;
    t.dup_acks(1).expect_nothing();
    assert_eq!(t.sender().stats().dup_acks, 2);
    t.dup_acks(1).expect("1001:2001");
}

#[test]
fn limited_transmit_sends_one_new_segment_on_each_of_the_first_two_dup_acks() {
    // RFC 3042 §2
    let mut t = in_flight(&config(|c| c.recovery.limited_transmit = true));
    t.write(10_000).ignore();
    let flight = t.sender().flight_size();
    t.dup_acks(1).expect("12001:13001").dup_acks(1).expect("13001:14001");
    assert_eq!(t.cwnd(), 11_000, "it does not count as growth");
    t.dup_acks(1).expect("1001:2001");
    assert_eq!(t.ssthresh(), flight / 2, "RFC 5681 §3.2 step 2: limited transmit is not in FlightSize");
}

#[test]
fn data_that_fits_into_cwnd_is_not_limited_transmit() {
    let mut t = Script::established(&config(|c| c.recovery.limited_transmit = true));
    t.write(4000).ignore().at("100 ms").dup_acks(1).write(2000).expect("4001:5001, 5001:6001");
    t.dup_acks(2).expect("1:1001");
    assert_eq!(t.ssthresh(), 3000, "all of the 6000 in flight were within cwnd");
}

#[test]
fn ssthresh_is_half_the_smaller_window_in_whole_segments_for_4_3bsd() {
    let mut t = in_flight(&config(|c| {
        c.congestion.ssthresh_from = SsthreshFrom::WindowSegments;
        c.recovery.algorithm = RecoveryAlgorithm::Reno;
    }));
    t.window = 7999; // window_changed: not a duplicate
    t.dup_acks(1).expect_nothing().dup_acks(3).expect("1001:2001");
    assert_eq!(t.ssthresh(), 3000);
}

#[test]
fn a_flight_of_one_segment_leaves_ssthresh_at_two() {
    let mut t = Script::established(&with(RecoveryAlgorithm::Reno));
    t.write(1000).ignore().dup_acks(3).expect("1:1001");
    assert_eq!(t.ssthresh(), 2000);
}

/// The Riverbed model of the high-BER paper, as its Table 2 has it.
pub fn riverbed() -> Config {
    let mut c = Config::default();
    c.receive.buffer = Bytes(8760);
    c.congestion.initial_window = 2;
    c.congestion.initial_ssthresh = Some(Bytes(65_535));
    c.congestion.slow_start = SlowStartGrowth::PerAck;
    c.congestion.avoidance = AvoidanceGrowth::PerAck;
    c.congestion.restart_after_idle = false;
    c.congestion.ssthresh_from = SsthreshFrom::WindowSegments;
    c.congestion.ssthresh_on_timeout = SsthreshOnTimeout::Every;
    c.recovery.algorithm = RecoveryAlgorithm::Reno;
    c.recovery.limited_transmit = false;
    c.recovery.recover_guard = RecoverGuard::Off;
    c.rto.initial = Duration::from_secs(3);
    c.rto.max = Duration::from_secs(64);
    c.rto.tick = Duration::from_millis(500);
    c.rto.after_syn_timeout = None;
    c.send.nagle = false;
    c
}

#[test]
fn the_fifth_of_six_segments_lost_costs_half_the_window_at_riverbed() {
    // High-BER paper, Fig. 10: six segments of 1460 B fill the window of 8760 B, the fifth is lost.
    let mss = 1460;
    let seg = |n: u64| 1 + n * mss;
    let mut t = Script::established_to(&riverbed(), 8760);
    t.write(100 * mss).ignore();
    for n in 1..40 {
        t.ack(seg(n)).ignore();
    }
    // 39 acknowledged, 40..=45 in flight; the ACKs of the first four release four more behind the lost one.
    assert_eq!(t.sender().flight_size(), 8760);
    for n in 40..44 {
        t.ack(seg(n)).ignore();
    }
    assert!(t.cwnd() > 50_000, "cwnd is far above the window");
    t.dup_acks(2).expect_nothing();
    t.dup_acks(1).expect(&format!("{}:{}", seg(43), seg(44)));
    assert_eq!(t.ssthresh(), 4380, "half of six segments");
    t.dup_acks(2).expect_nothing(); // the window of 8760 B is full
    t.ack(seg(49)).expect(&format!(
        "{}:{}, {}:{}, {}:{}",
        seg(49),
        seg(50),
        seg(50),
        seg(51),
        seg(51),
        seg(52)
    ));
    assert_eq!((t.cwnd(), t.ssthresh()), (4380, 4380));
}
