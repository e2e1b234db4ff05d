//! The programs at the ends of a file that is not written at once: in pieces, with pauses, within a window of their own protocol.

use farpath_tcp::{Connection, Endpoint};
use farpath_units::{Bytes, Instant, Writing};

/// Such a transfer while it runs.
#[derive(Debug)]
pub(crate) struct Writer {
    writing: Writing,
    size: Bytes,
    written: u64,
    /// When the sending program makes its next call, where it has made one.
    next_call: Option<Instant>,
    /// Bytes of updates that it has read, and that the other one has written.
    updates_read: u64,
    updates_written: u64,
}

impl Writer {
    pub fn new(writing: Writing, size: Bytes) -> Writer {
        Writer { writing, size, written: 0, next_call: None, updates_read: 0, updates_written: 0 }
    }

    /// The sending program does what it can in one call. Gives what is left to write, and when the next call is.
    pub fn write(&mut self, now: Instant, connection: &mut Connection) -> (u64, Option<Instant>) {
        self.updates_read += connection.read(u64::MAX);
        let mut next_call = None;
        if self.next_call.is_none_or(|at| at <= now) {
            let allowed = self.writing.allowed_by(self.updates_read / Writing::UPDATE.0).0 - self.written;
            let piece = self.writing.piece(Bytes(self.written), self.size).0;
            let taken = connection.write(piece.min(allowed));
            self.written += taken;
            // A call that blocks goes on when there is room, or an update: both wake it.
            if taken == piece && self.written < self.size.0 {
                next_call = Some(now + self.writing.think_time);
            }
            self.next_call = next_call;
        }
        (self.size.0 - self.written, next_call)
    }

    /// The reading program, which has read so much, says so.
    pub fn update(&mut self, read: u64, connection: &mut Connection) {
        let updates = self.writing.updates_after(Bytes(read), self.size);
        self.updates_written += connection.write(updates * Writing::UPDATE.0 - self.updates_written);
    }
}
