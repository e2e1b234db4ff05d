//! An explanation for people: what bounds the transfer, what to do, then the tables.

mod advice;

use super::air::air_text;
use super::budget::budget_text;
use super::numbers::Scale;
use crate::table::{Column, Table};
use crate::terminal;
use farpath_explain::{Bound, Explanation, Number, Observed, Place, Remedy, Spread, Unit, Verdict};

/// How much of an explanation is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExplanationView {
    /// The delay budget too, and the timers against it.
    pub budget: bool,
    /// Everything: the budget, every bound's reason, and remedies without effect.
    pub verbose: bool,
}

/// A line below a table.
enum Line {
    /// A paragraph.
    Text(String),
    /// What is typed in.
    Command(String),
}

impl From<String> for Line {
    fn from(text: String) -> Line {
        Line::Text(text)
    }
}

/// A part of it: a title, a table, and what stands below.
#[derive(Default)]
struct Section {
    title: String,
    table: Option<Table>,
    lines: Vec<Line>,
    /// Text with columns of its own.
    preformatted: String,
}

impl Section {
    fn lines(title: &str, lines: Vec<impl Into<Line>>) -> Option<Section> {
        let lines: Vec<Line> = lines.into_iter().map(Into::into).collect();
        (!lines.is_empty()).then(|| Section { title: title.to_owned(), lines, ..Section::default() })
    }

    fn to_text(&self, width: Option<u16>) -> String {
        let title = if self.title.is_empty() { String::new() } else { format!("{}\n\n", self.title) };
        let table = self.table.as_ref().map(|table| table.to_text(width)).unwrap_or_default();
        let lines = if self.lines.is_empty() { String::new() } else { paragraphs(&self.lines, width) };
        format!("{title}{table}{}{lines}", self.preformatted)
    }

    fn to_markdown(&self) -> String {
        let title = if self.title.is_empty() { String::new() } else { format!("### {}\n\n", self.title) };
        let mut parts: Vec<String> = Vec::new();
        parts.extend(self.table.as_ref().map(Table::to_markdown));
        if !self.preformatted.is_empty() {
            parts.push(format!("```text\n{}\n```\n", self.preformatted.trim_end()));
        }
        let mut code: Vec<&str> = Vec::new();
        let mut text = String::new();
        let close = |text: &mut String, code: &mut Vec<&str>| {
            if !code.is_empty() {
                *text += &format!("```sh\n{}\n```\n\n", code.join("\n"));
                code.clear();
            }
        };
        for line in &self.lines {
            match line {
                Line::Command(command) => code.push(command),
                Line::Text(line) => {
                    close(&mut text, &mut code);
                    text += &format!("{}\n\n", line.trim_start());
                }
            }
        }
        close(&mut text, &mut code);
        if !text.is_empty() {
            parts.push(text);
        }
        format!("{title}{}", parts.join("\n"))
    }
}

/// The whole of it, at most `width` columns wide.
pub fn explanation_text(explanation: &Explanation, width: Option<u16>, view: ExplanationView) -> String {
    let parts: Vec<String> =
        sections(explanation, width, view).iter().map(|section| section.to_text(width)).collect();
    parts.join("\n")
}

/// The same as Markdown, for a ticket.
pub fn explanation_markdown(explanation: &Explanation, view: ExplanationView) -> String {
    let parts: Vec<String> =
        sections(explanation, Some(100), view).iter().map(Section::to_markdown).collect();
    parts.join("\n").trim_end().to_owned() + "\n"
}

fn sections(explanation: &Explanation, width: Option<u16>, view: ExplanationView) -> Vec<Section> {
    let preformatted =
        |text: String| (!text.is_empty()).then(|| Section { preformatted: text, ..Section::default() });
    [
        Some(head(explanation)),
        endings(explanation),
        advice::what_to_do(explanation),
        groups(explanation),
        bounds(explanation, view),
        traps(explanation),
        remedies(explanation, view),
        advice::delay(explanation),
        advice::priced(explanation),
        advice::depends(explanation),
        preformatted(air_text(&explanation.observed.air, width)),
        if view.budget || view.verbose {
            preformatted(budget_text(&explanation.budget, width))
        } else {
            None
        },
        Section::lines("", explanation.caveats.iter().map(|caveat| format!("Note: {caveat}.")).collect()),
    ]
    .into_iter()
    .flatten()
    .collect()
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

fn head(explanation: &Explanation) -> Section {
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
    lines.push(advice::sentence(explanation));
    lines.extend(advice::as_measured(explanation));
    let mut as_it_is = match (explanation.simulated_size, explanation.whole_time_s) {
        (Some(part), Some(whole)) => format!(
            "As it is: {} in about {}, carried on from the first {}: {}",
            size(explanation.size),
            seconds(whole),
            size(part),
            observed(&explanation.observed)
        ),
        (Some(part), None) => format!(
            "As it is: {} of {} {}",
            size(part),
            size(explanation.size),
            observed(&explanation.observed)
        ),
        (None, _) => format!("As it is: {} {}", size(explanation.size), observed(&explanation.observed)),
    };
    if let Some(rtt) = explanation.observed.rtt_s {
        as_it_is += &format!(
            "; round trips under it {} (p50), {} (p95), {} (p99)",
            seconds(rtt.p50),
            seconds(rtt.p95),
            seconds(rtt.p99)
        );
    }
    lines.push(as_it_is);
    lines.push(match (explanation.predicted_s, &explanation.unpredicted) {
        (Some(time), _) => format!("Predicted: {}{}", seconds(time), advice::of_part(explanation)),
        (None, Some(why)) => format!("No prediction: {why}"),
        (None, None) => "Predicted: it does not complete in time".to_owned(),
    });
    let numbers: Vec<String> =
        explanation.numbers.iter().map(|number| format!("{} {}", number.name, quantity(number))).collect();
    lines.push(format!("Path: {}", numbers.join("; ")));
    let lines = lines.into_iter().map(Line::Text).collect();
    Section { title: explanation.title.clone(), lines, ..Section::default() }
}

/// A row for each group of flows.
fn groups(explanation: &Explanation) -> Option<Section> {
    let groups = &explanation.groups;
    if groups.is_empty() {
        return None;
    }
    let cells = |of: fn(&farpath_explain::Group) -> Option<String>| groups.iter().map(of).collect::<Vec<_>>();
    let heads = vec![
        Column::left("group", cells(|group| Some(group.number.to_string()))),
        Column::left("flows", cells(|group| Some(group.label.clone()))),
    ];
    let columns = vec![
        Column::right(
            "completed, %",
            cells(|group| Some(format!("{:.1}", group.observed.completed * 100.0))),
        ),
        Column::right(
            "time of one",
            cells(|group| group.observed.transfer_time_s.map(|time| seconds(time.mean))),
        ),
        Column::right("its rate", cells(|group| Some(rate(group.observed.rate_bit_per_s)))),
    ];
    let table = Table { heads, groups: vec![columns], ..Table::default() };
    Some(Section {
        title: "The flows, each group by itself".to_owned(),
        table: Some(table),
        lines: vec![format!("Explained is group {}; another one: --group.", groups[0].number).into()],
        ..Section::default()
    })
}

/// Lines, wrapped.
fn paragraphs(lines: &[Line], width: Option<u16>) -> String {
    let mut table = terminal::bare(width);
    table.load_style(comfy_table::TableStyle::new());
    for line in lines {
        table.add_row([match line {
            Line::Text(text) => text.clone(),
            Line::Command(command) => format!("    {command}"),
        }]);
    }
    terminal::finish(&mut table)
}

fn endings(explanation: &Explanation) -> Option<Section> {
    let lines = explanation.endings.iter().map(|ending| {
        format!(
            "{} ({} of the flows): {}. Needed: {}.",
            ending.outcome, ending.flows, ending.because, ending.needed
        )
    });
    Section::lines("Why it does not complete", lines.collect())
}

/// Times in one unit, or each in its own where they differ by more than a thousand.
fn times_in(values: &[&[Option<f64>]]) -> (String, impl Fn(f64) -> String + use<>) {
    let all: Vec<f64> = values.iter().copied().flatten().flatten().map(|time| time.abs()).collect();
    let some = || all.iter().copied().filter(|time| *time > 0.0);
    let (least, most) = (some().fold(f64::INFINITY, f64::min), some().fold(0.0, f64::max));
    let each = most > 1000.0 * least.max(most * 1e-6);
    let scale = Scale::of_seconds(&all);
    let unit = if each { String::new() } else { format!(", {}", scale.unit) };
    (unit, move |value: f64| if each && value != 0.0 { seconds(value) } else { scale.text(value) })
}

/// A bound that costs less of the time needs no words.
const TELLING: f64 = 0.005;

fn bounds(explanation: &Explanation, view: ExplanationView) -> Option<Section> {
    let bounds = &explanation.bounds;
    let judged = judged(&explanation.observed);
    // What costs next to nothing and would not hold the rate down by itself either needs no words here.
    let time = time_of(Some(&explanation.observed));
    let tells = |bound: &&Bound| {
        let holds = time_of(bound.alone.as_ref()).zip(time).is_some_and(|(alone, time)| alone > time / 2.0);
        let certain = bound.lost_s.is_none_or(|lost| lost.is_certain());
        view.verbose || holds || bound.lost_share.is_none_or(|share| certain && share.abs() >= TELLING)
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
    let scale = Scale::of_seconds(
        &[&lost, &without, &alone].into_iter().flatten().flatten().map(|time| time.abs()).collect::<Vec<_>>(),
    );
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
    let lines = if names.is_empty() {
        Vec::new()
    } else {
        let share = TELLING * 100.0;
        vec![Line::Text(format!(
            "Below {share} % of the {judged}, and not in the way: {}.",
            names.join(", ")
        ))]
    };
    let table = Table { heads: heads.to_vec(), groups: groups.to_vec(), notes, ..Table::default() };
    Some(Section {
        title: "What bounds it, the costliest first".to_owned(),
        table: Some(table),
        lines,
        ..Section::default()
    })
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

fn traps(explanation: &Explanation) -> Option<Section> {
    if explanation.traps.is_empty() {
        return Section::lines("", vec!["No known pitfalls found".to_owned()]);
    }
    let lines = explanation.traps.iter().map(|trap| {
        let out = if trap.set.is_empty() { String::new() } else { format!(" Fix: {}.", trap.set.join(", ")) };
        format!("{} ({}): {}. {}.{out}", trap.id, trap.key, trap.text, trap.source)
    });
    Section::lines("Pitfalls", lines.collect())
}

/// The remedies of each place together, the best of each first; those that change nothing in one line.
fn remedies(explanation: &Explanation, view: ExplanationView) -> Option<Section> {
    let is_told =
        |remedy: &&Remedy| view.verbose || remedy.verdict != Verdict::NoEffect || remedy.less_delay.is_some();
    let (told, silent): (Vec<&Remedy>, Vec<&Remedy>) = explanation.remedies.iter().partition(is_told);
    let rows: Vec<&Remedy> = explanation
        .combinations()
        .chain(
            Place::ALL
                .into_iter()
                .flat_map(|place| told.iter().copied().filter(move |remedy| remedy.place == place)),
        )
        .collect();
    let names: Vec<&str> = silent.iter().map(|remedy| remedy.id.as_str()).collect();
    let without = (!names.is_empty()).then(|| format!("Tried, and no effect: {}.", names.join(", ")));
    if rows.is_empty() {
        let lines: Vec<String> =
            core::iter::once("Nothing that is known here helps.".to_owned()).chain(without).collect();
        return Section::lines("What to change", lines);
    }
    let heads = vec![
        Column::left(
            "change",
            (1..)
                .zip(&rows)
                .map(|(i, remedy): (u32, &&Remedy)| Some(format!("{} [{i}]", remedy.id)))
                .collect(),
        ),
        Column::left("where", rows.iter().map(|remedy| Some(remedy.place.title().to_owned())).collect()),
    ];
    let judged = judged(&explanation.observed);
    let is_stream = explanation.observed.lateness_s.is_some();
    let predicted: Vec<Option<f64>> = rows.iter().map(|remedy| remedy.predicted_s).collect();
    let simulated: Vec<Option<f64>> = rows.iter().map(|remedy| time_of(Some(&remedy.simulated))).collect();
    let (unit, text) = times_in(&[&predicted, &simulated]);
    let times =
        |values: Vec<Option<f64>>| values.into_iter().map(|value| value.map(&text)).collect::<Vec<_>>();
    let factor = |of: fn(&Remedy) -> Option<f64>| {
        rows.iter().map(|remedy| of(remedy).map(|factor| format!("{factor:.2}"))).collect::<Vec<_>>()
    };
    let intervals = rows
        .iter()
        .map(|remedy| time_of(Some(&remedy.simulated)).and(remedy.simulated.judged_s()?.ci95))
        .collect();
    let groups = vec![
        vec![
            Column::right(format!("predicted\ntime{unit}"), times(predicted)),
            Column::right("times\nas fast", factor(|remedy| remedy.predicted_speed_up)),
        ],
        vec![
            Column::right(
                format!("simulated\n{judged}{unit}"),
                filled(times(simulated), rows.iter().map(|remedy| Some(&remedy.simulated))),
            ),
            Column::right("± 95 %", times(intervals)),
            Column::right(
                if is_stream { "times\nless late" } else { "times\nas fast" },
                factor(|remedy| remedy.simulated_speed_up),
            ),
            Column::left("verdict", rows.iter().map(|remedy| Some(verdict(remedy).to_owned())).collect()),
        ],
    ];
    let groups = groups
        .into_iter()
        .map(|group: Vec<Column>| group.into_iter().filter(Column::is_known).collect())
        .collect();
    let notes: Vec<String> = rows.iter().map(|remedy| note(remedy)).collect();
    let table = Table { heads, groups, notes, ..Table::default() };
    Some(Section {
        title: "What to change, and what it gains (`--apply NAME` writes the changed experiment)".to_owned(),
        table: Some(table),
        lines: without.into_iter().map(Line::Text).collect(),
        ..Section::default()
    })
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
    if let Some(risk) = &remedy.risk {
        text += &format!(" Risk: {risk}.");
    }
    if let Some(disagreement) = &remedy.disagreement {
        let mut letters = disagreement.chars();
        let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
        text += &format!(" {first}{}.", letters.as_str());
    }
    text
}
