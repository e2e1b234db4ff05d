//! The points of a sweep.

use crate::design::{Design, Drawn};
use crate::error::{ExperimentError, Location};
use crate::range::{MAX_POINTS, Steps, steps};
use crate::reader::{as_list, as_table};
use toml::{Table, Value};

/// One direction of a sweep: a key and its values, or keys that are walked together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axis {
    /// Dotted keys.
    pub keys: Vec<String>,
    /// How many values each of them has.
    pub steps: usize,
    /// How many points on the next value comes: one of the last axis, which moves fastest.
    pub stride: usize,
}

/// A key, its list of values, and where that stands.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    pub key: String,
    pub values: Values,
    pub at: Location,
    /// Beside the file, and not in it.
    given: bool,
}

/// The values of a key. What a rule gives is made when it is asked for: a million of them take no room.
#[derive(Debug, Clone)]
pub(crate) enum Values {
    Listed(Vec<Value>),
    Stepped(Steps),
    Drawn(Drawn),
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Values::Listed(list) => list.len(),
            Values::Stepped(steps) => steps.count,
            Values::Drawn(drawn) => drawn.len(),
        }
    }

    fn value_at(&self, step: usize) -> Value {
        match self {
            Values::Listed(list) => list[step].clone(),
            Values::Stepped(steps) => steps.value_at(step),
            Values::Drawn(drawn) => drawn.value_at(step),
        }
    }
}

/// The most keys that a sweep may have: each point has a value of each.
pub const MAX_SWEPT: usize = 1000;

/// Series that are walked together; one alone is a dimension of the grid.
#[derive(Debug, Clone)]
pub(crate) struct Group(Vec<Series>);

/// A key, the value it gets, and the entry of the sweep that says so.
pub(crate) type Change = (String, Value, Location);

/// All of a sweep, checked in itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sweep(Vec<Group>);

impl Sweep {
    /// Reads `[sweep]`.
    pub fn read(value: Option<&Value>, origin: &str) -> Result<Sweep, ExperimentError> {
        let at = Location { origin: origin.to_owned(), key: "sweep".to_owned() };
        let Some(value) = value else { return Ok(Sweep::default()) };
        let mut groups = Vec::new();
        for (key, value) in as_table(value, &at)? {
            if key == "zip" {
                let at = at.child("zip");
                let mut zipped = Vec::new();
                collect(as_table(value, &at)?, "", &at, &mut zipped)?;
                check_lengths(&zipped)?;
                if !zipped.is_empty() {
                    groups.push(Group(zipped));
                }
            } else if let Some(design) = Design::named(key) {
                let at = at.child(key);
                let drawn = design.read(as_table(value, &at)?, &at)?.into_iter();
                let series =
                    |(key, drawn, at)| Series { key, values: Values::Drawn(drawn), at, given: false };
                groups.push(Group(drawn.map(series).collect()));
            } else {
                let mut grid = Vec::new();
                let single = Table::from_iter([(key.clone(), value.clone())]);
                collect(&single, "", &at, &mut grid)?;
                groups.extend(grid.into_iter().map(|series| Group(vec![series])));
            }
        }
        Ok(Sweep(groups))
    }

    /// Refuses keys that mean the same parameter.
    pub fn check_distinct(&self, canonical: impl Fn(&str) -> String) -> Result<(), ExperimentError> {
        let swept = self.0.iter().map(|group| group.0.len()).sum::<usize>();
        if let Some(series) = self.0.iter().flat_map(|group| &group.0).nth(MAX_SWEPT) {
            let reason = format!("expected {MAX_SWEPT} keys in a sweep at the most, found {swept}");
            return Err(series.at.refuse(reason));
        }
        let mut seen = Vec::new();
        for series in self.0.iter().flat_map(|group| &group.0) {
            let full = canonical(&series.key);
            if seen.contains(&full) {
                return Err(series.at.refuse(format!("`{full}` is swept twice")));
            }
            seen.push(full);
        }
        Ok(())
    }

    /// Gives `key` these values in place of those that it has, or sweeps over it too. Where it is zipped, others may follow:
    /// [`Sweep::check_lengths`] when all of them are given.
    pub fn replace(&mut self, key: &str, value: &Value, at: Location) -> Result<(), ExperimentError> {
        let series = Series { given: true, ..Series::read(key.to_owned(), value, at)? };
        for group in &mut self.0 {
            if let Some(place) = group.0.iter().position(|other| other.key == key) {
                group.0[place] = series;
                return Ok(());
            }
        }
        self.0.push(Group(vec![series]));
        Ok(())
    }

    /// Refuses zipped lists that are not equally long.
    pub fn check_lengths(&self) -> Result<(), ExperimentError> {
        self.0.iter().try_for_each(|group| check_lengths(&group.0))
    }

    /// Takes the keys for which `fixed` holds out of the sweep.
    pub fn without(mut self, fixed: impl Fn(&str) -> bool) -> Sweep {
        for group in &mut self.0 {
            group.0.retain(|series| !fixed(&series.key));
        }
        self.0.retain(|group| !group.0.is_empty());
        self
    }

    /// The number of points, which is refused where it is too large.
    pub fn points(&self, origin: &str) -> Result<usize, ExperimentError> {
        let product = self.0.iter().try_fold(1, |points: usize, group| points.checked_mul(group.steps()));
        product.filter(|&points| points <= MAX_POINTS).ok_or_else(|| {
            let at = Location { origin: origin.to_owned(), key: "sweep".to_owned() };
            at.refuse(format!("more than {MAX_POINTS} points"))
        })
    }

    /// The changes that make point `index`; the last axis moves fastest.
    pub fn point(&self, index: usize) -> Vec<Change> {
        let mut rest = index;
        let mut changes = Vec::new();
        for group in self.0.iter().rev() {
            let step = rest % group.steps();
            rest /= group.steps();
            // Backwards, as the whole list is turned round below.
            changes.extend(
                group
                    .0
                    .iter()
                    .rev()
                    .map(|series| (series.key.clone(), series.values.value_at(step), series.at.entry(step))),
            );
        }
        changes.reverse();
        changes
    }

    /// Values of a key that tell of which kind all of them are: those of a range are all of one.
    pub fn representatives(&self, key: &str) -> Vec<Value> {
        let series = self.0.iter().flat_map(|group| &group.0).find(|series| series.key == key);
        series.map_or_else(Vec::new, |series| match &series.values {
            Values::Listed(list) => list.clone(),
            Values::Stepped(steps) => vec![steps.value_at(0)],
            Values::Drawn(drawn) => drawn.representatives(),
        })
    }

    /// As users see it.
    pub fn axes(&self) -> Vec<Axis> {
        let mut stride = 1;
        let axis = |group: &Group| {
            let keys = group.0.iter().map(|series| series.key.clone()).collect();
            let axis = Axis { keys, steps: group.steps(), stride };
            stride *= axis.steps;
            axis
        };
        let mut axes: Vec<Axis> = self.0.iter().rev().map(axis).collect();
        axes.reverse();
        axes
    }
}

impl Axis {
    /// Which of its values point `index` has.
    pub fn step_of(&self, index: usize) -> usize {
        index / self.stride % self.steps
    }
}

impl Group {
    fn steps(&self) -> usize {
        self.0[0].values.len()
    }
}

/// A value as a table of results shows it.
pub(crate) fn label(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        // A bit error rate of 1e-9, not 0.000000001.
        Value::Float(number) if *number != 0.0 && number.abs() < 1e-3 => format!("{number:e}"),
        Value::Float(number) => number.to_string(),
        other => other.to_string(),
    }
}

/// Finds the lists under `table`. TOML reads `path.loss = [..]` without quotes as tables within tables.
fn collect(
    table: &Table,
    prefix: &str,
    at: &Location,
    found: &mut Vec<Series>,
) -> Result<(), ExperimentError> {
    for (key, value) in table {
        let dotted = crate::error::join(prefix, key);
        if let Value::Table(inner) = value {
            collect(inner, &dotted, at, found)?;
            continue;
        }
        let at = Location { origin: at.origin.clone(), key: format!("{}.\"{dotted}\"", at.key) };
        found.push(Series::read(dotted, value, at)?);
    }
    Ok(())
}

impl Series {
    fn read(key: String, value: &Value, at: Location) -> Result<Series, ExperimentError> {
        if key.split('.').any(str::is_empty) {
            return Err(at.refuse("not a dotted key such as `path.loss.rate`"));
        }
        let values = match value {
            Value::String(text) => Values::Stepped(steps(text).map_err(|reason| at.refuse(reason))?),
            value => Values::Listed(as_list(value, &at)?.to_vec()),
        };
        if values.len() == 0 {
            return Err(at.refuse("the list is empty: there would be nothing to run"));
        }
        Ok(Series { key, values, at, given: false })
    }
}

fn check_lengths(zipped: &[Series]) -> Result<(), ExperimentError> {
    let Some((first, others)) = zipped.split_first() else { return Ok(()) };
    let Some(other) = others.iter().find(|other| other.values.len() != first.values.len()) else {
        return Ok(());
    };
    // It is what was given beside the file that is not as long as the rest.
    let (one, rest) = if first.given && !other.given { (first, other) } else { (other, first) };
    let mut reason = format!(
        "the list has {}, that of `{}` {}; zipped lists are equally long",
        one.values.len(),
        rest.key,
        rest.values.len()
    );
    if one.given && !rest.given {
        let written = zipped.iter().filter(|series| !series.given);
        let written: Vec<String> = written.map(|series| format!("`{}`", series.key)).collect();
        reason += &format!(": repeat `--set` for {}", written.join(", "));
    }
    Err(one.at.refuse(reason))
}
