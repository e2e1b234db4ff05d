//! Controlled delay (RFC 8289), with the arithmetic of Linux's `codel_impl.h`.

use super::discipline::{Discipline, Effects, Fifo, Queued};
use super::{MTU, time_from};
use crate::QueueLimit;
use crate::draw::Draws;
use crate::keys::Keys;
use farpath_path::{DropCause, PathPacket};
use farpath_units::{Bytes, Duration, Instant};

/// Parameters of CoDel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Codel {
    /// Standing queueing delay that is accepted.
    pub target: Duration,
    /// For how long it has to stand; a round trip of most flows.
    pub interval: Duration,
    /// Whether ECN-capable packets are marked where others are dropped.
    pub ecn: bool,
    /// Queueing delay above which ECN-capable packets are marked at once, besides.
    pub ce_threshold: Option<Duration>,
}

impl Codel {
    /// Of Linux's `codel`.
    pub const DEFAULT: Codel = Codel {
        target: Duration::from_millis(5),
        interval: Duration::from_millis(100),
        ecn: false,
        ce_threshold: None,
    };

    /// Of Linux's `fq_codel`.
    pub const IN_FLOW_QUEUES: Codel = Codel { ecn: true, ..Codel::DEFAULT };

    pub(super) fn read<K: Keys>(keys: &mut K, default: Codel) -> Result<Codel, K::Error> {
        Ok(Codel {
            target: time_from(keys, "target", Duration::from_micros(10), default.target)?,
            interval: time_from(keys, "interval", Duration::from_micros(10), default.interval)?,
            ecn: keys.or("ecn", default.ecn)?,
            ce_threshold: keys.optional("ce_threshold")?,
        })
    }

    pub(super) fn draw(draws: &mut Draws) -> Codel {
        Codel {
            target: draws.microseconds(100..=50_000),
            interval: draws.microseconds(1000..=500_000),
            ecn: draws.chance(50),
            ce_threshold: draws.option(|draws| draws.microseconds(10..=20_000)),
        }
    }
}

/// A time in units of 1024 ns (`codel_time_t`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ticks(u64);

impl Ticks {
    fn of_instant(at: Instant) -> Ticks {
        Ticks(at.as_nanos() >> 10)
    }

    const fn of_duration(time: Duration) -> Ticks {
        Ticks(time.as_nanos() >> 10)
    }
}

/// Where CoDel takes its packets from.
pub(super) trait Head<P> {
    /// The next one, less which the backlog is then.
    fn pop(&mut self) -> Option<Queued<P>>;
    /// IP bytes that wait, in all queues together.
    fn backlog(&self) -> u64;
}

/// State of the algorithm (RFC 8289 §5.1).
#[derive(Debug)]
pub(super) struct CodelState {
    codel: Codel,
    count: u32,
    last_count: u32,
    dropping: bool,
    /// Upper 16 of the 32 bits behind the point of 1/sqrt(count).
    reciprocal_root: u16,
    first_above: Option<Ticks>,
    drop_next: Ticks,
    /// Of the packet that was looked at last.
    sojourn: Ticks,
}

impl CodelState {
    pub fn new(codel: Codel) -> CodelState {
        CodelState {
            codel,
            count: 0,
            last_count: 0,
            dropping: false,
            reciprocal_root: 0,
            first_above: None,
            drop_next: Ticks(0),
            sojourn: Ticks(0),
        }
    }

    /// The fattest of many queues has lost so many packets: it is as if CoDel had dropped them (`fq_codel_drop`).
    pub fn add_drops(&mut self, packets: u32) {
        self.count = self.count.wrapping_add(packets);
    }

    /// One step of Newton's method: `x * (3 - count * x^2) / 2`.
    fn refine_root(&mut self) {
        let root = u64::from(self.reciprocal_root) << 16;
        let square = (root * root) >> 32;
        let value = ((3_u64 << 32).wrapping_sub(u64::from(self.count).wrapping_mul(square))) >> 2;
        let value = value.wrapping_mul(root) >> (32 - 2 + 1);
        self.reciprocal_root = (value >> 16) as u16;
    }

    /// `at + interval / sqrt(count)`.
    fn control_law(&self, at: Ticks) -> Ticks {
        let interval = Ticks::of_duration(self.codel.interval).0;
        let scaled = u128::from(interval) * u128::from(u32::from(self.reciprocal_root) << 16);
        Ticks(at.0 + (scaled >> 32) as u64)
    }

    /// Whether the delay has been above the target for an interval, as this packet leaves.
    fn should_drop<P>(&mut self, now: Ticks, packet: Option<&Queued<P>>, backlog: u64) -> bool {
        let Some(packet) = packet else {
            self.first_above = None;
            return false;
        };
        self.sojourn = Ticks(now.0 - Ticks::of_instant(packet.since).0);
        if self.sojourn < Ticks::of_duration(self.codel.target) || backlog <= MTU {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            None => {
                self.first_above = Some(Ticks(now.0 + Ticks::of_duration(self.codel.interval).0));
                false
            }
            Some(first_above) => now > first_above,
        }
    }

    /// The next packet, less those that are dropped before it (RFC 8289 §5.5).
    pub fn dequeue<P: PathPacket>(
        &mut self,
        now: Instant,
        head: &mut impl Head<P>,
        effects: &mut Effects<P>,
    ) -> Option<Queued<P>> {
        let now = Ticks::of_instant(now);
        let Some(first) = head.pop() else {
            self.dropping = false;
            return None;
        };
        let mut packet = Some(first);
        let drop = self.should_drop(now, packet.as_ref(), head.backlog());
        if self.dropping {
            if !drop {
                self.dropping = false;
            }
            while self.dropping && now >= self.drop_next {
                self.count = self.count.wrapping_add(1);
                self.refine_root();
                if let Some(queued) = &mut packet
                    && self.codel.ecn
                    && effects.mark(&mut queued.packet)
                {
                    self.drop_next = self.control_law(self.drop_next);
                    break;
                }
                effects.dropped.extend(packet.take().map(|queued| (queued.packet, DropCause::Aqm)));
                packet = head.pop();
                if self.should_drop(now, packet.as_ref(), head.backlog()) {
                    self.drop_next = self.control_law(self.drop_next);
                } else {
                    self.dropping = false;
                }
            }
        } else if drop {
            let marked = match &mut packet {
                Some(queued) if self.codel.ecn => effects.mark(&mut queued.packet),
                _ => false,
            };
            if !marked {
                effects.dropped.extend(packet.take().map(|queued| (queued.packet, DropCause::Aqm)));
                packet = head.pop();
                self.should_drop(now, packet.as_ref(), head.backlog());
            }
            self.dropping = true;
            // What controlled the queue a short while ago is where to begin (RFC 8289 §5.4).
            let delta = self.count.wrapping_sub(self.last_count);
            let recently =
                now.0.saturating_sub(self.drop_next.0) < 16 * Ticks::of_duration(self.codel.interval).0;
            if delta > 1 && delta <= u32::MAX / 2 && recently {
                self.count = delta;
                self.refine_root();
            } else {
                self.count = 1;
                self.reciprocal_root = u16::MAX;
            }
            self.last_count = self.count;
            self.drop_next = self.control_law(now);
        }
        if let Some(queued) = &mut packet
            && self.codel.ce_threshold.is_some_and(|threshold| self.sojourn > Ticks::of_duration(threshold))
        {
            effects.mark(&mut queued.packet);
        }
        packet
    }
}

/// One queue with CoDel.
#[derive(Debug)]
pub(super) struct CodelQueue<P> {
    limit: QueueLimit,
    state: CodelState,
    fifo: Fifo<P>,
}

impl<P: PathPacket> CodelQueue<P> {
    pub fn new(limit: QueueLimit, codel: Codel) -> CodelQueue<P> {
        CodelQueue { limit, state: CodelState::new(codel), fifo: Fifo::new() }
    }
}

impl<P: PathPacket> Head<P> for Fifo<P> {
    fn pop(&mut self) -> Option<Queued<P>> {
        Fifo::pop(self)
    }

    fn backlog(&self) -> u64 {
        self.bytes().0
    }
}

impl<P: PathPacket> Discipline<P> for CodelQueue<P> {
    fn enqueue(
        &mut self,
        now: Instant,
        packet: P,
        idle_since: Option<Instant>,
        _effects: &mut Effects<P>,
    ) -> Result<(), (P, DropCause)> {
        if idle_since.is_none() && !self.fifo.has_room(self.limit, &packet) {
            return Err((packet, DropCause::QueueOverflow));
        }
        self.fifo.push(now, packet);
        Ok(())
    }

    fn dequeue(&mut self, now: Instant, effects: &mut Effects<P>) -> Option<Queued<P>> {
        self.state.dequeue(now, &mut self.fifo, effects)
    }

    fn len(&self) -> usize {
        self.fifo.len()
    }

    fn bytes(&self) -> Bytes {
        self.fifo.bytes()
    }
}
