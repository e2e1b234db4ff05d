//! When the receiver acknowledges (RFC 1122 §4.2.3.2, RFC 5681 §4.2), and timestamps (RFC 7323 §3-5).

use crate::duration;
use crate::script::{Script, config};
use farpath_tcp::config::*;
use farpath_tcp::{Config, Endpoint, Timestamps};

fn delaying(change: impl FnOnce(&mut Config)) -> Script {
    Script::established(&config(change))
}

#[test]
fn every_second_segment_is_acknowledged() {
    let mut t = delaying(|_| {});
    t.data(1..1001).expect_nothing().data(1001..2001).expect("ack 2001");
    t.data(2001..3001).expect_nothing().data(3001..4001).expect("ack 4001");
}

#[test]
fn segments_are_counted_whatever_their_size() {
    let mut t = delaying(|c| c.receive.ack_every = 3);
    t.data(1..2).data(2..3).expect_nothing().data(3..4).expect("ack 4");
}

#[test]
fn an_ack_is_withheld_for_200_ms_at_most() {
    let mut t = delaying(|_| {});
    t.at("130 ms").data(1..1001).at("329 ms").expect_nothing();
    t.at("330 ms").expect("ack 1001");
    assert_eq!(t.end.next_due(), None);
}

fn adapting(c: &mut Config) {
    (c.receive.ack_delay, c.receive.ack_delay_max) = (duration("40 ms"), Some(duration("200 ms")));
}

#[test]
fn a_wait_that_no_second_segment_ends_doubles_and_short_gaps_bring_it_down_by_linux() {
    let mut t = Script::connect(&config(adapting));
    let syn_ack = t.expect("S").syn_ack();
    t.at("900 ms").segment(syn_ack).expect("ack 1");
    t.at("1 s").data(1..1001).at("1039 ms").expect_nothing().at("1040 ms").expect("ack 1001");
    // 80 ms. A gap longer than that changes nothing.
    t.at("1120 ms").data(1001..2001).at("1199 ms").expect_nothing().at("1200 ms").expect("ack 2001");
    // 160 ms: the segment 100 ms later is in time, and the wait 160 / 2 + 100 = 180 ms.
    t.at("1370 ms").data(2001..3001).at("1470 ms").expect_nothing().data(3001..4001).expect("ack 4001");
    // Segments at once bring it to 180 / 2 + 20 = 110 ms, 75 ms and 57.5 ms.
    t.data(4001..5001).expect_nothing().data(5001..6001).expect("ack 6001");
    t.data(6001..7001).at("1527 ms").expect_nothing().at("1528 ms").expect("ack 7001");
}

#[test]
fn the_last_quick_ack_brings_the_wait_back_to_its_least_by_linux() {
    // tcp_dec_quickack_mode(). After a gap longer than the RTO of 2.7 s two segments are acknowledged at once.
    let mut t = Script::connect(&config(|c| {
        adapting(c);
        (c.receive.quick_acks, c.receive.quick_acks_after_gap) = (0, 2);
        c.receive.immediate_acks = ImmediateAcks::Linux;
    }));
    let syn_ack = t.expect("S").syn_ack();
    t.at("900 ms").segment(syn_ack).expect("ack 1");
    // Nothing followed, so that the wait is 80 ms from here on.
    t.at("1 s").data(1..1001).at("1039 ms").expect_nothing().at("1040 ms").expect("ack 1001");
    t.at("4 s").data(1001..2001).expect("ack 2001");
    t.at("4.1 s").data(2001..3001).expect("ack 3001");
    t.at("4.2 s").data(3001..4001).at("4239 ms").expect_nothing().at("4240 ms").expect("ack 4001");
}

#[test]
fn a_wait_that_adapts_gets_no_longer_than_a_round_trip() {
    let mut t = delaying(adapting);
    for n in 0..4 {
        let arrival = 1000 * n;
        t.at(&format!("{} ms", 1000 + arrival)).data(arrival + 1..arrival + 1001);
        t.at(&format!("{} ms", 1039 + arrival)).expect_nothing();
        t.at(&format!("{} ms", 1040 + arrival)).expect(&format!("ack {}", arrival + 1001));
    }
}

#[test]
fn the_wheel_ends_a_wait_up_to_a_tick_late() {
    let mut t = delaying(|c| {
        (c.receive.ack_delay, c.rto.tick, c.rto.tick_expiry) =
            (duration("40 ms"), duration("4 ms"), TickExpiry::TimerWheel);
    });
    t.at("101 ms").data(1..1001).at("143 ms").expect_nothing().at("144 ms").expect("ack 1001");
}

#[test]
fn the_host_clock_ends_all_waits_at_once() {
    let mut t = delaying(|c| c.receive.ack_clock = AckClock::Host);
    t.at("130 ms").data(1..1001).at("200 ms").expect("ack 1001");
    t.data(1001..2001).at("399 ms").expect_nothing().at("400 ms").expect("ack 2001");
}

#[test]
fn a_delay_of_nothing_acknowledges_each_segment() {
    delaying(|c| c.receive.ack_delay = duration("0 s")).data(1..1001).expect("ack 1001");
}

#[test]
fn data_the_other_way_carries_the_ack() {
    let mut t = delaying(|_| {});
    t.data(1..1001).write(100).expect("1:101");
    assert_eq!(t.last().ack, crate::script::PEER_ISN.advanced_by(1001));
    t.at("1 s").expect("1:101"); // by its timer; no ACK of its own was due
}

#[test]
fn a_gap_is_reported_at_once_and_so_is_its_filling() {
    let mut t = delaying(|_| {});
    t.data(1001..2001).expect("ack 1").data(3001..4001).expect("ack 1");
    t.data(1..1001).expect("ack 2001").data(2001..3001).expect("ack 4001");
    t.data(4001..5001).expect_nothing();
}

#[test]
fn a_fin_is_acknowledged_at_once() {
    delaying(|_| {}).data(1..101).expect_nothing().fin().expect("ack 102");
}

#[test]
fn the_first_segments_are_acknowledged_at_once_by_linux() {
    let mut t = delaying(|c| c.receive.quick_acks = 2);
    t.data(1..1001).expect("ack 1001").data(1001..2001).expect("ack 2001");
    t.data(2001..3001).expect_nothing();
}

#[test]
fn after_a_gap_of_more_than_the_rto_segments_are_acknowledged_at_once_by_linux() {
    let mut t = delaying(|c| c.receive.quick_acks_after_gap = 2);
    t.at("10 ms").data(1..1001).expect_nothing().data(1001..2001).expect("ack 2001");
    // Its own timeout is 1 s.
    t.at("900 ms").data(2001..3001).expect_nothing().data(3001..4001).expect("ack 4001");
    t.at("2 s").data(4001..5001).expect("ack 5001").data(5001..6001).expect("ack 6001");
    t.data(6001..7001).expect_nothing();
}

// ---- Timestamps ----

fn stamped(change: impl FnOnce(&mut Config)) -> Script {
    delaying(|c| {
        c.send.timestamps = true;
        change(c);
    })
}

fn stamps(t: &Script) -> Timestamps {
    t.last().timestamps.expect("timestamps were agreed on")
}

#[test]
fn every_segment_carries_the_clock_and_what_it_echoes() {
    let mut t = stamped(|_| {});
    assert_eq!(stamps(&t), Timestamps { value: 1, echo: 1000 });
    t.at("250 ms").write(100).ignore();
    assert_eq!(stamps(&t), Timestamps { value: 251, echo: 1000 });
    assert_eq!(t.sender().smss(), 988, "RFC 6691: the option's 12 bytes come off");
}

#[test]
fn the_rtt_comes_from_the_echo_even_for_a_retransmission() {
    // RFC 7323 §4.1
    let mut t = stamped(|_| {});
    t.write(900).ignore().at("1 s").expect("1:901").at("1.1 s");
    t.timestamps = Some(Timestamps { value: 2000, echo: 1001 });
    t.ack(901).expect_nothing();
    assert_eq!(t.sender().rtt().last_sample().0, Some(duration("100 ms")));
}

#[test]
fn a_delayed_ack_echoes_the_first_segment_it_is_for() {
    // RFC 7323 §4.3
    let mut t = stamped(|_| {});
    t.timestamps = Some(Timestamps { value: 2000, echo: 1 });
    t.data(1..901);
    t.timestamps = Some(Timestamps { value: 2050, echo: 1 });
    t.data(901..1801).ignore();
    assert_eq!(stamps(&t).echo, 2000);
}

#[test]
fn a_segment_after_a_gap_is_not_echoed() {
    let mut t = stamped(|_| {});
    t.timestamps = Some(Timestamps { value: 3000, echo: 1 });
    t.data(901..1801).expect("ack 1");
    assert_eq!(stamps(&t).echo, 1000);
}

/// What is echoed of copies, each with the clock at its number: of the last segment, after its ACK and before it; of the one
/// before; and of one that holds it and what is new.
fn echoes_of_copies(rule: TsRecent) -> [u32; 4] {
    let clock = |value| Some(Timestamps { value, echo: 1 });
    let opened = || {
        let mut t = stamped(|c| c.receive.ts_recent = rule);
        t.timestamps = clock(1100);
        t.data(1..901);
        t.timestamps = clock(1200);
        t.data(901..1801).expect("ack 1801");
        assert_eq!(stamps(&t).echo, 1100, "the first that it is for");
        t
    };
    let copy = |range: std::ops::Range<u64>| {
        let mut t = opened();
        t.timestamps = clock(5000);
        t.data(range).ignore().after("200 ms").ignore();
        stamps(&t).echo
    };
    let mut withheld = opened();
    withheld.timestamps = clock(4000);
    withheld.data(1801..2701).expect_nothing();
    withheld.timestamps = clock(5000);
    withheld.data(1801..2701).expect("ack 2701");
    [copy(901..1801), stamps(&withheld).echo, copy(1..901), copy(901..2701)]
}

#[test]
fn a_copy_of_the_last_segment_is_echoed() {
    // Its ACK was lost: the sender measures the copy, and not the time since the first one.
    assert_eq!(echoes_of_copies(TsRecent::Rfc7323), [5000, 5000, 5000, 5000], "RFC 7323 §4.3 (2)");
}

#[test]
fn linux_echoes_copies_of_the_last_segment_only() {
    // tcp_sequence() refuses what ends before rcv_wup. A running 6.18 that was asked did so.
    assert_eq!(echoes_of_copies(TsRecent::Linux), [5000, 5000, 1100, 5000]);
}

#[test]
fn freebsd_echoes_any_copy_unless_an_ack_is_withheld() {
    // What has arrived is cut off: the segment then begins at rcv_nxt.
    assert_eq!(echoes_of_copies(TsRecent::FreeBsd), [5000, 4000, 5000, 5000]);
}

#[test]
fn rfc_1323_echoes_no_copy_of_what_has_been_acknowledged() {
    assert_eq!(echoes_of_copies(TsRecent::Rfc1323), [1100, 5000, 1100, 5000]);
}

#[test]
fn ns_3_echoes_what_comes_in_order_only() {
    assert_eq!(echoes_of_copies(TsRecent::InOrder), [1100, 4000, 1100, 1100]);
}

/// What is echoed after an ACK without data, whose clock shows 5000.
fn echo_after_a_pure_ack(rule: TsRecent) -> u32 {
    let mut t = stamped(|c| c.receive.ts_recent = rule);
    t.timestamps = Some(Timestamps { value: 5000, echo: 1 });
    t.write(100).ignore().ack(101).write(100).ignore();
    stamps(&t).echo
}

#[test]
fn rfc_1323_alone_echoes_no_pure_ack() {
    let rules = [TsRecent::Rfc7323, TsRecent::Linux, TsRecent::FreeBsd, TsRecent::InOrder, TsRecent::Rfc1323];
    assert_eq!(rules.map(echo_after_a_pure_ack), [5000, 5000, 5000, 5000, 1000]);
}

#[test]
fn a_copy_with_an_older_clock_is_not_echoed() {
    let mut t = stamped(|_| {});
    t.timestamps = Some(Timestamps { value: 5000, echo: 1 });
    t.data(1..901).fin().expect("ack 902");
    t.timestamps = Some(Timestamps { value: 4999, echo: 1 });
    t.data(1..901).expect("ack 902");
    assert_eq!(stamps(&t).echo, 5000, "PAWS");
}

#[test]
fn paws_drops_a_segment_from_before() {
    // RFC 7323 §5.3: within the window by its number, too old by its clock.
    let mut t = stamped(|_| {});
    t.timestamps = Some(Timestamps { value: 5000, echo: 1 });
    t.data(1..901);
    t.timestamps = Some(Timestamps { value: 4999, echo: 1 });
    t.data(901..1801).expect("ack 901");
    assert_eq!(t.end.stats().segments_refused, 1);
}

#[test]
fn paws_lets_a_reset_through() {
    let mut t = stamped(|_| {});
    t.timestamps = Some(Timestamps { value: 1, echo: 1 });
    t.reset(1).expect_nothing();
    assert_eq!(t.end.state(), farpath_tcp::State::Closed);
}

#[test]
fn after_24_days_of_silence_an_old_clock_is_no_reason_to_refuse() {
    // RFC 7323 §5.5
    let mut t = stamped(|_| {});
    t.at("2160000 s"); // 25 days
    t.timestamps = Some(Timestamps { value: 1000u32.wrapping_add(2_160_000_000), echo: 1 });
    t.data(1..901).at("2160001 s").expect("ack 901");
}
