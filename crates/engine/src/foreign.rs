//! `simulate` where an end is a TCP of somebody else's: IP packets, in virtual time, over the same path.
//!
//! Each end of each flow is a [`Host`]: smoltcp, a program, or our own endpoint opposite it. Nobody can look into them, so that a run's
//! numbers are what their packets tell ([`farpath_observe::passive`]), as in an emulation, and what their programs have read.

use crate::SimulateError;
use crate::simulate::budgeted;
use farpath_elements::build_path;
use farpath_emu::{PacketEvent, Queues, Recorder, WirePacket};
use farpath_experiment::{FlowSpec, Implementation, Opener, OverMemory, Point, Scenario, Stack};
use farpath_foreign::{Answer, Catalog, Host, HostError, HostSetup, Ours, Program, SILENCE, Smoltcp};
use farpath_observe::air;
use farpath_observe::capture::{Capture, FIRST_PORT};
use farpath_observe::explicit_rate::router_rows;
use farpath_observe::recorder::PacketRecorder;
use farpath_observe::row_budget::RowBudget;
use farpath_observe::series::Series;
use farpath_path::{Departure, Direction, Path, PathElement, PerDirection, Verdict};
use farpath_run::{Engine, FlowRow, Outcome, Provenance, Run, RunKey};
use farpath_sim::{Budget, End, initial_sequence_numbers};
use farpath_units::{Bytes, Instant};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddrV4};

/// Where forward data comes from, and where it goes.
const ADDRESSES: PerDirection<Ipv4Addr> =
    PerDirection { forward: Ipv4Addr::new(10, 0, 0, 1), reverse: Ipv4Addr::new(10, 0, 0, 2) };

/// Headers of IPv4 and TCP without options: what an MTU has beside a segment's data.
const HEADERS: u64 = 40;

/// The largest buffer that a host is told; beyond it nothing of the transfer could lie there.
const MOST_BUFFER: Bytes = Bytes(1 << 30);

/// Bytes that a packet under way takes beside its own, about.
const BOOKKEEPING: u64 = 256;

/// What of the answers at one instant a run that makes no progress ends after, where the experiment says nothing: each may cost a process
/// two switches.
const ANSWERS_AT_ONE_INSTANT: u64 = 1_000_000;

/// Whether the hosts of a scenario can be had on this machine: all programs are there.
pub(crate) fn are_there(scenario: &Scenario) -> Result<(), SimulateError> {
    for (key, implementation) in scenario.foreign_hosts() {
        if let Implementation::Program(name) = implementation {
            Catalog::of_user()
                .find(name)
                .map_err(|source| SimulateError::Foreign { at: key, source: Box::new(source) })?;
        }
    }
    Ok(())
}

/// A flow, while it runs.
struct Flow<'s> {
    spec: &'s FlowSpec,
    hosts: [Box<dyn Host>; 2],
    /// When each end wants to be called; a wake-up that is none of these is an old one.
    due: [Option<Instant>; 2],
    read: u64,
    connected: Option<Instant>,
    closed: [bool; 2],
    ended: Option<(Outcome, Instant, String)>,
}

impl Flow<'_> {
    /// Whether nothing that anybody asks for can come.
    fn is_over(&self) -> bool {
        match &self.ended {
            Some((Outcome::Completed, ..)) => self.closed == [true, true],
            Some(_) => true,
            None => false,
        }
    }
}

/// What happens by itself at an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Wake {
    Start,
    Timer,
}

/// When something happens, in which order it was set, the flow, whether at its receiver, and what.
type Due = (Instant, u64, u32, bool, Wake);

/// Simulates one point with one seed, and writes its packets to `capture`, the first so many bytes of each, where that is wanted.
pub(crate) fn simulate(
    point: &Point,
    seed: u64,
    mut provenance: Provenance,
    capture: Option<(u32, &mut dyn Write)>,
) -> Result<Run, SimulateError> {
    let scenario = &point.scenario;
    are_there(scenario)?;
    let mut flows = Vec::with_capacity(scenario.flows.len());
    for (number, spec) in (0..).zip(&scenario.flows) {
        flows.push(Flow {
            spec,
            hosts: [
                host(scenario, spec, number, seed, End::Sender)?,
                host(scenario, spec, number, seed, End::Receiver)?,
            ],
            due: [None, None],
            read: 0,
            connected: None,
            closed: [false, false],
            ended: None,
        });
    }
    provenance.caveats.extend(who_they_are(scenario, &flows));
    let row_budget = RowBudget::for_run(scenario);
    let capture =
        capture.map(|(snaplen, out)| Capture::new(out, snaplen, point, seed, &provenance)).transpose()?;
    let ports = scenario.flows.iter().zip(0..).map(|(spec, number)| farpath_observe::passive::FlowPorts {
        direction: spec.direction,
        sender: FIRST_PORT + number,
        receiver: FIRST_PORT + number,
    });
    let ports: Vec<_> = ports.collect();
    let recorder = PacketRecorder::new(&ports, scenario.output, &row_budget, capture);
    let mut packets = Packets::new(scenario, seed, flows, recorder)?;
    let stuck = packets.run()?;
    let key = RunKey { point: point.index as u64, engine: Engine::Simulate, seed: Some(seed) };
    let mut run = Run::new(key, provenance);
    let counters = packets.path.counters();
    run.provenance.caveats.extend(air::given_up(&counters));
    run.routers = router_rows(counters);
    air::record(&mut run, &packets.path.air(packets.now));
    let end = Instant::ZERO + scenario.horizon;
    run.flows = (0..)
        .zip(&packets.flows)
        .map(|(number, flow)| row(number, flow, &packets.recorder, stuck.as_ref(), packets.now, end))
        .collect();
    let queues;
    (run.segments, queues) = packets.recorder.finish()?;
    if scenario.output.series {
        run.series = Series::merged(queues).into();
    }
    run.provenance.caveats.extend(row_budget.caveat());
    Ok(run)
}

/// The run of a kernel's engine for a point that no kernel is asked: what is left out of a comparison with kernels.
pub(crate) fn not_emulated(point: &Point, seed: u64, mut provenance: Provenance) -> Run {
    let scenario = &point.scenario;
    let detail = "not emulated: a TCP of somebody else's runs in virtual time, under `simulate`".to_owned();
    provenance.caveats.push(detail.clone());
    let key = RunKey { point: point.index as u64, engine: Engine::Emulate, seed: Some(seed) };
    let mut run = Run::new(key, provenance);
    run.flows = (0..)
        .zip(&scenario.flows)
        .map(|(number, spec)| FlowRow {
            start: Instant::ZERO + spec.start,
            detail: detail.clone(),
            ..FlowRow::new(number, spec.direction.name(), Outcome::Unknown, spec.size)
        })
        .collect();
    run
}

/// What an end of a flow is, and what it is told.
fn host(
    scenario: &Scenario,
    spec: &FlowSpec,
    number: u32,
    seed: u64,
    end: End,
) -> Result<Box<dyn Host>, SimulateError> {
    let (sender, receiver) = scenario.ends(spec);
    let stack: &Stack = if end == End::Sender { sender } else { receiver };
    let port = FIRST_PORT + number as u16;
    let at = |end: End| SocketAddrV4::new(ADDRESSES[end.sends(spec.direction)], port);
    let config = &stack.config;
    let needs = |buffer: Bytes| buffer.min(MOST_BUFFER);
    let setup = HostSetup {
        opens: (spec.opener == Opener::Sender) == (end == End::Sender),
        sends: end == End::Sender,
        size: spec.size,
        local: at(end),
        remote: at(end.peer()),
        mtu: (config.mss.0 + HEADERS) as u16,
        // All that there is, where it is not bounded.
        send_buffer: needs(config.send.buffer.unwrap_or(spec.size)),
        receive_buffer: needs(config.receive.buffer),
        control: config.congestion.control.name(),
        seed: seed.wrapping_mul(2).wrapping_add(u64::from(end == End::Receiver)),
    };
    let failed = |source| SimulateError::Foreign { at: key_of(end), source: Box::new(source) };
    Ok(match &stack.implementation {
        Implementation::Farpath => {
            let isn = initial_sequence_numbers(seed, number)[usize::from(end == End::Receiver)];
            Box::new(Ours::new(&setup, config, isn))
        }
        Implementation::Smoltcp => Box::new(Smoltcp::new(&setup)),
        Implementation::Program(name) => {
            let file = Catalog::of_user().find(name).map_err(failed)?;
            Box::new(Program::start(&file, &setup, SILENCE).map_err(failed)?)
        }
    })
}

fn key_of(end: End) -> String {
    match end {
        End::Sender => "sender.implementation",
        End::Receiver => "receiver.implementation",
    }
    .to_owned()
}

/// What stands at the ends, for whoever reads the results.
fn who_they_are(scenario: &Scenario, flows: &[Flow<'_>]) -> Vec<String> {
    let mut said = Vec::new();
    for flow in flows {
        let (sender, receiver) = scenario.ends(flow.spec);
        for ((end, stack), host) in [("sender", sender), ("receiver", receiver)].into_iter().zip(&flow.hosts)
        {
            if !stack.implementation.is_foreign() {
                continue;
            }
            let untold = match stack.untold.as_slice() {
                [] => String::new(),
                keys => format!(", and not {}", keys.join(", ")),
            };
            let text = format!(
                "{end}: {}, which of `{}` is told mss, buffers and the name of the congestion control alone{untold}; what it does not show \
                 is null",
                host.name(),
                stack.name
            );
            if !said.contains(&text) {
                said.push(text);
            }
        }
    }
    said
}

/// The events of a run.
struct Packets<'s, W> {
    flows: Vec<Flow<'s>>,
    /// Flow and end by the direction and the ports of what goes to it.
    ends: HashMap<(Direction, u16), (u32, End)>,
    path: Path<WirePacket>,
    /// Earliest first; ties in the order in which they were set.
    wakes: BinaryHeap<Reverse<Due>>,
    set: u64,
    /// Packets that went each way.
    sent: PerDirection<u64>,
    recorder: PacketRecorder<W>,
    budget: Budget,
    memory: Bytes,
    horizon: Instant,
    now: Instant,
    events: u64,
    events_now: u64,
}

impl<'s, W: Write> Packets<'s, W> {
    fn new(
        scenario: &'s Scenario,
        seed: u64,
        flows: Vec<Flow<'s>>,
        recorder: PacketRecorder<W>,
    ) -> Result<Packets<'s, W>, SimulateError> {
        let segments = flows.iter().map(|flow| {
            let (sender, receiver) = scenario.ends(flow.spec);
            flow.spec.size.0 / sender.config.mss.min(receiver.config.mss).0.max(1)
        });
        let mut default = Budget::for_segments(segments.fold(0, u64::saturating_add));
        default.events_at_one_instant = ANSWERS_AT_ONE_INSTANT;
        let budget = budgeted(scenario, default);
        let mut path = build_path(&scenario.path, seed)?;
        path.hold_at_most(usize::try_from(budget.packets).unwrap_or(usize::MAX));
        let mut packets = Packets {
            ends: HashMap::new(),
            path,
            wakes: BinaryHeap::new(),
            set: 0,
            sent: PerDirection::default(),
            recorder,
            budget,
            memory: scenario.emulate.memory,
            horizon: Instant::ZERO + scenario.horizon,
            now: Instant::ZERO,
            events: 0,
            events_now: 0,
            flows,
        };
        for number in 0..packets.flows.len() as u32 {
            let (direction, start) = {
                let spec = packets.flows[number as usize].spec;
                (spec.direction, Instant::ZERO + spec.start)
            };
            let port = FIRST_PORT + number as u16;
            packets.ends.insert((direction, port), (number, End::Receiver));
            packets.ends.insert((direction.opposite(), port), (number, End::Sender));
            // Who listens does so before the other one opens.
            let opener = match packets.flows[number as usize].spec.opener {
                Opener::Sender => End::Sender,
                Opener::Receiver => End::Receiver,
            };
            packets.wake_at(start, number, opener.peer(), Wake::Start);
            packets.wake_at(start, number, opener, Wake::Start);
        }
        Ok(packets)
    }

    fn wake_at(&mut self, at: Instant, flow: u32, end: End, wake: Wake) {
        self.set += 1;
        self.wakes.push(Reverse((at, self.set, flow, end == End::Receiver, wake)));
    }

    /// Runs to the end; gives what it made no progress at, where that is what ended it.
    fn run(&mut self) -> Result<Option<String>, SimulateError> {
        while !self.flows.iter().all(Flow::is_over) {
            let arrival = self.path.next_departure();
            let wake = self.wakes.peek().map(|Reverse((at, ..))| *at);
            // What is on the wire comes before what a host does by itself at the same instant.
            let Some(at) = Instant::earliest(arrival, wake).filter(|at| *at <= self.horizon) else {
                self.now = self.horizon;
                return Ok(None);
            };
            if at > self.now {
                (self.now, self.events_now) = (at, 0);
            }
            self.events += 1;
            self.events_now += 1;
            if let Some(why) = self.used_up() {
                return Ok(Some(why));
            }
            if arrival == Some(at) {
                if let Some(departure) = self.path.take(at) {
                    self.arrive(departure)?;
                }
            } else if let Some(Reverse((_, _, number, receives, wake))) = self.wakes.pop() {
                let end = if receives { End::Receiver } else { End::Sender };
                self.wake(number, end, wake)?;
            }
        }
        Ok(None)
    }

    /// Why the run may not go on.
    fn used_up(&self) -> Option<String> {
        let Budget { events, events_at_one_instant, packets } = self.budget;
        if self.events > events {
            return Some(format!("{events} events without an end"));
        }
        if self.events_now > events_at_one_instant {
            return Some(format!("{events_at_one_instant} events at {}", self.now));
        }
        if self.path.is_overfull() {
            return Some(format!("{packets} packets are under way at {}", self.now));
        }
        None
    }

    fn wake(&mut self, number: u32, end: End, wake: Wake) -> Result<(), SimulateError> {
        let now = self.now;
        let flow = &mut self.flows[number as usize];
        let place = usize::from(end == End::Receiver);
        let host = &mut flow.hosts[place];
        let answer = match wake {
            Wake::Start => host.start(now),
            Wake::Timer if flow.due[place] == Some(now) => host.timer(now),
            Wake::Timer => return Ok(()),
        };
        self.take(number, end, answer)
    }

    fn arrive(&mut self, departure: Departure<WirePacket>) -> Result<(), SimulateError> {
        let Departure { due, direction, packet, dropped } = departure;
        if let Some(cause) = dropped {
            self.recorder.packet(
                due,
                PacketEvent::Dropped(cause),
                direction,
                &packet,
                Queues::in_path(&self.path),
            );
            return Ok(());
        }
        self.recorder.packet(due, PacketEvent::Received, direction, &packet, Queues::in_path(&self.path));
        let port = packet.decode().map(|decoded| decoded.destination.port());
        // What is for nobody, or no packet of TCP, goes to the end that the first flow has there.
        let known = port.ok().and_then(|port| self.ends.get(&(direction, port)));
        let &(number, end) = known.unwrap_or(&self.ends[&(direction, FIRST_PORT)]);
        let answer =
            self.flows[number as usize].hosts[usize::from(end == End::Receiver)].packet(due, packet.bytes());
        self.take(number, end, answer)
    }

    /// Does what a host answers.
    fn take(
        &mut self,
        number: u32,
        end: End,
        answer: Result<Answer, HostError>,
    ) -> Result<(), SimulateError> {
        let Answer { packets, read, connected, closed, failed, next_due } =
            answer.map_err(|source| SimulateError::Foreign { at: key_of(end), source: Box::new(source) })?;
        let now = self.now;
        let flow = &mut self.flows[number as usize];
        let place = usize::from(end == End::Receiver);
        let direction = end.sends(flow.spec.direction);
        if connected && end == End::Sender {
            flow.connected.get_or_insert(now);
        }
        flow.closed[place] |= closed;
        if end == End::Receiver {
            flow.read = read.unwrap_or(flow.read);
        }
        if flow.ended.is_none() {
            if flow.read == flow.spec.size.0 {
                flow.ended = Some((Outcome::Completed, now, String::new()));
            } else if let Some(why) = failed {
                let name = if end == End::Sender { "sender" } else { "receiver" };
                let outcome = match flow.connected {
                    None if why == "timed out" => Outcome::ConnectTimedOut,
                    _ => Outcome::Aborted,
                };
                flow.ended = Some((outcome, now, format!("{name}: {why}")));
            }
        }
        let old = std::mem::replace(&mut flow.due[place], next_due);
        if let Some(at) = next_due.filter(|_| next_due != old) {
            self.wake_at(at, number, end, Wake::Timer);
        }
        for bytes in packets {
            self.offer(direction, bytes)?;
        }
        Ok(())
    }

    fn offer(&mut self, direction: Direction, bytes: Vec<u8>) -> Result<(), SimulateError> {
        let held = Bytes((self.path.held() as u64).saturating_mul(bytes.len() as u64 + BOOKKEEPING));
        if held > self.memory {
            return Err(OverMemory { needed: held, memory: self.memory }.into());
        }
        self.sent[direction] += 1;
        let packet = WirePacket::new(bytes, None, self.sent[direction]);
        self.recorder.packet(self.now, PacketEvent::Sent, direction, &packet, Queues::in_path(&self.path));
        if let Verdict::Dropped { at, cause, packet } = self.path.offer(self.now, direction, packet) {
            self.recorder.packet(
                at,
                PacketEvent::Dropped(cause),
                direction,
                &packet,
                Queues::in_path(&self.path),
            );
        }
        Ok(())
    }
}

fn row<W: Write>(
    number: u32,
    flow: &Flow<'_>,
    recorder: &PacketRecorder<W>,
    stuck: Option<&String>,
    now: Instant,
    horizon: Instant,
) -> FlowRow {
    let start = Instant::ZERO + flow.spec.start;
    let (outcome, ended_at, detail) = match (&flow.ended, stuck) {
        (Some(ended), _) => ended.clone(),
        (None, Some(why)) => (Outcome::Stuck, now, why.clone()),
        (None, None) => (Outcome::Horizon, horizon, String::new()),
    };
    let transfer_time = (outcome == Outcome::Completed).then(|| ended_at - start);
    let seconds = transfer_time.filter(|time| !time.is_zero());
    let mut row = FlowRow {
        start,
        ended_at: Some(ended_at),
        detail,
        opened: Some(f64::from(u8::from(flow.connected.is_some()))),
        connect_time: flow.connected.map(|at| at - start),
        transfer_time,
        bytes_read: Bytes(flow.read),
        goodput_bit_per_s: seconds.map(|time| flow.spec.size.0 as f64 * 8.0 / time.as_secs_f64()),
        ..FlowRow::new(number, flow.spec.direction.name(), outcome, flow.spec.size)
    };
    recorder.counts(number).enter(&mut row);
    row.delays = recorder.delays(number);
    row
}

#[cfg(test)]
mod tests;
