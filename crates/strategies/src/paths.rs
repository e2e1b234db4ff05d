//! Paths: the shipped ones, and chains of elements of every kind.

use farpath_elements::{Draws, ElementKind, ElementSpec};
use farpath_experiment::{Experiment, shipped_paths};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::sync::LazyLock;

/// The most numbers that an element draws.
const NUMBERS: usize = 96;

/// A shipped path one time in four, else up to six elements of any kind.
pub fn paths() -> impl Strategy<Value = Vec<ElementSpec>> {
    let drawn = vec(elements(), 0..=6).prop_map(|kinds| {
        let named = kinds.into_iter().enumerate();
        named.map(|(place, kind)| ElementSpec { name: format!("element-{place}"), kind }).collect()
    });
    prop_oneof![3 => drawn, 1 => select(&SHIPPED[..])]
}

static SHIPPED: LazyLock<Vec<Vec<ElementSpec>>> = LazyLock::new(|| {
    let read = |name| {
        let text = format!("title = \"\"\npath = \"{name}\"\ntransfer.size = \"1 B\"");
        let experiment = Experiment::parse(&text, name, &[]).unwrap_or_else(|error| panic!("{error}"));
        experiment.point(0).scenario.path.clone()
    };
    shipped_paths().iter().map(|file| read(file.name)).collect()
});

/// An element of any kind, as it says itself.
fn elements() -> impl Strategy<Value = ElementKind> {
    vec(any::<u64>(), NUMBERS).prop_map(|numbers| ElementKind::draw(&mut Draws::new(numbers)))
}
