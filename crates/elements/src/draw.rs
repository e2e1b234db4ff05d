//! What property tests draw for elements.

use crate::{MarkThreshold, PacketCount, QueueLimit};
use core::ops::RangeInclusive;
use farpath_path::PerDirection;
use farpath_units::{Ber, Bytes, Duration, Probability, Rate};

/// Numbers that somebody has drawn, and what elements make of them: smaller numbers make simpler elements, so that what draws
/// them can shrink them. Where they run out there are zeros.
#[derive(Debug, Clone)]
pub struct Draws(std::vec::IntoIter<u64>);

impl Draws {
    /// These numbers, each from all that there are.
    pub fn new(numbers: Vec<u64>) -> Draws {
        Draws(numbers.into_iter())
    }

    /// From zero on and below 1.
    fn fraction(&mut self) -> f64 {
        (self.0.next().unwrap_or(0) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A whole number below `bound`, each as likely as any other.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.0.next().unwrap_or(0)) * u128::from(bound)) >> u64::BITS) as u64
    }

    /// With a chance of so many in a hundred.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) >= 100 - percent
    }

    /// A whole number, each order of magnitude as likely as any other; the ends of the range more often.
    pub fn between(&mut self, range: RangeInclusive<u64>) -> u64 {
        let (least, most) = range.into_inner();
        match self.below(10) {
            0 => least,
            9 => most,
            _ => {
                let (low, high) = (logarithm(least), logarithm(most));
                let drawn = libm::exp(low + self.fraction() * (high - low));
                (drawn as u64).clamp(least, most)
            }
        }
    }

    /// One of them.
    pub fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u64) as usize]
    }

    /// One, or nothing.
    pub fn option<T>(&mut self, draw: impl FnOnce(&mut Draws) -> T) -> Option<T> {
        self.chance(50).then(|| draw(self))
    }

    /// The same both ways, or another value for each.
    pub fn each_way<T: Clone>(&mut self, mut draw: impl FnMut(&mut Draws) -> T) -> PerDirection<T> {
        let forward = draw(self);
        let reverse = if self.chance(50) { draw(self) } else { forward.clone() };
        PerDirection { forward, reverse }
    }

    /// So many microseconds, as [`between`](Draws::between).
    pub fn microseconds(&mut self, range: RangeInclusive<u64>) -> Duration {
        Duration::from_micros(self.between(range))
    }

    /// So many bytes, as [`between`](Draws::between).
    pub fn bytes(&mut self, range: RangeInclusive<u64>) -> Bytes {
        Bytes(self.between(range))
    }

    /// Mostly on Earth, sometimes as far as 1000 light-seconds.
    pub fn delay(&mut self) -> Duration {
        if self.chance(11) {
            self.microseconds(500_000..=1_000_000_000)
        } else {
            self.microseconds(0..=500_000)
        }
    }

    /// From a slow modem to a fast backbone.
    pub fn rate(&mut self) -> Rate {
        Rate::from_bit_per_s(self.between(20_000..=10_000_000_000)).expect("not zero")
    }

    /// Up to `most`.
    pub fn probability(&mut self, most: f64) -> Probability {
        Probability::new(self.fraction() * most).expect("at most 1")
    }

    /// Of packets that are lost, held back or doubled: mostly few.
    pub fn share(&mut self) -> Probability {
        match self.below(6) {
            0 => Probability::ZERO,
            5 => self.probability(0.4),
            _ => self.probability(0.05),
        }
    }

    /// From 1e-9 to 1e-5 errors per bit, or none.
    pub fn error_rate(&mut self) -> Ber {
        let ber = if self.below(5) == 0 { 0.0 } else { self.between(1..=10_000) as f64 * 1e-9 };
        Ber::new(ber).expect("at most 1")
    }

    /// What a loss process counts.
    pub fn packet_count(&mut self) -> PacketCount {
        self.one_of(&[PacketCount::All, PacketCount::Data])
    }

    /// The limit of a queue.
    pub fn queue(&mut self) -> QueueLimit {
        match self.below(3) {
            0 => QueueLimit::Unlimited,
            1 => QueueLimit::Packets(self.between(0..=10_000)),
            _ => QueueLimit::Bytes(self.bytes(0..=10_000_000)),
        }
    }

    /// From when on a queue marks.
    pub fn mark(&mut self) -> MarkThreshold {
        match self.below(4) {
            0 => MarkThreshold::Never,
            1 => MarkThreshold::Packets(self.between(0..=20)),
            2 => MarkThreshold::Bytes(self.bytes(0..=100_000)),
            _ => MarkThreshold::Delay(self.microseconds(1..=100_000)),
        }
    }
}

fn logarithm(number: u64) -> f64 {
    libm::log(number.max(1) as f64)
}
