//! Watching a simulation without changing it.

use crate::Packet;
use farpath_path::{Direction, DropCause, Path, PathElement};
use farpath_tcp::Connection;
use farpath_units::{Bytes, Instant};

/// What happened to a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketEvent {
    /// It left its sender.
    Sent,
    /// It reached the other end.
    Received,
    /// It was dropped on the way.
    Dropped(DropCause),
}

/// A flow as it is between two events.
#[derive(Debug, Clone, Copy)]
pub struct FlowView<'a> {
    /// Which flow, by number.
    pub number: u32,
    /// The data sender.
    pub sender: &'a Connection,
    /// The data receiver.
    pub receiver: &'a Connection,
    /// Bytes that the receiving application has read.
    pub bytes_read: u64,
    pub(crate) direction: Direction,
    pub(crate) path: &'a Path<Packet>,
}

impl FlowView<'_> {
    /// IP bytes that wait in the longest queue of the path, in this flow's data direction; `None` on a path without
    /// a queue.
    ///
    /// It is what waited just after the last packet, of whatever flow, was offered to that queue, without the packet
    /// being sent. A queue that drains is seen to have drained when the next packet comes: between packets the value
    /// is an upper bound. On a path of several stages a packet reaches a later queue when its hop is due.
    pub fn backlog(&self) -> Option<Bytes> {
        self.path.backlog(self.direction)
    }
}

/// Told of every packet, and of every moment at which a flow may have changed. Does nothing by itself.
///
/// `now` never goes backwards, but for a drop: where it happens further down the path, it is told when the packet
/// is sent, with the time at which it will happen.
///
/// ```
/// use farpath_sim::{FlowView, Observer};
/// use farpath_units::Instant;
///
/// struct LargestWindow(u64);
///
/// impl Observer for LargestWindow {
///     fn state(&mut self, _now: Instant, flow: FlowView<'_>) {
///         self.0 = self.0.max(flow.sender.sender().window().cwnd);
///     }
/// }
/// ```
pub trait Observer {
    /// Something happened to a packet that goes `direction` way over the path.
    fn packet(&mut self, _now: Instant, _event: PacketEvent, _direction: Direction, _packet: &Packet) {}
    /// Whether it is to be told of [`signal`](Observer::signal)s; asked once, before anything happens.
    fn wants_signals(&self) -> bool {
        false
    }
    /// The flow router `element` has let on a packet with QoS Structures at `now`, and this is how. It is told when the
    /// path is looked at next.
    fn signal(&mut self, _now: Instant, _element: &str, _direction: Direction, _packet: &Packet) {}
    /// One end of a flow has been told something, and has sent what it could.
    fn state(&mut self, _now: Instant, _flow: FlowView<'_>) {}
    /// It is over: the path as it was left, and how many events it took, as a [`Budget`](crate::Budget) counts them.
    fn end(&mut self, _now: Instant, _path: &Path<Packet>, _events: u64) {}
}

/// Watches nothing; costs nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {}
