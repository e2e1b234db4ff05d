//! When a grant is no longer believed: what is sent by it is lost, queues, or is marked.

use super::{DriverSettings, PathReport};
use farpath_units::{Duration, Instant};

/// Why a grant was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Trip {
    /// More is lost than the settings allow.
    Loss,
    /// A queue stands, and packets are lost: the grant is above what some router on the way has.
    Queue,
    /// A queue has marked packets: somebody on the way does not know of grants.
    Mark,
}

/// Packets lost beyond what is allowed, that trip it.
///
/// The paper's rule is a share, "typically 10 %", of no window. A mean over 200 packets has a spread of 2 % at 9 %: it would give up
/// sound grants. This counts what is lost beyond the threshold and a twentieth of it, never below zero (Page 1954): of 138 000
/// packets with 9 % lost one transfer in 250 gives up, and at 12 % it takes some 1700 packets, at 20 % 260, at half of them 60.
const EXCESS: i64 = 25;
/// Of a round trip with a queue: so much loss makes it count, in packets of a thousand.
const QUEUE_LOSS_PER_MILLE: u64 = 20;
/// So many such round trips.
const QUEUE_ROUNDS: u32 = 3;

/// What has been delivered and lost, since when.
#[derive(Debug, Clone)]
pub(super) struct Guard {
    allowed_per_mille: i64,
    queue_delay: Duration,
    last: PathReport,
    /// Bytes lost beyond what is allowed, in thousandths.
    excess: i64,
    round_began: Instant,
    round: PathReport,
    queued_rounds: u32,
    /// Bytes per second delivered in the last whole round trip.
    delivered_rate: u64,
}

impl Guard {
    pub fn new(settings: &DriverSettings) -> Guard {
        let threshold = i64::from(settings.loss_per_mille);
        Guard {
            allowed_per_mille: threshold + threshold / 20,
            queue_delay: settings.queue_delay,
            last: PathReport::default(),
            excess: 0,
            round_began: Instant::ZERO,
            round: PathReport::default(),
            queued_rounds: 0,
            delivered_rate: 0,
        }
    }

    /// A grant is in force from now on.
    pub fn restart(&mut self, now: Instant, report: &PathReport) {
        (self.last, self.round, self.round_began) = (*report, *report, now);
        (self.excess, self.queued_rounds, self.delivered_rate) = (0, 0, 0);
    }

    /// Bytes per second that arrived in the last round trip.
    pub fn delivered_rate(&self) -> u64 {
        self.delivered_rate
    }

    /// Looks at how things are. Whether the grant is to be given up.
    pub fn check(&mut self, now: Instant, report: &PathReport) -> Option<Trip> {
        let lost = report.lost.saturating_sub(self.last.lost);
        let delivered = report.delivered.saturating_sub(self.last.delivered);
        let marked = report.marks > self.last.marks;
        self.last = *report;
        let allowed = (i128::from(lost) + i128::from(delivered)) * i128::from(self.allowed_per_mille);
        let excess = i128::from(self.excess) + i128::from(lost) * 1000 - allowed;
        self.excess = i64::try_from(excess.max(0)).unwrap_or(i64::MAX);
        let queued = self.end_of_round(now, report);
        if marked {
            Some(Trip::Mark)
        } else if self.excess > EXCESS * 1000 * i64::try_from(report.smss).unwrap_or(i64::MAX / 1_000_000) {
            Some(Trip::Loss)
        } else {
            queued.then_some(Trip::Queue)
        }
    }

    fn end_of_round(&mut self, now: Instant, report: &PathReport) -> bool {
        let (Some(srtt), Some(min_rtt)) = (report.srtt, report.min_rtt) else { return false };
        let time = now.saturating_since(self.round_began);
        if time < srtt || time.is_zero() {
            return false;
        }
        let lost = report.lost.saturating_sub(self.round.lost);
        let delivered = report.delivered.saturating_sub(self.round.delivered);
        let rate = u128::from(delivered) * 1_000_000_000 / u128::from(time.as_nanos());
        self.delivered_rate = u64::try_from(rate).unwrap_or(u64::MAX);
        (self.round, self.round_began) = (*report, now);
        let queue = srtt.saturating_sub(min_rtt) > self.queue_delay.max(min_rtt / 4);
        let lossy = lost.saturating_mul(1000) > (lost + delivered).saturating_mul(QUEUE_LOSS_PER_MILLE);
        self.queued_rounds = if queue && lossy { self.queued_rounds + 1 } else { 0 };
        self.queued_rounds >= QUEUE_ROUNDS
    }
}
