//! What a loop can say of itself.

use crate::{Lateness, MalformedCounts};
use farpath_path::{ChannelTime, ElementCounters, PerDirection};
use farpath_units::{Bytes, Duration};
use std::collections::BTreeMap;
use std::io;

/// How the loop did, and what it counted.
#[derive(Debug, Clone, Default)]
pub struct LoopReport {
    /// From when packets were due to when they were handed over.
    pub lateness: PerDirection<Lateness>,
    /// Packets on the path.
    pub packets: PerDirection<PacketCounts>,
    /// What each element of the path has counted.
    pub elements: Vec<ElementCounters>,
    /// What the air of radios was used for.
    pub air: Vec<ChannelTime>,
    /// What came out of hosts and was not as it should be.
    pub malformed: PerDirection<MalformedCounts>,
    /// Packets of another protocol than TCP; they went over the path too.
    pub other_protocols: PerDirection<u64>,
    /// What devices said of packets that they refused: error code to how often.
    pub send_errors: BTreeMap<i32, u64>,
    /// Most memory that packets took up at once.
    pub peak_held: Bytes,
    /// Packets still under way when the loop was stopped.
    pub left_under_way: usize,
    /// Whether the loop ran before all ordinary programs.
    pub realtime: RealtimeGrant,
    /// From the loop's beginning to its end.
    pub elapsed: Duration,
    /// Processor time of the loop's thread, of that.
    pub cpu_time: Duration,
}

/// Packets that went one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PacketCounts {
    /// Offered to the path: wire packets, after super-packets were split.
    pub offered: u64,
    /// Taken from the sending host: packets and super-packets.
    pub taken: u64,
    /// Handed to the receiving host: wire packets.
    pub delivered: u64,
    /// Calls that handed them over; fewer than packets where they were coalesced.
    pub handed_over: u64,
    /// Dropped by the path.
    pub dropped: u64,
    /// Refused by the receiving host's device.
    pub refused: u64,
}

/// Whether real-time scheduling was had.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum RealtimeGrant {
    /// It was not asked for.
    #[default]
    NotAsked,
    /// The loop had it.
    Granted,
    /// It was refused, for this reason, and the loop ran without.
    Refused(String),
}

impl RealtimeGrant {
    pub(crate) fn refused(error: &io::Error) -> RealtimeGrant {
        RealtimeGrant::Refused(format!(
            "SCHED_FIFO: {error}: run as root, or allow it (`ulimit -r 20`, CAP_SYS_NICE)"
        ))
    }
}
