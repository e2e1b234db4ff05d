//! What was asked for, what was given, and which answers are believed.

use super::{DriverSettings, Trip};
use crate::{Message, RateWord, Rounding, Structure};
use farpath_units::{Duration, Instant, Rate};

/// With less than was asked for, more is asked for after so long, or eight round trips, however few packets it was.
const SLOW: Duration = Duration::from_millis(500);

/// What has come of asking for a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Nothing was heard yet.
    Waiting,
    /// Data is sent at a grant.
    Granted,
    /// Data is sent as ever.
    Plain(Plain),
    /// A grant was given up, for good.
    GivenUp(Trip),
}

/// Why there is no grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Plain {
    /// The peer did not answer the request.
    PeerIncapable,
    /// No router, or too few, have marked the answer: nobody has reserved anything.
    NoRouter,
    /// The grant is zero.
    Refused,
}

/// Counts of what was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Requests, renegotiations and resent requests sent.
    pub asked: u64,
    /// Answers received.
    pub responses: u64,
    /// Of these: the rate was lowered, and raised.
    pub cuts: u64,
    /// See [`Counters::cuts`].
    pub raises: u64,
    /// Above what was asked for: nobody who follows the protocol says so.
    pub above_request: u64,
    /// Raises that nobody had asked for, or that no router has marked.
    pub unasked_raises: u64,
    /// Answers to nothing, or after the grant was given up.
    pub unexpected: u64,
}

/// The requester's half.
#[derive(Debug, Clone)]
pub(super) struct Asking {
    template: Structure,
    unit: crate::RateUnit,
    min_routers: u8,
    packets_between: u32,
    outcome: Outcome,
    /// AR as granted.
    granted: RateWord,
    asked_at: Option<Instant>,
    /// An answer to what was asked is due: only such a one may raise the rate.
    pending: bool,
    packets: u32,
    counters: Counters,
}

impl Asking {
    pub fn new(settings: &DriverSettings) -> Asking {
        let template = Structure {
            available: settings.unit.encode(settings.wanted.bit_per_s(), Rounding::Up),
            preemption: settings.preemption,
            delay: settings.delay,
            burst: settings.burst,
            version: settings.version,
            ..Structure::default()
        };
        Asking {
            template,
            unit: settings.unit,
            min_routers: settings.min_routers.max(1),
            packets_between: settings.packets_between.max(1),
            outcome: Outcome::Waiting,
            granted: RateWord::ZERO,
            asked_at: None,
            pending: false,
            packets: 0,
            counters: Counters::default(),
        }
    }

    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    pub fn granted(&self) -> Option<Rate> {
        let granted = self.outcome == Outcome::Granted;
        Rate::from_bit_per_s(self.unit.decode(self.granted)).filter(|_| granted)
    }

    fn ask(&mut self, now: Instant, message: Message) -> Structure {
        self.counters.asked += 1;
        (self.asked_at, self.pending, self.packets) = (Some(now), true, 0);
        Structure { message, ..self.template }
    }

    /// The request of a SYN or SYN/ACK.
    pub fn request(&mut self, now: Instant) -> Structure {
        self.ask(now, Message::Request)
    }

    /// A router has lost, or never had, what it should know: the same again, with what is granted.
    pub fn resend(&mut self, now: Instant) -> Option<Structure> {
        let recently = self.asked_at.is_some_and(|at| now == at);
        (self.outcome == Outcome::Granted && !recently).then(|| self.ask(now, Message::ResendStart))
    }

    /// A renegotiation, where one is due.
    pub fn renegotiate(&mut self, now: Instant, rtt: Duration, after_idle: bool) -> Option<Structure> {
        let waited = self.asked_at.map_or(Duration::MAX, |at| now.saturating_since(at));
        // A newcomer's first grant may be a trickle: 128 packets of it take seconds, in which there has long been room.
        let slow = self.granted.units() < self.template.available.units() && waited >= SLOW.max(rtt * 8);
        let due =
            (self.packets >= self.packets_between || slow && self.packets > 0 || after_idle) && waited >= rtt;
        (self.outcome == Outcome::Granted && due).then(|| self.ask(now, Message::Renegotiate))
    }

    /// A data packet left.
    pub fn count_packet(&mut self) {
        self.packets = self.packets.saturating_add(1);
    }

    /// No answer will come.
    pub fn peer_is_incapable(&mut self) {
        if self.outcome == Outcome::Waiting {
            self.outcome = Outcome::Plain(Plain::PeerIncapable);
        }
    }

    /// The grant is not believed any more.
    pub fn give_up(&mut self, trip: Trip) {
        self.outcome = Outcome::GivenUp(trip);
    }

    /// An answer. A lower rate is obeyed at once, whoever asked; a higher one only where it was asked for, up to what was.
    pub fn on_response(&mut self, response: &Structure) {
        self.counters.responses += 1;
        let asked = self.template.available;
        if self.asked_at.is_none() || !matches!(self.outcome, Outcome::Waiting | Outcome::Granted) {
            self.counters.unexpected += 1;
            return;
        }
        let told = response.available;
        if told.units() > asked.units() || !response.rate_type.has_available() {
            self.counters.above_request += 1;
            return;
        }
        // Where the word says less than was asked for, somebody on the way has lowered it, whether M can be seen or not.
        let proven =
            response.mark >= self.min_routers || told.units() < asked.units() && self.min_routers == 1;
        let answers = core::mem::take(&mut self.pending);
        match self.outcome {
            Outcome::Waiting if !proven => self.outcome = Outcome::Plain(Plain::NoRouter),
            _ if told.units() == 0 => self.outcome = Outcome::Plain(Plain::Refused),
            Outcome::Waiting => (self.outcome, self.granted) = (Outcome::Granted, told),
            _ if told.units() < self.granted.units() => {
                self.counters.cuts += 1;
                self.granted = told;
            }
            _ if told.units() > self.granted.units() => {
                if answers && proven {
                    self.counters.raises += 1;
                    self.granted = told;
                } else {
                    self.counters.unasked_raises += 1;
                }
            }
            _ => {}
        }
    }
}
