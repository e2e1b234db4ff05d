//! The elements of a path.

use crate::error::{ExperimentError, Location, Suggestion, parse_toml};
use crate::library::{Files, beside};
use crate::places::{Distance, medium_of};
use crate::reader::{Parameter, Reader, as_list, as_table, quantity, unless_read, wrong_type};
use core::str::FromStr;
use farpath_elements::keys::{Keys, ReadValue, Source};
use farpath_elements::trace::MAX_ENTRIES;
use farpath_elements::{ElementKind, ElementSpec, base_delay, element_names};
use farpath_path::{Direction, PerDirection};
use farpath_units::{Ber, Bytes, Duration, ParseQuantityError, Power, Probability, Rate};
use std::borrow::Cow;
use toml::{Table, Value};

/// The most elements that a path may have: each is asked for every packet, and has a generator of its own.
pub const MAX_ELEMENTS: usize = 1000;

/// The parameter that is meant by the name of this element alone, if there is one.
pub(crate) fn principal_parameter(element: &Table) -> Option<&'static str> {
    let kind = element.get("element")?.as_str()?;
    element_names().find(|(name, _)| *name == kind).and_then(|(_, parameter)| parameter)
}

/// The name of an element: its own, or that of its kind.
pub(crate) fn element_name(element: &Table) -> Option<&str> {
    element.get("name").or_else(|| element.get("element")).and_then(Value::as_str)
}

/// The elements of `path`, unread: those of the list, or of the ready-made path of that name.
pub(crate) fn path_list<'a>(
    value: &'a Value,
    at: &Location,
    files: &Files,
) -> Result<Cow<'a, [Value]>, ExperimentError> {
    match value {
        Value::Array(elements) => Ok(Cow::Borrowed(elements)),
        Value::String(name) => files.path(name, at).map(Cow::Owned),
        _ => Err(wrong_type(value, at, "the name of a ready-made path, or a list of elements")),
    }
}

/// The elements of a path file, which are checked here so that errors name that file.
pub(crate) fn ready_made(text: &str, origin: &str) -> Result<Vec<Value>, ExperimentError> {
    let table = parse_toml(origin, text)?;
    Reader::table(origin, "", &table, |reader| {
        // For the reader of the file.
        reader.required::<String>("title")?;
        reader.optional::<String>("source")?;
        let value = reader.value("path").ok_or_else(|| reader.missing("path", "a list of elements"))?;
        let elements = as_list(value, &reader.location_of("path"))?;
        read_path(elements, &reader.location_of("path"), &Files::default())?;
        Ok(elements.to_vec())
    })
}

/// Reads the elements of a path.
pub(crate) fn read_path(
    elements: &[Value],
    at: &Location,
    files: &Files,
) -> Result<Vec<ElementSpec>, ExperimentError> {
    if elements.is_empty() {
        return Err(at.refuse("a path has at least one element"));
    }
    if elements.len() > MAX_ELEMENTS {
        let found = elements.len();
        return Err(at.refuse(format!("expected {MAX_ELEMENTS} elements at the most, found {found}")));
    }
    if elements.iter().any(has_bdp) {
        return read_path(&without_bdp(elements, at, files)?, at, files);
    }
    let mut specs: Vec<ElementSpec> = Vec::with_capacity(elements.len());
    let mut entries = 0;
    for (index, element) in elements.iter().enumerate() {
        let at = at.entry(index);
        let table = as_table(element, &at)?;
        let read = || Reader::table(&at.origin, &at.key, table, read_element);
        let spec = files.element(index, table, read)?;
        if specs.iter().any(|other| other.name == spec.name) {
            return Err(at.child("name").refuse(format!("two elements are called `{}`", spec.name)));
        }
        entries += spec.spec().entries();
        if entries > MAX_ENTRIES {
            let expected =
                format!("{MAX_ENTRIES} entries in all traces, plans and lists of a path at the most");
            return Err(at.refuse(format!("expected {expected}, found {entries} up to this element")));
        }
        specs.push(spec);
    }
    Ok(specs)
}

/// The bandwidth-delay products that a queue may hold.
const BDPS: &str = "a number of bandwidth-delay products above zero and up to 1000, such as `1 bdp`";

/// Of `1 bdp` the number.
fn bdp_factor(value: &Value) -> Option<&str> {
    value.as_str()?.trim_end().strip_suffix("bdp").map(str::trim)
}

/// Whether the queue of this element is said in bandwidth-delay products, one way or both.
fn has_bdp(element: &Value) -> bool {
    let is_bdp = |value: &Value| bdp_factor(value).is_some();
    element
        .get("queue")
        .is_some_and(|queue| is_bdp(queue) || queue.as_table().is_some_and(|ways| ways.values().any(is_bdp)))
}

/// The elements with queues of so many bandwidth-delay products in bytes: the rate of the queue's own line, times the round trip of an
/// empty packet over the whole path without queues.
fn without_bdp(elements: &[Value], at: &Location, files: &Files) -> Result<Vec<Value>, ExperimentError> {
    let with = |queue: &dyn Fn(usize, Direction, &Value) -> Result<Value, ExperimentError>| {
        let mut elements = elements.to_vec();
        for (index, element) in elements.iter_mut().enumerate().filter(|(_, element)| has_bdp(element)) {
            let table = element.as_table_mut().expect("it has a key");
            let written = table.get("queue").expect("it has one").clone();
            let mut ways = Table::new();
            for direction in Direction::BOTH {
                let one = match &written {
                    Value::Table(ways) => ways.get(direction.name()),
                    both => Some(both),
                };
                if let Some(one) = one {
                    ways.insert(direction.name().to_owned(), queue(index, direction, one)?);
                }
            }
            table.insert("queue".to_owned(), Value::Table(ways));
        }
        Ok(elements)
    };
    let unlimited = |_, _, value: &Value| {
        Ok(if bdp_factor(value).is_some() { Value::from("unlimited") } else { value.clone() })
    };
    let specs = read_path(&with(&unlimited)?, at, files)?;
    let round_trip: Duration =
        Direction::BOTH.into_iter().map(|way| base_delay(&specs, way, Bytes::ZERO)).sum();
    with(&|index, direction, value| {
        let Some(text) = bdp_factor(value) else { return Ok(value.clone()) };
        let key = at.entry(index).child("queue");
        let factor = text.parse::<f64>().ok().filter(|factor| *factor > 0.0 && *factor <= 1000.0);
        let factor = factor.ok_or_else(|| wrong_type(value, &key, BDPS))?;
        let line = specs[index].spec().line(direction);
        let line = line.ok_or_else(|| {
            key.refuse("this element has no line whose rate would say what a bandwidth-delay product is")
        })?;
        let bytes = line.rate.bit_per_s() as f64 / 8.0 * round_trip.as_secs_f64() * factor;
        Ok(Value::from(format!("{} B", bytes as u64)))
    })
}

fn read_element(reader: &mut Reader<'_>) -> Result<ElementSpec, ExperimentError> {
    let kind: String = Reader::required(reader, "element")?;
    let name = Reader::or(reader, "name", kind.clone())?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || !name.chars().all(plain) {
        let reason = format!("`{name}` cannot be part of a key: use letters, digits, `-` and `_`");
        return Err(reader.location_of("name").refuse(reason));
    }
    Ok(ElementSpec { kind: read_kind(&kind, reader)?, name })
}

fn read_kind(kind: &str, reader: &mut Reader<'_>) -> Result<ElementKind, ExperimentError> {
    ElementKind::read(kind, reader).unwrap_or_else(|| {
        Err(ExperimentError::UnknownName {
            at: reader.location_of("element"),
            what: "element",
            name: kind.to_owned(),
            suggestion: Suggestion::among(kind, element_names().map(|(name, _)| name)),
        })
    })
}

impl Keys for Reader<'_> {
    type Error = ExperimentError;

    fn has(&mut self, key: &'static str) -> bool {
        Reader::has(self, key)
    }

    fn optional<T: ReadValue>(&mut self, key: &'static str) -> Result<Option<T>, ExperimentError> {
        let at = self.location_of(key);
        self.value(key).map(|value| T::read(&Placed { value, at })).transpose()
    }

    fn required<T: ReadValue>(&mut self, key: &'static str) -> Result<T, ExperimentError> {
        Keys::optional(self, key)?.ok_or_else(|| self.missing(key, T::EXPECTED))
    }

    fn each_way<T: ReadValue + Clone>(
        &mut self,
        key: &'static str,
        rest: Option<T>,
    ) -> Result<PerDirection<T>, ExperimentError> {
        let read = |value: &Value, at: &Location| T::read(&Placed { value, at: at.clone() });
        let at = self.location_of(key);
        let names_a_way = |table: &Table| Direction::BOTH.iter().any(|way| table.contains_key(way.name()));
        match self.value(key) {
            Some(value) if T::IS_TABLE && value.as_table().is_some_and(|table| !names_a_way(table)) => {
                read(value, &at).map(PerDirection::both)
            }
            _ => each_way_by(self, key, T::EXPECTED, rest, read),
        }
    }

    /// A delay, or what light takes over a distance in a medium.
    fn propagation(&mut self) -> Result<PerDirection<Duration>, ExperimentError> {
        let (at, medium_at) = (self.location_of("distance"), self.location_of("medium"));
        let medium: Option<String> = Reader::optional(self, "medium")?;
        if Reader::has(self, "distance") {
            if Reader::has(self, "delay") {
                let reason = "`delay` is there too: a delay is given, or follows from a distance";
                return Err(at.refuse(reason));
            }
            let distance = each_way_by(self, "distance", DISTANCE, None, |value, at| {
                Distance::parse(value.as_str().ok_or_else(|| wrong_type(value, at, DISTANCE))?, at)
            })?;
            let medium = medium_of(medium.as_deref().unwrap_or("vacuum"), &medium_at)?;
            let delay = |way: &Distance| way.delay(medium).map_err(|reason| at.refuse(reason));
            return Ok(PerDirection {
                forward: delay(&distance.forward)?,
                reverse: delay(&distance.reverse)?,
            });
        }
        if medium.is_some() {
            return Err(medium_at.refuse("a medium makes a delay of a `distance`, and there is none"));
        }
        if !Reader::has(self, "delay") {
            let expected = format!(
                "{}, or a `distance` such as `384400 km` or `moon`",
                <Duration as ReadValue>::EXPECTED
            );
            return Err(self.missing("delay", &expected));
        }
        Keys::each_way(self, "delay", None)
    }

    fn refuse(&self, key: &str, reason: String) -> ExperimentError {
        self.location_of(key).refuse(reason)
    }
}

const DISTANCE: &str = "a distance such as `384400 km`, `1.5 light-seconds` or `moon`";

/// One value, or `{ forward = .., reverse = .. }`, where a direction that is not named gets `rest`, if there is one.
fn each_way_by<T: Clone>(
    reader: &mut Reader<'_>,
    key: &'static str,
    expected: &str,
    rest: Option<T>,
    read: impl Fn(&Value, &Location) -> Result<T, ExperimentError>,
) -> Result<PerDirection<T>, ExperimentError> {
    let at = reader.location_of(key);
    let value = reader.value(key).ok_or_else(|| reader.missing(key, expected))?;
    let Value::Table(table) = value else { return read(value, &at).map(PerDirection::both) };
    Reader::table(&at.origin, &at.key, table, |reader| {
        let mut one = |direction| match (reader.value(direction), &rest) {
            (Some(value), _) => read(value, &reader.location_of(direction)),
            (None, Some(rest)) => Ok(rest.clone()),
            (None, None) => Err(reader.missing(direction, expected)),
        };
        Ok(PerDirection { forward: one("forward")?, reverse: one("reverse")? })
    })
}

/// A value, and where it stands.
struct Placed<'a> {
    value: &'a Value,
    at: Location,
}

impl<'a> Source for Placed<'a> {
    type Error = ExperimentError;
    type Keys = Reader<'a>;

    fn text(&self) -> Option<&str> {
        self.value.as_str()
    }

    fn integer(&self) -> Option<i64> {
        self.value.as_integer()
    }

    fn switch(&self) -> Option<bool> {
        self.value.as_bool()
    }

    fn is_number(&self) -> bool {
        matches!(self.value, Value::Integer(_) | Value::Float(_))
    }

    fn has_key(&self, key: &str) -> bool {
        self.value.as_table().is_some_and(|table| table.contains_key(key))
    }

    fn list<T>(
        &self,
        mut read: impl FnMut(&Self) -> Result<T, ExperimentError>,
    ) -> Option<Result<Vec<T>, ExperimentError>> {
        let entries = self.value.as_array()?.iter().enumerate();
        Some(entries.map(|(index, value)| read(&Placed { value, at: self.at.entry(index) })).collect())
    }

    fn table<T>(
        &self,
        read: impl FnOnce(&mut Reader<'a>) -> Result<T, ExperimentError>,
    ) -> Option<Result<T, ExperimentError>> {
        let table = self.value.as_table()?;
        Some(Reader::table(self.at.origin.clone(), &self.at.key, table, read))
    }

    fn file(&self) -> Result<(String, String), ExperimentError> {
        let name =
            self.value.as_str().ok_or_else(|| wrong_type(self.value, &self.at, "the name of a file"))?;
        beside(name, &self.at)
    }

    fn quantity<T: FromStr<Err = ParseQuantityError>>(&self, expected: &str) -> Result<T, ExperimentError> {
        quantity(self.value, &self.at, expected)
    }

    fn unless<T: ReadValue>(&self, none: &str) -> Result<Option<T>, ExperimentError> {
        unless_read(self.value, none, |_| T::read(self))
    }

    fn wrong_type(&self, expected: &str) -> ExperimentError {
        wrong_type(self.value, &self.at, expected)
    }

    fn refuse(&self, reason: String) -> ExperimentError {
        self.at.refuse(reason)
    }

    fn with_hint(error: ExperimentError, hint: &str) -> ExperimentError {
        match error {
            ExperimentError::Type { at, expected, found } => {
                ExperimentError::Type { at, expected, found: found + hint }
            }
            other => other,
        }
    }

    fn expecting(error: ExperimentError, expected: &str) -> ExperimentError {
        match error {
            ExperimentError::Type { at, found, .. } => {
                ExperimentError::Type { at, expected: expected.to_owned(), found }
            }
            other => other,
        }
    }
}

/// What elements and the rest of a file have in common is read in one way.
macro_rules! parameters {
    ($($type:ty),*) => {$(
        impl Parameter for $type {
            const EXPECTED: &'static str = <$type as ReadValue>::EXPECTED;
            fn read(value: &Value, at: &Location) -> Result<$type, ExperimentError> {
                ReadValue::read(&Placed { value, at: at.clone() })
            }
        }
    )*};
}

parameters!(Duration, Bytes, Rate, Power, Ber, Probability, u8, u32, u64, bool);
