//! What was asked for, what was given, and which answers are believed.

use crate::{DriverSettings, IDLE, Trip};
use farpath_tia1039::{Message, Structure};
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
    /// Nothing was granted.
    Refused,
    /// What was granted was taken back: another flow has preempted it.
    Withdrawn,
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
    unit: farpath_tia1039::RateUnit,
    min_routers: u8,
    packets_between: u32,
    outcome: Outcome,
    /// What is granted: its AR and GR.
    granted: Structure,
    asked_at: Option<Instant>,
    /// An answer to what was asked is due: only such a one may raise the rate.
    pending: bool,
    packets: u32,
    counters: Counters,
}

impl Asking {
    pub fn new(settings: &DriverSettings) -> Asking {
        Asking {
            template: settings.request_structure(),
            unit: settings.unit,
            min_routers: settings.request.min_routers.max(1),
            packets_between: settings.request.packets_between.max(1),
            outcome: Outcome::Waiting,
            granted: Structure::default(),
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
        Rate::from_bit_per_s(units(&self.granted) * self.unit.bits()).filter(|_| granted)
    }

    /// What tells the routers that a guarantee is not needed any more. An Available Rate ends with the flow's FINs.
    pub fn close(&self) -> Option<Structure> {
        let guaranteed = self.outcome == Outcome::Granted && self.template.rate_type.has_guaranteed();
        guaranteed.then_some(Structure { message: Message::Close, ..self.template })
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
        let slow = self.retry_at(rtt).is_some_and(|at| at <= now);
        let due = (self.packets >= self.packets_between || slow || after_idle) && waited >= rtt;
        (self.outcome == Outcome::Granted && due).then(|| self.ask(now, Message::Renegotiate))
    }

    /// When more is asked for at the latest, with less than was asked for. A newcomer's first grant may be a trickle: 128 packets of it
    /// take seconds, and the next one too, in which there has long been room.
    pub fn retry_at(&self, rtt: Duration) -> Option<Instant> {
        let less = self.outcome == Outcome::Granted && units(&self.granted) < units(&self.template);
        self.asked_at.filter(|_| less && self.packets > 0).map(|at| at + SLOW.max(rtt * 8))
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

    /// The grant is not believed any more. Gives what tells the routers, so that others can have it.
    pub fn give_up(&mut self, trip: Trip) -> Structure {
        self.outcome = Outcome::GivenUp(trip);
        Structure { message: Message::Close, ..self.template }
    }

    /// An answer. A lower rate is obeyed at once, whoever asked; a higher one only where it was asked for, up to what was.
    /// Gives the confirmation of what was granted (CD 3), where less than the guarantee was: routers before the one that
    /// refused it let go of it.
    pub fn on_response(&mut self, told: &Structure) -> Option<Structure> {
        self.counters.responses += 1;
        let asked = &self.template;
        if self.asked_at.is_none() || !matches!(self.outcome, Outcome::Waiting | Outcome::Granted) {
            self.counters.unexpected += 1;
            return None;
        }
        let above = told.available.units() > asked.available.units()
            || told.guaranteed.units() > asked.guaranteed.units();
        if above || told.rate_type != asked.rate_type {
            self.counters.above_request += 1;
            return None;
        }
        let less_guaranteed = told.guaranteed.units() < asked.guaranteed.units();
        let confirmation = Structure {
            message: Message::Confirmation,
            available: told.available,
            guaranteed: told.guaranteed,
            ..*asked
        };
        // Where the word says less than was asked for, somebody on the way has lowered it, whether M can be seen or not.
        let (had, gets) = (units(&self.granted), units(told));
        let proven = told.mark >= self.min_routers || gets < units(asked) && self.min_routers == 1;
        let answers = core::mem::take(&mut self.pending);
        match self.outcome {
            Outcome::Waiting if !proven => self.outcome = Outcome::Plain(Plain::NoRouter),
            Outcome::Waiting if gets == 0 => self.outcome = Outcome::Plain(Plain::Refused),
            _ if gets == 0 => self.outcome = Outcome::Plain(Plain::Withdrawn),
            Outcome::Waiting => (self.outcome, self.granted) = (Outcome::Granted, *told),
            _ if gets < had => {
                self.counters.cuts += 1;
                self.granted = *told;
            }
            _ if gets > had => {
                if answers && proven {
                    self.counters.raises += 1;
                    self.granted = *told;
                } else {
                    self.counters.unasked_raises += 1;
                }
            }
            _ => {}
        }
        (answers && less_guaranteed).then_some(confirmation)
    }
}

/// Whether nothing was sent for so long that the rate is asked for again.
pub(super) fn is_idle(last_sent: Option<Instant>, now: Instant, rtt: Duration) -> bool {
    last_sent.is_some_and(|at| now.saturating_since(at) > IDLE.max(rtt))
}

/// What may be sent: AR and GR together, in units.
fn units(structure: &Structure) -> u64 {
    structure.available.units() + structure.guaranteed.units()
}

#[cfg(test)]
mod tests;
