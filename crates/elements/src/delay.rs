//! Propagation.

use crate::draw::Draws;
use crate::element::{Built, Declared, DelayKind, DelayPart, Element, Inflow};
use crate::keys::Keys;
use crate::words::each_way;
use crate::{ElementKind, ExplicitRatePacket};
use farpath_path::{Direction, Fate, PacketView, PerDirection, Transit};
use farpath_units::{Bytes, Duration, Instant};

/// Propagation: every packet leaves so much later.
#[derive(Debug, Clone, PartialEq)]
pub struct Delay {
    /// One-way.
    pub delay: PerDirection<Duration>,
}

impl Transit for Delay {
    fn transit(&mut self, now: Instant, direction: Direction, _packet: PacketView) -> Fate {
        Fate::Depart(now + self.delay[direction])
    }
}

impl Element for Delay {
    fn describe(&self) -> String {
        format!("delay of {}", each_way(&self.delay))
    }

    fn is_random(&self) -> bool {
        false
    }

    fn left_out(&self, _data: Direction) -> Option<String> {
        None
    }

    fn delays(&self, direction: Direction, _size: Bytes) -> Vec<DelayPart> {
        vec![DelayPart::fixed(DelayKind::Propagation, self.delay[direction])]
    }

    fn lone_delay(&self, direction: Direction, _size: Bytes) -> Duration {
        self.delay[direction]
    }

    fn held(&self, direction: Direction, inflow: &mut Inflow) -> Option<Bytes> {
        inflow.bytes_in(self.delay[direction])
    }
}

impl Declared for Delay {
    const NAMES: &'static [&'static str] = &["delay"];
    const PRINCIPAL: Option<&'static str> = Some("delay");
    const DOCS: &'static str = "\
| `delay` | **`delay`** ↔ | propagation, one way | required, or `distance` |
| | `distance` ↔ | in its place: `384400 km`, `1.5 light-seconds`, `0.5 AU`, or a body such as `moon` ([places](../places/bodies.toml)) | |
| | `medium` | over that distance: `vacuum`, `air`, `fibre`, `coax` ([media](../places/media.toml)) | `vacuum` |";
    const WEIGHT: u32 = 2;

    fn read<K: Keys>(_name: &str, keys: &mut K) -> Result<ElementKind, K::Error> {
        Ok(ElementKind::Delay(Delay { delay: keys.propagation()? }))
    }

    fn draw(draws: &mut Draws) -> Delay {
        Delay { delay: draws.each_way(Draws::delay) }
    }

    fn build<P: ExplicitRatePacket + Clone + Send + 'static>(&self, _name: &str, _seed: u64) -> Built<P> {
        Built::Transit(Box::new(self.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_packet_leaves_one_propagation_delay_later() {
        let mut delay = Delay {
            delay: PerDirection { forward: Duration::from_millis(250), reverse: Duration::from_millis(10) },
        };
        let packet = PacketView { size: Bytes(1500), carries_data: true };
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        assert_eq!(delay.transit(at(5), Direction::Forward, packet), Fate::Depart(at(255)));
        assert_eq!(delay.transit(at(5), Direction::Reverse, packet), Fate::Depart(at(15)));
    }
}
