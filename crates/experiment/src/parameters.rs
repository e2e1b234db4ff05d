//! The parameters of a stack in TOML: read, checked and written as the rows of [`farpath_tcp::config::parameters`] say.

use crate::error::{ExperimentError, Location};
use crate::reader::{self, Parameter as _, Reader, wrong_type};
use farpath_tcp::TIMESTAMPS;
use farpath_tcp::config::{Config, Kind, Parameter, RateKind, Value, Word, parameters};
use farpath_units::{Bytes, Duration, Rate};
use std::ops::RangeInclusive;
use toml::{Table, Value as Toml};

/// Puts what `reader` says in place of what `config` has.
pub(crate) fn override_by(config: &mut Config, reader: &mut Reader<'_>) -> Result<(), ExperimentError> {
    let mut rows = parameters().peekable();
    while let Some(first) = rows.peek() {
        let section = first.section;
        let mut in_section = std::iter::from_fn(|| rows.next_if(|row| row.section == section));
        let mut read =
            |reader: &mut Reader<'_>| in_section.try_for_each(|row| override_one(row, config, reader));
        match section {
            "" => read(reader)?,
            section => reader.section(section, |reader| read(reader))?,
        }
    }
    check(config, &reader.here())
}

const CONTROL: &str = "congestion.control";
const OF_KERNELS: &str =
    "which are simulated (what else a kernel has is `linux.congestion_control`, for `emulate`)";

fn override_one(
    parameter: &'static Parameter,
    config: &mut Config,
    reader: &mut Reader<'_>,
) -> Result<(), ExperimentError> {
    for old in parameter.formerly {
        if reader.says(old.name) {
            let now = parameter.key();
            return Err(reader.location_of(old.name).refuse(match old.word {
                Some((position, word)) => format!("is now a word of `{now}`: `{position}` is `{word}`"),
                None => format!("is now called `{now}`"),
            }));
        }
    }
    let Some(written) = reader.value(parameter.name) else { return Ok(()) };
    let at = reader.location_of(parameter.name);
    let value = match parameter.absent {
        Some(absent) => reader::unless_read(written, absent, |written| read(parameter, written, &at))?,
        None => Some(read(parameter, written, &at)?),
    };
    assert!(parameter.set(config, value.unwrap_or(Value::Absent)), "{}: it was checked", parameter.key());
    Ok(())
}

fn read(parameter: &Parameter, written: &Toml, at: &Location) -> Result<Value, ExperimentError> {
    let number = match parameter.kind {
        Kind::Switch => return bool::read(written, at).map(Value::Switch),
        Kind::Word(words) => {
            return read_word(words, written, at).map_err(|refused| match refused {
                ExperimentError::Type { at, expected, found } if parameter.key() == CONTROL => {
                    ExperimentError::Type { at, expected: format!("{expected}, {OF_KERNELS}"), found }
                }
                refused => refused,
            });
        }
        Kind::Count => {
            let number = written.as_integer().ok_or_else(|| wrong_type(written, at, u32::EXPECTED))?;
            // What is below zero is below every range.
            u64::try_from(number).map_err(|_| wrong_type(written, at, &expected(parameter)))?
        }
        Kind::Duration => Duration::read(written, at)?.as_nanos(),
        Kind::Bytes => Bytes::read(written, at)?.0,
        Kind::Rate => Rate::read(written, at)?.bit_per_s(),
        Kind::ByteRate => {
            let rate = Rate::read(written, at)?.bit_per_s();
            if !rate.is_multiple_of(8) {
                return Err(at.refuse(format!("{rate} bit/s is not a whole number of bytes per second")));
            }
            rate / 8
        }
    };
    match parameter.within.contains(&number) {
        true => Ok(Value::Number(number)),
        false => Err(wrong_type(written, at, &expected(parameter))),
    }
}

fn read_word(words: &[Word], written: &Toml, at: &Location) -> Result<Value, ExperimentError> {
    let switch = written.as_bool();
    let old = words.iter().find(|word| switch.is_some() && word.formerly == switch);
    let known: Vec<_> = words.iter().map(|word| (word.name, word.name)).collect();
    old.map_or_else(|| reader::word(written, at, &known), |word| Ok(word.name)).map(Value::Word)
}

/// What a parameter of numbers expects, its bounds included.
fn expected(parameter: &Parameter) -> String {
    let what = match parameter.kind {
        Kind::Duration => "a duration",
        Kind::Bytes => "a size",
        Kind::Rate | Kind::ByteRate => "a rate",
        Kind::Count | Kind::Switch | Kind::Word(_) => "a whole number",
    };
    format!("{what} {}", bounds(parameter, &parameter.within))
}

/// Bounds in the unit of `parameter`: `above zero`, or `from 1 to 255`.
fn bounds(parameter: &Parameter, within: &RangeInclusive<u64>) -> String {
    let shown = |number| parameter.show(Value::Number(number)).to_string();
    match (*within.start(), *within.end()) {
        (1, u64::MAX) => "above zero".to_owned(),
        (least, most) => format!("from {} to {}", shown(least), shown(most)),
    }
}

/// The whole parameter set as TOML, which reads back to the same one.
pub fn to_toml(config: &Config) -> String {
    to_toml_where(config, |_| true)
}

/// The same of some parameters.
pub(crate) fn to_toml_where(config: &Config, is_wanted: impl Fn(&Parameter) -> bool) -> String {
    let mut table = Table::new();
    for parameter in parameters().filter(|row| is_wanted(row)) {
        let section = match parameter.section {
            "" => &mut table,
            section => {
                let entry = table.entry(section).or_insert_with(|| Toml::Table(Table::new()));
                entry.as_table_mut().expect("nothing else has its name")
            }
        };
        section.insert(parameter.name.to_owned(), write(parameter, parameter.get(config)));
    }
    table.to_string()
}

/// `value` of `parameter` as a stack file says it, a size to the byte.
pub fn value_to_toml(parameter: &Parameter, value: Value) -> String {
    match (parameter.kind, value) {
        (Kind::Bytes, Value::Number(bytes)) => format!("\"{bytes} B\""),
        _ => write(parameter, value).to_string(),
    }
}

fn write(parameter: &Parameter, value: Value) -> Toml {
    match (parameter.kind, value) {
        (_, Value::Switch(on)) => Toml::Boolean(on),
        (Kind::Count, Value::Number(number)) => {
            Toml::Integer(i64::try_from(number).expect("a count of 32 bits at most"))
        }
        (_, value) => Toml::String(parameter.show(value).to_string()),
    }
}

/// Refuses values that cannot work together.
fn check(config: &Config, at: &Location) -> Result<(), ExperimentError> {
    let Config { mss, congestion, rto, send, explicit_rate, .. } = config;
    // Of a sweep this is asked at every point, and nearly everywhere in vain: reasons are put into words where they are needed.
    let rule = |holds: bool, key: &str, reason: &dyn Fn() -> String| {
        if holds { Ok(()) } else { Err(at.child(key).refuse(reason())) }
    };
    let room = !send.timestamps || *mss > TIMESTAMPS;
    rule(room, "mss", &|| format!("{mss} leaves no room for data beside the {TIMESTAMPS} of timestamps"))?;

    let clamp = congestion.cwnd_clamp.unwrap_or(Bytes::MAX);
    let reason = || format!("{clamp} is below the segment's length of {mss}: nothing could be sent");
    rule(clamp >= *mss, "congestion.cwnd_clamp", &reason)?;

    rule(rto.min <= rto.max, "rto.min", &|| format!("{} is above `rto.max`, {}", rto.min, rto.max))?;
    let reason = || format!("{} is above `rto.max`, {}", rto.initial, rto.max);
    rule(rto.initial <= rto.max, "rto.initial", &reason)?;

    let reason = || format!("{} is above `send.persist_max`, {}", send.persist_min, send.persist_max);
    rule(send.persist_min <= send.persist_max, "send.persist_min", &reason)?;

    let composite = explicit_rate.kind == RateKind::Composite;
    let reason = match composite {
        true => "a composite rate has a guaranteed one beside the one that is wanted",
        false => "only a composite rate has it beside the one that is wanted",
    };
    rule(composite == explicit_rate.guaranteed.is_some(), "explicit_rate.guaranteed", &|| reason.to_owned())
}
