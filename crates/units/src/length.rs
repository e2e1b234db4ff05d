//! Lengths, in whole metres.

use crate::decimal::{Kind, ParseQuantityError};
use core::fmt;
use core::str::FromStr;

const LENGTH: Kind =
    Kind { expected: "a length", example: "550 km", units: &[("m", 1), ("km", 1_000)], whole: false };

const SHOWN: &[(&str, u64)] = &[("km", 1_000), ("m", 1)];

/// Metres. Reads `550 km`, `800 m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Length(pub u64);

impl Length {
    /// The number of kilometres.
    pub fn as_km_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }
}

impl FromStr for Length {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Length, ParseQuantityError> {
        LENGTH.parse(text).map(Length)
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        LENGTH.format(f, self.0, SHOWN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_and_shown_with_their_unit() {
        let length: Length = "550 km".parse().expect("a length");
        assert_eq!(
            (length, length.to_string().as_str(), length.as_km_f64()),
            (Length(550_000), "550 km", 550.0)
        );
        assert!("-5 km".parse::<Length>().is_err_and(|error| error.to_string().ends_with("it is negative")));
    }
}
