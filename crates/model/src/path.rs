//! A path as the closed forms see it: store-and-forward links, no loss, no other traffic.

use farpath_units::{Bytes, Duration, Rate};

/// One store-and-forward link, in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// Every bit on the wire counts.
    pub rate: Rate,
    /// One-way propagation of this link.
    pub propagation: Duration,
    /// Bytes that this link adds to an IP packet: Ethernet 38 (preamble 8, header 14, FCS 4, gap 12).
    pub overhead: Bytes,
    /// IP packets below this are padded to it: Ethernet 46.
    pub min_payload: Bytes,
}

impl Hop {
    /// An Ethernet link: 38 B of overhead, packets padded to 46 B.
    pub fn ethernet(rate: Rate, propagation: Duration) -> Hop {
        Hop { rate, propagation, overhead: Bytes(38), min_payload: Bytes(46) }
    }

    /// What an IP packet occupies on the wire.
    pub fn frame(&self, packet: Bytes) -> Bytes {
        packet.max(self.min_payload) + self.overhead
    }

    /// Serialization time of an IP packet on this link, picoseconds.
    pub(crate) fn serialization(&self, packet: Bytes) -> Ps {
        let rate = u128::from(self.rate.bit_per_s());
        (self.frame(packet).bits() * 1_000_000_000_000 + rate / 2) / rate
    }
}

/// Both directions of a path; data goes forward, ACKs come back in reverse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// Links from the data sender to the data receiver, in order.
    pub forward: Vec<Hop>,
    /// Links from the data receiver to the data sender, in order.
    pub reverse: Vec<Hop>,
    /// IP and TCP headers of every packet: 40 without options.
    pub headers: Bytes,
}

impl Path {
    /// The same links in both directions, headers without options.
    pub fn symmetric(links: Vec<Hop>) -> Path {
        let reverse = links.iter().rev().copied().collect();
        Path { forward: links, reverse, headers: Bytes(40) }
    }

    /// Propagation there and back, without any serialization.
    pub fn propagation(&self) -> Duration {
        self.forward.iter().chain(&self.reverse).map(|hop| hop.propagation).sum()
    }
}

/// Picoseconds. At 1 Tbit/s a frame takes 12 ns, so whole nanoseconds would be wrong by several per cent;
/// 128 bits because 584 years are 2^74 ps. All arithmetic on it saturates.
pub(crate) type Ps = u128;

pub(crate) fn ps(duration: Duration) -> Ps {
    u128::from(duration.as_nanos()) * 1000
}

/// Rounded to the nanosecond; [`Duration::MAX`] past its range.
pub(crate) fn duration(ps: Ps) -> Duration {
    Duration::from_nanos(u64::try_from(ps.saturating_add(500) / 1000).unwrap_or(u64::MAX))
}

/// Serialization and propagation of one packet through idle links.
pub(crate) fn crossing(hops: &[Hop], packet: Bytes) -> Ps {
    hops.iter().map(|hop| hop.serialization(packet) + ps(hop.propagation)).fold(0, Ps::saturating_add)
}

/// Spacing that the slowest link puts between packets of this size.
pub(crate) fn spacing(hops: &[Hop], packet: Bytes) -> Ps {
    hops.iter().map(|hop| hop.serialization(packet)).max().unwrap_or(0)
}
