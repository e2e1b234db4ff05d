//! What a router knows of one flow.

use crate::{BurstTolerance, Priority, RateType, RateWord};
use farpath_units::{Duration, Instant};

/// Whose a packet is, the same both ways. Addresses, ports and protocol of IPv4 fit in as they are; of IPv6 it is a
/// keyed hash of them, of which two are the same once in 2^64 flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey(pub [u8; 16]);

impl From<u128> for FlowKey {
    fn from(number: u128) -> FlowKey {
        FlowKey(number.to_be_bytes())
    }
}

/// No flow, in a list.
pub(super) const NOBODY: u32 = u32::MAX;

/// The state of a flow in one direction. It is what limits how many there can be: 96 bytes, and 5 to 10 more in the index.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flow {
    pub key: FlowKey,
    /// Its last packet.
    pub last_seen: Instant,
    /// Policing: when a sender that always sent at its rate would be done with what it has sent.
    pub sent_until: Instant,
    /// When it was last told to have less.
    pub lowered_at: Instant,
    /// Since when `measured_bytes` counts.
    pub measured_since: Instant,
    pub measured_bytes: u32,
    /// Its own sequence number, the furthest that it has shown, with NUMBERED.
    pub seq: u32,
    /// With ANSWERED: the sequence number behind the packet that brought its first answer; with SEEN the furthest that it has acknowledged.
    pub acknowledged: u32,
    /// Neighbours in the list of its priority, if it has a guarantee.
    pub older: u32,
    pub newer: u32,
    /// The next one in a bucket of the timers.
    pub timer_next: u32,
    /// AR as it was asked for.
    pub requested: RateWord,
    /// AR as it was last told.
    pub granted: RateWord,
    /// AR that is kept for it: more than it was granted until it is known to have slowed down.
    pub reserved: RateWord,
    /// AR at which it is policed: for a while what it had before a cut.
    pub policed: RateWord,
    /// What it can use, where another router or its own program limits it; zero where nothing does.
    pub elsewhere: RateWord,
    /// GR that is kept for it.
    pub guaranteed: RateWord,
    /// GR that it was told, and that is kept for it once it has shown that it got the answer.
    pub promised: RateWord,
    pub preemption: Priority,
    pub delay: Priority,
    pub rate_type: RateType,
    pub burst: BurstTolerance,
    pub weight: u8,
    /// How often it was told of its last cut.
    pub told: u8,
    pub flags: u16,
}

/// It has no guarantee any more, and was not told yet.
pub(super) const PREEMPTED: u16 = 1;
/// A FIN went this way.
pub(super) const FIN_SENT: u16 = 1 << 1;
/// A FIN came back.
pub(super) const FIN_SEEN: u16 = 1 << 2;
/// It was cut, and neither has its answer passed for long enough nor was it waited for long enough.
pub(super) const LOWERED: u16 = 1 << 3;
/// `elsewhere` is by what it was seen to use.
pub(super) const MEASURED: u16 = 1 << 4;
/// The receiver pays: kept and reported, nothing else.
pub(super) const REVERSE_CHARGING: u16 = 1 << 5;
/// It is forgotten; its slot waits for its timer, and for its cut.
pub(super) const GONE: u16 = 1 << 6;
/// It has asked, and has shown neither that it has seen the answer nor sent much: anybody can make up such a request.
pub(super) const UNPROVEN: u16 = 1 << 7;
/// An answer to it has passed.
pub(super) const ANSWERED: u16 = 1 << 8;
/// A packet of it has acknowledged what came with the answer: its guarantees count.
pub(super) const SEEN: u16 = 1 << 9;
/// Intervals in a row in which it used less than 0.8 of its grant, up to three.
const LOW_INTERVALS: u16 = 3 << LOW_INTERVALS_AT;
const LOW_INTERVALS_AT: u32 = 10;
/// Its packets show sequence numbers.
pub(super) const NUMBERED: u16 = 1 << 12;
/// It has sent much by a promise without having shown that an answer came: none is made to it any more.
pub(super) const UNSEEN: u16 = 1 << 14;
/// It stands among the cuts that are waited for.
pub(super) const AWAITED: u16 = 1 << 13;

const _: () = assert!(size_of::<Flow>() <= 96, "a million flows fit in 128 bytes each, their index included");

impl Flow {
    /// One that has just been heard of, and has nothing.
    pub fn new(key: FlowKey, now: Instant) -> Flow {
        Flow {
            key,
            last_seen: now,
            sent_until: Instant::ZERO,
            lowered_at: Instant::ZERO,
            measured_since: now,
            measured_bytes: 0,
            seq: 0,
            acknowledged: 0,
            older: NOBODY,
            newer: NOBODY,
            timer_next: NOBODY,
            requested: RateWord::ZERO,
            granted: RateWord::ZERO,
            reserved: RateWord::ZERO,
            policed: RateWord::ZERO,
            elsewhere: RateWord::ZERO,
            guaranteed: RateWord::ZERO,
            promised: RateWord::ZERO,
            preemption: Priority::LOWEST,
            delay: Priority::LOWEST,
            rate_type: RateType::Available,
            burst: BurstTolerance::default(),
            weight: 1,
            told: 0,
            flags: 0,
        }
    }

    pub fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    pub fn set(&mut self, flag: u16) {
        self.flags |= flag;
    }

    pub fn clear(&mut self, flag: u16) {
        self.flags &= !flag;
    }

    /// Intervals in a row in which it used less than 0.8 of its grant, up to three.
    pub fn low_intervals(&self) -> u16 {
        (self.flags & LOW_INTERVALS) >> LOW_INTERVALS_AT
    }

    /// One more interval in which it did, or the first in which it used more.
    pub fn count_interval(&mut self, low: bool) {
        let intervals = if low { (self.low_intervals() + 1).min(3) } else { 0 };
        self.flags = self.flags & !LOW_INTERVALS | intervals << LOW_INTERVALS_AT;
    }

    /// GR that it may send at, kept for it or not.
    pub fn told_guarantee(&self) -> u64 {
        self.guaranteed.units() + self.promised.units()
    }

    /// Polices it at a higher rate. What it has sent ahead of its rate is a number of bytes: at the new one they take less
    /// time. Without this a newcomer that was raised from a trickle would be held to the trickle for a while.
    pub fn police_faster(&mut self, now: Instant, rate: RateWord) {
        let (before, after) =
            (self.policed.units() + self.told_guarantee(), rate.units() + self.told_guarantee());
        let ahead = self.sent_until.saturating_since(now).as_nanos();
        if after > before {
            let ahead = u128::from(ahead) * u128::from(before) / u128::from(after);
            self.sent_until = self.sent_until.min(now + Duration::from_nanos(ahead as u64));
        }
        self.policed = rate;
    }

    /// What it wants of the shared capacity, in units: no more than it can use.
    pub fn demand(&self) -> u64 {
        match (self.requested.units(), self.elsewhere.units()) {
            (requested, 0) => requested,
            (requested, elsewhere) => requested.min(elsewhere),
        }
    }
}
