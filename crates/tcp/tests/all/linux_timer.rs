//! Linux's timer: what it measures, what it is started for, how long it waits.
#![allow(clippy::single_range_in_vec_init, reason = "one SACK block is a list of one range")]

use crate::script::{Script, config};
use crate::{duration, time};
use farpath_tcp::config::{RackRules, RateReduction, RepairTimer, RttSampling};
use farpath_tcp::{Config, Endpoint};

/// Connected at 100 ms over a round trip of as much, with SACK and RACK and without timestamps.
fn connected(change: impl FnOnce(&mut Config)) -> Script {
    let mut t = Script::connect(&config(|c| {
        (c.recovery.sack, c.recovery.rack, c.recovery.rack_rules) = (true, true, RackRules::Linux);
        (c.rto.sampling, c.rto.min) = (RttSampling::Linux, duration("200 ms"));
        change(c);
    }));
    let synack = t.syn_ack();
    t.expect("S").at("100 ms").segment(synack).expect("ack 1");
    t
}

fn samples(t: &Script) -> u64 {
    t.sender().rtt().last_sample().1
}

// ---- What is measured: tcp_clean_rtx_queue(), tcp_ack_update_rtt() ----

#[test]
fn what_only_a_report_tells_of_is_measured() {
    for (sampling, count) in [(RttSampling::Linux, 2), (RttSampling::EveryAck, 1)] {
        let mut t = connected(|c| c.rto.sampling = sampling);
        t.write(4000).ignore().at("250 ms").sack(1, &[1001..2001]);
        assert_eq!(samples(&t), count, "{sampling:?}: the SYN, and the report");
    }
}

#[test]
fn a_report_of_a_copy_measures_nothing() {
    let mut t = connected(|_| {});
    t.write(4000).ignore().at("200 ms").sack(1, &[2001..4001]).ignore();
    let before = samples(&t);
    // 1:1001 and 1001:2001 are lost by RACK, and sent again; then the copy of the second arrives before that of the first.
    t.at("400 ms").ignore().sack(1, &[1001..4001]).ignore();
    assert_eq!(samples(&t), before);
}

#[test]
fn an_ack_that_covers_a_copy_measures_nothing_of_what_was_sent_once() {
    for (sampling, count) in [(RttSampling::Linux, 1), (RttSampling::EveryAck, 2)] {
        let mut t = connected(|c| {
            (c.rto.sampling, c.recovery.tail_loss_probe) = (sampling, true);
        });
        // The probe at two round trips is of the second; the ACK covers the first too, which was sent once.
        t.write(2000).expect("1:1001, 1001:2001").at("310 ms").expect("1001:2001").ack(2001);
        assert_eq!(samples(&t), count, "{sampling:?}");
    }
}

#[test]
fn the_least_round_trip_is_of_what_left_last() {
    // tcp_update_rtt_min(): the ACK covers two, which left 50 ms apart.
    let mut t = connected(|_| {});
    t.write(1000).ignore().at("150 ms").write(1000).ignore().at("230 ms").ack(2001);
    assert_eq!(t.sender().rtt().last_sample().0, Some(duration("130 ms")));
    assert_eq!(t.sender().rtt().min_rtt(), Some(duration("80 ms")));
}

// ---- One timer: icsk_pending ----

#[test]
fn while_reordering_is_waited_for_there_is_no_timeout() {
    for (timer, timeouts) in [(RepairTimer::OneTimer, 0), (RepairTimer::FastRetransmit, 1)] {
        let mut t = connected(|c| c.recovery.repair_timer = timer);
        // RTO is 300 ms. At 390 ms the second is reported: the first is lost 290 ms and a quarter of the least round trip after it left.
        t.write(2000).ignore().at("390 ms").sack(1, &[1001..2001]).expect_nothing();
        t.at("414 ms").ignore().at("420 ms").ignore();
        assert_eq!(t.sender().stats().timeouts, timeouts, "{timer:?}");
        assert_eq!(t.sender().stats().retransmissions, 1);
        if timer == RepairTimer::OneTimer {
            assert_eq!(
                t.end.next_due(),
                Some(time("415 ms") + t.sender().rtt().rto()),
                "it follows the repair"
            );
        }
    }
}

#[test]
fn the_retransmission_timer_counts_from_the_first_segment_where_it_follows_another_one() {
    let mut t = connected(|c| {
        (c.recovery.repair_timer, c.recovery.tail_loss_probe) = (RepairTimer::OneTimer, true);
        (c.recovery.probe_ack_delay, c.congestion.initial_window) = (duration("0 s"), 4);
    });
    // Two round trips are 200 ms, the RTO 300 ms. Each write of new data starts the probe timer anew, up to the timeout of the first.
    t.write(1000).ignore();
    assert_eq!(t.end.next_due(), Some(time("300 ms")));
    t.at("250 ms").write(1000).ignore();
    assert_eq!(t.end.next_due(), Some(time("400 ms")));
    // The probe has left: from now on.
    t.at("400 ms").expect("1001:2001");
    assert_eq!(t.end.next_due(), Some(time("700 ms")));
}

#[test]
fn a_probe_needs_no_sample_since_the_last_one() {
    for (without, probes) in [(true, 2), (false, 1)] {
        let mut t = connected(|c| {
            (c.recovery.probe_without_sample, c.recovery.tail_loss_probe) = (without, true);
        });
        // The probe arrives twice, which measures nothing.
        t.write(1000).ignore().at("400 ms").expect("1:1001").at("450 ms").sack(1001, &[1..1001]);
        assert_eq!(samples(&t), 1);
        t.write(1000).expect("1001:2001").at("800 ms").ignore();
        assert_eq!(t.sender().stats().loss_probes, probes, "{without}");
    }
}

// ---- What a timeout loses: tcp_timeout_mark_lost() ----

#[test]
fn a_timeout_leaves_no_time_for_reordering() {
    for (rules, pipe) in [(RackRules::Linux, 1000), (RackRules::Rfc8985, 2000)] {
        let mut t = connected(|c| c.recovery.rack_rules = rules);
        // At 400 ms the second is 110 ms old: more than RACK.rtt, less than that and a quarter.
        t.write(1000).ignore().at("290 ms").write(1000).ignore().at("400 ms").ignore();
        assert_eq!(t.sender().stats().timeouts, 1);
        assert_eq!(t.sender().pipe(), pipe, "{rules:?}");
    }
}

// ---- The rate of repair: tcp_cwnd_reduction() ----

#[test]
fn the_flight_comes_down_in_proportion_to_the_window_not_to_itself() {
    for (reduction, sent) in [(RateReduction::Linux, ""), (RateReduction::SafeAck, "10001:11001")] {
        let mut t = connected(|c| {
            (c.recovery.rate_reduction, c.congestion.initial_window) = (reduction, 20);
        });
        // Ten in flight of a window of 20; ssthresh is 5. Four are reported: 5 of 20 for each is one, 5 of 10 two.
        t.write(10_000).ignore().at("200 ms").sack(1, &[1001..4001]).expect("1:1001");
        t.write(10_000).expect_nothing().sack(1, &[1001..5001]).expect(sent);
    }
}
