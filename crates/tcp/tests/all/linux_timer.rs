//! Linux's timer: what it measures, what it is started for, how long it waits.
#![allow(clippy::single_range_in_vec_init, reason = "one SACK block is a list of one range")]

use crate::duration;
use crate::script::{Script, config};
use farpath_tcp::Config;
use farpath_tcp::config::{RackRules, RttSampling};

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
