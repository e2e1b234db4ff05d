//! A flow router with its two lines, as an element of a path.

mod spec;

pub use spec::{RateChange, RouterLines};

use crate::line::framed;
use crate::transmitter::Transmitter;
use farpath_path::{
    Departure, Direction, DropCause, DropCounts, ElementCounters, LinkCounters, OwnFigures, PathElement,
    PathPacket, PerDirection, Signal, Verdict,
};
use farpath_tia1039::router::{
    Class, Decision, Ending, Fit, FlowKey, Numbers, Port, QosPacket, Queues, RouterCounters,
};
use farpath_tia1039::{Message, Structure};
use farpath_units::{Bytes, Instant, Rate};
use std::collections::VecDeque;

/// A packet that can ask a flow router for a rate.
pub trait ExplicitRatePacket: PathPacket {
    /// What it shows to a flow router; `None` for one that is of no flow.
    fn qos(&mut self) -> Option<&mut dyn QosPacket> {
        None
    }

    /// A packet of the same flow that carries this structure and nothing else, as a router sends it behind this one.
    /// `None` where such packets cannot be made.
    fn signal(&self, _structure: &Structure) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }
}

/// What a flow router has decided in one direction, and how long its queues were.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RouterFigures {
    /// What it has decided.
    pub decided: RouterCounters,
    /// IP bytes that waited, averaged over the time from the first packet to the last.
    pub mean_backlog: f64,
    /// Their standard deviation over that time.
    pub backlog_deviation: f64,
}

/// Lowers what passing packets ask for to what its lines can give, and sends packets in the order of what was granted.
///
/// A packet that the router itself says something with counts as a copy of the packet behind which it goes.
#[derive(Debug)]
pub struct FlowRouter<P> {
    name: String,
    lanes: PerDirection<Lane<P>>,
    /// What it let on that carries structures, where that is kept.
    signals: Option<Vec<Signal<P>>>,
}

impl<P: ExplicitRatePacket + Clone> FlowRouter<P> {
    /// With these lines. `seed` keys the index of its flows.
    pub fn new(name: String, lines: &RouterLines, seed: u64) -> FlowRouter<P> {
        let lanes = PerDirection::from_fn(|direction| Lane::new(lines, direction, seed));
        FlowRouter { name, lanes, signals: None }
    }

    /// What it grants in this direction.
    pub fn port(&self, direction: Direction) -> &Port {
        &self.lanes[direction].port
    }

    /// Its lines and what it is told are others from now on. Flows keep their state, packets their places.
    pub fn reconfigure(&mut self, lines: &RouterLines) {
        for direction in Direction::BOTH {
            self.lanes[direction].reconfigure(lines, direction);
        }
    }

    /// Lets the ports see what a packet says; gives its flow, and what becomes of it.
    fn look_at(&mut self, now: Instant, direction: Direction, packet: &mut P) -> (FlowKey, Decision) {
        let (size, carries_data) = (packet.wire_size(), packet.carries_data());
        let Some(qos) = packet.qos() else {
            return (FlowKey::from(0), Decision::Pass { class: Class::BestEffort, signal: None });
        };
        let key = qos.flow_key();
        let numbers = qos.numbers();
        if let Some(mut structures) = qos.structures() {
            for structure in structures.iter_mut() {
                self.hear(now, direction, key, qos, structure);
            }
            qos.set_structures(&structures);
            // What it says may have proven it, or ended it.
            let class = self.lanes[direction].port.class_of_signal(&key);
            return (key, Decision::Pass { class, signal: None });
        }
        let port = &mut self.lanes[direction].port;
        let decision = if carries_data {
            port.pass(now, key, qos.mark(), size, numbers)
        } else {
            port.pass_without_data(now, key, numbers)
        };
        if qos.ending() != Ending::No {
            self.end(direction, key, qos.ending(), numbers);
        }
        (key, decision)
    }

    /// Whether a packet in this direction can be of the flow that it names, as that goes `way`.
    fn fit(&self, direction: Direction, way: Direction, key: &FlowKey, numbers: Numbers) -> Fit {
        self.lanes[way].port.fit(&self.lanes[way.opposite()].port, key, numbers, way == direction)
    }

    /// A packet says that its connection is over. One whose numbers are not those of the connection ends nothing: if it was not made up, silence
    /// will.
    fn end(&mut self, direction: Direction, key: FlowKey, ending: Ending, numbers: Numbers) {
        let fits = Direction::BOTH.map(|way| {
            // A reset is judged by its sequence number (RFC 9293 §3.5.2), but for one that answers a SYN.
            let by_both = ending != Ending::Reset || !self.lanes[way].port.is_proven(&key);
            let acknowledged = numbers.acknowledged.filter(|_| by_both);
            (way, self.fit(direction, way, &key, Numbers { acknowledged, ..numbers }))
        });
        for (way, fit) in fits {
            let port = &mut self.lanes[way].port;
            match (fit, ending) {
                (Fit::Unknown, _) => {}
                (Fit::Foreign, _) => port.pass_unheard(),
                (Fit::Near, Ending::Reset) => port.reset(key),
                (Fit::Near, _) => port.fin(key, way == direction),
            }
        }
    }

    /// What asks for a rate asks for the line that it goes to. A response is of the line that it comes from.
    fn hear(
        &mut self,
        now: Instant,
        direction: Direction,
        key: FlowKey,
        qos: &dyn QosPacket,
        structure: &mut Structure,
    ) {
        let numbers = qos.numbers();
        let way = if structure.message == Message::Response { direction.opposite() } else { direction };
        let fit = self.fit(direction, way, &key, numbers);
        // In the name of a flow that is proven, this way or the other, only what fits its numbers: who makes up a request of the other way, its
        // answer and the ACK of that would have numbers of his own count as the connection's.
        let proven = Direction::BOTH.iter().any(|way| self.lanes[*way].port.is_proven(&key));
        let heard = fit != Fit::Foreign || !proven;
        let port = &mut self.lanes[way].port;
        match structure.message {
            // Of a flow without numbers it cannot be told, and silence ends it.
            Message::Close if fit == Fit::Near || port.flow(&key).is_none() => port.closed(key),
            Message::Close => port.pass_unheard(),
            // What another router asks for, and what asks for nothing.
            Message::MissedStart | Message::Forward => {}
            _ if !heard => port.pass_unheard(),
            Message::Request | Message::Renegotiate | Message::ResendStart => {
                port.ask(now, key, numbers.next_seq, qos.before_move(structure), structure);
            }
            Message::Confirmation => port.confirmed(now, key, structure),
            Message::Response => {
                port.answered(now, qos.answered(structure), structure, numbers.next_seq);
            }
        }
    }
}

impl<P: ExplicitRatePacket + Clone> PathElement<P> for FlowRouter<P> {
    fn offer(&mut self, now: Instant, direction: Direction, mut packet: P) -> Verdict<P> {
        Direction::BOTH.into_iter().for_each(|way| self.lanes[way].advance(now));
        self.lanes[direction].counts.offered += 1;
        let (key, decision) = self.look_at(now, direction, &mut packet);
        let lane = &mut self.lanes[direction];
        let Decision::Pass { class, signal } = decision else {
            return lane.refuse(now, DropCause::Policing, packet);
        };
        let signal = signal.and_then(|structure| packet.signal(&structure));
        if let Some(signals) = &mut self.signals {
            let own = signal.clone();
            let said = packet.qos().is_some_and(|qos| qos.structures().is_some());
            for packet in said.then(|| packet.clone()).into_iter().chain(own) {
                signals.push(Signal { at: now, direction, element: self.name.clone(), packet });
            }
        }
        if let Err(packet) = lane.accept(now, class, key, packet) {
            return lane.refuse(now, DropCause::QueueOverflow, packet);
        }
        // What the router says is no more than a header, and is not worth a drop of the packet that it goes behind.
        if signal.is_some_and(|signal| lane.accept(now, class, key, signal).is_ok()) {
            lane.counts.said += 1;
        }
        Verdict::Accepted
    }

    fn next_departure(&self) -> Option<Instant> {
        Instant::earliest(self.lanes.forward.next_due(), self.lanes.reverse.next_due())
    }

    fn take(&mut self, now: Instant) -> Option<Departure<P>> {
        // Of two that are due together the forward one leaves first.
        let due = |way: Direction| self.lanes[way].next_due().map(|due| (due, way));
        let (due, direction) = Direction::BOTH.into_iter().filter_map(due).min()?;
        if due > now {
            return None;
        }
        let lane = &mut self.lanes[direction];
        lane.advance(due);
        let (due, packet) = lane.sent.pop_front()?;
        Some(Departure { due, direction, packet, dropped: None })
    }

    fn held(&self) -> usize {
        self.lanes.forward.held() + self.lanes.reverse.held()
    }

    fn backlog(&self, direction: Direction) -> Option<Bytes> {
        Some(self.lanes[direction].queues.waiting())
    }

    fn counters(&self) -> Vec<ElementCounters> {
        let counters = |direction| self.lanes[direction].counters(self.name.clone(), direction);
        Direction::BOTH.map(counters).into()
    }

    fn keep_signals(&mut self) {
        self.signals.get_or_insert_default();
    }

    fn take_signals(&mut self) -> Vec<Signal<P>> {
        self.signals.as_mut().map(core::mem::take).unwrap_or_default()
    }
}

/// One direction: what is granted, who waits, and the line.
#[derive(Debug)]
struct Lane<P> {
    port: Port,
    /// Packets, and since when each waits.
    queues: Queues<(Instant, P)>,
    line: Transmitter,
    /// On the line until that is free.
    sending: Option<P>,
    /// Sent, and not taken yet, by when it was.
    sent: VecDeque<(Instant, P)>,
    /// Rates that are still to come.
    changes: VecDeque<RateChange>,
    overhead: Bytes,
    min_packet: Bytes,
    /// A full packet.
    packet: Bytes,
    counts: Counts,
    backlog: Backlog,
}

/// What waits, over time.
#[derive(Debug, Clone, Copy, Default)]
struct Backlog {
    began: Option<Instant>,
    last: Instant,
    byte_ns: u128,
    square_byte_ns: u128,
}

impl Backlog {
    /// So much has waited until now.
    fn until(&mut self, now: Instant, waited: Bytes) {
        if self.began.is_none() {
            (self.began, self.last) = (Some(now), now);
        }
        let (ns, bytes) = (u128::from(now.saturating_since(self.last).as_nanos()), u128::from(waited.0));
        self.byte_ns += bytes * ns;
        self.square_byte_ns += bytes * bytes * ns;
        self.last = now;
    }

    fn over_time(&self, sum: u128) -> f64 {
        let time = self.began.map_or(0, |began| (self.last - began).as_nanos());
        if time == 0 { 0.0 } else { sum as f64 / time as f64 }
    }

    fn mean(&self) -> f64 {
        self.over_time(self.byte_ns)
    }

    fn deviation(&self) -> f64 {
        (self.over_time(self.square_byte_ns) - self.mean() * self.mean()).max(0.0).sqrt()
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    offered: u64,
    /// Packets of the router's own.
    said: u64,
    dropped: DropCounts,
    bytes_sent: Bytes,
    max_backlog: Bytes,
}

impl<P: PathPacket> Lane<P> {
    fn new(lines: &RouterLines, direction: Direction, seed: u64) -> Lane<P> {
        let RouterLines { rate, changes, queue: _, overhead, min_packet, settings } = lines;
        let (settings, packet) = (&settings[direction], settings[direction].packet);
        let capacity = granted_capacity(rate[direction], packet, framed(packet, *overhead, *min_packet));
        Lane {
            port: Port::new(settings, capacity, seed),
            queues: Queues::new(packet, limit(lines, direction)),
            line: Transmitter::new(rate[direction]),
            sending: None,
            sent: VecDeque::new(),
            changes: changes[direction].iter().copied().collect(),
            overhead: *overhead,
            min_packet: *min_packet,
            packet,
            counts: Counts::default(),
            backlog: Backlog::default(),
        }
    }

    fn reconfigure(&mut self, lines: &RouterLines, direction: Direction) {
        (self.overhead, self.min_packet, self.packet) =
            (lines.overhead, lines.min_packet, lines.settings[direction].packet);
        let rate = lines.rate[direction];
        let full = framed(self.packet, self.overhead, self.min_packet);
        self.line.set_rate(rate);
        self.changes = lines.changes[direction].iter().copied().collect();
        self.port.set_settings(&lines.settings[direction], granted_capacity(rate, self.packet, full));
        self.queues.set_limit(limit(lines, direction));
    }

    /// Puts a packet on the line, or into its queue.
    fn accept(&mut self, now: Instant, class: Class, key: FlowKey, packet: P) -> Result<(), P> {
        self.backlog.until(now, self.queues.waiting());
        if self.sending.is_none() && self.queues.is_empty() {
            self.line.rest_until(now);
            self.send(packet);
            return Ok(());
        }
        let size = packet.wire_size();
        self.queues.push(class, key, (now, packet), size).map_err(|(_, packet)| packet)?;
        self.counts.max_backlog = self.counts.max_backlog.max(self.queues.waiting());
        Ok(())
    }

    fn refuse(&mut self, at: Instant, cause: DropCause, packet: P) -> Verdict<P> {
        self.counts.dropped.add(cause);
        Verdict::Dropped { at, cause, packet }
    }

    fn send(&mut self, packet: P) {
        let on_wire = framed(packet.wire_size(), self.overhead, self.min_packet);
        self.line.serialize(on_wire);
        self.counts.bytes_sent += on_wire;
        self.sending = Some(packet);
    }

    /// Whatever the line has done by `now`. Which packet is next is decided when the line is free, not when it came.
    fn advance(&mut self, now: Instant) {
        loop {
            let free = self.sending.is_some().then(|| self.line.busy_until()).filter(|&free| free <= now);
            let until = free.unwrap_or(now);
            while let Some(&RateChange { at, rate }) = self.changes.front()
                && at <= until
            {
                self.changes.pop_front();
                self.line.set_rate(rate);
                let full = framed(self.packet, self.overhead, self.min_packet);
                self.port.set_line(granted_capacity(rate, self.packet, full));
            }
            let (Some(free), Some(packet)) = (free, self.sending.take_if(|_| free.is_some())) else { return };
            self.sent.push_back((free, packet));
            self.backlog.until(free, self.queues.waiting());
            if let Some(((since, mut packet), _)) = self.queues.pop() {
                packet.add_queueing(free.saturating_since(since));
                self.send(packet);
            }
        }
    }

    fn next_due(&self) -> Option<Instant> {
        let sent = self.sent.front().map(|&(due, _)| due);
        sent.or_else(|| self.sending.is_some().then(|| self.line.busy_until()))
    }

    fn held(&self) -> usize {
        self.sent.len() + usize::from(self.sending.is_some()) + self.queues.len()
    }

    fn counters(&self, name: String, direction: Direction) -> ElementCounters {
        let Counts { offered, said, dropped, bytes_sent, max_backlog } = self.counts;
        ElementCounters {
            name,
            direction,
            offered,
            delivered: offered + said - dropped.total(),
            duplicated: said,
            marked: 0,
            dropped,
            link: Some(LinkCounters { bytes_sent, max_backlog }),
            own: Some(OwnFigures::new(RouterFigures {
                decided: self.port.counters(),
                mean_backlog: self.backlog.mean(),
                backlog_deviation: self.backlog.deviation(),
            })),
        }
    }
}

/// What each of its queues may hold.
fn limit(lines: &RouterLines, direction: Direction) -> Bytes {
    lines.queue[direction].bytes(lines.settings[direction].packet).unwrap_or(Bytes::MAX)
}

/// The rate of IP packets that fill a line, its framing taken off.
fn granted_capacity(rate: Rate, packet: Bytes, on_wire: Bytes) -> Rate {
    let bits = u128::from(rate.bit_per_s()) * u128::from(packet.0) / u128::from(on_wire.0.max(1));
    u64::try_from(bits).ok().and_then(Rate::from_bit_per_s).unwrap_or(rate)
}
