//! What flow routers have decided, one row for each of them and direction.

use super::numbers::Scale;
use crate::table::{Column, Table};
use farpath_run::{RouterRow, Run};

/// A table with a row per flow router and direction; `None` where none has seen a packet. Columns that say nothing of any of them
/// are left out.
pub fn routers_table(runs: &[Run]) -> Option<Table> {
    let rows: Vec<(&Run, &RouterRow)> =
        runs.iter().flat_map(|run| run.routers.iter().map(move |router| (run, router))).collect();
    if rows.is_empty() {
        return None;
    }
    let text = |header: &str, cell: fn(&Run, &RouterRow) -> Option<String>| {
        Column::right(header, rows.iter().map(|(run, router)| cell(run, router)).collect())
    };
    let number = |header: &str, scale: fn(&[f64]) -> Scale, value: fn(&RouterRow) -> f64| {
        let values: Vec<f64> = rows.iter().map(|(_, router)| value(router)).collect();
        let scale = scale(&values);
        let none = values.iter().all(|&value| value == 0.0);
        let cells = values.iter().map(|&value| (!none).then(|| scale.text(value))).collect();
        Column::right(header.replace("{unit}", scale.unit), cells)
    };
    let count = |header: &str, value: fn(&RouterRow) -> f64| number(header, Scale::of_counts, value);
    let mut heads = vec![
        text("point", |run, _| Some(run.point.to_string())),
        text("engine", |run, _| Some(run.engine.to_string())),
        text("seed", |run, _| run.seed.map(|seed| seed.to_string())),
    ];
    heads.retain(|column| column.cells.iter().any(|cell| *cell != column.cells[0]));
    heads.push(text("router", |_, router| Some(router.element.clone())));
    heads.push(text("direction", |_, router| Some(router.direction.to_owned())));
    let granted = vec![
        count("requests", |router| router.requests as f64),
        count("of these\nlowered", |router| router.lowered as f64),
        count("told to\nsink", |router| router.pushed as f64),
        count("guarantees\nadmitted", |router| router.admitted as f64),
        count("guarantees\nrefused", |router| router.refused as f64),
        count("flows\npreempted", |router| router.preempted as f64),
    ];
    let ended = vec![
        count("flows\nclosed", |router| router.closed as f64),
        count("flows\nexpired", |router| router.expired as f64),
        count("starts\nmissed", |router| router.missed as f64),
        count("not\nbelieved", |router| router.above_grant as f64),
        count("flows\nunknown", |router| router.unknown as f64),
        count("packets\npoliced", |router| router.policed as f64),
    ];
    let queue = vec![
        number("mean\nqueue, {unit}", Scale::of_bytes, |router| router.mean_backlog),
        number("its standard\ndeviation, {unit}", Scale::of_bytes, |router| router.backlog_deviation),
        number("longest\nqueue, {unit}", Scale::of_bytes, |router| router.max_backlog.0 as f64),
    ];
    let groups = [granted, ended, queue].map(|group| group.into_iter().filter(Column::is_known).collect());
    Some(Table { heads, groups: groups.into(), ..Table::default() })
}
