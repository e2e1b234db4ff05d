//! Sizes, in whole bytes.

use crate::decimal::{Kind, ParseQuantityError};
use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Sub, SubAssign};
use core::str::FromStr;

const SIZE: Kind = Kind {
    expected: "a size",
    example: "64 kB",
    units: &[
        ("B", 1),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
    ],
    whole: true,
};

const SHOWN: &[(&str, u64)] =
    &[("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000), ("B", 1)];

/// A number of bytes. Reads `8760 B`, `10 MB` (10^7), `64 KiB` (65 536). Bits are refused by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

impl Bytes {
    /// No bytes.
    pub const ZERO: Bytes = Bytes(0);
    /// As many as can be counted.
    pub const MAX: Bytes = Bytes(u64::MAX);

    /// Bits in so many bytes; 128 wide, because a terabyte-sized file times 8 and a nanosecond is past 64.
    pub fn bits(self) -> u128 {
        u128::from(self.0) * 8
    }

    /// `self - other`, or zero where `other` is larger.
    pub const fn saturating_sub(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_sub(other.0))
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        *self = *self + other;
    }
}

impl Sub for Bytes {
    type Output = Bytes;
    fn sub(self, other: Bytes) -> Bytes {
        Bytes(self.0.checked_sub(other.0).expect("the smaller size is subtracted from the larger"))
    }
}

impl SubAssign for Bytes {
    fn sub_assign(&mut self, other: Bytes) {
        *self = *self - other;
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Bytes>>(sizes: I) -> Bytes {
        sizes.fold(Bytes::ZERO, Add::add)
    }
}

impl FromStr for Bytes {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Bytes, ParseQuantityError> {
        let error = match SIZE.parse(text) {
            Ok(bytes) => return Ok(Bytes(bytes)),
            Err(error) => error,
        };
        let (number, unit) = crate::decimal::split_number(text);
        if let Some(prefix) = ["K", "M", "G", "T"].iter().find(|prefix| prefix.eq_ignore_ascii_case(unit)) {
            let decimal = if *prefix == "K" { "k" } else { prefix };
            return Err(SIZE.error(
                text,
                format_args!("it could be `{number} {decimal}B` or `{number} {prefix}iB`: write one of them"),
            ));
        }
        if unit.ends_with('b') || unit.contains("bit") {
            return Err(SIZE.error(text, "sizes are in bytes (`B`), not in bits"));
        }
        if unit == "KB" {
            return Err(SIZE.error(text, "write `kB` for 1000 bytes or `KiB` for 1024"));
        }
        Err(error)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        SIZE.format(f, self.0, SHOWN)
    }
}
