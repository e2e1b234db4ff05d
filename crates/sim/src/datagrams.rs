//! Datagrams over a path: UDP without a connection, a window or a repair. Some are answered.

use crate::End;
use crate::budget::{Budget, Deed, Stuck, Watch};
use core::cmp::Reverse;
use farpath_elements::{ElementSpec, ExplicitRatePacket, SpecError, build_path};
use farpath_path::{
    ChannelTime, Departure, Direction, DropCounts, Path, PathElement, PathPacket, PerDirection, Verdict,
};
use farpath_units::{Bytes, Duration, DurationHistogram, Instant, Messages};
use std::collections::BinaryHeap;

/// IPv4 and UDP headers (RFC 791, RFC 768).
pub const DATAGRAM_HEADERS: Bytes = Bytes(28);

/// A stream of datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatagramSetup {
    /// When the first one leaves.
    pub start: Instant,
    /// The way over the path that they go.
    pub direction: Direction,
    /// How long they are, and when they leave.
    pub messages: Messages,
    /// How long the answer is that each gets as soon as it arrives; `None` where nobody answers.
    pub reply: Option<Bytes>,
}

/// What became of a stream of datagrams.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DatagramResult {
    /// When each left.
    pub sent: Vec<Instant>,
    /// When each arrived; `None` where it has not.
    pub arrived: Vec<Option<Instant>>,
    /// When the answer to each was back.
    pub answered: Vec<Option<Instant>>,
    /// How long each that arrived had waited in queues; `None` on a path without a queue.
    pub queueing: Option<DurationHistogram>,
    /// Drops by cause, `forward` in the direction of the stream.
    pub drops: PerDirection<DropCounts>,
    /// All had left, and nothing of it was on the path any more.
    pub over: bool,
    /// Why the run was ended before that, where it had used up its budget.
    pub stuck: Option<Stuck>,
}

/// A datagram, or the answer to it.
#[derive(Debug, Clone, Copy)]
struct Datagram {
    stream: u32,
    number: u64,
    size: Bytes,
    is_reply: bool,
    queueing: Duration,
}

impl ExplicitRatePacket for Datagram {}

impl PathPacket for Datagram {
    fn wire_size(&self) -> Bytes {
        self.size + DATAGRAM_HEADERS
    }

    fn carries_data(&self) -> bool {
        true
    }

    fn flow_hash(&self) -> u64 {
        u64::from(self.stream)
    }

    fn add_queueing(&mut self, wait: Duration) {
        self.queueing += wait;
    }
}

/// Sends `streams` over the path until nothing is under way any more, or until the horizon. Gives what became of each, and what
/// the air of radios was used for.
pub fn simulate_datagrams(
    path: &[ElementSpec],
    streams: &[DatagramSetup],
    seed: u64,
    horizon: Duration,
    budget: Budget,
) -> Result<(Vec<DatagramResult>, Vec<ChannelTime>), SpecError> {
    let mut simulation = Simulation {
        path: build_path(path, seed)?,
        streams,
        results: vec![DatagramResult::default(); streams.len()],
        watch: Watch::new(budget),
        now: Instant::ZERO,
    };
    for (result, stream) in simulation.results.iter_mut().zip(streams) {
        let has_queue = simulation.path.backlog(stream.direction).is_some();
        result.queueing = has_queue.then(DurationHistogram::default);
    }
    simulation.path.hold_at_most(usize::try_from(budget.packets).unwrap_or(usize::MAX));
    let mut due: BinaryHeap<Reverse<(Instant, u32)>> =
        (0..).zip(streams).map(|(number, stream)| Reverse((stream.start, number))).collect();
    let horizon = Instant::ZERO + horizon;
    while !simulation.watch.is_stuck() {
        let next = due.peek().map(|Reverse((at, _))| *at);
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
                let Some(Reverse((_, number))) = due.pop() else { break };
                if let Some(next) = simulation.send(at, number) {
                    due.push(Reverse((next, number)));
                }
            }
            _ => break,
        }
    }
    let Simulation { path, mut results, mut watch, now, .. } = simulation;
    if path.is_overfull() {
        watch.end_as_overfull(now);
    }
    let (empty, stuck) = (path.held() == 0, watch.into_stuck());
    for (result, stream) in results.iter_mut().zip(streams) {
        let all_left = result.sent.len() as u64 == stream.messages.count;
        result.stuck = stuck.clone();
        result.over = empty && all_left && stuck.is_none();
    }
    Ok((results, path.air(now)))
}

struct Simulation<'a> {
    path: Path<Datagram>,
    streams: &'a [DatagramSetup],
    results: Vec<DatagramResult>,
    watch: Watch,
    /// Of the last thing that happened.
    now: Instant,
}

impl Simulation<'_> {
    fn count(&mut self, stream: u32, end: End, deed: Deed) {
        if self.watch.count() {
            self.watch.look(self.now, self.path.is_overfull(), (stream, end, deed));
        }
    }

    /// Sends the next datagram of a stream; gives when the one after it leaves.
    fn send(&mut self, now: Instant, stream: u32) -> Option<Instant> {
        let setup = self.streams[stream as usize];
        let result = &mut self.results[stream as usize];
        let number = result.sent.len() as u64;
        result.sent.push(now);
        result.arrived.push(None);
        result.answered.push(None);
        let queueing = Duration::ZERO;
        let datagram = Datagram { stream, number, size: setup.messages.size, is_reply: false, queueing };
        self.count(stream, End::Sender, Deed::Data);
        self.offer(now, setup.direction, datagram);
        (number + 1 < setup.messages.count).then(|| setup.start + setup.messages.due_after(number + 1))
    }

    fn offer(&mut self, now: Instant, direction: Direction, datagram: Datagram) {
        if let Verdict::Dropped { cause, packet, .. } = self.path.offer(now, direction, datagram) {
            self.results[packet.stream as usize].drops[way_of(packet)].add(cause);
        }
    }

    fn arrive(&mut self, departure: Departure<Datagram>) {
        let Departure { due, direction, packet, dropped } = departure;
        let from = if packet.is_reply { End::Receiver } else { End::Sender };
        self.count(packet.stream, from, Deed::Data);
        let result = &mut self.results[packet.stream as usize];
        if let Some(cause) = dropped {
            result.drops[way_of(packet)].add(cause);
            return;
        }
        if !packet.is_reply
            && let Some(queueing) = &mut result.queueing
        {
            queueing.record(packet.queueing);
        }
        let stamps = if packet.is_reply { &mut result.answered } else { &mut result.arrived };
        let stamp = &mut stamps[packet.number as usize];
        // The network may make copies; the first one counts.
        if stamp.replace(stamp.unwrap_or(due)).is_some() || packet.is_reply {
            return;
        }
        if let Some(size) = self.streams[packet.stream as usize].reply {
            self.offer(
                due,
                direction.opposite(),
                Datagram { size, is_reply: true, queueing: Duration::ZERO, ..packet },
            );
        }
    }
}

fn way_of(datagram: Datagram) -> Direction {
    if datagram.is_reply { Direction::Reverse } else { Direction::Forward }
}
