//! Pacing by the window (Linux, `tcp_update_pacing_rate()`): bursts of a millisecond, and what is not held back.

use crate::duration;
use crate::script::{Script, config};
use farpath_tcp::Config;
use farpath_tcp::cc::Pace;
use farpath_tcp::config::CongestionControlKind;

/// Connected over a round trip of so long, at its end.
fn connected(rtt: &str, change: impl FnOnce(&mut Config)) -> Script {
    let mut t = Script::connect(&config(|c| {
        c.send.pacing = true;
        change(c);
    }));
    let synack = t.syn_ack();
    t.expect("S").at(rtt).segment(synack).expect("ack 1");
    t
}

#[test]
fn a_burst_of_a_millisecond_leaves_at_once_and_then_the_next() {
    // Twice 20 segments in 10 ms are 4 MB/s: three segments in 2^-10 s, and 0.75 ms for them. The first nine are not paced.
    let mut t = connected("10 ms", |c| c.congestion.initial_window = 20);
    t.write(18_000);
    t.expect(
        "1:1001, 1001:2001, 2001:3001, 3001:4001, 4001:5001, 5001:6001, 6001:7001, 7001:8001, 8001:9001, \
         9001:10001, 10001:11001, 11001:12001",
    );
    t.at("11 ms").expect_timed("10.75 ms 12001:13001, 10.75 ms 13001:14001, 10.75 ms 14001:15001");
    t.at("12 ms").expect_timed("11.5 ms 15001:16001, 11.5 ms 16001:17001, 11.5 ms 17001:18001");
}

#[test]
fn what_a_timeout_sends_again_goes_at_once_and_the_rest_of_the_repair_is_paced() {
    let mut t = connected("100 ms", |_| {});
    t.write(20_000).ignore();
    t.at("1.2 s").expect_timed("1.1 s 1:1001");
    t.ack(1001).expect("1001:2001");
    // Twice the nine segments in flight, in a round trip of 100 ms: 5.6 ms for each, and half of that for the first, which
    // was late.
    t.at("1.3 s").expect_timed("1202777.778 us 2001:3001");
}

#[test]
fn over_a_short_path_a_burst_is_longer() {
    // tcp_tso_autosize(): 4 ms are seven times 512 us, so that 64 KiB >> 7 = 512 B come to the 9765 B of 10 MB/s in 2^-10 s:
    // ten segments, of which the last is the first that is paced, by half of its time since nothing had left before.
    let mut t = connected("4 ms", |c| c.congestion.initial_window = 20);
    t.write(12_000);
    t.expect(
        "1:1001, 1001:2001, 2001:3001, 3001:4001, 4001:5001, 5001:6001, 6001:7001, 7001:8001, 8001:9001, 9001:10001",
    );
    t.at("5 ms").expect_timed("4.05 ms 10001:11001, 4.05 ms 11001:12001");
}

#[test]
fn a_granted_rate_is_kept_whatever_the_window() {
    let mut t = Script::connect(&config(|_| {}));
    let synack = t.syn_ack();
    t.expect("S").at("100 ms").segment(synack).expect("ack 1");
    // 10 ms for each segment; half of that for the first, since nothing had left before.
    let pace = Pace { least_burst: 1, most_burst: 1, unpaced: 0, ..Pace::from_bytes_per_s(100_000) };
    t.end.send_at(t.now, pace);
    t.write(3000).expect("1:1001");
    t.at("1 s").expect_timed("105 ms 1001:2001, 115 ms 2001:3001");
}

#[test]
fn a_rate_below_the_least_that_is_counted_holds_nothing_back() {
    // One segment in a round trip of 90 s is 0.19 of BBR's least unit, 2^-24 segments per microsecond, and so no rate at all: what
    // the window has room for leaves at once (tcp_update_skb_after_send() paces where there is a rate), far beyond the ten
    // segments that are never paced.
    let mut t = Script::connect(&config(|c| {
        c.congestion.control = CongestionControlKind::Bbr;
        c.congestion.initial_window = 1;
        (c.rto.initial, c.rto.max) = (duration("100 s"), duration("120 s"));
    }));
    let synack = t.syn_ack();
    t.expect("S").at("90 s").segment(synack).expect("ack 1");
    t.write(20_000).expect("1:1001");
    for round in 1..=12_u64 {
        t.at(&format!("{} s", 90 + 90 * round)).ignore();
        let sent = t.sender().sent() + 1;
        t.ack(sent).ignore();
    }
    assert_eq!(t.sender().sent(), 20_000);
}
