//! What is wrong with a command line, where the parser's own words lead astray.

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::error::Error as _;
use std::ffi::OsString;
use std::num::{IntErrorKind, ParseIntError};

/// The same error, said as of a value where it is one.
pub fn in_plain_words(error: Error, args: &[OsString]) -> Error {
    let said = match error.kind() {
        ErrorKind::UnknownArgument => negative(&error, args),
        ErrorKind::ValueValidation => no_number(&error),
        _ => None,
    };
    match said {
        Some(said) => Error::raw(error.kind(), format!("{said}\n\nFor more information, try '--help'.\n")),
        None => error,
    }
}

fn context(error: &Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text),
        _ => None,
    }
}

/// A negative value is taken for an option of that name, and is told as one that nobody knows.
fn negative(error: &Error, args: &[OsString]) -> Option<String> {
    let unknown = context(error, ContextKind::InvalidArg)?;
    let is_number = |text: &str| {
        text.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    if !is_number(unknown) {
        return None;
    }
    let words: Vec<&str> = args.iter().filter_map(|word| word.to_str()).collect();
    let place = words.iter().position(|word| word.starts_with(unknown))?;
    let before = place.checked_sub(1).map(|before| words[before]).filter(|word| word.starts_with("--"));
    let of = before.map_or_else(String::new, |option| format!(" for '{option}'"));
    Some(format!("invalid value '{}'{of}: it is negative", words[place]))
}

/// The words of the standard library for what is no whole number are those of a programmer.
fn no_number(error: &Error) -> Option<String> {
    let cause: &ParseIntError = error.source()?.downcast_ref()?;
    let (value, of) = (context(error, ContextKind::InvalidValue)?, context(error, ContextKind::InvalidArg)?);
    let why = match cause.kind() {
        IntErrorKind::PosOverflow => "it is too large",
        IntErrorKind::NegOverflow => "it is negative",
        _ if value.starts_with('-') => "it is negative",
        _ => "expected a whole number",
    };
    Some(format!("invalid value '{value}' for '{of}': {why}"))
}
