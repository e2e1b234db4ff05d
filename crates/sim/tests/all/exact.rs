//! Transfers without loss, where theory and other simulators give the time exactly.

use crate::common::{assert_close, delay, delay_of, ethernet, link, run_one, seconds, stacks, upload};
use farpath_sim::FlowResult;
use farpath_tcp::Config;
use farpath_tcp::config::RetransmittedSyn;
use farpath_units::{Bytes, Duration};

/// The download of the high-BER paper: 10 MB through a window of six segments.
const FILE: u64 = 10_000_000;

#[test]
fn a_window_limited_transfer_takes_what_ns3_says() {
    let result = run_one(vec![link("1 Gbit/s", 2), delay("20 ms")], upload(&stacks::riverbed(), FILE));
    // ns-3.44, TcpNewReno and TcpLinuxReno alike, point-to-point link with 2 B of framing.
    assert_close(seconds(&result), 45.807846, 1e-6);
    assert_eq!(result.ended_at.as_nanos(), 45_807_857_376, "golden");
    assert_eq!(result.sender.sender().stats().data_segments, 6850);
}

#[test]
fn two_ethernet_links_in_a_row_add_their_serialization() {
    let path = vec![ethernet("near"), delay("20 ms"), ethernet("far")];
    let result = run_one(path, upload(&stacks::riverbed(), FILE));
    assert_eq!(result.ended_at.as_nanos(), 50_154_590_400, "golden");
    // The ACK leaves behind the second segment and opens the window for two: a cycle is the round trip of a segment
    // (1538 B twice), one more behind it, and the ACK (84 B twice, 40 B padded to 46).
    let cycle = 0.04 + 3.0 * 1538.0 * 8.0 / 1e7 + 2.0 * 84.0 * 8.0 / 1e7;
    assert_close(seconds(&result), FILE as f64 / 8760.0 * cycle, 0.005);
}

#[test]
fn on_a_pure_delay_the_time_is_one_window_a_round_trip() {
    let result = run_one(vec![delay("20 ms")], upload(&stacks::riverbed(), FILE));
    assert_eq!(result.ended_at.as_nanos(), 45_780_000_000, "golden");
    // 1141.55 windows of 40 ms: 45.66 s. Slow start of three round trips brings it to 45.81 s.
    assert_close(seconds(&result), 45.81, 0.001);
}

/// 1 MB through a window of 65 535 B over a serial link of 1 Gbit/s.
fn megabyte(stack: &Config, one_way: f64) -> FlowResult {
    let mut stack = stack.clone();
    stack.receive.buffer = Bytes(65_535);
    let path = vec![link("1 Gbit/s", 2), delay_of(Duration::from_secs_f64(one_way))];
    run_one(path, upload(&stack, 1_000_000))
}

#[test]
fn time_is_a_straight_line_over_the_delay() {
    // ns-3.44, NewReno, to the digits that were measured.
    for (d, ns3) in [(0.01, 0.451), (0.1, 4.501), (0.27, 11.81), (1.0, 43.20), (1.49, 64.27)] {
        let result = megabyte(&stacks::ns3_newreno(), d);
        assert_eq!(result.sender.sender().stats().retransmissions, 0);
        assert_close(seconds(&result), ns3, 5e-4);
    }
    for d in [0.11, 0.2, 0.5, 0.9, 1.2, 1.4] {
        let time = seconds(&megabyte(&stacks::ns3_newreno(), d));
        assert!((time - 43.0 * d - 0.2007).abs() < 1e-4, "{time} s at {d} s");
    }
}

/// RFC 1122 acknowledges every second segment or after a wait, the first one too; ns-3 acknowledges that at once. With
/// an odd segment left over in two more flights, two more waits of 200 ms lie on the way, and the slope is the same.
#[test]
fn without_a_quick_first_ack_there_are_up_to_two_more_waits() {
    for d in [0.1, 0.27, 0.5, 1.0, 1.4] {
        let more = seconds(&megabyte(&stacks::initial_rto_3s(), d)) - 43.0 * d - 0.2007;
        let waits = (more / 0.2).round();
        assert!((0.0..=2.0).contains(&waits) && (more - 0.2 * waits).abs() < 0.001, "{more} s more at {d} s");
    }
}

/// ns-3 takes an RTT sample from a SYN that was sent again, and so has no step at half the initial RTO. It also keeps
/// its initial window then, where RFC 5681 §3.1 leaves one segment.
#[test]
fn without_karns_rule_on_the_syn_the_line_goes_on() {
    let stack = stacks::ns3_newreno();
    let ns3 = [
        (1.51, 65.13, 2),
        (3.0, 129.2, 2),
        (4.6, 198.0, 3),
        (10.0, 430.2, 3),
        (10.6, 456.0, 4),
        (22.4, 963.4, 4),
    ];
    for (d, time, syns) in ns3 {
        let result = megabyte(&stack, d);
        assert_eq!((result.sender.stats().syns, result.sender.sender().stats().retransmissions), (syns, 0));
        assert_close(seconds(&result), time, 5e-4);
    }
}

#[test]
fn karns_rule_on_the_syn_makes_a_step_at_half_the_initial_rto() {
    let mut stack = stacks::ns3_newreno();
    stack.rto.retransmitted_syn = RetransmittedSyn::Unmeasured;
    let (below, above) = (megabyte(&stack, 1.49), megabyte(&stack, 1.51));
    assert_eq!(below.sender.sender().stats().timeouts, 0);
    // Beyond, the first data segments meet a timer of 3 s that nothing has measured: spurious, and cwnd is cut.
    assert!(above.sender.sender().stats().timeouts > 0 && above.spurious_retransmissions > 0);
    let step = seconds(&above) - seconds(&below) - 43.0 * 0.02;
    assert!(step > 10.0, "{step} s");
}

#[test]
fn five_gigabytes_wrap_the_sequence_space() {
    let mut stack = stacks::long_fat(4_000_000);
    stack.mss = Bytes(65_000);
    let size = 5_000_000_000;
    let result = run_one(vec![link("10 Gbit/s", 0), delay("1 ms")], upload(&stack, size));
    assert_eq!(result.bytes_read, Bytes(size));
    assert_eq!(result.sender.sender().stats().retransmissions, 0);
    assert_close(seconds(&result), size as f64 * 8.0 / 1e10 * 65_040.0 / 64_988.0, 0.01);
}
