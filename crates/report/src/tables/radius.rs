//! The radii of stacks, for people.

use super::comparison::{percent, share_text};
use crate::table::{Column, Table};
use crate::terminal;
use farpath_run::Share;

/// One line: a radius of a stack.
#[derive(Debug, Clone, PartialEq)]
pub struct RadiusRow {
    /// The stack; said where it differs from the line before.
    pub stack: String,
    /// What changes beyond it.
    pub radius: String,
    /// The parameters that set it.
    pub timer: String,
    /// Round trip, in s, from its least to its most; infinite for none.
    pub rtt: (f64, f64),
    /// One way in the medium, in km, at the least.
    pub km: f64,
    /// The last body inside.
    pub inside: Option<String>,
    /// How far beyond a relay the far end may be, in km; nothing where no relay is asked for or it is itself too far.
    pub beyond_relay: Option<f64>,
    /// Whether what was asked for is inside.
    pub reaches: Option<bool>,
    /// The round trip at which simulation has it, in s, from its least to its most.
    pub simulated: Option<(f64, f64)>,
    /// How far that is outside of the closed form's, in s.
    pub error: Option<f64>,
    /// The round trip at which the running kernel has it, in s, from its least to its most.
    pub kernel: Option<(f64, f64)>,
    /// What to know of it, below the table.
    pub note: Option<String>,
}

/// A table of them, at most `width` columns wide.
pub fn radius_text(rows: &[RadiusRow], width: Option<u16>) -> String {
    text(rows, OF_STACKS, width)
}

/// The same for timers of protocols, whose sources follow.
pub fn protocol_text(rows: &[RadiusRow], sources: &[String], width: Option<u16>) -> String {
    format!("{}\n{}", text(rows, ["protocol", "beyond it", ""], width), terminal::notes(sources, width))
}

fn text(rows: &[RadiusRow], names: [&str; 3], width: Option<u16>) -> String {
    let mut before = "";
    let stacks = rows.iter().map(|row| {
        let new = row.stack != before;
        before = &row.stack;
        Some(if new { row.stack.clone() } else { String::new() })
    });
    let (stack, what) = (Column::left(names[0], stacks.collect()), what(rows, names[1]));
    let mut text = terminal::tables(&[stack, what], &groups(rows, names[2]), width);
    for note in notes(rows) {
        text.push_str(&terminal::paragraph(&note, width));
    }
    text
}

/// What the columns of stacks are called.
const OF_STACKS: [&str; 3] = ["stack", "radius", "set by"];

/// The same for a page.
pub(crate) fn radius_table(rows: &[RadiusRow]) -> Table {
    let stack = Column::left(OF_STACKS[0], column(rows, |row| Some(row.stack.clone())));
    Table {
        heads: vec![stack, what(rows, OF_STACKS[1])],
        groups: groups(rows, OF_STACKS[2]).into(),
        notes: notes(rows),
        ..Table::default()
    }
}

fn what(rows: &[RadiusRow], name: &str) -> Column {
    Column::left(name, column(rows, |row| Some(row.radius.clone())))
}

fn groups(rows: &[RadiusRow], set_by: &str) -> [Vec<Column>; 4] {
    let measures = vec![
        Column::right("RTT, s", column(rows, |row| Some(span(row.rtt)))),
        Column::right("one way, s", column(rows, |row| Some(number(row.rtt.0 / 2.0)))),
        Column::right("km", column(rows, |row| Some(number(row.km)))),
        Column::left("last body inside", column(rows, |row| row.inside.clone())),
    ];
    let beyond = Column::right("beyond the\nrelay, km", column(rows, |row| row.beyond_relay.map(number)));
    let reaches = Column::left("reached", column(rows, |row| row.reaches.map(yes_or_no)));
    let checks = [
        Column::right("simulated\nRTT, s", column(rows, |row| row.simulated.map(span))),
        Column::right("error, s", column(rows, |row| row.error.map(|error| format!("{error:+.4}")))),
        Column::right("kernel\nRTT, s", column(rows, |row| row.kernel.map(span))),
    ];
    let timer = Column::left(set_by, column(rows, |row| Some(row.timer.clone())));
    let known = |columns: Vec<Column>| columns.into_iter().filter(Column::is_known).collect::<Vec<_>>();
    let timer = if set_by.is_empty() { Vec::new() } else { vec![timer] };
    [known(measures), known(vec![beyond, reaches]), known(checks.into()), timer]
}

fn notes(rows: &[RadiusRow]) -> Vec<String> {
    rows.iter().filter_map(|row| Some(format!("{}: {}", row.stack, row.note.as_ref()?))).collect()
}

/// One line: connections over one length of way. Counts are of those that opened and those that were of use.
#[derive(Debug, Clone, PartialEq)]
pub struct WayRow {
    /// Round trip, in s.
    pub rtt: f64,
    /// What the closed form says, in words.
    pub predicted: &'static str,
    /// In the simulator.
    pub simulated: (usize, usize),
    /// Of the running kernel; `None` where the machine was not in time.
    pub kernel: Option<(usize, usize)>,
}

/// A table of them.
pub fn ways_text(rows: &[WayRow], width: Option<u16>) -> String {
    let cells = |cell: fn(&WayRow) -> Option<String>| rows.iter().map(cell).collect::<Vec<_>>();
    let columns = vec![
        Column::left("predicted", cells(|row| Some(row.predicted.to_owned()))),
        Column::right("simulated\nopened", cells(|row| Some(row.simulated.0.to_string()))),
        Column::right("simulated\nusable", cells(|row| Some(row.simulated.1.to_string()))),
        Column::right("kernel\nopened", cells(|row| row.kernel.map(|kernel| kernel.0.to_string()))),
        Column::right("kernel\nusable", cells(|row| row.kernel.map(|kernel| kernel.1.to_string()))),
    ];
    terminal::tables(&[Column::right("RTT, s", cells(|row| Some(number(row.rtt))))], &[columns], width)
}

/// One line: how many connections came so far, by the closed form and in the simulator.
#[derive(Debug, Clone, PartialEq)]
pub struct ShareRow {
    /// The stack.
    pub stack: String,
    /// What they came to.
    pub what: String,
    /// Round trip, in s.
    pub rtt: f64,
    /// By the closed form, 0 to 1.
    pub predicted: f64,
    /// In the simulator.
    pub simulated: Share,
    /// Whether the two are as far apart as chance allows.
    pub agrees: bool,
}

/// A table of them.
pub fn shares_text(rows: &[ShareRow], width: Option<u16>) -> String {
    let cells = |cell: fn(&ShareRow) -> String| rows.iter().map(|row| Some(cell(row))).collect::<Vec<_>>();
    let heads = [
        Column::left("stack", cells(|row| row.stack.clone())),
        Column::left("connections that", cells(|row| row.what.clone())),
    ];
    let columns = vec![
        Column::right("RTT, s", cells(|row| number(row.rtt))),
        Column::right("closed\nform, %", cells(|row| percent(row.predicted))),
        Column::right("simulated, %", cells(|row| share_text(row.simulated))),
        Column::left("agree", cells(|row| yes_or_no(row.agrees))),
    ];
    terminal::tables(&heads, &[columns], width)
}

/// One line: the longest gaps that a connection survives, in s, from their least to their most; infinite for every one.
#[derive(Debug, Clone, PartialEq)]
pub struct GapRow {
    /// The stack; said where it differs from the line before.
    pub stack: String,
    /// What it does when the gap begins.
    pub connection: &'static str,
    /// Where packets are held meanwhile.
    pub held: Option<(f64, f64)>,
    /// The same in simulation.
    pub held_simulated: Option<f64>,
    /// Where packets are lost meanwhile.
    pub lost: Option<(f64, f64)>,
    /// The same in simulation.
    pub lost_simulated: Option<f64>,
    /// The parameter that sets it.
    pub timer: &'static str,
}

/// A table of them.
pub fn gaps_text(rows: &[GapRow], width: Option<u16>) -> String {
    let cells = |cell: fn(&GapRow) -> Option<String>| rows.iter().map(cell).collect::<Vec<_>>();
    let mut before = "";
    let stacks = rows.iter().map(|row| {
        let new = row.stack != before;
        before = &row.stack;
        Some(if new { row.stack.clone() } else { String::new() })
    });
    let heads = [
        Column::left("stack", stacks.collect()),
        Column::left("connection", cells(|row| Some(row.connection.to_owned()))),
    ];
    let columns = vec![
        Column::right("longest gap,\npackets held, s", cells(|row| row.held.map(span))),
        Column::right("simulated", cells(|row| row.held_simulated.map(number))),
        Column::right("longest gap,\npackets lost, s", cells(|row| row.lost.map(span))),
        Column::right("simulated", cells(|row| row.lost_simulated.map(number))),
        Column::left("set by", cells(|row| Some(row.timer.to_owned()))),
    ];
    terminal::tables(&heads, &[columns.into_iter().filter(Column::is_known).collect()], width)
}

/// From a least to a most, as the tables have it: `1–1.032`.
pub fn span_text(least: f64, most: f64) -> String {
    span((least, most))
}

fn column(rows: &[RadiusRow], cell: impl Fn(&RadiusRow) -> Option<String>) -> Vec<Option<String>> {
    rows.iter().map(cell).collect()
}

fn yes_or_no(yes: bool) -> String {
    if yes { "yes" } else { "no" }.to_owned()
}

/// From the least to the most, to four digits, where the two do not look the same.
fn span((least, most): (f64, f64)) -> String {
    let (from, to) = (number(least), number(most));
    if from == to {
        return from;
    }
    let short = |value: f64| {
        let decimals = if value < 10.0 {
            3
        } else if value < 100.0 {
            2
        } else {
            1
        };
        let text = format!("{value:.decimals$}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    if most < 1000.0 { format!("{}–{}", short(least), short(most)) } else { format!("{from}–{to}") }
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
    fn a_stack_with_the_longest_names_fits_into_120_columns() {
        let row = RadiusRow {
            stack: "linux-6".to_owned(),
            radius: "usable: data can be exchanged".to_owned(),
            timer: "handshake.synack_attempts".to_owned(),
            rtt: (67.712, 103.808),
            km: 1.015e7,
            inside: Some("geostationary orbit".to_owned()),
            beyond_relay: None,
            reaches: None,
            simulated: None,
            error: None,
            kernel: None,
            note: Some("the server gives up by then ".repeat(8)),
        };
        let text = radius_text(&[row], Some(120));
        assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
        assert_eq!(text.lines().filter(|line| line.contains("linux-6  ")).count(), 1, "one table: {text}");
    }

    #[test]
    fn numbers_are_short_at_every_size() {
        let texts = [0.0, 0.5, 22.5, 0.238_741, 149_896.229, 6.745e6, 1.737e77, f64::INFINITY].map(number);
        assert_eq!(texts, ["0", "0.5", "22.5", "0.239", "149896", "6.745e6", "1.737e77", "no end"]);
        let texts = [(1.0, 1.032), (3.0, 3.0), (67.713, 103.709), (1399.0, 1401.2)].map(span);
        assert_eq!(texts, ["1–1.032", "3", "67.71–103.7", "1399–1401"]);
    }
}
