//! What is how far away, and how fast light gets there: bodies and media, as data.

use crate::error::{ExperimentError, Location, Suggestion};
use std::sync::LazyLock;

static BODIES: LazyLock<Vec<Body>> = LazyLock::new(|| {
    let mut bodies: Vec<Body> =
        entries("places/bodies.toml", include_str!("../../../places/bodies.toml"), "body", "km")
            .into_iter()
            .map(|(name, title, km, source)| Body { name, title, km, source })
            .collect();
    bodies.sort_by(|a, b| a.km.total_cmp(&b.km));
    bodies
});

static MEDIA: LazyLock<Vec<Medium>> = LazyLock::new(|| {
    entries("places/media.toml", include_str!("../../../places/media.toml"), "medium", "refractive_index")
        .into_iter()
        .map(|(name, title, refractive_index, source)| Medium { name, title, refractive_index, source })
        .collect()
});

/// Something at a distance from Earth.
#[derive(Debug, Clone, PartialEq)]
pub struct Body {
    /// What it is called by.
    pub name: String,
    /// In words.
    pub title: String,
    /// How far, in km.
    pub km: f64,
    /// Who says so.
    pub source: String,
}

/// What a signal travels through.
#[derive(Debug, Clone, PartialEq)]
pub struct Medium {
    /// What it is called by.
    pub name: String,
    /// In words.
    pub title: String,
    /// Speed of light in vacuum over that of the signal.
    pub refractive_index: f64,
    /// Who says so.
    pub source: String,
}

/// The bodies that ship, the nearest first.
pub fn bodies() -> &'static [Body] {
    &BODIES
}

/// The media that ship.
pub fn media() -> &'static [Medium] {
    &MEDIA
}

/// The body of this name.
///
/// # Errors
/// There is none.
pub fn body(name: &str, asked: &str) -> Result<&'static Body, ExperimentError> {
    let unknown = || unknown("body", name, asked, BODIES.iter().map(|body| body.name.as_str()));
    BODIES.iter().find(|body| body.name == name).ok_or_else(unknown)
}

/// The medium of this name.
///
/// # Errors
/// There is none.
pub fn medium(name: &str, asked: &str) -> Result<&'static Medium, ExperimentError> {
    let unknown = || unknown("medium", name, asked, MEDIA.iter().map(|medium| medium.name.as_str()));
    MEDIA.iter().find(|medium| medium.name == name).ok_or_else(unknown)
}

/// `asked` is the option that named it.
fn unknown<'a>(
    what: &'static str,
    name: &str,
    asked: &str,
    known: impl Iterator<Item = &'a str>,
) -> ExperimentError {
    ExperimentError::UnknownName {
        at: Location { origin: asked.to_owned(), key: String::new() },
        what,
        name: name.to_owned(),
        suggestion: Suggestion::among(name, known),
    }
}

fn entries(origin: &str, text: &str, list: &str, number: &str) -> Vec<(String, String, f64, String)> {
    let read = || -> Option<Vec<_>> {
        let table: toml::Table = text.parse().ok()?;
        let entries = table.get(list)?.as_array()?.iter();
        let entry = |entry: &toml::Value| {
            let word = |key: &str| entry.get(key)?.as_str().map(str::to_owned);
            let value = entry.get(number)?;
            let value = value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64))?;
            Some((word("name")?, word("title")?, value, word("source")?))
        };
        entries.map(entry).collect()
    };
    read().unwrap_or_else(|| panic!("{origin} is part of the program, and each entry is whole"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_and_media_are_whole_and_named_once() {
        assert!(bodies().windows(2).all(|pair| pair[0].km < pair[1].km && pair[0].name != pair[1].name));
        assert!(bodies()[0].km > 0.0 && bodies().iter().all(|body| !body.source.is_empty()));
        assert!(media().iter().all(|medium| medium.refractive_index >= 1.0 && !medium.source.is_empty()));
    }

    #[test]
    fn an_unknown_one_is_refused_with_the_nearest() {
        let error = body("mars-nearst", "--to").unwrap_err().to_string();
        assert_eq!(error, "--to: no body is called `mars-nearst`; did you mean `mars-nearest`?");
        let error = medium("fiber", "--medium").unwrap_err().to_string();
        assert_eq!(error, "--medium: no medium is called `fiber`; did you mean `fibre`?");
    }
}
