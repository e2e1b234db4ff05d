//! Our own TCP endpoint as a host: it talks to a Linux kernel's over the same loop.

use crate::gso;
use crate::wire_endpoint::{Application, Seen, WireEndpoint};
use crate::{Frame, Port, Received, VirtioHeader, WirePacket};
use farpath_tcp::{Config, Connection, Seq, State};
use farpath_units::Instant;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One connection's end as a host. A clone is the same host: one goes into the emulator, one stays to ask.
#[derive(Debug, Clone)]
pub struct EndpointPort(Arc<Mutex<WireEndpoint>>);

impl EndpointPort {
    /// An end that opens the connection from `local` to `remote`, with `isn` as its initial sequence number.
    pub fn connect(
        config: &Config,
        isn: Seq,
        local: SocketAddr,
        remote: SocketAddr,
        application: Application,
    ) -> EndpointPort {
        EndpointPort::new(WireEndpoint::connect(config, isn, local, remote, application))
    }

    /// An end that waits at `local` for whoever opens a connection.
    pub fn listen(config: &Config, isn: Seq, local: SocketAddr, application: Application) -> EndpointPort {
        EndpointPort::new(WireEndpoint::listen(config, isn, local, application))
    }

    fn new(endpoint: WireEndpoint) -> EndpointPort {
        EndpointPort(Arc::new(Mutex::new(endpoint)))
    }

    /// The connection as it is now.
    pub fn connection(&self) -> Connection {
        self.endpoint().connection().clone()
    }

    /// RFC 9293's state of the connection.
    pub fn state(&self) -> State {
        self.endpoint().connection().state()
    }

    /// Whether nothing but strays is to come, and nothing is to be read.
    pub fn is_over(&self) -> bool {
        self.endpoint().is_over()
    }

    /// What came in so far.
    pub fn seen(&self) -> Seen {
        self.endpoint().seen()
    }

    /// Aborts the connection: the peer gets a reset.
    pub fn abort(&self, now: Instant) {
        self.endpoint().abort(now);
    }

    fn endpoint(&self) -> MutexGuard<'_, WireEndpoint> {
        // A panic elsewhere does not make the connection's state any less what it is.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Port for EndpointPort {
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn next_due(&self) -> Option<Instant> {
        self.endpoint().next_due()
    }

    fn receive(&mut self, now: Instant, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        let mut endpoint = self.endpoint();
        let packet =
            endpoint.poll_packet(now).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        Ok(packet.map(|packet| {
            buffer[..packet.len()].copy_from_slice(packet);
            Received { header: VirtioHeader::default(), frame: None, len: packet.len() }
        }))
    }

    fn send(
        &mut self,
        now: Instant,
        header: VirtioHeader,
        _: Option<Frame>,
        pieces: &[IoSlice<'_>],
    ) -> io::Result<()> {
        let mut endpoint = self.endpoint();
        let mut whole = Vec::with_capacity(pieces.iter().map(|piece| piece.len()).sum());
        pieces.iter().for_each(|piece| whole.extend_from_slice(piece));
        let intake = gso::split(header, &whole, |bytes, checksum| {
            endpoint.arrive(now, &WirePacket::new(bytes, checksum, 1));
        });
        if intake.packets == 0 {
            endpoint.note_malformed();
        }
        Ok(())
    }
}
