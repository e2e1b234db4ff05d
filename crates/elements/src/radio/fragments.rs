//! IP fragments of a packet over the MTU.

use farpath_units::Bytes;

/// IPv4, without options (RFC 791 §3.1).
const IP_HEADER: u64 = 20;

/// The pieces that a packet is sent in; one where it fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fragments {
    /// Length of all but the last.
    full: Bytes,
    last: Bytes,
    count: u64,
}

impl Fragments {
    /// RFC 791 §3.2: all but the last carry a multiple of 8 bytes, and each has a header of its own. `mtu` has room for
    /// 8 bytes behind one.
    pub fn for_packet(size: Bytes, mtu: Bytes) -> Fragments {
        if size <= mtu {
            return Fragments { full: size, last: size, count: 1 };
        }
        let room = (mtu.0.saturating_sub(IP_HEADER) / 8 * 8).max(8);
        let payload = size.0 - IP_HEADER;
        let count = payload.div_ceil(room);
        let last = payload - (count - 1) * room;
        Fragments { full: Bytes(room + IP_HEADER), last: Bytes(last + IP_HEADER), count }
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// Length of the piece with this number, from 0.
    pub fn size(&self, number: u64) -> Bytes {
        if number + 1 == self.count { self.last } else { self.full }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_that_fits_is_one_piece() {
        let whole = Fragments::for_packet(Bytes(1500), Bytes(1500));
        assert_eq!((whole.count(), whole.size(0)), (1, Bytes(1500)));
    }

    #[test]
    fn fragments_carry_multiples_of_eight_bytes_behind_a_header_each() {
        // RFC 791 section 3.2: 1480 B behind a header of 20 B in frames of 576 B: 552 + 552 + 376.
        let pieces = Fragments::for_packet(Bytes(1500), Bytes(576));
        let sizes: Vec<u64> = (0..pieces.count()).map(|n| pieces.size(n).0).collect();
        assert_eq!(sizes, [572, 572, 396]);
    }
}
