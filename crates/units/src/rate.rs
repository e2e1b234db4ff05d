//! Rates, in bit/s.

use crate::decimal::{Kind, ParseQuantityError, split_number};
use crate::{Bytes, Duration};
use core::fmt;
use core::num::NonZeroU64;
use core::str::FromStr;

const RATE: Kind = Kind {
    expected: "a rate",
    example: "8 Mbit/s",
    units: &[
        ("bit/s", 1),
        ("kbit/s", 1_000),
        ("Mbit/s", 1_000_000),
        ("Gbit/s", 1_000_000_000),
        ("Tbit/s", 1_000_000_000_000),
    ],
    whole: true,
};

const SHOWN: &[(&str, u64)] =
    &[("Gbit/s", 1_000_000_000), ("Mbit/s", 1_000_000), ("kbit/s", 1_000), ("bit/s", 1)];

/// A rate in bit/s, never zero. A link rate counts every bit on the wire; goodput counts payload only.
///
/// `8 MBps` and `8 Mbps` are refused by name: the two are a factor of eight apart and one letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(NonZeroU64);

impl Rate {
    /// From bit/s; `None` for zero.
    pub const fn from_bit_per_s(bit_per_s: u64) -> Option<Rate> {
        match NonZeroU64::new(bit_per_s) {
            Some(rate) => Some(Rate(rate)),
            None => None,
        }
    }

    /// In bit/s.
    pub const fn bit_per_s(self) -> u64 {
        self.0.get()
    }

    /// Serialization time of `size`, rounded up so that a link never beats its own rate.
    pub fn time_to_send(self, size: Bytes) -> Duration {
        let ns = match size.0.checked_mul(8_000_000_000) {
            // The usual packet: 64-bit division is several times faster than 128-bit.
            Some(bit_ns) => bit_ns.div_ceil(self.0.get()),
            None => {
                let bit_ns = size.bits() * 1_000_000_000;
                u64::try_from(bit_ns.div_ceil(u128::from(self.0.get()))).unwrap_or(u64::MAX)
            }
        };
        Duration::from_nanos(ns)
    }
}

impl FromStr for Rate {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Rate, ParseQuantityError> {
        let (_, unit) = split_number(text);
        if unit.ends_with("ps") || unit.ends_with("B/s") {
            return Err(
                RATE.error(text, format_args!("write bits and seconds out, as in `Mbit/s`, not `{unit}`"))
            );
        }
        let bit_per_s = RATE.parse(text)?;
        Rate::from_bit_per_s(bit_per_s).ok_or_else(|| RATE.error(text, "it is zero"))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        RATE.format(f, self.0.get(), SHOWN)
    }
}
