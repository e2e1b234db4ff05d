//! The keys of an element, whatever kind of file they stand in: `farpath-experiment` reads them from TOML.

use farpath_path::PerDirection;
use farpath_units::{Angle, Ber, Bytes, Duration, Length, ParseQuantityError, Power, Probability, Rate};

/// A table of keys. Whoever gives it refuses those that nobody asked for.
pub trait Keys: Sized {
    /// Why a value is refused: it knows the file and the key.
    type Error;

    /// Whether `key` is there.
    fn has(&mut self, key: &'static str) -> bool;

    /// The value of `key`, if it is there.
    ///
    /// # Errors
    /// When the value is not as it should be.
    fn optional<T: ReadValue>(&mut self, key: &'static str) -> Result<Option<T>, Self::Error>;

    /// The value of `key`, which has to be there.
    ///
    /// # Errors
    /// When it is not, or the value is not as it should be.
    fn required<T: ReadValue>(&mut self, key: &'static str) -> Result<T, Self::Error>;

    /// A parameter that may differ by direction: one value, or `{ forward = .., reverse = .. }`, where a direction that is
    /// not named gets `rest`, if there is one.
    ///
    /// # Errors
    /// When it is not there, or a value is not as it should be.
    fn each_way<T: ReadValue + Clone>(
        &mut self,
        key: &'static str,
        rest: Option<T>,
    ) -> Result<PerDirection<T>, Self::Error>;

    /// One-way propagation: `delay`, or `distance` and `medium`.
    ///
    /// # Errors
    /// When neither or both are there, or a value is not as it should be.
    fn propagation(&mut self) -> Result<PerDirection<Duration>, Self::Error>;

    /// The error for a value of `key` that is refused.
    fn refuse(&self, key: &str, reason: String) -> Self::Error;

    /// The value of `key`, or `default`.
    ///
    /// # Errors
    /// When the value is not as it should be.
    fn or<T: ReadValue>(&mut self, key: &'static str, default: T) -> Result<T, Self::Error> {
        Ok(self.optional(key)?.unwrap_or(default))
    }

    /// [`each_way`](Keys::each_way), where the key may be absent: `default` both ways then.
    ///
    /// # Errors
    /// When a value is not as it should be.
    fn each_way_or<T: ReadValue + Clone>(
        &mut self,
        key: &'static str,
        rest: T,
        default: T,
    ) -> Result<PerDirection<T>, Self::Error> {
        if self.has(key) { self.each_way(key, Some(rest)) } else { Ok(PerDirection::both(default)) }
    }
}

/// A value that stands in a file, and where.
pub trait Source: Sized {
    /// Why a value is refused.
    type Error;
    /// The keys of a table in it.
    type Keys: Keys<Error = Self::Error>;

    /// The text, where it is one.
    fn text(&self) -> Option<&str>;
    /// The whole number, where it is one.
    fn integer(&self) -> Option<i64>;
    /// The switch, where it is one.
    fn switch(&self) -> Option<bool>;
    /// Whether it is a number.
    fn is_number(&self) -> bool;

    /// Whether it is a table with this key.
    fn has_key(&self, key: &str) -> bool;

    /// The entries of a list, each by `read`; `None` where it is none.
    fn list<T>(
        &self,
        read: impl FnMut(&Self) -> Result<T, Self::Error>,
    ) -> Option<Result<Vec<T>, Self::Error>>;

    /// What `read` makes of a table; `None` where it is none.
    fn table<T>(
        &self,
        read: impl FnOnce(&mut Self::Keys) -> Result<T, Self::Error>,
    ) -> Option<Result<T, Self::Error>>;

    /// The name and the text of the file that a text names, seen from the folder of the file that it stands in.
    ///
    /// # Errors
    /// When it names none that can be read.
    fn file(&self) -> Result<(String, String), Self::Error>;

    /// A quantity by its text.
    ///
    /// # Errors
    /// When it is none.
    fn quantity<T: core::str::FromStr<Err = ParseQuantityError>>(
        &self,
        expected: &str,
    ) -> Result<T, Self::Error>;

    /// `none` as nothing, and everything else as a `T`.
    ///
    /// # Errors
    /// When it is neither.
    fn unless<T: ReadValue>(&self, none: &str) -> Result<Option<T>, Self::Error>;

    /// The error for a value of another type.
    fn wrong_type(&self, expected: &str) -> Self::Error;

    /// The error for a value that is refused.
    fn refuse(&self, reason: String) -> Self::Error;

    /// The same error, with more to what was found.
    fn with_hint(error: Self::Error, hint: &str) -> Self::Error;

    /// The same error, where something else was `expected`.
    fn expecting(error: Self::Error, expected: &str) -> Self::Error;
}

/// A value that an element can have in a file.
pub trait ReadValue: Sized {
    /// With its article and an example, for a key that is missing.
    const EXPECTED: &'static str;
    /// Whether it may be a table, which is then not taken for one value each way.
    const IS_TABLE: bool = false;

    /// Reads it.
    ///
    /// # Errors
    /// When it is not as it should be.
    fn read<S: Source>(source: &S) -> Result<Self, S::Error>;
}

macro_rules! quantities {
    ($($type:ty, $expected:literal;)*) => {$(
        impl ReadValue for $type {
            const EXPECTED: &'static str = $expected;
            fn read<S: Source>(source: &S) -> Result<$type, S::Error> {
                source.quantity(Self::EXPECTED)
            }
        }
    )*};
}

quantities! {
    Duration, "a duration such as `20 ms`";
    Bytes, "a size such as `64 kB`";
    Rate, "a rate such as `8 Mbit/s`";
    Power, "a power such as `1.5 W`";
    Length, "a length such as `550 km`";
    Angle, "an angle such as `51.5 deg`";
    Ber, "a bit error rate such as `1e-7`";
}

impl ReadValue for Probability {
    const EXPECTED: &'static str = "a fraction or a percentage such as `1 %`";
    fn read<S: Source>(source: &S) -> Result<Probability, S::Error> {
        // `1` would be everything as a fraction and one packet in a hundred as a percentage.
        if source.is_number() {
            let error = source.wrong_type(Self::EXPECTED);
            return Err(S::with_hint(error, ": a bare number does not say which of the two it is"));
        }
        source.quantity(Self::EXPECTED)
    }
}

macro_rules! whole_numbers {
    ($($type:ty),*) => {$(
        impl ReadValue for $type {
            const EXPECTED: &'static str = "a whole number";
            fn read<S: Source>(source: &S) -> Result<$type, S::Error> {
                let number = source.integer().ok_or_else(|| source.wrong_type(Self::EXPECTED))?;
                <$type>::try_from(number).map_err(|_| {
                    source.wrong_type(&format!("a whole number from 0 to {}", <$type>::MAX))
                })
            }
        }
    )*};
}

whole_numbers!(u8, u32, u64);

impl ReadValue for bool {
    const EXPECTED: &'static str = "true or false";
    fn read<S: Source>(source: &S) -> Result<bool, S::Error> {
        source.switch().ok_or_else(|| source.wrong_type(Self::EXPECTED))
    }
}

/// What `parse` makes of the file that a text names; `None` where it is no text.
pub(crate) fn by_file<T, E: core::fmt::Display, S: Source>(
    source: &S,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Option<Result<T, S::Error>> {
    source.text()?;
    let read = |(file, text): (String, String)| {
        parse(&text).map_err(|reason| source.refuse(format!("{file}: {reason}")))
    };
    Some(source.file().and_then(read))
}

/// The lines of a file that say something, by their numbers.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = (1..).zip(text.lines().map(str::trim));
    lines.filter(|(_, text)| !text.is_empty() && !text.starts_with('#'))
}

/// Why a line of a file is refused.
pub(crate) fn wrong_line(line: usize, found: &str, expected: &str) -> String {
    format!("line {line}: expected {expected}, found `{}`", shown(found))
}

/// As much of what was found as an error can show.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(40).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Reads one of a set of words.
pub(crate) fn word<T: Clone, S: Source>(source: &S, words: &[(&'static str, T)]) -> Result<T, S::Error> {
    let found = source.text();
    let known = words.iter().find(|(word, _)| found == Some(*word));
    known.map(|(_, meaning)| meaning.clone()).ok_or_else(|| {
        let list: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
        source.wrong_type(&format!("one of {}", list.join(", ")))
    })
}

/// A value, or the word `none`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OrNone<T>(pub Option<T>);

impl<T: ReadValue> ReadValue for OrNone<T> {
    const EXPECTED: &'static str = T::EXPECTED;
    fn read<S: Source>(source: &S) -> Result<OrNone<T>, S::Error> {
        source.unless("none").map(OrNone)
    }
}
