//! Numbers of one kind, printed in one unit and to one precision, so that they compare by eye.

/// A unit and a precision that suit some numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    pub unit: &'static str,
    per_unit: f64,
    decimals: usize,
}

const SECONDS: [(&str, f64); 4] = [("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)];
const BIT_PER_S: [(&str, f64); 4] = [("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3), ("bit/s", 1.0)];
const BYTES: [(&str, f64); 4] = [("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0)];

impl Scale {
    /// For times in seconds: hundredths of the unit, where that tells them from zero.
    pub fn of_seconds(values: &[f64]) -> Scale {
        Scale::for_values(values, &SECONDS)
    }

    /// For rates in bit/s.
    pub fn of_bit_per_s(values: &[f64]) -> Scale {
        Scale::for_values(values, &BIT_PER_S)
    }

    /// For sizes in bytes.
    pub fn of_bytes(values: &[f64]) -> Scale {
        Scale::for_values(values, &BYTES)
    }

    /// For numbers in a unit that a column can have.
    pub fn of_unit(unit: &str, values: &[f64]) -> Scale {
        match unit {
            "s" => Scale::of_seconds(values),
            "bit/s" => Scale::of_bit_per_s(values),
            "B" => Scale::of_bytes(values),
            _ => Scale::of_counts(values),
        }
    }

    /// For shares of one: thousandths.
    pub fn of_shares(_values: &[f64]) -> Scale {
        Scale { unit: "", per_unit: 1.0, decimals: 3 }
    }

    /// For counts: whole where all are whole, else tenths.
    pub fn of_counts(values: &[f64]) -> Scale {
        let whole = values.iter().all(|value| value.fract() == 0.0);
        Scale { unit: "", per_unit: 1.0, decimals: usize::from(!whole) }
    }

    /// The largest unit that the largest value reaches; `units` has the largest first.
    fn for_values(values: &[f64], units: &[(&'static str, f64)]) -> Scale {
        let largest = values.iter().copied().fold(0.0, f64::max);
        let reached = units.iter().find(|(_, size)| match largest > 0.0 {
            true => largest >= *size,
            // Zero, or nothing: in the unit itself.
            false => *size == 1.0,
        });
        let &(unit, per_unit) = reached.unwrap_or(&units[units.len() - 1]);
        let small = values.iter().any(|value| *value > 0.0 && *value < 0.1 * per_unit);
        Scale { unit, per_unit, decimals: if small { 3 } else { 2 } }
    }

    pub fn text(&self, value: f64) -> String {
        format!("{:.*}", self.decimals, value / self.per_unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_column_share_unit_and_precision() {
        let times = Scale::of_seconds(&[50.169, 2119.3]);
        assert_eq!(
            (times.unit, times.text(50.169), times.text(2119.3)),
            ("s", "50.17".into(), "2119.30".into())
        );
        let short = Scale::of_seconds(&[0.0438, 0.0021]);
        assert_eq!(
            (short.unit, short.text(0.0438), short.text(0.0021)),
            ("ms", "43.80".into(), "2.10".into())
        );
        let wide = Scale::of_bit_per_s(&[9.31e6, 2.0e4]);
        assert_eq!(
            (wide.unit, wide.text(9.31e6), wide.text(2.0e4)),
            ("Mbit/s", "9.310".into(), "0.020".into())
        );
        assert_eq!(Scale::of_seconds(&[]).unit, "s");
        assert_eq!(Scale::of_bytes(&[0.0]).unit, "B");
    }

    #[test]
    fn counts_are_whole_or_tenths() {
        assert_eq!(Scale::of_counts(&[1092.0, 3.0]).text(1092.0), "1092");
        assert_eq!(Scale::of_counts(&[1097.25, 3.0]).text(3.0), "3.0");
    }
}
