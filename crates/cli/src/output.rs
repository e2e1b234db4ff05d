//! Standard output.

use crate::args::TableFormat;
use farpath_report::Table;
use std::io::{self, IsTerminal, StdoutLock, Write};

/// Standard output, buffered by line, and how wide it is.
pub fn stdout() -> StdoutLock<'static> {
    io::stdout().lock()
}

/// Columns to fill where the output is not a terminal: a file, a pager, a log.
const ELSEWHERE: u16 = 120;

/// How wide the output may be.
pub fn width() -> Option<u16> {
    let terminal = if io::stdout().is_terminal() { terminal_size::terminal_size() } else { None };
    Some(terminal.map_or(ELSEWHERE, |(terminal_size::Width(columns), _)| columns))
}

/// Prints a table.
pub fn print_table(table: &Table, format: TableFormat) -> io::Result<()> {
    print(&match format {
        TableFormat::Text => table.to_text(width()),
        TableFormat::Markdown => table.to_markdown(),
    })
}

/// Prints a text and the end of its line.
pub fn print(text: &str) -> io::Result<()> {
    writeln!(stdout(), "{}", text.trim_end())
}

/// A rate in the unit that it is best read in, with two digits behind the point.
pub fn rate(bit_per_s: f64) -> String {
    match bit_per_s {
        rate if rate >= 1e9 => format!("{:.2} Gbit/s", rate / 1e9),
        rate if rate >= 1e6 => format!("{:.2} Mbit/s", rate / 1e6),
        rate => format!("{:.2} kbit/s", rate / 1e3),
    }
}
