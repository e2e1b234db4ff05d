//! Summary of a report in a few lines.

use crate::tables::comparison::{ENGINES, participle};
use crate::tables::numbers::Scale;
use crate::tables::{ComparisonRow, ComparisonTable};
use crate::terminal::capitalised;
use farpath_run::{Engine, Outcome, PointSummary, Statistic};

/// How the transfers ended, how long they took or how late they were, and how far the engines agree.
pub(super) fn lines(comparison: &ComparisonTable) -> Vec<String> {
    let mut lines = Vec::new();
    let engines: Vec<Engine> =
        ENGINES.into_iter().filter(|&engine| summaries(comparison, engine).next().is_some()).collect();
    for &engine in engines.iter().filter(|&&engine| engine != Engine::Predict || engines.len() == 1) {
        lines.push(ended(comparison, engine));
    }
    lines.extend(engines.iter().filter_map(|&engine| values(comparison, engine)));
    lines.extend(engines.last().and_then(|&engine| together(comparison, engine)));
    for pair in engines.windows(2) {
        lines.extend(difference(comparison, pair[0], pair[1]));
    }
    lines.extend(engines.last().and_then(|&engine| from_published(comparison, engine)));
    lines
}

fn summaries(
    comparison: &ComparisonTable,
    engine: Engine,
) -> impl Iterator<Item = (&ComparisonRow, &PointSummary)> {
    comparison.rows.iter().flat_map(move |row| {
        row.summaries
            .iter()
            .filter(move |summary| summary.engine == engine)
            .map(move |summary| (row, summary))
    })
}

/// `All 100 simulated transfers completed.`, or how many ended how.
fn ended(comparison: &ComparisonTable, engine: Engine) -> String {
    let who = participle(engine);
    let (mut all, mut counts) = (0, std::collections::BTreeMap::<Outcome, u64>::new());
    for (_, summary) in summaries(comparison, engine) {
        for (outcome, flows) in &summary.outcomes {
            all += flows;
            *counts.entry(*outcome).or_default() += flows;
        }
    }
    let completed = counts.get(&Outcome::Completed).copied().unwrap_or(0);
    let ways: Vec<String> = counts
        .iter()
        .filter(|(outcome, _)| **outcome != Outcome::Completed)
        .map(|(outcome, flows)| format!("{flows} {}", in_words(*outcome, engine)))
        .collect();
    match (completed, all) {
        (1, 1) => format!("The {who} transfer completed."),
        (0, 1) => format!("The {who} transfer did not complete: {}.", ways.concat().trim_start_matches("1 ")),
        (n, all) if n == all => format!("All {all} {who} transfers completed."),
        (n, all) => format!("Of {all} {who} transfers {n} completed; {}.", ways.join(", ")),
    }
}

fn in_words(outcome: Outcome, engine: Engine) -> &'static str {
    match outcome {
        Outcome::Completed => "completed",
        Outcome::ConnectTimedOut => "without a connection in time",
        Outcome::Aborted => "given up after the connection was open",
        Outcome::Horizon => "not over at the horizon",
        Outcome::Void => "void, as the machine was not fast enough",
        Outcome::Stuck => "stuck, with the budget of the run used up",
        // Of programs: datagrams.
        Outcome::Unknown if engine == Engine::Emulate => "without a packet that says that they ended",
        Outcome::Unknown => "outside of what the models hold for",
    }
}

fn values(comparison: &ComparisonTable, engine: Engine) -> Option<String> {
    let by = comparison.compared();
    let known: Vec<(&ComparisonRow, &PointSummary, Statistic)> = summaries(comparison, engine)
        .filter_map(|(row, summary)| Some((row, summary, (by.statistic)(summary)?)))
        .collect();
    let scale = Scale::of_seconds(&known.iter().map(|(.., time)| time.mean).collect::<Vec<_>>());
    let text = |time: &Statistic| {
        let interval = time.ci95().map(|half| format!(" ± {}", scale.text(half))).unwrap_or_default();
        format!("{}{interval} {}", scale.text(time.mean), scale.unit)
    };
    let who = capitalised(participle(engine));
    match known.as_slice() {
        [] => None,
        [(_, summary, time)] => {
            let rate = summary.statistics.goodput_bit_per_s.map(|goodput| {
                let scale = Scale::of_bit_per_s(&[goodput.mean]);
                format!(", {} {} of goodput", scale.text(goodput.mean), scale.unit)
            });
            let of_flows = if summary.flows() > summary.runs { ", in the mean of a run's flows" } else { "" };
            Some(format!("{who}: {} {}{}{of_flows}.", by.name, text(time), rate.unwrap_or_default()))
        }
        many => {
            let by_time = |a: &&(_, _, Statistic), b: &&(_, _, Statistic)| a.2.mean.total_cmp(&b.2.mean);
            let (shortest, longest) = (many.iter().min_by(by_time)?, many.iter().max_by(by_time)?);
            Some(format!(
                "{who}: {} from {}{} to {}{}.",
                by.name,
                text(&shortest.2),
                place_in_sweep(comparison, shortest.0),
                text(&longest.2),
                place_in_sweep(comparison, longest.0)
            ))
        }
    }
}

/// What several flows had together, and how evenly; of a sweep its table of flows tells.
fn together(comparison: &ComparisonTable, engine: Engine) -> Option<String> {
    let mut all = summaries(comparison, engine);
    let (Some((_, only)), None) = (all.next(), all.next()) else { return None };
    let (goodput, jain) = (only.statistics.aggregate_goodput_bit_per_s?, only.statistics.jain_index?);
    let scale = Scale::of_bit_per_s(&[goodput.mean]);
    Some(format!(
        "All flows of a run together: {} {} of goodput; Jain's fairness index {:.2}.",
        scale.text(goodput.mean),
        scale.unit,
        jain.mean
    ))
}

/// Where in the sweep a row is.
fn place_in_sweep(comparison: &ComparisonTable, row: &ComparisonRow) -> String {
    let values = comparison.swept_keys.iter().zip(&row.swept).map(|(key, value)| format!("{key} {value}"));
    let values: Vec<String> = values.collect();
    if values.is_empty() { String::new() } else { format!(" ({})", values.join(", ")) }
}

/// How far one engine's values are from another's.
fn difference(comparison: &ComparisonTable, one: Engine, other: Engine) -> Option<String> {
    let statistic = comparison.compared().statistic;
    let value = |row: &ComparisonRow, engine| {
        row.summaries.iter().find(|summary| summary.engine == engine).and_then(statistic)
    };
    let pairs: Vec<(f64, Statistic)> = comparison
        .rows
        .iter()
        .filter_map(|row| Some((value(row, one)?.mean, value(row, other)?)))
        .filter(|(_, other)| other.mean > 0.0)
        .collect();
    let differences: Vec<f64> =
        pairs.iter().map(|(one, other)| (one - other.mean) / other.mean * 100.0).collect();
    let with_interval: Vec<bool> = pairs
        .iter()
        .filter_map(|(one, other)| Some((one - other.mean).abs() <= other.ci95().filter(|half| *half > 0.0)?))
        .collect();
    let within = match with_interval.iter().filter(|within| **within).count() {
        _ if with_interval.is_empty() => String::new(),
        n => format!(
            "; {n} of {} within the 95 % interval of what was {}",
            with_interval.len(),
            participle(other)
        ),
    };
    Some(format!(
        "{} differs from {} by {}{within}.",
        capitalised(participle(one)),
        participle(other),
        range(&differences)?
    ))
}

fn from_published(comparison: &ComparisonTable, engine: Engine) -> Option<String> {
    let by = comparison.compared();
    let differences: Vec<f64> = summaries(comparison, engine)
        .filter_map(|(row, summary)| {
            let published = (by.published)(&row.published).filter(|value| *value > 0.0)?;
            Some(((by.statistic)(summary)?.mean - published) / published * 100.0)
        })
        .collect();
    Some(format!("{} differs from published by {}.", capitalised(participle(engine)), range(&differences)?))
}

/// `+0.4 %`, or `-1.9 to +0.8 %`.
fn range(differences: &[f64]) -> Option<String> {
    let text = |value: f64| format!("{:+.1}", (value * 10.0).round() / 10.0 + 0.0);
    let lowest = text(differences.iter().copied().min_by(f64::total_cmp)?);
    let highest = text(differences.iter().copied().max_by(f64::total_cmp)?);
    Some(if lowest == highest { format!("{lowest} %") } else { format!("{lowest} to {highest} %") })
}
