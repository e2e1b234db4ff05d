//! What a paper printed for the points of an experiment.

use crate::error::ExperimentError;
use crate::reader::{Parameter, Reader};
use core::fmt;
use farpath_units::{Duration, Rate};
use toml::{Table, Value};

/// A number that was printed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PublishedValue {
    /// A time.
    Duration(Duration),
    /// A rate.
    Rate(Rate),
    /// A number of segments, timeouts ...
    Count(u64),
}

impl PublishedValue {
    /// In seconds, bit/s, or as it is.
    pub fn as_f64(self) -> f64 {
        match self {
            PublishedValue::Duration(duration) => duration.as_secs_f64(),
            PublishedValue::Rate(rate) => rate.bit_per_s() as f64,
            PublishedValue::Count(count) => count as f64,
        }
    }
}

impl fmt::Display for PublishedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PublishedValue::Duration(duration) => duration.fmt(f),
            PublishedValue::Rate(rate) => rate.fmt(f),
            PublishedValue::Count(count) => count.fmt(f),
        }
    }
}

/// One quantity, with a value for each point of which one was printed.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedColumn {
    /// As the column of a run's flows is called.
    pub name: &'static str,
    /// By the index of the point; nothing was printed for those beyond the last.
    pub values: Vec<Option<PublishedValue>>,
}

/// What a paper printed.
#[derive(Debug, Clone, PartialEq)]
pub struct Published {
    /// Where.
    pub source: String,
    /// What.
    pub columns: Vec<PublishedColumn>,
}

impl Published {
    /// What was printed as `name` for point `index`.
    pub fn value(&self, name: &str, index: usize) -> Option<PublishedValue> {
        self.columns.iter().find(|column| column.name == name)?.values.get(index).copied().flatten()
    }

    /// Reads `[published]` for a file whose own sweep has so many points.
    pub(crate) fn read(table: &Table, origin: &str, points: usize) -> Result<Published, ExperimentError> {
        Reader::table(origin, "published", table, |reader| {
            let source = reader.required("source")?;
            let mut columns = Vec::new();
            let mut add = |column: Option<PublishedColumn>| columns.extend(column);
            add(column(reader, "transfer_time", points, PublishedValue::Duration)?);
            add(column(reader, "goodput", points, PublishedValue::Rate)?);
            add(column(reader, "throughput", points, PublishedValue::Rate)?);
            add(column(reader, "segments", points, PublishedValue::Count)?);
            add(column(reader, "retransmissions", points, PublishedValue::Count)?);
            add(column(reader, "timeouts", points, PublishedValue::Count)?);
            Ok(Published { source, columns })
        })
    }

    /// The same for other points: `sources` says which point of the file each of them is.
    pub(crate) fn select(mut self, sources: &[Option<usize>]) -> Published {
        for column in &mut self.columns {
            column.values = sources.iter().map(|&source| column.values[source?]).collect();
        }
        self
    }
}

fn column<T: Parameter>(
    reader: &mut Reader<'_>,
    name: &'static str,
    points: usize,
    wrap: impl Fn(T) -> PublishedValue,
) -> Result<Option<PublishedColumn>, ExperimentError> {
    let at = reader.location_of(name);
    let Some(value) = reader.value(name) else { return Ok(None) };
    let list = match value {
        Value::Array(list) => list.as_slice(),
        single => std::slice::from_ref(single),
    };
    if list.len() != points {
        let (values, points) = (counted(list.len(), "value"), counted(points, "point"));
        return Err(
            at.refuse(format!("{values} for {points} of the sweep; for a point without one say `\"-\"`"))
        );
    }
    let read = |(index, value): (usize, &Value)| match value.as_str() {
        Some("-") => Ok(None),
        _ => T::read(value, &at.entry(index)).map(|value| Some(wrap(value))),
    };
    let values = list.iter().enumerate().map(read).collect::<Result<_, _>>()?;
    Ok(Some(PublishedColumn { name, values }))
}

fn counted(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}
