//! How the program at the sending end writes a file: in which pieces, and how far ahead of the program that reads.

use crate::{Bytes, Duration};
use core::fmt;

/// How a program writes a file. The default writes all of it at once, as far as TCP takes it.
///
/// Protocols above TCP that carry several streams over a connection have a window of their own for each: SSH for a channel
/// (RFC 4254 section 5.2), HTTP/2 for a stream (RFC 9113 section 5.2). The sending program is no further ahead of the reading one than
/// that, and learns what has been read by messages that cross the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Writing {
    /// The window of the program's own protocol: bytes that may be written beyond what the reading program has said that it read.
    pub window: Option<Bytes>,
    /// Bytes after which the reading program says that it has read them, no more than the window; without it, half of the window.
    pub update_every: Option<Bytes>,
    /// Bytes that the program writes in one call, the last time what is left.
    pub write_size: Option<Bytes>,
    /// Time that it takes after each write before the next.
    pub think_time: Duration,
}

impl Writing {
    /// Length of a message that says what has been read: HTTP/2's WINDOW_UPDATE (RFC 9113 sections 4.1 and 6.9).
    pub const UPDATE: Bytes = Bytes(13);

    /// Whether the file is written at once.
    pub fn is_plain(&self) -> bool {
        *self == Writing::default()
    }

    /// What each update allows anew.
    pub fn step(&self) -> Option<Bytes> {
        let window = self.window?;
        Some(self.update_every.map_or(Bytes(window.0 / 2), |step| step.min(window)).max(Bytes(1)))
    }

    /// Updates that are sent for a file of so many bytes: none that would allow nothing more.
    pub fn updates_for(&self, size: Bytes) -> u64 {
        match (self.window, self.step()) {
            (Some(window), Some(step)) => size.0.saturating_sub(window.0).div_ceil(step.0),
            _ => 0,
        }
    }

    /// Updates that the reading program has sent once it has read so much of a file.
    pub fn updates_after(&self, read: Bytes, size: Bytes) -> u64 {
        self.step().map_or(0, |step| (read.0 / step.0).min(self.updates_for(size)))
    }

    /// Bytes of the file that may have been written in all after so many updates.
    pub fn allowed_by(&self, updates: u64) -> Bytes {
        match (self.window, self.step()) {
            (Some(window), Some(step)) => Bytes(window.0.saturating_add(updates.saturating_mul(step.0))),
            _ => Bytes(u64::MAX),
        }
    }

    /// What the program hands over in its next call, of a file of which `written` bytes are: all that is left of the piece it is at.
    pub fn piece(&self, written: Bytes, size: Bytes) -> Bytes {
        let left = size.0.saturating_sub(written.0);
        Bytes(self.write_size.map_or(left, |piece| left.min(piece.0.max(1) - written.0 % piece.0.max(1))))
    }
}

impl fmt::Display for Writing {
    /// `within a window of 64 kB, in pieces of 8 kB, 5 ms after each`; nothing of what is written at once.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let window = self.window.map(|window| format!("within a window of {window}"));
        let pieces = self.write_size.map(|piece| format!("in pieces of {piece}"));
        let pauses = Some(self.think_time).filter(|time| self.write_size.is_some() && !time.is_zero());
        let parts = [window, pieces, pauses.map(|time| format!("{time} after each"))];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(bytes: u64) -> Writing {
        Writing { window: Some(Bytes(bytes)), ..Writing::default() }
    }

    #[test]
    fn updates_allow_the_whole_file_and_no_more_are_sent() {
        for (window_size, size) in
            [(64, 63), (64, 64), (64, 65), (64, 1000), (1, 5), (3, 100), (65_535, 1_000_000)]
        {
            let (writing, size) = (window(window_size), Bytes(size));
            let all = writing.updates_for(size);
            assert!(writing.allowed_by(all) >= size, "{window_size} {size:?}");
            assert!(all == 0 || writing.allowed_by(all - 1) < size, "{window_size} {size:?}");
            assert_eq!(writing.updates_after(size, size), all);
        }
    }

    /// Whatever has been allowed will be read, and then there is an update, or the file is allowed whole.
    #[test]
    fn nobody_waits_for_ever() {
        let size = Bytes(1000);
        for (window_size, update_every) in (1..40).flat_map(|window| (0..60).map(move |step| (window, step)))
        {
            let update_every = Some(Bytes(update_every)).filter(|step| step.0 > 0);
            let writing = Writing { update_every, ..window(window_size) };
            let mut updates = 0;
            while writing.allowed_by(updates) < size {
                let after = writing.updates_after(writing.allowed_by(updates), size);
                assert!(after > updates, "{writing:?} stops at {updates}");
                updates = after;
            }
        }
    }

    #[test]
    fn pieces_are_of_one_size_but_for_the_last() {
        let writing = Writing { write_size: Some(Bytes(10)), ..Writing::default() };
        let piece = |written| writing.piece(Bytes(written), Bytes(25)).0;
        assert_eq!([piece(0), piece(4), piece(10), piece(20), piece(25)], [10, 6, 10, 5, 0]);
        assert_eq!(Writing::default().piece(Bytes(4), Bytes(25)), Bytes(21));
        assert!(Writing::default().is_plain() && !writing.is_plain());
    }
}
