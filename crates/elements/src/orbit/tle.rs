//! Two-line element sets, and the times that go with them.

use sgp4::chrono::NaiveDateTime;

/// The elements of one satellite at their epoch.
#[derive(Debug, Clone)]
pub struct Tle {
    pub(super) elements: sgp4::Elements,
}

/// As much of a line as an error shows.
const SHOWN: usize = 80;

/// Reads a two-line element set: two lines of 69 characters, or three with the satellite's name above.
///
/// # Errors
/// The line that is not as it should be.
pub fn parse_tle(text: &str) -> Result<Tle, String> {
    let lines: Vec<(usize, &str)> = (1..)
        .zip(text.lines())
        .map(|(number, line)| (number, line.trim_end()))
        .filter(|line| !line.1.is_empty())
        .take(4)
        .collect();
    let (name, first, second) = match lines[..] {
        [first, second] => (None, first, second),
        [name, first, second] if !name.1.starts_with("1 ") => (Some(name.1.trim()), first, second),
        [] => return Err("expected two lines of elements, found nothing".to_owned()),
        [.., last] if lines.len() > 2 => {
            return Err(format!(
                "line {}: expected the end after one satellite, found `{}`",
                last.0,
                shown(last.1)
            ));
        }
        [only] => {
            return Err(format!(
                "line {}: expected two lines of elements, found `{}` alone",
                only.0,
                shown(only.1)
            ));
        }
        [..] => unreachable!("all other numbers of lines are above"),
    };
    for (line, start) in [(first, "1 "), (second, "2 ")] {
        // sgp4 2.4 subtracts from the last character without looking whether it is a digit.
        let ends_with_digit = line.1.ends_with(|c: char| c.is_ascii_digit());
        if !(line.1.is_ascii() && line.1.len() == 69 && line.1.starts_with(start) && ends_with_digit) {
            return Err(format!(
                "line {}: expected 69 characters that begin with `{start}` and end with a digit, found `{}`",
                line.0,
                shown(line.1)
            ));
        }
    }
    let name = name.map(|name| shown(name.strip_prefix("0 ").unwrap_or(name)));
    let elements = sgp4::Elements::from_tle(name, first.1.as_bytes(), second.1.as_bytes());
    let elements = elements.map_err(|error| {
        // It counts the two lines, where a name may be above.
        let text = error.to_string();
        let line = if text.contains("on TLE line 2") { second.0 } else { first.0 };
        let what = text.strip_prefix("TLE parse error: ").unwrap_or(&text);
        format!("line {line}: {what}")
    })?;
    let angles =
        [elements.inclination, elements.right_ascension, elements.argument_of_perigee, elements.mean_anomaly];
    let ends = [
        (first.0, "drag terms", elements.drag_term.abs() < 1.0),
        (second.0, "angles", angles.iter().all(|angle| (-360.0..=360.0).contains(angle))),
        (second.0, "digits of the eccentricity", (0.0..1.0).contains(&elements.eccentricity)),
        (second.0, "revolutions a day", (0.01..20.0).contains(&elements.mean_motion)),
    ];
    match ends.iter().find(|(.., sound)| !sound) {
        Some((line, what, _)) => Err(format!("line {line}: the {what} are out of range")),
        None => Ok(Tle { elements }),
    }
}

fn shown(text: &str) -> String {
    text.chars().take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Reads a time such as `2026-11-27T12:00:00Z`.
pub(super) fn time(text: &str) -> Option<NaiveDateTime> {
    NaiveDateTime::parse_from_str(text.trim(), "%Y-%m-%dT%H:%M:%S%.fZ").ok()
}
