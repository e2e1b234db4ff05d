//! One radio: what it does, what it holds, when it tries next.

use crate::radio::fragments::Fragments;
use farpath_path::{Direction, Generator, PerDirection};
use farpath_units::{Bytes, Duration, Instant};
use std::collections::VecDeque;

/// What a transceiver does. It hears a call only while it is idle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    /// It listens, with or without packets to send.
    Idle,
    /// It turns around, calls the next station of this direction, and waits for the answer. It hears nobody else.
    /// Its poll, or all that it sends unasked, is on the air from `on_air` until `sent`.
    Poll { direction: Direction, since: Instant, on_air: Instant, sent: Instant },
    /// It has been won by the station that called.
    Receive,
    /// It has won, and sends.
    Send,
}

/// What a packet is to those who offered it.
#[derive(Debug, Clone)]
pub(crate) enum Load<P> {
    /// One of the path.
    Packet(P),
    /// One of other stations.
    Others,
    /// One that has arrived, of which its sender does not know so: the link ACK was hit.
    Repeated,
}

/// A packet that waits at a station.
#[derive(Debug, Clone)]
pub(crate) struct Waiting<P> {
    pub load: Load<P>,
    pub size: Bytes,
    /// Since when it waits to be sent for the first time.
    pub since: Option<Instant>,
    pub fragments: Fragments,
    /// Fragments that the next station has.
    pub arrived: u64,
    /// How often the next fragment has been sent.
    pub attempts: u32,
}

/// A radio, or one of a full-duplex radio's two.
#[derive(Debug, Clone)]
pub(crate) struct Station<P> {
    pub state: State,
    pub queues: PerDirection<VecDeque<Waiting<P>>>,
    /// Bytes in each queue, on their way into it, and sent out of it without being acknowledged yet.
    pub filled: PerDirection<Bytes>,
    /// It does not try to send before.
    pub not_before: Instant,
    /// Which of its wake-ups counts, and which end of its wait for an answer.
    pub wake: u64,
    /// Calls in a row that nobody answered.
    pub unanswered: u32,
    /// The direction that it called last.
    pub called: Option<Direction>,
    /// When it last got rid of a packet, or began to have some.
    pub progress: Instant,
    /// For waits.
    pub waits: Generator,
    /// For the frames that it sends.
    pub errors: Generator,
}

impl<P> Station<P> {
    /// The random numbers of a station belong to its name: one more hop changes nobody else's.
    pub fn new(seed: u64, name: &str) -> Station<P> {
        let draws = Generator::per_direction(seed, name);
        Station {
            state: State::Idle,
            queues: PerDirection::from_fn(|_| VecDeque::new()),
            filled: PerDirection::default(),
            not_before: Instant::ZERO,
            wake: 0,
            unanswered: 0,
            called: None,
            progress: Instant::ZERO,
            waits: draws.forward,
            errors: draws.reverse,
        }
    }

    pub fn has_packets(&self) -> bool {
        Direction::BOTH.iter().any(|&direction| !self.queues[direction].is_empty())
    }

    /// The direction to call next: the two in turn, where both have something.
    pub fn next_direction(&self) -> Option<Direction> {
        let first = self.called.map_or(Direction::Forward, Direction::opposite);
        [first, first.opposite()].into_iter().find(|&direction| !self.queues[direction].is_empty())
    }

    /// A time from zero to `longest`.
    pub fn draw(&mut self, longest: Duration) -> Duration {
        Duration::from_nanos(self.waits.below(longest.as_nanos()))
    }

    /// Takes what was on its way into the queue, or what came in from outside.
    pub fn push(&mut self, now: Instant, direction: Direction, waiting: Waiting<P>) {
        let waiting = Waiting { since: Some(now), ..waiting };
        if !self.has_packets() {
            self.progress = now;
        }
        self.queues[direction].push_back(waiting);
    }
}
