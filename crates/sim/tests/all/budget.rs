//! What makes no progress ends, and says what it repeats.

use crate::common::{self, delay, delay_of, element, probability, upload};
use farpath_elements::{Bernoulli, Duplicate, ElementKind, ElementSpec, PacketCount};
use farpath_path::{Direction, PerDirection};
use farpath_sim::{
    Bound, Budget, DatagramSetup, EVENTS, EVENTS_AT_ONE_INSTANT, EVENTS_PER_SEGMENT, FlowEnd, FlowResult,
    FlowSetup, Setup, Silent, Simulation, simulate_datagrams,
};
use farpath_tcp::Config;
use farpath_tcp::config::CongestionControlKind;
use farpath_units::{Bytes, Duration, Instant, Messages, Pace};

const WIDE: Budget = Budget { events: 1 << 40, events_at_one_instant: 1 << 40, packets: 1 << 22 };

fn run_within(budget: Budget, path: Vec<ElementSpec>, flow: FlowSetup) -> FlowResult {
    let setup = Setup { path, flows: vec![flow], seed: 1, horizon: common::FAR };
    let mut silent = Silent;
    let mut simulation = Simulation::new(&setup, &mut silent).expect("the path is well formed");
    simulation.set_budget(budget);
    while simulation.step() {}
    simulation.finish().remove(0)
}

fn stuck(result: &FlowResult) -> (Bound, String) {
    assert_eq!(result.end, FlowEnd::Stuck);
    let stuck = result.stuck.as_ref().expect("it says why");
    (stuck.bound, stuck.to_string())
}

fn doubling(elements: usize) -> Vec<ElementSpec> {
    let share = PerDirection::both(probability(1.0));
    (0..elements).map(|n| element(&format!("d{n}"), ElementKind::Duplicate(Duplicate { share }))).collect()
}

#[test]
fn the_budget_that_nobody_sets_grows_with_what_is_to_be_carried() {
    let budget = Budget::for_flows(&[upload(&Config::default(), 1460 * 1_000_000)]);
    let share = 1_000_001 * EVENTS_PER_SEGMENT;
    assert_eq!(budget.events, EVENTS + share);
    assert_eq!(budget.events_at_one_instant, EVENTS_AT_ONE_INSTANT + share);
    assert_eq!(budget.packets, farpath_path::MOST_PACKETS as u64);
}

#[test]
fn a_run_of_too_many_events_is_stuck() {
    // A SYN each microsecond, and an answer that takes a day.
    let mut stack = Config::default();
    let micro = Duration::from_micros(1);
    (stack.rto.min, stack.rto.initial, stack.rto.max) = (micro, micro, micro);
    stack.handshake.syn_attempts = None;
    let budget = Budget { events: 300_000, ..WIDE };
    let (bound, why) = stuck(&run_within(budget, vec![delay("86400 s")], upload(&stack, 1000)));
    assert_eq!(bound, Bound::Events);
    assert!(why.contains("310000 events by 309.999 ms") && why.contains("budget.events"), "{why}");
    assert!(why.contains("timers of the data sender of flow 0 (100 %)"), "{why}");
}

#[test]
fn a_run_of_too_many_events_at_one_instant_is_stuck() {
    let flow = || upload(&Config::default(), 100_000_000);
    let budget = Budget { events_at_one_instant: 10_000, ..WIDE };
    let (bound, why) = stuck(&run_within(budget, vec![delay_of(Duration::ZERO)], flow()));
    assert_eq!(bound, Bound::EventsAtOneInstant);
    assert!(why.contains("at 0 s") && why.contains("data"), "{why}");
    // It is what was asked for: within the budget that nobody sets.
    let result = common::run_one(vec![delay_of(Duration::ZERO)], flow());
    assert_eq!((result.end, result.ended_at), (FlowEnd::Completed, Instant::ZERO));
}

#[test]
fn a_run_of_too_many_packets_is_stuck() {
    let path: Vec<_> = doubling(20).into_iter().chain([delay("20 ms")]).collect();
    let budget = Budget { packets: 50_000, ..WIDE };
    let result = run_within(budget, path, upload(&Config::default(), 1));
    let (bound, why) = stuck(&result);
    assert_eq!(bound, Bound::Packets);
    assert!(why.contains("more than 50000 packets on the path"), "{why}");
}

#[test]
fn datagrams_have_a_budget_too() {
    let pace = Pace::Every(Duration::from_millis(1));
    let messages = Messages { size: Bytes(100), pace, count: 100 };
    let stream = DatagramSetup {
        start: Instant::ZERO,
        direction: Direction::Forward,
        messages,
        reply: Some(Bytes(1)),
        asks: [None, None],
    };
    let run = |path: &[ElementSpec], budget| {
        let results =
            simulate_datagrams(path, core::slice::from_ref(&stream), 1, Duration::from_secs(10), budget);
        results.expect("the path is well formed").streams.remove(0)
    };
    let result = run(&doubling(20), Budget { packets: 50_000, ..WIDE });
    assert_eq!(result.stuck.map(|stuck| stuck.bound), Some(Bound::Packets));
    let result = run(&doubling(8), Budget { events: 20_000, ..WIDE });
    assert_eq!(result.stuck.map(|stuck| stuck.bound), Some(Bound::Events));
    let result = run(&[delay("1 ms")], WIDE);
    assert!(result.over && result.stuck.is_none());
}

/// 336 segments where 37 % is lost: 197 retransmissions are expected. A copy was taken for lost as soon as it had left, as everything
/// happens at one time, and 2 531 210 were sent.
#[test]
fn over_no_distance_bbr3_sends_again_what_was_lost_and_no_more() {
    let mut stack = Config { mss: Bytes(109), ..Config::default() };
    (stack.recovery.sack, stack.recovery.rack) = (true, true);
    stack.congestion.control = CongestionControlKind::Bbr3;
    for seed in 1..=40 {
        let loss_rate = PerDirection::both(probability(0.37));
        let path =
            vec![element("loss", ElementKind::Bernoulli(Bernoulli { loss_rate, count: PacketCount::Data }))];
        let setup = Setup { path, flows: vec![upload(&stack, 36_582)], seed, horizon: common::FAR };
        let result = common::run(&setup).remove(0);
        assert_eq!(result.end, FlowEnd::Completed);
        let again = result.sender.sender().stats().retransmissions;
        assert!((100..400).contains(&again), "seed {seed}: {again}");
    }
}
