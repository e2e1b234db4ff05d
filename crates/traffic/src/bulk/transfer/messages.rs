//! A file whose bytes come message by message: each is written when it is due, and stamped.

use super::{Stage, Transfer, verify};
use crate::bulk::content;
use crate::bulk::{End, MessageStamps};
use farpath_units::{Bytes, Instant};
use rustix::event::PollFlags;
use std::io::{self, Read};

impl Transfer<'_> {
    /// Writes the messages, each when it is due; what the send buffer has no room for, as soon as it has.
    pub(super) fn write_messages(&mut self) -> Result<(), End> {
        let Some(messages) = self.asked.messages else { return Ok(()) };
        let began = self.now();
        self.stamps = Some(MessageStamps { began: Some(began), ..MessageStamps::default() });
        while self.bytes < messages.total().0 {
            let now = self.look()?;
            self.read_answers()?;
            let due = messages.due_by(now.saturating_since(began));
            let waiting = due * messages.size.0 - self.bytes;
            if waiting == 0 {
                self.wait(self.answer_comes(), Some(began + messages.due_after(due)))?;
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
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // Who answers reads nothing meanwhile: answers that nobody took would hold up both for ever.
                    let awaited = PollFlags::OUT | self.answer_comes();
                    while self.wait(awaited, None)?.difference(PollFlags::IN).is_empty() {
                        self.read_answers()?;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(Stage::Established, error)),
            }
        }
        self.wait_for_answers()
    }

    /// What is waited for beside all else where messages are answered.
    fn answer_comes(&self) -> PollFlags {
        if self.asked.reply > Bytes::ZERO { PollFlags::IN } else { PollFlags::empty() }
    }

    /// Waits, with all written, for the answers that are not there yet: the end of the stream comes behind the last one.
    fn wait_for_answers(&mut self) -> Result<(), End> {
        self.read_answers()?;
        while self.replied < self.answers_after(self.asked.size.0) {
            self.wait(PollFlags::IN, None)?;
            self.read_answers()?;
        }
        Ok(())
    }

    /// Reads the answers that are there.
    fn read_answers(&mut self) -> Result<(), End> {
        if self.asked.reply == Bytes::ZERO {
            return Ok(());
        }
        let all = self.answers_after(self.asked.size.0);
        let mut buffer = [0; 4096];
        loop {
            // The end of the stream is not read here, but by who closes.
            let room = buffer.len().min((all - self.replied) as usize);
            match (&self.socket).read(&mut buffer[..room]) {
                Ok(0) if room > 0 => return Err(End::WrongLength { expected: all, got: self.replied }),
                Ok(0) => return Ok(()),
                Ok(bytes) => {
                    verify(self.replied, &buffer[..bytes])?;
                    self.replied += bytes as u64;
                    let (now, whole) = (self.now(), (self.replied / self.asked.reply.0) as usize);
                    let stamps = self.stamps.get_or_insert_default();
                    stamps.answered.resize(whole, now);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(Stage::Established, error)),
            }
        }
    }

    /// Answers the messages that have been read whole.
    pub(super) fn answer(&mut self) -> Result<(), End> {
        let due = self.answers_after(self.bytes);
        while self.replied < due {
            self.replied += self.send(content::next(self.replied, due))?;
        }
        Ok(())
    }

    /// Bytes of the answers to so much of the stream.
    fn answers_after(&self, bytes: u64) -> u64 {
        self.asked.messages.map_or(0, |messages| (bytes / messages.size.0).saturating_mul(self.asked.reply.0))
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
