//! The 16-bit rate of a QoS Structure, and what it counts.

use core::fmt;

/// Bit 14: the rate is not zero.
const NOT_ZERO: u16 = 1 << 14;
/// Bits 13..9.
const EXPONENT_SHIFT: u32 = 9;
/// Bits 8..0.
const MANTISSA: u16 = (1 << EXPONENT_SHIFT) - 1;

/// A rate as an ATM cell carries it: `nz · 2^e · (1 + m/512)` units (ATM Forum TM 4.0, ITU-T I.371).
///
/// Bit 15 is reserved: ignored when read, sent as 0. With `nz` = 0 the rate is zero whatever the other bits say;
/// they are kept, so that a structure is passed on as it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RateWord(u16);

/// Which way a rate that has no word of its own is rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    /// Routers and responders: a grant is never more than what was allocated.
    Down,
    /// Requesters: what is granted in full is no less than what was wanted.
    Up,
}

impl RateWord {
    /// No rate.
    pub const ZERO: RateWord = RateWord(0);
    /// The largest: 4 290 772 992 units.
    pub const MAX: RateWord = RateWord(0x7fff);

    /// From the 16 bits on the wire.
    pub const fn from_bits(bits: u16) -> RateWord {
        RateWord(bits & 0x7fff)
    }

    /// As on the wire, the reserved bit 0.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Exponent `e`, 0 to 31.
    pub const fn exponent(self) -> u32 {
        (self.0 >> EXPONENT_SHIFT) as u32 & 0x1f
    }

    /// Mantissa `m`, 0 to 511.
    pub const fn mantissa(self) -> u16 {
        self.0 & MANTISSA
    }

    /// Whether `nz` is 1.
    pub const fn is_not_zero(self) -> bool {
        self.0 & NOT_ZERO != 0
    }

    /// In units, a fraction below 1 cut off. It rises with the word where `nz` is 1.
    pub const fn units(self) -> u64 {
        if self.is_not_zero() {
            ((512 + self.mantissa() as u64) << self.exponent()) >> EXPONENT_SHIFT
        } else {
            0
        }
    }

    /// The word nearest to `units` on the side that `rounding` says. What is past [`RateWord::MAX`] becomes that.
    ///
    /// It is off by less than 1/512, and exact up to 1023 units.
    pub const fn from_units(units: u64, rounding: Rounding) -> RateWord {
        if units == 0 {
            return RateWord::ZERO;
        }
        if units >= RateWord::MAX.units() {
            return RateWord::MAX;
        }
        let exponent = units.ilog2();
        let significand = if exponent < 9 {
            units << (EXPONENT_SHIFT - exponent)
        } else {
            units >> (exponent - EXPONENT_SHIFT)
        };
        let down = NOT_ZERO | (exponent as u16) << EXPONENT_SHIFT | (significand as u16 & MANTISSA);
        match rounding {
            // The carry of a full mantissa is the next exponent.
            Rounding::Up if RateWord(down).units() < units => RateWord(down + 1),
            _ => RateWord(down),
        }
    }
}

impl fmt::LowerHex for RateWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&self.0, f)
    }
}

/// What one unit of a [`RateWord`] is: one for all nodes of a deployment. The paper does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RateUnit {
    /// 1000 bit/s of IP packets: 1 kbit/s to 4.29 Tbit/s.
    #[default]
    KbitPerS,
    /// 1 bit/s of IP packets; ends at 4.29 Gbit/s.
    BitPerS,
    /// One ATM cell a second, by the 384 bits that it carries: counted with its header, a grant would let more cells
    /// out than were allocated.
    CellsPerS,
}

impl RateUnit {
    /// All, the default first.
    pub const ALL: [RateUnit; 3] = [RateUnit::KbitPerS, RateUnit::BitPerS, RateUnit::CellsPerS];

    /// As files and flags spell it.
    pub const fn name(self) -> &'static str {
        match self {
            RateUnit::KbitPerS => "kbit/s",
            RateUnit::BitPerS => "bit/s",
            RateUnit::CellsPerS => "cells/s",
        }
    }

    /// Bits of IP packets, header included and framing excluded, in one unit.
    pub const fn bits(self) -> u64 {
        match self {
            RateUnit::KbitPerS => 1000,
            RateUnit::BitPerS => 1,
            RateUnit::CellsPerS => 384,
        }
    }

    /// A word in bit/s.
    pub const fn decode(self, word: RateWord) -> u64 {
        word.units() * self.bits()
    }

    /// A rate in bit/s as a word.
    pub const fn encode(self, bit_per_s: u64, rounding: Rounding) -> RateWord {
        let units = match rounding {
            Rounding::Down => bit_per_s / self.bits(),
            Rounding::Up => bit_per_s.div_ceil(self.bits()),
        };
        RateWord::from_units(units, rounding)
    }
}

#[cfg(test)]
mod tests {
    use super::{RateUnit, RateWord, Rounding};
    use proptest::prelude::*;

    #[test]
    fn every_word_of_65536_reads_as_its_three_fields_say() {
        for bits in 0..=u16::MAX {
            let word = RateWord::from_bits(bits);
            assert_eq!(word.bits(), bits & 0x7fff, "{bits:04x}");
            let (nz, e, m) = (u64::from(bits >> 14 & 1), u32::from(bits >> 9 & 31), u64::from(bits & 511));
            // 2^e + 2^e·m/512 in parts of 1/512, the fraction cut off last.
            let parts = u128::from(nz) * (1 << e) * u128::from(512 + m);
            assert_eq!(u128::from(word.units()), parts / 512, "{bits:04x}");
        }
    }

    #[test]
    fn the_code_is_monotone_and_comes_back_from_its_own_rate() {
        let mut last = 0;
        for bits in 0x4000..=0x7fff {
            let word = RateWord::from_bits(bits);
            let units = word.units();
            assert!(units >= last, "{bits:04x}");
            last = units;
            for rounding in [Rounding::Down, Rounding::Up] {
                assert_eq!(RateWord::from_units(units, rounding).units(), units, "{bits:04x}");
            }
            // Below 512 units words differ in the fraction that is cut off.
            if units >= 512 {
                assert_eq!(RateWord::from_units(units, Rounding::Down), word);
            }
        }
        assert_eq!(last, 4_290_772_992);
        assert_eq!(RateWord::from_bits(0x3fff).units(), 0, "without nz it is zero");
    }

    /// kbit/s, the word rounded down and its rate, the word rounded up and its rate.
    const VECTORS: [(u64, u16, u64, u16, u64); 11] = [
        (1, 0x4000, 1, 0x4000, 1),
        (64, 0x4c00, 64, 0x4c00, 64),
        (1000, 0x53e8, 1000, 0x53e8, 1000),
        (10_000, 0x5a71, 10_000, 0x5a71, 10_000),
        (12_000, 0x5aee, 12_000, 0x5aee, 12_000),
        (30_000, 0x5da9, 29_984, 0x5daa, 30_016),
        (35_000, 0x5e22, 34_944, 0x5e23, 35_008),
        (95_000, 0x60e6, 94_976, 0x60e7, 95_104),
        (100_000, 0x610d, 99_968, 0x610e, 100_096),
        (1_000_000, 0x67d0, 999_424, 0x67d1, 1_000_448),
        (10_000_000, 0x6e62, 9_994_240, 0x6e63, 10_010_624),
    ];

    #[test]
    fn known_rates_have_known_words() {
        for (kbit, down, down_kbit, up, up_kbit) in VECTORS {
            for (rounding, bits, decoded) in [(Rounding::Down, down, down_kbit), (Rounding::Up, up, up_kbit)]
            {
                let word = RateUnit::KbitPerS.encode(kbit * 1000, rounding);
                assert_eq!((word.bits(), word.units()), (bits, decoded), "{kbit} kbit/s {rounding:?}");
            }
        }
    }

    #[test]
    fn what_is_past_an_end_stays_there() {
        for rounding in [Rounding::Down, Rounding::Up] {
            assert_eq!(RateWord::from_units(u64::MAX, rounding), RateWord::MAX);
            assert_eq!(RateWord::from_units(0, rounding), RateWord::ZERO);
        }
        assert_eq!(RateUnit::KbitPerS.encode(999, Rounding::Down), RateWord::ZERO);
        assert_eq!(RateUnit::KbitPerS.encode(1, Rounding::Up).units(), 1);
    }

    proptest! {
        #[test]
        fn rounding_goes_its_way_by_less_than_a_step(
            rate in 1..4_000_000_000_000_u64,
            unit in prop::sample::select(&RateUnit::ALL[..]),
        ) {
            prop_assume!(rate / unit.bits() < RateWord::MAX.units());
            let down = unit.decode(unit.encode(rate, Rounding::Down));
            let up = unit.decode(unit.encode(rate, Rounding::Up));
            prop_assert!(down <= rate && rate <= up, "{down} {rate} {up}");
            // One unit of the division, and one part in 512 of the code.
            prop_assert!(up - down <= rate / 512 + 2 * unit.bits(), "{down} {rate} {up}");
        }

        #[test]
        fn a_larger_rate_has_no_smaller_word(a in 0..5_000_000_000_u64, b in 0..5_000_000_000_u64) {
            for rounding in [Rounding::Down, Rounding::Up] {
                let (low, high) = (RateWord::from_units(a.min(b), rounding), RateWord::from_units(a.max(b), rounding));
                prop_assert!(low.bits() <= high.bits());
            }
        }
    }
}
