//! The checks of a paper as a table for a terminal.

use super::check::{Checked, Verdict};
use super::number::Numbers;
use crate::terminal::{bare, finish};
use comfy_table::{ColumnConstraint, LineStyle, TableStyle, Width};

/// What stands where there is no number.
const NONE: &str = "–";
/// Longest text of what a number is; the statement of a claim can be long.
const WHAT: usize = 60;
/// The least that the columns of numbers and rules need beside each other.
const NARROWEST: u16 = 80;

/// A row per check, below it why numbers are errata, differ or were not run, and a line that counts. Of at most
/// `width` columns, though never narrower than 80; without a width, nothing is wrapped.
pub fn render(checked: &[Checked], width: Option<u16>) -> String {
    let width = width.map(|width| width.max(NARROWEST));
    let mut table = bare(width);
    table.load_style(TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─')));
    table.set_header(["claim", "engine", "what", "published", "reproduced", "rule", "verdict"]);
    for check in checked {
        let what = if check.what.is_empty() { &check.statement } else { &check.what };
        table.add_row([
            check.claim.clone(),
            check.engine.name().to_owned(),
            shortened(what),
            text(check.published.as_ref()),
            text(check.reproduced.as_ref()),
            check.rule.clone(),
            check.verdict.to_string(),
        ]);
    }
    if let Some(width) = width {
        // What is fixed is never broken; the rest is shared out so that lists of numbers break where they must.
        let free = width - 34;
        let shares = [None, None, Some(38), Some(20), Some(22), Some(20), None];
        for (column, share) in table.column_iter_mut().zip(shares) {
            column.set_constraint(match share {
                None => ColumnConstraint::ContentWidth,
                Some(percent) => ColumnConstraint::UpperBoundary(Width::Fixed(free * percent / 100)),
            });
        }
    }
    let reasons = reasons(checked, width);
    let parts = [finish(&mut table), reasons, counts(checked)];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

/// The reasons of what was not simply reproduced, each claim's own ones once.
fn reasons(checked: &[Checked], width: Option<u16>) -> String {
    let mut table = bare(width);
    table.load_style(TableStyle::new());
    let mut said = Vec::new();
    for check in
        checked.iter().filter(|check| check.verdict != Verdict::Reproduced || !check.is_as_recorded())
    {
        let verdict = verdict_text(check);
        let reason = (check.claim.as_str(), verdict.clone(), check.reason.as_str());
        if !said.contains(&reason) {
            table.add_row([check.claim.clone(), verdict, check.reason.clone()]);
            said.push(reason);
        }
    }
    if said.is_empty() {
        return String::new();
    }
    finish(&mut table)
}

/// The verdict of a check, and of a difference whether it is known.
pub(super) fn verdict_text(check: &Checked) -> String {
    match (check.verdict, check.is_as_recorded()) {
        (Verdict::Differs, true) => "differs, known".to_owned(),
        (verdict, true) => verdict.to_string(),
        (verdict, false) => format!("{verdict}, new"),
    }
}

/// `61 reproduced, 14 errata, 1 known difference, 2 not run`; behind it, what is not as the claim file says.
pub(super) fn counts(checked: &[Checked]) -> String {
    let part = |is: &dyn Fn(&Checked) -> bool, one: &str, many: &str| {
        let count = checked.iter().filter(|check| is(check)).count();
        format!("{count} {}", if count == 1 { one } else { many })
    };
    let of = |verdict| move |check: &Checked| check.verdict == verdict && check.is_as_recorded();
    let mut parts = vec![
        part(&of(Verdict::Reproduced), "reproduced", "reproduced"),
        part(&of(Verdict::Erratum), "erratum", "errata"),
        part(&of(Verdict::Differs), "known difference", "known differences"),
        part(&of(Verdict::NotRun), "not run", "not run"),
    ];
    if checked.iter().any(|check| !check.is_as_recorded()) {
        parts.push(part(&|check| !check.is_as_recorded(), "not as recorded", "not as recorded"));
    }
    parts.join(", ") + "\n"
}

fn text(numbers: Option<&Numbers>) -> String {
    numbers.map_or_else(|| NONE.to_owned(), Numbers::to_string)
}

fn shortened(what: &str) -> String {
    if what.chars().count() <= WHAT {
        return what.to_owned();
    }
    let start: String = what.chars().take(WHAT - 1).collect();
    // At the end of a word, unless that is far back.
    let end = start.rfind(' ').filter(|end| *end > WHAT / 2).unwrap_or(start.len());
    format!("{}…", start[..end].trim_end_matches([',', ';', ':']))
}
