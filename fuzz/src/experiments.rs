//! Whole experiments, drawn by what they mean: any path of shipped elements, any stacks with any parameters, some flows.

use farpath_path::{Direction, PathElement};
use farpath_sim::{FlowEnd, FlowSetup, FlowView, Observer, Opener, Packet, PacketEvent, Setup, Simulation};
use farpath_strategies::{all_stacks, paths};
use farpath_units::{Bytes, Duration, Instant, Messages, Pace};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// After so many events an experiment is ended, and its accounts are those of then.
const MOST_EVENTS: u32 = 100_000;
/// More events at one instant than the largest flow has segments.
const MOST_AT_ONCE: u32 = 50_000;

#[derive(Debug, Default)]
struct Accounts {
    now: Instant,
    sent: u64,
    received: u64,
    dropped: u64,
    read: Vec<u64>,
}

impl Observer for Accounts {
    fn packet(&mut self, now: Instant, event: PacketEvent, _: Direction, _: &Packet) {
        assert!(now >= self.now, "{event:?} at {now} after {}", self.now);
        match event {
            PacketEvent::Sent => (self.now, self.sent) = (now, self.sent + 1),
            PacketEvent::Received => (self.now, self.received) = (now, self.received + 1),
            PacketEvent::Dropped(_) => self.dropped += 1,
        }
    }

    fn state(&mut self, now: Instant, flow: FlowView<'_>) {
        assert!(now >= self.now, "state at {now} after {}", self.now);
        let read = &mut self.read[flow.number as usize];
        assert!(flow.bytes_read >= *read, "what was read is read");
        *read = flow.bytes_read;
        let (acked, arrived) = (flow.sender.sender().acked(), flow.receiver.receiver().next());
        assert!(acked <= arrived, "{acked} acknowledged, {arrived} arrived");
    }
}

/// What `strategy` draws by the next eight bytes. A part of an experiment has eight of its own, so that a change of them leaves
/// the other parts as they were. (A generator that passes the bytes on draws for ever once they are used up.)
fn draw<S: Strategy>(bytes: &mut crate::Bytes<'_>, strategy: S) -> Option<S::Value> {
    let mut seed = [0; 32];
    seed.iter_mut().take(8).for_each(|byte| *byte = bytes.u8());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(Config { failure_persistence: None, ..Config::default() }, rng);
    strategy.new_tree(&mut runner).ok().map(|tree| tree.current())
}

fn flow(bytes: &mut crate::Bytes<'_>) -> Option<FlowSetup> {
    let (sender, receiver) = (draw(bytes, all_stacks())?.config, draw(bytes, all_stacks())?.config);
    let stream = prop::option::weighted(0.2, (1..5000_u64, 1..100_u64));
    let way = (any::<[bool; 2]>(), 0..10_000_u64, 0..50_u64);
    let rest = (way, 0..500_000_u64, stream, 0..20_000_u64);
    let (([backwards, download], start, access), size, stream, request) = draw(bytes, rest)?;
    // Of segments of a few bytes, and of windows of a few, less is transferred.
    let smss = sender.mss.0.min(receiver.mss.0).saturating_sub(12).max(1);
    let most = (smss * 2000).min(receiver.receive.buffer.0.saturating_mul(1000));
    let size = size.min(most);
    let messages = stream.map(|(length, ms)| Messages {
        size: Bytes(length),
        pace: Pace::Every(Duration::from_millis(ms)),
        count: size / length,
    });
    Some(FlowSetup {
        start: Instant::ZERO + Duration::from_millis(start),
        direction: if backwards { Direction::Reverse } else { Direction::Forward },
        opener: if download { Opener::Receiver } else { Opener::Sender },
        size: messages.map_or(Bytes(size), |messages| messages.total()),
        messages,
        request: Bytes(if download { request.min(most) } else { 0 }),
        sender,
        receiver,
        access: Duration::from_millis(access),
    })
}

/// The bytes say what is drawn: eight for the path, eight for the run, 24 for each flow.
pub fn experiments(data: &[u8]) {
    let mut bytes = crate::Bytes(data);
    let (Some(path), Some(seed)) = (draw(&mut bytes, paths()), draw(&mut bytes, any::<u64>())) else {
        return;
    };
    let mut flows: Vec<FlowSetup> = flow(&mut bytes).into_iter().collect();
    while !bytes.is_empty() && flows.len() < 3 {
        flows.extend(flow(&mut bytes));
    }
    if !flows.is_empty() {
        run(&Setup { path, flows, seed, horizon: Duration::from_secs(3600) });
    }
}

fn run(setup: &Setup) {
    let mut accounts = Accounts { read: vec![0; setup.flows.len()], ..Accounts::default() };
    let mut simulation = Simulation::new(setup, &mut accounts).expect("the path is well formed");
    let (mut events, mut at, mut at_once) = (0, Instant::ZERO, 0);
    while events < MOST_EVENTS && simulation.step() {
        events += 1;
        at_once = if simulation.now() == at { at_once + 1 } else { 0 };
        at = simulation.now();
        assert!(at_once < MOST_AT_ONCE, "time stands still at {at}");
    }
    let under_way = simulation.under_way() as u64;
    let duplicated: u64 = simulation.path().counters().iter().map(|counter| counter.duplicated).sum();
    let results = simulation.finish();
    assert_eq!(accounts.sent + duplicated, accounts.received + accounts.dropped + under_way);
    for ((flow, result), read) in setup.flows.iter().zip(&results).zip(&accounts.read) {
        assert_eq!(result.bytes_read.0, *read);
        assert!(result.bytes_read <= flow.size);
        if result.end == FlowEnd::Completed {
            assert_eq!(result.bytes_read, flow.size);
        }
        let sent = result.sender.sender().stats();
        assert!(sent.retransmissions <= sent.data_segments);
        assert!(result.mean_cwnd >= 0.0 && result.mean_cwnd.is_finite());
    }
}
