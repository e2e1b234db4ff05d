//! A file that is not written at once: in pieces, with pauses, within a window of the programs' own protocol.

use super::Transfer;
use crate::bulk::End;
use crate::bulk::content;
use farpath_units::{Bytes, Instant, Writing};
use rustix::event::PollFlags;

/// What updates are made of: only how many there are counts.
const UPDATE: [u8; Writing::UPDATE.0 as usize] = [0; Writing::UPDATE.0 as usize];

impl Transfer<'_> {
    /// Writes the file piece by piece. A piece that TCP, or the window, does not take whole goes on when it does; only then comes the
    /// time to think.
    pub(super) fn write_pieces(&mut self) -> Result<(), End> {
        let (writing, size) = (self.asked.writing, self.asked.size);
        while self.bytes < size.0 {
            let mut left = writing.piece(Bytes(self.bytes), size).0;
            while left > 0 {
                left -= self.write_some(left)?;
            }
            if self.bytes < size.0 && !writing.think_time.is_zero() {
                self.pause_until(self.now() + writing.think_time)?;
            }
        }
        Ok(())
    }

    /// Hands over what the window allows of the next `most` bytes, waiting for room or for an update; gives how many were taken.
    fn write_some(&mut self, most: u64) -> Result<u64, End> {
        let allowed = loop {
            match self.asked.writing.allowed_by(self.updates / Writing::UPDATE.0).0 - self.bytes {
                0 => self.read_updates()?,
                allowed => break allowed,
            }
        };
        let taken = self.send(content::next(self.bytes, self.bytes + most.min(allowed)))?;
        self.bytes += taken;
        self.first_byte_at = self.first_byte_at.or_else(|| Some(self.now()));
        Ok(taken)
    }

    /// Waits for the other program to say what it has read.
    fn read_updates(&mut self) -> Result<(), End> {
        let mut buffer = [0; 1024];
        let bytes = self.read(&mut buffer)? as u64;
        if bytes == 0 {
            return Err(End::Reset);
        }
        self.updates += bytes;
        Ok(())
    }

    fn pause_until(&mut self, until: Instant) -> Result<(), End> {
        while self.now() < until {
            self.wait(PollFlags::empty(), Some(until))?;
        }
        Ok(())
    }

    /// Says what has been read, where that is due.
    pub(super) fn say_what_is_read(&mut self) -> Result<(), End> {
        let due = self.asked.writing.updates_after(Bytes(self.bytes), self.asked.size) * Writing::UPDATE.0;
        while self.updates < due {
            let rest = (self.updates % Writing::UPDATE.0) as usize;
            self.updates += self.send(&UPDATE[rest..])?;
        }
        Ok(())
    }
}
