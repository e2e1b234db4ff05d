//! Standard output.

use std::io::{self, IsTerminal, StdoutLock, Write};

/// Standard output, buffered by line, and how wide it is.
pub fn stdout() -> StdoutLock<'static> {
    io::stdout().lock()
}

/// Columns of the terminal; `None` where the output goes elsewhere.
pub fn width() -> Option<u16> {
    if !io::stdout().is_terminal() {
        return None;
    }
    terminal_size::terminal_size().map(|(terminal_size::Width(columns), _)| columns)
}

/// Prints a text and the end of its line.
pub fn print(text: &str) -> io::Result<()> {
    writeln!(stdout(), "{}", text.trim_end())
}
