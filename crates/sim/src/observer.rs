//! Watching a simulation without changing it.

use crate::Packet;
use farpath_path::{Direction, DropCause};
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

/// Told of every packet, and of every moment at which a data sender may have changed. Does nothing by itself.
pub trait Observer {
    /// Something happened to a packet that goes `direction` way over the path.
    fn packet(&mut self, _now: Instant, _event: PacketEvent, _direction: Direction, _packet: &Packet) {}
    /// A flow's data sender has been told something, and has sent what it could. `read` is what the receiving
    /// application has, `backlog` what waits in the path's longest queue in the data direction.
    fn state(&mut self, _now: Instant, _flow: u32, _sender: &Connection, _read: u64, _backlog: Option<Bytes>) {}
}

/// Watches nothing; costs nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {}
