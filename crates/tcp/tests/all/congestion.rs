//! Growth of the window, and the small rules of sending (RFC 5681 §3.1 and §4.1, RFC 3465, RFC 9293 §3.7.4).

use crate::script::{Script, config};
use farpath_tcp::config::*;
use farpath_tcp::{Config, Endpoint};
use farpath_units::Bytes;

/// A window of ten segments, in use.
fn full(change: impl FnOnce(&mut Config)) -> Script {
    let mut t = Script::established(&config(change));
    t.write(100_000).ignore();
    t
}

#[test]
fn the_initial_window_is_what_leaves_first() {
    for segments in [1, 2, 10] {
        let t = full(|c| c.congestion.initial_window = segments);
        assert_eq!(t.sender().flight_size(), u64::from(segments) * 1000);
    }
}

#[test]
fn slow_start_adds_by_its_rule() {
    for (rule, cwnd) in [
        (SlowStartGrowth::PerAck, 11_000),
        (SlowStartGrowth::PerByte, 11_000),
        (SlowStartGrowth::TwoSegments, 12_000),
    ] {
        let mut t = full(|c| c.congestion.slow_start = rule);
        t.ack(2001).ignore();
        assert_eq!(t.cwnd(), cwnd, "{rule:?}");
    }
}

#[test]
fn from_ssthresh_on_a_window_adds_one_segment() {
    for (rule, after_one_ack, after_a_window) in
        [(AvoidanceGrowth::PerAck, 10_100, 10_955), (AvoidanceGrowth::PerByte, 10_000, 11_000)]
    {
        let mut t = full(|c| {
            c.congestion.initial_ssthresh = Some(Bytes(10_000));
            c.congestion.avoidance = rule;
        });
        t.ack(1001).ignore();
        assert_eq!(t.cwnd(), after_one_ack, "{rule:?}");
        for n in 2..=10 {
            t.ack(n * 1000 + 1).ignore();
        }
        assert!(t.cwnd().abs_diff(after_a_window) <= 5, "{rule:?}: {}", t.cwnd());
    }
}

#[test]
fn the_clamp_bounds_growth() {
    let mut t = full(|c| c.congestion.cwnd_clamp = Some(Bytes(10_500)));
    t.ack(1001).ignore().ack(2001).ignore();
    assert_eq!(t.cwnd(), 10_500);
    let t = full(|c| c.congestion.cwnd_clamp = Some(Bytes(3000)));
    assert_eq!(t.cwnd(), 3000, "the initial window too");
}

#[test]
fn a_window_that_is_not_used_grows_only_without_validation() {
    for (validation, cwnd) in [(CwndValidation::Always, 10_000), (CwndValidation::Off, 12_000)] {
        let mut t = Script::established(&config(|c| c.congestion.cwnd_validation = validation));
        t.write(2000).ignore().ack(1001).ack(2001).ignore();
        assert_eq!(t.cwnd(), cwnd);
    }
    let mut t = full(|c| c.congestion.cwnd_validation = CwndValidation::Always);
    t.ack(1001).ignore();
    assert_eq!(t.cwnd(), 11_000, "a window that is used grows");
}

#[test]
fn an_idle_connection_starts_again_from_the_initial_window() {
    // RFC 5681 §4.1
    for (restart, cwnd) in [(true, 2000), (false, 6000)] {
        let mut t = Script::established(&config(|c| {
            (c.congestion.initial_window, c.congestion.restart_after_idle) = (2, restart);
        }));
        t.write(4000).ignore();
        for n in 1..=4 {
            t.ack(n * 1000 + 1).ignore();
        }
        t.at("900 ms").write(1000).ignore().ack(5001).ignore();
        assert_eq!(t.cwnd(), 7000, "less than an RTO is not idle");
        t.at("5 s").write(20_000).ignore();
        assert_eq!(t.sender().flight_size(), if restart { cwnd } else { 7000 });
    }
}

#[test]
fn nagle_holds_a_small_segment_while_data_is_out() {
    // RFC 9293 §3.7.4
    let mut t = Script::established(&config(|_| {}));
    t.write(100).expect("1:101").write(100).write(100).expect_nothing();
    t.ack(101).expect("101:301");
    t.write(1500).expect("301:1301").ack(1301).expect("1301:1801");
}

#[test]
fn without_nagle_each_write_leaves_at_once() {
    let mut t = Script::established(&config(|c| c.send.nagle = false));
    t.write(100).expect("1:101").write(100).expect("101:201");
}

#[test]
fn nagle_does_not_hold_the_last_segment_before_a_fin() {
    let mut t = Script::established(&config(|_| {}));
    t.write(1000).expect("1:1001");
    t.end.write(10);
    t.close().expect("1001:1011 F");
}

#[test]
fn the_send_buffer_bounds_what_is_written_and_not_acknowledged() {
    let mut t = Script::established(&config(|c| c.send.buffer = Some(Bytes(3000))));
    assert_eq!(t.end.write(5000), 3000);
    t.poll();
    t.ignore().ack(1001).ignore();
    assert_eq!(t.end.write(5000), 1000);
}

#[test]
fn more_can_be_written_than_a_stream_can_hold() {
    let mut t = Script::established(&config(|_| {}));
    assert!(t.end.write(u64::MAX) >= 1 << 61);
    t.end.write(u64::MAX);
    t.poll();
    t.ignore().ack(1001).ignore();
}

#[test]
fn sequence_numbers_wrap_and_positions_do_not() {
    // Nine times round: at 60 kB a segment, 655 000 segments.
    let mut t = Script::established(&config(|c| {
        c.mss = Bytes(60_000);
        c.congestion.cwnd_clamp = Some(Bytes(60_000));
    }));
    let total = 9 * (1u64 << 32);
    t.end.write(total);
    t.poll();
    while t.sender().acked() < total {
        let next = 1 + t.sender().acked() + t.sender().flight_size();
        t.ignore().ack(next);
    }
    t.expect_nothing();
    assert_eq!(t.sender().stats().retransmissions, 0);
}
