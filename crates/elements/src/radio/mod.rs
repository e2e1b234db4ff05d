//! Half-duplex packet radio: one air for both directions.
//!
//! A station that has packets turns around and polls its neighbour. An idle neighbour with room for the packet turns around
//! and answers; the caller turns around again and sends a burst of frames; the neighbour turns around and says what arrived.
//! Who calls while the other one calls is heard by nobody, and waits for longer each time.
//!
//! ```text
//! caller     |turn|poll|      |    |frame|frame|    |        |
//! neighbour  |         |turn|answer|           |turn|link ACK|
//! ```

mod cell;
mod fragments;
mod ledger;
mod others;
mod spec;
mod station;

pub use others::{Arrivals, HiddenFrom, OnOff, OtherStations, Peer};
pub use spec::{Backoff, Duplex, Oversize, RadioPower, RadioSpec, Turnaround};

use crate::over_time::InRun;
use cell::{Cell, Other};
use core::mem;
use farpath_path::Schedule;
use farpath_path::{
    AirEnergy, AirTime, AirUse, Chance, ChannelTime, Departure, Direction, DropCause, DropCounts,
    ElementCounters, Generator, LinkCounters, PathElement, PathPacket, PerDirection, StationCounts, Verdict,
};
use farpath_units::{Bytes, Duration, Instant, Rate};
use fragments::Fragments;
use ledger::{Done, Ledger};
use others::Traffic;
use station::{Load, State, Station, Waiting};

/// The stations of a [`RadioSpec`], and what is on the air between them.
#[derive(Debug, Clone)]
pub struct Radio<P> {
    name: String,
    /// With the rate of now.
    spec: RadioSpec,
    /// Where it changes over time.
    rate: Option<InRun<Rate>>,
    /// By place, and by direction where each has a transceiver of its own; behind those of the path the other ones.
    stations: Vec<Station<P>>,
    /// What there is to know of the other ones.
    others: Vec<Other>,
    /// Likewise, by hop.
    channels: Vec<Channel>,
    events: Schedule<Event<P>>,
    /// Packets that have crossed all hops or were lost, until they are taken.
    left: Schedule<(Direction, P, Option<DropCause>)>,
    held: usize,
    counts: PerDirection<Counts>,
}

/// What lies between two neighbours.
#[derive(Debug, Clone, Default)]
struct Channel {
    ledger: Ledger,
    /// Calls on it that are undecided.
    calls: u32,
    /// Exchanges that are under way.
    won: u32,
    /// Where others use it too.
    cell: Option<Cell>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    offered: u64,
    dropped: DropCounts,
    bytes_sent: Bytes,
    max_backlog: Bytes,
}

#[derive(Debug, Clone)]
enum Event<P> {
    /// A station may try to send.
    Wake { station: usize, number: u64 },
    /// A poll has been sent; without polls, a frame begins.
    Called { station: usize },
    /// The answer to its poll has reached a station.
    Answered { station: usize },
    /// A station has waited long enough for an answer.
    Unanswered { station: usize, number: u64 },
    /// A frame has been sent on an air that others use too.
    Sent { station: usize, burst: Box<Burst<P>> },
    /// Both stations are free again.
    Over { station: usize, exchange: Exchange<P> },
    /// A station that has answered a poll gets nothing: who called did not hear it.
    Forgotten { station: usize },
    /// A station can send on what it has received.
    Processed { place: usize, direction: Direction, waiting: Waiting<P> },
    /// Another station has a packet of its own.
    Offered { station: usize },
}

/// A burst that was sent.
#[derive(Debug, Clone)]
struct Exchange<P> {
    /// When the caller began to turn around.
    since: Instant,
    direction: Direction,
    /// What its time went into.
    uses: Vec<(AirUse, Duration)>,
    /// When its last frame ended.
    sent: Instant,
    /// What left the caller's queue.
    gone: Bytes,
    /// What of it arrived, as the caller has it until the link ACK says so: on an air that others use too.
    unacknowledged: Vec<Waiting<P>>,
}

/// A burst that is being sent.
#[derive(Debug, Clone)]
struct Burst<P> {
    exchange: Exchange<P>,
    /// At which it is sent.
    rate: Rate,
    /// What comes behind its last frame: the answer.
    answer: Duration,
    /// Packets of the queue that it may take.
    packets: usize,
    /// Frames of it that were sent.
    frames: u32,
    /// When the one that is being sent began.
    from: Instant,
    sending: Option<Sending<P>>,
    /// With link ACKs only what arrives in a row counts, as the link keeps packets in order.
    in_row: bool,
    again: Vec<Waiting<P>>,
}

/// A packet of which frames are being sent.
#[derive(Debug, Clone)]
struct Sending<P> {
    waiting: Waiting<P>,
    /// The frame of now.
    number: u64,
    damaged: bool,
}

impl<P: PathPacket> Radio<P> {
    /// Stations that draw from `seed`.
    pub fn new(name: String, spec: &RadioSpec, seed: u64) -> Radio<P> {
        let hops = spec.hops as usize;
        let lanes = if spec.duplex == Duplex::Full { 2 } else { 1 };
        let stations = (0..(hops + 1) * lanes).map(|number| Station::new(seed, &format!("{name}/{number}")));
        let mut radio = Radio {
            stations: stations.collect(),
            others: Vec::new(),
            channels: (0..hops * lanes).map(|_| Channel::default()).collect(),
            spec: spec.clone(),
            rate: spec.rate_over_time.as_ref().map(|rate| rate.in_run(&name, seed)),
            name,
            events: Schedule::new(),
            left: Schedule::new(),
            held: 0,
            counts: PerDirection::default(),
        };
        radio.add_others(seed);
        radio
    }

    /// Adds the stations of other users, and when the first packet of each comes.
    fn add_others(&mut self, seed: u64) {
        let mut groups = Vec::new();
        for (group, others) in self.spec.others.iter().enumerate() {
            let (hop, first) = (others.hop as usize, self.stations.len());
            groups.push((group, first, others));
            for number in 0..others.stations as usize {
                let station = first + number;
                let name = format!("{}/others/{group}/{number}", self.name);
                let draws = Generator::new(seed, &format!("{name}/traffic"), Direction::Forward);
                let mut traffic = Traffic::new(others, draws);
                self.events.push(traffic.first(), Event::Offered { station });
                self.stations.push(Station::new(seed, &name));
                let peer = match others.to {
                    Peer::Near => hop,
                    Peer::Far => hop + 1,
                    Peer::Pairs if number % 2 == 0 => station + 1,
                    Peer::Pairs => station - 1,
                };
                let OtherStations { packet, queue, .. } = *others;
                self.others.push(Other { channel: hop, peer, packet, queue, traffic });
            }
        }
        for hop in 0..self.channels.len() {
            let here: Vec<_> =
                groups.iter().copied().filter(|(.., others)| others.hop as usize == hop).collect();
            if !here.is_empty() {
                self.channels[hop].cell = Some(Cell::new(hop, &here));
            }
        }
    }

    /// The stations of the path.
    fn of_path(&self) -> impl Iterator<Item = &Station<P>> {
        self.stations[..self.stations.len() - self.others.len()].iter()
    }

    /// Whether only other stations have something to send: no packet leaves then, and what they do can wait until one comes.
    fn is_others_alone(&self) -> bool {
        !self.others.is_empty()
            && self.held == 0
            && self
                .of_path()
                .all(|station| Direction::BOTH.iter().all(|&way| station.filled[way] == Bytes::ZERO))
    }

    /// What there is to know of a station that is not of the path.
    fn other(&self, station: usize) -> Option<&Other> {
        station.checked_sub(self.stations.len() - self.others.len()).map(|number| &self.others[number])
    }

    /// The number of a transceiver, or of the channel of this hop.
    fn number(&self, place: usize, direction: Direction) -> usize {
        match self.spec.duplex {
            Duplex::Half => place,
            Duplex::Full => 2 * place + direction as usize,
        }
    }

    fn place(&self, station: usize) -> usize {
        match self.spec.duplex {
            Duplex::Half => station,
            Duplex::Full => station / 2,
        }
    }

    /// The last place on the way.
    fn end(&self, direction: Direction) -> usize {
        match direction {
            Direction::Forward => self.spec.hops as usize,
            Direction::Reverse => 0,
        }
    }

    fn next_place(place: usize, direction: Direction) -> usize {
        match direction {
            Direction::Forward => place + 1,
            Direction::Reverse => place - 1,
        }
    }

    /// The station that this one calls in this direction, and the channel between them.
    fn neighbour(&self, station: usize, direction: Direction) -> (usize, usize) {
        if let Some(other) = self.other(station) {
            return (other.peer, other.channel);
        }
        let place = self.place(station);
        let next = Radio::<P>::next_place(place, direction);
        (self.number(next, direction), self.number(place.min(next), direction))
    }

    /// Whether the station takes a packet of this size on its way; the last one always does.
    fn has_room(&self, station: usize, direction: Direction, size: Bytes) -> bool {
        self.place(station) == self.end(direction)
            || self.stations[station].filled[direction] + size <= self.spec.queue
    }

    /// Whether the station that this one calls takes a packet of this size. What others send ends there.
    fn takes(&self, caller: usize, neighbour: usize, direction: Direction, size: Bytes) -> bool {
        !self.spec.flow_control || self.other(caller).is_some() || self.has_room(neighbour, direction, size)
    }

    /// What a channel is used for while nobody calls or sends on it.
    fn quiet_use(&self, channel: usize) -> AirUse {
        let (hop, ways): (usize, &[Direction]) = match self.spec.duplex {
            Duplex::Half => (channel, &Direction::BOTH),
            Duplex::Full if channel % 2 == Direction::Forward as usize => {
                (channel / 2, &[Direction::Forward])
            }
            Duplex::Full => (channel / 2, &[Direction::Reverse]),
        };
        let sender = |direction| hop + usize::from(direction == Direction::Reverse);
        let waits = |&direction: &Direction| {
            !self.stations[self.number(sender(direction), direction)].queues[direction].is_empty()
        };
        let others = self.channels[channel].cell.as_ref().map_or(&[][..], Cell::others);
        let some = ways.iter().any(waits) || others.iter().any(|&other| self.stations[other].has_packets());
        if some { AirUse::Backoff } else { AirUse::Idle }
    }

    /// Accounts for a channel's silence before something changes on it.
    fn account_silence(&mut self, now: Instant, channel: usize) {
        let quiet = self.quiet_use(channel);
        let Channel { ledger, calls: 0, won: 0, cell } = &mut self.channels[channel] else { return };
        if let Some(cell) = cell {
            cell.settle(now, ledger);
        }
        ledger.charge(now, quiet);
    }

    /// Lets happen what was due by `now`.
    fn advance(&mut self, now: Instant) {
        while self.events.next_due().is_some_and(|due| due <= now) {
            self.happen();
        }
    }

    fn happen(&mut self) {
        let Some((now, event)) = self.events.pop() else { return };
        if let Some(rate) = &self.rate {
            self.spec.rate = rate.value_at(now);
        }
        match event {
            Event::Wake { station, number } => {
                if self.stations[station].wake == number {
                    self.call(now, station);
                }
            }
            Event::Called { station } => self.hear(now, station),
            Event::Answered { station } => self.hear_answer(now, station),
            Event::Unanswered { station, number } => {
                if self.stations[station].wake == number {
                    self.back_off(now, station);
                }
            }
            Event::Sent { station, burst } => self.end_frame_of_cell(now, station, burst),
            Event::Over { station, exchange } => self.end_exchange(now, station, exchange),
            Event::Forgotten { station } => {
                self.stations[station].state = State::Idle;
                self.wake(now, station);
            }
            Event::Offered { station } => self.offer_others(now, station),
            Event::Processed { place, direction, waiting } => self.enqueue(now, place, direction, waiting),
        }
    }

    /// Puts a packet, whose bytes its queue counts already, where it can be sent from.
    fn enqueue(&mut self, now: Instant, place: usize, direction: Direction, waiting: Waiting<P>) {
        let station = self.number(place, direction);
        let (_, channel) = self.neighbour(station, direction);
        self.account_silence(now, channel);
        self.count(channel, station, |counts| counts.offered += 1);
        self.stations[station].push(now, direction, waiting);
        self.wake(now, station);
    }

    /// A packet of another station's own, and when the next one comes.
    fn offer_others(&mut self, now: Instant, station: usize) {
        let first = self.stations.len() - self.others.len();
        let Other { channel, packet, queue, ref mut traffic, .. } = self.others[station - first];
        let next = traffic.next(now);
        self.events.push(next, Event::Offered { station });
        self.account_silence(now, channel);
        self.count(channel, station, |counts| counts.offered += 1);
        let filled = &mut self.stations[station].filled[Direction::Forward];
        if *filled + packet > queue {
            self.count(channel, station, |counts| counts.dropped += 1);
            return;
        }
        *filled += packet;
        let fragments = Fragments::for_packet(packet, self.spec.mtu);
        let waiting =
            Waiting { load: Load::Others, size: packet, since: None, fragments, arrived: 0, attempts: 0 };
        self.stations[station].push(now, Direction::Forward, waiting);
        self.wake(now, station);
    }

    /// Counts for a station, where others share its air.
    fn count(&mut self, channel: usize, station: usize, count: impl FnOnce(&mut StationCounts)) {
        if let Some(cell) = &mut self.channels[channel].cell {
            count(cell.count(station));
        }
    }

    /// An idle station with packets tries to send as soon as it may.
    fn wake(&mut self, now: Instant, station: usize) {
        let radio = &mut self.stations[station];
        if radio.state == State::Idle && radio.has_packets() {
            radio.wake += 1;
            let number = radio.wake;
            self.events.push(now.max(radio.not_before), Event::Wake { station, number });
        }
    }

    /// Idle to poll.
    fn call(&mut self, now: Instant, station: usize) {
        let radio = &self.stations[station];
        let (State::Idle, Some(direction)) = (&radio.state, radio.next_direction()) else { return };
        if now.saturating_since(radio.progress) > self.spec.give_up_after {
            return self.give_up(now, station);
        }
        let (_, channel) = self.neighbour(station, direction);
        if let Some(cell) = &self.channels[channel].cell
            && let busy = cell.holds_until(station)
            && busy > now
        {
            return self.hold_back(station, channel, busy);
        }
        self.account_silence(now, channel);
        self.channels[channel].calls += 1;
        let on_air = now + self.retune(station, direction) + self.spec.turn_to_send();
        let (heard, sent, silence) = match self.spec.poll {
            Some(_) => {
                let heard = on_air + self.spec.poll_time();
                (heard, heard, self.spec.poll_timeout())
            }
            // Sent unasked, it is all on the air before its sender misses the answer.
            None => {
                let burst = self.burst_time(station, direction);
                (on_air, on_air + burst, burst + self.spec.answer_time())
            }
        };
        if let Some(cell) = &mut self.channels[channel].cell {
            cell.count(station).calls += 1;
            cell.open(station, now);
            cell.transmit(now, station, on_air, heard);
        }
        self.events.push(heard, Event::Called { station });
        let radio = &mut self.stations[station];
        radio.state = State::Poll { direction, since: now, on_air, sent };
        let number = radio.wake;
        self.events.push(on_air + silence, Event::Unanswered { station, number });
    }

    /// A station that hears others waits until they are done, and for the gap of an exchange.
    fn hold_back(&mut self, station: usize, channel: usize, busy: Instant) {
        self.count(channel, station, |counts| counts.held_back += 1);
        let radio = &mut self.stations[station];
        radio.wake += 1;
        let (number, again) = (radio.wake, busy + radio.draw(self.spec.gap));
        self.events.push(again, Event::Wake { station, number });
    }

    /// A relay that has turned to its other neighbour changes the channel.
    fn retune(&self, station: usize, direction: Direction) -> Duration {
        let last = self.stations[station].called;
        let changes = last.is_some_and(|last| last != direction);
        if changes { self.spec.turnaround.retune } else { Duration::ZERO }
    }

    /// Air time of the burst that the station would send now.
    fn burst_time(&self, station: usize, direction: Direction) -> Duration {
        let frames = self.stations[station].queues[direction].iter().flat_map(|waiting| {
            (waiting.arrived..waiting.fragments.count()).map(|number| waiting.fragments.size(number))
        });
        frames.take(self.spec.burst as usize).map(|size| self.spec.frame_time(size)).sum()
    }

    /// The neighbour's part of a poll: idle to receive, or nothing.
    fn hear(&mut self, now: Instant, station: usize) {
        let State::Poll { direction, on_air, sent, .. } = self.stations[station].state else { return };
        let (neighbour, channel) = self.neighbour(station, direction);
        let Some(head) = self.stations[station].queues[direction].front() else { return };
        let size = head.size;
        let listens = self.stations[neighbour].state == State::Idle
            && !self.is_hit(channel, neighbour, station, on_air, now);
        let answers = listens && self.takes(station, neighbour, direction, size);
        if self.channels[channel].cell.is_some() {
            if self.spec.poll.is_some() {
                // Its frames would come after two turnarounds and the answer.
                let frames = now + self.spec.hand_over() * 2 + self.spec.poll_time();
                let until = frames.max(on_air + self.spec.poll_timeout());
                self.overhear(channel, station, neighbour, (on_air, now), until);
            } else if !answers {
                self.occupy(now, channel, station, (now, sent), sent);
            }
        }
        if !answers {
            return;
        }
        self.account_silence(now, channel);
        self.stations[neighbour].state = State::Receive;
        // The caller no longer waits for nothing.
        self.stations[station].wake += 1;
        let Channel { calls, won, cell, .. } = &mut self.channels[channel];
        (*calls, *won) = (*calls - 1, *won + 1);
        if self.spec.poll.is_some() {
            let begins = now + self.spec.hand_over();
            let answered = begins + self.spec.poll_time();
            if let Some(cell) = cell {
                cell.transmit(now, neighbour, begins, answered);
            }
            self.events.push(answered, Event::Answered { station });
        } else {
            self.win(now, station, Duration::ZERO);
        }
    }

    /// Whether another transmission is heard by who receives this one.
    fn is_hit(&self, channel: usize, receiver: usize, sender: usize, from: Instant, until: Instant) -> bool {
        let cell = self.channels[channel].cell.as_ref();
        cell.is_some_and(|cell| cell.is_hit(receiver, sender, from, until))
    }

    /// Those that listen, and have heard all of what was said to somebody else, hold back until then.
    fn overhear(
        &mut self,
        channel: usize,
        speaker: usize,
        to: usize,
        said: (Instant, Instant),
        until: Instant,
    ) {
        let Some(cell) = &mut self.channels[channel].cell else { return };
        let stations = &self.stations;
        let hears = |&listener: &usize| {
            let listens = listener != to && stations[listener].state == State::Idle;
            listens && !cell.is_hit(listener, speaker, said.0, said.1)
        };
        let listeners: Vec<usize> = cell.listeners(speaker).filter(hears).collect();
        listeners.into_iter().for_each(|listener| cell.hold(listener, until));
    }

    /// A station sends frames or a link ACK; who hears it holds back until then.
    fn occupy(
        &mut self,
        now: Instant,
        channel: usize,
        station: usize,
        sent: (Instant, Instant),
        until: Instant,
    ) {
        let Some(cell) = &mut self.channels[channel].cell else { return };
        cell.transmit(now, station, sent.0, sent.1);
        // The two stations of the path call each other as if they were alone.
        let of_path = self.stations.len() - self.others.len();
        let hears = |&listener: &usize| listener.max(station) >= of_path;
        let listeners: Vec<usize> = cell.listeners(station).filter(hears).collect();
        listeners.into_iter().for_each(|listener| cell.hold(listener, until));
    }

    /// The answer to a poll ends: its caller has won, or did not understand it.
    fn hear_answer(&mut self, now: Instant, station: usize) {
        let State::Poll { direction, on_air, sent, .. } = self.stations[station].state else { return };
        let (neighbour, channel) = self.neighbour(station, direction);
        if self.channels[channel].cell.is_some() {
            let begun = sent + self.spec.hand_over();
            self.overhear(channel, neighbour, station, (begun, now), now + self.spec.hand_over());
            if self.is_hit(channel, station, neighbour, begun, now) {
                let Channel { calls, won, .. } = &mut self.channels[channel];
                (*calls, *won) = (*calls + 1, *won - 1);
                let number = self.stations[station].wake;
                let silence = (on_air + self.spec.poll_timeout()).max(now);
                self.events.push(silence, Event::Unanswered { station, number });
                // It waits for frames as long as for an answer.
                let forgotten = (begun + self.spec.poll_timeout()).max(now);
                self.events.push(forgotten, Event::Forgotten { station: neighbour });
                return;
            }
        }
        self.win(now, station, self.spec.hand_over());
    }

    /// Poll to send: the burst.
    fn win(&mut self, now: Instant, station: usize, turn: Duration) {
        let State::Poll { direction, since, .. } = self.stations[station].state else { return };
        let mut uses = vec![(AirUse::Turnaround, self.retune(station, direction) + self.spec.turn_to_send())];
        if self.spec.poll.is_some() {
            let poll = (AirUse::Poll, self.spec.poll_time());
            let hand_over = (AirUse::Turnaround, self.spec.hand_over());
            uses.extend([poll, hand_over, poll, hand_over]);
        }
        let radio = &mut self.stations[station];
        (radio.state, radio.called, radio.unanswered) = (State::Send, Some(direction), 0);
        let packets = radio.queues[direction].len();
        let (_, channel) = self.neighbour(station, direction);
        let exchange =
            Exchange { since, direction, uses, sent: now, gone: Bytes::ZERO, unacknowledged: Vec::new() };
        let mut burst = Burst {
            exchange,
            rate: self.spec.rate,
            answer: self.spec.answer_time(),
            packets,
            frames: 0,
            from: now + turn,
            sending: None,
            in_row: true,
            again: Vec::new(),
        };
        if self.channels[channel].cell.is_some() {
            return self.begin_frame_of_cell(now, station, Box::new(burst));
        }
        // Nothing else can happen to it: as it will arrive.
        while let Some(end) = self.begin_frame(station, &mut burst) {
            self.end_frame(end, station, &mut burst, false);
        }
        self.finish_burst(station, burst);
    }

    /// Sends the next frame of a burst, on an air that others use too, or ends it.
    fn begin_frame_of_cell(&mut self, now: Instant, station: usize, mut burst: Box<Burst<P>>) {
        let (neighbour, channel) = self.neighbour(station, burst.exchange.direction);
        let Some(end) = self.begin_frame(station, &mut burst) else {
            let (sent, over) = (burst.from, burst.from + burst.answer);
            if self.spec.link_ack.is_some() {
                self.occupy(now, channel, neighbour, (sent + self.spec.hand_over(), over), over);
            }
            return self.finish_burst(station, *burst);
        };
        self.occupy(now, channel, station, (burst.from, end), end + burst.answer);
        self.events.push(end, Event::Sent { station, burst });
    }

    fn end_frame_of_cell(&mut self, now: Instant, station: usize, mut burst: Box<Burst<P>>) {
        let (neighbour, channel) = self.neighbour(station, burst.exchange.direction);
        let hit = self.is_hit(channel, neighbour, station, burst.from, now);
        self.count(channel, station, |counts| {
            counts.frames += 1;
            counts.hit += u64::from(hit);
        });
        self.end_frame(now, station, &mut burst, hit);
        self.begin_frame_of_cell(now, station, burst);
    }

    /// When the next frame of a burst ends, if there is one.
    fn begin_frame(&mut self, station: usize, burst: &mut Burst<P>) -> Option<Instant> {
        let direction = burst.exchange.direction;
        if burst.frames == self.spec.burst {
            return None;
        }
        if burst.sending.is_none() {
            let (neighbour, _) = self.neighbour(station, direction);
            burst.packets = burst.packets.checked_sub(1)?;
            let size = self.stations[station].queues[direction].front()?.size;
            if !self.takes(station, neighbour, direction, size) {
                return None;
            }
            let mut waiting = self.stations[station].queues[direction].pop_front()?;
            if let (Some(since), Load::Packet(packet)) = (waiting.since.take(), &mut waiting.load) {
                packet.add_queueing(burst.from.saturating_since(since));
            }
            burst.sending = Some(Sending { number: waiting.arrived, waiting, damaged: false });
        }
        let Sending { waiting, number, .. } = burst.sending.as_ref()?;
        let size = waiting.fragments.size(*number) + self.spec.header;
        Some(burst.from + burst.rate.time_to_send(size))
    }

    /// A frame has been sent: what became of it, and of its packet where it was the last one.
    fn end_frame(&mut self, end: Instant, station: usize, burst: &mut Burst<P>, hit: bool) {
        let Some(Sending { mut waiting, number, mut damaged }) = burst.sending.take() else { return };
        let direction = burst.exchange.direction;
        let (neighbour, channel) = self.neighbour(station, direction);
        let time = end.saturating_since(burst.from);
        (burst.frames, burst.from) = (burst.frames + 1, end);
        let size = waiting.fragments.size(number) + self.spec.header;
        if self.other(station).is_none() {
            self.counts[direction].bytes_sent += size;
        }
        damaged |= self.stations[station].errors.happens(Chance::from(self.spec.ber.to_per(size))) || hit;
        let arrives = burst.in_row && !damaged;
        let useful = match &waiting.load {
            Load::Packet(packet) if packet.carries_data() => AirUse::Data,
            Load::Packet(_) => AirUse::Ack,
            Load::Others => AirUse::Others,
            Load::Repeated => AirUse::Damaged,
        };
        burst.exchange.uses.push((if arrives { useful } else { AirUse::Damaged }, time));
        if arrives {
            (waiting.arrived, waiting.attempts) = (number + 1, 0);
        } else if burst.in_row {
            waiting.attempts += 1;
            burst.in_row = self.spec.link_ack.is_none();
        }
        if number + 1 < waiting.fragments.count() && burst.frames < self.spec.burst {
            burst.sending = Some(Sending { waiting, number: number + 1, damaged });
            return;
        }
        let Some(outcome) = self.outcome(&waiting, damaged) else {
            burst.again.push(waiting);
            return;
        };
        burst.exchange.gone += waiting.size;
        let size = waiting.size;
        if !matches!(waiting.load, Load::Repeated) {
            self.count(channel, station, |counts| match outcome {
                Ok(()) => {
                    (counts.delivered, counts.delivered_bytes) =
                        (counts.delivered + 1, counts.delivered_bytes + size)
                }
                Err(_) => counts.dropped += 1,
            });
        }
        match (outcome, waiting.load) {
            (Ok(()), load) => {
                if self.channels[channel].cell.is_some() && self.spec.link_ack.is_some() {
                    let repeated = Waiting { load: Load::Repeated, arrived: 0, ..waiting };
                    burst.exchange.unacknowledged.push(repeated);
                }
                if let Load::Packet(packet) = load {
                    self.receive(end, neighbour, direction, packet, size, waiting.fragments);
                }
            }
            (Err(cause), Load::Packet(packet)) => self.drop_packet(end, direction, packet, cause),
            (Err(_), Load::Others | Load::Repeated) => {}
        }
    }

    /// All frames of a burst are sent: what is left is what the neighbour says of them.
    fn finish_burst(&mut self, station: usize, burst: Burst<P>) {
        let Burst { mut exchange, from: sent, answer, rate, again, .. } = burst;
        let queue = &mut self.stations[station].queues[exchange.direction];
        again.into_iter().rev().for_each(|waiting| queue.push_front(waiting));
        if let Some(ack) = self.spec.link_ack {
            exchange.uses.push((AirUse::Turnaround, self.spec.hand_over()));
            exchange.uses.push((AirUse::LinkAck, rate.time_to_send(ack)));
        }
        exchange.sent = sent;
        self.events.push(sent + answer, Event::Over { station, exchange });
    }

    /// What becomes of a packet of which some frames have been sent; nothing yet where there are more to send.
    fn outcome(&self, waiting: &Waiting<P>, damaged: bool) -> Option<Result<(), DropCause>> {
        if waiting.arrived == waiting.fragments.count() {
            return Some(Ok(()));
        }
        if self.spec.link_ack.is_none() {
            return damaged.then_some(Err(DropCause::BitErrors));
        }
        self.spec.attempts.filter(|&most| waiting.attempts >= most).map(|_| Err(DropCause::LinkRetries))
    }

    /// A packet has arrived at a station: it goes on from there, or leaves.
    fn receive(
        &mut self,
        at: Instant,
        station: usize,
        direction: Direction,
        packet: P,
        size: Bytes,
        fragments: Fragments,
    ) {
        let due = at + self.spec.processing;
        let place = self.place(station);
        if place == self.end(direction) {
            self.left.push(due, (direction, packet, None));
        } else if self.has_room(station, direction, size) {
            self.fill(station, direction, size);
            let waiting =
                Waiting { load: Load::Packet(packet), size, since: None, fragments, arrived: 0, attempts: 0 };
            self.events.push(due, Event::Processed { place, direction, waiting });
        } else {
            self.drop_packet(due, direction, packet, DropCause::QueueOverflow);
        }
    }

    fn fill(&mut self, station: usize, direction: Direction, size: Bytes) {
        let filled = &mut self.stations[station].filled[direction];
        *filled += size;
        let most = &mut self.counts[direction].max_backlog;
        *most = (*most).max(*filled);
    }

    /// A packet that came in is lost inside.
    fn drop_packet(&mut self, at: Instant, direction: Direction, packet: P, cause: DropCause) {
        self.counts[direction].dropped.add(cause);
        self.left.push(at, (direction, packet, Some(cause)));
    }

    /// Poll to idle: nobody answered.
    fn back_off(&mut self, now: Instant, station: usize) {
        let State::Poll { direction, since, .. } = self.stations[station].state else { return };
        let (_, channel) = self.neighbour(station, direction);
        self.channels[channel].calls -= 1;
        let on_air = match self.spec.poll {
            Some(_) => self.spec.poll_time(),
            None => self.burst_time(station, direction),
        };
        let of_path = self.other(station).is_none();
        let Channel { ledger, cell, .. } = &mut self.channels[channel];
        if let Some(cell) = cell {
            cell.count(station).unanswered += 1;
            cell.close(now, station, [Done { from: since, until: now, what: AirUse::Collision }], ledger);
            if of_path {
                ledger.add_sent(AirUse::Collision, on_air);
            }
        } else {
            ledger.charge_call(now, on_air);
        }
        let Backoff { base, max_exponent } = self.spec.backoff;
        let radio = &mut self.stations[station];
        radio.unanswered = radio.unanswered.saturating_add(1);
        let wait = base.doubled(radio.unanswered.min(max_exponent));
        radio.not_before = now + wait + radio.draw(wait) + base * 2;
        (radio.state, radio.called) = (State::Idle, Some(direction));
        self.wake(now, station);
    }

    /// Send and receive to idle.
    fn end_exchange(&mut self, now: Instant, station: usize, mut exchange: Exchange<P>) {
        let direction = exchange.direction;
        let (neighbour, channel) = self.neighbour(station, direction);
        let of_path = self.other(station).is_none();
        let Channel { ledger, cell, won, .. } = &mut self.channels[channel];
        *won -= 1;
        if let Some(cell) = cell {
            let mut done = Vec::new();
            let mut from = exchange.since;
            for &(what, time) in exchange.uses.iter().filter(|_| of_path) {
                done.push(Done { from, until: from + time, what });
                from += time;
                if what.is_sending() {
                    ledger.add_sent(what, time);
                }
            }
            if !of_path {
                done.push(Done { from, until: now, what: AirUse::Others });
            }
            cell.close(now, station, done, ledger);
        } else {
            ledger.charge_all(exchange.since, &exchange.uses);
        }
        if self.spec.link_ack.is_some()
            && self.is_hit(channel, station, neighbour, exchange.sent + self.spec.hand_over(), now)
        {
            // Who sent the burst does not know that it arrived, and sends it again.
            let queue = &mut self.stations[station].queues[direction];
            for waiting in mem::take(&mut exchange.unacknowledged).into_iter().rev() {
                exchange.gone -= waiting.size;
                queue.push_front(waiting);
            }
        }
        let caller = &mut self.stations[station];
        caller.filled[direction] -= exchange.gone;
        if exchange.gone > Bytes::ZERO {
            caller.progress = now;
        }
        for station in [station, neighbour] {
            let radio = &mut self.stations[station];
            radio.state = State::Idle;
            radio.not_before = radio.not_before.max(now + radio.draw(self.spec.gap));
            self.wake(now, station);
        }
    }

    /// What a channel's use takes of its two ends, each of the stations between two hops by half.
    fn energy(&self, power: RadioPower, time: AirTime, sent: AirTime) -> AirEnergy {
        let (send, listen) = (power.send.as_watts_f64(), power.listen.as_watts_f64());
        let transceivers = f64::from(self.spec.hops + 1) / f64::from(self.spec.hops);
        AirEnergy::from_fn(|what| {
            let (time, sent) = (time.time_in(what).as_secs_f64(), sent.time_in(what).as_secs_f64());
            send * sent + listen * (transceivers * time - sent).max(0.0)
        })
    }

    /// The watchdog: a station that gets rid of nothing drops what it has.
    fn give_up(&mut self, now: Instant, station: usize) {
        for direction in Direction::BOTH {
            if self.stations[station].queues[direction].is_empty() {
                continue;
            }
            let (_, channel) = self.neighbour(station, direction);
            self.account_silence(now, channel);
            for waiting in mem::take(&mut self.stations[station].queues[direction]) {
                self.stations[station].filled[direction] -= waiting.size;
                if !matches!(waiting.load, Load::Repeated) {
                    self.count(channel, station, |counts| counts.dropped += 1);
                }
                if let Load::Packet(packet) = waiting.load {
                    self.drop_packet(now, direction, packet, DropCause::Stalled);
                }
            }
        }
    }
}

impl<P: PathPacket + Clone> PathElement<P> for Radio<P> {
    fn offer(&mut self, now: Instant, direction: Direction, packet: P) -> Verdict<P> {
        self.advance(now);
        self.counts[direction].offered += 1;
        let size = packet.wire_size();
        let place = self.end(direction.opposite());
        let station = self.number(place, direction);
        let cause = if self.spec.oversize != Oversize::Fragment && size > self.spec.mtu {
            Some(DropCause::Mtu)
        } else {
            (!self.has_room(station, direction, size)).then_some(DropCause::QueueOverflow)
        };
        if let Some(cause) = cause {
            self.counts[direction].dropped.add(cause);
            return Verdict::Dropped { at: now, cause, packet };
        }
        self.held += 1;
        self.fill(station, direction, size);
        let fragments = Fragments::for_packet(size, self.spec.mtu);
        self.enqueue(
            now,
            place,
            direction,
            Waiting { load: Load::Packet(packet), size, since: None, fragments, arrived: 0, attempts: 0 },
        );
        Verdict::Accepted
    }

    fn next_departure(&self) -> Option<Instant> {
        if self.is_others_alone() {
            return None;
        }
        Instant::earliest(self.left.next_due(), self.events.next_due())
    }

    fn take(&mut self, now: Instant) -> Option<Departure<P>> {
        while let Some(due) = self.events.next_due().filter(|&due| due <= now)
            && self.left.next_due().is_none_or(|left| due < left)
            && !self.is_others_alone()
        {
            self.happen();
        }
        self.left.next_due().filter(|&due| due <= now)?;
        let (due, (direction, packet, dropped)) = self.left.pop()?;
        self.held -= 1;
        Some(Departure { due, direction, packet, dropped })
    }

    fn held(&self) -> usize {
        self.held
    }

    fn backlog(&self, direction: Direction) -> Option<Bytes> {
        self.of_path().map(|station| station.filled[direction]).max()
    }

    fn counters(&self) -> Vec<ElementCounters> {
        let counters = |direction| {
            let Counts { offered, dropped, bytes_sent, max_backlog } = self.counts[direction];
            ElementCounters {
                name: self.name.clone(),
                direction,
                offered,
                delivered: offered - dropped.total(),
                duplicated: 0,
                marked: 0,
                dropped,
                link: Some(LinkCounters { bytes_sent, max_backlog }),
                own: None,
            }
        };
        Direction::BOTH.map(counters).into()
    }

    fn air(&self, now: Instant) -> Vec<ChannelTime> {
        if self.is_others_alone() && self.events.next_due().is_some_and(|due| due <= now) {
            // What others have done since, which nobody had to know until now.
            let mut until_now = self.clone();
            until_now.advance(now);
            return until_now.air(now);
        }
        let full = self.spec.duplex == Duplex::Full;
        let channel_time = |(number, channel): (usize, &Channel)| {
            let silent = (channel.calls == 0 && channel.won == 0).then(|| self.quiet_use(number));
            let time = channel.ledger.totals_at(now, silent);
            ChannelTime {
                name: self.name.clone(),
                hop: if full { number / 2 } else { number },
                direction: full.then(|| Direction::BOTH[number % 2]),
                energy: self.spec.power.map(|power| self.energy(power, time, channel.ledger.sent())),
                time,
                stations: channel.cell.as_ref().map_or(Vec::new(), |cell| cell.counts.clone()),
            }
        };
        self.channels.iter().enumerate().map(channel_time).collect()
    }
}
