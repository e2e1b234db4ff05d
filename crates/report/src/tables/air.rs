//! What the air of radios was used for.

use super::numbers::Scale;
use crate::table::{Column, Table};
use farpath_explain::Air;

/// Characters of a bar that stands for all of the time.
const WHOLE_BAR: f64 = 40.0;

/// A table with a bar for each use, of each channel.
pub(super) fn air_text(air: &[Air], width: Option<u16>) -> String {
    air.iter().map(|channel| channel_text(channel, width)).collect::<Vec<_>>().join("\n")
}

fn channel_text(air: &Air, width: Option<u16>) -> String {
    let total = air.total_s();
    if total <= 0.0 {
        return String::new();
    }
    let uses: Vec<&(&str, f64)> = air.uses.iter().filter(|(_, seconds)| *seconds > 0.0).collect();
    let scale = Scale::of_seconds(&uses.iter().map(|(_, seconds)| *seconds).collect::<Vec<_>>());
    let share = |seconds: f64| seconds / total;
    let bar = |seconds: f64| "█".repeat((share(seconds) * WHOLE_BAR).round() as usize);
    let way = air.direction.map(|direction| format!(", {direction}")).unwrap_or_default();
    let table = Table {
        title: format!("What the air of `{}` was used for (hop {}{way})", air.element, air.hop + 1),
        heads: vec![Column::left("use", uses.iter().map(|(what, _)| Some((*what).to_owned())).collect())],
        groups: vec![vec![
            Column::right(
                format!("time, {}", scale.unit),
                uses.iter().map(|(_, seconds)| Some(scale.text(*seconds))).collect(),
            ),
            Column::right(
                "share, %",
                uses.iter().map(|(_, seconds)| Some(format!("{:.1}", share(*seconds) * 100.0))).collect(),
            ),
            Column::left("", uses.iter().map(|(_, seconds)| Some(bar(*seconds))).collect()),
        ]],
        ..Table::default()
    };
    table.to_text(width)
}
