//! DualQ coupled AQM with PI2 (RFC 9332, appendix A), with the arithmetic of Linux's `sch_dualpi2` (6.17).
//!
//! Left out: `step_thresh` in packets, `min_qlen_step`, `drop_early`, classes by filters, and the limit on the memory of buffers.

use super::discipline::{Discipline, Effects, Fifo, Queued};
use super::pie::{Settled, Updates};
use super::{MTU, time_from, whole};
use crate::QueueLimit;
use crate::draw::Draws;
use crate::keys::{self, Keys, ReadValue, Source};
use farpath_path::{DropCause, Generator, PathPacket};
use farpath_units::{Bytes, Duration, Instant};

/// Parameters of DualPI2.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DualPi2 {
    /// Queueing delay that the controller steers at.
    pub target: Duration,
    /// Between two looks at it.
    pub tupdate: Duration,
    /// Weight of the deviation from the target, in 1/256 per s.
    pub alpha: u32,
    /// Weight of its change, in 1/256 per s.
    pub beta: u32,
    /// Which packets use the low-latency queue.
    pub low_latency: LowLatency,
    /// Wait above which packets of the low-latency queue are marked.
    pub step_threshold: Duration,
    /// How many times as likely a mark in the low-latency queue is as the root of a drop in the classic one (RFC 9332 §2.1).
    pub coupling: u32,
    /// Share in percent that the classic queue gets while both have packets.
    pub classic_protection: u32,
    /// Whether low-latency packets are dropped where marks no longer suffice; else the queue grows to its limit.
    pub drop_on_overload: bool,
}

/// Which packets use the low-latency queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LowLatency {
    /// Those with ECT(1) or CE (RFC 9331 §5).
    Ect1,
    /// All that are ECN-capable.
    AnyEct,
}

impl LowLatency {
    const ALL: [(&'static str, LowLatency); 2] =
        [("ect1", LowLatency::Ect1), ("any-ect", LowLatency::AnyEct)];

    const fn has(self, ecn: u8) -> bool {
        match self {
            LowLatency::Ect1 => ecn & 0b01 != 0,
            LowLatency::AnyEct => ecn != 0,
        }
    }
}

impl ReadValue for LowLatency {
    const EXPECTED: &'static str = "`ect1` or `any-ect`";
    fn read<S: Source>(source: &S) -> Result<LowLatency, S::Error> {
        keys::word(source, &LowLatency::ALL)
    }
}

impl DualPi2 {
    /// Of Linux's `dualpi2`, and of RFC 9332.
    pub const DEFAULT: DualPi2 = DualPi2 {
        target: Duration::from_millis(15),
        tupdate: Duration::from_millis(16),
        alpha: 41,
        beta: 819,
        low_latency: LowLatency::Ect1,
        step_threshold: Duration::from_millis(1),
        coupling: 2,
        classic_protection: 10,
        drop_on_overload: true,
    };

    pub(super) fn read<K: Keys>(keys: &mut K) -> Result<DualPi2, K::Error> {
        let default = DualPi2::DEFAULT;
        Ok(DualPi2 {
            target: time_from(keys, "target", Duration::from_micros(10), default.target)?,
            tupdate: time_from(keys, "tupdate", Duration::from_millis(1), default.tupdate)?,
            alpha: whole(keys, "alpha", 1..=65_536, default.alpha)?,
            beta: whole(keys, "beta", 1..=65_536, default.beta)?,
            low_latency: keys.or("low_latency", default.low_latency)?,
            step_threshold: keys.or("step_threshold", default.step_threshold)?,
            coupling: whole(keys, "coupling", 1..=255, default.coupling)?,
            classic_protection: whole(keys, "classic_protection", 0..=100, default.classic_protection)?,
            drop_on_overload: keys.or("drop_on_overload", default.drop_on_overload)?,
        })
    }

    pub(super) fn draw(draws: &mut Draws) -> DualPi2 {
        DualPi2 {
            target: draws.microseconds(100..=50_000),
            tupdate: draws.microseconds(1000..=50_000),
            alpha: draws.between(1..=512) as u32,
            beta: draws.between(1..=4096) as u32,
            low_latency: draws.one_of(&[LowLatency::Ect1, LowLatency::AnyEct]),
            step_threshold: draws.microseconds(10..=20_000),
            coupling: draws.between(1..=4) as u32,
            classic_protection: draws.between(0..=100) as u32,
            drop_on_overload: draws.chance(50),
        }
    }

    /// A weight of the controller per nanosecond, in 2^-26 of a certainty (`dualpi2_scale_alpha_beta`).
    const fn scaled(weight: u32) -> i64 {
        ((weight as u64 * CERTAIN) >> 2) as i64 / 1_000_000_000
    }
}

/// A probability of one (`MAX_PROB`).
const CERTAIN: u64 = u32::MAX as u64;

/// Two queues with one controller.
#[derive(Debug)]
pub(super) struct DualPi2Queue<P> {
    limit: QueueLimit,
    dual: DualPi2,
    updates: Updates,
    generator: Generator,
    classic: Fifo<P>,
    low_latency: Fifo<P>,
    probability: u64,
    delay_before: Duration,
    /// Bytes times percent by which one of the two is ahead: above zero it is the classic one's turn.
    credit: i64,
}

/// What the controller says of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Pass,
    Mark,
    Drop,
}

impl<P: PathPacket> DualPi2Queue<P> {
    pub fn new(limit: QueueLimit, dual: DualPi2, generator: Generator) -> DualPi2Queue<P> {
        DualPi2Queue {
            limit,
            dual,
            updates: Updates::new(dual.tupdate, dual.tupdate),
            generator,
            classic: Fifo::new(),
            low_latency: Fifo::new(),
            probability: 0,
            delay_before: Duration::ZERO,
            credit: first_credit(dual),
        }
    }

    fn catch_up(&mut self, now: Instant) {
        let oldest = Instant::earliest(self.classic.first_since(), self.low_latency.first_since());
        let (dual, probability, before) = (self.dual, &mut self.probability, &mut self.delay_before);
        self.updates.catch_up(now, |at| {
            let delay = oldest.map_or(Duration::ZERO, |since| at - since);
            *probability = next_probability(dual, *probability, delay, *before);
            *before = delay;
            if oldest.is_none() && *probability == 0 { Settled::Yes } else { Settled::No }
        });
    }

    fn rolls(&mut self, probability: u64) -> bool {
        self.generator.below(1 << 32) <= probability
    }

    /// A classic packet is dropped, or marked, with the square of the probability; one of the low-latency queue is marked with the
    /// probability times the coupling (RFC 9332 §2.1).
    fn action(&mut self, is_low_latency: bool, ecn_capable: bool) -> Action {
        if self.bytes().0 < 2 * MTU {
            return Action::Pass;
        }
        let coupled = self.probability * u64::from(self.dual.coupling);
        let overload = coupled > CERTAIN;
        let squared =
            |queue: &mut DualPi2Queue<P>| queue.rolls(queue.probability) && queue.rolls(queue.probability);
        match (is_low_latency, overload) {
            (false, _) => match squared(self) {
                true if overload || !ecn_capable => Action::Drop,
                true => Action::Mark,
                false => Action::Pass,
            },
            (true, true) if self.dual.drop_on_overload && squared(self) => Action::Drop,
            (true, true) => Action::Mark,
            (true, false) if self.rolls(coupled) => Action::Mark,
            (true, false) => Action::Pass,
        }
    }

    /// The packet whose turn it is, whether it is of the low-latency queue, and by how much the credit changes where it is sent.
    fn next(&mut self) -> Option<(Queued<P>, bool, i64)> {
        let percent = i64::from(self.dual.classic_protection);
        let (classic, low_latency) = (self.classic.len() > 0, self.low_latency.len() > 0);
        let (packet, is_low_latency, weight) = if low_latency && (!classic || self.credit <= 0) {
            (self.low_latency.pop()?, true, if classic { percent } else { 0 })
        } else {
            (self.classic.pop()?, false, if low_latency { percent - 100 } else { 0 })
        };
        let change = weight * packet.size.0 as i64;
        Some((packet, is_low_latency, change))
    }
}

/// The credit of two queues that were both empty: that of a packet, for the one with the greater share.
fn first_credit(dual: DualPi2) -> i64 {
    MTU as i64 * (2 * i64::from(dual.classic_protection) - 100)
}

/// The probability at the next look (`calculate_probability`, RFC 9332 appendix A.1).
fn next_probability(dual: DualPi2, probability: u64, delay: Duration, before: Duration) -> u64 {
    let ns = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
    let weigh = |weight: u32, by: i64| DualPi2::scaled(weight).saturating_mul(by);
    let delta = weigh(dual.alpha, ns(delay) - ns(dual.target))
        .saturating_add(weigh(dual.beta, ns(delay) - ns(before)));
    let change = delta.unsigned_abs() >> 6;
    let next = match delta > 0 {
        true => probability.saturating_add(change).min(CERTAIN),
        false => probability.saturating_sub(change),
    };
    let most = if dual.drop_on_overload { CERTAIN } else { CERTAIN / u64::from(dual.coupling) };
    next.min(most)
}

impl<P: PathPacket> Discipline<P> for DualPi2Queue<P> {
    fn enqueue(
        &mut self,
        now: Instant,
        packet: P,
        idle_since: Option<Instant>,
        _effects: &mut Effects<P>,
    ) -> Result<(), (P, DropCause)> {
        self.catch_up(now);
        if idle_since.is_some() {
            // Linux's line has asked both queues by now, and found nothing.
            self.credit = first_credit(self.dual);
        } else if !self.limit.has_room(self.len(), self.bytes(), packet.wire_size()) {
            return Err((packet, DropCause::QueueOverflow));
        }
        if self.dual.low_latency.has(packet.ecn()) {
            self.low_latency.push(now, packet);
        } else {
            self.classic.push(now, packet);
        }
        Ok(())
    }

    fn dequeue(&mut self, now: Instant, effects: &mut Effects<P>) -> Option<Queued<P>> {
        self.catch_up(now);
        while let Some((mut queued, is_low_latency, change)) = self.next() {
            match self.action(is_low_latency, queued.packet.is_ecn_capable()) {
                Action::Drop => {
                    effects.dropped.push((queued.packet, DropCause::Aqm));
                    continue;
                }
                Action::Mark => {
                    effects.mark(&mut queued.packet);
                }
                Action::Pass => {}
            }
            if is_low_latency && now - queued.since > self.dual.step_threshold {
                effects.mark(&mut queued.packet);
            }
            self.credit += change;
            return Some(queued);
        }
        self.credit = first_credit(self.dual);
        None
    }

    fn len(&self) -> usize {
        self.classic.len() + self.low_latency.len()
    }

    fn bytes(&self) -> Bytes {
        self.classic.bytes() + self.low_latency.bytes()
    }
}
