//! What a simulated segment costs, in events: figures of a machine do not belong into a test.

use crate::common::{delay, link, setup, stacks, upload};
use farpath_sim::{Silent, Simulation};
use farpath_tcp::Config;

/// Events per data segment of a long transfer without loss.
fn steps_per_segment(stack: &Config, rate: &str) -> f64 {
    let setup = setup(vec![link(rate, 38), delay("5 ms")], vec![upload(stack, 50_000_000)], 1);
    let mut silent = Silent;
    let mut simulation = Simulation::new(&setup, &mut silent).expect("the path is well formed");
    let mut steps = 0u32;
    while simulation.step() {
        steps += 1;
    }
    let segments = simulation.finish()[0].sender.sender().stats().data_segments;
    f64::from(steps) / segments as f64
}

/// One for its arrival, half of one for its share of an ACK; timers are lazy and cost next to nothing.
#[test]
fn a_segment_costs_one_event_and_a_half_whatever_the_window() {
    let costs: Vec<f64> = [100_000, 300_000, 1_300_000, 2_600_000, 16_000_000]
        .map(|window| steps_per_segment(&stacks::long_fat(window), "1 Gbit/s"))
        .into();
    let (least, most) =
        (costs.iter().copied().fold(f64::MAX, f64::min), costs.iter().copied().fold(0.0, f64::max));
    assert!(most <= 1.55, "{costs:?}");
    assert!(most / least < 1.02, "the cost grows with the window: {costs:?}");
}

/// Without timestamps, SACK and scaling it is the same.
#[test]
fn a_small_window_costs_no_more() {
    let cost = steps_per_segment(&stacks::riverbed(), "10 Mbit/s");
    assert!(cost <= 1.7, "{cost}");
}
