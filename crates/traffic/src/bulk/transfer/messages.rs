//! A file whose bytes come message by message: each is written when it is due, and stamped.

use super::{Stage, Transfer};
use crate::bulk::content;
use crate::bulk::{End, MessageStamps};
use farpath_units::Instant;
use rustix::event::PollFlags;
use std::io;

impl Transfer<'_> {
    /// Writes the messages, each when it is due; what the send buffer has no room for, as soon as it has.
    pub(super) fn write_messages(&mut self) -> Result<(), End> {
        let Some(messages) = self.asked.messages else { return Ok(()) };
        let began = self.now();
        self.stamps = Some(MessageStamps { began: Some(began), at: Vec::new() });
        while self.bytes < messages.total().0 {
            let now = self.look()?;
            let due = messages.due_by(now.saturating_since(began));
            let waiting = due * messages.size.0 - self.bytes;
            if waiting == 0 {
                self.wait(PollFlags::empty(), Some(began + messages.due_after(due)))?;
                continue;
            }
            let ready = content::next(self.bytes, self.bytes + waiting);
            match self.socket.send_with_flags(ready, libc::MSG_NOSIGNAL) {
                Ok(bytes) => {
                    self.bytes += bytes as u64;
                    let now = self.now();
                    self.first_byte_at = self.first_byte_at.or(Some(now));
                    self.stamp(now);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait_for_room()?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(Stage::Established, error)),
            }
        }
        Ok(())
    }

    /// Stamps the messages that are whole by now.
    pub(super) fn stamp(&mut self, now: Instant) {
        let Some(messages) = &self.asked.messages else { return };
        let whole = (self.bytes / messages.size.0).min(messages.count) as usize;
        let stamps = self.stamps.get_or_insert_default();
        if stamps.at.len() < whole {
            // Once, and no more than there will be: a list that doubles has room for twice as many.
            stamps.at.reserve_exact((messages.count as usize).saturating_sub(stamps.at.len()));
            stamps.at.resize(whole, now);
        }
    }

    /// How much of the file a receiver waits for before it reads: of a stream, no more than the message that is coming.
    pub(super) fn low_water(&self, most: u64) -> u64 {
        let left = self.asked.size.0 - self.bytes;
        let message =
            self.asked.messages.map_or(left, |messages| messages.size.0 - self.bytes % messages.size.0);
        most.min(left).min(message)
    }
}
