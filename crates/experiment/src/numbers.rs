//! Values of a sweep as numbers that can be plotted and fitted.

use farpath_units::{Bytes, Duration, Power, Probability, Rate};

/// What a value is a quantity of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A plain number.
    Number,
    /// A time.
    Duration,
    /// A size.
    Size,
    /// A rate.
    Rate,
    /// A share, plain or in %.
    Share,
    /// A power.
    Power,
}

impl Kind {
    /// In this order: a plain number is a share too.
    const ALL: [Kind; 6] = [Kind::Number, Kind::Duration, Kind::Size, Kind::Rate, Kind::Share, Kind::Power];

    /// The kind of all these values; `None` where they are of several, or names.
    pub fn of_values(values: &[impl AsRef<str>]) -> Option<Kind> {
        let holds = |kind: &Kind| values.iter().all(|value| kind.number(value.as_ref()).is_some());
        Kind::ALL.into_iter().find(holds)
    }

    /// The base unit: `s`, `B`, `bit/s`, `W`, or none of shares and plain numbers.
    pub fn unit(self) -> &'static str {
        match self {
            Kind::Number | Kind::Share => "",
            Kind::Duration => "s",
            Kind::Size => "B",
            Kind::Rate => "bit/s",
            Kind::Power => "W",
        }
    }

    /// A value of this kind in the base unit; `None` for one of another kind.
    pub fn number(self, value: &str) -> Option<f64> {
        match self {
            Kind::Number => value.parse().ok().filter(|number: &f64| number.is_finite()),
            Kind::Duration => value.parse().ok().map(Duration::as_secs_f64),
            Kind::Size => value.parse().ok().map(|size: Bytes| size.0 as f64),
            Kind::Rate => value.parse().ok().map(|rate: Rate| rate.bit_per_s() as f64),
            Kind::Share => value.parse().ok().map(Probability::fraction),
            Kind::Power => value.parse().ok().map(Power::as_watts_f64),
        }
    }
}

/// Values that are all of one kind, as numbers of its base unit, and that unit. `None` where one of them is another kind, or
/// a name.
pub fn numbers(values: &[impl AsRef<str>]) -> Option<(Vec<f64>, &'static str)> {
    let kind = Kind::of_values(values)?;
    let numbers = values.iter().map(|value| kind.number(value.as_ref())).collect::<Option<_>>()?;
    Some((numbers, kind.unit()))
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
