//! Command lines of other emulators as elements of a path.

mod mahimahi;
mod tc;

pub use mahimahi::mahimahi;
pub use tc::{Ways, tc};

use crate::quick_path::quoted;
use core::fmt::Write;
use farpath_path::Direction;
use farpath_units::{Bytes, Duration, Rate};
use std::collections::BTreeMap;

/// Why a command line is not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{word}`: expected {expected}")]
pub struct ImportError {
    /// The word that is not as it should be, with what it belongs to.
    pub word: String,
    /// What was expected in its place.
    pub expected: String,
}

impl ImportError {
    fn new(word: impl Into<String>, expected: impl Into<String>) -> ImportError {
        ImportError { word: word.into(), expected: expected.into() }
    }
}

/// Elements of a path, in the order in which forward packets meet them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Imported {
    elements: Vec<Entry>,
    /// What the elements do otherwise than the commands would, and what was left out.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    element: &'static str,
    /// Keys and their values as TOML.
    keys: Vec<(&'static str, String)>,
}

impl Entry {
    fn new(element: &'static str) -> Entry {
        Entry { element, keys: Vec::new() }
    }

    fn with(mut self, key: &'static str, value: impl Into<String>) -> Entry {
        self.keys.push((key, value.into()));
        self
    }

    /// Puts `value` in the place of what the key has.
    fn set(&mut self, key: &'static str, value: String) {
        self.keys.retain(|(other, _)| *other != key);
        self.keys.push((key, value));
    }
}

impl Imported {
    /// The elements as a path or an experiment file has them.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        for Entry { element, keys } in &self.elements {
            // Writing into a text does not fail.
            let _ = writeln!(text, "[[path]]\nelement = \"{element}\"");
            for (key, value) in keys {
                let _ = writeln!(text, "{key} = {value}");
            }
            text.push('\n');
        }
        text
    }

    /// Gives those of a kind that is there already a name of their own.
    fn named(mut self) -> Imported {
        let mut counts = BTreeMap::new();
        for entry in &mut self.elements {
            let count = counts.entry(entry.element).or_insert(0);
            *count += 1;
            if *count > 1 {
                entry.keys.insert(0, ("name", quoted(&format!("{}-{count}", entry.element))));
            }
        }
        self
    }

    /// A path file of it, with the notes as comments. `of` is the emulator, `commands` are its command lines.
    pub fn to_file(&self, of: &str, commands: &str) -> String {
        let title = quoted(&format!("A path of {of}"));
        let mut text = format!("title = {title}\nsource = {}\n\n", quoted(&one_line(commands)));
        for note in &self.notes {
            let _ = writeln!(text, "# {}", one_line(note));
        }
        if !self.notes.is_empty() {
            text.push('\n');
        }
        text + self.to_toml().trim_end()
    }

    fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

/// Which packets a command is about; `None` for both ways.
pub type Way = Option<Direction>;

/// A value for one way, `rest` for the other; or one for both.
fn each_way(way: Way, value: &str, rest: &str) -> String {
    match way {
        None => value.to_owned(),
        Some(Direction::Forward) => format!("{{ forward = {value}, reverse = {rest} }}"),
        Some(Direction::Reverse) => format!("{{ forward = {rest}, reverse = {value} }}"),
    }
}

/// Words with a blank between two, and nothing that would end a line.
fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The largest of these units of which it is a whole number.
fn in_units(number: u64, units: &[(u64, &str)]) -> String {
    let (size, name) =
        units.iter().find(|(size, _)| number.is_multiple_of(*size)).copied().unwrap_or((1, ""));
    quoted(&format!("{} {name}", number / size))
}

fn duration(time: Duration) -> String {
    in_units(time.as_nanos(), &[(1_000_000_000, "s"), (1_000_000, "ms"), (1000, "us"), (1, "ns")])
}

fn rate(rate: Rate) -> String {
    let units = [(1_000_000_000, "Gbit/s"), (1_000_000, "Mbit/s"), (1000, "kbit/s"), (1, "bit/s")];
    in_units(rate.bit_per_s(), &units)
}

fn bytes(bytes: Bytes) -> String {
    in_units(bytes.0, &[(1, "B")])
}

/// A share that is known in per cent.
fn percent(percent: f64) -> String {
    quoted(&format!("{percent} %"))
}

/// The words of a command line, as a shell splits them.
fn split(text: &str) -> Result<Vec<String>, ImportError> {
    let words = shlex::split(text)
        .ok_or_else(|| ImportError::new(text.trim(), "a command line whose quotes are closed"))?;
    if words.is_empty() {
        return Err(ImportError::new("", "a command line"));
    }
    Ok(words)
}

/// The most words that are read.
const MOST_WORDS: usize = 1000;

/// Words one by one.
struct Words {
    words: std::vec::IntoIter<String>,
    /// The one that was read last, with which an error begins.
    last: String,
}

impl Words {
    fn new(words: Vec<String>) -> Result<Words, ImportError> {
        if words.len() > MOST_WORDS {
            let found = format!("{} words", words.len());
            return Err(ImportError::new(found, format!("{MOST_WORDS} at the most")));
        }
        Ok(Words { words: words.into_iter(), last: String::new() })
    }

    fn peek(&self) -> Option<&str> {
        self.words.as_slice().first().map(String::as_str)
    }

    fn next(&mut self) -> Option<String> {
        let word = self.words.next()?;
        self.last.clone_from(&word);
        Some(word)
    }

    /// The next word as `read` has it.
    fn value<T>(&mut self, expected: &str, read: impl FnOnce(&str) -> Option<T>) -> Result<T, ImportError> {
        let before = self.last.clone();
        let Some(word) = self.next() else {
            return Err(ImportError::new(before, format!("{expected} behind it")));
        };
        read(&word).ok_or_else(|| ImportError::new(format!("{before} {word}"), expected))
    }

    /// The next word, where `read` can read it.
    fn optional<T>(&mut self, read: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let value = self.peek().and_then(read);
        if value.is_some() {
            self.next();
        }
        value
    }
}

/// A plain number from zero on, with what stands behind it.
fn number(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok().filter(|number: &f64| number.is_finite())?;
    Some((number, &text[end..]))
}
