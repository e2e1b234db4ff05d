//! Sequence numbers on the wire, and their place in a stream that does not wrap.

use core::fmt;

/// A 32-bit sequence number (RFC 9293 §3.4). It wraps, so it has no order: a 10 Gbit/s flow is round in 3.4 s.
///
/// Inside the endpoint positions are `u64` and never wrap; [`Seq::advanced_by`] and [`Seq::position`]
/// are the only crossing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Seq(pub u32);

impl Seq {
    /// The sequence number of the byte at `position`, where position 0 has the sequence number `self`.
    pub const fn advanced_by(self, position: u64) -> Seq {
        Seq(self.0.wrapping_add(position as u32))
    }

    /// The position that this number stands for, given that `isn` is position 0 and the
    /// true position is within 2^31 of `near`. `None` where that would be before the stream began.
    pub const fn position(self, isn: Seq, near: u64) -> Option<u64> {
        let offset = self.0.wrapping_sub(isn.0).wrapping_sub(near as u32) as i32;
        near.checked_add_signed(offset as i64)
    }
}

impl fmt::Debug for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Seq({})", self.0)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_survive_the_wrap() {
        let isn = Seq(u32::MAX - 10);
        for position in [0, 5, 11, 12, 1 << 31, (1 << 32) + 7, 5 << 32] {
            assert_eq!(
                isn.advanced_by(position).position(isn, position.saturating_sub(1000)),
                Some(position)
            );
            assert_eq!(isn.advanced_by(position).position(isn, position + 1_000_000), Some(position));
        }
    }

    #[test]
    fn a_number_from_before_the_stream_has_no_position() {
        assert_eq!(Seq(99).position(Seq(100), 0), None);
    }
}
