//! The delay budget of an explanation: where a round trip goes, and which timers allow for it.

use super::numbers::Scale;
use crate::table::Column;
use crate::terminal;
use farpath_explain::{Budget, Delay, Part, TimerFit, TimerVerdict};

/// Both tables, at most `width` columns wide.
pub(super) fn budget_text(budget: &Budget, width: Option<u16>) -> String {
    let mut text = format!("Delay budget: where a round trip goes\n\n{}", parts(budget, width));
    let [out, back] = budget.routers;
    if out.max(back) > 0 {
        text += &format!("Routers on the way: {out} out, {back} back.\n");
    }
    text + &format!("\nTimers against it\n\n{}", timers(&budget.timers, width))
}

/// A line of the first table: what it is, in the direction of the data, in that of the ACKs.
struct Line {
    what: String,
    data: Option<Delay>,
    acks: Option<Delay>,
}

fn parts(budget: &Budget, width: Option<u16>) -> String {
    let line = |what, data, acks| Line { what, data: Some(data), acks };
    let named =
        |part: &Part| line(format!("{} ({})", part.kind.name(), part.element), part.data, Some(part.acks));
    let mut lines: Vec<Line> = budget.parts.iter().map(named).collect();
    lines.push(line("= one way".to_owned(), budget.data, Some(budget.acks)));
    lines.push(line("= round trip".to_owned(), budget.round_trip, None));
    let delays: Vec<Delay> = lines.iter().flat_map(|line| [line.data, line.acks]).flatten().collect();
    let values: Vec<f64> = delays
        .iter()
        .flat_map(|delay| [Some(delay.idle_s), delay.expected_s, delay.full_s])
        .flatten()
        .collect();
    let scale = Scale::of_seconds(&values);
    let unit = scale.unit;
    let way = |name: &str, of: fn(&Line) -> Option<Delay>| {
        let cells = |value: fn(Delay) -> Option<f64>| {
            let cell = |line: &Line| of(line).and_then(value).map(|value| scale.text(value));
            lines.iter().map(cell).collect::<Vec<_>>()
        };
        vec![
            Column::right(format!("{name},\nidle, {unit}"), cells(|delay| Some(delay.idle_s))),
            Column::right("on\naverage", cells(|delay| delay.expected_s)),
            Column::right("queues\nfull", cells(|delay| delay.full_s)),
        ]
    };
    let heads = [Column::left("part", lines.iter().map(|line| Some(line.what.clone())).collect())];
    let groups = [way("data", |line| line.data), way("ACKs", |line| line.acks)];
    terminal::tables(&heads, &groups, width)
}

fn timers(timers: &[TimerFit], width: Option<u16>) -> String {
    let told = |timer: &&TimerFit| timer.verdict != TimerVerdict::Fits;
    let number = |timer: &TimerFit| timers.iter().filter(told).position(|other| other.id == timer.id);
    let name = |timer: &TimerFit| {
        let mark = number(timer).map(|number| format!(" [{}]", number + 1)).unwrap_or_default();
        Some(format!("{}{mark}", timer.id))
    };
    let heads = [
        Column::left("timer", timers.iter().map(name).collect()),
        Column::left("set by", timers.iter().map(|timer| Some(timer.key.clone())).collect()),
    ];
    let seconds = |of: fn(&TimerFit) -> Option<f64>, none: &str| {
        let cell = |timer: &TimerFit| Some(of(timer).map_or_else(|| none.to_owned(), short));
        timers.iter().map(cell).collect::<Vec<_>>()
    };
    let groups = [
        vec![Column::right("it is, s", seconds(|timer| timer.timer_s, "no end"))],
        vec![
            Column::right("answer,\nidle, s", seconds(|timer| Some(timer.idle_s), "")),
            Column::right("queues\nfull", seconds(|timer| timer.full_s, "no end")),
            Column::right("margin,\nidle, s", seconds(|timer| timer.margin_s, "no end")),
        ],
        vec![Column::left("", timers.iter().map(|timer| Some(timer.verdict.name().to_owned())).collect())],
    ];
    let notes: Vec<String> = timers
        .iter()
        .filter(told)
        .map(|timer| format!("{}: {}. {}.", timer.id, timer.why, timer.source))
        .collect();
    let notes =
        if notes.is_empty() { String::new() } else { format!("\n{}", terminal::notes(&notes, width)) };
    format!("{}{notes}", terminal::tables(&heads, &groups, width))
}

/// Milliseconds where they tell anything; four digits from a thousand seconds on.
fn short(seconds: f64) -> String {
    match seconds.abs() {
        size if size >= 1e6 => format!("{seconds:.3e}"),
        size if size >= 100.0 => format!("{seconds:.0}"),
        _ => format!("{seconds:.3}"),
    }
}
