//! Independent loss.

use super::lost_if;
use crate::PacketCount;
use farpath_path::{Chance, Direction, DropCause, Fate, Generator, PacketView, PerDirection, Transit};
use farpath_units::{Instant, Probability};

/// Drops each counted packet with the same probability, whatever became of the others.
#[derive(Debug)]
pub(crate) struct Bernoulli {
    loss: PerDirection<Chance>,
    count: PacketCount,
    draws: PerDirection<Generator>,
}

impl Bernoulli {
    pub fn new(
        loss_rate: PerDirection<Probability>,
        count: PacketCount,
        draws: PerDirection<Generator>,
    ) -> Bernoulli {
        Bernoulli { loss: loss_rate.map(Chance::from), count, draws }
    }
}

impl Transit for Bernoulli {
    fn transit(&mut self, now: Instant, direction: Direction, packet: PacketView) -> Fate {
        let lost = self.count.counts(packet) && self.draws[direction].happens(self.loss[direction]);
        lost_if(lost, DropCause::Loss, now)
    }
}
