//! What controllers that steer by the rate of delivery are told at each ACK, and what they ask for.

use crate::scoreboard::{Excess, Measured};
use farpath_units::{Duration, Instant};

/// Where loss recovery stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Repair {
    /// Nothing is being repaired.
    #[default]
    None,
    /// Fast recovery.
    Fast,
    /// The repair after a timeout.
    Timeout,
}

/// An ACK, as a controller that steers by the rate sees it. Amounts are in bytes.
#[derive(Debug, Clone, Copy)]
pub struct RateSample {
    /// When.
    pub now: Instant,
    /// The rate that it measures, where it delivers something.
    pub measured: Option<Measured>,
    /// All that has been delivered.
    pub delivered: u64,
    /// When something was last delivered.
    pub delivered_at: Instant,
    /// What this ACK delivers, cumulatively or by SACK.
    pub acked: u64,
    /// What was declared lost with it, and since the connection began.
    pub lost: u64,
    /// See [`RateSample::lost`].
    pub lost_ever: u64,
    /// The first segment declared lost since the ACK before by which more was lost than BBR's threshold.
    pub excess: Option<Excess>,
    /// Whether `cwnd` has kept the sender from sending more in this window of data.
    pub cwnd_limited: bool,
    /// The RTT of the segment that was sent last, of those delivered that were sent once.
    pub rtt: Option<Duration>,
    /// Smoothed RTT.
    pub srtt: Option<Duration>,
    /// In the network: before this ACK, and now.
    pub pipe_before: u64,
    /// See [`RateSample::pipe_before`].
    pub pipe: u64,
    /// Where recovery stands once the ACK has been taken.
    pub repair: Repair,
    /// Pacing lets nothing go before.
    pub next_departure: Instant,
}

/// A burst is what the rate sends in a second, by 2 to this: about a millisecond (`sk_pacing_shift`).
const BURST_SHIFT: u32 = 10;
/// The longest burst, bytes (`sk_gso_max_size`).
pub(crate) const LONGEST_BURST: u64 = 65_536;
/// The shorter the path, the longer a burst may be: by half for each so many microseconds, as a power of two
/// (`tcp_tso_rtt_log`).
const BURST_RTT_LOG: u32 = 9;

/// Bytes by which a burst may be longer over a path of this round trip.
pub(super) fn short_path_bonus(min_rtt: Duration) -> u64 {
    let halvings = (min_rtt.as_nanos() / 1000) >> BURST_RTT_LOG;
    if halvings < 32 { LONGEST_BURST >> halvings } else { 0 }
}

/// How segments are to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Bytes per second: of payload, as Linux's internal pacing counts, and of `overhead`. Zero holds nothing back
    /// (`tcp_update_skb_after_send()`).
    pub bytes_per_s: u64,
    /// Bytes that count for each segment beside its payload.
    pub overhead: u64,
    /// Segments that leave together, at least and at most, whatever a millisecond's worth is.
    pub least_burst: u64,
    /// See [`Pace::least_burst`].
    pub most_burst: u64,
    /// So many segments of a connection are not paced: the one with this number is the first that is.
    pub unpaced: u64,
}

impl Pace {
    /// As Linux's internal pacing has it: two segments together at least (`tcp_min_tso_segs`), the first nine of a
    /// connection at once.
    pub const fn from_bytes_per_s(bytes_per_s: u64) -> Pace {
        Pace { bytes_per_s, overhead: 0, least_burst: 2, most_burst: u64::MAX, unpaced: 10 }
    }

    /// Segments of `smss` bytes that leave together at most: a millisecond's worth, and what a short path adds (`tcp_tso_autosize()`).
    pub fn burst(self, smss: u64, min_rtt: Duration) -> u64 {
        let bytes = (self.bytes_per_s >> BURST_SHIFT) + short_path_bonus(min_rtt);
        (bytes.min(LONGEST_BURST) / smss).max(self.least_burst).min(self.most_burst)
    }

    /// How long the pace takes for a segment of `len` bytes.
    pub fn time_to_send(self, len: u64) -> Duration {
        let ns = (u128::from(len + self.overhead) * 1_000_000_000).checked_div(self.bytes_per_s.into());
        Duration::from_nanos(u64::try_from(ns.unwrap_or(0)).unwrap_or(u64::MAX))
    }
}
