//! Watching an emulation without changing it.

use crate::WirePacket;
use farpath_path::{Direction, DropCause, PathElement};
use farpath_units::{Bytes, Instant};

/// What happened to a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketEvent {
    /// It came out of its host.
    Sent,
    /// It was handed to the other host.
    Received,
    /// The path dropped it.
    Dropped(DropCause),
    /// It was due at the other host, whose device refused it.
    Refused,
}

/// The queues of the path.
#[derive(Clone, Copy)]
pub struct Queues<'a>(pub(crate) &'a dyn PathElement<WirePacket>);

impl<'a> Queues<'a> {
    /// Those of `path`.
    pub fn in_path(path: &'a dyn PathElement<WirePacket>) -> Queues<'a> {
        Queues(path)
    }

    /// IP bytes that wait in the longest queue of this direction; `None` on a path without one. As in a simulation: what
    /// waited just after the last packet was offered, without the packet being sent.
    pub fn backlog(&self, direction: Direction) -> Option<Bytes> {
        self.0.backlog(direction)
    }

    /// Packets that are under way on the path, without one that is just being offered or handed over.
    pub fn held(&self) -> usize {
        self.0.held()
    }
}

/// Told of every packet. What it does costs the emulation time.
///
/// `at` is the time of what happened: when the packet was taken from its host, or handed over, or when the path drops
/// it, which in a chain can be later than the packet before. Beside drops it never goes backwards.
pub trait Recorder {
    /// Something happened to a packet that goes `direction`.
    fn packet(
        &mut self,
        at: Instant,
        event: PacketEvent,
        direction: Direction,
        packet: &WirePacket,
        queues: Queues<'_>,
    );
}

/// Watches nothing; costs nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoRecorder;

impl Recorder for NoRecorder {
    fn packet(&mut self, _: Instant, _: PacketEvent, _: Direction, _: &WirePacket, _: Queues<'_>) {}
}
