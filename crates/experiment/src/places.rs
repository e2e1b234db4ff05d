//! What is how far away, and how fast light gets there: bodies and media, as data.

use crate::error::{ExperimentError, Location, Suggestion};
use farpath_units::{Duration, LIGHT_KM_PER_S};
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

impl Body {
    /// The title without what is behind its first comma, for tables.
    pub fn short_title(&self) -> &str {
        self.title.split_once(',').map_or(&self.title, |(title, _)| title)
    }
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

/// How far something is.
#[derive(Debug, Clone, PartialEq)]
pub struct Distance {
    /// As it was asked for; a body in words.
    pub title: String,
    /// In km.
    pub km: f64,
}

/// What a distance may be given in, and km of each. A light-second is 299 792.458 km, an AU 149 597 870.7 km (IAU 2012
/// resolution B2), both by definition.
const UNITS: [(&str, f64); 5] = [
    ("light-seconds", LIGHT_KM_PER_S),
    ("light-minutes", 60.0 * LIGHT_KM_PER_S),
    ("light-hours", 3600.0 * LIGHT_KM_PER_S),
    ("km", 1.0),
    ("AU", 149_597_870.7),
];

impl Distance {
    /// A body by name, or a number with its unit: `384400 km`, `1.5 light-seconds`, `0.5 AU`.
    ///
    /// # Errors
    /// Neither; or a distance below zero.
    pub fn parse(text: &str, at: &Location) -> Result<Distance, ExperimentError> {
        let text = text.trim();
        let unit = UNITS.iter().find_map(|(unit, km)| Some((text.strip_suffix(unit)?.trim_end(), km)));
        let number = unit.and_then(|(number, km)| Some(number.parse::<f64>().ok()? * km));
        match number {
            Some(km) if km.is_finite() && km >= 0.0 => Ok(Distance { title: text.to_owned(), km }),
            // What begins with a digit or a sign, or ends with a unit, is meant as a number.
            _ if unit.is_some()
                || text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first)) =>
            {
                let expected = "a body such as `moon` or a distance such as `384400 km`, `1.5 light-seconds` or \
                                `0.5 AU`, zero or more";
                Err(at.expected(expected, &format!("`{text}`")))
            }
            _ => body_of(text, at).map(|body| Distance { title: body.title.clone(), km: body.km }),
        }
    }

    /// What a signal takes over it one way.
    pub(crate) fn delay(&self, medium: &Medium) -> Result<Duration, String> {
        let delay = Duration::from_secs_f64(self.km / LIGHT_KM_PER_S * medium.refractive_index);
        if delay == Duration::MAX {
            let reason = "is beyond the 584 years that simulated time has";
            return Err(format!("what light takes over {} {reason}", self.title));
        }
        Ok(delay)
    }
}

/// The bodies that ship, the nearest first.
pub fn bodies() -> &'static [Body] {
    &BODIES
}

/// The media that ship.
pub fn media() -> &'static [Medium] {
    &MEDIA
}

/// The body of this name; `asked` is the option that named it.
///
/// # Errors
/// There is none.
pub fn body(name: &str, asked: &str) -> Result<&'static Body, ExperimentError> {
    body_of(name, &Location::option(asked))
}

/// The medium of this name; `asked` is the option that named it.
///
/// # Errors
/// There is none.
pub fn medium(name: &str, asked: &str) -> Result<&'static Medium, ExperimentError> {
    medium_of(name, &Location::option(asked))
}

fn body_of(name: &str, at: &Location) -> Result<&'static Body, ExperimentError> {
    let unknown = || unknown("body", name, at, BODIES.iter().map(|body| body.name.as_str()));
    BODIES.iter().find(|body| body.name == name).ok_or_else(unknown)
}

pub(crate) fn medium_of(name: &str, at: &Location) -> Result<&'static Medium, ExperimentError> {
    let unknown = || unknown("medium", name, at, MEDIA.iter().map(|medium| medium.name.as_str()));
    MEDIA.iter().find(|medium| medium.name == name).ok_or_else(unknown)
}

fn unknown<'a>(
    what: &'static str,
    name: &str,
    at: &Location,
    known: impl Iterator<Item = &'a str>,
) -> ExperimentError {
    let suggestion = Suggestion::among(name, known);
    ExperimentError::UnknownName { at: at.clone(), what, name: name.to_owned(), suggestion }
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
    fn a_distance_is_a_body_or_a_number_with_its_unit() {
        let at = Location::option("--to");
        let km = |text: &str| Distance::parse(text, &at).map(|distance| distance.km);
        assert_eq!(km("moon").unwrap(), 384_400.0);
        assert_eq!(km(" 384400 km").unwrap(), 384_400.0);
        assert_eq!(km("1.5 light-seconds").unwrap(), 449_688.687);
        assert_eq!(km("1 AU").unwrap(), 149_597_870.7);
        let refused = |text: &str| km(text).unwrap_err().to_string();
        for odd in ["-5 km", "5 miles", "384400", "1e400 km", "nan km"] {
            assert!(refused(odd).ends_with(&format!("zero or more, found `{odd}`")), "{}", refused(odd));
        }
        assert_eq!(refused("mooon"), "--to: no body is called `mooon`; did you mean `moon`?");
        let far = Distance::parse("visible-universe", &at).unwrap().delay(&MEDIA[0]).unwrap_err();
        assert!(far.ends_with("beyond the 584 years that simulated time has"), "{far}");
    }

    #[test]
    fn an_unknown_one_is_refused_with_the_nearest() {
        let error = body("mars-nearst", "--to").unwrap_err().to_string();
        assert_eq!(error, "--to: no body is called `mars-nearst`; did you mean `mars-nearest`?");
        let error = medium("fiber", "--medium").unwrap_err().to_string();
        assert_eq!(error, "--medium: no medium is called `fiber`; did you mean `fibre`?");
    }
}
