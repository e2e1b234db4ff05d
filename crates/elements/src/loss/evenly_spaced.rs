//! Evenly spaced loss.

use super::lost_if;
use crate::PacketCount;
use farpath_path::{Direction, DropCause, Fate, Generator, PacketView, PerDirection, Transit};
use farpath_units::Instant;

/// Drops one counted packet in `every`, at even distances: of n packets exactly
/// `floor((n + every - 1 - phase) / every)` where `phase` is below `every`.
#[derive(Debug)]
pub(crate) struct EvenlySpaced {
    every: PerDirection<Option<u64>>,
    /// Counted packets that pass before the next drop.
    pass: PerDirection<u64>,
    count: PacketCount,
}

impl EvenlySpaced {
    /// `every` is never zero. Without a `phase` each direction draws its own from `[0, every)`.
    pub fn new(
        every: PerDirection<Option<u64>>,
        phase: Option<u64>,
        count: PacketCount,
        mut draws: PerDirection<Generator>,
    ) -> EvenlySpaced {
        let pass = PerDirection::from_fn(|direction| {
            phase.unwrap_or_else(|| draws[direction].below(every[direction].unwrap_or(0)))
        });
        EvenlySpaced { every, pass, count }
    }
}

impl Transit for EvenlySpaced {
    fn transit(&mut self, now: Instant, direction: Direction, packet: PacketView) -> Fate {
        let Some(every) = self.every[direction].filter(|_| self.count.counts(packet)) else {
            return Fate::Depart(now);
        };
        let pass = &mut self.pass[direction];
        let lost = *pass == 0;
        *pass = if lost { every - 1 } else { *pass - 1 };
        lost_if(lost, DropCause::Loss, now)
    }
}
