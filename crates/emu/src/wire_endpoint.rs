//! Our own TCP endpoint on the wire.
//!
//! Segments become IP packets and back by [`farpath_tcp::wire`], with complete checksums, so that the other end verifies
//! ours. Both ends write [`farpath_tcp::pattern`]; every byte that arrives is held against it.

use crate::WirePacket;
use farpath_tcp::wire::{self, IpFields, Packet};
use farpath_tcp::{Config, Connection, Endpoint, Flags, Seq, State, pattern};
use farpath_units::{Bytes, Instant, Rate};
use std::net::SocketAddr;

/// What the program at an endpoint does. It writes the pattern's bytes, and reads until the peer has closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Application {
    /// Bytes to write.
    pub write: Bytes,
    /// When it closes its half of the connection.
    pub close: CloseWhen,
    /// It reads nothing before.
    pub read_from: Instant,
    /// How fast it reads from then on; `None` reads all that there is at once.
    pub read_rate: Option<Rate>,
    /// Aborts the connection once it has read so many bytes.
    pub abort_after: Option<Bytes>,
}

impl Default for Application {
    fn default() -> Application {
        Application {
            write: Bytes::ZERO,
            close: CloseWhen::Written,
            read_from: Instant::ZERO,
            read_rate: None,
            abort_after: None,
        }
    }
}

/// When a program closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseWhen {
    /// As soon as it has written everything: it goes on reading, with its half closed.
    Written,
    /// When it has written everything and has read the peer's stream to its end.
    PeerClosed,
    /// When it has read so many bytes.
    Read(Bytes),
    /// Never.
    Never,
}

/// One connection's end that sends and receives IP packets, with its program. It owns no socket, no thread and no clock.
#[derive(Debug)]
pub struct WireEndpoint {
    connection: Connection,
    application: Application,
    local: SocketAddr,
    remote: Option<SocketAddr>,
    isn: Seq,
    peer_isn: Option<Seq>,
    /// Highest positions in the two streams, for sequence numbers to be unwrapped by.
    sent_up_to: u64,
    arrived_up_to: u64,
    unwritten: u64,
    /// Where reading is paced: how much of its rate's time has been used up.
    reads_at: Instant,
    /// Segments may be waiting to be polled.
    may_send: bool,
    next_id: u16,
    packet: Vec<u8>,
    seen: Seen,
}

/// What an endpoint has seen of what came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seen {
    /// Bytes that its program has read.
    pub read: Bytes,
    /// First place in the peer's stream where a byte was not the pattern's.
    pub mismatch: Option<u64>,
    /// Packets that were no sound TCP packet; checksums are verified where they are complete.
    pub malformed: u64,
    /// Packets of other connections or protocols.
    pub strays: u64,
    /// Payload bytes that arrived, again or for the first time.
    pub payload: Bytes,
}

/// Most of the stream that a program that reads at a rate takes at a time.
const READ_CHUNK: Bytes = Bytes(1000);

impl WireEndpoint {
    /// An end that opens the connection from `local` to `remote`, with `isn` as its initial sequence number.
    pub fn connect(
        config: &Config,
        isn: Seq,
        local: SocketAddr,
        remote: SocketAddr,
        application: Application,
    ) -> WireEndpoint {
        WireEndpoint::new(Connection::connect(config, isn), isn, local, Some(remote), application)
    }

    /// An end that waits at `local` for whoever opens a connection.
    pub fn listen(config: &Config, isn: Seq, local: SocketAddr, application: Application) -> WireEndpoint {
        WireEndpoint::new(Connection::listen(config, isn), isn, local, None, application)
    }

    fn new(
        connection: Connection,
        isn: Seq,
        local: SocketAddr,
        remote: Option<SocketAddr>,
        application: Application,
    ) -> WireEndpoint {
        WireEndpoint {
            connection,
            application,
            local,
            remote,
            isn,
            peer_isn: None,
            sent_up_to: 0,
            arrived_up_to: 0,
            unwritten: application.write.0,
            reads_at: application.read_from,
            may_send: true,
            next_id: 0,
            packet: Vec::new(),
            seen: Seen::default(),
        }
    }

    /// The connection as it is now.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// What came in so far.
    pub fn seen(&self) -> Seen {
        self.seen
    }

    /// Whether nothing but strays is to come, and nothing is to be read.
    pub fn is_over(&self) -> bool {
        self.connection.is_over() && !self.may_send && self.connection.readable() == 0
    }

    /// Aborts the connection: the peer gets a reset.
    pub fn abort(&mut self, now: Instant) {
        self.connection.abort(now);
        self.may_send = true;
    }

    /// When to poll again; `None` if only an arrival can change anything.
    pub fn next_due(&self) -> Option<Instant> {
        if self.may_send {
            return Some(Instant::ZERO);
        }
        Instant::earliest(self.connection.next_due(), self.next_read())
    }

    /// The next packet to send at `now`, its checksums complete; `None` if nothing is to be sent.
    ///
    /// # Errors
    /// A segment that fits no packet.
    pub fn poll_packet(&mut self, now: Instant) -> Result<Option<&[u8]>, wire::EncodeError> {
        if self.connection.next_due().is_some_and(|due| due <= now) {
            self.connection.on_timer(now);
        }
        self.run_application(now);
        self.may_send = self.next_packet(now)?;
        Ok(self.may_send.then_some(self.packet.as_slice()))
    }

    /// Counts bytes that are no packet at all.
    pub fn note_malformed(&mut self) {
        self.seen.malformed += 1;
    }

    /// Whether there is one, and makes it.
    fn next_packet(&mut self, now: Instant) -> Result<bool, wire::EncodeError> {
        let (Some(remote), Some(segment)) = (self.remote, self.connection.poll_segment(now)) else {
            return Ok(false);
        };
        let position = segment.seq.position(self.isn, self.sent_up_to).unwrap_or(0);
        self.sent_up_to = self.sent_up_to.max(position + segment.seq_len());
        let ip = IpFields { id: self.next_id, ttl: self.connection.ttl(), ..IpFields::default() };
        self.next_id = self.next_id.wrapping_add(1);
        self.packet.clear();
        // Position 0 is the SYN's.
        wire::encode(self.local, remote, &ip, &segment, position.saturating_sub(1), &mut self.packet)?;
        Ok(true)
    }

    /// Takes a packet that arrived at `now`.
    pub fn arrive(&mut self, now: Instant, packet: &WirePacket) {
        let Packet { source, destination, segment, payload, .. } = match packet.decode() {
            Ok(packet) => packet,
            Err(wire::DecodeError::NotTcp(_)) => {
                self.seen.strays += 1;
                return;
            }
            Err(_) => {
                self.seen.malformed += 1;
                return;
            }
        };
        let opens = segment.flags.contains(Flags::SYN) && self.connection.state() == State::Listen;
        if destination != self.local || !opens && self.remote.is_some_and(|remote| remote != source) {
            self.seen.strays += 1;
            return;
        }
        if opens || self.remote.is_none() {
            self.remote = Some(source);
        }
        if segment.flags.contains(Flags::SYN) {
            self.peer_isn = Some(segment.seq);
            self.arrived_up_to = 0;
        }
        self.verify(segment.seq, &packet.bytes()[payload]);
        self.connection.on_segment(now, &segment);
        self.run_application(now);
        self.may_send = true;
    }

    fn verify(&mut self, seq: Seq, payload: &[u8]) {
        let Some(peer_isn) = self.peer_isn.filter(|_| !payload.is_empty()) else { return };
        self.seen.payload += Bytes(payload.len() as u64);
        // Position 0 is the SYN's; nothing of the stream lies before.
        let Some(offset) =
            seq.position(peer_isn, self.arrived_up_to).and_then(|position| position.checked_sub(1))
        else {
            self.seen.mismatch.get_or_insert(0);
            return;
        };
        self.arrived_up_to = self.arrived_up_to.max(offset + 1 + payload.len() as u64);
        if let Some(place) = pattern::first_mismatch(offset, payload) {
            self.seen.mismatch.get_or_insert(place);
        }
    }

    fn run_application(&mut self, now: Instant) {
        if self.unwritten > 0 {
            self.unwritten -= self.connection.write(self.unwritten);
        }
        self.read(now);
        if self.application.abort_after.is_some_and(|bytes| self.seen.read >= bytes) {
            self.application.abort_after = None;
            self.connection.abort(now);
        }
        let closes = match self.application.close {
            CloseWhen::Written => true,
            CloseWhen::PeerClosed => self.connection.receiver().finished() && self.connection.readable() == 0,
            CloseWhen::Read(bytes) => self.seen.read >= bytes,
            CloseWhen::Never => false,
        };
        if self.unwritten == 0 && closes {
            self.connection.close();
        }
    }

    fn read(&mut self, now: Instant) {
        while let Some(due) = self.next_read()
            && due <= now
        {
            let most = if self.application.read_rate.is_some() { READ_CHUNK.0 } else { u64::MAX };
            let bytes = Bytes(self.connection.read(most));
            self.seen.read += bytes;
            if let Some(rate) = self.application.read_rate {
                self.reads_at = now.max(due) + rate.time_to_send(bytes);
            }
        }
    }

    /// When there is something that the program will read; `None` where nothing is there.
    fn next_read(&self) -> Option<Instant> {
        (self.connection.readable() > 0).then_some(self.reads_at)
    }
}
