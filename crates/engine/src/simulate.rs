//! The `simulate` engine: packet-level discrete events.

use crate::{SimulateError, foreign};
use farpath_experiment::{FlowSpec, Opener, Point, RunBudget, Scenario, Transport};
use farpath_observe::air;
use farpath_observe::capture::Capture;
use farpath_observe::datagrams::{enter, setups};
use farpath_observe::drops::drops_by_cause;
use farpath_observe::explicit_rate::{outcome_in_words, router_rows};
use farpath_observe::record::RowRecorder;
use farpath_observe::row_budget::RowBudget;
use farpath_path::{Direction, Generator, Path, PathElement};
use farpath_run::{
    DelayFigures, Engine, FlowRow, MessageRow, Outcome, ProgramFigures, Provenance, Run, RunKey,
    StreamFigures,
};
use farpath_sim::{
    Budget, FlowEnd, FlowResult, FlowSetup, FlowView, MessageStamps, Observer, Packet, PacketEvent, Setup,
    Silent, Simulation, simulate_datagrams,
};
use farpath_tcp::CloseReason;
use farpath_units::{Bytes, Duration, Instant};
use std::io::Write;

/// Simulates one point with one seed.
pub fn simulate(point: &Point, seed: u64, provenance: Provenance) -> Result<Run, SimulateError> {
    if point.scenario.foreign_hosts().next().is_some() {
        return foreign::simulate(point, seed, provenance, None);
    }
    simulate_watched(point, seed, provenance, &mut Silent)
}

/// Simulates one point with one seed, and writes its packets to `out` as pcapng: the first `snaplen` bytes of each.
pub fn simulate_captured(
    point: &Point,
    seed: u64,
    provenance: Provenance,
    snaplen: u32,
    mut out: impl Write,
) -> Result<Run, SimulateError> {
    point.scenario.needs_tcp_alone("a capture")?;
    if point.scenario.foreign_hosts().next().is_some() {
        return foreign::simulate(point, seed, provenance, Some((snaplen, &mut out)));
    }
    let mut capture = Capture::new(out, snaplen, point, seed, &provenance)?;
    let run = simulate_watched(point, seed, provenance, &mut capture)?;
    capture.finish()?;
    Ok(run)
}

/// Simulates one point with one seed while `watcher` looks on, beside what the experiment has recorded.
pub fn simulate_watched(
    point: &Point,
    seed: u64,
    provenance: Provenance,
    watcher: &mut impl Observer,
) -> Result<Run, SimulateError> {
    let scenario = &point.scenario;
    scenario.needs_no_kernel("simulate")?;
    scenario.needs_no_foreign_host("simulate with an observer")?;
    let key = RunKey { point: point.index as u64, engine: Engine::Simulate, seed: Some(seed) };
    let mut run = Run::new(key, provenance);
    if scenario.transport == Transport::Udp {
        streams(scenario, seed, &mut run)?;
        return Ok(run);
    }
    let setup = setup(scenario, seed);
    let results = if scenario.output.series || scenario.output.segments {
        let row_budget = RowBudget::for_run(scenario);
        let mut both =
            Both(RowRecorder::new(setup.flows.len(), scenario.output, row_budget.clone()), watcher);
        let results = simulate_to_the_end(scenario, &setup, &mut both, &mut run)?;
        (run.series, run.segments) = both.0.into_traces();
        run.provenance.caveats.extend(row_budget.caveat());
        results
    } else {
        simulate_to_the_end(scenario, &setup, watcher, &mut run)?
    };
    run.flows = (0..)
        .zip(setup.flows.iter().zip(&results))
        .map(|(flow, (setup, result))| row(flow, setup, result))
        .collect();
    for (row, (spec, result)) in run.flows.iter_mut().zip(scenario.flows.iter().zip(&results)) {
        let (Some(stream), Some(stamps)) = (spec.stream, &result.messages) else { continue };
        let rows = messages(row.flow, stamps, result.ended_at);
        row.stream = StreamFigures {
            expired_messages: stream.lifetime.map(|_| stamps.expired.len() as f64),
            ..StreamFigures::from_rows(&rows, &stream.messages, stream.playout)
        };
        if scenario.output.messages {
            run.messages.extend(rows);
        }
    }
    Ok(run)
}

/// What became of each flow; what flow routers have decided goes into `run`.
fn simulate_to_the_end<O: Observer>(
    scenario: &Scenario,
    setup: &Setup,
    watcher: &mut O,
    run: &mut Run,
) -> Result<Vec<FlowResult>, SimulateError> {
    let mut simulation = Simulation::new(setup, watcher)?;
    simulation.set_budget(budgeted(scenario, Budget::for_flows(&setup.flows)));
    while simulation.step() {}
    let counters = simulation.path().counters();
    run.provenance.caveats.extend(air::given_up(&counters));
    run.routers = router_rows(counters);
    air::record(run, &simulation.path().air(simulation.now()));
    Ok(simulation.finish())
}

/// Fills `run` with what becomes of the scenario's streams, each message of which is a datagram.
fn streams(scenario: &Scenario, seed: u64, run: &mut Run) -> Result<(), SimulateError> {
    let setups = setups(scenario);
    let datagrams = setups.iter().map(|setup| setup.messages.count).fold(0, u64::saturating_add);
    let budget = budgeted(scenario, Budget::for_segments(datagrams.saturating_mul(2)));
    let ended = simulate_datagrams(&scenario.path, &setups, seed, scenario.horizon, budget)?;
    enter(scenario, &setups, &ended.streams, run);
    run.provenance.caveats.extend(air::given_up(&ended.elements));
    run.routers = router_rows(ended.elements);
    air::record(run, &ended.air);
    Ok(())
}

/// What a run may use up: what the scenario says, else `default`.
pub(crate) fn budgeted(scenario: &Scenario, default: Budget) -> Budget {
    let RunBudget { events, events_at_one_instant, packets, rows: _ } = scenario.budget;
    Budget {
        events: events.unwrap_or(default.events),
        events_at_one_instant: events_at_one_instant.unwrap_or(default.events_at_one_instant),
        packets: packets.unwrap_or(default.packets),
    }
}

/// Two that watch one simulation.
struct Both<'a, A, B>(A, &'a mut B);

impl<A: Observer, B: Observer> Observer for Both<'_, A, B> {
    fn packet(&mut self, now: Instant, event: PacketEvent, direction: Direction, packet: &Packet) {
        self.0.packet(now, event, direction, packet);
        self.1.packet(now, event, direction, packet);
    }

    fn wants_signals(&self) -> bool {
        self.0.wants_signals() || self.1.wants_signals()
    }

    fn signal(&mut self, now: Instant, element: &str, direction: Direction, packet: &Packet) {
        self.0.signal(now, element, direction, packet);
        self.1.signal(now, element, direction, packet);
    }

    fn state(&mut self, now: Instant, flow: FlowView<'_>) {
        self.0.state(now, flow);
        self.1.state(now, flow);
    }

    fn end(&mut self, now: Instant, path: &Path<Packet>, events: u64) {
        self.0.end(now, path, events);
        self.1.end(now, path, events);
    }
}

fn setup(scenario: &Scenario, seed: u64) -> Setup {
    let flow = |(number, flow): (u32, &FlowSpec)| FlowSetup {
        start: Instant::ZERO + flow.start + start_within_a_tick(scenario, flow, number, seed),
        direction: flow.direction,
        opener: match flow.opener {
            Opener::Sender => farpath_sim::Opener::Sender,
            Opener::Receiver => farpath_sim::Opener::Receiver,
        },
        size: flow.size,
        messages: flow.stream.map(|stream| stream.messages),
        reply: flow.reply(),
        lifetime: flow.lifetime(),
        writing: flow.writing,
        request: flow.request,
        sender: scenario.sized_configs(flow).0,
        receiver: scenario.sized_configs(flow).1,
        access: flow.access,
        sender_jitter: scenario.ends(flow).0.host.jitter,
        receiver_jitter: scenario.ends(flow).1.host.jitter,
    };
    let flows = (0..).zip(&scenario.flows).map(flow).collect();
    Setup { path: scenario.path.clone(), flows, seed, horizon: scenario.horizon }
}

/// How far into a tick of its opener's clock a flow begins: anywhere, where that host has jitter, else where it begins.
fn start_within_a_tick(scenario: &Scenario, flow: &FlowSpec, number: u32, seed: u64) -> Duration {
    let (sender, receiver) = scenario.ends(flow);
    let opener = match flow.opener {
        Opener::Sender => sender,
        Opener::Receiver => receiver,
    };
    if opener.host.jitter.is_zero() {
        return Duration::ZERO;
    }
    let mut draws = Generator::new(seed, &format!("start of flow {number}"), Direction::Forward);
    Duration::from_nanos(draws.below(opener.config.rto.tick.as_nanos()))
}

/// A row for each message that was due by the end; of those that were left out no more than that.
fn messages(flow: u32, stamps: &MessageStamps, end: Instant) -> Vec<MessageRow> {
    let due = (0..stamps.due_by(end)).filter_map(|message| stamps.due(message));
    let MessageStamps { written, sent, arrived, answered, expired, .. } = stamps;
    MessageRow::of_flow(flow, due, expired, [written, sent, arrived, answered])
}

fn row(number: u32, setup: &FlowSetup, result: &FlowResult) -> FlowRow {
    let sent = result.sender.sender().stats();
    let transfer_time = result.transfer_time(setup.start);
    let per_second = |bytes: u64| {
        transfer_time.filter(|time| !time.is_zero()).map(|time| bytes as f64 * 8.0 / time.as_secs_f64())
    };
    let (opener, other) = match setup.opener {
        farpath_sim::Opener::Sender => (&result.sender, &result.receiver),
        farpath_sim::Opener::Receiver => (&result.receiver, &result.sender),
    };
    let (outcome, detail) = match result.end {
        FlowEnd::Completed => (Outcome::Completed, ""),
        FlowEnd::Failed(CloseReason::ConnectTimedOut) => (Outcome::ConnectTimedOut, ""),
        FlowEnd::Failed(reason) => (Outcome::Aborted, reason.describe()),
        FlowEnd::Horizon => (Outcome::Horizon, ""),
        FlowEnd::Stuck => (Outcome::Stuck, ""),
    };
    let detail = result.stuck.as_ref().map_or_else(|| detail.to_owned(), |stuck| stuck.to_string());
    let rtt = result.sender.sender().rtt();
    let driver = result.driver.as_deref();
    FlowRow {
        flow: number,
        direction: setup.direction.name(),
        outcome,
        ended_at: Some(result.ended_at),
        detail,
        start: setup.start,
        opened: Some(f64::from(u8::from(opener.established_at().is_some()))),
        completed: Some(f64::from(u8::from(outcome == Outcome::Completed))),
        connect_time: result.sender.established_at().map(|at| at - setup.start),
        transfer_time,
        bytes: setup.size,
        bytes_read: result.bytes_read,
        goodput_bit_per_s: per_second(result.bytes_read.0),
        throughput_bit_per_s: per_second(sent.data_bytes),
        efficiency: (sent.data_bytes > 0).then(|| result.bytes_read.0 as f64 / sent.data_bytes as f64),
        data_segments: Some(sent.data_segments as f64),
        retransmissions: Some(sent.retransmissions as f64),
        spurious_retransmissions: Some(result.spurious_retransmissions as f64),
        timeouts: Some(sent.timeouts as f64),
        fast_retransmits: Some(sent.fast_retransmits as f64),
        dup_acks: Some(sent.dup_acks as f64),
        loss_probes: Some(sent.loss_probes as f64),
        undos: Some(sent.undos as f64),
        dsacks: Some(sent.dsacks as f64),
        pure_acks: Some(result.receiver.stats().pure_acks as f64),
        syns: Some(opener.stats().syns as f64),
        synacks: Some(other.stats().synacks as f64),
        drops_data_direction: Some(result.drops.forward.total() as f64),
        drops_ack_direction: Some(result.drops.reverse.total() as f64),
        drops_by_cause: drops_by_cause(&result.drops),
        ecn_marks: Some(result.marks as f64),
        ecn_responses: Some(sent.ecn_responses as f64),
        final_cwnd: Some(Bytes(result.sender.sender().window().cwnd)),
        mean_cwnd: Some(result.mean_cwnd),
        min_rtt: rtt.min_rtt(),
        srtt: rtt.srtt(),
        rto: rtt.srtt().map(|_| rtt.rto()),
        explicit_rate: driver.map(|driver| outcome_in_words(driver.outcome()).into()),
        granted_bit_per_s: driver.and_then(|driver| Some(driver.granted()?.bit_per_s() as f64)),
        delays: DelayFigures::from_histograms(&result.rtts, result.queueing.as_ref()),
        stream: StreamFigures::default(),
        program: ProgramFigures::default(),
    }
}
