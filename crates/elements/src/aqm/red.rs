//! Random early detection (Floyd and Jacobson 1993), with the arithmetic of Linux's `sch_red` and of what `tc` computes for it.

use super::MTU;
use super::discipline::{Discipline, Effects, Fifo, Queued};
use crate::QueueLimit;
use crate::draw::Draws;
use crate::keys::Keys;
use farpath_path::{DropCause, Generator, PathPacket};
use farpath_units::{Bytes, Instant, Probability, Rate};

/// Parameters of RED, as `tc` has them. Adaptive RED, `harddrop` and `nodrop` are left out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Red {
    /// Mean queue from which on it drops; a third of `max` where there is none.
    pub min: Option<Bytes>,
    /// Mean queue from which on it drops everything; three times `min`, or a quarter of the queue's limit, where there is none.
    pub max: Option<Bytes>,
    /// Probability of a drop just below `max`; 2 % where there is none.
    pub probability: Option<Probability>,
    /// Length of a packet, by which `burst` and idle times are counted.
    pub avpkt: Bytes,
    /// Packets of `avpkt` that may come at once before it drops; `(2 min + max) / (3 avpkt)` where there is none.
    pub burst: Option<u32>,
    /// Rate at which the mean decays while nothing waits.
    pub bandwidth: Rate,
    /// Whether ECN-capable packets are marked where others are dropped.
    pub ecn: bool,
}

/// What `tc` assumes of a link of which it knows nothing.
const BANDWIDTH: Rate = Rate::from_bit_per_s(10_000_000).expect("not zero");
/// Ticks of the packet scheduler in a microsecond: `tc` computes idle times in these, and `sch_red` counts microseconds.
const TICKS_PER_US: f64 = 15.625;

impl Red {
    /// Of `tc qdisc add ... red`.
    pub const DEFAULT: Red = Red {
        min: None,
        max: None,
        probability: None,
        avpkt: Bytes(1000),
        burst: None,
        bandwidth: BANDWIDTH,
        ecn: false,
    };

    pub(super) fn read<K: Keys>(keys: &mut K) -> Result<Red, K::Error> {
        let default = Red::DEFAULT;
        let red = Red {
            min: keys.optional("min")?,
            max: keys.optional("max")?,
            probability: keys.optional("probability")?,
            avpkt: keys.or("avpkt", default.avpkt)?,
            burst: keys.optional("burst")?,
            bandwidth: keys.or("bandwidth", default.bandwidth)?,
            ecn: keys.or("ecn", default.ecn)?,
        };
        if !(40..=65_535).contains(&red.avpkt.0) {
            let reason = format!("expected a size from 40 B to 65535 B, found {}", red.avpkt);
            return Err(keys.refuse("avpkt", reason));
        }
        Ok(red)
    }

    pub(super) fn draw(draws: &mut Draws) -> Red {
        let min = draws.bytes(3000..=20_000);
        Red {
            min: Some(min),
            max: Some(min + draws.bytes(3000..=60_000)),
            probability: Some(draws.probability(0.5)),
            burst: Some(draws.between(20..=60) as u32),
            ecn: draws.chance(50),
            ..Red::DEFAULT
        }
    }

    /// What `tc` hands to the kernel before a queue of this limit, or why it refuses to.
    pub(super) fn thresholds(self, limit: QueueLimit) -> Result<Thresholds, String> {
        let max = match (self.max, self.min, limit.bytes(Bytes(MTU))) {
            (Some(max), ..) => max,
            (None, Some(min), _) => Bytes(min.0.saturating_mul(3)),
            (None, None, Some(limit)) => Bytes(limit.0 / 4),
            (None, None, None) => {
                return Err("expected `max` beside a `queue` without limit, of which it is a quarter where none is given".to_owned());
            }
        };
        let min = self.min.unwrap_or(Bytes(max.0 / 3));
        if min >= max {
            return Err(format!("expected a `min` below `max`, found {min} and {max}"));
        }
        let (avpkt, packets) = (self.avpkt.0, |bytes: Bytes| bytes.0 as f64 / self.avpkt.0 as f64);
        let burst = self
            .burst
            .map_or((2 * u128::from(min.0) + u128::from(max.0)) / (3 * u128::from(avpkt)), u128::from);
        // The weight is the largest power of two with which a burst does not reach `min`: burst + 1 - min/avpkt <= (1 - (1 - W)^burst) / W.
        let above = burst as f64 + 1.0 - packets(min);
        let fits = |log: &u32| {
            let weight = libm::exp2(-f64::from(*log));
            above <= (1.0 - libm::pow(1.0 - weight, burst as f64)) / weight
        };
        let weight_log = (1..32).find(fits).filter(|_| above >= 1.0).ok_or_else(|| {
            format!(
                "expected a `burst` of more than {} packets and not too many, found {burst}",
                packets(min)
            )
        })?;
        // As in the kernel, thresholds have 32 bits, those behind the point of the mean included.
        if max.0 >> (32 - weight_log) > 0 {
            return Err(format!("expected a `max` below {}, found {max}", Bytes(1 << (32 - weight_log))));
        }
        let probability = libm::floor(self.probability.map_or(0.02, Probability::fraction) * 4_294_967_296.0)
            .min(4_294_967_295.0) as u64;
        Ok(Thresholds {
            min: min.0 << weight_log,
            max: max.0 << weight_log,
            weight_log,
            step: (probability / (max.0 - min.0)).max(1),
            idle: IdleTable::new(weight_log, avpkt, self.bandwidth),
        })
    }
}

/// What the kernel works with.
#[derive(Debug)]
pub(super) struct Thresholds {
    /// As the mean is: so many bits of a byte are behind the point.
    min: u64,
    max: u64,
    weight_log: u32,
    /// Probability per byte above `min`, in 2^-32.
    step: u64,
    idle: IdleTable,
}

/// How many times the mean is halved in so long.
#[derive(Debug)]
struct IdleTable {
    /// A line of the table is 2^`cell_log` microseconds.
    cell_log: u32,
    halvings: [u8; 256],
}

impl IdleTable {
    fn new(weight_log: u32, avpkt: u64, bandwidth: Rate) -> IdleTable {
        let packet_us = libm::floor(avpkt as f64 * 8e6 / bandwidth.bit_per_s() as f64);
        let packet_ticks = libm::floor(packet_us * TICKS_PER_US).max(1.0);
        let per_tick = -libm::log(1.0 - libm::exp2(-f64::from(weight_log))) / packet_ticks;
        let longest = 31.0 / per_tick;
        let cell_log = (0..31).find(|log| longest / f64::from(1_u32 << log) < 512.0).unwrap_or(31);
        let halvings = core::array::from_fn(|line| match line {
            255 => 31,
            _ => libm::floor(line as f64 * libm::exp2(f64::from(cell_log)) * per_tick).min(31.0) as u8,
        });
        IdleTable { cell_log, halvings }
    }

    /// What is left of a mean after so many microseconds (`red_calc_qavg_from_idle_time`).
    fn decayed(&self, mean: u64, idle_us: u64) -> u64 {
        let idle_us = idle_us.min(255 << self.cell_log);
        match self.halvings[(idle_us >> self.cell_log) as usize] {
            // The beginning of the exponential as a line.
            0 => {
                let less = (u128::from(mean) * u128::from(idle_us)) >> self.cell_log;
                mean - (mean >> 1).min(u64::try_from(less).unwrap_or(u64::MAX))
            }
            halvings => mean >> halvings,
        }
    }
}

/// One queue with RED.
#[derive(Debug)]
pub(super) struct RedQueue<P> {
    limit: QueueLimit,
    ecn: bool,
    thresholds: Thresholds,
    generator: Generator,
    /// Mean of the bytes that wait, with `weight_log` bits behind the point.
    mean: u64,
    /// Packets since the last one that was chosen; `None` where the mean was outside of the thresholds.
    since_chosen: Option<u64>,
    /// What the product of the mean and of these packets has to reach.
    chosen_at: u64,
    /// When the last packet came that found nothing waiting.
    looked_at: Instant,
    fifo: Fifo<P>,
}

impl<P: PathPacket> RedQueue<P> {
    /// # Panics
    /// Where the parameters do not fit the limit, which [`Red::thresholds`] says beforehand.
    pub fn new(limit: QueueLimit, red: Red, generator: Generator) -> RedQueue<P> {
        RedQueue {
            limit,
            ecn: red.ecn,
            thresholds: red.thresholds(limit).expect("validated before it is built"),
            generator,
            mean: 0,
            since_chosen: None,
            chosen_at: 0,
            looked_at: Instant::ZERO,
            fifo: Fifo::new(),
        }
    }

    /// Whether the packet that comes now is dropped or marked (`red_action`).
    fn chooses(&mut self) -> bool {
        let Thresholds { min, max, weight_log, step, .. } = self.thresholds;
        if self.mean < min || self.mean >= max {
            self.since_chosen = None;
            return self.mean >= max;
        }
        let above = (self.mean - min) >> weight_log;
        let packets = self.since_chosen.map(|packets| packets + 1);
        match packets {
            Some(packets) if above * packets < self.chosen_at => {
                self.since_chosen = Some(packets);
                false
            }
            _ => {
                self.since_chosen = Some(0);
                self.chosen_at = self.generator.below(1 << 32) / step;
                packets.is_some()
            }
        }
    }
}

impl<P: PathPacket> Discipline<P> for RedQueue<P> {
    fn enqueue(
        &mut self,
        now: Instant,
        mut packet: P,
        idle_since: Option<Instant>,
        effects: &mut Effects<P>,
    ) -> Result<(), (P, DropCause)> {
        self.mean = match idle_since {
            Some(since) => {
                // What was dropped while nothing waited has looked at the mean too.
                let idle = now - since.max(self.looked_at);
                self.looked_at = now;
                self.thresholds.idle.decayed(self.mean, idle.as_nanos() / 1000)
            }
            None => self.mean - (self.mean >> self.thresholds.weight_log) + self.fifo.bytes().0,
        };
        if self.chooses() && !(self.ecn && effects.mark(&mut packet)) {
            return Err((packet, DropCause::Aqm));
        }
        if idle_since.is_none() && !self.fifo.has_room(self.limit, &packet) {
            return Err((packet, DropCause::QueueOverflow));
        }
        self.fifo.push(now, packet);
        Ok(())
    }

    fn dequeue(&mut self, _now: Instant, _effects: &mut Effects<P>) -> Option<Queued<P>> {
        self.fifo.pop()
    }

    fn len(&self) -> usize {
        self.fifo.len()
    }

    fn bytes(&self) -> Bytes {
        self.fifo.bytes()
    }
}
