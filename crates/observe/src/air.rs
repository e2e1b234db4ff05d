//! What a run says of its radios.

use farpath_path::{AirUse, ChannelTime, Direction, DropCause, ElementCounters};
use farpath_run::{AirRow, Run, StationRow};

/// What the air of radios was used for, and what the stations did that share it with others.
pub fn record(run: &mut Run, channels: &[ChannelTime]) {
    run.air = rows(channels);
    run.stations = stations(channels);
}

/// A row for each use of each channel; of others where there are some.
fn rows(channels: &[ChannelTime]) -> Vec<AirRow> {
    let row = |channel: &ChannelTime, what: AirUse| AirRow {
        element: channel.name.clone(),
        hop: channel.hop as u32,
        direction: channel.direction.map(Direction::name),
        what: what.name(),
        time: channel.time.time_in(what),
        energy_j: channel.energy.map(|energy| energy.joules(what)),
    };
    let uses = |channel: &ChannelTime| {
        let others = !channel.stations.is_empty();
        AirUse::ALL.into_iter().filter(move |&what| others || what != AirUse::Others)
    };
    channels.iter().flat_map(|channel| uses(channel).map(|what| row(channel, what))).collect()
}

fn stations(channels: &[ChannelTime]) -> Vec<StationRow> {
    let row = |channel: &ChannelTime, number: usize| {
        let counts = channel.stations[number];
        StationRow {
            element: channel.name.clone(),
            hop: channel.hop as u32,
            station: number as u32,
            others: counts.group,
            offered: counts.offered,
            delivered: counts.delivered,
            dropped: counts.dropped,
            delivered_bytes: counts.delivered_bytes,
            calls: counts.calls,
            unanswered: counts.unanswered,
            held_back: counts.held_back,
            frames: counts.frames,
            hit: counts.hit,
        }
    };
    let numbers = |channel: &ChannelTime| 0..channel.stations.len();
    channels.iter().flat_map(|channel| numbers(channel).map(|number| row(channel, number))).collect()
}

/// Says where radios gave up packets that they could not get rid of.
pub fn given_up(counters: &[ElementCounters]) -> Vec<String> {
    let stalled = |element: &&ElementCounters| element.dropped.count_of(DropCause::Stalled) > 0;
    let said = counters.iter().filter(stalled).map(|element| {
        format!(
            "path.{}: packets made no progress: {} {} ones were given up when nothing had left a station for its `give_up_after`",
            element.name,
            element.dropped.count_of(DropCause::Stalled),
            element.direction,
        )
    });
    said.collect()
}
