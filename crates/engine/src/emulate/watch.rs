//! The packets of programs of the user: a capture, and whose they are.

use super::connections::{Connection, Connections};
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
    connections: Option<Connections>,
}

impl<W: Write> Watch<W> {
    /// Writes them into a capture, where there is one.
    pub fn new(capture: Option<Capture<W>>) -> Watch<W> {
        Watch { capture, connections: None }
    }

    /// Tells their connections apart, too.
    pub fn with_connections(self) -> Watch<W> {
        Watch { connections: Some(Connections::default()), ..self }
    }

    /// Ends the capture. Gives the connections, and how many packets were sent beside those.
    pub fn finish(self) -> Result<(Vec<Connection>, u64), CaptureError> {
        self.capture.map_or(Ok(()), Capture::finish)?;
        Ok(self.connections.map(Connections::finish).unwrap_or_default())
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
        if let Some(connections) = &mut self.connections {
            connections.packet(at, event, packet);
        }
        // A packet that a device refuses is lost outside of the path.
        let Some(event) = on_path(event) else { return };
        if let Some(capture) = &mut self.capture {
            // The near host is the interface `sender`: what it sends goes forward.
            let from = if direction == Direction::Forward { End::Sender } else { End::Receiver };
            capture.real(at, event, from, &packet.finished());
        }
    }
}
