//! The packets of programs of the user: a capture, and whose they are.

use super::connections::{Connections, Found};
use super::held::HostSockets;
use crate::EmulateError;
use farpath_emu::{PacketEvent, Queues, Recorder, WirePacket};
use farpath_observe::capture::Capture;
use farpath_observe::recorder::on_path;
use farpath_path::Direction;
use farpath_sim::End;
use farpath_units::Instant;
use std::io::{self, Write};
use std::net::SocketAddr;

/// Watches all packets of the path.
pub(super) struct ProgramRecorder<W> {
    capture: Option<Capture<W>>,
    connections: Option<Connections>,
    sockets: Option<AtPackets>,
}

/// Sockets that are looked at when their packets pass, and not before some time has passed since the last look: a look at a time of
/// its own would end a jump of a clock in virtual time.
struct AtPackets {
    hosts: [HostSockets; 2],
    /// By the numbers of the connections, when they are looked at again.
    due: Vec<Instant>,
    failed: io::Result<()>,
}

impl<W: Write> ProgramRecorder<W> {
    /// Writes them into a capture, where there is one.
    pub fn new(capture: Option<Capture<W>>) -> ProgramRecorder<W> {
        ProgramRecorder { capture, connections: None, sockets: None }
    }

    /// Tells their connections apart, too.
    pub fn with_connections(self, connections: Connections) -> ProgramRecorder<W> {
        ProgramRecorder { connections: Some(connections), ..self }
    }

    /// Looks at these sockets when packets pass.
    pub fn with_sockets(self, hosts: Option<[HostSockets; 2]>) -> ProgramRecorder<W> {
        ProgramRecorder {
            sockets: hosts.map(|hosts| AtPackets { hosts, due: Vec::new(), failed: Ok(()) }),
            ..self
        }
    }

    /// Ends the capture. Gives the connections, and how many packets were sent beside those.
    pub fn finish(self) -> Result<(Vec<Found>, u64), EmulateError> {
        self.capture.map_or(Ok(()), Capture::finish)?;
        let (mut found, unlisted) = self.connections.map(Connections::finish).unwrap_or_default();
        if let Some(AtPackets { hosts, failed, .. }) = self.sockets {
            failed.map_err(EmulateError::Sockets)?;
            HostSockets::enter(hosts, &mut found);
        }
        Ok((found, unlisted))
    }
}

impl AtPackets {
    fn look(&mut self, at: Instant, number: usize, [near, far]: [SocketAddr; 2]) {
        if self.due.len() <= number {
            self.due.resize(number + 1, Instant::ZERO);
        }
        if at >= self.due[number] && self.failed.is_ok() {
            let [near_host, far_host] = &mut self.hosts;
            self.due[number] = at + near_host.every();
            self.failed = near_host.look_at(near, far, at).and_then(|()| far_host.look_at(far, near, at));
        }
    }
}

impl<W: Write> Recorder for ProgramRecorder<W> {
    fn packet(
        &mut self,
        at: Instant,
        event: PacketEvent,
        direction: Direction,
        packet: &WirePacket,
        queues: Queues<'_>,
    ) {
        if let Some(connections) = &mut self.connections {
            let number = connections.packet(at, event, direction, packet, Some(queues));
            // A drop may be told ahead of its time.
            if !matches!(event, PacketEvent::Dropped(_))
                && let Some(sockets) = &mut self.sockets
                && let Some(number) = number
                && let Some(ends) = connections.ends(number)
            {
                sockets.look(at, number, ends);
            }
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
