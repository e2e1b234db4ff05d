//! Loss by a list of packet numbers.

use super::lost_if;
use crate::PacketCount;
use farpath_path::{Direction, DropCause, Fate, PacketView, PerDirection, Transit};
use farpath_units::Instant;

/// Drops the counted packets with the listed numbers, and no others.
#[derive(Debug)]
pub(crate) struct Listed {
    lists: PerDirection<List>,
    count: PacketCount,
}

#[derive(Debug)]
struct List {
    /// Rising, from 1 on.
    packets: Vec<u64>,
    /// The first of `packets` that has not come yet.
    next: usize,
    seen: u64,
}

impl Listed {
    pub fn new(packets: PerDirection<Vec<u64>>, count: PacketCount) -> Listed {
        Listed { lists: packets.map(|packets| List { packets, next: 0, seen: 0 }), count }
    }
}

impl Transit for Listed {
    fn transit(&mut self, now: Instant, direction: Direction, packet: PacketView) -> Fate {
        if !self.count.counts(packet) {
            return Fate::Depart(now);
        }
        let list = &mut self.lists[direction];
        list.seen += 1;
        let lost = list.packets.get(list.next) == Some(&list.seen);
        list.next += usize::from(lost);
        lost_if(lost, DropCause::Loss, now)
    }
}
