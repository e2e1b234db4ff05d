//! Lines in a stream of bytes, none longer than is allowed.

use crate::said::Said;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;

/// Longest line, its end included. The longest that is sent has a thousand rows.
pub const MOST_BYTES: usize = 128 * 1024;

/// Why there is no message.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The other end closed the connection.
    #[error("the connection was closed")]
    Closed,
    /// Nothing whole came in time.
    #[error("nothing came in time")]
    TimedOut,
    /// This end is told to stop.
    #[error("stopped")]
    Stopped,
    /// No end in sight.
    #[error("a line of more than {MOST_BYTES} bytes")]
    TooLong,
    /// It is not one of ours. What is wrong is said with words of the line.
    #[error("not understood: {}", Said::from(.0.to_string()))]
    Syntax(#[from] serde_json::Error),
    /// The connection failed.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Gathers bytes and gives whole lines. It never holds more than one line that is too long.
#[derive(Debug, Default)]
pub struct Lines {
    held: Vec<u8>,
    /// Up to here there is no end of a line.
    looked: usize,
}

impl Lines {
    /// More bytes have come.
    pub fn push(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
    }

    /// Bytes that are held and wait for the rest of their line.
    #[cfg(test)]
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// The next message, if one is there.
    ///
    /// # Errors
    /// The line is too long, or is no such message.
    pub fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, FrameError> {
        let Some(end) = self.held[self.looked..].iter().position(|&byte| byte == b'\n') else {
            self.looked = self.held.len();
            return if self.held.len() >= MOST_BYTES { Err(FrameError::TooLong) } else { Ok(None) };
        };
        let line: Vec<u8> = self.held.drain(..=self.looked + end).collect();
        self.looked = 0;
        if line.len() > MOST_BYTES {
            return Err(FrameError::TooLong);
        }
        Ok(Some(serde_json::from_slice(&line)?))
    }
}

/// A message as it is sent.
pub fn line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("a message is plain data");
    line.push(b'\n');
    line
}
