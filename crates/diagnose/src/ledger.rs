//! Who owns the time between two sends of new data.

use serde::Serialize;

/// What new data waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// The connection was being opened.
    Handshake,
    /// The congestion window, while it doubled or nearly so each round trip.
    SlowStart,
    /// A window of the sender's that it does not tell: the congestion window, or its send buffer.
    CongestionWindow,
    /// The sender's buffer, which holds less than the window lets out. A kernel tells; a capture alone does not.
    SendBuffer,
    /// The window that the receiver announced.
    ReceiveWindow,
    /// The same, where it announced none at all: its program does not read.
    ZeroWindow,
    /// Losses, from the first sign of one to its repair.
    Loss,
    /// The path: what was in flight stood in its queue.
    PathRate,
    /// The sender's own pace.
    Paced,
    /// The sending program had nothing to send.
    Application,
    /// A short segment was held until everything before it was acknowledged (Nagle's algorithm, RFC 9293 §3.7.4).
    Nagle,
    /// The last data was on its way, or its end.
    Closing,
    /// The capture does not tell.
    Unclear,
}

impl Limit {
    /// All of them, in their order.
    pub const ALL: [Limit; 13] = [
        Limit::Handshake,
        Limit::SlowStart,
        Limit::CongestionWindow,
        Limit::SendBuffer,
        Limit::ReceiveWindow,
        Limit::ZeroWindow,
        Limit::Loss,
        Limit::PathRate,
        Limit::Paced,
        Limit::Application,
        Limit::Nagle,
        Limit::Closing,
        Limit::Unclear,
    ];

    /// As tables spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Limit::Handshake => "handshake",
            Limit::SlowStart => "slow start",
            Limit::CongestionWindow => "congestion window",
            Limit::SendBuffer => "send buffer",
            Limit::ReceiveWindow => "receive window",
            Limit::ZeroWindow => "zero window",
            Limit::Loss => "loss",
            Limit::PathRate => "path rate",
            Limit::Paced => "pacing",
            Limit::Application => "application",
            Limit::Nagle => "Nagle's algorithm",
            Limit::Closing => "closing",
            Limit::Unclear => "unclear",
        }
    }
}

/// A wait for new data.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Moment {
    /// What most of it was spent on.
    pub limit: Limit,
    /// Since the connection's first packet, s.
    pub at_s: f64,
    /// For how long, s.
    pub time_s: f64,
    /// The frame with the new data that ended it; the last one where none did.
    pub frame: u64,
}

/// A stretch of time in which new data waited for one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Interval {
    /// What it waited for.
    pub limit: Limit,
    /// Since 1970, in ns.
    pub from_ns: u64,
    /// When it ended.
    pub to_ns: u64,
}

/// Intervals of a connection that are kept, where they are asked for.
pub const MAX_INTERVALS: usize = 1_000_000;

/// The longest waits that are kept.
const MOMENTS: usize = 10;

/// Time and bytes by limit.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger {
    /// Of each limit, at its place in [`Limit::ALL`].
    entries: [(u64, u64); Limit::ALL.len()],
    /// The shortest first.
    moments: Vec<(u64, Limit, u64, u64)>,
    /// Every interval, where somebody asks for them.
    pub intervals: Option<Vec<Interval>>,
}

impl Ledger {
    /// A wait from `from_ns` on is over: its parts, and what was sent behind it, which this limit has.
    pub fn enter(&mut self, from_ns: u64, parts: &[(u64, Limit)], of_bytes: Limit, bytes: u64, frame: u64) {
        let mut own = [0_u64; Limit::ALL.len()];
        let mut at = from_ns;
        for &(ns, limit) in parts {
            self.note(Interval { limit, from_ns: at, to_ns: at + ns });
            at += ns;
            self.entries[limit as usize].0 += ns;
            own[limit as usize] += ns;
        }
        self.entries[of_bytes as usize].1 += bytes;
        let total = at - from_ns;
        if total == 0 || self.moments.len() >= MOMENTS && self.moments[0].0 >= total {
            return;
        }
        if let Some((limit, _)) = Limit::ALL.into_iter().zip(own).max_by_key(|(_, ns)| *ns) {
            let place = self.moments.partition_point(|moment| moment.0 < total);
            self.moments.insert(place, (total, limit, from_ns, frame));
            if self.moments.len() > MOMENTS {
                self.moments.remove(0);
            }
        }
    }

    /// An interval; one that goes on where the last ended, with the same limit, is part of that.
    fn note(&mut self, interval: Interval) {
        let Some(intervals) = self.intervals.as_mut().filter(|_| interval.to_ns > interval.from_ns) else {
            return;
        };
        let full = intervals.len() >= MAX_INTERVALS;
        match intervals.last_mut() {
            Some(last) if last.limit == interval.limit && last.to_ns == interval.from_ns => {
                last.to_ns = interval.to_ns;
            }
            _ if full => {}
            _ => intervals.push(interval),
        }
    }

    /// Limits with their time in ns and bytes, the longest first.
    pub fn limits(&self) -> Vec<(Limit, u64, u64)> {
        let entries = Limit::ALL.into_iter().zip(self.entries);
        let mut limits: Vec<_> = entries.map(|(limit, (ns, bytes))| (limit, ns, bytes)).collect();
        limits.sort_by_key(|(limit, ns, _)| (core::cmp::Reverse(*ns), *limit));
        limits
    }

    /// The longest waits, the longest first, with times since `start_ns`.
    pub fn moments(&self, start_ns: u64) -> Vec<Moment> {
        let moment = |&(ns, limit, from_ns, frame): &(u64, Limit, u64, u64)| Moment {
            limit,
            at_s: from_ns.saturating_sub(start_ns) as f64 / 1e9,
            time_s: ns as f64 / 1e9,
            frame,
        };
        self.moments.iter().rev().map(moment).collect()
    }
}
