//! Decimal numbers with a unit: read exactly, printed shortest.

use core::fmt;

/// Why a text is not the quantity that was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected} such as `{example}`, found `{found}`{hint}")]
pub struct ParseQuantityError {
    /// What was expected, with its article: "a rate".
    pub expected: &'static str,
    /// A text that would have been accepted.
    pub example: &'static str,
    /// The text as given.
    pub found: String,
    /// What is wrong with it, when that can be said; starts with its own punctuation.
    pub hint: String,
}

/// A kind of quantity: its name and the units that it is written in.
pub(crate) struct Kind {
    pub expected: &'static str,
    pub example: &'static str,
    /// Unit, and how many base units one of it is.
    pub units: &'static [(&'static str, u64)],
    /// Whether a part of a base unit is refused; it is rounded otherwise.
    pub whole: bool,
}

impl Kind {
    pub fn error(&self, found: &str, hint: impl fmt::Display) -> ParseQuantityError {
        let hint = hint.to_string();
        let hint = if hint.is_empty() { hint } else { format!(": {hint}") };
        ParseQuantityError { expected: self.expected, example: self.example, found: found.to_owned(), hint }
    }

    /// Reads `text` as a whole number of base units, rounding half up below one of them.
    pub fn parse(&self, text: &str) -> Result<u64, ParseQuantityError> {
        let fail = |hint: &str| self.error(text, hint);
        let (number, unit) = split_number(text);
        let decimal = Decimal::parse(number).map_err(|hint| fail(&hint))?;
        if unit.is_empty() {
            return Err(fail("it has no unit"));
        }
        let &(_, scale) = self
            .units
            .iter()
            .find(|(name, _)| *name == unit)
            .ok_or_else(|| fail(&self.unknown_unit(unit)))?;
        let (value, exact) = decimal.times(scale).ok_or_else(|| fail("it is out of range"))?;
        if self.whole && !exact {
            return Err(fail("it is not a whole number of them"));
        }
        Ok(value)
    }

    fn unknown_unit(&self, unit: &str) -> String {
        // By the case of a letter, or what is understood elsewhere.
        let per_second = format!("{unit}/s");
        let meant = |name: &str| name.eq_ignore_ascii_case(unit) || name.eq_ignore_ascii_case(&per_second);
        if let Some((name, _)) = self.units.iter().find(|(name, _)| meant(name)) {
            return format!("`{unit}` is not a unit of it; did you mean `{name}`?");
        }
        let known = self.units.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        format!("`{unit}` is not a unit of it ({known})")
    }

    /// Prints `value` base units in the largest unit of `shown` that needs no more than three
    /// decimals, else in the smallest.
    pub fn format(
        &self,
        f: &mut fmt::Formatter<'_>,
        value: u64,
        shown: &[(&'static str, u64)],
    ) -> fmt::Result {
        let (unit, scale) = shown
            .iter()
            .copied()
            .filter(|&(_, scale)| value >= scale)
            .find(|&(_, scale)| (u128::from(value) * 1000).is_multiple_of(u128::from(scale)))
            .unwrap_or(shown[shown.len() - 1]);
        let text = match f.precision() {
            // A precision asks for reading ease: the largest unit that leaves one digit before the point.
            Some(digits) => {
                let (unit, scale) = shown.iter().copied().find(|&(_, s)| value >= s).unwrap_or((unit, scale));
                format!("{:.*} {unit}", digits, value as f64 / scale as f64)
            }
            None => format!("{}{} {unit}", value / scale, fraction(value % scale, scale)),
        };
        f.pad_integral(true, "", &text)
    }
}

/// The decimals of `rest / scale`, at most three, without trailing zeros.
fn fraction(rest: u64, scale: u64) -> String {
    let thousandths = u128::from(rest) * 1000 / u128::from(scale);
    let digits = format!(".{thousandths:03}");
    digits.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Splits `10.5 Mbit/s` into its number and its unit.
pub(crate) fn split_number(text: &str) -> (&str, &str) {
    let text = text.trim();
    let bytes = text.as_bytes();
    let mut end = 0;
    while end < bytes.len() {
        let part_of_number = match bytes[end] {
            b'0'..=b'9' | b'.' | b'_' => true,
            b'+' | b'-' => end == 0 || matches!(bytes[end - 1], b'e' | b'E'),
            // An exponent, not the first letter of a unit.
            b'e' | b'E' => end > 0 && matches!(bytes.get(end + 1), Some(b'0'..=b'9' | b'+' | b'-')),
            _ => false,
        };
        if !part_of_number {
            break;
        }
        end += 1;
    }
    (&text[..end], text[end..].trim_start())
}

/// A non-negative decimal number, `mantissa * 10^exponent`.
pub(crate) struct Decimal {
    mantissa: u128,
    exponent: i32,
}

impl Decimal {
    pub fn parse(text: &str) -> Result<Decimal, String> {
        if text.is_empty() {
            return Err("it does not start with a number".to_owned());
        }
        if text.starts_with('-') {
            return Err("it is negative".to_owned());
        }
        let bad = || format!("`{text}` is not a number");
        let unsigned = text.strip_prefix('+').unwrap_or(text);
        let (digits, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((digits, exponent)) => (digits, exponent.parse::<i32>().map_err(|_| bad())?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let mut mantissa: u128 = 0;
        let mut seen = 0;
        for byte in whole.bytes().chain(fraction.bytes()).filter(|&b| b != b'_') {
            let digit = char::from(byte).to_digit(10).ok_or_else(bad)?;
            mantissa = mantissa
                .checked_mul(10)
                .and_then(|m| m.checked_add(u128::from(digit)))
                .filter(|&m| m < 10u128.pow(27))
                .ok_or_else(|| format!("`{text}` has too many digits"))?;
            seen += 1;
        }
        if seen == 0 {
            return Err(bad());
        }
        let decimals = fraction.bytes().filter(|&b| b != b'_').count() as i32;
        Ok(Decimal { mantissa, exponent: exponent.checked_sub(decimals).ok_or_else(bad)? })
    }

    /// `self * scale`, rounded half up to a whole number, and whether it was one; `None` out of `u64`'s range.
    fn times(&self, scale: u64) -> Option<(u64, bool)> {
        let mut product = self.mantissa.checked_mul(u128::from(scale))?;
        let mut exponent = self.exponent;
        while exponent > 0 && product != 0 {
            product = product.checked_mul(10)?;
            exponent -= 1;
        }
        let mut exact = true;
        if exponent < 0 {
            // A divisor past u128 is past any product too: the value rounds to nothing.
            (product, exact) = match 10u128.checked_pow(exponent.unsigned_abs()) {
                Some(divisor) => {
                    let rest = product % divisor;
                    (product / divisor + u128::from(rest >= divisor.div_ceil(2)), rest == 0)
                }
                None => (0, product == 0),
            };
        }
        Some((u64::try_from(product).ok()?, exact))
    }
}

/// Reads a dimensionless number such as `1e-7` as the `f64` nearest to it.
pub(crate) fn parse_f64(number: &str) -> Result<f64, String> {
    Decimal::parse(number)?;
    let plain: String = number.chars().filter(|&c| c != '_').collect();
    plain.parse().map_err(|_| format!("`{number}` is not a number"))
}
