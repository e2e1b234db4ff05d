//! The shape of one end of a connection, whoever drives it.

use crate::Segment;
use farpath_units::Instant;

/// One end of a TCP connection. It owns no socket, no thread and no clock.
///
/// After every call that can change something, poll segments until there is none.
pub trait Endpoint {
    /// Takes a segment that arrived at `now`.
    fn on_segment(&mut self, now: Instant, segment: &Segment);
    /// Runs every timer due at `now`. Called early or twice it runs none; but it ends the burst that was being sent, so that it is not
    /// for between the segments of one: another of them would carry PSH.
    fn on_timer(&mut self, now: Instant);
    /// The next segment to send at `now`; `None` if data, window or pacing forbids one.
    fn poll_segment(&mut self, now: Instant) -> Option<Segment>;
    /// When to call again; `None` if only an arrival can change anything.
    fn next_due(&self) -> Option<Instant>;
    /// Writes up to `bytes` more of the stream; gives how many the send buffer had room for.
    fn write(&mut self, bytes: u64) -> u64;
    /// Bytes that have arrived in order and are not read yet.
    fn readable(&self) -> u64;
    /// Reads up to `max` bytes; gives how many there were.
    fn read(&mut self, max: u64) -> u64;
    /// The stream ends after what has been written: FIN follows it.
    fn close(&mut self);
}
