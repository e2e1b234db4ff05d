//! What must hold of every simulation, whatever the path and the stacks do: packets are neither made nor lost unaccounted, the reader
//! gets the file and nothing else, and every flow ends by name.

use farpath_elements::ElementKind;
use farpath_path::{Direction, PathElement};
use farpath_sim::{
    Bound, Budget, FlowEnd, FlowResult, FlowSetup, FlowView, Observer, Packet, PacketEvent, Setup, Simulation,
};
use farpath_tcp::{Endpoint, State};
use farpath_units::{Duration, Instant};

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

/// With so many packets on its path a simulation is stuck.
const MOST_PACKETS: u64 = 100_000;

/// More events at one instant than the largest flow has segments of a file, while no element duplicates. Messages are beside that: over no
/// distance 60 000 of a byte each, all due at once, are as many segments; so is a request that a send buffer of a byte cuts up.
const MOST_AT_ONCE: u64 = 100_000;

/// Simulates, and panics where something does not hold. Gives what became of each flow, and whether the simulation came to its end: after
/// about `events` events it is stuck, and its accounts are those of then.
pub fn check_conservation(setup: &Setup, events: u64) -> (Vec<FlowResult>, bool) {
    let sizes: Vec<u64> = setup.flows.iter().map(|flow| flow.size.0).collect();
    let mut accounts = Accounts { read: vec![0; sizes.len()], sizes, ..Accounts::default() };
    let mut simulation = Simulation::new(setup, &mut accounts).expect("the path is well formed");
    let duplicates = setup.path.iter().filter(|element| matches!(element.kind, ElementKind::Duplicate(_)));
    let messages: u64 = setup.flows.iter().filter_map(|flow| Some(flow.messages?.count)).sum();
    let requests: u64 = setup.flows.iter().map(|flow| flow.request.0).sum();
    // A call of a program each, and what says that it has been read.
    let pieces = |flow: &FlowSetup| {
        flow.writing.write_size.map_or(0, |piece| flow.size.0 / piece.0) + flow.writing.updates_for(flow.size)
    };
    let pieces: u64 = setup.flows.iter().map(pieces).sum();
    let at_once = (MOST_AT_ONCE + 4 * (messages + requests + pieces)) << duplicates.count();
    simulation.set_budget(Budget {
        events: events.max(at_once * 2).min(10 * events),
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
                let left_out = result.messages.as_ref().map_or(0, |stamps| {
                    assert_eq!(stamps.arrived.len() + stamps.expired.len(), stamps.messages.count as usize);
                    stamps.expired.len() as u64 * stamps.messages.size.0
                });
                assert_eq!(result.bytes_read.0 + left_out, flow.size.0);
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
