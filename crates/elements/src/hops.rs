//! Routers, which count a packet's TTL down.

use crate::draw::Draws;
use crate::element::{Built, Declared, DelayPart, Element};
use crate::keys::Keys;
use crate::words::each_way;
use crate::{ElementKind, ExplicitRatePacket};
use farpath_path::{Direction, Fate, PacketView, PerDirection, Transit};
use farpath_units::{Bytes, Instant};

/// Routers one behind the other, each of which takes one off the TTL: a packet with TTL n dies at the nth. They take no time; a
/// wait beside them does.
#[derive(Debug, Clone, PartialEq)]
pub struct Hops {
    /// How many.
    pub routers: PerDirection<u32>,
}

impl Transit for Hops {
    fn transit(&mut self, now: Instant, direction: Direction, _packet: PacketView) -> Fate {
        Fate::Route(now, self.routers[direction])
    }
}

impl Element for Hops {
    fn describe(&self) -> String {
        format!("routers: {}", each_way(&self.routers))
    }

    fn is_random(&self) -> bool {
        false
    }

    fn left_out(&self, _data: Direction) -> Option<String> {
        None
    }

    fn delays(&self, _direction: Direction, _size: Bytes) -> Vec<DelayPart> {
        Vec::new()
    }

    fn routers(&self, direction: Direction) -> u32 {
        self.routers[direction]
    }
}

impl Declared for Hops {
    const NAMES: &'static [&'static str] = &["hops"];
    const PRINCIPAL: Option<&'static str> = Some("routers");
    const DOCS: &'static str = "\
| `hops` | **`routers`** ↔ | so many routers, each of which takes one off the [TTL](stacks.md#send): a packet with TTL n dies at the nth | required |";

    fn read<K: Keys>(_name: &str, keys: &mut K) -> Result<ElementKind, K::Error> {
        Ok(ElementKind::Hops(Hops { routers: keys.each_way("routers", Some(0))? }))
    }

    fn draw(draws: &mut Draws) -> Hops {
        Hops { routers: draws.each_way(|draws| draws.below(70) as u32) }
    }

    fn build<P: ExplicitRatePacket + Clone + Send + 'static>(&self, _name: &str, _seed: u64) -> Built<P> {
        Built::Transit(Box::new(self.clone()))
    }
}
