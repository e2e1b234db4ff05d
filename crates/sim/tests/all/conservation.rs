//! Whatever the path and the stacks do: packets are neither made nor lost unaccounted, the reader gets the file and
//! nothing else, and every flow ends by name.

use farpath_elements::{ElementKind, ElementSpec};
use farpath_path::{Direction, PathElement};
use farpath_sim::{
    Bound, Budget, FlowEnd, FlowResult, FlowSetup, FlowView, Observer, Opener, Packet, PacketEvent, Setup,
    Simulation,
};
use farpath_strategies::{DrawnStack, all_stacks, paths};
use farpath_tcp::{Endpoint, State};
use farpath_units::{Bytes, Duration, Instant, Messages, Pace, Rate};
use proptest::prelude::*;

/// Counts packets, and holds what must never happen.
#[derive(Debug, Default)]
struct Accounts {
    now: Instant,
    sent: u64,
    received: u64,
    dropped: u64,
    read: Vec<u64>,
    sizes: Vec<u64>,
}

impl Observer for Accounts {
    fn packet(&mut self, now: Instant, event: PacketEvent, _: Direction, _: &Packet) {
        assert!(now >= self.now, "{event:?} at {now} after {}", self.now);
        match event {
            PacketEvent::Sent => (self.now, self.sent) = (now, self.sent + 1),
            PacketEvent::Received => (self.now, self.received) = (now, self.received + 1),
            // It may lie ahead: known already, not yet there.
            PacketEvent::Dropped(_) => self.dropped += 1,
        }
    }

    fn state(&mut self, now: Instant, flow: FlowView<'_>) {
        assert!(now >= self.now, "state at {now} after {}", self.now);
        self.now = now;
        let (number, read) = (flow.number as usize, flow.bytes_read);
        assert!(
            read >= self.read[number] && read <= self.sizes[number],
            "{read} B of {}",
            self.sizes[number]
        );
        self.read[number] = read;
        let (acked, arrived) = (flow.sender.sender().acked(), flow.receiver.receiver().next());
        assert!(acked <= arrived, "{acked} acknowledged, {arrived} arrived");
        let opened = flow.sender.established_at().is_some();
        assert!(!opened || flow.sender.sender().window().cwnd > 0, "a window of nothing");
    }
}

/// A flow and the stacks of its two ends.
#[derive(Debug, Clone)]
struct DrawnFlow {
    start: Duration,
    direction: Direction,
    opener: Opener,
    size: u64,
    /// Length of the messages of a stream, and the time between two.
    stream: Option<(u64, Duration)>,
    request: u64,
    access: Duration,
    /// The explicit rate that the sender asks for, beside what its stack does.
    wanted: Option<Rate>,
    sender: DrawnStack,
    receiver: DrawnStack,
}

impl DrawnFlow {
    fn setup(&self) -> FlowSetup {
        // Of segments of a few bytes, and of windows of a few, less is transferred.
        let (mut sender, receiver) = (self.sender.config.clone(), self.receiver.config.clone());
        sender.explicit_rate.wanted = self.wanted.or(sender.explicit_rate.wanted);
        let smss = sender.mss.0.min(receiver.mss.0).saturating_sub(12).max(1);
        let buffer = sender.send.buffer.map_or(u64::MAX, |buffer| buffer.0).min(receiver.receive.buffer.0);
        let most = (smss * 2_000).min(buffer.saturating_mul(1_000));
        let size = self.size.min(most);
        let messages = self.stream.map(|(length, interval)| Messages {
            size: Bytes(length),
            pace: Pace::Every(interval),
            count: size / length,
        });
        FlowSetup {
            start: Instant::ZERO + self.start,
            direction: self.direction,
            opener: self.opener,
            size: messages.map_or(Bytes(size), |messages| messages.total()),
            messages,
            request: Bytes(self.request.min(most).min(sender.receive.buffer.0.saturating_mul(1_000))),
            sender,
            receiver,
            access: self.access,
        }
    }
}

prop_compose! {
    fn flow()(
        start in prop_oneof![Just(0), 0..10_000u64],
        (backwards, download) in any::<(bool, bool)>(),
        size in prop_oneof![1 => 0..2u64, 4 => 0..100_000u64, 3 => 0..3_000_000u64],
        stream in prop::option::weighted(0.2, (1..5_000u64, 0..100u64)),
        request in prop_oneof![Just(0), 0..100_000u64],
        access in prop_oneof![Just(0), 0..50u64],
        wanted in prop::option::weighted(0.2, 1_000..1_000_000_000u64),
        sender in all_stacks(),
        receiver in all_stacks(),
    ) -> DrawnFlow {
        DrawnFlow {
            start: Duration::from_millis(start),
            direction: if backwards { Direction::Reverse } else { Direction::Forward },
            opener: if download { Opener::Receiver } else { Opener::Sender },
            size,
            stream: stream.map(|(length, ms)| (length, Duration::from_millis(ms))),
            request,
            access: Duration::from_millis(access),
            wanted: wanted.and_then(Rate::from_bit_per_s),
            sender,
            receiver,
        }
    }
}

/// Flows over a path; what is not over within an hour ends.
#[derive(Debug, Clone)]
struct Scenario {
    path: Vec<ElementSpec>,
    flows: Vec<DrawnFlow>,
    seed: u64,
}

impl Scenario {
    fn setup(&self) -> Setup {
        let flows = self.flows.iter().map(DrawnFlow::setup).collect();
        Setup { path: self.path.clone(), flows, seed: self.seed, horizon: Duration::from_secs(3600) }
    }
}

prop_compose! {
    fn scenario()(path in paths(), flows in prop::collection::vec(flow(), 1..4), seed in any::<u64>()) -> Scenario {
        Scenario { path, flows, seed }
    }
}

/// After so many events, or with so many packets on its path, a scenario is stuck, and its accounts are those of then.
const MOST_EVENTS: u64 = 300_000;
const MOST_PACKETS: u64 = 100_000;

/// More events at one instant than the largest flow has segments of a file, while no element duplicates. Messages are beside that: over no
/// distance 60 000 of a byte each, all due at once, are as many segments.
const MOST_AT_ONCE: u64 = 100_000;

/// What became of each flow, and whether the simulation came to its end.
fn check(setup: &Setup) -> (Vec<FlowResult>, bool) {
    let sizes: Vec<u64> = setup.flows.iter().map(|flow| flow.size.0).collect();
    let mut accounts = Accounts { read: vec![0; sizes.len()], sizes, ..Accounts::default() };
    let mut simulation = Simulation::new(setup, &mut accounts).expect("the path is well formed");
    let duplicates =
        setup.path.iter().filter(|element| matches!(element.kind, ElementKind::Duplicate { .. }));
    let messages: u64 = setup.flows.iter().filter_map(|flow| Some(flow.messages?.count)).sum();
    let at_once = (MOST_AT_ONCE + 4 * messages) << duplicates.count();
    simulation.set_budget(Budget {
        events: MOST_EVENTS.max(at_once * 2).min(10 * MOST_EVENTS),
        events_at_one_instant: at_once,
        packets: MOST_PACKETS,
    });
    while simulation.step() {}
    let (now, under_way) = (simulation.now(), simulation.under_way() as u64);
    let duplicated: u64 = simulation.path().counters().iter().map(|counter| counter.duplicated).sum();
    let results = simulation.finish();
    let is_over = results.iter().all(|flow| flow.end != FlowEnd::Stuck);
    assert_eq!(accounts.sent + duplicated, accounts.received + accounts.dropped + under_way);
    let of = |count: fn(&farpath_path::DropCounts) -> u64| -> u64 {
        results.iter().map(|flow| count(&flow.drops.forward) + count(&flow.drops.reverse)).sum()
    };
    assert_eq!(of(|drops| drops.total()), accounts.dropped);
    for ((flow, result), read) in setup.flows.iter().zip(&results).zip(&accounts.read) {
        assert_eq!(result.bytes_read.0, *read);
        let horizon = Instant::ZERO + setup.horizon;
        match result.end {
            FlowEnd::Completed => {
                assert_eq!(result.bytes_read, flow.size);
                assert!(result.ended_at >= flow.start && result.ended_at <= horizon);
                assert_eq!(result.transfer_time(flow.start), Some(result.ended_at - flow.start));
            }
            FlowEnd::Failed(_) => assert!(result.ended_at >= flow.start && result.ended_at <= horizon),
            FlowEnd::Stuck => {
                let stuck = result.stuck.as_deref().expect("it says why");
                assert!(stuck.bound != Bound::EventsAtOneInstant, "time stands still: {stuck}");
                assert!(stuck.at == result.ended_at && stuck.at <= horizon);
            }
            FlowEnd::Horizon => {
                assert_eq!(result.ended_at, horizon);
                // Whoever has nothing to wait for has come to an end. The next message of a stream may lie beyond the horizon.
                let ends = [&result.sender, &result.receiver];
                let waits = ends.iter().any(|end| {
                    end.next_due().is_some() || end.readable() > 0 || end.state() == State::Listen
                });
                let stops = is_over && under_way == 0 && now + Duration::from_secs(1) < horizon;
                let states = ends.map(|end| end.state());
                assert!(waits || !stops, "both ends wait for the other since {now}: {states:?}");
            }
        }
        let sent = result.sender.sender().stats();
        assert!(sent.retransmissions <= sent.data_segments);
        assert!(result.spurious_retransmissions <= sent.retransmissions);
        assert!(result.mean_cwnd >= 0.0 && result.mean_cwnd.is_finite());
    }
    (results, is_over)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn packets_and_bytes_are_conserved_and_every_flow_ends(scenario in scenario()) {
        check(&scenario.setup());
    }

    /// On a path that keeps everything nothing fails, whatever the stacks; SYNs are sent as often as patience has it.
    #[test]
    fn without_loss_every_flow_completes(mut scenario in scenario()) {
        scenario.path.retain(|element| {
            matches!(element.kind, ElementKind::Delay { .. } | ElementKind::Wait { .. })
        });
        let mut setup = scenario.setup();
        for flow in &mut setup.flows {
            for stack in [&mut flow.sender, &mut flow.receiver] {
                stack.handshake.syn_attempts = None;
                stack.handshake.synack_attempts = None;
                stack.handshake.data_retries = None;
                stack.handshake.connect_timeout = None;
            }
        }
        // Round trips of 2000 s, each of them with its timeouts where `rto.max` is below.
        setup.horizon = Duration::from_secs(1_000_000_000);
        let (results, is_over) = check(&setup);
        for (flow, result) in setup.flows.iter().zip(&results).filter(|_| is_over) {
            prop_assert_eq!(result.end, FlowEnd::Completed, "{} of {} B", result.bytes_read, flow.size);
        }
    }
}
