//! What Linux does otherwise than the RFCs, each rule switched on by itself.
#![allow(clippy::single_range_in_vec_init, reason = "a SACK option of one block")]

use crate::script::{PEER_ISN, Script, config};
use crate::time;
use farpath_tcp::config::*;
use farpath_tcp::{Config, Endpoint, Flags};
use farpath_units::{Bytes, Duration};

fn in_flight(segments: u64, change: impl FnOnce(&mut Config)) -> Script {
    let mut t = Script::established(&config(change));
    t.write(segments * 1000).ignore();
    t
}

// ---- Small segments ----

#[test]
fn a_small_segment_waits_for_a_small_one_alone() {
    let mut t = Script::established(&config(|c| c.send.minshall = true));
    t.write(1500).expect("1:1001, 1001:1501").write(100).expect_nothing();
    t.ack(1001).expect_nothing().ack(1501).expect("1501:1601");
}

#[test]
fn a_small_segment_behind_full_ones_fills_the_peers_window() {
    let mut t = Script::established_to(&config(|c| c.send.minshall = true), 3600);
    t.write(20_000).expect("1:1001, 1001:2001, 2001:3001, 3001:3601");
    // One small segment at a time; and what leaves by itself is a full one.
    t.ack(2001).expect("3601:4601, 4601:5601").ack(3601).expect("5601:6601, 6601:7201");
    t.ack(4601).expect("7201:8201");
}

#[test]
fn without_minshall_what_is_left_of_the_window_stays_unused() {
    let mut t = Script::established_to(&config(|_| {}), 3600);
    t.write(20_000).expect("1:1001, 1001:2001, 2001:3001").ack(2001).expect("3001:4001, 4001:5001");
}

// ---- The window after a loss ----

#[test]
fn half_of_cwnd_is_taken_in_whole_segments() {
    for (from, ssthresh) in [(SsthreshFrom::Cwnd, 4500), (SsthreshFrom::CwndSegments, 4000)] {
        let mut t = in_flight(9, |c| {
            (c.congestion.initial_window, c.congestion.ssthresh_from) = (9, from);
        });
        t.dup_acks(3).expect("1:1001");
        assert_eq!(t.ssthresh(), ssthresh, "{from:?}");
    }
}

#[test]
fn a_timeout_within_fast_recovery_does_not_halve_again() {
    for (rule, ssthresh) in [
        (SsthreshOnTimeout::Every, 2500),
        (SsthreshOnTimeout::First, 2500),
        (SsthreshOnTimeout::FirstOutsideRecovery, 5000),
    ] {
        let mut t = in_flight(10, |c| {
            c.congestion.ssthresh_from = SsthreshFrom::Cwnd;
            c.congestion.ssthresh_on_timeout = rule;
        });
        t.dup_acks(3).expect("1:1001").at("1 s").expect("1:1001");
        assert_eq!((t.cwnd(), t.ssthresh()), (1000, ssthresh));
    }
}

// ---- Growth ----

fn avoiding(change: impl FnOnce(&mut Config)) -> Script {
    in_flight(20, |c| {
        (c.congestion.initial_window, c.congestion.avoidance) = (4, AvoidanceGrowth::AllAcked);
        c.congestion.initial_ssthresh = Some(farpath_units::Bytes(4000));
        change(c);
    })
}

#[test]
fn a_loss_takes_what_had_not_become_a_segment_yet() {
    for (avoidance, cwnd) in [(AvoidanceGrowth::AllAcked, 2000), (AvoidanceGrowth::Ns3LinuxReno, 3000)] {
        let mut t = avoiding(|c| c.congestion.avoidance = avoidance);
        // Three of the four that a segment of growth takes; then fast recovery from ssthresh 2000 on.
        t.ack(3001).ignore().dup_acks(3).ignore().ack(7001).ignore();
        assert_eq!(t.cwnd(), 2000);
        t.ack(8001).ignore();
        assert_eq!(t.cwnd(), cwnd);
    }
}

#[test]
fn the_ack_that_ends_fast_recovery_counts_for_growth() {
    for (end, cwnd) in [(EndGrowth::AfterTimeout, 5000), (EndGrowth::AfterBoth, 6000)] {
        let mut t = in_flight(10, |c| {
            (c.recovery.sack, c.recovery.end_growth) = (true, end);
            (c.congestion.growth_by_delivery, c.congestion.avoidance) = (true, AvoidanceGrowth::AllAcked);
        });
        // The hole and the last segment arrive; from 5000 on, five segments earn one.
        t.sack(1, &[1001..9001]).ignore().ack(10_001).write(10_000).ignore();
        t.ack(12_001).ignore().ack(13_001).ignore();
        assert_eq!(t.cwnd(), cwnd, "2 segments, 2 and 1");
    }
}

#[test]
fn what_sack_had_reported_grows_the_window_once() {
    for (by_delivery, cwnd) in [(false, 4000), (true, 2000)] {
        let mut t = in_flight(4, |c| {
            (c.recovery.sack, c.congestion.growth_by_delivery) = (true, by_delivery);
            c.congestion.slow_start = SlowStartGrowth::AllAcked;
        });
        t.sack(1, &[1001..3001]).write(20_000).ignore().at("1 s").ignore();
        assert_eq!(t.cwnd(), 1000);
        t.ack(3001).ignore();
        assert_eq!(t.cwnd(), cwnd);
    }
}

#[test]
fn what_duplicate_acks_told_of_does_not_grow_the_window() {
    for (by_delivery, cwnd) in [(false, 13_000), (true, 11_000)] {
        let mut t = in_flight(10, |c| {
            c.congestion.growth_by_delivery = by_delivery;
            c.congestion.slow_start = SlowStartGrowth::AllAcked;
        });
        // Reordered: two duplicates, then the late segment.
        t.dup_acks(2).ack(3001);
        assert_eq!(t.cwnd(), cwnd);
    }
}

#[test]
fn a_small_segment_grows_the_window_as_a_whole_one() {
    // 1:1001 to 3001:4001 and the 300 bytes behind them.
    for (by_delivery, cwnd) in [(false, 14_300), (true, 15_000)] {
        let mut t = Script::established(&config(|c| {
            (c.congestion.initial_window, c.send.nagle) = (10, false);
            c.congestion.growth_by_delivery = by_delivery;
            c.congestion.slow_start = SlowStartGrowth::AllAcked;
            c.congestion.cwnd_validation = CwndValidation::Off;
        }));
        t.write(4300).ignore().ack(4301);
        assert_eq!(t.cwnd(), cwnd);
    }
}

// ---- Proportional rate reduction without SACK (RFC 9937 §6.2) ----

#[test]
fn a_duplicate_ack_stands_for_a_segment_that_has_arrived() {
    let sent = |window| {
        let mut t = Script::established(&config(|c| {
            c.congestion.initial_window = 20;
            c.recovery.rate_reduction = RateReduction::SafeAck;
            c.recovery.window_without_sack = window;
            c.recovery.full_ack_window = FullAckWindow::Ssthresh;
        }));
        t.write(40_000).ignore().dup_acks(2).expect_nothing().dup_acks(1).expect("1:1001");
        let mut sent = Vec::new();
        for _ in 4..=19 {
            let before = t.sender().stats().data_segments;
            t.dup_acks(1).ignore();
            sent.push(t.sender().stats().data_segments - before);
        }
        t.ack(20_001).ignore();
        assert_eq!((t.cwnd(), t.ssthresh()), (10_000, 10_000));
        sent
    };
    assert_eq!(sent(WindowWithoutSack::Rfc6582), [0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
    assert_eq!(
        sent(WindowWithoutSack::RateReduction),
        [0, 0, 1, 0, 1, 0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 1],
        "as with SACK"
    );
}

#[test]
fn a_partial_ack_takes_back_the_duplicates_that_it_explains() {
    // 1001 and 6001 are lost of 1 to 12001. Ten duplicates, and the copy of the first acknowledges five segments: the
    // hole and four of the ten.
    let mut t = Script::established(&config(|c| {
        c.congestion.initial_window = 12;
        c.recovery.rate_reduction = RateReduction::SafeAck;
        c.recovery.window_without_sack = WindowWithoutSack::RateReduction;
    }));
    t.write(40_000).ignore().ack(1001).ignore();
    let flight = t.sender().flight_size();
    t.dup_acks(10).ignore();
    let sent = t.sender().flight_size() - flight;
    t.ack(6001).ignore();
    // 6 duplicates are left, and the second hole is sent again at once.
    let pipe = t.sender().flight_size() - 6000;
    assert!(sent > 0 && t.cwnd() >= pipe && t.cwnd() <= pipe + 2000, "{} {pipe}", t.cwnd());
    assert_eq!(t.sender().stats().retransmissions, 2);
}

#[test]
fn below_recover_duplicates_send_no_new_data() {
    for (guard, more) in [(RecoverGuard::Rfc6582, 1000), (RecoverGuard::Linux, 0)] {
        let mut t = Script::established(&config(|c| {
            c.congestion.initial_window = 10;
            (c.recovery.limited_transmit, c.recovery.recover_guard) = (true, guard);
            c.recovery.full_ack_window = FullAckWindow::Ssthresh;
        }));
        // Recovery ends with an ACK of exactly `recover`; nobody knows what duplicates of it are of.
        t.write(30_000).ignore().dup_acks(3).ignore();
        let recover = t.sender().flight_size() + 1;
        t.ack(recover).ignore();
        let sent = t.sender().flight_size();
        t.dup_acks(1).ignore();
        assert_eq!(t.sender().flight_size() - sent, more);
    }
}

/// All that fast recovery began with is acknowledged, and nothing beyond it.
fn held() -> Script {
    let mut t = Script::established_to(
        &config(|c| {
            c.congestion.initial_window = 10;
            c.congestion.ssthresh_from = SsthreshFrom::CwndSegments;
            c.congestion.ssthresh_on_timeout = SsthreshOnTimeout::FirstOutsideRecovery;
            c.recovery.rate_reduction = RateReduction::Linux;
            c.recovery.window_without_sack = WindowWithoutSack::RateReduction;
            c.recovery.recover_guard = RecoverGuard::Linux;
            c.recovery.full_ack_window = FullAckWindow::Ssthresh;
        }),
        6000,
    );
    t.write(30_000).ignore().dup_acks(5).expect("1:1001");
    t.ack(6001).expect("6001:7001, 7001:8001, 8001:9001, 9001:10001");
    t
}

#[test]
fn a_repair_is_held_until_more_is_acknowledged() {
    let mut t = held();
    assert_eq!((t.cwnd(), t.ssthresh()), (4000, 5000));
    t.dup_acks(3).expect_nothing();
    t.ack(7001).expect("10001:11001, 11001:12001");
    assert_eq!(t.cwnd(), 5000);
}

#[test]
fn a_timeout_while_a_repair_is_held_is_a_loss_of_its_own() {
    // tcp_enter_loss(): `high_seq` is not beyond `snd_una`.
    let mut t = held();
    t.at("5 s").ignore();
    assert_eq!((t.cwnd(), t.ssthresh()), (1000, 2000), "half of 4000");
}

// ---- The timer wheel ----

#[test]
fn the_wheel_is_the_coarser_the_longer_the_wait() {
    // Jiffies of 4 ms: 252 ms and more in steps of 32 ms, 2.016 s and more of 256 ms, 16.128 s and more of 2.048 s.
    let mut t = in_flight(1, |c| {
        (c.rto.tick, c.rto.tick_expiry, c.rto.max) =
            (Duration::from_millis(4), TickExpiry::TimerWheel, Duration::from_secs(64));
    });
    t.at("70 s").expect_timed(
        "1.024 s 1:1001, 3.04 s 1:1001, 7.168 s 1:1001, 15.36 s 1:1001, 31.488 s 1:1001, 65.536 s 1:1001",
    );
    let mut t = in_flight(1, |c| {
        (c.rto.tick, c.rto.tick_expiry) = (Duration::from_millis(4), TickExpiry::TimerWheel);
        c.rto.min = Duration::from_millis(247);
    });
    assert_eq!(t.end.next_due(), Some(time("252 ms")), "62 jiffies, and one");
    t.at("252 ms").expect("1:1001");
}

// ---- Super-packets ----

#[test]
fn the_last_segment_of_a_super_packet_carries_psh() {
    let psh = |super_packets, segments| {
        let mut t = Script::established(&config(|c| {
            (c.send.super_packets, c.congestion.initial_window) = (super_packets, segments);
        }));
        t.write(20_000).ignore();
        t.last().flags.contains(Flags::PSH)
    };
    assert!(psh(SuperPackets::Plain, 4), "of two, half of the window");
    assert!(!psh(SuperPackets::Plain, 5), "the fifth is one of its own");
    assert!(!psh(SuperPackets::Off, 4));
}

#[test]
fn a_super_packet_takes_in_the_beginning_of_the_next_buffer() {
    // Of 15 segments, half of the peer's window, behind the four that left while the program wrote.
    let pushed = |fills| {
        let mut t = Script::established_to(
            &config(|c| {
                c.send.super_packets = fills;
                c.congestion.initial_window = 4;
            }),
            30_000,
        );
        let mut ends = t.write(40_000).pushed();
        for acknowledged in (1..=9).map(|n| 1000 * n + 1) {
            ends.extend(t.ack(acknowledged).pushed());
        }
        ends
    };
    let twos = (1..=11).map(|n| 2000 * n + 1);
    assert_eq!(pushed(SuperPackets::Filled), twos.clone().collect::<Vec<_>>());
    let buffer_end: Vec<u64> =
        twos.clone().filter(|&end| end < 19_001).chain([19_001]).chain(twos.skip(9)).collect();
    assert_eq!(pushed(SuperPackets::Plain), buffer_end);
}

/// Ten segments under way since 500 us, over a round trip of as much, and thirty to come.
fn a_short_path(change: impl FnOnce(&mut Config)) -> Script {
    let mut t = Script::connect(&config(|c| {
        c.send.tso_win_divisor = 3;
        change(c);
    }));
    let syn_ack = t.expect("S").syn_ack();
    t.at("500 us").segment(syn_ack).expect("ack 1").write(40_000).ignore();
    t
}

#[test]
fn what_an_ack_frees_waits_until_it_is_a_third_of_the_window() {
    let mut t = a_short_path(|_| {});
    t.at("1 ms").ack(1001).expect_nothing();
    t.at("1100 us").ack(2001).expect("10001:11001, 11001:12001, 12001:13001, 13001:14001");
    let mut t = a_short_path(|c| c.send.tso_win_divisor = 0);
    t.at("1 ms").ack(1001).expect("10001:11001, 11001:12001");
}

#[test]
fn nothing_waits_where_nothing_left_in_the_last_millisecond() {
    a_short_path(|_| {}).at("1501 us").ack(1001).expect("10001:11001, 11001:12001");
}

#[test]
fn nothing_waits_for_an_ack_that_is_far_off() {
    let mut t = a_short_path(|_| {});
    t.at("1 ms").ack(10_001).ignore();
    // What left then is due at 1.5 ms: more than half of a round trip from now.
    t.at("1100 us").ack(11_001).expect("21001:22001, 22001:23001");
}

#[test]
fn nothing_waits_in_recovery() {
    let mut t = a_short_path(|c| (c.recovery.sack, c.recovery.dup_ack_threshold) = (true, 1));
    t.at("1 ms").sack(1, &[1001..6001]).expect("1:1001");
    t.at("1100 us").sack(1, &[1001..8001]).expect("10001:11001, 11001:12001");
    // One segment is less than a third of 5000, and news of the repair is due in 200 us.
    let mut t = a_short_path(|c| (c.recovery.sack, c.recovery.dup_ack_threshold) = (true, 1));
    t.at("1 ms").sack(1, &[1001..6001]).expect("1:1001");
    t.at("1300 us").sack(1, &[1001..7001]).expect("10001:11001");
}

#[test]
fn the_end_of_a_stream_waits_for_the_window_that_is_the_limit() {
    // Which is cwnd with 2000 bytes; or the peer's with 1000.
    for window in [60_000, 10_000] {
        let mut t = a_short_path(|_| {});
        t.close().expect_nothing().window = window;
        t.at("1 ms").ack(1001).expect_nothing();
    }
}

// ---- Acknowledgments ----

#[test]
fn what_ends_with_psh_is_acknowledged_once_it_is_read() {
    let mut t = Script::established(&config(|c| c.receive.immediate_acks = ImmediateAcks::Linux));
    t.data(1..1001).read(1000).expect_nothing().data(1001..2001).expect("ack 2001").read(1000);
    t.data_with(Flags::PSH, 2001..3001).expect_nothing();
    t.read(999).expect_nothing().read(1).expect("ack 3001");
    // Smaller ones are taken for the end of something.
    t.data(3001..3101).read(100).expect("ack 3101");
    // The mark is of what came since the last ACK.
    t.data(3101..4101).read(1000).expect_nothing();
}

/// `tcp_measure_rcv_mss()`: two alike in a row, and no PSH, are the peer's MSS, though it is below the 536 bytes first taken for it.
#[test]
fn short_segments_that_are_alike_are_the_end_of_nothing() {
    let mut t = Script::established(&config(|c| c.receive.immediate_acks = ImmediateAcks::Linux));
    t.data(1..101).read(100).expect("ack 101");
    t.data(101..201).read(100).expect_nothing();
    t.data(201..301).expect("ack 301").read(100);
    // With PSH it is the end of a buffer; below 88 bytes with their options it is never an MSS.
    t.data_with(Flags::PSH, 301..401).read(100).expect("ack 401");
    let mut t = Script::established(&config(|c| c.receive.immediate_acks = ImmediateAcks::Linux));
    t.data(1..81).read(80).expect("ack 81").data(81..161).read(80).expect("ack 161");
}

/// `tcp_send_dupack()` enters quick ACK mode: as many ACKs as half of the window that was announced has segments.
#[test]
fn a_copy_makes_the_receiver_acknowledge_at_once() {
    let mut t = Script::established(&config(|c| {
        (c.receive.immediate_acks, c.receive.quick_acks) = (ImmediateAcks::Linux, 16);
        c.receive.buffer = Bytes(60_000);
    }));
    let mut next = 1;
    let mut come = |t: &mut Script| {
        next += 1000;
        t.data(next - 1000..next).ignore();
        let at_once = t.last().ack == PEER_ISN.advanced_by(next);
        t.read(1000).ignore();
        at_once
    };
    let until_withheld = |t: &mut Script, come: &mut dyn FnMut(&mut Script) -> bool| {
        (0..100).find(|_| !come(t)).expect("one is withheld")
    };
    assert_eq!(until_withheld(&mut t, &mut come), 16);
    assert!(come(&mut t), "the second in a row");
    assert_eq!(until_withheld(&mut t, &mut come), 0);
    t.data(1..1001).ignore();
    assert_eq!(until_withheld(&mut t, &mut come), 15, "one of sixteen was for the copy");
}

#[test]
fn behind_a_gap_psh_says_nothing() {
    let mut t = Script::established(&config(|c| c.receive.immediate_acks = ImmediateAcks::Linux));
    t.data(2001..3001).expect("ack 1").data_with(Flags::PSH, 1..1001).expect("ack 1001");
    t.read(1000).expect_nothing();
}

#[test]
fn a_window_begins_with_what_128_kb_of_memory_hold() {
    let mut t = Script::connect(&config(|c| {
        (c.receive.autotuning, c.receive.buffer) = (true, Bytes(1 << 20));
        c.send.window_scaling = true;
    }));
    t.expect("S");
    assert_eq!(t.last().window, 65_000, "half of it, in whole segments");
}

#[test]
fn a_window_grows_by_what_comes_out_of_order_too() {
    let announced = |order: [u64; 2]| {
        let mut t = Script::established(&config(|c| {
            (c.mss, c.send.window_scaling, c.receive.autotuning) = (Bytes(1460), true, true);
            (c.receive.buffer, c.receive.quick_acks) = (Bytes(3 << 20), 16);
        }));
        for start in order {
            t.data(start..start + 1448).ignore();
        }
        t.last().window
    };
    assert_eq!(announced([1449, 1]), announced([1, 1449]));
}

/// How many full segments are acknowledged at once from the beginning on, until an ACK is withheld.
fn quick_acks(change: impl FnOnce(&mut ReceiveConfig)) -> u64 {
    const LEN: u64 = 1448;
    let mut t = Script::established(&config(|c| {
        (c.mss, c.send.window_scaling) = (Bytes(1460), true);
        change(&mut c.receive);
    }));
    for count in 0..100 {
        let end = LEN * (count + 1) + 1;
        t.data(end - LEN..end).ignore();
        if t.last().ack != PEER_ISN.advanced_by(end) {
            return count;
        }
        t.read(LEN).ignore();
    }
    panic!("no ACK is withheld");
}

#[test]
fn a_window_that_grows_leaves_the_number_of_quick_acks() {
    for buffer in [8192, 3 << 20] {
        let of = |autotuning| {
            quick_acks(|c| (c.autotuning, c.buffer, c.quick_acks) = (autotuning, Bytes(buffer), 6))
        };
        assert_eq!((of(false), of(true)), (6, 6), "of {buffer} B");
    }
}

#[test]
fn linux_bounds_quick_acks_by_half_of_the_window() {
    let of = |buffer| {
        quick_acks(|c| {
            (c.immediate_acks, c.buffer, c.quick_acks) = (ImmediateAcks::Linux, Bytes(buffer), 16);
        })
    };
    assert_eq!([64_000, 12_000].map(of), [16, 4]);
}

#[test]
fn linux_has_two_quick_acks_where_half_of_the_window_holds_no_segment() {
    let mut t = Script::established(&config(|c| {
        let receive = &mut c.receive;
        (receive.immediate_acks, receive.quick_acks) = (ImmediateAcks::Linux, 16);
        receive.buffer = Bytes(1000);
    }));
    t.data(1..401).expect("ack 401").data(401..801).expect("ack 801").data(801..901).expect_nothing();
}

#[test]
fn linux_adds_a_quick_ack_with_each_growth_of_the_window() {
    let of = |autotuning| {
        quick_acks(|c| {
            (c.immediate_acks, c.buffer) = (ImmediateAcks::Linux, Bytes(3 << 20));
            (c.autotuning, c.quick_acks) = (autotuning, 16);
        })
    };
    // Traced: a kernel sends 22, and its first buffer has room for six growths.
    assert_eq!((of(false), of(true)), (16, 22));
}

#[test]
fn linux_counts_an_ack_whatever_it_answers() {
    let after_a_hole = |accounting| {
        let mut t = Script::established(&config(|c| {
            (c.receive.quick_acks, c.receive.immediate_acks) = (2, accounting);
        }));
        t.data(1..1001).expect("ack 1001").data(2001..3001).expect("ack 1001");
        t.data(1001..2001).expect("ack 3001");
        t.data(3001..4001).ignore();
        t.last().ack == PEER_ISN.advanced_by(4001)
    };
    assert!(after_a_hole(ImmediateAcks::ByNumber), "only one segment took one");
    assert!(!after_a_hole(ImmediateAcks::Linux), "the ACK that reported the hole took the second");
}

#[test]
fn after_three_acks_of_a_hole_one_stands_for_many() {
    let mut t = Script::connect(&config(|c| {
        (c.recovery.sack, c.recovery.dsack, c.receive.compressed_acks) = (true, true, 2);
    }));
    let syn_ack = t.expect("S").syn_ack();
    // A round trip of 10 ms: one waits for half a millisecond, and the timer's slack.
    t.at("10 ms").segment(syn_ack).expect("ack 1");
    for n in 1..=3 {
        t.data(1000 * n + 1..1000 * (n + 1) + 1).expect(&format!("ack 1 sack 1001:{}", 1000 * (n + 1) + 1));
    }
    t.data(4001..5001).expect_nothing().at("10599 us").expect_nothing();
    t.at("10600 us").expect("ack 1 sack 1001:5001");
    t.data(5001..6001).data(6001..7001).expect_nothing().data(7001..8001).expect("ack 1 sack 1001:8001");
    // What fills the hole is told of at once.
    t.data(8001..9001).expect_nothing().data(1..1001).expect("ack 9001");
}

#[test]
fn a_delayed_ack_timer_that_goes_on_sends_what_stands_for_many() {
    // tcp_delack_timer_handler(): an ACK does not stop the timer (INET_CSK_CLEAR_TIMERS is not set), and `compressed_ack` is looked at first.
    let mut t = Script::connect(&config(|c| {
        (c.recovery.sack, c.recovery.dsack, c.receive.compressed_acks) = (true, true, 44);
        (c.receive.ack_every, c.receive.ack_delay) = (2, Duration::from_millis(40));
    }));
    let syn_ack = t.expect("S").syn_ack();
    t.at("10 ms").segment(syn_ack).expect("ack 1");
    // Set to 50 ms, and acknowledged before.
    t.data(1..1001).expect_nothing().data(1001..2001).expect("ack 2001");
    t.at("49 ms");
    for n in 3..=5 {
        t.data(1000 * n + 1..1000 * (n + 1) + 1)
            .expect(&format!("ack 2001 sack 3001:{}", 1000 * (n + 1) + 1));
    }
    t.at("49800 us").data(6001..7001).expect_nothing();
    t.at("49999 us").expect_nothing().at("50 ms").expect("ack 2001 sack 3001:7001");
    // It was set once: the next one waits half a millisecond and the slack.
    t.data(7001..8001).at("50599 us").expect_nothing().at("50600 us").expect("ack 2001 sack 3001:8001");
}

#[test]
fn acks_of_a_hole_stand_for_themselves_where_duplicates_are_not_reported_or_acks_are_quick() {
    // __tcp_ack_snd_check(): only with SACK and D-SACK in use, and out of quick ACK mode.
    for (most, dsack, quick_acks) in [(0, true, 0), (2, false, 0), (2, true, 16)] {
        let mut t = Script::established(&config(|c| {
            (c.recovery.sack, c.recovery.dsack) = (true, dsack);
            (c.receive.compressed_acks, c.receive.quick_acks) = (most, quick_acks);
        }));
        for n in 1..=8 {
            t.data(1000 * n + 1..1000 * (n + 1) + 1)
                .expect(&format!("ack 1 sack 1001:{}", 1000 * (n + 1) + 1));
        }
    }
}

#[test]
fn one_ack_does_not_stand_for_a_block_that_it_may_not_tell_of() {
    // tcp_sack_compress_send_ack(): a third block, and what adjoins one of the latest two does not open one.
    let mut t = Script::established(&config(|c| {
        (c.recovery.sack, c.recovery.dsack, c.receive.compressed_acks) = (true, true, 44);
    }));
    t.data(1001..2001).ignore().data(2001..3001).ignore().data(3001..4001).ignore();
    t.data(4001..5001).expect_nothing();
    t.data(6001..7001).expect_nothing();
    t.data(7001..8001).expect_nothing();
    t.data(9001..9501).expect("ack 1 sack 9001:9501 6001:8001 1001:5001");
}
