//! A capture that comes through a pipe while it is made: it ends with its writer, or soon after Ctrl-C.
//!
//! Ctrl-C ends whatever is in the terminal's foreground, so that of `tcpdump -w - | farpath diagnose -` both have it. What tcpdump has still
//! to write is read.

use std::io::{self, Cursor, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// What is read at once, and how many of these wait.
const CHUNK: usize = 1 << 16;
const WAITING: usize = 4;
/// How often it is looked whether to stop.
const LOOK: Duration = Duration::from_millis(50);
/// How long what the writer has left is read for.
const REST: Duration = Duration::from_secs(1);

/// What `source` gives until it ends, or [`REST`] after `stop` is set.
pub struct LiveCapture {
    chunks: Receiver<io::Result<Vec<u8>>>,
    chunk: Cursor<Vec<u8>>,
    stop: &'static AtomicBool,
    over_at: Option<Instant>,
}

impl LiveCapture {
    pub fn from_source(mut source: impl Read + Send + 'static, stop: &'static AtomicBool) -> LiveCapture {
        let (give, chunks) = sync_channel(WAITING);
        // It may wait in a read for ever, and ends with the program then.
        thread::spawn(move || {
            loop {
                let mut chunk = vec![0; CHUNK];
                let read = source.read(&mut chunk);
                let is_over = !matches!(read, Ok(1..));
                let chunk = read.map(|read| {
                    chunk.truncate(read);
                    chunk
                });
                if give.send(chunk).is_err() || is_over {
                    return;
                }
            }
        });
        LiveCapture { chunks, chunk: Cursor::default(), stop, over_at: None }
    }

    #[expect(clippy::disallowed_methods, reason = "who writes it does so in real time")]
    fn is_over(&mut self) -> bool {
        if self.over_at.is_none() && self.stop.load(Ordering::Relaxed) {
            self.over_at = Some(Instant::now() + REST);
        }
        self.over_at.is_some_and(|at| Instant::now() >= at)
    }
}

impl Read for LiveCapture {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.chunk.read(buffer)?;
            if read > 0 || buffer.is_empty() || self.is_over() {
                return Ok(read);
            }
            match self.chunks.recv_timeout(LOOK) {
                Ok(chunk) => self.chunk = Cursor::new(chunk?),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
            }
        }
    }
}
