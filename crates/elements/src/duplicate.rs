//! Duplication.

use farpath_path::{Chance, Direction, Fate, Generator, PacketView, PerDirection, Transit};
use farpath_units::{Instant, Probability};

/// Sends a share of the packets twice, the copy right behind the packet.
#[derive(Debug)]
pub(crate) struct Duplicate {
    share: PerDirection<Chance>,
    draws: PerDirection<Generator>,
}

impl Duplicate {
    pub fn new(share: PerDirection<Probability>, draws: PerDirection<Generator>) -> Duplicate {
        Duplicate { share: share.map(Chance::from), draws }
    }
}

impl Transit for Duplicate {
    fn transit(&mut self, now: Instant, direction: Direction, _packet: PacketView) -> Fate {
        if self.draws[direction].happens(self.share[direction]) {
            Fate::Duplicate(now, now)
        } else {
            Fate::Depart(now)
        }
    }

    fn keeps_order(&self, direction: Direction) -> bool {
        self.share[direction] == Chance::from(Probability::ZERO)
    }
}
