//! Reordering.

use crate::draw::Draws;
use crate::element::{Built, Declared, DelayKind, DelayPart, DelayTime, Element, Inflow};
use crate::keys::Keys;
use crate::words::each_way;
use crate::{ElementKind, ExplicitRatePacket};
use farpath_path::{Chance, Direction, Fate, Generator, PacketView, PerDirection, Transit};
use farpath_units::{Bytes, Duration, Instant, Probability};

/// Holds back a share of the packets for a fixed time, so that later ones overtake them (RFC 4737).
#[derive(Debug, Clone, PartialEq)]
pub struct Reorder {
    /// Share of the packets that are held back.
    pub share: PerDirection<Probability>,
    /// For how long.
    pub extra_delay: Duration,
}

impl Element for Reorder {
    fn describe(&self) -> String {
        format!("reordering: {} held back by {}", each_way(&self.share), self.extra_delay)
    }

    fn is_random(&self) -> bool {
        true
    }

    fn left_out(&self, _data: Direction) -> Option<String> {
        Some("reordering is left out of the prediction".to_owned())
    }

    fn delays(&self, direction: Direction, _size: Bytes) -> Vec<DelayPart> {
        let (share, extra) = (self.share[direction].fraction(), self.extra_delay.as_secs_f64());
        let full_s = if share > 0.0 { extra } else { 0.0 };
        let time = DelayTime::Varying { expected_s: Some(share * extra), full_s };
        vec![DelayPart { kind: DelayKind::Reordering, time }]
    }

    fn warnings(&self, direction: Direction) -> Vec<String> {
        let idle = self.share[direction] > Probability::ZERO && self.extra_delay.is_zero();
        idle.then(|| "an extra delay of zero reorders nothing".to_owned()).into_iter().collect()
    }

    fn reordering(&self, direction: Direction) -> Option<(Probability, Duration)> {
        Some((self.share[direction], self.extra_delay))
    }

    fn held(&self, direction: Direction, inflow: &mut Inflow) -> Option<Bytes> {
        if self.share[direction] > Probability::ZERO {
            inflow.bytes_in(self.extra_delay)
        } else {
            Some(Bytes::ZERO)
        }
    }

    fn remove_reordering(&mut self) {
        self.share = PerDirection::both(Probability::ZERO);
    }
}

impl Declared for Reorder {
    const NAMES: &'static [&'static str] = &["reorder"];
    const PRINCIPAL: Option<&'static str> = Some("share");
    const DOCS: &'static str = "\
| `reorder` | **`share`** ↔ | of the packets, held back | required |
| | `extra_delay` | for how long | required |";

    fn read<K: Keys>(_name: &str, keys: &mut K) -> Result<ElementKind, K::Error> {
        Ok(ElementKind::Reorder(Reorder {
            share: keys.each_way("share", Some(Probability::ZERO))?,
            extra_delay: keys.required("extra_delay")?,
        }))
    }

    fn draw(draws: &mut Draws) -> Reorder {
        Reorder { share: draws.each_way(Draws::share), extra_delay: draws.microseconds(1..=1_000_000) }
    }

    fn build<P: ExplicitRatePacket + Clone + Send + 'static>(&self, name: &str, seed: u64) -> Built<P> {
        Built::Transit(Box::new(Reordering {
            share: self.share.map(Chance::from),
            extra_delay: self.extra_delay,
            draws: Generator::per_direction(seed, name),
        }))
    }
}

#[derive(Debug)]
struct Reordering {
    share: PerDirection<Chance>,
    extra_delay: Duration,
    draws: PerDirection<Generator>,
}

impl Transit for Reordering {
    fn transit(&mut self, now: Instant, direction: Direction, _packet: PacketView) -> Fate {
        let held_back = self.draws[direction].happens(self.share[direction]);
        Fate::Depart(if held_back { now + self.extra_delay } else { now })
    }

    fn keeps_order(&self, direction: Direction) -> bool {
        self.share[direction] == Chance::from(Probability::ZERO) || self.extra_delay.is_zero()
    }
}
