//! The stream's bytes, ahead of a socket that takes some of them at a time.

use farpath_tcp::pattern;

/// Bytes that are handed to the kernel at once: what a system call costs is little beside copying as many.
pub const CHUNK: usize = 256 * 1024;

/// Bytes still to be written.
pub struct Source {
    size: u64,
    written: u64,
    /// The stream from `filled_from` on.
    buffer: Vec<u8>,
    filled_from: u64,
}

impl Source {
    pub fn new(size: u64) -> Source {
        Source { size, written: 0, buffer: Vec::new(), filled_from: 0 }
    }

    /// What to write next; empty at the end.
    pub fn next(&mut self) -> &[u8] {
        let used = self.written - self.filled_from;
        if used == self.buffer.len() as u64 {
            let len = (self.size - self.written).min(CHUNK as u64) as usize;
            self.buffer.resize(len, 0);
            self.filled_from = self.written;
            pattern::fill(self.written, &mut self.buffer);
            return &self.buffer;
        }
        &self.buffer[used as usize..]
    }

    pub fn wrote(&mut self, bytes: usize) {
        self.written += bytes as u64;
    }

    pub fn written(&self) -> u64 {
        self.written
    }
}
