//! A line that sends one packet after the other.

use crate::{MarkThreshold, QueueLimit};
use farpath_units::{Bytes, Rate};

/// One direction of a line, with the queue before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// Bits on the wire, framing included.
    pub rate: Rate,
    /// Drop-tail.
    pub queue: QueueLimit,
    /// ECN.
    pub mark: MarkThreshold,
    /// Framing per packet, on top of the IP packet.
    pub overhead: Bytes,
    /// Shortest IP packet that is sent without padding.
    pub min_packet: Bytes,
    /// Both directions, or several stations, take turns on it.
    pub is_shared: bool,
}

impl Line {
    /// Size of an IP packet on the wire.
    pub fn frame(&self, packet: Bytes) -> Bytes {
        framed(packet, self.overhead, self.min_packet)
    }
}

/// Size of an IP packet on the wire of a link: padded to `min_packet`, plus its framing.
pub(crate) fn framed(size: Bytes, overhead: Bytes, min_packet: Bytes) -> Bytes {
    size.max(min_packet) + overhead
}

/// So many times as fast.
pub(crate) fn faster(rate: Rate, factor: u64) -> Rate {
    Rate::from_bit_per_s(rate.bit_per_s().saturating_mul(factor)).unwrap_or(rate)
}
