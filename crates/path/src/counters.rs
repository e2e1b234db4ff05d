//! What elements count.

use crate::{AirEnergy, AirTime, Direction, DropCause};
use farpath_tia1039::router::RouterCounters;
use farpath_units::Bytes;

/// Packets dropped, by cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DropCounts([u64; DropCause::ALL.len()]);

impl DropCounts {
    /// Counts one more.
    pub fn add(&mut self, cause: DropCause) {
        self.0[cause as usize] += 1;
    }

    /// Packets dropped for this cause.
    pub fn of(&self, cause: DropCause) -> u64 {
        self.0[cause as usize]
    }

    /// Packets dropped for any cause.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// What one element has counted in one direction: `offered + duplicated = delivered + dropped.total()`.
///
/// A packet counts when its fate is decided, which is when it is offered to the stage of the path that
/// the element belongs to; it may still be on its way then.
#[derive(Debug, Clone, PartialEq)]
pub struct ElementCounters {
    /// Of the element.
    pub name: String,
    /// Which way the packets went.
    pub direction: Direction,
    /// Packets that came in.
    pub offered: u64,
    /// Packets passed on, copies included.
    pub delivered: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Of those passed on, how many got their mark of congestion (CE) here.
    pub marked: u64,
    /// Packets that ended here.
    pub dropped: DropCounts,
    /// For a link.
    pub link: Option<LinkCounters>,
    /// For a flow router.
    pub router: Option<Box<RouterFigures>>,
}

/// What a flow router has decided in one direction, and how long its queues were.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RouterFigures {
    /// What it has decided.
    pub decided: RouterCounters,
    /// IP bytes that waited, averaged over the time from the first packet to the last.
    pub mean_backlog: f64,
    /// Their standard deviation over that time.
    pub backlog_deviation: f64,
}

/// What a link has counted in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkCounters {
    /// Bytes on the wire: accepted packets with their padding and framing.
    pub bytes_sent: Bytes,
    /// Most IP bytes that ever waited, without the packet being sent.
    pub max_backlog: Bytes,
}

/// What a channel of a radio has been used for.
#[derive(Debug, Clone, PartialEq)]
pub struct ChannelTime {
    /// Of the radios.
    pub name: String,
    /// Which of their hops, from 0 at the data sender's end.
    pub hop: usize,
    /// Which way, where each has a channel of its own.
    pub direction: Option<Direction>,
    /// The account.
    pub time: AirTime,
    /// What it took of the transceivers, where it is known what they draw.
    pub energy: Option<AirEnergy>,
}
