//! The verdict in a sentence, what to do, and what the answer depends on.

use super::{Line, Section, judged, percent, seconds, size, time_of};
use crate::table::{Column, Table};
use farpath_explain::{BoundId, Explanation, HostCommands, Place, Remedy, Sensitivity, Setting};

/// What bounds it, in one sentence.
pub(super) fn sentence(explanation: &Explanation) -> String {
    let observed = &explanation.observed;
    if observed.completed < 1.0 {
        let all: u64 = observed.outcomes.values().sum();
        let done = observed.outcomes.get("completed").copied().unwrap_or(0);
        let more = match explanation.endings.first() {
            Some(ending) => format!(": {}", ending.because),
            None => String::new(),
        };
        return format!("{done} of {all} transfers complete{more}.");
    }
    let Some(bound) = explanation.bounds.first() else {
        return "Nothing that is known here bounds it.".to_owned();
    };
    let judged = judged(observed);
    let (Some(now), Some(share)) = (time_of(Some(observed)), bound.lost_share) else {
        return format!("{}.", plain(bound.id));
    };
    let percent = format!("{:.0} %", share * 100.0);
    let part = of_part(explanation);
    if share < SMALL {
        return format!(
            "Nothing stands out: no single bound costs more than {:.0} % of the {judged}.",
            SMALL * 100.0
        );
    }
    match time_of(bound.without.as_ref()) {
        Some(without) if bound.id == BoundId::Link => format!(
            "{}: with a link without limit it would take {} in place of {}{part} ({percent} of the {judged}).",
            plain(bound.id),
            seconds(without),
            seconds(now)
        ),
        Some(without) => format!(
            "{}: that costs {percent} of the {judged}; without it {} in place of {}{part}.",
            plain(bound.id),
            seconds(without),
            seconds(now)
        ),
        None => format!("{}: that is {percent} of the {judged}.", plain(bound.id)),
    }
}

/// Of how much of a file times are, where that is not all of it.
pub(super) fn of_part(explanation: &Explanation) -> String {
    explanation.simulated_size.map_or(String::new(), |part| format!(" (the first {})", size(part)))
}

/// Between which times it lies, as well as the path was measured; nothing where it was not.
pub(super) fn as_measured(explanation: &Explanation) -> Option<String> {
    let now = time_of(Some(&explanation.observed))?;
    let measured = || explanation.sensitivity.iter().filter(|input| input.measured);
    let first = measured()
        .max_by(|a, b| a.span.unwrap_or(f64::INFINITY).total_cmp(&b.span.unwrap_or(f64::INFINITY)))?;
    if measured().any(|input| input.less_s.is_none() || input.more_s.is_none()) {
        return Some(format!(
            "As well as the path is known, not all may complete: the {} decides that.",
            first.input
        ));
    }
    let times = || measured().flat_map(|input| [input.less_s, input.more_s]).flatten().chain([now]);
    let (least, most) = (times().fold(now, f64::min), times().fold(now, f64::max));
    Some(format!(
        "As well as the path is known, it takes between {} and {}: the {} counts most (each input alone; the table below).",
        seconds(least),
        seconds(most),
        first.input
    ))
}

/// A bound that costs less is not what bounds a transfer.
const SMALL: f64 = 0.03;

/// A bound, said to somebody who has never heard of it.
const fn plain(bound: BoundId) -> &'static str {
    match bound {
        BoundId::ReceiveWindow => "The receive window is too small for this path",
        BoundId::SendBuffer => "The send buffer is too small for this path",
        BoundId::CwndClamp => "The sender's own limit on its window is too small for this path",
        BoundId::Application => "The receiving program reads more slowly than the path delivers",
        BoundId::ApplicationWindow => "The programs' own flow-control window is too small for this path",
        BoundId::ApplicationWrites => "The sending program writes too little at a time, or pauses too long",
        BoundId::Loss => "Packet loss keeps the sender's window small",
        BoundId::Reordering => "Packets that arrive out of order are taken for lost ones",
        BoundId::Contacts => "There is no contact for a part of the time",
        BoundId::Queue => "The queue before the slowest link overflows",
        BoundId::Timers => "The retransmission timers do not fit this path",
        BoundId::DelayedAck => "The receiver waits before it acknowledges",
        BoundId::Handshake => "Opening the connection takes longest",
        BoundId::SlowStart => "The sender begins with a small window, and growing it takes longest",
        BoundId::AckLink => "The link that the ACKs return over is too slow",
        BoundId::Link => "The link is full",
    }
}

/// The advised change, and what is typed in for it.
pub(super) fn what_to_do(explanation: &Explanation) -> Option<Section> {
    let Some(remedy) = explanation.advised() else {
        let none = "No change that somebody can make today gains a tenth; see the tables.".to_owned();
        return Section::lines("What to do", vec![none]);
    };
    let title = |remedy: &Remedy| format!("{} ({})", remedy.title, remedy.place.title());
    let mut lines = vec![Line::Text(match gain(explanation, remedy) {
        Some(gain) => format!("{}: {gain} (simulated).", title(remedy)),
        None => format!("{}.", title(remedy)),
    })];
    lines.extend(remedy.risk.iter().map(|risk| Line::Text(format!("Risk: {risk}."))));
    for commands in &remedy.commands {
        lines.extend(typed(commands));
    }
    let silent = remedy.without_command();
    if !silent.is_empty() {
        lines.push(Line::Text(format!("For these no command is known here: {}.", silent.join(", "))));
    }
    // What the path's equipment would add to what hosts can do, and another system on these hosts.
    if let Some(more) = explanation.beyond(remedy)
        && let Some(gain) = gain(explanation, more)
    {
        let unknown = more.without_command();
        if remedy.place.is_of_hosts() && !more.place.is_of_hosts() {
            lines.push(Line::Text(format!("With the path's equipment too ({}): {gain}.", more.title)));
        } else if silent.is_empty() && !unknown.is_empty() {
            let (unknown, title) = (unknown.join(", "), &more.title);
            lines.push(Line::Text(format!(
                "With what no command is known for here ({title}: {unknown}): {gain}."
            )));
        }
    }
    Section::lines("What to do", lines)
}

fn gain(explanation: &Explanation, remedy: &Remedy) -> Option<String> {
    let (before, after) = (time_of(Some(&explanation.observed)), time_of(Some(&remedy.simulated)));
    match (before, after) {
        (Some(before), Some(after)) => Some(format!(
            "{} in place of {}{}, {:.2} times as fast",
            seconds(after),
            seconds(before),
            of_part(explanation),
            before / after.max(1e-9)
        )),
        (None, Some(after)) => Some(format!("it completes, in {}", seconds(after))),
        _ => None,
    }
}

/// The commands of one end.
fn typed(commands: &HostCommands) -> Vec<Line> {
    let end = match commands.end {
        "path" => "On the machine before the slowest link",
        "program" => "In the programs",
        "sender" => "On the sending host",
        _ => "On the receiving host",
    };
    let mut lines = Vec::new();
    if !commands.settings.iter().any(Setting::is_needed) {
        return lines;
    }
    let has_root = commands.settings.iter().any(|setting| !setting.root.is_empty());
    if has_root {
        lines.push(Line::Text(format!("{end} ({}), as root:", commands.system.name())));
    }
    let all = |of: fn(&Setting) -> &Vec<String>| {
        let mut distinct: Vec<&String> = Vec::new();
        for line in commands.settings.iter().flat_map(of) {
            if !distinct.contains(&line) {
                distinct.push(line);
            }
        }
        distinct.into_iter().cloned().map(Line::Command).collect::<Vec<_>>()
    };
    lines.extend(all(|setting| &setting.root));
    let program = all(|setting| &setting.program);
    if !program.is_empty() {
        lines.push(Line::Text(if has_root {
            "Or for one program alone, without root:".to_owned()
        } else {
            format!("{end}:")
        }));
        lines.extend(program);
    }
    lines.push(Line::Text("To see that it is in force:".to_owned()));
    let mut seen: Vec<&str> = Vec::new();
    for setting in commands.settings.iter().filter(|setting| setting.is_needed()) {
        if !seen.contains(&setting.check.as_str()) {
            seen.push(&setting.check);
            lines.push(Line::Command(setting.check.clone()));
        }
    }
    if has_root {
        lines.push(Line::Text("To undo it:".to_owned()));
        lines.extend(all(|setting| &setting.undo));
    }
    let mut affected: Vec<&str> = commands
        .settings
        .iter()
        .filter(|setting| setting.is_needed())
        .map(|setting| setting.affects.as_str())
        .collect();
    affected.dedup();
    lines.push(Line::Text(format!("It changes: {}.", affected.join("; "))));
    lines
}

/// Which changes make the round trips under the transfer shorter, for what shares the path.
pub(super) fn delay(explanation: &Explanation) -> Option<Section> {
    let before = explanation.observed.rtt_s?;
    let lines = explanation.remedies.iter().filter_map(|remedy| {
        let (share, after) = (remedy.less_delay?, remedy.simulated.rtt_s?);
        Some(format!(
            "{}: p95 {} in place of {} ({:.0} % less), {}{}",
            remedy.id,
            seconds(after.p95),
            seconds(before.p95),
            share * 100.0,
            remedy.place.title(),
            match gain(explanation, remedy) {
                Some(gain) => format!("; the transfer takes {gain}"),
                None => String::new(),
            }
        ))
    });
    Section::lines("Shorter round trips under the transfer", lines.collect())
}

/// What is not simulated as a setting.
pub(super) fn priced(explanation: &Explanation) -> Option<Section> {
    let mut lines: Vec<Line> = Vec::new();
    for remedy in &explanation.priced {
        lines.push(Line::Text(format!(
            "{} ({}): saves {} at the most: {}. Risk: {}.",
            remedy.title,
            remedy.place.title(),
            seconds(remedy.saves_s),
            remedy.how,
            remedy.risk
        )));
        if remedy.place != Place::Path {
            lines.extend(remedy.commands.iter().map(|command| Line::Command(command.to_string())));
        }
    }
    Section::lines("What no setting here stands for", lines)
}

/// How the answer changes with what is known of the path.
pub(super) fn depends(explanation: &Explanation) -> Option<Section> {
    let inputs = &explanation.sensitivity;
    if inputs.is_empty() {
        return None;
    }
    let time = |time: Option<f64>| time.map_or_else(|| "not all complete".to_owned(), seconds);
    let measured = inputs.iter().any(|input| input.measured);
    // Where the ends are those of what was measured, each says what it is.
    let end = |input: &Sensitivity, value: f64, found: Option<f64>| {
        Some(match measured {
            true if input.measured && input.input == "loss" => {
                format!("{} ({})", time(found), percent(value))
            }
            true => format!("{} ({value:.2} ×)", time(found)),
            false => time(found),
        })
    };
    let names = if measured { ["at the least", "at the most"] } else { ["by half", "by double"] };
    let heads =
        vec![Column::left("input", inputs.iter().map(|input| Some(input.input.to_owned())).collect())];
    let columns = vec![
        Column::right(names[0], inputs.iter().map(|input| end(input, input.less, input.less_s)).collect()),
        Column::right(
            "as it is",
            inputs.iter().map(|_| Some(time(time_of(Some(&explanation.observed))))).collect(),
        ),
        Column::right(names[1], inputs.iter().map(|input| end(input, input.more, input.more_s)).collect()),
        Column::right(
            "longest\nby shortest",
            inputs.iter().map(|input| input.span.map(|span| format!("{span:.2}"))).collect(),
        ),
    ];
    let table = Table { heads, groups: vec![columns], ..Table::default() };
    let first = &inputs[0];
    let completes = |input: &Sensitivity| input.less_s.is_some() || input.more_s.is_some();
    let line = match first.span {
        None if !inputs.iter().any(completes) => "It completes at none of these.".to_owned(),
        Some(span) if span < STEADY && measured => {
            "None of them matters much: the path is known well enough for this answer.".to_owned()
        }
        Some(span) if span < STEADY => {
            "None of them matters much: the answer holds where they are known to a factor of two.".to_owned()
        }
        _ => format!("It depends most on the {}: measure that first.", first.input),
    };
    Some(Section {
        title: "What it depends on".to_owned(),
        table: Some(table),
        lines: vec![line.into()],
        ..Section::default()
    })
}

/// Half and double of an input change the answer by less than a fifth.
const STEADY: f64 = 1.2;
