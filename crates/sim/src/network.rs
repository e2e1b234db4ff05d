//! The event loop.

use crate::budget::{Budget, Deed, Watch};
use crate::flow::{Flow, FlowResult};
use crate::{End, FlowView, Observer, Packet, PacketEvent, Setup};
use core::cmp::Reverse;
use farpath_elements::{SpecError, build_path};
use farpath_path::{Departure, Direction, Path, PathElement, Signal, Verdict};
use farpath_units::{Duration, Instant};
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

/// Packets that leave a host at once and are no events yet.
const AT_ONCE: u32 = 1 << 12;

/// Something that happens at a host by itself; arrivals are the path's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Wake {
    /// The opener's program starts.
    Start,
    /// The data sender's connection has a timer.
    SenderTimer,
    /// The data receiver's connection has a timer.
    ReceiverTimer,
    /// The sending program has its next message, or makes its next call.
    Message,
    /// The receiving program has read what it was reading.
    Program,
}

/// Where a packet goes that is neither on the path nor at a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    Path,
    Host,
}

/// Flows over a path, and the events that are due.
pub struct Simulation<'o, O> {
    flows: Vec<Flow>,
    path: Path<Packet>,
    /// Its next departure: asked for once, after it has been dealt with.
    path_due: Option<Instant>,
    /// Earliest first; ties in the order in which they were scheduled.
    wakes: BinaryHeap<Reverse<(Instant, u64, u32, Wake)>>,
    scheduled: u64,
    /// Packets between the path and a host, by when they are where they go: its access, its jitter.
    on_access: BTreeMap<(Instant, u64), (Stop, Direction, Packet)>,
    running: usize,
    horizon: Instant,
    /// Of the last thing that happened.
    now: Instant,
    /// Whether the observer is told what flow routers let on.
    signals: bool,
    watch: Watch,
    observer: &'o mut O,
}

/// Simulates `setup` to its end and gives what became of each flow.
pub fn simulate<O: Observer>(setup: &Setup, observer: &mut O) -> Result<Vec<FlowResult>, SpecError> {
    let mut simulation = Simulation::new(setup, observer)?;
    while simulation.step() {}
    Ok(simulation.finish())
}

impl<'o, O: Observer> Simulation<'o, O> {
    /// Sets the flows up; nothing has happened yet.
    pub fn new(setup: &Setup, observer: &'o mut O) -> Result<Simulation<'o, O>, SpecError> {
        let mut simulation = Simulation {
            flows: Vec::with_capacity(setup.flows.len()),
            path: build_path(&setup.path, setup.seed)?,
            path_due: None,
            wakes: BinaryHeap::new(),
            scheduled: 0,
            on_access: BTreeMap::new(),
            running: setup.flows.len(),
            horizon: Instant::ZERO + setup.horizon,
            now: Instant::ZERO,
            signals: observer.wants_signals(),
            watch: Watch::new(Budget::for_flows(&setup.flows)),
            observer,
        };
        if simulation.signals {
            simulation.path.keep_signals();
        }
        for (number, flow) in (0..).zip(&setup.flows) {
            let has_queue = simulation.path.backlog(flow.direction).is_some();
            simulation.flows.push(Flow::new(flow, setup.seed, number, has_queue));
            simulation.wake_at(flow.start, number, Wake::Start);
        }
        Ok(simulation)
    }

    /// Sets what the run may use up, in place of what [`Budget::for_flows`] says.
    pub fn set_budget(&mut self, budget: Budget) {
        self.watch = Watch::new(budget);
        self.path.hold_at_most(usize::try_from(budget.packets).unwrap_or(usize::MAX));
    }

    /// Compares what was used up with the budget, after an event that [`Watch::count`] says it is time at.
    #[cold]
    #[inline(never)]
    fn look(&mut self, flow: u32, end: End, deed: Deed) {
        self.watch.look(self.now, self.path.is_overfull(), (flow, end, deed));
    }

    /// Lets the next thing happen; false when there is none, or none that matters, or none before the horizon, or when the budget is
    /// used up.
    pub fn step(&mut self) -> bool {
        if self.running == 0 || self.watch.is_stuck() {
            return false;
        }
        let arrival = Instant::earliest(self.path_due, self.next_on_access());
        let wake = self.wakes.peek().map(|Reverse((at, ..))| *at);
        // What is on the wire comes before what a host does by itself at the same instant.
        match (arrival, wake) {
            (Some(at), wake) if wake.is_none_or(|wake| at <= wake) && at <= self.horizon => {
                self.now = at;
                while self.next_on_access() == Some(at) && !self.watch.is_stuck() {
                    self.leave_access();
                }
                loop {
                    let departure = self.path.take(at);
                    let nothing_left = departure.is_none();
                    if let Some(departure) = &departure {
                        self.tell_signals();
                        self.arrive(departure);
                    }
                    self.path_due = self.path.next_departure();
                    if nothing_left || self.path_due != Some(at) || self.watch.is_stuck() {
                        break;
                    }
                }
                true
            }
            (_, Some(at)) if at <= self.horizon && arrival.is_none_or(|arrival| at < arrival) => {
                self.now = at;
                self.wake();
                self.path_due = self.path.next_departure();
                true
            }
            _ => false,
        }
    }

    fn next_on_access(&self) -> Option<Instant> {
        self.on_access.first_key_value().map(|((at, _), _)| *at)
    }

    /// The next packet between the path and a host is where it goes.
    fn leave_access(&mut self) {
        let Some(((now, _), (stop, direction, packet))) = self.on_access.pop_first() else { return };
        match stop {
            Stop::Path => self.offer(now, direction, packet),
            Stop::Host => self.deliver(now, direction, &packet),
        }
    }

    fn enter_access(&mut self, at: Instant, stop: Stop, direction: Direction, packet: Packet) {
        self.scheduled += 1;
        self.on_access.insert((at, self.scheduled), (stop, direction, packet));
    }

    /// The path as it is now: what is under way on it, and what its elements have counted.
    pub fn path(&self) -> &Path<Packet> {
        &self.path
    }

    /// When the last event was.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Packets on the path, or between it and a host.
    pub fn under_way(&self) -> usize {
        self.path.held() + self.on_access.len()
    }

    /// Tells the observer that it is over, and gives what became of each flow.
    pub fn finish(mut self) -> Vec<FlowResult> {
        self.observer.end(self.now, &self.path, self.watch.events());
        if self.path.is_overfull() {
            // Copies are missing: whatever came of it, it is not what was asked for.
            self.watch.end_as_overfull(self.now);
        }
        let stuck = self.watch.into_stuck().map(Arc::new);
        self.flows.into_iter().map(|flow| flow.into_result(self.horizon, stuck.as_ref())).collect()
    }

    fn wake_at(&mut self, at: Instant, flow: u32, wake: Wake) {
        self.scheduled += 1;
        self.wakes.push(Reverse((at, self.scheduled, flow, wake)));
    }

    fn wake(&mut self) {
        let Some(Reverse((now, _, number, wake))) = self.wakes.pop() else { return };
        if self.watch.count() {
            let receives = matches!(wake, Wake::ReceiverTimer | Wake::Program);
            self.look(number, if receives { End::Receiver } else { End::Sender }, Deed::Timer);
        }
        let flow = &mut self.flows[number as usize];
        let end = match wake {
            Wake::Start => {
                flow.sender.connection.open_without_syn(now);
                flow.receiver.connection.open_without_syn(now);
                // Both: who listens has nothing to say, and the program at the data sender may write already.
                self.serve(now, number, End::Receiver);
                End::Sender
            }
            Wake::Message => End::Sender,
            Wake::Program => End::Receiver,
            Wake::SenderTimer | Wake::ReceiverTimer => {
                let end = if wake == Wake::SenderTimer { End::Sender } else { End::Receiver };
                let host = flow.host(end);
                if host.timer_at != Some(now) {
                    return;
                }
                host.timer_at = None;
                if host.next_due().is_some_and(|due| due <= now) {
                    host.on_timer(now);
                } else {
                    self.set_timer(number, end);
                    return;
                }
                end
            }
        };
        self.serve(now, number, end);
    }

    fn tell_signals(&mut self) {
        if self.signals {
            for Signal { at, element, direction, packet } in self.path.take_signals() {
                self.observer.signal(at, &element, direction, &packet);
            }
        }
    }

    #[inline(always)]
    fn arrive(&mut self, departure: &Departure<Packet>) {
        let &Departure { due, direction, packet: Packet { flow: number, from, .. }, dropped } = departure;
        if self.watch.count() {
            self.look(number, from, Deed::sent(&departure.packet));
        }
        let flow = &mut self.flows[number as usize];
        if let Some(cause) = dropped {
            self.observer.packet(due, PacketEvent::Dropped(cause), direction, &departure.packet);
            flow.count_drop(from, cause);
            return;
        }
        let access = if direction == Direction::Reverse { flow.setup.access } else { Duration::ZERO };
        let handled = flow.host(from.peer()).handles_at(due + access);
        if handled > due {
            self.enter_access(handled, Stop::Host, direction, departure.packet.clone());
        } else {
            self.deliver(due, direction, &departure.packet);
        }
    }

    fn deliver(&mut self, now: Instant, direction: Direction, packet: &Packet) {
        let end = packet.from.peer();
        // What a pace lets go at this very time has left before a host has looked at what comes. That is no rare case: ACKs come
        // at the distances at which what they acknowledge was paced.
        if self.flows[packet.flow as usize].host(end).connection.sender().releases_by(now) {
            self.serve(now, packet.flow, end);
        }
        self.observer.packet(now, PacketEvent::Received, direction, packet);
        self.flows[packet.flow as usize].arrive(now, packet);
        self.serve(now, packet.flow, end);
    }

    fn offer(&mut self, now: Instant, direction: Direction, packet: Packet) {
        if let Verdict::Dropped { at, cause, packet } = self.path.offer(now, direction, packet) {
            self.observer.packet(at, PacketEvent::Dropped(cause), direction, &packet);
            self.flows[packet.flow as usize].count_drop(packet.from, cause);
        }
    }

    /// Lets the program at one end act, sends what may be sent, and sees to the timer.
    fn serve(&mut self, now: Instant, number: u32, end: End) {
        let flow = &mut self.flows[number as usize];
        let direction = end.sends(flow.setup.direction);
        let access = if direction == Direction::Forward { flow.setup.access } else { Duration::ZERO };
        let mut left_at_once = 0u32;
        let mut packet = flow.host(end).packet(number, end);
        // A program that waits for room in the send buffer is woken once what may leave has left (`tcp_check_space()`).
        let mut waits = flow.host(end).connection.sender().waits_for_room();
        let program_at = loop {
            let program_at = if waits { None } else { flow.run_program(now, end) };
            while flow.host(end).poll(now, &mut packet) {
                self.observer.packet(now, PacketEvent::Sent, direction, &packet);
                // Of a host that never stops these are events too.
                left_at_once += 1;
                let looked_at = left_at_once.is_multiple_of(AT_ONCE).then(|| Deed::sent(&packet));
                if !access.is_zero() {
                    self.scheduled += 1;
                    let packet = packet.clone();
                    self.on_access.insert((now + access, self.scheduled), (Stop::Path, direction, packet));
                } else if let Some((at, cause)) = self.path.offer_copy(now, direction, &mut packet) {
                    self.observer.packet(at, PacketEvent::Dropped(cause), direction, &packet);
                    flow.count_drop(end, cause);
                }
                if let Some(deed) = looked_at {
                    self.watch.count_many(AT_ONCE.into());
                    self.watch.look(self.now, self.path.is_overfull(), (number, end, deed));
                    if self.watch.is_stuck() {
                        break;
                    }
                }
            }
            if !core::mem::take(&mut waits) {
                break program_at;
            }
        };
        flow.observe(now, end);
        self.running -= usize::from(flow.comes_to_its_end());
        let timer_at = flow.host(end).next_timer();
        let view = FlowView {
            number,
            sender: &flow.sender.connection,
            receiver: &flow.receiver.connection,
            bytes_read: flow.bytes_read(),
            direction: flow.setup.direction,
            path: &self.path,
        };
        self.observer.state(now, view);
        let (program, timer) = match end {
            End::Sender => (Wake::Message, Wake::SenderTimer),
            End::Receiver => (Wake::Program, Wake::ReceiverTimer),
        };
        if let Some(at) = program_at {
            self.wake_at(at, number, program);
        }
        if let Some(at) = timer_at {
            self.wake_at(at, number, timer);
        }
    }

    fn set_timer(&mut self, number: u32, end: End) {
        if let Some(at) = self.flows[number as usize].host(end).next_timer() {
            let wake = if end == End::Sender { Wake::SenderTimer } else { Wake::ReceiverTimer };
            self.wake_at(at, number, wake);
        }
    }
}
