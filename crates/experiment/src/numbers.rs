//! Values of a sweep as numbers that can be plotted and fitted.

use core::str::FromStr;
use farpath_units::{Bytes, Duration, Power, Probability, Rate};

/// Values that are all of one kind, as numbers of its base unit, and that unit: `s`, `B`, `bit/s`, `W`, or none of shares
/// and plain numbers. `None` where one of them is another kind, or a name.
pub fn numbers(values: &[impl AsRef<str>]) -> Option<(Vec<f64>, &'static str)> {
    parsed(values, |number: f64| number)
        .filter(|numbers| numbers.iter().all(|number| number.is_finite()))
        .map(|numbers| (numbers, ""))
        .or_else(|| Some((parsed(values, Duration::as_secs_f64)?, "s")))
        .or_else(|| Some((parsed(values, |size: Bytes| size.0 as f64)?, "B")))
        .or_else(|| Some((parsed(values, |rate: Rate| rate.bit_per_s() as f64)?, "bit/s")))
        .or_else(|| Some((parsed(values, Probability::fraction)?, "")))
        .or_else(|| Some((parsed(values, Power::as_watts_f64)?, "W")))
}

fn parsed<T: FromStr>(values: &[impl AsRef<str>], number: impl Fn(T) -> f64) -> Option<Vec<f64>> {
    values.iter().map(|text| text.as_ref().parse().ok().map(&number)).collect()
}

#[cfg(test)]
mod tests {
    use super::numbers;

    #[test]
    fn values_of_one_kind_are_numbers_of_its_base_unit() {
        for (values, wanted) in [
            (["500 ms", "2 s"], Some((vec![0.5, 2.0], "s"))),
            (["1.5 light-seconds", "0 s"], Some((vec![1.5, 0.0], "s"))),
            (["64 KiB", "1 MB"], Some((vec![65_536.0, 1e6], "B"))),
            (["10 Mbit/s", "1 kbit/s"], Some((vec![1e7, 1e3], "bit/s"))),
            (["0", "1 %"], Some((vec![0.0, 0.01], ""))),
            (["1e-7", "12"], Some((vec![1e-7, 12.0], ""))),
            (["25 mW", "1 W"], Some((vec![0.025, 1.0], "W"))),
            (["1 s", "1 B"], None),
            (["linux-6", "1"], None),
            (["inf", "1"], None),
        ] {
            assert_eq!(numbers(&values), wanted, "{values:?}");
        }
    }
}
