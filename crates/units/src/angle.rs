//! Angles, in whole microdegrees.

use crate::decimal::{Kind, ParseQuantityError};
use core::fmt;
use core::str::FromStr;

const ANGLE: Kind = Kind {
    expected: "an angle",
    example: "51.5 deg",
    units: &[("deg", 1_000_000), ("\u{b0}", 1_000_000)],
    whole: false,
};

const SHOWN: &[(&str, u64)] = &[("deg", 1_000_000)];

/// Microdegrees, negative to the south, to the west and below. Reads `51.5 deg`, `-0.1 deg`, `53\u{b0}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Angle(pub i64);

impl Angle {
    /// The number of degrees.
    pub fn as_degrees_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The number of radians.
    pub fn as_radians_f64(self) -> f64 {
        self.as_degrees_f64() * (core::f64::consts::PI / 180.0)
    }
}

impl FromStr for Angle {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Angle, ParseQuantityError> {
        let (negative, size) = match text.trim().strip_prefix('-') {
            Some(size) => (true, size),
            None => (false, text),
        };
        let signed = ANGLE
            .parse(size)
            .and_then(|size| i64::try_from(size).map_err(|_| ANGLE.error(text, "it is out of range")));
        match signed {
            Ok(size) => Ok(Angle(if negative { -size } else { size })),
            Err(error) => Err(ParseQuantityError { found: text.to_owned(), ..error }),
        }
    }
}

impl fmt::Display for Angle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 0 {
            f.write_str("-")?;
        }
        ANGLE.format(f, self.0.unsigned_abs(), SHOWN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn angles_are_read_and_shown_with_their_sign() {
        for (text, microdegrees, shown) in [
            ("51.5 deg", 51_500_000, "51.5 deg"),
            ("-0.125\u{b0}", -125_000, "-0.125 deg"),
            ("0 deg", 0, "0 deg"),
        ] {
            let angle: Angle = text.parse().expect("an angle");
            assert_eq!((angle, angle.to_string().as_str()), (Angle(microdegrees), shown));
        }
        assert!((Angle(180_000_000).as_radians_f64() - core::f64::consts::PI).abs() < 1e-15);
        for odd in ["51.5", "--1 deg", "5 rad", "1e30 deg"] {
            assert!(odd.parse::<Angle>().is_err_and(|error| error.to_string().contains(odd)), "{odd}");
        }
    }
}
