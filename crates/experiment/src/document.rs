//! Changing a document by key, before it is read: `--set` and the points of a sweep.
//!
//! A changed document goes through the same reader as a written one, so every value is checked in the
//! same way, whichever way it came.

use crate::element::{element_name, path_list, principal_parameter};
use crate::error::{ExperimentError, Location, Suggestion, join};
use crate::library::Files;
use crate::reader::{Parameter, as_table};
use crate::sweep::{Change, label};
use core::fmt;
use core::str::FromStr;
use std::sync::Arc;
use toml::{Table, Value};

/// A parameter given beside the file: `path.loss.rate=1 %`.
#[derive(Debug, Clone, PartialEq)]
pub struct Override {
    /// Dotted key.
    pub key: String,
    /// The value: a number, switch or list as TOML has them, or else the text as it stands.
    pub value: Value,
    text: String,
}

impl Override {
    /// `value` at `key`.
    pub fn new(key: impl Into<String>, value: Value) -> Override {
        let key = key.into();
        Override { text: format!("{key}={}", label(&value)), key, value }
    }

    /// The whole of it as given, `key=value`.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// A text that is not `key=value`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected `key=value` such as `path.loss=1%`, found `{found}`")]
pub struct ParseOverrideError {
    /// As given.
    pub found: String,
}

impl FromStr for Override {
    type Err = ParseOverrideError;
    fn from_str(text: &str) -> Result<Override, ParseOverrideError> {
        let error = || ParseOverrideError { found: text.to_owned() };
        let text = text.trim();
        let (key, given) = text.split_once('=').ok_or_else(error)?;
        let (key, given) = (key.trim(), given.trim());
        if given.is_empty() || key.split('.').any(str::is_empty) {
            return Err(error());
        }
        let value = match given.parse() {
            // Text such as a title may look like a date; no key takes one.
            Ok(Value::Datetime(_)) | Err(_) => Value::String(given.to_owned()),
            Ok(value) => value,
        };
        Ok(Override { key: key.to_owned(), value, text: text.to_owned() })
    }
}

impl fmt::Display for Override {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

/// An experiment's document while values are put into it.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub origin: Arc<str>,
    pub table: Table,
    /// `[cases]`: changes by name.
    cases: Arc<Table>,
    /// What it names.
    pub files: Arc<Files>,
    /// Which keys hold a value from elsewhere, and how that place is called.
    changed: Vec<(String, String)>,
}

impl Document {
    pub fn new(origin: &str, mut table: Table) -> Result<Document, ExperimentError> {
        let at = Location { origin: origin.to_owned(), key: "cases".to_owned() };
        let cases = table.remove("cases").map(|cases| as_table(&cases, &at).cloned()).transpose()?;
        let cases = Arc::new(cases.unwrap_or_default());
        Ok(Document { origin: origin.into(), table, cases, files: Arc::default(), changed: Vec::new() })
    }

    /// What the case changes that `case` names, here or, later than that, in one of `changes`; the key is no parameter of
    /// a scenario, and is taken out.
    pub fn take_case(&mut self, changes: &[&Change]) -> Result<Vec<Change>, ExperimentError> {
        let written = self.table.remove("case").map(|name| (name, self.location_of("case")));
        let given = changes.iter().rev().find(|(key, ..)| key == "case");
        let given = given.map(|(_, name, at)| (name.clone(), at.clone()));
        let Some((name, at)) = given.or(written) else { return Ok(Vec::new()) };
        let name = String::read(&name, &at)?;
        let place = self.location_of(format!("cases.{name}"));
        let Some(case) = self.cases.get(&name) else {
            let suggestion = Suggestion::among(&name, self.cases.keys());
            return Err(ExperimentError::UnknownName { at, what: "case in `[cases]`", name, suggestion });
        };
        let mut changes = Vec::new();
        flatten(as_table(case, &place)?, "", &place, &mut changes);
        Ok(changes)
    }

    fn location_of(&self, key: impl Into<String>) -> Location {
        Location { origin: self.origin.to_string(), key: key.into() }
    }

    /// The key with the parameter spelt out that the name of an element alone stands for.
    pub fn canonical(&self, key: &str) -> String {
        let mut segments = key.split('.');
        let element = match (segments.next(), segments.next(), segments.next()) {
            (Some("path"), Some(name), None) => self.table.get("path").and_then(|path| {
                let elements = path_list(path, &self.location_of("path"), &self.files).ok()?;
                elements
                    .iter()
                    .filter_map(Value::as_table)
                    .find(|element| element_name(element) == Some(name))
                    .and_then(principal_parameter)
            }),
            _ => None,
        };
        element.map_or_else(|| key.to_owned(), |parameter| format!("{key}.{parameter}"))
    }

    /// Puts `value` at `key`, which `place` (a sweep's list, `--set`) says so.
    pub fn set(&mut self, key: &str, value: Value, place: String) -> Result<(), ExperimentError> {
        let segments: Vec<&str> = key.split('.').collect();
        let place_of_error = self.location_of(place.clone());
        let (home, rest, start) = match *segments.as_slice() {
            ["path", name, ref rest @ ..] => {
                let index = self.element_index(name, &place_of_error)?;
                let home = self.entry("path", index).expect("the element was found there");
                let parameter = match rest {
                    [] => vec![principal_parameter(home).ok_or_else(|| {
                        let reason =
                            format!("say which parameter of `{name}` is meant, as in `path.{name}.…`");
                        place_of_error.refuse(reason)
                    })?],
                    rest => rest.to_vec(),
                };
                (home, parameter, format!("path[{index}]"))
            }
            ["flow", index, ref rest @ ..] if !rest.is_empty() => {
                let number = index.parse().ok();
                let count = self.table.get("flow").and_then(Value::as_array).map_or(0, Vec::len);
                let number = number.filter(|&number: &usize| number < count).ok_or_else(|| {
                    let reason = format!(
                        "there is no `[[flow]]` number `{index}`; they count from 0, and there are {count}"
                    );
                    place_of_error.refuse(reason)
                })?;
                let Some(home) = self.entry("flow", number) else {
                    return Err(place_of_error.refuse("`flow` is not a list of tables"));
                };
                (home, rest.to_vec(), format!("flow[{number}]"))
            }
            _ => (&mut self.table, segments, String::new()),
        };
        let at_home = put(home, &rest, value).map_err(|reason| place_of_error.refuse(reason))?;
        self.changed.push((join(&start, &at_home), place));
        Ok(())
    }

    fn entry(&mut self, list: &str, index: usize) -> Option<&mut Table> {
        self.table.get_mut(list)?.as_array_mut()?.get_mut(index)?.as_table_mut()
    }

    /// Which element of the path is called `name`. Puts the elements of a ready-made path in place of its name.
    fn element_index(&mut self, name: &str, place: &Location) -> Result<usize, ExperimentError> {
        let at = self.location_of("path");
        let path = self.table.get_mut("path").ok_or_else(|| place.refuse("there is no `path`"))?;
        if !path.is_array() {
            *path = Value::Array(path_list(path, &at, &self.files)?.into_owned());
        }
        let elements = path.as_array().map_or(&[][..], Vec::as_slice);
        let names = elements.iter().map(|element| element.as_table().and_then(element_name));
        names.clone().position(|other| other == Some(name)).ok_or_else(|| ExperimentError::UnknownName {
            at: place.clone(),
            what: "element of the path",
            name: name.to_owned(),
            suggestion: Suggestion::among(name, names.flatten()),
        })
    }

    /// Names the place in `error` that a value came from, where that is not the file itself.
    pub fn explain(&self, mut error: ExperimentError) -> ExperimentError {
        // A key that does not exist can be refused above the value that was put below it.
        let above = matches!(error, ExperimentError::UnknownKey { .. } | ExperimentError::Type { .. });
        if let Some(at) = error.location_mut()
            && *at.origin == *self.origin
        {
            let mut changed = self.changed.iter().rev();
            let place = changed.find(|(key, _)| is_below(&at.key, key) || (above && is_below(key, &at.key)));
            if let Some((_, place)) = place {
                at.key = place.clone();
            }
        }
        error
    }
}

/// Every value under `table` with its dotted key: TOML reads `path.loss = "1 %"` without quotes as tables within tables.
fn flatten(table: &Table, prefix: &str, place: &Location, found: &mut Vec<Change>) {
    for (key, value) in table {
        let dotted = join(prefix, key);
        match value {
            Value::Table(inner) => flatten(inner, &dotted, place, found),
            value => {
                let at = Location { key: format!("{}.\"{dotted}\"", place.key), ..place.clone() };
                found.push((dotted, value.clone(), at));
            }
        }
    }
}

/// Whether `key` is `ancestor` or within it.
fn is_below(key: &str, ancestor: &str) -> bool {
    key.strip_prefix(ancestor).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Puts `value` into `table` at the end of `segments`, and makes the tables on the way there.
fn put(table: &mut Table, segments: &[&str], value: Value) -> Result<String, String> {
    let (&last, parents) = segments.split_last().expect("a key has at least one segment");
    let mut inner = table;
    for (depth, &parent) in parents.iter().enumerate() {
        let slot = inner.entry(parent).or_insert_with(|| Value::Table(Table::new()));
        if !slot.is_table() && ["forward", "reverse"].contains(&segments[depth + 1]) {
            // One value for both directions becomes one for each.
            let both = core::mem::replace(slot, Value::Boolean(false));
            let each = ["forward", "reverse"].map(|direction| (direction.to_owned(), both.clone()));
            *slot = Value::Table(each.into_iter().collect());
        }
        inner = slot.as_table_mut().ok_or_else(|| {
            format!("`{}` is a value, and has no `{}`", segments[..=depth].join("."), segments[depth + 1])
        })?;
    }
    inner.insert(last.to_owned(), value);
    Ok(segments.join("."))
}
