//! TCP stacks: the shipped ones, and what becomes of them when parameters are changed.

use crate::between;
use core::fmt;
use farpath_experiment::{Stack, shipped_stacks, to_toml};
use farpath_tcp::Config;
use farpath_tcp::config::{Kind, Parameter, parameters};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::ops::{Deref, RangeInclusive};
use std::rc::Rc;
use std::sync::LazyLock;
use toml::{Table, Value};

/// Which values are drawn for a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    /// Those with which a transfer over a path of some seconds can come to an end.
    Workable,
    /// Whatever a stack file can say.
    Any,
}

/// A parameter by its key in a stack file, and its new value.
pub type Change = (String, Value);

/// A shipped stack with changes.
#[derive(Clone, PartialEq)]
pub struct DrawnStack {
    /// The shipped stack.
    pub base: &'static str,
    /// The parameters that were changed; a later change of one parameter replaces an earlier one.
    pub changes: Vec<Change>,
    /// What came of it.
    pub config: Config,
}

/// As many parameters as it takes for a strange stack.
const MANY: usize = 100;

/// A shipped stack three times in four, half of these with some parameters changed; else one of which about a third of the
/// parameters are changed. A failure shrinks to the shipped stack and the changes that matter.
pub fn stacks(values: Values) -> impl Strategy<Value = DrawnStack> {
    let change = change(values);
    let changes = prop_oneof![
        3 => Just(Vec::new()),
        3 => vec(change.clone(), 1..8),
        2 => vec(change, 0..=MANY),
    ];
    ((0..SHIPPED.len()).no_shrink(), changes)
        .prop_map(|(base, changes)| DrawnStack::from_shipped(&SHIPPED[base], &changes))
}

/// Stacks for what has to hold whatever they are: one in ten with any values, the others workable.
pub fn all_stacks() -> impl Strategy<Value = DrawnStack> {
    prop_oneof![9 => stacks(Values::Workable).boxed(), 1 => stacks(Values::Any).boxed()]
}

impl DrawnStack {
    fn from_shipped(shipped: &Shipped, changes: &[Vec<Change>]) -> DrawnStack {
        let mut drawn =
            DrawnStack { base: shipped.name, changes: Vec::new(), config: shipped.config.clone() };
        drawn.change(&mut shipped.table.clone(), changes);
        drawn
    }

    /// Makes `changes`; of those that the stack format does not accept together, the first ones.
    fn change(&mut self, table: &mut Table, changes: &[Vec<Change>]) {
        if changes.is_empty() {
            return;
        }
        let mut changed = table.clone();
        for (key, value) in changes.iter().flatten() {
            *parameter(&mut changed, key) = value.clone();
        }
        if let Ok(stack) = Stack::parse(&format!("title = \"\"\n{changed}"), self.base) {
            *table = changed;
            self.config = stack.config;
            self.changes.extend(changes.iter().flatten().cloned());
        } else if changes.len() > 1 {
            let (first, second) = changes.split_at(changes.len() / 2);
            self.change(table, first);
            self.change(table, second);
        }
    }
}

impl Deref for DrawnStack {
    type Target = Config;
    fn deref(&self) -> &Config {
        &self.config
    }
}

impl fmt::Debug for DrawnStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.base)?;
        let mut between = " with";
        for (key, value) in &self.changes {
            write!(f, "{between} {key} = {value}")?;
            between = ",";
        }
        Ok(())
    }
}

struct Shipped {
    name: &'static str,
    config: Config,
    table: Table,
}

static SHIPPED: LazyLock<Vec<Shipped>> = LazyLock::new(|| {
    let read = |name| {
        let config = Stack::load(name).expect("it ships").config;
        Shipped { name, table: to_toml(&config).parse().expect("it was just written"), config }
    };
    shipped_stacks().iter().map(|file| read(file.name)).collect()
});

/// The value of the parameter `key` in a stack file.
fn parameter<'a>(table: &'a mut Table, key: &str) -> &'a mut Value {
    let (section, name) = key.split_once('.').unwrap_or(("", key));
    let table = match section {
        "" => table,
        section => table[section].as_table_mut().expect("a section"),
    };
    &mut table[name]
}

/// One parameter with a value for it, and what else has to change with it.
fn change(values: Values) -> impl Strategy<Value = Vec<Change>> + Clone {
    let parameters: Vec<_> =
        parameters().map(|parameter| (parameter.key(), value(parameter, values))).collect();
    let parameters = Rc::new(parameters);
    let one = (0..parameters.len()).no_shrink().prop_flat_map(move |place| {
        let (key, value) = parameters[place].clone();
        (Just(key), value)
    });
    one.prop_map(|(key, value)| {
        // One is refused without the other.
        let is_composite = key == "explicit_rate.guaranteed" && value.as_str() != Some("none");
        let with = is_composite.then(|| ("explicit_rate.type".to_owned(), Value::from("composite")));
        with.into_iter().chain([(key, value)]).collect()
    })
}

/// Any value of a parameter.
fn value(parameter: &Parameter, values: Values) -> BoxedStrategy<Value> {
    let number = || {
        between(match values {
            Values::Any => parameter.within.clone(),
            Values::Workable => workable(parameter),
        })
    };
    // In the smallest unit, not as values of that type are shown: what a file says of them is under test.
    let quantity = |numbers: BoxedStrategy<u64>, unit: &'static str| {
        numbers.prop_map(move |number| Value::String(format!("{number} {unit}"))).boxed()
    };
    let given = match parameter.kind {
        Kind::Switch => any::<bool>().prop_map(Value::Boolean).boxed(),
        Kind::Word(words) => select(words).prop_map(|word| Value::String(word.name.to_owned())).boxed(),
        Kind::Count => number().prop_map(|count| Value::Integer(count as i64)).boxed(),
        Kind::Duration => quantity(number(), "ns"),
        Kind::Bytes => quantity(number(), "B"),
        Kind::Rate => quantity(number(), "bit/s"),
        Kind::ByteRate => quantity(number().prop_map(|bytes| bytes * 8).boxed(), "bit/s"),
    };
    match parameter.absent {
        Some(word) => prop_oneof![Just(Value::String(word.to_owned())), given].boxed(),
        None => given,
    }
}

/// The numbers of [`Values::Workable`]: nanoseconds, bytes, bit/s, bytes per second, or a count.
fn workable(parameter: &Parameter) -> RangeInclusive<u64> {
    parameter.workable.clone().unwrap_or(match parameter.kind {
        Kind::Duration => 0..=1_000_000_000,
        Kind::Bytes => 1..=16 << 20,
        Kind::Rate => 1_000..=1_000_000_000,
        Kind::ByteRate => 1_000..=10_000_000,
        Kind::Count | Kind::Switch | Kind::Word(_) => 0..=100,
    })
}
