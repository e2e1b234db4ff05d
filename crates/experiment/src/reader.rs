//! A checked walk through TOML: every key that is asked for is known, every other one is refused.

use crate::error::{ExperimentError, Location, Suggestion, join};
use farpath_units::ParseQuantityError;
use std::borrow::Cow;
use toml::{Table, Value};

/// A value that a file gives as text, number, list or switch.
pub(crate) trait Parameter: Sized {
    /// With its article and an example, for a key that is missing.
    const EXPECTED: &'static str;
    /// Reads what stands at `at`.
    fn read(value: &Value, at: &Location) -> Result<Self, ExperimentError>;
}

/// So many keys are known to the tables that most parameters are in.
const MOST_KEYS: usize = 24;

/// One table of a file.
pub(crate) struct Reader<'a> {
    origin: Cow<'a, str>,
    key: String,
    table: &'a Table,
    known: Vec<&'static str>,
}

impl<'a> Reader<'a> {
    /// Reads the whole of `table` by `read`, and refuses the keys that it did not ask for.
    pub fn table<T>(
        origin: impl Into<Cow<'a, str>>,
        key: &str,
        table: &'a Table,
        read: impl FnOnce(&mut Reader<'a>) -> Result<T, ExperimentError>,
    ) -> Result<T, ExperimentError> {
        let mut reader = Reader {
            origin: origin.into(),
            key: key.to_owned(),
            table,
            known: Vec::with_capacity(MOST_KEYS),
        };
        let result = read(&mut reader)?;
        match table.keys().find(|key| !reader.known.contains(&key.as_str())) {
            Some(stranger) => Err(reader.unknown(stranger)),
            None => Ok(result),
        }
    }

    fn unknown(&self, key: &str) -> ExperimentError {
        ExperimentError::UnknownKey {
            at: self.location_of(key),
            suggestion: Suggestion::among(key, self.known.iter().copied()),
        }
    }

    /// Where this table stands.
    pub fn here(&self) -> Location {
        Location { origin: self.origin.to_string(), key: self.key.clone() }
    }

    /// Where `key` of this table stands.
    pub fn location_of(&self, key: &str) -> Location {
        Location { origin: self.origin.to_string(), key: join(&self.key, key) }
    }

    /// The value of `key`, unread.
    pub fn value(&mut self, key: &'static str) -> Option<&'a Value> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        self.table.get(key)
    }

    /// Whether the file says `key`, which may be none of this table's.
    pub fn says(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Whether `key` is there.
    pub fn has(&mut self, key: &'static str) -> bool {
        self.value(key).is_some()
    }

    /// The value of `key`, if it is there.
    pub fn optional<T: Parameter>(&mut self, key: &'static str) -> Result<Option<T>, ExperimentError> {
        self.value(key).map(|value| T::read(value, &self.location_of(key))).transpose()
    }

    /// The value of `key`, or `default`.
    pub fn or<T: Parameter>(&mut self, key: &'static str, default: T) -> Result<T, ExperimentError> {
        Ok(self.optional(key)?.unwrap_or(default))
    }

    /// The value of `key`, which has to be there.
    pub fn required<T: Parameter>(&mut self, key: &'static str) -> Result<T, ExperimentError> {
        match self.optional(key)? {
            Some(value) => Ok(value),
            None => Err(self.missing(key, T::EXPECTED)),
        }
    }

    /// The error for a `key` that is not there; for a misspelt one where there is such a one.
    pub fn missing(&self, key: &'static str, expected: &str) -> ExperimentError {
        let strangers = self.table.keys().filter(|name| !self.known.contains(&name.as_str()));
        match Suggestion::among(key, strangers).nearest {
            Some(stranger) => self.unknown(&stranger),
            None => ExperimentError::Missing { at: self.location_of(key), expected: expected.to_owned() },
        }
    }

    /// Reads the table at `key` by `read`; an absent one is an empty one.
    pub fn section<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&mut Reader<'a>) -> Result<T, ExperimentError>,
    ) -> Result<T, ExperimentError> {
        let at = self.location_of(key);
        match self.value(key) {
            Some(value) => Reader::table(self.origin.clone(), &at.key, as_table(value, &at)?, read),
            None => read(&mut Reader {
                origin: self.origin.clone(),
                key: at.key,
                table: &EMPTY,
                known: Vec::new(),
            }),
        }
    }
}

static EMPTY: std::sync::LazyLock<Table> = std::sync::LazyLock::new(Table::new);

/// A value as an error message shows it.
pub(crate) fn shown(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Table(_) => return "a table".to_owned(),
        Value::Array(_) => return "a list".to_owned(),
        other => other.to_string(),
    };
    format!("`{text}`")
}

pub(crate) fn wrong_type(value: &Value, at: &Location, expected: &str) -> ExperimentError {
    ExperimentError::Type { at: at.clone(), expected: expected.to_owned(), found: shown(value) }
}

pub(crate) fn as_table<'a>(value: &'a Value, at: &Location) -> Result<&'a Table, ExperimentError> {
    value.as_table().ok_or_else(|| wrong_type(value, at, "a table"))
}

pub(crate) fn as_list<'a>(value: &'a Value, at: &Location) -> Result<&'a [Value], ExperimentError> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| wrong_type(value, at, "a list"))
}

/// The text of a quantity. A bare number is passed on as one: the quantity says that its unit is missing.
pub(crate) fn quantity<T: core::str::FromStr<Err = ParseQuantityError>>(
    value: &Value,
    at: &Location,
    expected: &str,
) -> Result<T, ExperimentError> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        _ => return Err(wrong_type(value, at, expected)),
    };
    text.parse().map_err(|source| ExperimentError::Quantity { at: at.clone(), source: Box::new(source) })
}

impl Parameter for String {
    const EXPECTED: &'static str = "text";
    fn read(value: &Value, at: &Location) -> Result<String, ExperimentError> {
        value.as_str().map(str::to_owned).ok_or_else(|| wrong_type(value, at, Self::EXPECTED))
    }
}

/// Reads one of a set of words.
pub(crate) fn word<T: Copy>(
    value: &Value,
    at: &Location,
    words: &[(&'static str, T)],
) -> Result<T, ExperimentError> {
    let found = value.as_str();
    let known = words.iter().find(|(word, _)| found == Some(*word));
    known.map(|&(_, meaning)| meaning).ok_or_else(|| {
        let list: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
        wrong_type(value, at, &format!("one of {}", list.join(", ")))
    })
}

/// Reads `none` as nothing, and everything else as a `T`.
pub(crate) fn unless<T: Parameter>(
    value: &Value,
    at: &Location,
    none: &str,
) -> Result<Option<T>, ExperimentError> {
    unless_read(value, none, |value| T::read(value, at))
}

/// As [`unless`], where everything else is read by `read`.
pub(crate) fn unless_read<T>(
    value: &Value,
    none: &str,
    read: impl FnOnce(&Value) -> Result<T, ExperimentError>,
) -> Result<Option<T>, ExperimentError> {
    if value.as_str() == Some(none) {
        return Ok(None);
    }
    read(value).map(Some).map_err(|error| match error {
        ExperimentError::Quantity { at, source } => {
            let expected = format!("{} such as `{}`, or `{none}`", source.expected, source.example);
            let found = format!("`{}`{}", source.found, source.hint);
            ExperimentError::Type { at, expected, found }
        }
        ExperimentError::Type { at, expected, found } => {
            ExperimentError::Type { at, expected: format!("{expected}, or `{none}`"), found }
        }
        other => other,
    })
}
