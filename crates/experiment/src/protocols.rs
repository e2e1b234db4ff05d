//! Timers of protocols that act as radii: data, as stacks are.

use crate::error::{ExperimentError, Location, parse_toml};
use crate::library::{Catalog, ShippedFile};
use crate::reader::{Parameter, Reader, as_list, as_table, unless, word};
use farpath_units::Duration;
use toml::Value;

/// The most timers that a protocol may have.
pub const MAX_TIMERS: usize = 1000;

/// A protocol and its timers.
#[derive(Debug, Clone, PartialEq)]
pub struct Protocol {
    /// What it is called by.
    pub name: String,
    /// In words.
    pub title: String,
    /// In the order of its file.
    pub timers: Vec<ProtocolTimer>,
}

/// A timer that waits for an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct ProtocolTimer {
    /// What it is called by, within its protocol.
    pub name: String,
    /// What happens when it expires.
    pub title: String,
    /// When it does; `None` where no timer is set against the delay.
    pub after: Option<Duration>,
    /// Round trips that have to fit.
    pub round_trips: u32,
    /// What that does.
    pub beyond: Beyond,
    /// Who says so.
    pub source: String,
}

/// What a delay beyond a timer does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beyond {
    /// Something is sent again needlessly.
    Again,
    /// It does not work.
    Ends,
    /// Nothing: the protocol sets no timer against the delay.
    Nothing,
}

impl Beyond {
    /// As files and tables spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Beyond::Again => "again",
            Beyond::Ends => "ends",
            Beyond::Nothing => "nothing",
        }
    }
}

impl Parameter for Beyond {
    const EXPECTED: &'static str = "`again`, `ends` or `nothing`";
    fn read(value: &Value, at: &Location) -> Result<Beyond, ExperimentError> {
        let word_of = |beyond: Beyond| (beyond.name(), beyond);
        word(value, at, &[Beyond::Again, Beyond::Ends, Beyond::Nothing].map(word_of))
    }
}

impl Protocol {
    /// The protocol of this name, or in this file; `asked` is the option that named it.
    ///
    /// # Errors
    /// There is none; the file is refused.
    pub fn load(name: &str, asked: &str) -> Result<Protocol, ExperimentError> {
        let (origin, text) = Catalog::Protocols.find(name, &Location::option(asked))?;
        Protocol::parse(name.trim_end_matches(".toml"), &text, &origin)
    }

    fn parse(name: &str, text: &str, origin: &str) -> Result<Protocol, ExperimentError> {
        let table = parse_toml(origin, text)?;
        Reader::table(origin, "", &table, |reader| {
            let title = reader.required("title")?;
            let at = reader.location_of("timer");
            let list = reader.value("timer").ok_or_else(|| reader.missing("timer", "a list of timers"))?;
            let (list, mut timers) = (as_list(list, &at)?, Vec::<ProtocolTimer>::new());
            if list.len() > MAX_TIMERS {
                let found = list.len();
                return Err(at.refuse(format!("expected {MAX_TIMERS} timers at the most, found {found}")));
            }
            for (index, entry) in list.iter().enumerate() {
                let at = at.entry(index);
                let timer = Reader::table(&at.origin, &at.key, as_table(entry, &at)?, read_timer)?;
                if timers.iter().any(|other| other.name == timer.name) {
                    return Err(at.child("name").refuse(format!("two timers are called `{}`", timer.name)));
                }
                timers.push(timer);
            }
            let name = name.rsplit('/').next().unwrap_or(name).to_owned();
            Ok(Protocol { name, title, timers })
        })
    }
}

fn read_timer(reader: &mut Reader<'_>) -> Result<ProtocolTimer, ExperimentError> {
    let at = reader.location_of("after");
    let after = match reader.value("after") {
        Some(value) => unless::<Duration>(value, &at, "none")?,
        None => return Err(reader.missing("after", "a duration such as `5 s`, or `none`")),
    };
    if after == Some(Duration::ZERO) {
        return Err(at.refuse("a timer of no time; where there is none say `none`"));
    }
    let round_trips: u32 = reader.or("round_trips", 1)?;
    if round_trips == 0 {
        return Err(reader.location_of("round_trips").refuse("an answer takes at least one"));
    }
    let beyond: Beyond = reader.required("beyond")?;
    if after.is_none() != (beyond == Beyond::Nothing) {
        return Err(reader
            .location_of("beyond")
            .refuse("`nothing` goes with `after = \"none\"`, and with it alone"));
    }
    let (name, title) = (reader.required("name")?, reader.required("title")?);
    Ok(ProtocolTimer { name, title, after, round_trips, beyond, source: reader.required("source")? })
}

/// The protocols that ship, by name.
pub fn shipped_protocols() -> Vec<ShippedFile> {
    crate::library::shipped(Catalog::Protocols)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        Protocol::parse("mine", text, "mine.toml").unwrap_err().to_string()
    }

    #[test]
    fn every_protocol_that_ships_is_whole() {
        let shipped = shipped_protocols();
        assert!(shipped.len() >= 10);
        for file in shipped {
            let protocol = Protocol::load(file.name, "--protocol").expect("it is sound");
            assert!(!protocol.timers.is_empty() && !protocol.title.is_empty(), "{}", file.name);
            assert!(protocol.timers.iter().all(|timer| !timer.source.is_empty()), "{}", file.name);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let timer = "title = \"Mine\"\n[[timer]]\nname = \"t\"\ntitle = \"x\"\nsource = \"me\"\n";
        let with = |rest: &str| refused(&format!("{timer}{rest}"));
        assert_eq!(
            with("after = \"5\"\nbeyond = \"ends\""),
            "mine.toml: timer[0].after: expected a duration such as `20 ms`, or `none`, found `5`: it has no unit"
        );
        assert_eq!(
            with("after = \"5 s\"\nbeyond = \"stops\""),
            "mine.toml: timer[0].beyond: expected one of `again`, `ends`, `nothing`, found `stops`"
        );
        assert_eq!(
            with("after = \"5 s\"\nbeyond = \"nothing\""),
            "mine.toml: timer[0].beyond: `nothing` goes with `after = \"none\"`, and with it alone"
        );
        assert_eq!(
            with("after = \"0 s\"\nbeyond = \"ends\""),
            "mine.toml: timer[0].after: a timer of no time; where there is none say `none`"
        );
        assert_eq!(
            with("beyond = \"ends\""),
            "mine.toml: timer[0].after: missing; expected a duration such as `5 s`, or `none`"
        );
        let many = format!("title = \"Mine\"\ntimer = [{}]", "{},".repeat(MAX_TIMERS + 1));
        assert_eq!(refused(&many), "mine.toml: timer: expected 1000 timers at the most, found 1001");
        let error = Protocol::load("dms", "--protocol").unwrap_err().to_string();
        assert_eq!(error, "--protocol: no protocol is called `dms`; did you mean `dns`?");
    }
}
