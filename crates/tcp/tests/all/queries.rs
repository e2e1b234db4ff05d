//! What others may ask an endpoint: how far its stream is, what it counts, and which window its peer last announced.

use crate::script::{PEER_ISN, Script, config};
use farpath_tcp::config::{AvoidanceGrowth, CwndValidation};
use farpath_tcp::{Config, Flags, Receiver, SendLimit, State};
use farpath_units::{Bytes, Duration, Instant};

fn far(t: &Script) -> (bool, u64, u64, u64) {
    let sender = t.sender();
    (sender.has_data(), sender.sent(), sender.acked(), sender.flight_size())
}

#[test]
fn a_stream_is_sent_acknowledged_and_over_with_its_fin() {
    let mut t = Script::established(&config(|c| c.send.nagle = false));
    assert_eq!(far(&t), (false, 0, 0, 0));
    t.write(1500).expect("1:1001, 1001:1501");
    assert_eq!(far(&t), (true, 1500, 0, 1500));
    t.ack(1001);
    assert_eq!(far(&t), (true, 1500, 1000, 500));
    t.ack(1501);
    assert_eq!(far(&t), (false, 1500, 1500, 0));
    t.close().expect("1501:1501 F");
    // The FIN is outstanding, and no byte of the stream.
    assert_eq!(far(&t), (true, 1500, 1500, 1));
    assert!(!t.sender().is_done());
    t.ack(1502);
    assert_eq!(far(&t), (false, 1500, 1500, 0));
    assert!(t.sender().is_done());
}

#[test]
fn packets_leave_with_the_ttl_of_the_configuration() {
    assert_eq!(Script::listen(&config(|c| c.send.ttl = 32)).end.ttl(), 32);
}

#[test]
fn windows_are_scaled_where_both_ends_offer_it() {
    // RFC 7323 §2.2
    let end = |scales| config(|c: &mut Config| c.send.window_scaling = scales);
    for (one, other) in [(false, false), (false, true), (true, false), (true, true)] {
        assert_eq!(end(one).scales_with(&end(other)), one && other);
    }
}

#[test]
fn segments_that_had_arrived_before_are_counted() {
    let mut t = Script::established(&config(|_| {}));
    t.data(1..101).ignore().data(1..101).ignore();
    assert_eq!(t.end.receiver().duplicate_segments(), 1);
    // Of one that had arrived in part, the rest is news.
    t.data(51..151).ignore();
    assert_eq!(t.end.receiver().duplicate_segments(), 1);
    t.data(1..151).ignore();
    assert_eq!(t.end.receiver().duplicate_segments(), 2);
    // Beyond a hole, twice.
    t.data(301..401).ignore().data(301..401).ignore();
    assert_eq!(t.end.receiver().duplicate_segments(), 3);
}

/// Payload of the peer with its window.
fn arrives(t: &mut Script, start: u64, window: u16) -> u64 {
    (t.window, t.peer_next) = (window, start);
    let mut segment = t.peer_segment(Flags::ACK);
    segment.len = 100;
    t.segment(segment).ignore();
    t.sender().rwnd()
}

#[test]
fn an_older_segment_does_not_change_the_window() {
    // RFC 9293 §3.10.7.4, fifth step: SND.WL1 and SND.WL2.
    let mut t = Script::established(&config(|_| {}));
    assert_eq!(arrives(&mut t, 1001, 8000), 8000);
    assert_eq!(arrives(&mut t, 1, 3000), 8000, "it was sent before");
    assert_eq!(arrives(&mut t, 1001, 7000), 7000, "the same place again");
    assert_eq!(arrives(&mut t, 2001, 6000), 6000);
}

#[test]
fn an_older_segment_that_acknowledges_more_changes_the_window() {
    let mut t = Script::established(&config(|_| {}));
    t.write(1000).ignore();
    assert_eq!(arrives(&mut t, 1001, 8000), 8000);
    t.peer_acks = 1001;
    assert_eq!(arrives(&mut t, 1, 3000), 3000);
}

#[test]
fn a_fin_with_data_that_had_arrived_is_taken() {
    // RFC 9293 §3.10.7.4, eighth step: the peer sends its last segment again, now with the FIN behind it.
    let mut t = Script::established(&config(|c| c.receive.ack_every = 1));
    t.data(1..1001).expect("ack 1001");
    t.data_with(Flags::FIN, 1..1001).expect("ack 1002");
    assert_eq!(t.end.state(), State::CloseWait);
    assert_eq!(t.end.receiver().duplicate_segments(), 1);
}

#[test]
fn after_the_first_data_acks_travel_with_data_though_the_first_one_leaves_alone() {
    let mut t = Script::established(&config(|c| {
        (c.handshake.ack_alone, c.receive.ack_every) = (true, 1);
    }));
    t.write(20_000).ignore();
    t.peer_acks = 1001;
    t.data(1..1001).expect("10001:11001, 11001:12001");
    assert_eq!(t.last().ack, PEER_ISN.advanced_by(1001));
}

#[test]
fn a_rate_that_is_given_up_leaves_the_window_that_it_sent_in_a_round_trip() {
    let mut t = Script::connect(&config(|_| {}));
    let synack = t.syn_ack();
    t.expect("S").at("100 ms").segment(synack).expect("ack 1");
    for (bytes_per_s, cwnd) in [(1_000_000, 100_000), (1_234_567, 123_456), (1000, 10_000)] {
        t.end.fall_back(t.now, bytes_per_s);
        assert_eq!((t.cwnd(), t.ssthresh()), (cwnd, cwnd));
    }
}

#[test]
fn a_timeout_within_a_repair_halves_no_more_than_the_window() {
    // RFC 5681 §3.1, Eq. 4: SACK has reported most of what RFC 5681 §2 counts as outstanding.
    let mut t = Script::established(&config(|c| c.recovery.sack = true));
    t.write(30_000).ignore();
    let report = 1001..10_001;
    t.sack(1, &[report]).expect("1:1001, 10001:11001, 11001:12001, 12001:13001, 13001:14001");
    assert_eq!((t.sender().flight_size(), t.cwnd()), (14_000, 5000));
    t.at("1 s").ignore();
    assert_eq!(t.ssthresh(), 2500);
}

#[test]
fn a_window_is_rounded_up_to_the_scales_unit_as_far_as_the_buffer_has_room() {
    // RFC 7323 §2.4
    for (buffer, announced) in [(100_000, 100_000), (100_001, 100_000), (100_007, 100_000)] {
        let config = config(|c| c.receive.buffer = Bytes(buffer));
        assert_eq!(Receiver::new(&config.receive, 1000).announce(3), announced);
    }
}

#[test]
fn half_of_a_small_buffer_that_was_read_is_announced_at_once() {
    // RFC 9293 §3.8.6.2.2: two segments, or half the buffer.
    let mut t = Script::established(&config(|c| {
        (c.receive.buffer, c.receive.ack_every) = (Bytes(3000), 1);
    }));
    t.data(1..1001).ignore().data(1001..2001).ignore().data(2001..3001).expect("ack 3001");
    assert_eq!(t.last().window, 0);
    t.read(1499).expect_nothing().read(1).expect("ack 3001");
    assert_eq!(t.last().window, 1500);
}

#[test]
fn a_rate_beyond_all_windows_leaves_the_largest() {
    let mut t = Script::connect(&config(|c| c.rto.initial = Duration::from_secs(3)));
    let synack = t.syn_ack();
    t.expect("S").at("2 s").segment(synack).expect("ack 1");
    t.end.fall_back(t.now, u64::MAX);
    assert_eq!(t.cwnd(), u64::MAX / 2);
}

#[test]
fn a_window_that_was_not_filled_does_not_grow() {
    // tcp_cwnd_validate(): by the window of data, the segment that would still fit included.
    for (segments, cwnd) in [(5, 10_000), (10, 11_000)] {
        let mut t = Script::established(&config(|c| {
            c.congestion.cwnd_validation = CwndValidation::ByWindow;
            c.congestion.avoidance = AvoidanceGrowth::AllAcked;
            c.congestion.initial_ssthresh = Some(Bytes(10_000));
        }));
        t.write(segments * 1000).ignore().ack(segments * 1000 + 1);
        let after = t.cwnd();
        t.write(segments * 1000).ignore().ack(2 * segments * 1000 + 1);
        assert_eq!(t.cwnd().max(after), cwnd, "{segments}");
    }
}

#[test]
fn a_sender_says_what_keeps_it_from_sending_more() {
    let limit = |t: &Script| t.sender().limit(Instant::ZERO);
    let mut t = Script::established_to(&config(|c| c.send.buffer = Some(Bytes(20_000))), 3000);
    assert_eq!(limit(&t), SendLimit::Application);
    // Three segments fill the peer's window.
    t.write(5000).ignore();
    assert_eq!((t.sender().flight_size(), limit(&t)), (3000, SendLimit::ReceiveWindow));
    t.ack(1001).ignore().ack(2001).ignore();
    assert_eq!(limit(&t), SendLimit::Application);
    t.ack(3001).ignore().write(500).expect_nothing();
    assert_eq!(limit(&t), SendLimit::Nagle);
    t.ack(5001).ignore().ack(5501).ignore().write(20_000).ignore();
    assert_eq!(limit(&t), SendLimit::ReceiveWindow);
    let mut t = Script::established(&config(|c| c.congestion.initial_window = 2));
    t.write(5000).expect("1:1001, 1001:2001");
    assert_eq!(limit(&t), SendLimit::SlowStart);
    t.close().ack(1001).ignore().ack(2001).ignore();
    assert_eq!(limit(&t), SendLimit::Ended);
    let mut t = Script::established(&config(|c| {
        (c.send.buffer, c.congestion.initial_window) = (Some(Bytes(2000)), 8);
    }));
    t.write(2000).ignore();
    assert_eq!(limit(&t), SendLimit::SendBuffer);
}
