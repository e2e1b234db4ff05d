//! Independent loss.

use super::lost_if;
use super::varying::VaryingLoss;
use crate::draw::Draws;
use crate::element::{Built, Declared, DelayPart, Element};
use crate::keys::Keys;
use crate::over_time::{Setting, still};
use crate::words::each_way;
use crate::{ElementKind, ExplicitRatePacket, PacketCount};
use farpath_path::{Chance, Direction, DropCause, Fate, Generator, PacketView, PerDirection, Transit};
use farpath_units::{Bytes, Instant, Probability};

/// Independent loss: each counted packet is dropped with the same probability, whatever became of the others.
#[derive(Debug, Clone, PartialEq)]
pub struct Bernoulli {
    /// Per packet.
    pub loss_rate: PerDirection<Probability>,
    /// What is exposed to it.
    pub count: PacketCount,
}

impl Element for Bernoulli {
    fn describe(&self) -> String {
        format!("independent loss of {}{}", each_way(&self.loss_rate), self.count.words())
    }

    fn is_random(&self) -> bool {
        self.loss_rate != PerDirection::both(Probability::ZERO)
    }

    fn left_out(&self, _data: Direction) -> Option<String> {
        None
    }

    fn delays(&self, _direction: Direction, _size: Bytes) -> Vec<DelayPart> {
        Vec::new()
    }

    fn loss_rate(&self, direction: Direction, packet: PacketView) -> Probability {
        if self.count.counts(packet) { self.loss_rate[direction] } else { Probability::ZERO }
    }

    fn remove_loss(&mut self) {
        self.loss_rate = PerDirection::both(Probability::ZERO);
    }

    fn scale_loss(&mut self, direction: Direction, factor: f64) -> bool {
        let rate = &mut self.loss_rate[direction];
        let is_lossy = rate.fraction() > 0.0;
        *rate = Probability::new((rate.fraction() * factor).min(1.0)).unwrap_or(*rate);
        is_lossy
    }

    fn set_loss_rate(&mut self, direction: Direction, rate: Probability) -> bool {
        self.loss_rate[direction] = rate;
        true
    }
}

impl Declared for Bernoulli {
    const NAMES: &'static [&'static str] = &["loss"];
    const PRINCIPAL: Option<&'static str> = Some("rate");
    const DOCS: &'static str = "\
| `loss` | **`rate`** ↔ | independent loss per packet | required |
| | `count` | `all` packets, or those with `data` only | `all` |";
    const WEIGHT: u32 = 2;

    fn read<K: Keys>(_name: &str, keys: &mut K) -> Result<ElementKind, K::Error> {
        let loss_rate = keys.each_way("rate", Some(Setting::Still(Probability::ZERO)))?;
        let count = keys.or("count", PacketCount::All)?;
        Ok(match still(&loss_rate) {
            Some(loss_rate) => ElementKind::Bernoulli(Bernoulli { loss_rate, count }),
            None => ElementKind::VaryingLoss(VaryingLoss { loss_rate, count }),
        })
    }

    fn draw(draws: &mut Draws) -> Bernoulli {
        Bernoulli { loss_rate: draws.each_way(Draws::share), count: draws.packet_count() }
    }

    fn build<P: ExplicitRatePacket + Clone + Send + 'static>(&self, name: &str, seed: u64) -> Built<P> {
        Built::Transit(Box::new(BernoulliProcess {
            loss: self.loss_rate.map(Chance::from),
            count: self.count,
            draws: Generator::per_direction(seed, name),
        }))
    }
}

#[derive(Debug)]
struct BernoulliProcess {
    loss: PerDirection<Chance>,
    count: PacketCount,
    draws: PerDirection<Generator>,
}

impl Transit for BernoulliProcess {
    fn transit(&mut self, now: Instant, direction: Direction, packet: PacketView) -> Fate {
        let lost = self.count.counts(packet) && self.draws[direction].happens(self.loss[direction]);
        lost_if(lost, DropCause::Loss, now)
    }
}
