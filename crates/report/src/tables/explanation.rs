//! An explanation for people: what bounds the transfer, the traps, and what to change.

use super::air::air_text;
use super::budget::budget_text;
use super::numbers::Scale;
use crate::table::Column;
use crate::terminal;
use farpath_explain::{Bound, Explanation, Number, Observed, Remedy, Spread, Unit, Verdict};

/// The whole of it, at most `width` columns wide.
pub fn explanation_text(explanation: &Explanation, width: Option<u16>) -> String {
    let parts = [
        head(explanation, width),
        endings(explanation, width),
        budget_text(&explanation.budget, width),
        air_text(&explanation.observed.air, width),
        bounds(explanation, width),
        traps(explanation, width),
        remedies(explanation, width),
        caveats(explanation, width),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

/// A duration, rate or size in the unit that suits it alone.
fn quantity(number: &Number) -> String {
    let with = |scale: Scale| format!("{} {}", scale.text(number.value), scale.unit);
    match number.unit {
        Unit::Seconds => with(Scale::of_seconds(&[number.value])),
        Unit::Bytes => with(Scale::of_bytes(&[number.value])),
        Unit::BitPerS => with(Scale::of_bit_per_s(&[number.value])),
        Unit::Segments => format!("{:.1} segments", number.value),
        Unit::Share => percent(number.value),
        Unit::Count => format!("{:.1}", number.value),
    }
}

/// A percentage with the digits that tell it from zero: 0.0001 %, 1.5 %, 75 %.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let rounded = format!("{percent:.2}");
    if percent != 0.0 && rounded == "0.00" {
        return format!("{percent:.1e} %");
    }
    format!("{} %", rounded.trim_end_matches('0').trim_end_matches('.'))
}

fn seconds(value: f64) -> String {
    quantity(&Number { name: "", value, unit: Unit::Seconds })
}

fn rate(value: f64) -> String {
    quantity(&Number { name: "", value, unit: Unit::BitPerS })
}

fn size(bytes: u64) -> String {
    quantity(&Number { name: "", value: bytes as f64, unit: Unit::Bytes })
}

fn spread(value: Spread) -> String {
    let scale = Scale::of_seconds(&[value.mean]);
    let half = value.ci95.map(|half| format!(" ± {}", scale.text(half))).unwrap_or_default();
    format!("{}{half} {}", scale.text(value.mean), scale.unit)
}

/// What became of it, in a sentence.
fn observed(observed: &Observed) -> String {
    let pace = if observed.rate_bit_per_s == 0.0 {
        "nothing was read".to_owned()
    } else {
        rate(observed.rate_bit_per_s)
    };
    let runs = match observed.runs {
        1 => "1 run".to_owned(),
        runs => format!("{runs} runs"),
    };
    match observed.transfer_time_s {
        Some(time) if observed.completed == 1.0 => {
            let late = observed
                .lateness_s
                .map_or(String::new(), |late| format!(", late by {} in the mean", spread(late)));
            format!("in {}, {pace}{late} (simulated, {runs})", spread(time))
        }
        _ => {
            let ended: Vec<String> =
                observed.outcomes.iter().map(|(outcome, flows)| format!("{outcome} {flows}")).collect();
            format!("ended as {} ({pace}; simulated, {runs})", ended.join(", "))
        }
    }
}

fn head(explanation: &Explanation, width: Option<u16>) -> String {
    let mut lines = Vec::new();
    if explanation.points > 1 {
        let swept: Vec<String> =
            explanation.swept.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        lines.push(format!(
            "Point {} of {} (from 0; another one: --point): {}",
            explanation.point,
            explanation.points,
            swept.join(", ")
        ));
    }
    let whole = explanation.simulated_size.map(|_| format!(" of {}", size(explanation.size)));
    let bytes = explanation.simulated_size.unwrap_or(explanation.size);
    lines.push(format!(
        "As it is: {}{} {}",
        size(bytes),
        whole.unwrap_or_default(),
        observed(&explanation.observed)
    ));
    lines.push(match explanation.predicted_s {
        Some(time) => format!("Predicted: {}", seconds(time)),
        None => "Predicted: it does not complete in time".to_owned(),
    });
    let numbers: Vec<String> =
        explanation.numbers.iter().map(|number| format!("{} {}", number.name, quantity(number))).collect();
    lines.push(format!("Path: {}", numbers.join("; ")));
    format!("{}\n\n{}", explanation.title, paragraphs(&lines, width))
}

/// Lines, wrapped.
fn paragraphs(lines: &[String], width: Option<u16>) -> String {
    let mut table = terminal::bare(width);
    table.load_style(comfy_table::TableStyle::new());
    for line in lines {
        table.add_row([line]);
    }
    terminal::finish(&mut table)
}

fn endings(explanation: &Explanation, width: Option<u16>) -> String {
    if explanation.endings.is_empty() {
        return String::new();
    }
    let lines: Vec<String> = explanation
        .endings
        .iter()
        .map(|ending| {
            format!(
                "{} ({} of the flows): {}. Needed: {}.",
                ending.outcome, ending.flows, ending.because, ending.needed
            )
        })
        .collect();
    format!("Why it does not complete\n\n{}", paragraphs(&lines, width))
}

/// A bound that costs less of the time needs no words.
const TELLING: f64 = 0.005;

fn bounds(explanation: &Explanation, width: Option<u16>) -> String {
    let bounds = &explanation.bounds;
    let judged = judged(&explanation.observed);
    // What costs next to nothing and would not hold the rate down by itself either needs no words here.
    let time = time_of(Some(&explanation.observed));
    let tells = |bound: &&Bound| {
        let holds = time_of(bound.alone.as_ref()).zip(time).is_some_and(|(alone, time)| alone > time / 2.0);
        let certain = bound.lost_s.is_none_or(|lost| lost.is_certain());
        holds || bound.lost_share.is_none_or(|share| certain && share.abs() >= TELLING)
    };
    let (told, rest): (Vec<&Bound>, Vec<&Bound>) = bounds.iter().partition(tells);
    let number = |bound: &Bound| told.iter().position(|told| told.id == bound.id).map(|place| place + 1);
    let heads = [Column::left(
        "bound",
        bounds
            .iter()
            .map(|bound| {
                let mark = number(bound).map(|number| format!(" [{number}]")).unwrap_or_default();
                Some(format!("{}{mark}", bound.id.name()))
            })
            .collect(),
    )];
    let lost: Vec<Option<f64>> = bounds.iter().map(|bound| bound.lost_s.map(|lost| lost.mean)).collect();
    let without: Vec<Option<f64>> = bounds.iter().map(|bound| time_of(bound.without.as_ref())).collect();
    let alone: Vec<Option<f64>> = bounds.iter().map(|bound| time_of(bound.alone.as_ref())).collect();
    let all = [&lost, &without, &alone].into_iter().flatten().flatten();
    let scale = Scale::of_seconds(&all.map(|time| time.abs()).collect::<Vec<_>>());
    let unit = scale.unit;
    let times = |values: Vec<Option<f64>>| {
        values.into_iter().map(|value| value.map(|value| scale.text(value))).collect::<Vec<_>>()
    };
    let allows: Vec<Option<f64>> = bounds.iter().map(|bound| bound.allows_bit_per_s).collect();
    let rates = Scale::of_bit_per_s(&allows.iter().flatten().copied().collect::<Vec<_>>());
    let groups = [
        vec![
            Column::right(format!("{judged}\nlost, {unit}"), times(lost)),
            Column::right(
                "± 95 %",
                times(bounds.iter().map(|bound| bound.lost_s.and_then(|lost| lost.ci95)).collect()),
            ),
            Column::right(
                format!("of the\n{judged}, %"),
                bounds
                    .iter()
                    .map(|bound| bound.lost_share.map(|share| format!("{:.1}", share * 100.0 + 0.0)))
                    .collect(),
            ),
            Column::right(
                format!("{judged} without\nit, {unit}"),
                filled(times(without), bounds.iter().map(|bound| bound.without.as_ref())),
            ),
        ],
        vec![
            Column::right(
                format!("{judged} by it\nalone, {unit}"),
                filled(times(alone), bounds.iter().map(|bound| bound.alone.as_ref())),
            ),
            Column::right(
                format!("formula\nallows, {}", rates.unit),
                allows.into_iter().map(|allows| allows.map(|allows| rates.text(allows))).collect(),
            ),
        ],
    ]
    .map(|group| group.into_iter().filter(Column::is_known).collect());
    let notes: Vec<String> =
        told.iter().map(|bound| format!("{}: {}. {}.", bound.id.name(), bound.why, bound.source)).collect();
    let names: Vec<&str> = rest.iter().map(|bound| bound.id.name()).collect();
    let others = if names.is_empty() {
        String::new()
    } else {
        let share = TELLING * 100.0;
        paragraphs(
            &[format!("Below {share} % of the {judged}, and not in the way: {}.", names.join(", "))],
            width,
        )
    };
    format!(
        "What bounds it, the costliest first\n\n{}\n{}{others}",
        terminal::tables(&heads, &groups, width),
        terminal::notes(&notes, width)
    )
}

/// What it is judged by is called.
fn judged(observed: &Observed) -> &'static str {
    if observed.lateness_s.is_some() { "lateness" } else { "time" }
}

fn time_of(observed: Option<&Observed>) -> Option<f64> {
    let observed = observed.filter(|observed| observed.completed == 1.0)?;
    observed.judged_s().map(|time| time.mean)
}

/// How it ended in place of a time that is not known.
fn filled<'a>(
    times: Vec<Option<String>>,
    observed: impl Iterator<Item = Option<&'a Observed>>,
) -> Vec<Option<String>> {
    times.into_iter().zip(observed).map(|(time, observed)| time.or_else(|| Some(ended(observed?)))).collect()
}

fn ended(observed: &Observed) -> String {
    let most = observed.outcomes.iter().max_by_key(|(_, flows)| **flows);
    let all: u64 = observed.outcomes.values().sum();
    most.map_or_else(String::new, |(outcome, flows)| {
        if *flows == all { (*outcome).to_owned() } else { format!("{outcome} {flows}/{all}") }
    })
}

fn traps(explanation: &Explanation, width: Option<u16>) -> String {
    if explanation.traps.is_empty() {
        return "No known pitfalls found\n".to_owned();
    }
    let lines: Vec<String> = explanation
        .traps
        .iter()
        .map(|trap| {
            let out =
                if trap.set.is_empty() { String::new() } else { format!(" Fix: {}.", trap.set.join(", ")) };
            format!("{} ({}): {}. {}.{out}", trap.id, trap.key, trap.text, trap.source)
        })
        .collect();
    format!("Pitfalls\n\n{}", paragraphs(&lines, width))
}

fn remedies(explanation: &Explanation, width: Option<u16>) -> String {
    let rows: Vec<&Remedy> = explanation.all.iter().chain(&explanation.remedies).collect();
    if rows.is_empty() {
        return "What to change: nothing that is known here applies\n".to_owned();
    }
    let heads = [Column::left(
        "change",
        (1..).zip(&rows).map(|(i, remedy): (u32, &&Remedy)| Some(format!("{} [{i}]", remedy.id))).collect(),
    )];
    let judged = judged(&explanation.observed);
    let is_stream = explanation.observed.lateness_s.is_some();
    let predicted: Vec<Option<f64>> = rows.iter().map(|remedy| remedy.predicted_s).collect();
    let simulated: Vec<Option<f64>> = rows.iter().map(|remedy| time_of(Some(&remedy.simulated))).collect();
    let scale = Scale::of_seconds(&predicted.iter().chain(&simulated).flatten().copied().collect::<Vec<_>>());
    let unit = scale.unit;
    let times = |values: Vec<Option<f64>>| {
        values.into_iter().map(|value| value.map(|value| scale.text(value))).collect::<Vec<_>>()
    };
    let factor = |of: fn(&Remedy) -> Option<f64>| {
        rows.iter().map(|remedy| of(remedy).map(|factor| format!("{factor:.2}"))).collect::<Vec<_>>()
    };
    let intervals = rows
        .iter()
        .map(|remedy| time_of(Some(&remedy.simulated)).and(remedy.simulated.judged_s()?.ci95))
        .collect();
    let groups = [
        vec![
            Column::right(format!("predicted\ntime, {unit}"), times(predicted)),
            Column::right("times\nas fast", factor(|remedy| remedy.predicted_speed_up)),
        ],
        vec![
            Column::right(
                format!("simulated\n{judged}, {unit}"),
                filled(times(simulated), rows.iter().map(|remedy| Some(&remedy.simulated))),
            ),
            Column::right("± 95 %", times(intervals)),
            Column::right(
                if is_stream { "times\nless late" } else { "times\nas fast" },
                factor(|remedy| remedy.simulated_speed_up),
            ),
            Column::left("verdict", rows.iter().map(|remedy| Some(verdict(remedy).to_owned())).collect()),
        ],
    ]
    .map(|group| group.into_iter().filter(Column::is_known).collect());
    let notes: Vec<String> = rows.iter().map(|remedy| note(remedy)).collect();
    format!(
        "What to change, and what it gains (`--apply NAME` writes the changed experiment)\n\n{}\n{}",
        terminal::tables(&heads, &groups, width),
        terminal::notes(&notes, width)
    )
}

fn verdict(remedy: &Remedy) -> &'static str {
    match (remedy.verdict, &remedy.disagreement) {
        (Verdict::Helps, None) => "helps",
        (Verdict::Helps, Some(_)) => "helps; see note",
        (Verdict::NoEffect, None) => "no effect",
        (Verdict::NoEffect, Some(_)) => "no effect; see note",
        (Verdict::Hurts, None) => "hurts",
        (Verdict::Hurts, Some(_)) => "hurts; see note",
    }
}

fn note(remedy: &Remedy) -> String {
    let set = remedy.set.iter().map(|change| format!("`{change}`")).collect::<Vec<_>>().join(", ");
    let why = match remedy.verdict {
        Verdict::Helps => format!("{}; ", remedy.why),
        Verdict::NoEffect | Verdict::Hurts => String::new(),
    };
    let mut text = format!("{}: {why}{set}.", remedy.title);
    if let Some(disagreement) = &remedy.disagreement {
        let mut letters = disagreement.chars();
        let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
        text += &format!(" {first}{}.", letters.as_str());
    }
    text
}

fn caveats(explanation: &Explanation, width: Option<u16>) -> String {
    if explanation.caveats.is_empty() {
        return String::new();
    }
    let lines: Vec<String> = explanation.caveats.iter().map(|caveat| format!("Note: {caveat}.")).collect();
    paragraphs(&lines, width)
}
