//! Round trips, from what leaves a host to the ACK of it.

use farpath_units::{DurationHistogram, Instant};
use std::collections::VecDeque;

/// Measures the round trips that a data sender sees: from when a segment leaves its host until the ACK that first covers it is back.
/// Of what an ACK covers the segment counts that left first, as in RFC 6298 and in Linux.
#[derive(Debug, Default)]
pub(super) struct RoundTrips {
    /// One past the last position of each segment that is not acknowledged, and when it left.
    in_flight: VecDeque<(u64, Instant)>,
    /// An ACK that covers something up to here may be of one sending or another (Karn, Partridge 1987), or have waited for a
    /// repair: it says nothing.
    unclear_to: u64,
    times: DurationHistogram,
}

impl RoundTrips {
    /// The stream up to `end` has left its host, or a part of it `again`.
    pub fn sent(&mut self, at: Instant, end: u64, again: bool) {
        if again {
            self.unclear_to = self.unclear_to.max(end);
        } else if self.in_flight.back().is_none_or(|&(last, _)| last < end) {
            self.in_flight.push_back((end, at));
        }
    }

    /// The sender learns that everything before `ack` has arrived.
    pub fn acked(&mut self, at: Instant, ack: u64) {
        let Some(&(first, sent)) = self.in_flight.front().filter(|&&(end, _)| end <= ack) else { return };
        if first > self.unclear_to {
            self.times.record(at.saturating_since(sent));
        }
        let covered = self.in_flight.partition_point(|&(end, _)| end <= ack);
        self.in_flight.drain(..covered);
    }

    /// What has been measured.
    pub fn times(&self) -> &DurationHistogram {
        &self.times
    }
}
