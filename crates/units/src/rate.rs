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
/// `8 Mbps` is read as `8 Mbit/s`, as iperf3, ethtool and tc write it, and `1 MB/s` as bytes, of which goodput is made; both are
/// written in bit/s. `8 MBps` and a bare `8M` are refused with both readings: they are a factor of eight apart.
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

/// A rate of any number of bit/s in the unit that it is best read in, with two digits behind the point.
pub fn bit_rate_text(bit_per_s: f64) -> String {
    let units = [(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")];
    let (scale, unit) = units.into_iter().find(|(scale, _)| bit_per_s >= *scale).unwrap_or(units[2]);
    format!("{:.2} {unit}", bit_per_s / scale)
}

/// Other spellings that are read, in bit/s; none is written.
const ALSO: Kind = Kind {
    units: &[
        ("bps", 1),
        ("kbps", 1_000),
        ("Kbps", 1_000),
        ("Mbps", 1_000_000),
        ("Gbps", 1_000_000_000),
        ("Tbps", 1_000_000_000_000),
        ("B/s", 8),
        ("kB/s", 8_000),
        ("MB/s", 8_000_000),
        ("GB/s", 8_000_000_000),
    ],
    ..RATE
};

/// The prefix of a unit that says neither bits nor bytes, or says it by the case of one letter alone.
fn ambiguous(unit: &str) -> Option<&'static str> {
    [
        ("k", ["k", "K", "kBps", "kb/s", "Kb/s"]),
        ("M", ["M", "m", "MBps", "Mb/s", "mb/s"]),
        ("G", ["G", "g", "GBps", "Gb/s", "gb/s"]),
    ]
    .into_iter()
    .find(|(_, units)| units.contains(&unit))
    .map(|(prefix, _)| prefix)
}

impl FromStr for Rate {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Rate, ParseQuantityError> {
        let (number, unit) = split_number(text);
        if let Some(prefix) = ambiguous(unit) {
            return Err(RATE.error(
                text,
                format_args!(
                    "it could be `{number} {prefix}bit/s` or `{number} {prefix}B/s`: write one of them"
                ),
            ));
        }
        let kind = if ALSO.units.iter().any(|(also, _)| *also == unit) { &ALSO } else { &RATE };
        let bit_per_s = kind.parse(text)?;
        Rate::from_bit_per_s(bit_per_s).ok_or_else(|| RATE.error(text, "it is zero"))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        RATE.format(f, self.0.get(), SHOWN)
    }
}
