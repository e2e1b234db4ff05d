//! What can be wrong with an experiment, said with the file and the key that the user wrote.

use core::fmt;
use farpath_units::ParseQuantityError;
use std::io;

/// Where something stands: a file, and a key in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The file, as the user named it.
    pub origin: String,
    /// Full key, such as `path[2].rate`; empty for the document itself.
    pub key: String,
}

impl Location {
    /// A key below this one.
    pub(crate) fn child(&self, key: &str) -> Location {
        Location { origin: self.origin.clone(), key: join(&self.key, key) }
    }

    /// An entry of the list that stands here.
    pub(crate) fn entry(&self, index: usize) -> Location {
        Location { origin: self.origin.clone(), key: format!("{}[{index}]", self.key) }
    }

    /// An option of the command.
    pub fn option(name: &str) -> Location {
        Location { origin: name.to_owned(), key: String::new() }
    }

    /// Something else was expected here.
    pub(crate) fn expected(&self, expected: &str, found: &str) -> ExperimentError {
        ExperimentError::Type { at: self.clone(), expected: expected.to_owned(), found: found.to_owned() }
    }

    /// `reason` said about the value that stands here.
    pub(crate) fn refuse(&self, reason: impl Into<String>) -> ExperimentError {
        ExperimentError::Value { at: self.clone(), reason: reason.into() }
    }
}

/// `parent.key`, or `key` at the top.
pub(crate) fn join(parent: &str, key: &str) -> String {
    if parent.is_empty() { key.to_owned() } else { [parent, ".", key].concat() }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            f.write_str(&self.origin)
        } else {
            write!(f, "{}: {}", self.origin, self.key)
        }
    }
}

/// The names that there are, and the one that was probably meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestion {
    /// Near enough to be a slip.
    pub nearest: Option<String>,
    /// All of them.
    pub known: Vec<String>,
}

impl Suggestion {
    /// What `found` may have meant.
    pub fn among<S: AsRef<str>>(found: &str, known: impl IntoIterator<Item = S>) -> Box<Suggestion> {
        let known: Vec<String> = known.into_iter().map(|name| name.as_ref().to_owned()).collect();
        let distance = |name: &str| strsim::osa_distance(found, name);
        let nearest = known.iter().min_by_key(|name| distance(name)).filter(|name| {
            // A third of the letters wrong is a slip; more is another word. `minimum` for `min` is neither.
            let letters = found.chars().count().max(name.chars().count());
            distance(name) <= (letters / 3).max(1) || (name.len() > 2 && found.starts_with(name.as_str()))
        });
        Box::new(Suggestion { nearest: nearest.cloned(), known })
    }
}

impl fmt::Display for Suggestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.nearest {
            Some(nearest) => write!(f, "did you mean `{nearest}`?"),
            None if self.known.is_empty() => f.write_str("there are none"),
            None => write!(f, "known: {}", self.known.join(", ")),
        }
    }
}

/// Why an experiment is refused. Nothing has run and nothing has been written by then.
///
/// The text of an error is complete, its source's included: `file: key: what is wrong`.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// A file cannot be read.
    #[error("{at}: cannot read `{file}`: {source}")]
    Read {
        /// Where it is named; the file itself where the user named it.
        at: Location,
        /// The file.
        file: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Not TOML.
    #[error("{origin}: line {line}, column {column}: {}", source.message())]
    Syntax {
        /// The file.
        origin: String,
        /// Counted from 1.
        line: usize,
        /// Counted from 1, in characters.
        column: usize,
        /// What the TOML reader says.
        #[source]
        source: Box<toml::de::Error>,
    },
    /// A quantity that cannot be read.
    #[error("{at}: {source}")]
    Quantity {
        /// Where.
        at: Location,
        /// What was expected and found.
        #[source]
        source: Box<ParseQuantityError>,
    },
    /// A value of another kind than the key takes.
    #[error("{at}: expected {expected}, found {found}")]
    Type {
        /// Where.
        at: Location,
        /// With its article.
        expected: String,
        /// As written.
        found: String,
    },
    /// A value of the right kind that makes no sense.
    #[error("{at}: {reason}")]
    Value {
        /// Where.
        at: Location,
        /// What is wrong with it.
        reason: String,
    },
    /// A key that has to be there.
    #[error("{at}: missing; expected {expected}")]
    Missing {
        /// Where it belongs.
        at: Location,
        /// With its article.
        expected: String,
    },
    /// A key that nothing reads.
    #[error("{at}: unknown key; {suggestion}")]
    UnknownKey {
        /// Where.
        at: Location,
        /// What may have been meant.
        suggestion: Box<Suggestion>,
    },
    /// A stack, path, element or other thing that is not there.
    #[error("{at}: no {what} is called `{name}`; {suggestion}")]
    UnknownName {
        /// Where it is named.
        at: Location,
        /// What should be called so, without article.
        what: &'static str,
        /// As written.
        name: String,
        /// What may have been meant.
        suggestion: Box<Suggestion>,
    },
    /// A stack or path file that the experiment names is refused.
    #[error("{at}: {source}")]
    Inside {
        /// Where it is named.
        at: Location,
        /// What is wrong with it.
        #[source]
        source: Box<ExperimentError>,
    },
}

impl ExperimentError {
    /// The place that the error is about; `None` for a file that is not TOML.
    pub fn location(&self) -> Option<&Location> {
        match self {
            ExperimentError::Syntax { .. } => None,
            ExperimentError::Read { at, .. }
            | ExperimentError::Quantity { at, .. }
            | ExperimentError::Type { at, .. }
            | ExperimentError::Value { at, .. }
            | ExperimentError::Missing { at, .. }
            | ExperimentError::UnknownKey { at, .. }
            | ExperimentError::UnknownName { at, .. }
            | ExperimentError::Inside { at, .. } => Some(at),
        }
    }

    pub(crate) fn location_mut(&mut self) -> Option<&mut Location> {
        match self {
            ExperimentError::Syntax { .. } => None,
            ExperimentError::Read { at, .. }
            | ExperimentError::Quantity { at, .. }
            | ExperimentError::Type { at, .. }
            | ExperimentError::Value { at, .. }
            | ExperimentError::Missing { at, .. }
            | ExperimentError::UnknownKey { at, .. }
            | ExperimentError::UnknownName { at, .. }
            | ExperimentError::Inside { at, .. } => Some(at),
        }
    }

    pub(crate) fn syntax(origin: &str, text: &str, source: toml::de::Error) -> ExperimentError {
        let offset = source.span().map_or(0, |span| span.start);
        let before = text.get(..offset).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
        ExperimentError::Syntax { origin: origin.to_owned(), line, column, source: Box::new(source) }
    }
}

/// The most values, tables and lists that a file may have. Each takes up to 400 B while it is read: 2.9 GB for the 8 million
/// that fit into a file of 16 MB.
pub const MAX_VALUES: usize = 2_000_000;

/// A whole file as a TOML table.
pub(crate) fn parse_toml(origin: &str, text: &str) -> Result<toml::Table, ExperimentError> {
    // What stands before or behind a value; in comments and texts too, which have few of them.
    let values = text.bytes().filter(|byte| b"=,[{".contains(byte)).count();
    if values > MAX_VALUES {
        let at = Location { origin: origin.to_owned(), key: String::new() };
        return Err(at.refuse(format!("expected {MAX_VALUES} values at the most, found {values}")));
    }
    text.parse().map_err(|error| ExperimentError::syntax(origin, text, error))
}
