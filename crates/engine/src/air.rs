//! What a run says of its radios.

use farpath_path::{AirUse, ChannelTime, Direction, DropCause, ElementCounters};
use farpath_run::AirRow;

/// A row for each use of each channel.
pub(crate) fn rows(channels: &[ChannelTime]) -> Vec<AirRow> {
    let row = |channel: &ChannelTime, what: AirUse| AirRow {
        element: channel.name.clone(),
        hop: channel.hop as u32,
        direction: channel.direction.map(Direction::name),
        what: what.name(),
        time: channel.time.of(what),
        energy_j: channel.energy.map(|energy| energy.joules(what)),
    };
    channels.iter().flat_map(|channel| AirUse::ALL.map(|what| row(channel, what))).collect()
}

/// Says where radios gave up packets that they could not get rid of.
pub(crate) fn given_up(counters: &[ElementCounters]) -> Vec<String> {
    let stalled = |element: &&ElementCounters| element.dropped.of(DropCause::Stalled) > 0;
    let said = counters.iter().filter(stalled).map(|element| {
        format!(
            "path.{}: packets made no progress: {} {} ones were given up when nothing had left a station for its `give_up_after`",
            element.name,
            element.dropped.of(DropCause::Stalled),
            element.direction,
        )
    });
    said.collect()
}
