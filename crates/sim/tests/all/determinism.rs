//! A run is a function of its setup, byte for byte, whoever watches.

use crate::common::log::EventLog;
use crate::common::{bottleneck, delay, element, loss, observed, probability, run, setup, stacks, upload};
use farpath_elements::{
    Bernoulli, Delay, Duplicate, ElementKind, ElementSpec, PacketCount, QueueLimit, Reorder,
};
use farpath_path::{Direction, PerDirection};
use farpath_sim::{FlowSetup, Observer, Packet, PacketEvent, Setup};
use farpath_units::{Duration, Instant};

/// A bit of everything: queues, losses both ways, reordering, copies, two directions.
fn busy_path() -> Vec<ElementSpec> {
    let share = PerDirection::both(probability(0.02));
    let extra_delay = Duration::from_millis(7);
    vec![
        bottleneck("10 Mbit/s", 38, QueueLimit::Packets(5)),
        delay("20 ms"),
        loss(0.02, 0.01),
        element("reorder", ElementKind::Reorder(Reorder { share, extra_delay })),
        element("copies", ElementKind::Duplicate(Duplicate { share })),
    ]
}

fn busy(seed: u64) -> Setup {
    let stack = stacks::long_fat(200_000);
    let back = FlowSetup { direction: Direction::Reverse, ..upload(&stacks::riverbed(), 200_000) };
    setup(busy_path(), vec![upload(&stack, 500_000), back, upload(&stack, 300_000)], seed)
}

fn log_of(setup: &Setup) -> String {
    let mut log = EventLog::default();
    observed(setup, &mut log);
    log.0
}

#[test]
fn one_setup_gives_one_log() {
    let log = log_of(&busy(1));
    assert!(log.contains("Dropped(Loss)") && log.contains("Dropped(QueueOverflow)"));
    assert!(log == log_of(&busy(1)), "two runs of one setup differ");
}

#[test]
fn another_seed_gives_another_log() {
    assert!(log_of(&busy(1)) != log_of(&busy(2)));
}

#[test]
fn watching_changes_nothing() {
    let watched = observed(&busy(3), &mut EventLog::default());
    assert_eq!(format!("{watched:?}"), format!("{:?}", run(&busy(3))));
}

/// Each element draws its own random numbers: one more that does nothing leaves the others' losses where they were.
#[test]
fn an_element_that_drops_nothing_moves_nobody_elses_losses() {
    let with = |extra: Option<ElementKind>| {
        let mut setup = busy(4);
        setup.path.extend(extra.map(|kind| element("extra", kind)));
        log_of(&setup)
    };
    let none = PerDirection::both(probability(0.0));
    let alone = with(None);
    assert!(
        alone == with(Some(ElementKind::Bernoulli(Bernoulli { loss_rate: none, count: PacketCount::All })))
    );
    assert!(alone == with(Some(ElementKind::Duplicate(Duplicate { share: none }))));
    assert!(alone == with(Some(ElementKind::Delay(Delay { delay: PerDirection::both(Duration::ZERO) }))));
}

/// The drops that a capture tells of in advance lie ahead; everything else comes in the order of time.
#[test]
fn time_goes_forward() {
    let mut last = 0;
    for line in log_of(&busy(5)).lines() {
        let now: u64 =
            line.split(' ').next().and_then(|ns| ns.parse().ok()).expect("a line begins with its time");
        assert!(now >= last, "{line} after {last}");
        if !line.contains("Dropped") {
            last = now;
        }
    }
}

/// A host with jitter handles packets in order and later than they come; its seed repeats, and another one is another run.
#[test]
fn jitter_delays_and_keeps_order() {
    let jittery = |microseconds: u64, seed: u64| {
        let stack = stacks::long_fat(200_000);
        let mut flow = upload(&stack, 500_000);
        (flow.sender_jitter, flow.receiver_jitter) =
            (Duration::from_micros(microseconds), Duration::from_micros(microseconds));
        let setup =
            setup(vec![bottleneck("10 Mbit/s", 38, QueueLimit::Unlimited), delay("20 ms")], vec![flow], seed);
        let mut arrivals = Arrivals::default();
        let result = observed(&setup, &mut arrivals).remove(0);
        (arrivals.0, result.ended_at)
    };
    let (plain, ended) = jittery(0, 1);
    let (late, later) = jittery(100, 1);
    assert!(later > ended, "{later:?} against {ended:?}");
    assert_eq!((late.clone(), later), jittery(100, 1));
    assert!(later != jittery(100, 2).1);
    // Nothing is lost or overtaken on this path: what arrives is the same but for the time, in the order of the stream.
    for direction in Direction::BOTH {
        let numbers = |list: &[(Direction, u64)]| {
            list.iter().filter(|(way, _)| *way == direction).map(|(_, number)| *number).collect::<Vec<_>>()
        };
        assert!(numbers(&late).is_sorted() && numbers(&plain).is_sorted(), "{direction}");
    }
}

/// Numbers of the packets that reached a host, in the order in which it handled them.
#[derive(Default)]
struct Arrivals(Vec<(Direction, u64)>);

impl Observer for Arrivals {
    fn packet(&mut self, _now: Instant, event: PacketEvent, direction: Direction, packet: &Packet) {
        if event == PacketEvent::Received {
            self.0.push((direction, packet.number));
        }
    }
}
