//! Whose TCP stands at an end: Farpath's own, or somebody else's.

use crate::error::ExperimentError;
use crate::flows::{FlowSpec, Transport};
use crate::reader::{self, Reader, wrong_type};
use crate::scenario::Scenario;
use core::fmt;
use farpath_tcp::config::{self, Config, Parameter};
use farpath_units::{Bytes, Duration};
use toml::Value;

/// Flows that a scenario with somebody else's TCP may have: each end of each is a host of its own, and may be a process.
pub const MAX_FOREIGN_FLOWS: usize = 64;

/// The smallest segment of somebody else's TCP: with its headers it leaves room for a SYN with all the options that there are.
const LEAST_MSS: Bytes = Bytes(64);

/// The largest: with headers of 40 B it is what IPv4 carries.
const MOST_MSS: Bytes = Bytes(65_495);

/// The longest name of a program, in bytes.
const MAX_NAME: usize = 64;

/// Parameters of a stack that somebody else's TCP is told; what it makes of them is its own affair.
pub const TOLD: [&str; 4] = ["mss", "send.buffer", "receive.buffer", "congestion.control"];

/// Whose TCP it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Implementation {
    /// Farpath's, with the stack's parameters.
    #[default]
    Farpath,
    /// smoltcp, which is part of this program.
    Smoltcp,
    /// A program of this name in the user's folder of hosts.
    Program(String),
}

impl Implementation {
    /// Whether it is somebody else's.
    pub fn is_foreign(&self) -> bool {
        *self != Implementation::Farpath
    }
}

impl fmt::Display for Implementation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Implementation::Farpath => "farpath",
            Implementation::Smoltcp => "smoltcp",
            Implementation::Program(name) => name,
        })
    }
}

impl reader::Parameter for Implementation {
    const EXPECTED: &'static str = "`farpath`, `smoltcp`, or the name of a program in the folder of hosts, such as `lwip`: letters, digits, `-`, `_` and `.`";
    fn read(value: &Value, at: &crate::Location) -> Result<Implementation, ExperimentError> {
        match value.as_str() {
            Some("farpath") => Ok(Implementation::Farpath),
            Some("smoltcp") => Ok(Implementation::Smoltcp),
            Some(name) if is_host_name(name) => Ok(Implementation::Program(name.to_owned())),
            _ => Err(wrong_type(value, at, Self::EXPECTED)),
        }
    }
}

/// Whether this can be the name of a host: letters, digits, `-`, `_` and `.`, a letter or digit first. No path: an experiment starts
/// nothing but what the user has put into that folder.
pub fn is_host_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    name.len() <= MAX_NAME
        && name.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
        && name.bytes().all(plain)
}

/// Parameters that a table gives beside somebody else's TCP, and that it is not told.
pub(crate) fn untold(implementation: &Implementation, reader: &mut Reader<'_>) -> Vec<String> {
    if !implementation.is_foreign() {
        return Vec::new();
    }
    let mut says = |row: &Parameter| match row.section {
        "" => reader.value(row.name).is_some(),
        section => {
            reader.value(section).and_then(Value::as_table).is_some_and(|table| table.contains_key(row.name))
        }
    };
    config::parameters().filter(|row| !is_told(row) && says(row)).map(Parameter::key).collect()
}

/// Refuses these in a stack's file, which would say two things at once. What an experiment gives for an end may be of its stack, and is a
/// note of the results.
pub(crate) fn refuse_untold(
    implementation: &Implementation,
    reader: &mut Reader<'_>,
) -> Result<(), ExperimentError> {
    let Some(key) = untold(implementation, reader).into_iter().next() else { return Ok(()) };
    let told = TOLD.map(|key| format!("`{key}`")).join(", ");
    let reason = format!("`{implementation}` has rules of its own, and is told {told} alone");
    Err(reader.location_of(&key).refuse(reason))
}

/// Of the parameters of an end those that it is told: the rest is not in force where its TCP is somebody else's.
pub(crate) fn keep_told(implementation: &Implementation, config: &mut Config) {
    if !implementation.is_foreign() {
        return;
    }
    let whole = std::mem::take(config);
    for row in config::parameters().filter(is_told) {
        assert!(row.set(config, row.get(&whole)), "{}: it was a value before", row.key());
    }
}

fn is_told(row: &&'static Parameter) -> bool {
    TOLD.contains(&row.key().as_str())
}

/// Refuses what a scenario with somebody else's TCP cannot have.
pub(crate) fn check(scenario: &Scenario, reader: &Reader<'_>) -> Result<(), ExperimentError> {
    let Some((key, implementation)) = scenario.foreign_hosts().next() else { return Ok(()) };
    let refuse = |key: &str, expected: String| {
        Err(reader
            .location_of(key)
            .refuse(format!("expected {expected}, as `{implementation}` is a TCP of somebody else's")))
    };
    if scenario.transport != Transport::Tcp {
        return refuse(&key, "a transfer over TCP".to_owned());
    }
    if scenario.flows.len() > MAX_FOREIGN_FLOWS {
        return refuse("flow", format!("{MAX_FOREIGN_FLOWS} flows at most"));
    }
    for flow in &scenario.flows {
        if !is_plain(flow) {
            let plain = "a file that is written at once, without `request`, `message`, `window`, `write_size`, `think_time` or `access`";
            return refuse("transfer", plain.to_owned());
        }
        let (sender, receiver) = scenario.ends(flow);
        for (end, stack) in [("sender", sender), ("receiver", receiver)] {
            let at = |key: &str| format!("{end}.{key}");
            if stack.host.jitter != Duration::ZERO {
                return refuse(&at("host.jitter"), "0 s".to_owned());
            }
            if stack.config.explicit_rate.wanted.is_some() {
                return refuse(&at("explicit_rate.wanted"), "none".to_owned());
            }
            if !stack.config.handshake.syn {
                return refuse(&at("handshake.syn"), "true".to_owned());
            }
            if stack.config.receive.read_rate.is_some() {
                return refuse(&at("receive.read_rate"), "`unlimited`".to_owned());
            }
            if !(LEAST_MSS..=MOST_MSS).contains(&stack.config.mss) {
                return refuse(&at("mss"), format!("{LEAST_MSS} to {MOST_MSS}"));
            }
        }
    }
    Ok(())
}

fn is_plain(flow: &FlowSpec) -> bool {
    flow.stream.is_none()
        && flow.writing.is_plain()
        && flow.request == Bytes::ZERO
        && flow.access == Duration::ZERO
}

impl Scenario {
    /// Ends whose TCP is somebody else's, with the key that says it.
    pub fn foreign_hosts(&self) -> impl Iterator<Item = (String, &Implementation)> {
        let both = [("sender", &self.sender), ("receiver", &self.receiver)];
        let own = self.flows.iter().flat_map(|flow| {
            [("flow.sender", flow.sender.as_deref()), ("flow.receiver", flow.receiver.as_deref())]
                .into_iter()
                .filter_map(|(end, stack)| Some((end, stack?)))
        });
        let keyed = |(end, stack): (&str, _)| (format!("{end}.implementation"), stack);
        both.into_iter()
            .chain(own)
            .map(move |(end, stack)| keyed((end, &stack.implementation)))
            .filter(|(_, implementation)| implementation.is_foreign())
    }

    /// Whether `verb`, which knows Farpath's own TCP and kernels, has all that the ends are made of.
    ///
    /// # Errors
    /// An end is somebody else's.
    pub fn needs_no_foreign_host(&self, verb: &'static str) -> Result<(), ForeignHost> {
        match self.foreign_hosts().next() {
            Some((key, implementation)) => {
                Err(ForeignHost { key, implementation: implementation.clone(), verb })
            }
            None => Ok(()),
        }
    }
}

/// An end whose TCP is somebody else's, where that is not answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{key}: a TCP of somebody else's runs in virtual time: expected `farpath simulate`, found `{implementation}` under `{verb}`"
)]
pub struct ForeignHost {
    key: String,
    implementation: Implementation,
    verb: &'static str,
}

impl crate::Stack {
    /// Whether `verb`, which asks the stack's parameters, is told all by them.
    ///
    /// # Errors
    /// Its TCP is somebody else's.
    pub fn needs_no_foreign_host(&self, verb: &'static str) -> Result<(), ForeignHost> {
        match self.implementation.is_foreign() {
            true => Err(ForeignHost {
                key: "implementation".to_owned(),
                implementation: self.implementation.clone(),
                verb,
            }),
            false => Ok(()),
        }
    }

    /// What it is called where its packets are shown: somebody else's TCP by its own name.
    pub fn label(&self) -> String {
        match &self.implementation {
            Implementation::Farpath => self.name.clone(),
            foreign => foreign.to_string(),
        }
    }
}
