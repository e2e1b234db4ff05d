//! The packets of programs of the user: a capture, and whose they are.

use super::connections::{Connections, Found};
use super::held::HostSockets;
use crate::EngineError;
use crate::capture::Capture;
use crate::recorder::on_path;
use farpath_emu::{PacketEvent, Queues, Recorder, WirePacket};
use farpath_path::Direction;
use farpath_sim::End;
use farpath_units::Instant;
use std::io::{self, Write};

/// Watches all packets of the path.
pub(super) struct Watch<W> {
    capture: Option<Capture<W>>,
    connections: Option<Connections>,
    sockets: Option<AtPackets>,
}

/// Sockets that are looked at when packets pass, and not before some time has passed since the last look: a look of its own would
/// end a jump of a clock in virtual time.
struct AtPackets {
    hosts: [HostSockets; 2],
    due: Instant,
    failed: io::Result<()>,
}

impl<W: Write> Watch<W> {
    /// Writes them into a capture, where there is one.
    pub fn new(capture: Option<Capture<W>>) -> Watch<W> {
        Watch { capture, connections: None, sockets: None }
    }

    /// Tells their connections apart, too.
    pub fn with_connections(self, connections: Connections) -> Watch<W> {
        Watch { connections: Some(connections), ..self }
    }

    /// Looks at these sockets when packets pass.
    pub fn with_sockets(self, hosts: Option<[HostSockets; 2]>) -> Watch<W> {
        Watch { sockets: hosts.map(|hosts| AtPackets { hosts, due: Instant::ZERO, failed: Ok(()) }), ..self }
    }

    /// Ends the capture. Gives the connections, and how many packets were sent beside those.
    pub fn finish(self) -> Result<(Vec<Found>, u64), EngineError> {
        self.capture.map_or(Ok(()), Capture::finish)?;
        let (mut found, unlisted) = self.connections.map(Connections::finish).unwrap_or_default();
        if let Some(AtPackets { hosts, failed, .. }) = self.sockets {
            failed.map_err(EngineError::Sockets)?;
            HostSockets::enter(hosts, &mut found);
        }
        Ok((found, unlisted))
    }
}

impl AtPackets {
    fn look(&mut self, at: Instant) {
        if at >= self.due && self.failed.is_ok() {
            self.due = at + self.hosts[0].every();
            self.failed = self.hosts.iter_mut().try_for_each(|host| host.look(at));
        }
    }
}

impl<W: Write> Recorder for Watch<W> {
    fn packet(
        &mut self,
        at: Instant,
        event: PacketEvent,
        direction: Direction,
        packet: &WirePacket,
        queues: Queues<'_>,
    ) {
        // A drop may be told ahead of its time.
        if let Some(sockets) = self.sockets.as_mut().filter(|_| !matches!(event, PacketEvent::Dropped(_))) {
            sockets.look(at);
        }
        if let Some(connections) = &mut self.connections {
            connections.packet(at, event, direction, packet, Some(queues));
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
