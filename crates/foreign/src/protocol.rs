//! What Farpath and the program of a host say to each other: lines of text, version 1.
//!
//! Farpath writes one request a line, and reads the answer before it writes the next one. The program never speaks unasked.
//!
//! ```text
//! farpath-host 1 role=opens task=sends bytes=100000 local=10.0.0.1:50000 remote=10.0.0.2:50000 mtu=1500
//!              send_buffer=65536 receive_buffer=65536 control=reno seed=1      (one line)
//! start TIME             its program begins
//! packet TIME HEX        an IP packet arrives
//! timer TIME             nothing arrives, and it is as late as this
//! ```
//!
//! An answer is any number of these lines, of which `next` is the last one:
//!
//! ```text
//! name TEXT              what it is, with its version: to `farpath-host` alone
//! packet HEX             it sends this IP packet
//! connected              the connection is open
//! read BYTES             so many bytes has its program read since the connection began
//! closed                 it owes nobody anything more
//! failed TEXT            the connection failed
//! next TIME | never      when it wants to be called although nothing arrives
//! ```
//!
//! Times are nanoseconds since the run began, whole numbers. The parser takes bytes from anybody: it has bounds, and its errors say what
//! was expected and what was found.

use crate::{Answer, HostSetup};
use data_encoding::HEXLOWER_PERMISSIVE;
use farpath_units::Instant;
use std::fmt::Write;

/// The version of the protocol.
pub const VERSION: u32 = 1;
/// The longest line of an answer, in bytes: a packet of 65 535 B in hexadecimal, and a word.
pub const MAX_LINE: usize = 131_134;
/// The most lines of one answer.
pub const MAX_LINES: usize = 100_000;
/// The most that the packets of one answer have together, in bytes.
pub const MAX_ANSWER: usize = 128 << 20;
/// The longest text of a `name` or a `failed`, in bytes.
pub const MAX_TEXT: usize = 200;
/// What of a line an error shows.
const SHOWN: usize = 60;

/// What the program of a host says is not the protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// A line that is none of an answer.
    #[error(
        "expected `packet`, `connected`, `read`, `closed`, `failed` or `next` at the beginning of a line, found `{0}`"
    )]
    Word(String),
    /// A word with something wrong behind it.
    #[error("`{word}`: expected {expected}, found `{found}`")]
    Value {
        /// The word.
        word: &'static str,
        /// What belongs there.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// A packet that is longer than packets may be.
    #[error(
        "`packet`: expected an IP packet of 1 to {mtu} B, which is the MTU that it was told, found {found} B"
    )]
    Length {
        /// The most.
        mtu: u16,
        /// What it has.
        found: usize,
    },
    /// A count that went back, or beyond the whole.
    #[error("`read`: expected a count from {least} to {most}, found {found}")]
    Read {
        /// What had been read before.
        least: u64,
        /// What there is.
        most: u64,
        /// What it says.
        found: u64,
    },
    /// A time that is over.
    #[error("`next`: expected a time after {now} ns, which it is, found {found}")]
    Past {
        /// The time.
        now: u64,
        /// What it says.
        found: u64,
    },
    /// A line without an end.
    #[error("expected a line of {MAX_LINE} B at most, found a longer one")]
    LongLine,
    /// More than anybody says at one instant.
    #[error("expected `next` within {MAX_LINES} lines and {MAX_ANSWER} B of packets, found more")]
    LongAnswer,
    /// The first answer says not what answers.
    #[error("expected `name` in the answer to `farpath-host`, found none")]
    Nameless,
}

/// The first request.
pub fn hello(setup: &HostSetup) -> String {
    let HostSetup { opens, sends, size, local, remote, mtu, send_buffer, receive_buffer, control, seed } =
        setup;
    format!(
        "farpath-host {VERSION} role={} task={} bytes={} local={local} remote={remote} mtu={mtu} send_buffer={} receive_buffer={} \
         control={control} seed={seed}\n",
        if *opens { "opens" } else { "listens" },
        if *sends { "sends" } else { "receives" },
        size.0,
        send_buffer.0,
        receive_buffer.0,
    )
}

/// `start`, or `timer`.
pub fn timed(word: &str, now: Instant) -> String {
    format!("{word} {}\n", now.as_nanos())
}

/// `packet`.
pub fn packet(now: Instant, bytes: &[u8]) -> String {
    let mut line = String::with_capacity(2 * bytes.len() + 32);
    let _ = write!(line, "packet {} ", now.as_nanos());
    HEXLOWER_PERMISSIVE.encode_append(bytes, &mut line);
    line.push('\n');
    line
}

/// Reads the lines of one answer.
#[derive(Debug)]
pub struct AnswerReader {
    answer: Answer,
    name: Option<String>,
    wants_name: bool,
    now: Instant,
    mtu: u16,
    /// Bytes that had been read before, and those that there are.
    read: (u64, u64),
    lines: usize,
    bytes: usize,
}

impl AnswerReader {
    /// For the answer to what was asked at `now`: from a host that has read so many bytes of so many, and whose packets have `mtu` at
    /// most. The first answer `wants_name`.
    pub fn new(now: Instant, mtu: u16, read: (u64, u64), wants_name: bool) -> AnswerReader {
        AnswerReader { answer: Answer::default(), name: None, wants_name, now, mtu, read, lines: 0, bytes: 0 }
    }

    /// Takes the next line, without its end; true where it is the last one.
    ///
    /// # Errors
    /// It is not the protocol.
    pub fn line(&mut self, line: &[u8]) -> Result<bool, ProtocolError> {
        self.lines += 1;
        if line.len() > MAX_LINE {
            return Err(ProtocolError::LongLine);
        }
        if self.lines > MAX_LINES || self.bytes > MAX_ANSWER {
            return Err(ProtocolError::LongAnswer);
        }
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let space = line.iter().position(|byte| *byte == b' ');
        let (word, rest) = match space {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &[][..]),
        };
        match (word, rest) {
            (b"packet", hex) => self.packet(hex)?,
            (b"connected", b"") => self.answer.connected = true,
            (b"closed", b"") => self.answer.closed = true,
            (b"read", digits) => {
                let found = number(digits).ok_or_else(|| value("read", "a number of bytes", digits))?;
                let (least, most) = self.read;
                if found < least || found > most {
                    return Err(ProtocolError::Read { least, most, found });
                }
                self.read.0 = found;
                self.answer.read = Some(found);
            }
            (b"failed", why) => self.answer.failed = Some(text("failed", why)?),
            (b"name", name) if self.wants_name => self.name = Some(text("name", name)?),
            (b"next", b"never") => return self.end(),
            (b"next", digits) => {
                let expected = "a time in ns, or `never`";
                let found = number(digits).ok_or_else(|| value("next", expected, digits))?;
                if found <= self.now.as_nanos() {
                    return Err(ProtocolError::Past { now: self.now.as_nanos(), found });
                }
                self.answer.next_due = Some(Instant::from_nanos(found));
                return self.end();
            }
            _ => return Err(ProtocolError::Word(shown(line))),
        }
        Ok(false)
    }

    fn end(&self) -> Result<bool, ProtocolError> {
        if self.wants_name && self.name.is_none() { Err(ProtocolError::Nameless) } else { Ok(true) }
    }

    fn packet(&mut self, hex: &[u8]) -> Result<(), ProtocolError> {
        let bytes = HEXLOWER_PERMISSIVE
            .decode(hex)
            .map_err(|_| value("packet", "an even number of hexadecimal digits", hex))?;
        if bytes.is_empty() || bytes.len() > usize::from(self.mtu) {
            return Err(ProtocolError::Length { mtu: self.mtu, found: bytes.len() });
        }
        self.bytes += bytes.len();
        self.answer.packets.push(bytes);
        Ok(())
    }

    /// The answer, and what a first one calls its host.
    pub fn finish(self) -> (Answer, Option<String>) {
        (self.answer, self.name)
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    // Without a sign, which `parse` would take.
    let plain = digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| plain)?.parse().ok()
}

fn text(word: &'static str, bytes: &[u8]) -> Result<String, ProtocolError> {
    let expected = "text of 1 to 200 B without control characters";
    let text = std::str::from_utf8(bytes)
        .ok()
        .filter(|text| !text.is_empty() && text.len() <= MAX_TEXT && !text.chars().any(char::is_control));
    text.map(str::to_owned).ok_or_else(|| value(word, expected, bytes))
}

fn value(word: &'static str, expected: &'static str, found: &[u8]) -> ProtocolError {
    ProtocolError::Value { word, expected, found: shown(found) }
}

/// The beginning of what was found, with nothing in it that a terminal obeys.
fn shown(bytes: &[u8]) -> String {
    let cut = &bytes[..bytes.len().min(SHOWN)];
    let mut text = String::from_utf8_lossy(cut).escape_debug().to_string();
    if cut.len() < bytes.len() {
        text.push_str("...");
    }
    text
}

#[cfg(test)]
mod tests;
