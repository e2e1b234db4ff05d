//! Standard output.

use crate::args::TableFormat;
use farpath_report::Table;
pub use farpath_units::bit_rate_text as rate;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, StdoutLock, Write};

/// A number of bytes in the unit that it is best read in, with two digits behind the point; `Bytes` itself prints all of it.
pub fn size(bytes: f64) -> String {
    let units = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    match units.into_iter().find(|(scale, _)| bytes >= *scale) {
        Some((scale, unit)) => format!("{:.2} {unit}", bytes / scale),
        None => format!("{bytes:.0} B"),
    }
}

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
    writeln!(stdout(), "{}", printable(text.trim_end()))
}

/// Says something on standard error.
pub fn tell(text: &str) {
    eprintln!("farpath: {}", printable(text));
}

/// A text for a terminal. Control characters other than the ends of lines and tabs, and what turns the direction of writing, are
/// escaped as in JSON: files of others, and their names, may hold what a terminal would obey.
pub fn printable(text: &str) -> Cow<'_, str> {
    let obeyed = |c: char| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(obeyed) {
        return Cow::Borrowed(text);
    }
    let mut printable = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match obeyed(c) {
            true => drop(write!(printable, "\\u{:04x}", u32::from(c))),
            false => printable.push(c),
        }
    }
    Cow::Owned(printable)
}

#[cfg(test)]
mod tests {
    use super::{printable, size};

    #[test]
    fn sizes_are_rounded_in_the_unit_that_they_reach() {
        let sizes = [0.0, 999.0, 1000.0, 156_801.0, 3_145_728.0, 75_000_001_625.0].map(size);
        assert_eq!(sizes, ["0 B", "999 B", "1.00 kB", "156.80 kB", "3.15 MB", "75.00 GB"]);
    }

    #[test]
    fn what_a_terminal_obeys_is_escaped() {
        assert_eq!(printable("größer, 漢字\n\tb\\c"), "größer, 漢字\n\tb\\c");
        assert_eq!(printable("a\u{1b}]0;b\u{7}\rc\u{9b}d"), "a\\u001b]0;b\\u0007\\u000dc\\u009bd");
        assert_eq!(printable("txt\u{202e}exe\u{2066}"), "txt\\u202eexe\\u2066");
        // A string in JSON is the same string.
        let json = format!("\"{}\"", "a\u{9b}\u{202e}");
        let read: String = serde_json::from_str(&printable(&json)).expect("JSON");
        assert_eq!(read, "a\u{9b}\u{202e}");
    }
}
