//! When a number is near enough.

use super::number::{Numbers, readable};
use core::fmt;
use farpath_units::Probability;
use serde::Deserialize;

/// When a number is near enough. Every part that is given must hold, for every number.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// At most so far from what is expected, relative to it: `"1 %"`.
    within: Option<String>,
    /// The same when rounded to so many decimals.
    decimals: Option<i32>,
    /// Between these two, both included; one pair, or one for each number.
    between: Option<Pairs>,
    /// At least.
    at_least: Option<f64>,
    /// At most.
    at_most: Option<f64>,
    /// Each number is larger, or smaller, than the one before it.
    order: Option<Order>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Pairs {
    One([f64; 2]),
    Many(Vec<[f64; 2]>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Order {
    Rising,
    Falling,
}

impl Rule {
    /// Why the rule makes no sense with so many numbers expected, if it does not.
    pub(super) fn fault(&self, expected: Option<&Numbers>) -> Option<String> {
        if self.within.is_none()
            && self.decimals.is_none()
            && self.between.is_none()
            && self.at_least.is_none()
            && self.at_most.is_none()
            && self.order.is_none()
        {
            return Some("the check has no rule: it could not fail".to_owned());
        }
        if let Some(Err(error)) = self.within.as_deref().map(str::parse::<Probability>) {
            return Some(format!("rule.within: {error}"));
        }
        let compares = self.within.is_some() || self.decimals.is_some();
        (compares && expected.is_none()).then(|| {
            "the rule compares, and there is nothing to compare with: `published` or `correct`".to_owned()
        })
    }

    /// Whether `found` is near enough to `expected`.
    pub(super) fn holds(&self, found: &Numbers, expected: Option<&Numbers>) -> bool {
        if let Some(expected) = expected
            && (self.within.is_some() || self.decimals.is_some())
            && (found.0.len() != expected.0.len()
                || !found.0.iter().zip(&expected.0).all(|(&found, &expected)| self.near(found, expected)))
        {
            return false;
        }
        let inside = |index: usize, number: f64| match &self.between {
            None => true,
            Some(Pairs::One([low, high])) => (*low..=*high).contains(&number),
            Some(Pairs::Many(pairs)) => {
                pairs.get(index).is_some_and(|[low, high]| (*low..=*high).contains(&number))
            }
        };
        let whole = match &self.between {
            Some(Pairs::Many(pairs)) => pairs.len() == found.0.len(),
            _ => true,
        };
        let ordered = found.0.windows(2).all(|pair| match self.order {
            None => true,
            Some(Order::Rising) => pair[0] < pair[1],
            Some(Order::Falling) => pair[0] > pair[1],
        });
        whole
            && ordered
            && !found.0.is_empty()
            && found.0.iter().enumerate().all(|(index, &number)| {
                number.is_finite()
                    && inside(index, number)
                    && self.at_least.is_none_or(|least| number >= least)
                    && self.at_most.is_none_or(|most| number <= most)
            })
    }

    /// For how many of several numbers it holds, each by itself; none where they must be in order, or are not as many as
    /// expected.
    pub(super) fn held(&self, found: &Numbers, expected: Option<&Numbers>) -> usize {
        let compares = self.within.is_some() || self.decimals.is_some();
        let count = found.0.len();
        let bands = match &self.between {
            Some(Pairs::Many(pairs)) => pairs.len(),
            _ => count,
        };
        let pairs = if compares { expected.map_or(0, |expected| expected.0.len()) } else { count };
        if count < 2 || self.order.is_some() || bands != count || pairs != count {
            return 0;
        }
        let one = |index: usize| {
            let mut rule = self.clone();
            if let Some(Pairs::Many(pairs)) = &self.between {
                rule.between = Some(Pairs::One(pairs[index]));
            }
            let expected = expected.filter(|_| compares).map(|expected| Numbers(vec![expected.0[index]]));
            rule.holds(&Numbers(vec![found.0[index]]), expected.as_ref())
        };
        (0..count).filter(|&index| one(index)).count()
    }

    fn near(&self, found: f64, expected: f64) -> bool {
        let within = self.within.as_deref().and_then(|text| text.parse::<Probability>().ok());
        // A part in 10^12 above the tolerance is the decimal's own rounding.
        within
            .is_none_or(|share| (found - expected).abs() <= expected.abs() * share.fraction() * (1.0 + 1e-12))
            && self.decimals.is_none_or(|decimals| {
                let unit = 10f64.powi(-decimals);
                (found - expected).abs() <= unit * 0.5 * (1.0 + 1e-6)
            })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if let Some(within) = &self.within {
            parts.push(format!("within {within}"));
        }
        match self.decimals {
            Some(0) => parts.push("equal as whole numbers".to_owned()),
            Some(decimals) => parts.push(format!("equal to {decimals} decimals")),
            None => {}
        }
        let pair = |[low, high]: &[f64; 2]| format!("{}..{}", readable(*low), readable(*high));
        match &self.between {
            Some(Pairs::One(one)) => parts.push(pair(one)),
            Some(Pairs::Many(many)) => parts.push(many.iter().map(pair).collect::<Vec<_>>().join(", ")),
            None => {}
        }
        parts.extend(self.at_least.map(|least| format!("at least {}", readable(least))));
        parts.extend(self.at_most.map(|most| format!("at most {}", readable(most))));
        parts.extend(self.order.map(|order| match order {
            Order::Rising => "rising".to_owned(),
            Order::Falling => "falling".to_owned(),
        }));
        f.pad(&parts.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> Rule {
        toml::from_str(text).unwrap()
    }

    fn numbers(list: &[f64]) -> Numbers {
        Numbers(list.to_vec())
    }

    #[test]
    fn within_is_relative_to_what_is_expected() {
        let rule = rule("within = '1 %'");
        assert!(rule.holds(&numbers(&[50.7]), Some(&numbers(&[50.21]))));
        assert!(!rule.holds(&numbers(&[50.8]), Some(&numbers(&[50.21]))));
        assert!(!rule.holds(&numbers(&[50.21, 1.0]), Some(&numbers(&[50.21]))), "as many as expected");
    }

    #[test]
    fn decimals_are_those_that_a_paper_prints() {
        assert!(rule("decimals = 2").holds(&numbers(&[45.662_1]), Some(&numbers(&[45.66]))));
        assert!(!rule("decimals = 2").holds(&numbers(&[45.666]), Some(&numbers(&[45.66]))));
    }

    #[test]
    fn bands_order_and_limits_hold_for_every_number() {
        let bands = rule("between = [[0, 0], [0, 3]]");
        assert!(bands.holds(&numbers(&[0.0, 1.1]), None));
        assert!(!bands.holds(&numbers(&[0.0, 3.1]), None));
        assert!(!bands.holds(&numbers(&[0.0]), None));
        assert!(!rule("order = 'falling'").holds(&numbers(&[3.0, 2.0, 2.0]), None));
        assert!(!rule("at_least = 1").holds(&numbers(&[f64::NAN]), None));
    }

    #[test]
    fn of_several_numbers_those_that_hold_by_themselves_are_counted() {
        let held = |text: &str, list: &[f64], expected: Option<&[f64]>| {
            rule(text).held(&numbers(list), expected.map(numbers).as_ref())
        };
        assert_eq!(held("within = '1 %'", &[50.0, 60.0], Some(&[50.2, 50.2])), 1);
        assert_eq!(held("between = [[0, 1], [0, 1], [2, 3]]", &[0.5, 2.0, 2.0], Some(&[9.0, 9.0, 9.0])), 2);
        assert_eq!(held("at_most = 1", &[0.5, 2.0], None), 1);
        // Alone, in order, or not as many as expected: whole or not at all.
        assert_eq!(held("at_most = 1", &[0.5], None), 0);
        assert_eq!(held("order = 'rising'\nat_most = 1", &[0.5, 0.2], None), 0);
        assert_eq!(held("between = [[0, 1]]", &[0.5, 0.2], None), 0);
        assert_eq!(held("within = '1 %'", &[50.0, 60.0], Some(&[50.0])), 0);
    }

    #[test]
    fn a_rule_that_could_not_fail_is_a_fault() {
        assert!(Rule::default().fault(None).is_some());
        assert!(rule("decimals = 1").fault(None).is_some());
        assert!(rule("within = '1 parsec'").fault(Some(&numbers(&[1.0]))).is_some());
        assert!(rule("at_most = 1").fault(None).is_none());
    }
}
