//! Several flows on one path: they share it, and one's end is nobody else's.

use crate::common::{self, bottleneck, delay, element, link, run, seconds, setup, stacks, time, upload};
use farpath_elements::{Duplicate, ElementKind, QueueLimit};
use farpath_path::{Direction, PerDirection};
use farpath_sim::{FlowEnd, FlowSetup, Opener};
use farpath_tcp::Config;
use farpath_units::{Bytes, Instant};

/// A copy of the last ACK reaches a connection that is closed and is answered with a reset. The flow was over
/// before and is over after it: the simulation must not stop waiting for another one.
#[test]
fn a_stray_for_a_closed_connection_does_not_end_the_run_for_others() {
    let copies = element(
        "copies",
        ElementKind::Duplicate(Duplicate { share: PerDirection::both(common::probability(1.0)) }),
    );
    let stack = Config::default();
    let flows = vec![upload(&stack, 5_000), upload(&stack, 5_000), upload(&stack, 2_000_000)];
    let results = run(&setup(vec![link("10 Mbit/s", 0), delay("20 ms"), copies], flows, 1));
    for result in &results {
        assert_eq!(result.end, FlowEnd::Completed, "ended at {}", result.ended_at);
    }
}

#[test]
fn ten_flows_share_a_bottleneck_and_each_completes() {
    let stack = stacks::long_fat(1_000_000);
    let size = 3_000_000;
    let path = vec![bottleneck("10 Mbit/s", 38, QueueLimit::Packets(50)), delay("20 ms")];
    let results = run(&setup(path, vec![upload(&stack, size); 10], 7));
    let drops: u64 = results.iter().map(|flow| flow.drops.forward.total()).sum();
    assert!(drops > 0, "the queue is what they compete for");
    assert!(results.iter().all(|flow| flow.end == FlowEnd::Completed && flow.bytes_read == Bytes(size)));
    // All are there until the first is through. 1448 of 1538 B on the wire are payload.
    let first = results.iter().map(seconds).fold(f64::INFINITY, f64::min);
    let last = results.iter().map(seconds).fold(0.0, f64::max);
    let goodput = 10.0 * size as f64 * 8.0 / last;
    assert!(goodput > 0.93 * 10e6 * 1448.0 / 1538.0, "{goodput} bit/s of payload");
    assert!(last < 3.0 * first, "no flow starves: {first} s to {last} s");
}

#[test]
fn flows_in_both_directions_each_have_a_link_of_their_own() {
    let stack = stacks::long_fat(200_000);
    let back = FlowSetup { direction: Direction::Reverse, ..upload(&stack, 2_000_000) };
    let path = || vec![link("10 Mbit/s", 0), delay("20 ms")];
    let alone = seconds(&run(&setup(path(), vec![upload(&stack, 2_000_000)], 1))[0]);
    let both = run(&setup(path(), vec![upload(&stack, 2_000_000), back], 1));
    // They meet in each other's ACKs, which wait behind a queue of data and come in bunches (Zhang, Shenker, Clark
    // 1991): not quite the whole link each, and far more than half.
    for flow in &both {
        assert!(seconds(flow) >= alone && seconds(flow) < 1.25 * alone, "{} against {alone}", seconds(flow));
    }
    common::assert_close(seconds(&both[0]), seconds(&both[1]), 0.001);
}

#[test]
fn a_flow_that_starts_later_is_measured_from_its_start() {
    let stack = Config::default();
    let late = FlowSetup { start: time("100 s"), ..upload(&stack, 100_000) };
    let results = run(&setup(vec![delay("20 ms")], vec![upload(&stack, 100_000), late.clone()], 1));
    let first = results[0].transfer_time(Instant::ZERO).expect("it completes");
    assert_eq!(results[1].transfer_time(late.start), Some(first), "nobody else is there any more");
    assert_eq!(results[1].sender.established_at(), Some(time("100.04 s")));
}

#[test]
fn a_flow_that_fails_leaves_the_others_to_their_end() {
    let mut hasty = Config::default();
    hasty.handshake.syn_attempts = Some(1);
    hasty.rto.initial = common::duration("10 ms");
    let flows = vec![upload(&hasty, 1000), upload(&Config::default(), 1_000_000)];
    let results = run(&setup(vec![delay("20 ms")], flows, 1));
    assert!(matches!(results[0].end, FlowEnd::Failed(_)));
    assert_eq!(results[1].end, FlowEnd::Completed);
}

#[test]
fn a_flow_after_the_horizon_never_starts() {
    let mut setup = setup(vec![delay("20 ms")], vec![upload(&Config::default(), 1000)], 1);
    setup.flows[0].start = time("10 s");
    setup.flows[0].opener = Opener::Receiver;
    setup.horizon = common::duration("5 s");
    let result = run(&setup).remove(0);
    assert_eq!((result.end, result.ended_at), (FlowEnd::Horizon, time("5 s")));
    assert_eq!(result.receiver.stats().segments_sent, 0);
}
