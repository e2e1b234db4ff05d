//! Duplication.

use crate::draw::Draws;
use crate::element::{Built, Declared, DelayPart, Element, Inflow};
use crate::keys::Keys;
use crate::words::each_way;
use crate::{ElementKind, ExplicitRatePacket};
use farpath_path::{Chance, Direction, Fate, Generator, PacketView, PerDirection, Transit};
use farpath_units::{Bytes, Instant, Probability};

/// Sends a share of the packets twice, the copy right behind the packet (RFC 5560).
#[derive(Debug, Clone, PartialEq)]
pub struct Duplicate {
    /// Share of the packets that are sent twice.
    pub share: PerDirection<Probability>,
}

impl Element for Duplicate {
    fn describe(&self) -> String {
        format!("duplication of {}", each_way(&self.share))
    }

    fn is_random(&self) -> bool {
        true
    }

    fn left_out(&self, _data: Direction) -> Option<String> {
        Some("duplicates are left out of the prediction".to_owned())
    }

    fn delays(&self, _direction: Direction, _size: Bytes) -> Vec<DelayPart> {
        Vec::new()
    }

    fn copies(&self, direction: Direction) -> Probability {
        self.share[direction]
    }

    fn held(&self, direction: Direction, inflow: &mut Inflow) -> Option<Bytes> {
        if self.share[direction] > Probability::ZERO {
            inflow.double();
        }
        Some(Bytes::ZERO)
    }
}

impl Declared for Duplicate {
    const NAMES: &'static [&'static str] = &["duplicate"];
    const PRINCIPAL: Option<&'static str> = Some("share");
    const DOCS: &'static str = "\
| `duplicate` | **`share`** ↔ | of the packets, sent twice | required |";

    fn read<K: Keys>(_name: &str, keys: &mut K) -> Result<ElementKind, K::Error> {
        Ok(ElementKind::Duplicate(Duplicate { share: keys.each_way("share", Some(Probability::ZERO))? }))
    }

    fn draw(draws: &mut Draws) -> Duplicate {
        Duplicate { share: draws.each_way(Draws::share) }
    }

    fn build<P: ExplicitRatePacket + Clone + Send + 'static>(&self, name: &str, seed: u64) -> Built<P> {
        let draws = Generator::per_direction(seed, name);
        Built::Transit(Box::new(Duplication { share: self.share.map(Chance::from), draws }))
    }
}

#[derive(Debug)]
struct Duplication {
    share: PerDirection<Chance>,
    draws: PerDirection<Generator>,
}

impl Transit for Duplication {
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
