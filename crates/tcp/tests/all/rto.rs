//! The retransmission timer and what it does to the window (RFC 6298, RFC 5681 §3.1).

use crate::recovery_reno::riverbed;
use crate::script::{Script, config};
use crate::{duration, time};
use farpath_tcp::config::*;
use farpath_tcp::{CloseReason, Config, Endpoint, State};

fn in_flight(segments: u64, change: impl FnOnce(&mut Config)) -> Script {
    let mut t = Script::established(&config(change));
    t.write(segments * 1000).ignore();
    t
}

#[test]
fn a_new_ack_restarts_the_timer() {
    // RFC 6298 §5.3
    let mut t = in_flight(3, |_| {});
    t.at("900 ms").ack(1001).expect_nothing();
    t.at("1.8 s").expect_nothing();
    assert_eq!(t.end.next_due(), Some(time("900 ms") + t.sender().rtt().rto()));
}

#[test]
fn the_timer_stops_when_all_is_acknowledged() {
    // RFC 6298 §5.2
    let mut t = in_flight(3, |_| {});
    t.at("500 ms").ack(3001).expect_nothing();
    assert_eq!(t.end.next_due(), None);
    t.at("100 s").expect_nothing();
}

#[test]
fn sending_more_does_not_restart_a_running_timer() {
    // RFC 6298 §5.1
    let mut t = in_flight(1, |c| c.send.nagle = false);
    t.at("900 ms").write(1000).expect("1001:2001").at("1 s").expect("1:1001");
}

#[test]
fn each_timeout_doubles_the_wait_up_to_the_ceiling() {
    // RFC 6298 §5.5; §2.5 for the ceiling
    let mut t = in_flight(1, |c| c.rto.max = duration("5 s"));
    t.at("20 s").expect_timed("1 s 1:1001, 3 s 1:1001, 7 s 1:1001, 12 s 1:1001, 17 s 1:1001");
}

#[test]
fn the_back_off_stays_until_a_segment_sent_once_is_acknowledged() {
    // Karn: the ACK of what was sent twice measures nothing, and the doubled timeout holds for what follows.
    let mut t = in_flight(2, |c| c.congestion.initial_window = 1);
    t.at("3 s").expect_timed("1 s 1:1001, 3 s 1:1001");
    t.ack(1001).expect("1001:2001");
    assert_eq!(t.sender().rtt().rto(), duration("4 s"));
    t.after("100 ms").ack(2001).expect_nothing();
    assert_eq!(t.sender().rtt().rto(), duration("1 s"));
}

#[test]
fn any_new_ack_ends_the_back_off_where_the_stack_is_like_that() {
    let mut t = in_flight(1, |c| c.rto.backoff_reset = BackoffReset::AnyAck);
    t.at("3 s").ignore();
    println!("{:?}", t.sender().stats());
    t.ack(1001).expect_nothing();
    assert_eq!(t.sender().rtt().rto(), duration("1 s"));
}

#[test]
fn timers_expire_on_ticks_of_the_host_clock() {
    let mut t = in_flight(1, |c| c.rto.tick = duration("500 ms"));
    t.at("100 ms").ack(1001).write(1000).expect("1001:2001"); // RTO 1 s: due at 1.1 s, expires at 1.5 s
    t.at("4 s").expect_timed("1.5 s 1001:2001, 3.5 s 1001:2001");
}

#[test]
fn a_timeout_leaves_one_segment_and_half_the_flight() {
    let mut t = in_flight(10, |_| {});
    t.at("1 s").expect("1:1001");
    assert_eq!((t.cwnd(), t.ssthresh()), (1000, 5000));
    t.ack(1001).expect("1001:2001, 2001:3001"); // slow start, and everything again
    t.ack(3001).expect("3001:4001, 4001:5001, 5001:6001");
}

#[test]
fn a_timeout_within_fast_recovery_does_not_take_its_inflation_for_a_window() {
    // Ten segments were out; six more than RFC 5681 §3.2 adds for the first three are but places of what has arrived.
    for (control, from, halved, expected) in [
        (CongestionControlKind::Cubic, SsthreshFrom::FlightSize, 7000, 4900),
        (CongestionControlKind::Cubic, SsthreshFrom::Cwnd, 7000, 4900),
        (CongestionControlKind::Reno, SsthreshFrom::Cwnd, 5000, 2500),
        // 4.3BSD halves the window as it stands.
        (CongestionControlKind::Reno, SsthreshFrom::WindowSegments, 5000, 7000),
    ] {
        let mut t = in_flight(10, |c| (c.congestion.control, c.congestion.ssthresh_from) = (control, from));
        t.at("100 ms").dup_acks(3).ignore().dup_acks(6).expect_nothing();
        assert_eq!((t.cwnd(), t.ssthresh()), (halved + 9000, halved), "{control:?} {from:?}");
        t.at("5 s").ignore();
        assert_eq!((t.cwnd(), t.ssthresh()), (1000, expected), "{control:?} {from:?}");
    }
}

#[test]
fn what_the_receiver_had_kept_is_not_sent_again() {
    let mut t = in_flight(10, |_| {});
    t.at("1 s").expect("1:1001").ack(8001).expect("8001:9001, 9001:10001");
}

#[test]
fn a_fin_behind_the_last_segment_takes_no_window() {
    // Two segments of 1000 B and the FIN fit into a window of two.
    let mut t = in_flight(3, |_| {});
    t.close().ignore().at("1 s").expect("1:1001").ack(1001).expect("1001:2001, 2001:3001, 3001:3001 F");
    let mut t = Script::established(&config(|_| {}));
    t.end.write(3000);
    t.close().expect("1:1001, 1001:2001, 2001:3001 F");
    t.at("1 s").expect("1:1001").ack(1001).expect("1001:2001, 2001:3001 F");
}

#[test]
fn a_repeated_timeout_holds_ssthresh() {
    // RFC 5681 §3.1: the given segment has been retransmitted by the timer already.
    let mut t = in_flight(10, |_| {});
    t.at("3 s").expect("1:1001, 1:1001");
    assert_eq!(t.ssthresh(), 5000);
}

#[test]
fn a_repeated_timeout_lowers_ssthresh_again_at_riverbed() {
    let mut t = Script::established_to(&riverbed(), 8760);
    t.write(20_000).ignore();
    for n in 1..=4 {
        t.ack(1 + 1460 * n).ignore();
    }
    t.at("1 s").ignore();
    assert_eq!((t.cwnd(), t.ssthresh()), (1460, 4380));
    t.at("3 s").ignore();
    assert_eq!(t.ssthresh(), 2920, "computed anew from a window of one segment");
}

#[test]
fn one_segment_too_often_ends_the_connection() {
    let mut t = in_flight(1, |c| c.handshake.data_retries = Some(3));
    t.at("30 s").expect_timed("1 s 1:1001, 3 s 1:1001, 7 s 1:1001");
    assert_eq!(t.end.closed(), Some((CloseReason::RetriesExhausted, time("15 s"))));
    assert_eq!((t.end.state(), t.end.next_due()), (State::Closed, None));
}

#[test]
fn by_linux_the_time_that_retransmissions_would_take_ends_the_connection() {
    // ip-sysctl.rst: 15 are 924.6 s, ten waits from 0.2 to 102.4 s and six of 120 s.
    let mut linux = config(|c| c.handshake.data_retries_as_time = true);
    linux.rto.max = duration("120 s");
    assert_eq!(linux.time_for_retries(), Some(duration("924.6 s")));
    linux.handshake.data_retries = Some(3);
    assert_eq!(linux.time_for_retries(), Some(duration("3 s")));
    // So long after the first of them, at 1 s, no timeout sends another; that at 3 s comes before, that at 7 s after it.
    let mut t =
        in_flight(1, |c| (c.handshake.data_retries, c.handshake.data_retries_as_time) = (Some(3), true));
    t.at("30 s").expect_timed("1 s 1:1001, 3 s 1:1001");
    assert_eq!(t.end.closed(), Some((CloseReason::RetriesExhausted, time("7 s"))));
    // The first timeout never ends it.
    let mut t =
        in_flight(1, |c| (c.handshake.data_retries, c.handshake.data_retries_as_time) = (Some(0), true));
    t.at("30 s").expect_timed("1 s 1:1001");
    assert_eq!(t.end.closed(), Some((CloseReason::RetriesExhausted, time("3 s"))));
}

#[test]
fn by_linux_each_repair_has_its_own_time() {
    // tcp_try_to_open() forgets when the last one began, so that a probe (tcp_send_loss_probe()) before the next one hides nothing.
    let mut t = in_flight(1, |c| {
        // 12.6 s.
        (c.handshake.data_retries, c.handshake.data_retries_as_time) = (Some(5), true);
        (c.recovery.sack, c.recovery.rack, c.recovery.tail_loss_probe) = (true, true, true);
    });
    t.at("3 s").ignore().ack(1001).expect_nothing();
    t.at("50 s").write(1000).expect("1001:2001").at("50.1 s").ack(2001).expect_nothing();
    t.at("100 s").write(1000).expect("2001:3001");
    let probe_and_timeouts =
        "100.225 s 2001:3001, 101.225 s 2001:3001, 103.225 s 2001:3001, 107.225 s 2001:3001";
    t.at("200 s").expect_timed(probe_and_timeouts);
    assert_eq!(t.end.closed(), Some((CloseReason::RetriesExhausted, time("115.225 s"))));
}

#[test]
fn progress_renews_the_retries() {
    let mut t = in_flight(2, |c| c.handshake.data_retries = Some(2));
    t.at("3 s").ignore().ack(1001).ignore();
    t.at("15 s").ignore();
    assert_eq!(t.end.state(), State::Established);
}

#[test]
fn one_segment_at_a_time_is_measured() {
    let mut t = in_flight(3, |_| {});
    t.at("100 ms").ack(1001).at("200 ms").ack(2001).at("300 ms").ack(3001).expect_nothing();
    let (sample, count) = t.sender().rtt().last_sample();
    assert_eq!((sample, count), (Some(duration("100 ms")), 2), "the SYN's and the first segment's");
}

#[test]
fn every_ack_is_measured_where_the_stack_is_like_that() {
    let mut t = in_flight(3, |c| c.rto.sampling = RttSampling::EveryAck);
    t.at("100 ms").ack(1001).at("200 ms").ack(2001).at("300 ms").ack(3001).expect_nothing();
    assert_eq!(t.sender().rtt().last_sample(), (Some(duration("300 ms")), 4));
}

#[test]
fn a_retransmitted_segment_is_not_measured() {
    for sampling in [RttSampling::OneAtATime, RttSampling::EveryAck] {
        let mut t = in_flight(1, |c| c.rto.sampling = sampling);
        t.at("1 s").expect("1:1001").at("1.1 s").ack(1001).expect_nothing();
        assert_eq!(t.sender().rtt().last_sample().1, 1, "{sampling:?}: the SYN's alone");
    }
}

#[test]
fn an_rtt_of_nothing_and_no_floor_are_no_endless_loop() {
    let mut t = in_flight(1, |c| (c.rto.min, c.handshake.data_retries) = (duration("0 s"), Some(5)));
    t.at("1 s").ignore();
    assert_eq!(t.end.state(), State::Closed);
}

#[test]
fn the_clock_of_timestamps_wraps_after_49_days() {
    let mut t = Script::established(&config(|c| c.send.timestamps = true));
    t.at("4294967.295 s").write(100).expect("1:101");
}
