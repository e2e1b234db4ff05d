//! What the driver is told.

use farpath_explicit_rate::{EXCESS, QUEUE_LOSS_PER_MILLE, QUEUE_ROUNDS};
use farpath_tia1039::{BurstTolerance, Priority, QosVersion, RateType};
use farpath_units::{Bytes, Duration};

/// How requests are made, when a grant is no longer believed, and what comes then. Of all devices alike.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// What kind of rate is asked for: any but a composite one.
    pub rate_type: RateType,
    /// Who is preempted last.
    pub preemption: Priority,
    /// Who waits least.
    pub delay: Priority,
    /// For how long the rate may be exceeded.
    pub burst: BurstTolerance,
    /// What M is.
    pub version: QosVersion,
    /// So many routers must have marked a grant for it to be one; version 1 tells one from none.
    pub min_routers: u8,
    /// Data packets after which the rate is asked for again; a round trip must have passed as well.
    pub packets_between: u32,
    /// When a grant is given up.
    pub guard: Guard,
    /// Congestion control of sockets that never had a grant.
    pub plain: String,
    /// Congestion control of those that have given one up.
    pub fallback: String,
    /// Send and receive buffers of sockets with a grant.
    pub buffers: Buffers,
    /// A SYN/ACK is followed by an ACK with all of the window that TCP has set aside, where that is more than a SYN/ACK can say.
    pub early_window: bool,
}

/// How large the buffers of a socket with a grant are. Neither way gives more than `net.core.wmem_max` and `rmem_max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Buffers {
    /// As the kernel and the program have them.
    Untouched,
    /// What the rate needs over the round trip while losses up to the guard's limit are repaired, where that is more than TCP makes of
    /// them by itself, and the program has not set them.
    Sized,
    /// `SO_SNDBUF` and `SO_RCVBUF`, whatever the program has set.
    Fixed(Bytes),
}

/// When a grant is no longer believed.
#[derive(Debug, Clone, PartialEq)]
pub struct Guard {
    /// Packets lost of a thousand that a sound grant may meet.
    pub loss_per_mille: u32,
    /// So many lost too many trip it.
    pub excess: u32,
    /// A queue of so much, or of a quarter of the smallest RTT where that is more,
    pub queue: Duration,
    /// with more than so many packets lost of a thousand,
    pub queue_loss_per_mille: u32,
    /// for so many round trips, trips it too.
    pub queue_rounds: u32,
}

impl Default for Guard {
    fn default() -> Guard {
        Guard {
            loss_per_mille: 100,
            excess: EXCESS,
            queue: Duration::from_millis(25),
            queue_loss_per_mille: QUEUE_LOSS_PER_MILLE,
            queue_rounds: QUEUE_ROUNDS,
        }
    }
}

impl Settings {
    /// As the standard and its paper say, with one congestion control where there is no grant, or none any more.
    pub fn new(plain: impl Into<String>) -> Settings {
        let plain = plain.into();
        Settings {
            rate_type: RateType::Available,
            preemption: Priority::MIDDLE,
            delay: Priority::MIDDLE,
            burst: BurstTolerance::default(),
            version: QosVersion::Marking,
            min_routers: 1,
            packets_between: 128,
            guard: Guard::default(),
            fallback: plain.clone(),
            plain,
            buffers: Buffers::Untouched,
            early_window: false,
        }
    }
}
