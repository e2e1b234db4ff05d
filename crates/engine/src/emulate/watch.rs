//! The packets of programs of the user: a capture.

use crate::capture::{Capture, CaptureError};
use crate::recorder::on_path;
use farpath_emu::{PacketEvent, Queues, Recorder, WirePacket};
use farpath_path::Direction;
use farpath_sim::End;
use farpath_units::Instant;
use std::io::Write;

/// Watches all packets of the path.
pub(super) struct Watch<W> {
    capture: Option<Capture<W>>,
}

impl<W: Write> Watch<W> {
    /// Writes them into a capture, where there is one.
    pub fn new(capture: Option<Capture<W>>) -> Watch<W> {
        Watch { capture }
    }

    /// Ends the capture.
    pub fn finish(self) -> Result<(), CaptureError> {
        self.capture.map_or(Ok(()), Capture::finish)
    }
}

impl<W: Write> Recorder for Watch<W> {
    fn packet(
        &mut self,
        at: Instant,
        event: PacketEvent,
        direction: Direction,
        packet: &WirePacket,
        _: Queues<'_>,
    ) {
        // A packet that a device refuses is lost outside of the path.
        let Some(event) = on_path(event) else { return };
        if let Some(capture) = &mut self.capture {
            // The near host is the interface `sender`: what it sends goes forward.
            let from = if direction == Direction::Forward { End::Sender } else { End::Receiver };
            capture.real(at, event, from, &packet.finished());
        }
    }
}
