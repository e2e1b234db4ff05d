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

mod fragments;
mod ledger;
mod spec;
mod station;

pub use spec::{Backoff, Duplex, Oversize, RadioPower, RadioSpec, Turnaround};

use crate::over_time::InRun;
use core::mem;
use farpath_path::Schedule;
use farpath_path::{
    AirEnergy, AirTime, AirUse, Chance, ChannelTime, Departure, Direction, DropCause, DropCounts,
    ElementCounters, LinkCounters, PathElement, PathPacket, PerDirection, Verdict,
};
use farpath_units::{Bytes, Duration, Instant, Rate};
use fragments::Fragments;
use ledger::Ledger;
use station::{State, Station, Waiting};

/// The stations of a [`RadioSpec`], and what is on the air between them.
#[derive(Debug)]
pub struct Radio<P> {
    name: String,
    /// With the rate of now.
    spec: RadioSpec,
    /// Where it changes over time.
    rate: Option<InRun<Rate>>,
    /// By place, and by direction where each has a transceiver of its own.
    stations: Vec<Station<P>>,
    /// Likewise, by hop.
    channels: Vec<Channel>,
    events: Schedule<Event<P>>,
    /// Packets that have crossed all hops or were lost, until they are taken.
    left: Schedule<(Direction, P, Option<DropCause>)>,
    held: usize,
    counts: PerDirection<Counts>,
}

/// What lies between two neighbours.
#[derive(Debug, Default)]
struct Channel {
    ledger: Ledger,
    /// Calls on it that are undecided.
    calls: u32,
    /// An exchange is under way.
    won: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    offered: u64,
    dropped: DropCounts,
    bytes_sent: Bytes,
    max_backlog: Bytes,
}

#[derive(Debug)]
enum Event<P> {
    /// A station may try to send.
    Wake { station: usize, number: u64 },
    /// A poll has been sent; without polls, a frame begins.
    Called { station: usize },
    /// The answer to its poll has reached a station.
    Answered { station: usize },
    /// A station has waited long enough for an answer.
    Unanswered { station: usize, number: u64 },
    /// Both stations are free again.
    Over { station: usize, exchange: Exchange },
    /// A station can send on what it has received.
    Processed { place: usize, direction: Direction, waiting: Waiting<P> },
}

/// A burst that was sent.
#[derive(Debug)]
struct Exchange {
    /// When the caller began to turn around.
    since: Instant,
    direction: Direction,
    /// What its time went into.
    uses: Vec<(AirUse, Duration)>,
    /// What left the caller's queue.
    gone: Bytes,
}

impl<P: PathPacket> Radio<P> {
    /// Stations that draw from `seed`.
    pub fn new(name: String, spec: &RadioSpec, seed: u64) -> Radio<P> {
        let hops = spec.hops as usize;
        let lanes = if spec.duplex == Duplex::Full { 2 } else { 1 };
        let stations = (0..(hops + 1) * lanes).map(|number| Station::new(seed, &name, number));
        Radio {
            stations: stations.collect(),
            channels: (0..hops * lanes).map(|_| Channel::default()).collect(),
            spec: spec.clone(),
            rate: spec.rate_over_time.as_ref().map(|rate| rate.in_run(&name, seed)),
            name,
            events: Schedule::new(),
            left: Schedule::new(),
            held: 0,
            counts: PerDirection::default(),
        }
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
        let place = self.place(station);
        let next = Radio::<P>::next_place(place, direction);
        (self.number(next, direction), self.number(place.min(next), direction))
    }

    /// Whether the station takes a packet of this size on its way; the last one always does.
    fn has_room(&self, station: usize, direction: Direction, size: Bytes) -> bool {
        self.place(station) == self.end(direction)
            || self.stations[station].filled[direction] + size <= self.spec.queue
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
        if ways.iter().any(waits) { AirUse::Backoff } else { AirUse::Idle }
    }

    /// Accounts for a channel's silence before something changes on it.
    fn account_silence(&mut self, now: Instant, channel: usize) {
        let quiet = self.quiet_use(channel);
        let Channel { ledger, calls: 0, won: false } = &mut self.channels[channel] else { return };
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
            self.spec.rate = rate.at(now);
        }
        match event {
            Event::Wake { station, number } => {
                if self.stations[station].wake == number {
                    self.call(now, station);
                }
            }
            Event::Called { station } => self.hear(now, station),
            Event::Answered { station } => self.win(now, station, self.spec.hand_over()),
            Event::Unanswered { station, number } => {
                if self.stations[station].wake == number {
                    self.back_off(now, station);
                }
            }
            Event::Over { station, exchange } => self.end_exchange(now, station, &exchange),
            Event::Processed { place, direction, waiting } => self.enqueue(now, place, direction, waiting),
        }
    }

    /// Puts a packet, whose bytes its queue counts already, where it can be sent from.
    fn enqueue(&mut self, now: Instant, place: usize, direction: Direction, waiting: Waiting<P>) {
        let station = self.number(place, direction);
        let (_, channel) = self.neighbour(station, direction);
        self.account_silence(now, channel);
        self.stations[station].push(now, direction, waiting);
        self.wake(now, station);
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
        self.account_silence(now, channel);
        self.channels[channel].calls += 1;
        let on_air = now + self.retune(station, direction) + self.spec.turn_to_send();
        let (heard, silence) = match self.spec.poll {
            Some(_) => (on_air + self.spec.poll_time(), self.spec.poll_timeout()),
            // Sent unasked, it is all on the air before its sender misses the answer.
            None => (on_air, self.burst_time(station, direction) + self.spec.answer_time()),
        };
        self.events.push(heard, Event::Called { station });
        let radio = &mut self.stations[station];
        radio.state = State::Poll { direction, since: now };
        let number = radio.wake;
        self.events.push(on_air + silence, Event::Unanswered { station, number });
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
        let State::Poll { direction, .. } = self.stations[station].state else { return };
        let (neighbour, channel) = self.neighbour(station, direction);
        let Some(head) = self.stations[station].queues[direction].front() else { return };
        let listens = self.stations[neighbour].state == State::Idle;
        if !listens || (self.spec.flow_control && !self.has_room(neighbour, direction, head.size)) {
            return;
        }
        self.account_silence(now, channel);
        self.stations[neighbour].state = State::Receive;
        // The caller no longer waits for nothing.
        self.stations[station].wake += 1;
        let Channel { calls, won, .. } = &mut self.channels[channel];
        (*calls, *won) = (*calls - 1, true);
        if self.spec.poll.is_some() {
            let answered = now + self.spec.hand_over() + self.spec.poll_time();
            self.events.push(answered, Event::Answered { station });
        } else {
            self.win(now, station, Duration::ZERO);
        }
    }

    /// Poll to send: the burst, as it will arrive.
    fn win(&mut self, now: Instant, station: usize, turn: Duration) {
        let State::Poll { direction, since } = self.stations[station].state else { return };
        let mut uses = vec![(AirUse::Turnaround, self.retune(station, direction) + self.spec.turn_to_send())];
        if self.spec.poll.is_some() {
            let poll = (AirUse::Poll, self.spec.poll_time());
            let hand_over = (AirUse::Turnaround, self.spec.hand_over());
            uses.extend([poll, hand_over, poll, hand_over]);
        }
        let radio = &mut self.stations[station];
        (radio.state, radio.called, radio.unanswered) = (State::Send, Some(direction), 0);
        let mut exchange = Exchange { since, direction, uses, gone: Bytes::ZERO };
        let sent = self.send_burst(now + turn, station, &mut exchange);
        if let Some(ack) = self.spec.link_ack {
            exchange.uses.push((AirUse::Turnaround, self.spec.hand_over()));
            exchange.uses.push((AirUse::LinkAck, self.spec.rate.time_to_send(ack)));
        }
        self.events.push(sent + self.spec.answer_time(), Event::Over { station, exchange });
    }

    /// Sends up to a burst of frames from `at` on, and hands over what arrives of them; gives when the last one ends.
    fn send_burst(&mut self, mut at: Instant, station: usize, exchange: &mut Exchange) -> Instant {
        let direction = exchange.direction;
        let (neighbour, _) = self.neighbour(station, direction);
        let mut frames = 0;
        // With link ACKs only what arrives in a row counts, as the link keeps packets in order.
        let mut in_row = true;
        let mut again = Vec::new();
        while frames < self.spec.burst {
            let Some(head) = self.stations[station].queues[direction].front() else { break };
            if self.spec.flow_control && !self.has_room(neighbour, direction, head.size) {
                break;
            }
            let Some(mut waiting) = self.stations[station].queues[direction].pop_front() else { break };
            if let Some(since) = waiting.since.take() {
                waiting.packet.add_queueing(at.saturating_since(since));
            }
            let useful = if waiting.packet.carries_data() { AirUse::Data } else { AirUse::Ack };
            let mut damaged = false;
            for number in waiting.arrived..waiting.fragments.count() {
                if frames == self.spec.burst {
                    break;
                }
                frames += 1;
                let size = waiting.fragments.size(number) + self.spec.header;
                let time = self.spec.rate.time_to_send(size);
                at += time;
                self.counts[direction].bytes_sent += size;
                damaged |= self.stations[station].errors.happens(Chance::from(self.spec.ber.to_per(size)));
                let arrives = in_row && !damaged;
                exchange.uses.push((if arrives { useful } else { AirUse::Damaged }, time));
                if arrives {
                    (waiting.arrived, waiting.attempts) = (number + 1, 0);
                } else if in_row {
                    waiting.attempts += 1;
                    in_row = self.spec.link_ack.is_none();
                }
            }
            match self.outcome(&waiting, damaged) {
                Some(Ok(())) => {
                    exchange.gone += waiting.size;
                    self.receive(at, neighbour, direction, waiting);
                }
                Some(Err(cause)) => {
                    exchange.gone += waiting.size;
                    self.drop_packet(at, direction, waiting.packet, cause);
                }
                None => again.push(waiting),
            }
        }
        let queue = &mut self.stations[station].queues[direction];
        again.into_iter().rev().for_each(|waiting| queue.push_front(waiting));
        at
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
    fn receive(&mut self, at: Instant, station: usize, direction: Direction, waiting: Waiting<P>) {
        let due = at + self.spec.processing;
        let place = self.place(station);
        if place == self.end(direction) {
            self.left.push(due, (direction, waiting.packet, None));
        } else if self.has_room(station, direction, waiting.size) {
            self.fill(station, direction, waiting.size);
            let waiting = Waiting { arrived: 0, attempts: 0, ..waiting };
            self.events.push(due, Event::Processed { place, direction, waiting });
        } else {
            self.drop_packet(due, direction, waiting.packet, DropCause::QueueOverflow);
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
        let State::Poll { direction, .. } = self.stations[station].state else { return };
        let (_, channel) = self.neighbour(station, direction);
        self.channels[channel].calls -= 1;
        let on_air = match self.spec.poll {
            Some(_) => self.spec.poll_time(),
            None => self.burst_time(station, direction),
        };
        self.channels[channel].ledger.charge_call(now, on_air);
        let Backoff { base, max_exponent } = self.spec.backoff;
        let radio = &mut self.stations[station];
        radio.unanswered = radio.unanswered.saturating_add(1);
        let wait = base.doubled(radio.unanswered.min(max_exponent));
        radio.not_before = now + wait + radio.draw(wait) + base * 2;
        (radio.state, radio.called) = (State::Idle, Some(direction));
        self.wake(now, station);
    }

    /// Send and receive to idle.
    fn end_exchange(&mut self, now: Instant, station: usize, exchange: &Exchange) {
        let direction = exchange.direction;
        let (neighbour, channel) = self.neighbour(station, direction);
        self.channels[channel].won = false;
        self.channels[channel].ledger.charge_all(exchange.since, &exchange.uses);
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
            let (time, sent) = (time.of(what).as_secs_f64(), sent.of(what).as_secs_f64());
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
                self.drop_packet(now, direction, waiting.packet, DropCause::Stalled);
            }
        }
    }
}

impl<P: PathPacket> PathElement<P> for Radio<P> {
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
        let fragments = Fragments::of(size, self.spec.mtu);
        self.enqueue(
            now,
            place,
            direction,
            Waiting { packet, size, since: None, fragments, arrived: 0, attempts: 0 },
        );
        Verdict::Accepted
    }

    fn next_departure(&self) -> Option<Instant> {
        Instant::earliest(self.left.next_due(), self.events.next_due())
    }

    fn take(&mut self, now: Instant) -> Option<Departure<P>> {
        while let Some(due) = self.events.next_due().filter(|&due| due <= now)
            && self.left.next_due().is_none_or(|left| due < left)
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
        self.stations.iter().map(|station| station.filled[direction]).max()
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
        let full = self.spec.duplex == Duplex::Full;
        let channel_time = |(number, channel): (usize, &Channel)| {
            let silent = (channel.calls == 0 && !channel.won).then(|| self.quiet_use(number));
            let time = channel.ledger.at(now, silent);
            ChannelTime {
                name: self.name.clone(),
                hop: if full { number / 2 } else { number },
                direction: full.then(|| Direction::BOTH[number % 2]),
                energy: self.spec.power.map(|power| self.energy(power, time, channel.ledger.sent())),
                time,
            }
        };
        self.channels.iter().enumerate().map(channel_time).collect()
    }
}
