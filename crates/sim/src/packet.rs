//! A simulated IP packet: a segment and whose it is.

use farpath_path::{Direction, PathPacket};
use farpath_tcp::Segment;
use farpath_units::Bytes;

/// One of the two ends of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    /// The end that sends the transfer's data.
    Sender,
    /// The end that receives it.
    Receiver,
}

impl End {
    /// The other end.
    pub const fn peer(self) -> End {
        match self {
            End::Sender => End::Receiver,
            End::Receiver => End::Sender,
        }
    }

    /// The way over the path of what this end sends, where the flow's data goes `data` way.
    pub const fn sends(self, data: Direction) -> Direction {
        match self {
            End::Sender => data,
            End::Receiver => data.opposite(),
        }
    }
}

/// A segment on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// The flow, by number.
    pub flow: u32,
    /// Which end sent it.
    pub from: End,
    /// Its place among the packets that this end has sent, from 1. A copy that the network makes has its original's.
    pub number: u64,
    /// Whether its payload had been sent before.
    pub retransmission: bool,
    /// The segment itself, in an IPv4 packet without options.
    pub segment: Segment,
}

impl PathPacket for Packet {
    fn wire_size(&self) -> Bytes {
        self.segment.ipv4_size()
    }

    fn carries_data(&self) -> bool {
        self.segment.len > 0
    }

    fn mark_ce(&mut self) -> bool {
        self.segment.ecn.mark()
    }
}
