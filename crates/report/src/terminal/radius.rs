//! The radii of stacks, for people.

use super::layout::{self, Column};

/// One line: a radius of a stack.
#[derive(Debug, Clone, PartialEq)]
pub struct RadiusRow {
    /// The stack; said where it differs from the line before.
    pub stack: String,
    /// What changes beyond it.
    pub radius: String,
    /// The parameters that set it.
    pub timer: String,
    /// Round trip, in s; infinite for none.
    pub rtt: f64,
    /// One way in the medium, in km.
    pub km: f64,
    /// The last body inside.
    pub inside: Option<String>,
    /// Whether what was asked for is inside.
    pub reaches: Option<bool>,
    /// The round trip at which simulation has it, in s.
    pub simulated: Option<f64>,
    /// Simulated less closed form, in s.
    pub error: Option<f64>,
}

/// A table of them, at most `width` columns wide.
pub fn radius_text(rows: &[RadiusRow], width: Option<u16>) -> String {
    let mut before = "";
    let stacks = rows.iter().map(|row| {
        let new = row.stack != before;
        before = &row.stack;
        Some(if new { row.stack.clone() } else { String::new() })
    });
    let heads = vec![
        Column::left("stack", stacks.collect()),
        Column::left("radius", column(rows, |row| Some(row.radius.clone()))),
    ];
    let measures = vec![
        Column::right("RTT, s", column(rows, |row| Some(number(row.rtt)))),
        Column::right("one way, s", column(rows, |row| Some(number(row.rtt / 2.0)))),
        Column::right("km", column(rows, |row| Some(number(row.km)))),
        Column::left("last body inside", column(rows, |row| row.inside.clone())),
    ];
    let reaches = Column::left("reached", column(rows, |row| row.reaches.map(yes_or_no)));
    let checks = [
        Column::right("simulated\nRTT, s", column(rows, |row| row.simulated.map(number))),
        Column::right("error, s", column(rows, |row| row.error.map(|error| format!("{error:+.4}")))),
    ];
    let timer = Column::left("set by", column(rows, |row| Some(row.timer.clone())));
    let known = |columns: Vec<Column>| columns.into_iter().filter(Column::is_known).collect::<Vec<_>>();
    let groups = [known(measures), known(vec![reaches]), known(checks.into()), vec![timer]];
    layout::tables(&heads, &groups, width)
}

fn column(rows: &[RadiusRow], cell: impl Fn(&RadiusRow) -> Option<String>) -> Vec<Option<String>> {
    rows.iter().map(cell).collect()
}

fn yes_or_no(yes: bool) -> String {
    if yes { "yes" } else { "no" }.to_owned()
}

/// Four digits; from a million on with an exponent.
fn number(value: f64) -> String {
    if value == f64::INFINITY {
        return "no end".to_owned();
    }
    if value >= 1e6 {
        return format!("{value:.3e}");
    }
    let decimals = if value >= 1000.0 { 0 } else { 3 };
    let text = format!("{value:.decimals$}");
    if decimals == 0 { text } else { text.trim_end_matches('0').trim_end_matches('.').to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_at_every_size() {
        let texts = [0.0, 0.5, 22.5, 0.238_741, 149_896.229, 6.745e6, 1.737e77, f64::INFINITY].map(number);
        assert_eq!(texts, ["0", "0.5", "22.5", "0.239", "149896", "6.745e6", "1.737e77", "no end"]);
    }
}
