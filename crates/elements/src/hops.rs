//! Routers, which count a packet's TTL down.

use farpath_path::{Direction, Fate, PacketView, PerDirection, Transit};
use farpath_units::Instant;

/// So many routers one behind the other. A packet with TTL n dies at the nth.
#[derive(Debug)]
pub(crate) struct Hops {
    routers: PerDirection<u32>,
}

impl Hops {
    pub fn new(routers: PerDirection<u32>) -> Hops {
        Hops { routers }
    }
}

impl Transit for Hops {
    fn transit(&mut self, now: Instant, direction: Direction, _packet: PacketView) -> Fate {
        Fate::Route(now, self.routers[direction])
    }
}
