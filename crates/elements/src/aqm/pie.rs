//! Proportional integral controller enhanced (RFC 8033), with the arithmetic of Linux's `sch_pie`.

use super::discipline::{Discipline, Effects, Fifo, Queued};
use super::{MTU, time_from, whole};
use crate::QueueLimit;
use crate::draw::Draws;
use crate::keys::Keys;
use farpath_path::{DropCause, Generator, PathPacket};
use farpath_units::{Bytes, Duration, Instant};

/// Parameters of PIE. The queueing delay is that of the packet that left last (`dq_rate_estimator` off).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pie {
    /// Queueing delay that it steers at.
    pub target: Duration,
    /// Between two looks at it.
    pub tupdate: Duration,
    /// Weight of the deviation from the target, in 1/16 per s.
    pub alpha: u32,
    /// Weight of its change, in 1/16 per s.
    pub beta: u32,
    /// Whether ECN-capable packets are marked where others are dropped, up to [`Pie::ecn_prob`].
    pub ecn: bool,
    /// Probability in percent above which ECN-capable packets are dropped too (RFC 8033 §5.1).
    pub ecn_prob: u32,
    /// Whether short packets are dropped less often.
    pub bytemode: bool,
}

impl Pie {
    /// Of Linux's `pie` and `fq_pie`.
    pub const DEFAULT: Pie = Pie {
        target: Duration::from_millis(15),
        tupdate: Duration::from_millis(15),
        alpha: 2,
        beta: 20,
        ecn: false,
        ecn_prob: 10,
        bytemode: false,
    };

    pub(super) fn read<K: Keys>(keys: &mut K) -> Result<Pie, K::Error> {
        let default = Pie::DEFAULT;
        Ok(Pie {
            target: time_from(keys, "target", Duration::from_micros(10), default.target)?,
            tupdate: time_from(keys, "tupdate", Duration::from_millis(1), default.tupdate)?,
            alpha: whole(keys, "alpha", 0..=32, default.alpha)?,
            beta: whole(keys, "beta", 0..=32, default.beta)?,
            ecn: keys.or("ecn", default.ecn)?,
            ecn_prob: whole(keys, "ecn_prob", 0..=100, default.ecn_prob)?,
            bytemode: keys.or("bytemode", default.bytemode)?,
        })
    }

    pub(super) fn draw(draws: &mut Draws) -> Pie {
        Pie {
            target: draws.microseconds(100..=50_000),
            tupdate: draws.microseconds(1000..=50_000),
            alpha: draws.between(0..=32) as u32,
            beta: draws.between(0..=32) as u32,
            ecn: draws.chance(50),
            ecn_prob: draws.between(0..=100) as u32,
            bytemode: draws.chance(50),
        }
    }
}

/// A probability of one (`MAX_PROB`).
const CERTAIN: u64 = u64::MAX >> 8;
/// Nanoseconds of a tick of the packet scheduler.
const TICK_NS: u64 = 64;
/// How long PIE drops nothing after a quiet time (RFC 8033 §4.4).
const BURST: Duration = Duration::from_millis(150);
/// Before Linux's timer looks for the first time.
pub(super) const FIRST_UPDATE: Duration = Duration::from_millis(500);

const fn ticks(time: Duration) -> u64 {
    time.as_nanos() / TICK_NS
}

/// When the controller looks next. It is no event: whoever is about to change what it looks at has it catch up before.
#[derive(Debug)]
pub(super) struct Updates {
    next: Instant,
    every: Duration,
}

impl Updates {
    pub fn new(first: Duration, every: Duration) -> Updates {
        Updates { next: Instant::ZERO + first, every }
    }

    /// Calls `update` with the time of each look that was due by `now`, until one says that nothing will change any more.
    pub fn catch_up(&mut self, now: Instant, mut update: impl FnMut(Instant) -> Settled) {
        while self.next <= now {
            let settled = update(self.next);
            self.next += self.every;
            if settled == Settled::Yes && self.next <= now {
                let behind = (now - self.next).as_nanos() / self.every.as_nanos() + 1;
                self.next += Duration::from_nanos(behind * self.every.as_nanos());
            }
        }
    }
}

/// Whether further looks at the same queue would change nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Settled {
    Yes,
    No,
}

/// State of the algorithm (`struct pie_vars`).
#[derive(Debug)]
pub(super) struct PieState {
    pie: Pie,
    probability: u64,
    accumulated: u64,
    burst_ticks: u64,
    delay_ticks: u64,
    delay_before_ticks: u64,
    dequeued: Option<Instant>,
}

impl PieState {
    pub fn new(pie: Pie) -> PieState {
        PieState {
            pie,
            probability: 0,
            accumulated: 0,
            burst_ticks: ticks(BURST),
            delay_ticks: 0,
            delay_before_ticks: 0,
            dequeued: None,
        }
    }

    /// Whether a packet of `size` is dropped before it joins a queue of `backlog` (`pie_drop_early`).
    fn drops_early(&mut self, backlog: u64, size: u64, generator: &mut Generator) -> bool {
        if self.burst_ticks > 0 {
            return false;
        }
        if self.delay_ticks < ticks(self.pie.target) / 2 && self.probability < CERTAIN / 5 {
            return false;
        }
        if backlog < 2 * MTU {
            return false;
        }
        let probability = match self.pie.bytemode {
            true if size <= MTU => size * (self.probability / MTU),
            _ => self.probability,
        };
        // Drops are spread: none before 0.85 of one is due, one for certain where 8.5 are (RFC 8033 §5.4).
        if probability == 0 {
            self.accumulated = 0;
        } else {
            self.accumulated = self.accumulated.saturating_add(probability);
        }
        if self.accumulated < CERTAIN / 100 * 85 {
            return false;
        }
        if self.accumulated >= CERTAIN / 2 * 17 {
            return true;
        }
        if generator.below(CERTAIN) < probability {
            self.accumulated = 0;
            return true;
        }
        false
    }

    /// Whether a packet is let in, marked perhaps.
    pub fn lets_in<P: PathPacket>(
        &mut self,
        backlog: u64,
        packet: &mut P,
        generator: &mut Generator,
        effects: &mut Effects<P>,
    ) -> bool {
        if !self.drops_early(backlog, packet.wire_size().0, generator) {
            return true;
        }
        // At 100 the product is rounded to below certainty.
        let up_to =
            if self.pie.ecn_prob == 100 { CERTAIN } else { CERTAIN / 100 * u64::from(self.pie.ecn_prob) };
        self.pie.ecn && self.probability <= up_to && effects.mark(packet)
    }

    /// A packet was dropped.
    pub fn dropped(&mut self) {
        self.accumulated = 0;
    }

    /// A packet leaves that came at `since`, and `backlog` stays (`pie_process_dequeue`).
    pub fn leaves(&mut self, now: Instant, since: Instant, backlog: u64) {
        self.delay_ticks = if backlog == 0 { 0 } else { ticks(now - since) };
        let passed = self.dequeued.map_or(0, |before| ticks(now - before));
        self.dequeued = Some(now);
        self.burst_ticks = self.burst_ticks.saturating_sub(passed);
    }

    /// Another probability by the delay and its change (`pie_calculate_probability`, RFC 8033 §4.2).
    pub fn update(&mut self, backlog: u64) -> Settled {
        let (delay, before) = (self.delay_ticks, self.delay_before_ticks);
        // Without a sample the backlog is that of a moment.
        let decays = !(delay == 0 && backlog != 0);
        let scale = |weight: u32| (u64::from(weight) * (CERTAIN / (1_000_000_000 / TICK_NS))) >> 4;
        let (mut alpha, mut beta) = (scale(self.pie.alpha), scale(self.pie.beta));
        // Small probabilities change in small steps (RFC 8033 §4.2).
        if self.probability < CERTAIN / 10 {
            (alpha, beta) = (alpha >> 1, beta >> 1);
            let mut power = 100;
            while power <= 1_000_000 && self.probability < CERTAIN / power {
                (alpha, beta) = (alpha >> 2, beta >> 2);
                power *= 10;
            }
        }
        let signed = |ticks: u64| i64::try_from(ticks).unwrap_or(i64::MAX);
        let weigh = |weight: u64, by: i64| signed(weight).saturating_mul(by);
        let mut delta = weigh(alpha, signed(delay) - signed(ticks(self.pie.target)))
            .saturating_add(weigh(beta, signed(delay) - signed(before)));
        let two_percent = signed(CERTAIN / 50);
        if delta > two_percent && self.probability >= CERTAIN / 10 {
            delta = signed(CERTAIN / 100 * 2);
        }
        if delay > ticks(Duration::from_millis(250)) {
            delta = delta.saturating_add(two_percent);
        }
        let old = self.probability;
        self.probability = match u64::try_from(delta) {
            Ok(more) => old.saturating_add(more).min(CERTAIN),
            Err(_) => old.saturating_sub(delta.unsigned_abs()),
        };
        if delay == 0 && before == 0 && decays {
            self.probability -= self.probability / 64;
        }
        let low = |ticks_now: u64| ticks_now < ticks(self.pie.target) / 2;
        if low(delay) && low(before) && self.probability == 0 {
            self.burst_ticks = ticks(BURST);
            self.dequeued = None;
            self.accumulated = 0;
        }
        self.delay_before_ticks = delay;
        let at_rest = self.probability == 0 && delay == before && low(delay);
        if at_rest { Settled::Yes } else { Settled::No }
    }
}

/// One queue with PIE.
#[derive(Debug)]
pub(super) struct PieQueue<P> {
    limit: QueueLimit,
    state: PieState,
    updates: Updates,
    generator: Generator,
    fifo: Fifo<P>,
}

impl<P: PathPacket> PieQueue<P> {
    pub fn new(limit: QueueLimit, pie: Pie, generator: Generator) -> PieQueue<P> {
        PieQueue {
            limit,
            state: PieState::new(pie),
            updates: Updates::new(FIRST_UPDATE, pie.tupdate),
            generator,
            fifo: Fifo::new(),
        }
    }

    fn catch_up(&mut self, now: Instant) {
        let backlog = self.fifo.bytes().0;
        self.updates.catch_up(now, |_| self.state.update(backlog));
    }
}

impl<P: PathPacket> Discipline<P> for PieQueue<P> {
    fn enqueue(
        &mut self,
        now: Instant,
        mut packet: P,
        idle_since: Option<Instant>,
        effects: &mut Effects<P>,
    ) -> Result<(), (P, DropCause)> {
        self.catch_up(now);
        if idle_since.is_none() && !self.fifo.has_room(self.limit, &packet) {
            self.state.dropped();
            return Err((packet, DropCause::QueueOverflow));
        }
        if !self.state.lets_in(self.fifo.bytes().0, &mut packet, &mut self.generator, effects) {
            self.state.dropped();
            return Err((packet, DropCause::Aqm));
        }
        self.fifo.push(now, packet);
        Ok(())
    }

    fn dequeue(&mut self, now: Instant, _effects: &mut Effects<P>) -> Option<Queued<P>> {
        self.catch_up(now);
        let packet = self.fifo.pop()?;
        self.state.leaves(now, packet.since, self.fifo.bytes().0);
        Some(packet)
    }

    fn len(&self) -> usize {
        self.fifo.len()
    }

    fn bytes(&self) -> Bytes {
        self.fifo.bytes()
    }
}
