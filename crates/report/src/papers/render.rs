//! The checks of a paper as a table for a terminal.

use super::check::Checked;
use super::number::Numbers;
use super::verdict::{Counts, Verdict};
use crate::terminal::{bare, finish};
use comfy_table::{ColumnConstraint, LineStyle, TableStyle, Width};

/// What stands where there is no number.
const NONE: &str = "–";
/// Longest text of what a number is; the statement of a claim can be long.
const WHAT: usize = 60;
/// The least that the columns of numbers and rules need beside each other.
const NARROWEST: u16 = 80;
/// Width of a verdict; longer ones take a second line.
const VERDICT: u16 = 10;

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
        let fixed = |percent: u16| ColumnConstraint::UpperBoundary(Width::Fixed(free * percent / 100));
        let verdict = ColumnConstraint::UpperBoundary(Width::Fixed(VERDICT));
        let whole = ColumnConstraint::ContentWidth;
        let widths = [whole, whole, fixed(38), fixed(20), fixed(22), fixed(20), verdict];
        for (column, width) in table.column_iter_mut().zip(widths) {
            column.set_constraint(width);
        }
    }
    let parts = [
        finish(&mut table),
        reasons_text(checked, width),
        wrapped(&Counts::of_checked(checked).to_string(), width),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

fn reasons_text(checked: &[Checked], width: Option<u16>) -> String {
    let mut table = bare(width);
    table.load_style(TableStyle::new());
    let reasons = reasons(checked);
    for (claim, verdict, reason) in &reasons {
        table.add_row([*claim, verdict, *reason]);
    }
    if reasons.is_empty() { String::new() } else { finish(&mut table) }
}

/// Claim, verdict and reason of what was not simply reproduced, each claim's own ones once.
pub(super) fn reasons(checked: &[Checked]) -> Vec<(&str, String, &str)> {
    let mut reasons = Vec::new();
    let simple = |check: &Checked| {
        matches!(check.verdict, Verdict::Reproduced | Verdict::Arithmetic) && check.is_as_recorded()
    };
    for check in checked.iter().filter(|check| !simple(check)) {
        let reason = (check.claim.as_str(), verdict_text(check), check.reason.as_str());
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    reasons
}

/// The verdict of a check, and of a difference whether it is known.
pub(super) fn verdict_text(check: &Checked) -> String {
    match (check.verdict, check.is_as_recorded()) {
        (verdict @ (Verdict::Differs | Verdict::InPart), true) => format!("{verdict}, known"),
        (verdict, true) => verdict.to_string(),
        (verdict, false) => format!("{verdict}, new"),
    }
}

/// Lines of whole words, of at most `width` columns.
fn wrapped(text: &str, width: Option<u16>) -> String {
    let width = width.map_or(usize::MAX, usize::from);
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("there is one from the beginning");
        if last.is_empty() {
            last.push_str(word);
        } else if last.chars().count() + 1 + word.chars().count() <= width {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.join("\n") + "\n"
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
