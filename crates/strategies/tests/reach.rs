//! What the strategies reach: every parameter of a stack, every shipped stack, every kind of element.

use farpath_elements::ElementKind;
use farpath_experiment::{ShippedFile, Stack, shipped_paths, shipped_stacks, to_toml};
use farpath_strategies::{Values, paths, stacks};
use farpath_tcp::Config;
use farpath_tcp::config::{Kind, parameters};
use farpath_units::Bytes;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::mem::discriminant;
use toml::{Table, Value};

/// The same values each time.
fn draw<S: Strategy>(strategy: &S, count: usize) -> Vec<S::Value> {
    let mut runner = TestRunner::deterministic();
    (0..count).map(|_| strategy.new_tree(&mut runner).expect("nothing is filtered").current()).collect()
}

/// What a stack file says of `config`, by key.
fn written(config: &Config) -> BTreeMap<String, Value> {
    let table: Table = to_toml(config).parse().expect("it was just written");
    let mut all = BTreeMap::new();
    for (key, value) in table {
        match value {
            Value::Table(section) => {
                all.extend(section.into_iter().map(|(name, value)| (format!("{key}.{name}"), value)));
            }
            value => drop(all.insert(key, value)),
        }
    }
    all
}

/// Each parameter is changed, each of its words and either position of a switch is met, and where it can be absent it is both.
#[test]
fn every_parameter_is_drawn() {
    let shipped = |file: &ShippedFile| {
        let stack = Stack::load(file.name).expect("it ships");
        (file.name, written(&stack.config))
    };
    let bases: BTreeMap<&str, BTreeMap<String, Value>> = shipped_stacks().iter().map(shipped).collect();
    for values in [Values::Workable, Values::Any] {
        let mut changed: BTreeSet<String> = BTreeSet::new();
        let mut met: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for stack in draw(&stacks(values), 500) {
            for (key, value) in written(&stack) {
                if value != bases[stack.base][&key] {
                    changed.insert(key.clone());
                }
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                met.entry(key).or_default().insert(text);
            }
        }
        assert_eq!(changed, written(&Config::default()).into_keys().collect(), "{values:?}");
        for parameter in parameters() {
            let met = &met[&parameter.key()];
            let missed = |words: &[&str]| words.iter().any(|word| !met.contains(*word));
            let misses = match parameter.kind {
                Kind::Switch => missed(&["true", "false"]),
                Kind::Word(words) => missed(&words.iter().map(|word| word.name).collect::<Vec<_>>()),
                _ => met.len() < 5 || missed(parameter.absent.as_slice()),
            };
            assert!(!misses, "{values:?}: of {parameter:?} only {met:?}");
        }
    }
}

/// Three times in four at most a few parameters are changed, half of these times none.
#[test]
fn shipped_stacks_come_first() {
    let drawn = draw(&stacks(Values::Workable), 1000);
    let changed_at_most =
        |most| drawn.iter().filter(|stack| stack.changes.len() <= most).count() as f64 / 1000.0;
    let (none, few) = (changed_at_most(0), changed_at_most(7));
    assert!((0.34..0.42).contains(&none) && (0.72..0.82).contains(&few), "{none} {few}");
    let met: BTreeSet<&str> = drawn.iter().filter(|stack| stack.changes.is_empty()).map(|s| s.base).collect();
    assert_eq!(met, shipped_stacks().iter().map(|file| file.name).collect());
    assert!(drawn.iter().any(|stack| stack.receive.buffer > Bytes(8 << 20)));
}

#[test]
fn every_element_and_every_shipped_path_is_drawn() {
    let drawn = draw(&paths(), 1000);
    let met: HashSet<_> = drawn.iter().flatten().map(|element| discriminant(&element.kind)).collect();
    assert_eq!(met.len(), ElementKind::COUNT);
    let ready_made = drawn.iter().filter(|path| path.first().is_some_and(|first| first.name != "element-0"));
    let ready_made: BTreeSet<String> = ready_made.map(|path| format!("{path:?}")).collect();
    assert_eq!(ready_made.len(), shipped_paths().len());
}
