//! What a figure draws.

use serde_json::{Map, Value, json};

/// The columns of a table of data, by the names that its plot knows them by. They are equally long.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Columns(Vec<(&'static str, Value)>, usize);

impl Columns {
    /// Adds numbers; what is not known is `None`.
    pub fn numbers(
        mut self,
        name: &'static str,
        values: impl IntoIterator<Item = impl Into<Option<f64>>>,
    ) -> Columns {
        let values: Vec<Value> = values.into_iter().map(|value| number(value.into())).collect();
        self.1 = values.len();
        self.0.push((name, values.into()));
        self
    }

    /// Adds texts. Each is kept once, and the rows by number: a trace names its few metrics thousands of times.
    pub fn texts(mut self, name: &'static str, values: impl IntoIterator<Item = impl AsRef<str>>) -> Columns {
        let mut known: Vec<String> = Vec::new();
        let mut rows = Vec::new();
        for value in values {
            let value = value.as_ref();
            let place = known.iter().position(|other| other == value).unwrap_or_else(|| {
                known.push(value.to_owned());
                known.len() - 1
            });
            rows.push(place);
        }
        self.1 = rows.len();
        self.0.push((name, json!({ "texts": known, "rows": rows })));
        self
    }

    /// Whether there is nothing to draw.
    pub fn is_empty(&self) -> bool {
        self.1 == 0
    }

    pub(super) fn to_json(&self) -> Value {
        let columns = self.0.iter().map(|(name, values)| ((*name).to_owned(), values.clone()));
        columns.collect::<Map<_, _>>().into()
    }
}

/// Whole numbers without a decimal point, and no more digits than a plot can show: there are many of them.
fn number(value: Option<f64>) -> Value {
    match value {
        Some(value) if value.fract() == 0.0 && value.abs() < 1e15 => (value as i64).into(),
        Some(value) => {
            let rounded = (value * 1e7).round() / 1e7;
            // A bit error rate, and whatever else is smaller than that, stays as it is.
            (if rounded.abs() < 1e-4 { value } else { rounded }).into()
        }
        None => Value::Null,
    }
}

/// A plot with its data.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Its definition: a file of the folder `plots/`, without `.vl.json`.
    pub plot: &'static str,
    /// Stands above it.
    pub title: String,
    /// Stands below it: what is drawn, and what is not.
    pub caption: String,
    /// Values put into the definition, by JSON pointer: the title of an axis that only the experiment knows. A layer
    /// that is set to null is left out.
    pub set: Vec<(&'static str, Value)>,
    /// The tables that the definition names.
    pub data: Vec<(&'static str, Columns)>,
}

impl Figure {
    /// As what draws it takes it: `plot`, `set` by JSON pointer, and `data`, tables as columns, where repeated texts stand
    /// once as `texts` with `rows` that number them.
    pub fn to_json(&self) -> Value {
        let set: Map<String, Value> =
            self.set.iter().map(|(pointer, value)| ((*pointer).to_owned(), value.clone())).collect();
        let data: Map<String, Value> =
            self.data.iter().map(|(name, columns)| ((*name).to_owned(), columns.to_json())).collect();
        json!({ "plot": self.plot, "set": set, "data": data })
    }
}

/// From the lowest to the highest of some values, for a logarithmic axis, with some room for marks.
pub(super) fn log_domain(values: impl IntoIterator<Item = f64>) -> Value {
    let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
    for value in values.into_iter().filter(|value| *value > 0.0) {
        (low, high) = (low.min(value), high.max(value));
    }
    if high == 0.0 {
        return Value::Null;
    }
    let room = (high / low).powf(0.05).max(1.02);
    vec![low / room, high * room].into()
}

/// Nanoseconds as seconds.
pub(super) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
