//! What elements count.

use crate::{AirEnergy, AirTime, Direction, DropCause, StationCounts};
use core::any::Any;
use core::fmt;
use farpath_units::Bytes;
use std::sync::Arc;

/// Packets dropped, by cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DropCounts([u64; DropCause::ALL.len()]);

impl DropCounts {
    /// Counts one more.
    pub fn add(&mut self, cause: DropCause) {
        self.0[cause as usize] += 1;
    }

    /// Packets dropped for this cause.
    pub fn count_of(&self, cause: DropCause) -> u64 {
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
    /// What only elements of its kind count.
    pub own: Option<OwnFigures>,
}

/// Figures that only one kind of element has, such as what a flow router has decided. Who knows the kind knows the type.
#[derive(Clone)]
pub struct OwnFigures(Arc<dyn Figures>);

trait Figures: Any + fmt::Debug + Send + Sync {
    fn equals(&self, other: &dyn Any) -> bool;
}

impl<T: Any + fmt::Debug + PartialEq + Send + Sync> Figures for T {
    fn equals(&self, other: &dyn Any) -> bool {
        other.downcast_ref() == Some(self)
    }
}

impl OwnFigures {
    /// Of an element.
    pub fn new<T: Any + fmt::Debug + PartialEq + Send + Sync>(figures: T) -> OwnFigures {
        OwnFigures(Arc::new(figures))
    }

    /// The figures, where they are of this type.
    pub fn get<T: Any>(&self) -> Option<&T> {
        let any: &dyn Any = &*self.0;
        any.downcast_ref()
    }
}

impl PartialEq for OwnFigures {
    fn eq(&self, other: &OwnFigures) -> bool {
        let other: &dyn Any = &*other.0;
        self.0.equals(other)
    }
}

impl fmt::Debug for OwnFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl ElementCounters {
    /// The figures of elements of one kind; `None` for any other kind.
    pub fn own<T: Any>(&self) -> Option<&T> {
        self.own.as_ref()?.get()
    }
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
    /// What it took of the transceivers of the path, where it is known what they draw.
    pub energy: Option<AirEnergy>,
    /// Where there are other stations: the near one of the hop, the far one, and they.
    pub stations: Vec<StationCounts>,
}
