//! How far engines agree, as text.

use super::comparison::participle;
use crate::agreement::{Agreement, PointError, agreements};
use crate::table::Column;
use crate::terminal::{capitalised, notes, tables};
use farpath_run::{ExperimentSummary, Run};

/// The worst points that are named.
const NAMED: usize = 3;

/// A line for each pair of engines and each quantity, and below it the points that are furthest from what the most real of
/// the engines says.
pub fn agreement_text(asked: &ExperimentSummary, agreements: &[Agreement], width: Option<u16>) -> String {
    let column = |header: &str, cell: &dyn Fn(&Agreement) -> String| {
        Column::right(header, agreements.iter().map(|agreement| Some(cell(agreement))).collect())
    };
    let first = |header: &str, cell: &dyn Fn(&Agreement) -> String| {
        Column::left(header, agreements.iter().map(|agreement| Some(cell(agreement))).collect())
    };
    let heads = [
        first("what", &|a| a.quantity.name().to_owned()),
        first("of", &|a| participle(a.of).to_owned()),
        first("against", &|a| participle(a.against).to_owned()),
    ];
    let group = vec![
        column("points", &|a| a.points.len().to_string()),
        column("median,\n%", &|a| percent(a.median)),
        column("90 % of\npoints, %", &|a| percent(a.p90)),
        column("worst,\n%", &|a| signed(a.worst().error)),
    ];
    let mut text = tables(&heads, &[group], width);
    let real = agreements.iter().map(|agreement| agreement.against).max();
    for agreement in agreements.iter().filter(|agreement| Some(agreement.against) == real) {
        let worst = agreement.points.iter().take(NAMED).filter(|point| point.error != 0.0);
        let lines: Vec<String> = worst.map(|point| line(asked, point)).collect();
        if lines.is_empty() {
            continue;
        }
        text += &format!(
            "\n{} of {} against {}, worst first:\n",
            capitalised(agreement.quantity.name()),
            participle(agreement.of),
            participle(agreement.against)
        );
        text += &notes(&lines, width);
    }
    text
}

/// One sentence for each engine that is held against one in real time, for below a comparison.
pub(crate) fn agreement_notes(asked: &ExperimentSummary, runs: &[Run]) -> Vec<String> {
    let note = |agreement: &Agreement| {
        let worst = agreement.worst();
        format!(
            "Agreement on {}: {} against {} at {} points: median {} %, 90th percentile {} %, worst {} % at {}.",
            agreement.quantity.name(),
            participle(agreement.of),
            participle(agreement.against),
            agreement.points.len(),
            percent(agreement.median),
            percent(agreement.p90),
            signed(worst.error),
            name(asked, worst.point),
        )
    };
    if !runs.iter().any(|run| run.engine.in_real_time()) {
        // Every run of a sweep would be looked at for nothing.
        return Vec::new();
    }
    let told = |agreement: &&Agreement| agreement.against.in_real_time() && agreement.points.len() > 1;
    agreements(runs).iter().filter(told).map(note).collect()
}

fn line(asked: &ExperimentSummary, point: &PointError) -> String {
    let noise = match point.noise {
        Some(noise) if point.within_noise() => format!(" ± {} (chance alone may do that)", percent(noise)),
        Some(noise) => format!(" ± {}", percent(noise)),
        None => String::new(),
    };
    format!(
        "{} %{noise}: {:.4} against {:.4}, at {} (point {})",
        signed(point.error),
        point.value,
        point.reference,
        name(asked, point.point),
        point.point
    )
}

/// A point by its swept values.
fn name(asked: &ExperimentSummary, point: u64) -> String {
    let swept = asked.points.get(point as usize).map(|point| point.swept.as_slice()).unwrap_or_default();
    match swept {
        [] => format!("point {point}"),
        swept => swept.iter().map(|(key, value)| format!("{key} {value}")).collect::<Vec<_>>().join(", "),
    }
}

fn percent(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

fn signed(share: f64) -> String {
    // Adding zero turns what rounds to -0.0 into +0.0.
    format!("{:+.1}", (share * 1000.0).round() / 10.0 + 0.0)
}
