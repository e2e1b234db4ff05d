//! What programs of the user print in a guest, on its console: lines of base64 among those of the kernel.

use data_encoding::BASE64;
use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::{Mutex, PoisonError};

/// Begins a line with output of a program; its stream's letter and the bytes follow.
const MARK: &str = "farpath-program-";

/// Bytes in a line.
const CHUNK: usize = 1536;

/// Where a program prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Its standard output.
    Output,
    /// Its standard error.
    Error,
}

/// The console of a guest, from within.
#[derive(Debug)]
pub(crate) struct Console(Mutex<File>);

impl Console {
    /// It is this process's guest's.
    pub fn open() -> io::Result<Console> {
        Ok(Console(Mutex::new(File::options().write(true).open("/dev/console")?)))
    }

    /// Prints what `from` gives until its end.
    pub fn print_all(&self, stream: Stream, mut from: impl Read) -> io::Result<()> {
        let mut bytes = vec![0; 64 * 1024];
        loop {
            match from.read(&mut bytes)? {
                0 => return Ok(()),
                read => self.print(stream, &bytes[..read])?,
            }
        }
    }

    fn print(&self, stream: Stream, bytes: &[u8]) -> io::Result<()> {
        let mut console = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        bytes.chunks(CHUNK).try_for_each(|chunk| console.write_all(line(stream, chunk).as_bytes()))
    }
}

fn line(stream: Stream, bytes: &[u8]) -> String {
    let letter = if stream == Stream::Output { 'o' } else { 'e' };
    format!("{MARK}{letter}{}\n", BASE64.encode(bytes))
}

/// Gives what a line of the console holds of a program's output to `output`; whether it was such a line.
pub(super) fn take(line: &str, output: &mut impl FnMut(Stream, &[u8])) -> bool {
    let Some(rest) = line.strip_prefix(MARK) else { return false };
    let Some((stream, text)) = rest
        .strip_prefix('o')
        .map(|text| (Stream::Output, text))
        .or_else(|| Some((Stream::Error, rest.strip_prefix('e')?)))
    else {
        return false;
    };
    let Ok(bytes) = BASE64.decode(text.as_bytes()) else { return false };
    output(stream, &bytes);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_goes_through_a_console_and_other_lines_do_not() {
        for (stream, bytes) in [(Stream::Output, &b"\xff\n\0"[..]), (Stream::Error, b"")] {
            let mut found = None;
            let line = line(stream, bytes);
            assert!(take(line.trim_end(), &mut |stream, bytes: &[u8]| found = Some((stream, bytes.to_vec()))));
            assert_eq!(found, Some((stream, bytes.to_vec())));
        }
        for line in ["Kernel panic", "farpath-program-", "farpath-program-x", "farpath-program-o!"] {
            assert!(!take(line, &mut |_, _: &[u8]| panic!("{line}")));
        }
    }
}
