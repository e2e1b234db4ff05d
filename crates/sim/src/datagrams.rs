//! Datagrams over a path: UDP without a connection, a window or a repair. Some are answered.

use crate::budget::{Budget, Deed, Stuck, Watch};
use crate::{End, Qos};
use core::cmp::Reverse;
use farpath_elements::{ElementSpec, ExplicitRatePacket, SpecError, build_path};
use farpath_explicit_rate::{DatagramDriver, DriverSettings};
use farpath_path::{
    ChannelTime, Departure, Direction, DropCounts, ElementCounters, Path, PathElement, PathPacket,
    PerDirection, Verdict,
};
use farpath_tia1039::router::{FlowKey, QosPacket};
use farpath_tia1039::{QosMark, Structure, Structures};
use farpath_units::{Bytes, DATAGRAM_HEADERS, Duration, DurationHistogram, Instant, Messages};
use std::collections::{BinaryHeap, VecDeque};

/// A stream of datagrams.
#[derive(Debug, Clone, PartialEq)]
pub struct DatagramSetup {
    /// When the first one leaves.
    pub start: Instant,
    /// The way over the path that they go.
    pub direction: Direction,
    /// How long they are, and when they leave.
    pub messages: Messages,
    /// How long the answer is that each gets as soon as it arrives; `None` where nobody answers.
    pub reply: Option<Bytes>,
    /// How its sender and its receiver ask flow routers for a rate, and answer who asks; `None` of one that knows nothing of it.
    pub asks: [Option<DriverSettings>; 2],
}

/// What became of a stream of datagrams.
#[derive(Debug, Clone, Default)]
pub struct DatagramResult {
    /// When each left: when it was due, or when its grant let it.
    pub sent: Vec<Instant>,
    /// When each arrived; `None` where it has not.
    pub arrived: Vec<Option<Instant>>,
    /// When the answer to each was back.
    pub answered: Vec<Option<Instant>>,
    /// How long each that arrived had waited in queues; `None` on a path without a queue.
    pub queueing: Option<DurationHistogram>,
    /// Drops by cause, `forward` in the direction of the stream.
    pub drops: PerDirection<DropCounts>,
    /// What came of asking, at the sender.
    pub driver: Option<DatagramDriver>,
    /// All had left, and nothing of it was on the path any more.
    pub over: bool,
    /// Why the run was ended before that, where it had used up its budget.
    pub stuck: Option<Stuck>,
}

/// A simulation of datagrams that is over.
#[derive(Debug)]
pub struct DatagramRun {
    /// What became of each stream.
    pub streams: Vec<DatagramResult>,
    /// What each element of the path counted.
    pub elements: Vec<ElementCounters>,
    /// What the air of radios was used for.
    pub air: Vec<ChannelTime>,
}

/// A datagram, or the answer to it.
#[derive(Debug, Clone)]
struct Datagram {
    stream: u32,
    number: u64,
    size: Bytes,
    from: End,
    queueing: Duration,
    /// What it says to flow routers. One that carries structures carries nothing else.
    qos: Qos,
}

impl Datagram {
    fn is_signal(&self) -> bool {
        self.qos.structures.is_some()
    }
}

impl PathPacket for Datagram {
    fn wire_size(&self) -> Bytes {
        self.size + DATAGRAM_HEADERS
    }

    fn carries_data(&self) -> bool {
        !self.is_signal()
    }

    fn flow_hash(&self) -> u64 {
        u64::from(self.stream)
    }

    fn add_queueing(&mut self, wait: Duration) {
        self.queueing += wait;
    }
}

impl ExplicitRatePacket for Datagram {
    fn qos(&mut self) -> Option<&mut dyn QosPacket> {
        Some(self)
    }

    fn signal(&self, structure: &Structure) -> Option<Datagram> {
        Some(signal(self.stream, self.from, structure))
    }
}

/// A datagram that carries this structure and nothing else, as UDP has it (Roberts 2006).
fn signal(stream: u32, from: End, structure: &Structure) -> Datagram {
    let size = Bytes(Structures::one(*structure).encoded_len() as u64);
    let qos = Qos::signal(structure);
    Datagram { stream, number: 0, size, from, queueing: Duration::ZERO, qos }
}

/// It shows neither sequence numbers nor an end: a router knows it by what it sends.
impl QosPacket for Datagram {
    fn flow_key(&self) -> FlowKey {
        FlowKey::from(u128::from(self.stream))
    }

    fn mark(&self) -> QosMark {
        self.qos.mark
    }

    fn structures(&self) -> Option<Structures> {
        self.qos.structures()
    }

    fn set_structures(&mut self, structures: &Structures) {
        self.qos.set_structures(structures);
    }
}

/// One end of a stream, and what waits there until its grant lets it leave.
#[derive(Debug, Default)]
struct Host {
    driver: Option<DatagramDriver>,
    waiting: VecDeque<u64>,
    /// For when it has asked to be woken.
    woken_at: Option<Instant>,
}

/// What is done at its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// The sender has its next message.
    Message,
    /// An end may send what waits.
    Host(End),
}

/// Sends `streams` over the path until nothing is under way any more, or until the horizon.
pub fn simulate_datagrams(
    path: &[ElementSpec],
    streams: &[DatagramSetup],
    seed: u64,
    horizon: Duration,
    budget: Budget,
) -> Result<DatagramRun, SpecError> {
    let mut simulation = Simulation {
        path: build_path(path, seed)?,
        streams,
        results: vec![DatagramResult::default(); streams.len()],
        hosts: streams.iter().map(hosts_of).collect(),
        due: (0..)
            .zip(streams)
            .map(|(number, stream)| Reverse((stream.start, number, Due::Message)))
            .collect(),
        watch: Watch::new(budget),
        now: Instant::ZERO,
    };
    for (result, stream) in simulation.results.iter_mut().zip(streams) {
        let has_queue = simulation.path.backlog(stream.direction).is_some();
        result.queueing = has_queue.then(DurationHistogram::default);
    }
    simulation.path.hold_at_most(usize::try_from(budget.packets).unwrap_or(usize::MAX));
    let horizon = Instant::ZERO + horizon;
    while !simulation.watch.is_stuck() {
        let next = simulation.due.peek().map(|Reverse((at, ..))| *at);
        // What is on the wire comes before what a host does by itself at the same instant.
        match (simulation.path.next_departure(), next) {
            (Some(at), next) if at <= horizon && next.is_none_or(|next| at <= next) => {
                simulation.now = at;
                while let Some(departure) = simulation.path.take(at) {
                    simulation.arrive(departure);
                    if simulation.watch.is_stuck() {
                        break;
                    }
                }
            }
            (_, Some(at)) if at <= horizon => {
                simulation.now = at;
                let Some(Reverse((_, stream, what))) = simulation.due.pop() else { break };
                match what {
                    Due::Message => simulation.next_message(at, stream),
                    Due::Host(end) => {
                        simulation.host(stream, end).woken_at = None;
                        simulation.release(at, stream, end);
                    }
                }
            }
            _ => break,
        }
    }
    let Simulation { path, mut results, hosts, mut watch, now, .. } = simulation;
    if path.is_overfull() {
        watch.end_as_overfull(now);
    }
    let (empty, stuck) = (path.held() == 0, watch.into_stuck());
    for ((result, stream), [sender, receiver]) in results.iter_mut().zip(streams).zip(hosts) {
        let all_left = result.sent.len() as u64 == stream.messages.count && receiver.waiting.is_empty();
        result.driver = sender.driver;
        result.stuck = stuck.clone();
        result.over = empty && all_left && stuck.is_none();
    }
    Ok(DatagramRun { streams: results, elements: path.counters(), air: path.air(now) })
}

fn hosts_of(stream: &DatagramSetup) -> [Host; 2] {
    let host = |asks: &Option<DriverSettings>| Host {
        driver: asks.as_ref().map(DatagramDriver::new),
        ..Host::default()
    };
    stream.asks.each_ref().map(host)
}

struct Simulation<'a> {
    path: Path<Datagram>,
    streams: &'a [DatagramSetup],
    results: Vec<DatagramResult>,
    /// Sender and receiver of each stream.
    hosts: Vec<[Host; 2]>,
    due: BinaryHeap<Reverse<(Instant, u32, Due)>>,
    watch: Watch,
    /// Of the last thing that happened.
    now: Instant,
}

impl Simulation<'_> {
    fn host(&mut self, stream: u32, end: End) -> &mut Host {
        &mut self.hosts[stream as usize][usize::from(end == End::Receiver)]
    }

    fn count(&mut self, stream: u32, end: End, deed: Deed) {
        if self.watch.count() {
            self.watch.look(self.now, self.path.is_overfull(), (stream, end, deed));
        }
    }

    /// The next message of a stream is there, and the one after it will be.
    fn next_message(&mut self, now: Instant, stream: u32) {
        let setup = &self.streams[stream as usize];
        let waiting = self.host(stream, End::Sender).waiting.len() as u64;
        let number = self.results[stream as usize].sent.len() as u64 + waiting;
        self.host(stream, End::Sender).waiting.push_back(number);
        self.release(now, stream, End::Sender);
        if number + 1 < setup.messages.count {
            let next = setup.start + setup.messages.due_after(number + 1);
            self.due.push(Reverse((next, stream, Due::Message)));
        }
    }

    /// Sends what waits at an end and may leave, and what it has to say.
    fn release(&mut self, now: Instant, stream: u32, end: End) {
        loop {
            let host = self.host(stream, end);
            let may =
                !host.waiting.is_empty() && host.driver.as_mut().is_none_or(|driver| driver.may_send(now));
            let number = if may { host.waiting.pop_front() } else { None };
            let said = host.driver.as_mut().and_then(DatagramDriver::poll);
            if let Some(structure) = &said {
                self.count(stream, end, Deed::Data);
                self.offer(now, signal(stream, end, structure));
            }
            match number {
                Some(number) => self.send(now, stream, end, number),
                None if said.is_none() => break,
                None => {}
            }
        }
        let host = self.host(stream, end);
        if host.waiting.is_empty() {
            return;
        }
        let due = host.driver.as_ref().and_then(DatagramDriver::next_due);
        if let Some(due) = due.filter(|&due| host.woken_at.is_none_or(|at| due < at)) {
            host.woken_at = Some(due);
            self.due.push(Reverse((due, stream, Due::Host(end))));
        }
    }

    /// Sends a message, or the answer to one.
    fn send(&mut self, now: Instant, stream: u32, from: End, number: u64) {
        let setup = &self.streams[stream as usize];
        let size = match from {
            End::Sender => setup.messages.size,
            End::Receiver => setup.reply.unwrap_or_default(),
        };
        if from == End::Sender {
            let result = &mut self.results[stream as usize];
            result.sent.push(now);
            result.arrived.push(None);
            result.answered.push(None);
        }
        let mut mark = QosMark::None;
        if let Some(driver) = &mut self.host(stream, from).driver {
            mark = driver.mark();
            driver.on_sent(now, size + DATAGRAM_HEADERS);
        }
        let qos = Qos { mark, structures: None };
        self.count(stream, from, Deed::Data);
        self.offer(now, Datagram { stream, number, size, from, queueing: Duration::ZERO, qos });
    }

    fn offer(&mut self, now: Instant, datagram: Datagram) {
        let direction = datagram.from.sends(self.streams[datagram.stream as usize].direction);
        if let Verdict::Dropped { cause, packet, .. } = self.path.offer(now, direction, datagram) {
            self.results[packet.stream as usize].drops[way_of(packet.from)].add(cause);
        }
    }

    fn arrive(&mut self, departure: Departure<Datagram>) {
        let Departure { due, packet, dropped, .. } = departure;
        let (stream, from) = (packet.stream, packet.from);
        self.count(stream, from, Deed::Data);
        let result = &mut self.results[stream as usize];
        if let Some(cause) = dropped {
            result.drops[way_of(from)].add(cause);
            return;
        }
        if let Some(structures) = &packet.qos.structures {
            if let Some(driver) = &mut self.host(stream, from.peer()).driver {
                driver.on_structures(due, structures);
                self.release(due, stream, from.peer());
            }
            return;
        }
        if from == End::Sender
            && let Some(queueing) = &mut result.queueing
        {
            queueing.record(packet.queueing);
        }
        let stamps = match from {
            End::Sender => &mut result.arrived,
            End::Receiver => &mut result.answered,
        };
        let stamp = &mut stamps[packet.number as usize];
        // The network may make copies; the first one counts.
        if stamp.replace(stamp.unwrap_or(due)).is_some() || from == End::Receiver {
            return;
        }
        if self.streams[stream as usize].reply.is_some() {
            self.host(stream, End::Receiver).waiting.push_back(packet.number);
            self.release(due, stream, End::Receiver);
        }
    }
}

/// Messages go forward.
fn way_of(from: End) -> Direction {
    from.sends(Direction::Forward)
}
