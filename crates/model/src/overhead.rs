//! What headers cost: overhead of a segment, maximum throughput of a link, packets of a file.

use crate::estimate::above_zero;
use crate::{Estimate, InputError, Throughput};
use farpath_units::{Bytes, Rate};

const SOURCE: &str = "Sarkar, Ammann, Zabir, Electronics 2022, 11, 2254, Eq. 8-9; IEEE 802.3";

/// Bytes that travel with each segment's payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overhead {
    /// Preamble and start delimiter: 8 on Ethernet.
    pub preamble: Bytes,
    /// Link header: 14 on Ethernet.
    pub link_header: Bytes,
    /// Frame check sequence: 4 on Ethernet.
    pub fcs: Bytes,
    /// Inter-frame gap: 12 on Ethernet.
    pub gap: Bytes,
    /// IP header: 20 for IPv4 without options.
    pub ip: Bytes,
    /// TCP header: 20 without options.
    pub tcp: Bytes,
}

impl Overhead {
    /// IPv4 and TCP without options over Ethernet: 78 B in all, 38 of them Ethernet's.
    ///
    /// The high-BER paper has the same sum as preamble 8, "CRC" 18 (header and FCS) and gap 12.
    pub const ETHERNET: Overhead = Overhead {
        preamble: Bytes(8),
        link_header: Bytes(14),
        fcs: Bytes(4),
        gap: Bytes(12),
        ip: Bytes(20),
        tcp: Bytes(20),
    };

    /// The sum.
    pub fn total(&self) -> Bytes {
        [self.preamble, self.link_header, self.fcs, self.gap, self.ip, self.tcp].into_iter().sum()
    }
}

/// A link kept busy with full segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FullLink {
    /// Every bit on the wire counts.
    pub rate: Rate,
    /// Payload of a full segment.
    pub mss: Bytes,
    /// Everything else that travels with it.
    pub overhead: Bytes,
}

impl FullLink {
    /// `mss / (mss + overhead) * rate / 8`: what is left for the application.
    ///
    /// Eq. 8-9. Domain: the link never idles, carries full segments only and no ACKs the same way. An upper bound.
    pub fn maximum_throughput(&self) -> Result<Estimate<Throughput>, InputError> {
        above_zero("the segment size", self.mss.0)?;
        let share = self.mss.0 as f64 / (self.mss.0 as f64 + self.overhead.0 as f64);
        let bytes_per_s = share * (self.rate.bit_per_s() as f64 / 8.0);
        Ok(Estimate::new(Throughput::from_bytes_per_s(bytes_per_s), SOURCE))
    }
}

/// A file cut into segments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Packets {
    /// `size / mss`, as the high-BER paper counts: 6849.32.
    pub quotient: f64,
    /// Segments that are sent: the quotient rounded up.
    pub segments: u64,
    /// Payload of the last one.
    pub last: Bytes,
}

/// Segments that carry a file of `size` bytes, `mss` each.
pub fn packets_of_file(size: Bytes, mss: Bytes) -> Result<Estimate<Packets>, InputError> {
    above_zero("the segment size", mss.0)?;
    let segments = size.0.div_ceil(mss.0);
    let last = Bytes(size.0 - segments.saturating_sub(1) * mss.0);
    let packets = Packets { quotient: size.0 as f64 / mss.0 as f64, segments, last };
    Ok(Estimate::new(packets, SOURCE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn high_ber_paper_equation_9() {
        let rate = Rate::from_bit_per_s(10_000_000).expect("not zero");
        let overhead = Overhead::ETHERNET.total();
        assert_eq!(overhead, Bytes(78));
        let maximum = FullLink { rate, mss: Bytes(1460), overhead }.maximum_throughput().unwrap();
        assert!((maximum.value.bytes_per_s() - 1_186_605.98).abs() < 0.005);
    }

    #[test]
    fn high_ber_paper_has_6849_32_packets_and_sends_6850() {
        let packets = packets_of_file(Bytes(10_000_000), Bytes(1460)).unwrap().value;
        assert!((packets.quotient - 6849.32).abs() < 0.005);
        assert_eq!((packets.segments, packets.last), (6850, Bytes(460)));
        let none = packets_of_file(Bytes(0), Bytes(1460)).unwrap().value;
        assert_eq!((none.segments, none.last), (0, Bytes(0)));
        let all = packets_of_file(Bytes::MAX, Bytes(1)).unwrap().value;
        assert_eq!((all.segments, all.last), (u64::MAX, Bytes(1)));
    }

    #[test]
    fn ten_gigabit_is_used_to_95_per_cent() {
        let rate = Rate::from_bit_per_s(10_000_000_000).expect("not zero");
        let link = FullLink { rate, mss: Bytes(1460), overhead: Bytes(78) };
        let bit_per_s = link.maximum_throughput().unwrap().value.bit_per_s();
        assert!((bit_per_s / 9.492_847_854e9 - 1.0).abs() < 1e-9);
        let endless = FullLink { overhead: Bytes::MAX, ..link };
        assert!(endless.maximum_throughput().unwrap().value.bytes_per_s() > 0.0);
    }
}
