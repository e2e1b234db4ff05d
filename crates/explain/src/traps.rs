//! Traps: settings that each look sound and do not fit the path or each other. Each can be told without running anything.

mod contacts;
mod handshake;
mod queue;
mod sequence;
mod timers;
mod windows;

use crate::path_summary::{PathSummary, rounded_up};
use farpath_elements::routers;
use farpath_experiment::{Scenario, warnings};
use farpath_path::Direction;
use farpath_units::Duration;
use serde::Serialize;

pub(crate) use contacts::{Outage, outage};
pub(crate) use queue::{managed_queue_of, mark_of, queue_of};
pub(crate) use windows::{receive_buffer, scale};

/// A trap that a scenario meets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Trap {
    /// Which, in one word.
    pub id: &'static str,
    /// The key that it is about.
    pub key: String,
    /// What happens, with the numbers.
    pub text: String,
    /// Where the rule comes from.
    pub source: &'static str,
    /// Changes that lead out of it, as `--set` takes them; none where there is no single one.
    pub set: Vec<String>,
}

impl Trap {
    fn new(id: &'static str, key: impl Into<String>, text: String, source: &'static str) -> Trap {
        Trap { id, key: key.into(), text, source, set: Vec::new() }
    }

    fn set(mut self, changes: impl IntoIterator<Item = String>) -> Trap {
        self.set.extend(changes);
        self
    }
}

/// The traps that `scenario` meets: those that every run warns of, and more.
pub fn traps(scenario: &Scenario) -> Vec<Trap> {
    traps_of_summary(&PathSummary::new(scenario))
}

pub(crate) fn traps_of_summary(summary: &PathSummary<'_>) -> Vec<Trap> {
    // Their definitions are those of the warnings; what is added is where they come from and what to change.
    let mut traps: Vec<Trap> = warnings(summary.scenario)
        .into_iter()
        .map(|warning| {
            let (source, set) = match warning.id {
                "rto-floor" => timers::floor(summary),
                "rto-max" => timers::ceiling(summary),
                "window-scaling" => windows::scaling(),
                "window-below-segment" => windows::one_segment(summary),
                "ttl" => ("RFC 791 section 3.2; RFC 1812 section 5.3.1", enough_ttl(summary)),
                "window-field" => ("RFC 7323 section 2.3", Vec::new()),
                _ => ("docs/experiment-files.md", Vec::new()),
            };
            Trap::new(warning.id, warning.key, warning.text, source).set(set)
        })
        .collect();
    traps.extend(timers::initial(summary));
    traps.extend(timers::data_retries(summary));
    traps.extend(handshake::syn_budget(summary));
    traps.extend(handshake::synack_budget(summary));
    traps.extend(handshake::syn_loss(summary));
    traps.extend(handshake::synack_loss(summary));
    traps.extend(windows::below_ack(summary));
    traps.extend(windows::below_fast_retransmit(summary));
    traps.extend(windows::send_buffer(summary));
    traps.extend(queue::below_bdp(summary));
    traps.extend(queue::ack_link(summary));
    traps.extend(contacts::gaps_of(summary));
    traps.extend(sequence::wrap(summary));
    traps
}

/// The largest TTL at both ends, where that is enough.
fn enough_ttl(summary: &PathSummary<'_>) -> Vec<String> {
    let most = Direction::BOTH.map(|way| routers(&summary.scenario.path, way)).into_iter().max();
    let enough = most.is_some_and(|most| most < u32::from(u8::MAX));
    let ends = ["sender", "receiver"].iter().filter(|_| enough);
    ends.map(|end| format!("{end}.send.ttl={}", u8::MAX)).collect()
}

/// Changes that give both ends timers for a round trip of `rtt`: the first timeout one and a half, the longest at least
/// eight, and what the end already has, its floor among it.
pub(crate) fn fit_timers(summary: &PathSummary<'_>, rtt: Duration, raise_max: bool) -> Vec<String> {
    let initial = rounded_up(rtt + rtt / 2);
    let mut changes = Vec::new();
    for (end, config) in [("sender", summary.sender()), ("receiver", summary.receiver())] {
        let max = rounded_up(rtt * 8).max(config.rto.min);
        if raise_max && config.rto.max < max {
            changes.push(format!("{end}.rto.max={max}"));
        }
        changes.push(format!("{end}.rto.initial={initial}"));
    }
    changes
}
