//! Reordering.

use farpath_path::{Chance, Direction, Fate, Generator, PacketView, PerDirection, Transit};
use farpath_units::{Duration, Instant, Probability};

/// Holds back a share of the packets for a fixed time; the others pass at once and overtake them.
#[derive(Debug)]
pub(crate) struct Reorder {
    share: PerDirection<Chance>,
    extra_delay: Duration,
    draws: PerDirection<Generator>,
}

impl Reorder {
    pub fn new(
        share: PerDirection<Probability>,
        extra_delay: Duration,
        draws: PerDirection<Generator>,
    ) -> Reorder {
        Reorder { share: share.map(Chance::from), extra_delay, draws }
    }
}

impl Transit for Reorder {
    fn transit(&mut self, now: Instant, direction: Direction, _packet: PacketView) -> Fate {
        let held_back = self.draws[direction].happens(self.share[direction]);
        Fate::Depart(if held_back { now + self.extra_delay } else { now })
    }

    fn keeps_order(&self, direction: Direction) -> bool {
        self.share[direction] == Chance::from(Probability::ZERO) || self.extra_delay.is_zero()
    }
}
