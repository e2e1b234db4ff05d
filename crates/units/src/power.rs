//! Electrical power, in whole microwatts.

use crate::decimal::{Kind, ParseQuantityError};
use core::fmt;
use core::str::FromStr;

const POWER: Kind = Kind {
    expected: "a power",
    example: "1.5 W",
    units: &[("uW", 1), ("mW", 1_000), ("W", 1_000_000), ("kW", 1_000_000_000)],
    whole: false,
};

const SHOWN: &[(&str, u64)] = &[("kW", 1_000_000_000), ("W", 1_000_000), ("mW", 1_000), ("uW", 1)];

/// Microwatts. Reads `1.5 W`, `25 mW`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Power(pub u64);

impl Power {
    /// The number of watts.
    pub fn as_watts_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl FromStr for Power {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Power, ParseQuantityError> {
        POWER.parse(text).map(Power)
    }
}

impl fmt::Display for Power {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        POWER.format(f, self.0, SHOWN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_read_and_shown_with_their_unit() {
        let power: Power = "1.5 W".parse().expect("a power");
        assert_eq!(
            (power, power.to_string().as_str(), power.as_watts_f64()),
            (Power(1_500_000), "1.5 W", 1.5)
        );
        assert!("20 dBm".parse::<Power>().is_err_and(|error| error.to_string().contains("uW, mW, W, kW")));
    }
}
