//! Reno or CUBIC at large windows: from loss to loss, for a file of any length, with a queue that may overflow.
//!
//! Derived here. Growth between losses is RFC 5681's or RFC 9438's taken as a continuous function; that losses come
//! after a geometric number of segments, whatever the window is, makes a recursion over what is left of the file.
//! `docs/models/epochs.md` has it in full, and what it was checked against.

mod growth;
mod recursion;
#[cfg(test)]
mod tests;

use crate::estimate::above_zero;
use crate::{Estimate, InputError};
use farpath_units::{Duration, Probability};
use growth::Net;

const RENO: &str = "loss epochs: RFC 5681, geometric spacing of losses";
const CUBIC: &str = "loss epochs: RFC 9438, geometric spacing of losses";

/// RFC 9438 section 5: C, in segments per second cubed.
const C: f64 = 0.4;
/// RFC 9438 section 4.6: what CUBIC keeps of its window after a loss.
const BETA: f64 = 0.7;

/// A mean window, in segments, below which timeouts rule and this model knows too little of them.
pub const SMALLEST_MEAN_WINDOW: f64 = 8.0;

/// Mean window of CUBIC, in segments, at evenly spaced losses: `(C (3 + beta) / (4 (1 - beta)))^(1/4) (RTT / p)^(3/4)`,
/// RFC 9438 section 5.1. Infinite without loss.
pub fn cubic_mean_window(rtt: Duration, loss: Probability) -> f64 {
    libm::pow(C * (3.0 + BETA) / (4.0 * (1.0 - BETA)), 0.25)
        * libm::pow(rtt.as_secs_f64() / loss.fraction(), 0.75)
}

/// A transfer, from the first data segment on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LossEpochs {
    /// Segments of the file.
    pub segments: f64,
    /// A round of a window that leaves the links idle.
    pub round: Duration,
    /// Spacing that the slowest link puts between segments: a round of `w` takes at least `w` of these.
    pub spacing: Duration,
    /// Segments that wait before that link, at most; `None` where nothing limits them.
    pub queue: Option<f64>,
    /// Segments that wait there when the queue begins to mark (ECN); `None` where it does not.
    pub mark: Option<f64>,
    /// The most that may be unacknowledged, in segments.
    pub window: f64,
    /// Loss rate of data segments.
    pub loss: Probability,
    /// The beginning.
    pub slow_start: SlowStart,
    /// Growth between losses.
    pub avoidance: Avoidance,
    /// What losses cost.
    pub repair: Repair,
}

/// Until the first loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlowStart {
    /// Initial window, in segments.
    pub initial_window: f64,
    /// Initial slow start threshold, in segments; may be infinite.
    pub threshold: f64,
    /// What a round multiplies the window by: 2, or 1.5 where delayed ACKs count once.
    pub factor: f64,
    /// HyStart++ (RFC 9406) may end it before a loss does.
    pub hystart: bool,
}

/// Congestion avoidance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Avoidance {
    /// Halves, then grows by so many segments a round: 1, or 1/2 where delayed ACKs count once.
    Reno {
        /// Segments.
        per_round: f64,
    },
    /// RFC 9438.
    Cubic {
        /// Section 4.7.
        fast_convergence: bool,
    },
}

/// What losses cost beside the window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Repair {
    /// All holes of a window in one round (SACK). Else a round for each, or the timeout where that is shorter.
    pub together: bool,
    /// The window at the end of a recovery is no more than what is in flight then (RFC 6582 section 3.2 step 3).
    pub deflates: bool,
    /// What a retransmission that is lost waits for.
    pub lost_again: Duration,
}

/// What a transfer takes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Transfer {
    /// From the first segment sent to the last, in seconds, repairs included.
    pub seconds: f64,
    /// Times that the window was reduced for a loss.
    pub reductions: f64,
    /// Segments that the queue had no room for.
    pub overflowed: f64,
}

impl LossEpochs {
    /// Mean time of the transfer.
    ///
    /// Domain: independent losses of data, no loss of ACKs, one flow, a mean window of [`SMALLEST_MEAN_WINDOW`]
    /// segments or more. Timeouts come only from retransmissions that are lost again.
    pub fn transfer(&self) -> Result<Estimate<Transfer>, InputError> {
        above_zero("the round-trip time", self.round.as_nanos())?;
        above_zero("the window", self.window as u64)?;
        above_zero("the initial window", self.slow_start.initial_window as u64)?;
        let source = match self.avoidance {
            Avoidance::Reno { .. } => RENO,
            Avoidance::Cubic { .. } => CUBIC,
        };
        let transfer = recursion::solve(self);
        let mean_window =
            self.segments * self.round.as_secs_f64() / transfer.seconds.max(self.round.as_secs_f64());
        Ok(Estimate::new(transfer, source)
            .caveat_if(transfer.reductions > 1.0 && mean_window < SMALLEST_MEAN_WINDOW, || {
                format!("the mean window is {mean_window:.1} segments: timeouts that three duplicate ACKs do not prevent are left out")
            })
            .caveat_if(!self.repair.together && transfer.overflowed > 1.0, || {
                format!("about {:.0} segments overflow the queue, and without SACK each is repaired by itself: the time may be off by a factor of four", transfer.overflowed)
            }))
    }

    /// The same file with nothing lost, a queue without end and [`crate::lossless`]'s slow start, one SMSS per ACK: what
    /// the two differ by is what this model adds to that exact walk.
    pub fn as_walked(&self, ack_every: u64) -> LossEpochs {
        let factor = 1.0 + 1.0 / ack_every.max(1) as f64;
        let slow_start = SlowStart { hystart: false, factor, ..self.slow_start };
        LossEpochs { loss: Probability::ZERO, queue: None, mark: None, slow_start, ..*self }
    }

    /// Whether the queue overflows, or marks, at some window that the sender may reach, be it within a slow start only.
    pub fn can_overflow(&self) -> bool {
        let net = Net::new(self);
        let most = self.window.min(self.segments);
        most > net.full || (self.slow_start.threshold >= net.slow_start_full && most > net.slow_start_full)
    }

    fn beta(&self) -> f64 {
        match self.avoidance {
            Avoidance::Reno { .. } => 0.5,
            Avoidance::Cubic { .. } => BETA,
        }
    }
}
