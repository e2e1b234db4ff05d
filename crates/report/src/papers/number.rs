//! One number or a list of them, as a claim file writes them.

use core::fmt;
use serde::Deserialize;

/// One number, or one for each point.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "OneOrMany")]
pub struct Numbers(pub Vec<f64>);

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(f64),
    Many(Vec<f64>),
}

impl From<OneOrMany> for Numbers {
    fn from(numbers: OneOrMany) -> Numbers {
        match numbers {
            OneOrMany::One(number) => Numbers(vec![number]),
            OneOrMany::Many(numbers) => Numbers(numbers),
        }
    }
}

impl Numbers {
    /// As JSON: a number, or a list.
    pub fn to_json(&self) -> serde_json::Value {
        match self.0.as_slice() {
            [one] => (*one).into(),
            many => many.to_vec().into(),
        }
    }
}

impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.0.iter().map(|&number| readable(number)).collect();
        f.pad(&texts.join(", "))
    }
}

/// Six significant digits at most, without trailing zeros.
pub(crate) fn readable(number: f64) -> String {
    if !number.is_finite() {
        return number.to_string();
    }
    let magnitude = if number == 0.0 { 0 } else { number.abs().log10().floor() as i32 };
    if !(-4..=9).contains(&magnitude) {
        let text = format!("{number:.4e}");
        let (digits, exponent) = text.split_once('e').expect("it was written with an exponent");
        return format!("{}e{exponent}", without_trailing_zeros(digits));
    }
    let decimals = (5 - magnitude).clamp(0, 8) as usize;
    without_trailing_zeros(&format!("{number:.decimals$}")).to_owned()
}

fn without_trailing_zeros(text: &str) -> &str {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::readable;

    #[test]
    fn numbers_keep_six_digits_and_no_trailing_zeros() {
        for (number, text) in [
            (50.154_590_4, "50.1546"),
            (6854.0, "6854"),
            (0.0, "0"),
            (f64::INFINITY, "inf"),
            (1_186_605.98, "1186606"),
            (1.2e-13, "1.2e-13"),
            (1e-5, "1e-5"),
        ] {
            assert_eq!(readable(number), text);
        }
    }
}
