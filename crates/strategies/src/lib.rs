//! What property tests draw: stacks, paths and flows, those that ship first and strange ones second; and what must hold of every
//! simulation of them. For tests, no part of the command.

mod conservation;
mod flows;
mod paths;
mod stacks;

pub use conservation::check_conservation;
pub use flows::{DrawnFlow, Scenario, flows, scenarios};
pub use paths::paths;
pub use stacks::{Change, DrawnStack, Values, all_stacks, stacks};

use proptest::prelude::*;
use std::ops::RangeInclusive;

/// A whole number, each order of magnitude as likely as any other; the ends of the range more often. It shrinks to the least.
fn between(range: RangeInclusive<u64>) -> BoxedStrategy<u64> {
    let (least, most) = range.into_inner();
    let logarithm = |number: u64| (number.max(1) as f64).ln();
    let (low, high) = (logarithm(least), logarithm(most));
    let inside = (0.0..=1.0).prop_map(move |share: f64| {
        let drawn = (low + share * (high - low)).exp();
        (drawn as u64).clamp(least, most)
    });
    prop_oneof![1 => Just(least), 8 => inside, 1 => Just(most)].boxed()
}
