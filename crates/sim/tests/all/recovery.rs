//! What modern loss recovery buys over a path: a lost tail, a lost retransmission, a spurious timeout.

use crate::common::{self, bottleneck, delay, drops, run, run_one, seconds, setup, time, upload};
use farpath_elements::{ElementKind, QueueLimit, Reorder};
use farpath_path::PerDirection;
use farpath_sim::{FlowResult, FlowSetup};
use farpath_tcp::config::{RateReduction, RtoFloor, RttSampling};
use farpath_tcp::{Config, SendStats};
use farpath_units::{Bytes, Duration};

/// SACK, ten segments to begin with, each acknowledged, and Linux's smallest timeout.
fn stack(change: impl FnOnce(&mut Config)) -> Config {
    let mut stack = Config { mss: Bytes(1000), ..Config::default() };
    stack.congestion.initial_window = 10;
    stack.receive.ack_every = 1;
    stack.recovery.sack = true;
    stack.rto.min = Duration::from_millis(200);
    stack.rto.floor = RtoFloor::Variance;
    stack.rto.sampling = RttSampling::EveryAck;
    change(&mut stack);
    stack
}

fn stats(result: &FlowResult) -> &SendStats {
    result.sender.sender().stats()
}

#[test]
fn a_probe_repairs_a_lost_tail_without_a_timeout() {
    // The SYN and ten segments: the last three are lost. Round trip 100 ms.
    let lost_tail = |probe| {
        let stack = stack(|c| (c.recovery.rack, c.recovery.tail_loss_probe) = (true, probe));
        run_one(vec![drops(&[9, 10, 11], &[]), delay("50 ms")], upload(&stack, 10_000))
    };
    let (without, with) = (lost_tail(false), lost_tail(true));
    assert_eq!((stats(&without).timeouts, stats(&without).loss_probes), (1, 0));
    assert_eq!((stats(&with).timeouts, stats(&with).loss_probes), (0, 1));
    assert!(seconds(&with) < seconds(&without), "{} s, {} s", seconds(&with), seconds(&without));
}

#[test]
fn rack_repairs_a_lost_retransmission_without_a_timeout() {
    // The first segment is lost, and its retransmission, after nine more and two by limited transmit.
    let lost_twice = |rack| {
        let stack = stack(|c| c.recovery.rack = rack);
        run_one(vec![drops(&[2, 14], &[]), delay("50 ms")], upload(&stack, 40_000))
    };
    let (without, with) = (lost_twice(false), lost_twice(true));
    assert_eq!((stats(&without).timeouts, stats(&without).retransmissions), (1, 2));
    assert_eq!((stats(&with).timeouts, stats(&with).retransmissions), (0, 2));
    assert!(seconds(&with) < seconds(&without), "{} s, {} s", seconds(&with), seconds(&without));
}

/// Beside a flow of long standing, another one fills the queue with two seconds' worth at once: ACKs come late, and
/// nothing is lost.
fn beside_a_burst(change: impl Fn(&mut Config)) -> FlowResult {
    let first = FlowSetup {
        size: Bytes(600_000),
        ..upload(
            &stack(|c| {
                c.congestion.cwnd_clamp = Some(Bytes(20_000));
                change(c);
            }),
            0,
        )
    };
    let burst = stack(|c| {
        c.congestion.initial_window = 250;
        (c.receive.buffer, c.send.window_scaling) = (Bytes(1_000_000), true);
        c.rto.min = Duration::from_secs(10);
    });
    let burst = FlowSetup { start: time("2 s"), ..upload(&burst, 250_000) };
    let path = vec![bottleneck("1 Mbit/s", 0, QueueLimit::Unlimited), delay("20 ms")];
    run(&setup(path, vec![first, burst], 1)).remove(0)
}

#[test]
fn a_timeout_for_nothing_is_found_out_and_costs_a_segment() {
    let conventional = beside_a_burst(|_| {});
    let frto = beside_a_burst(|c| c.recovery.frto = true);
    let eifel = beside_a_burst(|c| (c.recovery.eifel, c.send.timestamps) = (true, true));
    assert!(stats(&conventional).timeouts > 0 && stats(&conventional).undos == 0);
    assert!(conventional.spurious_retransmissions > 10, "{}", conventional.spurious_retransmissions);
    for (name, result) in [("F-RTO", frto), ("Eifel", eifel)] {
        assert!(stats(&result).timeouts > 0 && stats(&result).undos > 0, "{name}: {:?}", stats(&result));
        let (spurious, timeouts) = (result.spurious_retransmissions, stats(&result).timeouts);
        assert!(spurious <= timeouts, "{name}: one segment to a timeout, got {spurious} for {timeouts}");
    }
}

#[test]
fn reports_of_duplicates_give_back_what_reordering_cost() {
    // Counting takes a segment that is 5 ms late for lost; D-SACK says that it was not.
    let reordered = |undo: bool| {
        let stack = stack(|c| (c.recovery.dsack, c.recovery.undo_by_dsack) = (true, undo));
        let late = ElementKind::Reorder(Reorder {
            share: PerDirection { forward: common::probability(0.02), reverse: common::probability(0.0) },
            extra_delay: Duration::from_millis(5),
        });
        let path = vec![
            bottleneck("20 Mbit/s", 0, QueueLimit::Unlimited),
            delay("20 ms"),
            common::element("late", late),
        ];
        run_one(path, upload(&stack, 2_000_000))
    };
    let (without, with) = (reordered(false), reordered(true));
    assert!(stats(&without).fast_retransmits > 0 && stats(&without).dsacks > 0, "{:?}", stats(&without));
    assert_eq!(stats(&without).undos, 0);
    assert!(stats(&with).undos > 0 && seconds(&with) < seconds(&without), "{:?}", stats(&with));
}

#[test]
fn everything_at_once_ends_a_transfer_over_a_noisy_path() {
    let modern = stack(|c| {
        (c.recovery.rack, c.recovery.tail_loss_probe, c.recovery.frto) = (true, true, true);
        (c.recovery.dsack, c.recovery.undo_by_dsack, c.recovery.eifel) = (true, true, true);
        (c.recovery.rate_reduction, c.send.timestamps) = (RateReduction::SafeAck, true);
    });
    let took = |stack: &Config, seed| {
        let path =
            vec![bottleneck("10 Mbit/s", 0, QueueLimit::Unlimited), delay("20 ms"), common::loss(0.03, 0.03)];
        let result = run(&setup(path, vec![upload(stack, 1_000_000)], seed)).remove(0);
        assert_eq!(result.bytes_read, Bytes(1_000_000));
        (seconds(&result), stats(&result).timeouts)
    };
    let sum = |stack: &Config| {
        (1..=20)
            .map(|seed| took(stack, seed))
            .fold((0.0, 0), |(s, n), (seconds, timeouts)| (s + seconds, n + timeouts))
    };
    let (plain_time, plain_timeouts) = sum(&stack(|_| {}));
    let (time, timeouts) = sum(&modern);
    assert!(timeouts * 2 < plain_timeouts, "{timeouts} timeouts, {plain_timeouts} without");
    assert!(time < plain_time, "{time} s, {plain_time} s without");
}
