//! A range in a sweep, in place of a list: `"0.01 s to 30 s by 0.01 s"`, `"1 kB to 1000 kB times 10"`.

use toml::Value;

/// The most points that one experiment may have, and so the most values of a key.
pub const MAX_POINTS: usize = 10_000_000;

/// Digits that a multiplied value keeps: `12.35 ms`, and not `12.345678 ms`.
const DIGITS: usize = 4;

/// A range: its first end and what follows from it, its last end where a step meets it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Steps {
    from: f64,
    by: By,
    /// How many values.
    pub count: usize,
    unit: String,
}

/// How one value follows from the one before it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum By {
    Added(f64),
    Multiplied(f64),
}

impl Steps {
    /// A value, which has the unit of the range's ends; what it means is for the key to say.
    pub fn value_at(&self, index: usize) -> Value {
        let number = match self.by {
            // Rounded to twelve digits: 0.1 + 0.2 is 0.3.
            By::Added(step) => rounded(self.from + step * index as f64, 12),
            By::Multiplied(factor) => rounded(self.from * factor.powi(index as i32), DIGITS),
        };
        with_unit(number, &self.unit)
    }
}

/// Reads a range. The error says why it is none.
pub(crate) fn steps(text: &str) -> Result<Steps, String> {
    let Some((from, to, step)) = split(text) else {
        return Err(format!(
            "expected a list, or a range such as `0.01 s to 30 s by 0.01 s` or `1 kB to 1000 kB times 10`, found `{text}`"
        ));
    };
    let (from, unit) = number(from)?;
    let (to, last_unit) = number(to)?;
    one_unit(unit, last_unit)?;
    let (by, steps) = match step {
        Step::By(step) => {
            let (step, step_unit) = number(step)?;
            one_unit(unit, step_unit)?;
            let steps = (to - from) / step;
            if !(steps >= 0.0 && steps.is_finite()) {
                return Err("no step of the range leads from its first end to its last".to_owned());
            }
            (By::Added(step), steps)
        }
        Step::Times(factor) => {
            let (factor, _) = number(factor)?;
            let steps = (to / from).ln() / factor.ln();
            if !(from > 0.0 && factor > 0.0 && steps >= 0.0 && steps.is_finite()) {
                return Err("no factor of the range leads from its first end to its last".to_owned());
            }
            (By::Multiplied(factor), steps)
        }
    };
    // A part in 10^9 is the decimals' own rounding.
    let steps = (steps * (1.0 + 1e-9)).floor();
    match steps < MAX_POINTS as f64 {
        true => Ok(Steps { from, by, count: steps as usize + 1, unit: unit.to_owned() }),
        false => Err(format!("more than {MAX_POINTS} points")),
    }
}

/// Numbers without a unit stay numbers: a count, a seed.
pub(crate) fn with_unit(number: f64, unit: &str) -> Value {
    match unit {
        "" if number.fract() == 0.0 => Value::Integer(number as i64),
        "" => Value::Float(number),
        unit => Value::String(format!("{number} {unit}")),
    }
}

/// How a text says it.
enum Step<'a> {
    By(&'a str),
    Times(&'a str),
}

fn split(text: &str) -> Option<(&str, &str, Step<'_>)> {
    let (from, rest) = text.split_once(" to ")?;
    let (to, step) = match (rest.split_once(" by "), rest.split_once(" times ")) {
        (Some((to, step)), None) => (to, Step::By(step)),
        (None, Some((to, factor))) => (to, Step::Times(factor)),
        _ => return None,
    };
    Some((from, to, step))
}

pub(crate) fn one_unit(unit: &str, other: &str) -> Result<(), String> {
    let shown = |unit: &str| if unit.is_empty() { "none".to_owned() } else { format!("`{unit}`") };
    match unit == other {
        true => Ok(()),
        false => Err(format!("a range has one unit, found {} and {}", shown(unit), shown(other))),
    }
}

/// A number of at most 15 digits, and its unit.
pub(crate) fn number(text: &str) -> Result<(f64, &str), String> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && !"+-.".contains(c)).unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim_start());
    match number.parse::<f64>() {
        Ok(value) if value.is_finite() && number.len() <= 15 => Ok((value, unit)),
        _ => Err(format!("expected a number with its unit, found `{text}`")),
    }
}

pub(crate) fn rounded(value: f64, digits: usize) -> f64 {
    format!("{value:.*e}", digits - 1).parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(range: &str) -> Vec<String> {
        let steps = steps(range).unwrap();
        (0..steps.count).map(|index| crate::sweep::label(&steps.value_at(index))).collect()
    }

    #[test]
    fn steps_are_added_or_multiplied() {
        assert_eq!(texts("0.1 s to 0.4 s by 0.1 s"), ["0.1 s", "0.2 s", "0.3 s", "0.4 s"]);
        assert_eq!(texts("3 to 1 by -1"), ["3", "2", "1"]);
        assert_eq!(texts("0 % to 1 % by 0.4 %"), ["0 %", "0.4 %", "0.8 %"]);
        assert_eq!(texts("1 kB to 1000 kB times 10"), ["1 kB", "10 kB", "100 kB", "1000 kB"]);
        assert_eq!(texts("10 ms to 20 ms times 1.4"), ["10 ms", "14 ms", "19.6 ms"]);
        assert_eq!(steps("1 to 2 by 1").unwrap().value_at(1), Value::Integer(2));
        assert_eq!(texts("0.01 s to 30 s by 0.01 s").len(), 3000);
        assert_eq!(texts("5 s to 5 s by 1 s"), ["5 s"]);
    }

    #[test]
    fn what_is_no_range_says_why() {
        for (text, word) in [
            ("20 ms", "expected a list, or a range"),
            ("1 s to 2 s", "expected a list"),
            ("1 ms to 2 s by 1 ms", "one unit, found `ms` and `s`"),
            ("1 s to 2 s by 1 ms", "one unit, found `s` and `ms`"),
            ("1 s to 2 s by 0 s", "no step"),
            ("2 s to 1 s by 1 s", "no step"),
            ("0 s to 1 s times 2", "no factor"),
            ("1 s to 2 s times 1", "no factor"),
            ("a to b by c", "expected a number"),
            ("0 to 1 by 0.00000001", "more than 10000000 points"),
        ] {
            let error = steps(text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
