//! `[host]`: the scheduling delay of a host.

use crate::error::ExperimentError;
use crate::reader::Reader;
use farpath_units::Duration;
use toml::{Table, Value};

/// The largest mean of a host's jitter: a host that takes longer has other troubles, and its draws reach 1000 times the mean.
const MAX_JITTER: Duration = Duration::from_secs(1);

/// What is chance at a simulated host, beside the chance of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HostOptions {
    /// Mean of the time, heavy-tailed, from a packet's arrival until the host handles it. In a scenario it is the
    /// one that is in force; in a stack alone, what the stack has where several seeds are run.
    pub jitter: Duration,
    /// Whether the experiment gives it for this end, in place of the stack.
    given: bool,
}

impl HostOptions {
    /// Puts what a stack's file says in place of what its base has.
    pub(crate) fn read_stack(&mut self, reader: &mut Reader<'_>) -> Result<(), ExperimentError> {
        self.jitter = reader.section("host", read_jitter)?.unwrap_or(self.jitter);
        Ok(())
    }

    /// Puts what the experiment says of this end in place of what the stack has.
    pub(crate) fn override_by(&mut self, reader: &mut Reader<'_>) -> Result<(), ExperimentError> {
        if let Some(jitter) = reader.section("host", read_jitter)? {
            *self = HostOptions { jitter, given: true };
        }
        Ok(())
    }

    /// Makes it the one in force: what the end is given, else what `both` ends are, else the stack's where `several` seeds are
    /// run. A single run has none by itself, and repeats what is known of its point.
    pub(crate) fn settle(&mut self, both: Option<Duration>, several: bool) {
        if !self.given {
            let of_stack = if several { self.jitter } else { Duration::ZERO };
            *self = HostOptions { jitter: both.unwrap_or(of_stack), given: true };
        }
    }

    /// As a file says it; empty where there is none.
    pub(crate) fn to_table(self) -> Table {
        let jitter =
            (!self.jitter.is_zero()).then(|| ("jitter".to_owned(), Value::from(self.jitter.to_string())));
        jitter.into_iter().collect()
    }
}

/// Reads what `[host]` says, where it says something.
pub(crate) fn read_jitter(host: &mut Reader<'_>) -> Result<Option<Duration>, ExperimentError> {
    let jitter = host.optional("jitter")?;
    if jitter.is_some_and(|jitter| jitter > MAX_JITTER) {
        return Err(host.location_of("jitter").refuse("expected a mean of 1 s at most"));
    }
    Ok(jitter)
}
