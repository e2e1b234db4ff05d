//! `[[program]]`: programs of the user on the path, which `farpath exec` runs.

use crate::error::ExperimentError;
use crate::reader::{Parameter, Reader, as_list, as_table, shown, word, wrong_type};
use core::fmt;
use core::num::NonZeroU16;
use core::str::FromStr;
use farpath_path::Direction;
use farpath_units::Duration;
use std::path::PathBuf;
use toml::Value;

/// The most programs that one experiment may have.
pub const MAX_PROGRAMS: usize = 100;

/// A program of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramSpec {
    /// What it is called by in results, and by the files with what it prints.
    pub name: String,
    /// The host that it runs on: `Forward` for the near one, from which forward packets come.
    pub host: Direction,
    /// When it is started.
    pub start: Duration,
    /// It is not started before something on the other host listens at this port.
    pub wait_for_port: Option<ListeningPort>,
    /// The program and its arguments: at least one.
    pub command: Vec<String>,
    /// What its environment has beside that of `farpath`.
    pub env: Vec<(String, String)>,
    /// Its working directory; `None` for that of `farpath`.
    pub cwd: Option<PathBuf>,
    /// A file that it reads as its standard input; `None` for nothing.
    pub input: Option<PathBuf>,
    /// It is ended when all programs that are not of the background have ended: a server.
    pub background: bool,
}

/// What the host is called whose packets go in this direction.
pub const fn host_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Forward => "near",
        Direction::Reverse => "far",
    }
}

/// Where a program runs.
#[derive(Clone, Copy)]
struct Host(Direction);

impl Parameter for Host {
    const EXPECTED: &'static str = "`near` or `far`";
    fn read(value: &Value, at: &crate::Location) -> Result<Host, ExperimentError> {
        word(value, at, &[("near", Host(Direction::Forward)), ("far", Host(Direction::Reverse))])
    }
}

/// A port at which something listens: `8000` of TCP, `4433/udp` of UDP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListeningPort {
    /// Its number.
    pub number: NonZeroU16,
    /// Of UDP, where a socket that is bound to it listens.
    pub udp: bool,
}

impl fmt::Display for ListeningPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.number, if self.udp { "/udp" } else { "" })
    }
}

/// Text that names no port.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}, found `{0}`", expected = ListeningPort::EXPECTED)]
pub struct ParsePortError(String);

impl FromStr for ListeningPort {
    type Err = ParsePortError;

    fn from_str(text: &str) -> Result<ListeningPort, ParsePortError> {
        let (number, transport) = text.split_once('/').unwrap_or((text, "tcp"));
        let port = |number| ListeningPort { number, udp: transport == "udp" };
        let known = ["tcp", "udp"].contains(&transport).then(|| number.parse().ok().map(port));
        known.flatten().ok_or_else(|| ParsePortError(text.to_owned()))
    }
}

impl Parameter for ListeningPort {
    const EXPECTED: &'static str = "a TCP port, 1 to 65535, or a UDP port such as `4433/udp`";
    fn read(value: &Value, at: &crate::Location) -> Result<ListeningPort, ExperimentError> {
        let text = match value {
            Value::Integer(number) => number.to_string(),
            Value::String(text) => text.clone(),
            _ => String::new(),
        };
        text.parse().map_err(|_| wrong_type(value, at, ListeningPort::EXPECTED))
    }
}

/// Reads `[[program]]`.
pub(crate) fn read_programs(reader: &mut Reader<'_>) -> Result<Vec<ProgramSpec>, ExperimentError> {
    let Some(list) = reader.value("program") else { return Ok(Vec::new()) };
    let at = reader.location_of("program");
    let list = as_list(list, &at)?;
    if list.len() > MAX_PROGRAMS {
        return Err(at.refuse(format!("expected at most {MAX_PROGRAMS} programs, found {}", list.len())));
    }
    let mut programs: Vec<ProgramSpec> = Vec::with_capacity(list.len());
    for (index, value) in list.iter().enumerate() {
        let at = at.entry(index);
        let program = Reader::table(&at.origin, &at.key, as_table(value, &at)?, |program| {
            let name = program.or("name", format!("program-{index}"))?;
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
                let reason = format!("expected 1 to 64 letters, digits, `-` and `_`, found `{name}`");
                return Err(program.location_of("name").refuse(reason));
            }
            if programs.iter().any(|other| other.name == name) {
                return Err(program.location_of("name").refuse(format!("two programs are called `{name}`")));
            }
            Ok(ProgramSpec {
                name,
                host: program.or("host", Host(Direction::Forward))?.0,
                start: program.or("start", Duration::ZERO)?,
                wait_for_port: program.optional("wait_for_port")?,
                command: match program.value("command") {
                    Some(value) => command(value, &program.location_of("command"))?,
                    None => return Err(program.missing("command", COMMAND)),
                },
                env: match program.value("env") {
                    Some(value) => environment(value, &program.location_of("env"))?,
                    None => Vec::new(),
                },
                cwd: program.optional::<String>("cwd")?.map(PathBuf::from),
                input: program.optional::<String>("input")?.map(PathBuf::from),
                background: program.or("background", false)?,
            })
        })?;
        programs.push(program);
    }
    if !programs.is_empty() && programs.iter().all(|program| program.background) {
        return Err(
            at.refuse("all programs are of the background: expected one at least whose end is the run's")
        );
    }
    Ok(programs)
}

const COMMAND: &str =
    "a list such as `[\"curl\", \"http://far/\"]`, or a line for /bin/sh such as `\"sleep 1; exit 3\"`";

fn command(value: &Value, at: &crate::Location) -> Result<Vec<String>, ExperimentError> {
    let words: Vec<String> = match value {
        Value::String(line) => ["/bin/sh", "-c", line].map(str::to_owned).into(),
        Value::Array(words) => words
            .iter()
            .enumerate()
            .map(|(index, word)| String::read(word, &at.entry(index)))
            .collect::<Result<_, _>>()?,
        other => return Err(wrong_type(other, at, COMMAND)),
    };
    match words.first() {
        Some(program) if !program.is_empty() => Ok(words),
        _ => Err(ExperimentError::Missing { at: at.clone(), expected: COMMAND.to_owned() }),
    }
}

fn environment(value: &Value, at: &crate::Location) -> Result<Vec<(String, String)>, ExperimentError> {
    let variable = |(name, value): (&String, &Value)| {
        let here = crate::Location { key: format!("{}.{name}", at.key), ..at.clone() };
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(here.refuse(format!("expected the name of a variable, found `{name}`")));
        }
        let value = match value {
            Value::String(text) => text.clone(),
            Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => {
                shown(value).trim_matches('`').to_owned()
            }
            other => return Err(wrong_type(other, &here, "text, a number, `true` or `false`")),
        };
        Ok((name.clone(), value))
    };
    as_table(value, at)?.iter().map(variable).collect()
}

#[cfg(test)]
mod tests {
    use super::{ListeningPort, MAX_PROGRAMS};
    use crate::Experiment;

    #[test]
    fn a_port_is_of_tcp_unless_it_says_udp() {
        for (text, number, udp, shown) in [
            ("8000", 8000, false, "8000"),
            ("8000/tcp", 8000, false, "8000"),
            ("4433/udp", 4433, true, "4433/udp"),
        ] {
            let port: ListeningPort = text.parse().expect("a port");
            assert_eq!((port.number.get(), port.udp, port.to_string()), (number, udp, shown.to_owned()));
        }
        for text in ["0", "65536", "8000/sctp", "/udp", "-1", "http", "80/udp/tcp", ""] {
            let error = text.parse::<ListeningPort>().expect_err(text).to_string();
            assert!(error.contains("1 to 65535") && error.contains(&format!("found `{text}`")), "{error}");
        }
    }

    #[test]
    fn more_programs_than_may_be_are_refused() {
        let read = |programs: usize| {
            let text = format!(
                "title = \"t\"\npath = \"geo\"\n{}",
                "[[program]]\ncommand = [\"true\"]\n".repeat(programs)
            );
            Experiment::parse(&text, "t", &[])
        };
        let read_all = read(MAX_PROGRAMS).expect("so many may be");
        assert_eq!(read_all.point(0).scenario.programs.len(), MAX_PROGRAMS);
        let error = read(MAX_PROGRAMS + 1).expect_err("too many").to_string();
        assert!(error.contains("expected at most 100 programs, found 101"), "{error}");
    }
}
