//! Error rates: per bit, and per packet.

use crate::Bytes;
use crate::decimal::{Kind, ParseQuantityError, parse_f64, split_number};
use core::fmt;
use core::str::FromStr;

const PROBABILITY: Kind = Kind {
    expected: "a fraction or a percentage",
    example: "1 %",
    units: &[("", 1), ("%", 100)],
    whole: false,
};
const BER: Kind = Kind { expected: "a bit error rate", example: "1e-7", units: &[("", 1)], whole: false };

/// A probability per packet: a loss rate (any cause) or a packet error rate (by bit errors), 0 to 1.
///
/// Reads `1 %`, `1%` and `0.01` as the same number.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Probability(f64);

impl Probability {
    /// Never.
    pub const ZERO: Probability = Probability(0.0);
    /// Always.
    pub const ONE: Probability = Probability(1.0);

    /// From a fraction; `None` unless it is within 0 and 1.
    pub fn new(fraction: f64) -> Option<Probability> {
        // -0.0 is within the range and would print as `-0 %`.
        (0.0..=1.0).contains(&fraction).then_some(Probability(fraction + 0.0))
    }

    /// As a fraction, 0 to 1.
    pub const fn fraction(self) -> f64 {
        self.0
    }

    /// The shortest percentage that reads back to the same fraction.
    fn percent(self) -> Option<f64> {
        let scientific = format!("{:e}", self.0);
        let (digits, exponent) = scientific.split_once('e')?;
        let exponent: i32 = exponent.parse().ok()?;
        let percent: f64 = format!("{digits}e{}", exponent + 2).parse().ok()?;
        (percent / 100.0 == self.0).then_some(percent)
    }

    /// The bit error rate at which a packet of `size` is hit with this probability: `1 - (1 - PER)^(1/bits)`.
    pub fn to_ber(self, size: Bytes) -> Ber {
        let bits = size.bits() as f64;
        Ber(-libm::expm1(libm::log1p(-self.0) / bits))
    }
}

impl FromStr for Probability {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Probability, ParseQuantityError> {
        let (number, unit) = split_number(text);
        let number = parse_f64(number).map_err(|hint| PROBABILITY.error(text, hint))?;
        let fraction = match unit {
            "" => number,
            "%" => number / 100.0,
            _ => return Err(PROBABILITY.error(text, format_args!("`{unit}` is not a unit of it (%)"))),
        };
        Probability::new(fraction).ok_or_else(|| PROBABILITY.error(text, "it is above 100 %"))
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Shortest text of the percentage where it reads back to the same fraction, else of the fraction. The point
        // is moved in the text: 100 times 1e-6 is 9.999999999999999e-5.
        let text = match f.precision() {
            Some(digits) => format!("{:.digits$} %", self.0 * 100.0),
            None => match self.percent() {
                Some(percent) => format!("{percent} %"),
                None => format!("{}", self.0),
            },
        };
        f.pad_integral(true, "", &text)
    }
}

/// Bit error rate: the probability that one bit arrives wrong, independent of the others. 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Ber(f64);

impl Ber {
    /// An error-free channel.
    pub const ZERO: Ber = Ber(0.0);

    /// From errors per bit; `None` unless it is within 0 and 1.
    pub fn new(errors_per_bit: f64) -> Option<Ber> {
        (0.0..=1.0).contains(&errors_per_bit).then_some(Ber(errors_per_bit + 0.0))
    }

    /// Errors per bit.
    pub const fn errors_per_bit(self) -> f64 {
        self.0
    }

    /// Packet error rate of `size`, exact for tiny rates too: `1 - (1 - BER)^bits` without the cancellation.
    pub fn to_per(self, size: Bytes) -> Probability {
        let bits = size.bits() as f64;
        Probability(-libm::expm1(bits * libm::log1p(-self.0)))
    }

    /// The common linear form, `BER * bits`. It is an expected number of errors, not a probability: it passes 1
    /// where the exact form is still below (at 1500 B from BER 8.3e-5 on).
    pub fn to_per_linear(self, size: Bytes) -> f64 {
        self.0 * size.bits() as f64
    }
}

impl FromStr for Ber {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Ber, ParseQuantityError> {
        let (number, unit) = split_number(text);
        if !unit.is_empty() {
            return Err(BER.error(text, "it is a plain number, without a unit"));
        }
        let number = parse_f64(number).map_err(|hint| BER.error(text, hint))?;
        Ber::new(number).ok_or_else(|| BER.error(text, "it is above 1"))
    }
}

impl fmt::Display for Ber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad_integral(true, "", &format!("{:e}", self.0))
    }
}
