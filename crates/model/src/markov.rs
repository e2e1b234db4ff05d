//! Reno with independent losses in both directions, as a Markov chain over rounds, solved numerically.
//!
//! In the spirit of J. Padhye, V. Firoiu, D. Towsley, "A Stochastic Model of TCP Reno Congestion Avoidance and
//! Control", CMPSCI TR 99-02, University of Massachusetts, 1999: the window at the start of a round is the state.
//! The transitions are derived here, from the algorithms (RFC 5681, 6298, 6582): that report takes the rest of a
//! round behind a loss as lost and no ACK as lost. They are written down in `docs/models/markov.md`.

mod burst;
mod chain;
mod pass;
mod timer;

use crate::estimate::above_zero;
use crate::{Estimate, InputError};
use chain::Chain;
use farpath_units::{Duration, Probability};

const SOURCE: &str = "Markov chain over rounds, after Padhye, Firoiu, Towsley, UMass TR 99-02, 1999";

/// The largest window that the chain is solved for, in segments: 50 ms of work. Above it, [`crate::epochs`].
pub const LARGEST_WINDOW: u64 = 256;

/// A long flow with independent losses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RenoChain {
    /// The most that may be unacknowledged, in segments.
    pub window: u64,
    /// A round of a window that leaves the links idle: propagation, serialization, the wait for a second segment.
    pub round: Duration,
    /// Spacing that the slowest link puts between segments: a round of `w` takes at least `w` of these.
    pub spacing: Duration,
    /// Loss rate of data segments.
    pub data_loss: Probability,
    /// Loss rate of ACKs.
    pub ack_loss: Probability,
    /// Segments per ACK.
    pub ack_every: u64,
    /// How long the receiver waits for a segment that does not come.
    pub delayed_ack_timeout: Duration,
    /// How the window grows and shrinks.
    pub congestion: Congestion,
    /// How losses are repaired.
    pub repair: Repair,
    /// When what is not repaired times out.
    pub timer: Timer,
}

/// Window rules (RFC 5681 section 3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Congestion {
    /// Segments per ACK in slow start, at most: 1, or 2 (RFC 3465 with L = 2), or as many as there are.
    pub slow_start_limit: u64,
    /// Congestion avoidance counts ACKs (`SMSS^2 / cwnd` each), or else bytes.
    pub avoidance_per_ack: bool,
    /// `ssthresh` is half of the window in whole segments (4.3BSD), or else half of the flight.
    pub whole_segments: bool,
    /// A timeout of what had timed out before lowers `ssthresh` again.
    pub lower_on_repeat: bool,
}

/// What repairs a loss before the timer does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// Nothing.
    TimeoutOnly,
    /// Fast retransmit, then slow start from one segment.
    Tahoe,
    /// Fast recovery that the first new ACK ends. `guarded`: no second one for the same window (RFC 6582 section 3.2 step 1).
    Reno {
        /// Whether the guard is there.
        guarded: bool,
    },
    /// A hole per round until all are filled (RFC 6582).
    NewReno,
    /// All holes in one round: NewReno without its extra rounds, an approximation of RFC 6675.
    Sack,
}

/// Loss detection by duplicate ACKs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repair {
    /// The algorithm.
    pub recovery: Recovery,
    /// Duplicate ACKs that mean loss.
    pub dup_ack_threshold: u64,
    /// New segments on the first two duplicate ACKs (RFC 3042).
    pub limited_transmit: bool,
}

/// Retransmission timer (RFC 6298).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timer {
    /// The timeout with a steady RTT, floor included, rounding to ticks not.
    pub rto: Duration,
    /// Ceiling of the back-off.
    pub max: Duration,
    /// The timer expires at multiples of this; zero is exact.
    pub tick: Duration,
    /// Largest back-off as a power of two.
    pub max_backoff_exponent: u32,
    /// The back-off lasts until a segment sent once has been timed (Karn), or else until any new ACK.
    pub kept_until_sample: bool,
}

/// What a segment costs in the long run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PerSegment {
    /// Time, in seconds.
    pub seconds: f64,
    /// Expirations of the timer.
    pub timeouts: f64,
    /// Transmissions after the first, needed or not.
    pub retransmissions: f64,
    /// Fast retransmits.
    pub fast_retransmits: f64,
}

impl RenoChain {
    /// The largest window that the flow comes to, in segments: its own, or what the losses leave it.
    ///
    /// Four times the mean window of the square-root law (and eight segments more): to grow there from half of the
    /// mean takes some `12 / p` segments without a loss.
    pub fn reach(&self) -> u64 {
        let mean = libm::sqrt(1.5 / (self.ack_every.max(1) as f64 * self.data_loss.fraction()));
        (4.0 * mean + 8.0).min(self.window as f64) as u64
    }

    /// Means per segment of a long flow.
    ///
    /// Domain: losses independent and alike for every packet; a round trip that depends on nothing but the window; at
    /// most [`LARGEST_WINDOW`] segments of [`RenoChain::reach`]. Handshake, the first slow start and the last segments are not in it.
    pub fn per_segment(&self) -> Result<Estimate<PerSegment>, InputError> {
        above_zero("the window", self.window)?;
        above_zero("the round", self.round.as_nanos())?;
        above_zero("the timeout", self.timer.rto.as_nanos())?;
        above_zero("segments per ACK", self.ack_every)?;
        above_zero("the duplicate ACK threshold", self.repair.dup_ack_threshold)?;
        let window = self.reach();
        if window > LARGEST_WINDOW {
            return Err(InputError::Above { quantity: "the window", limit: LARGEST_WINDOW });
        }
        let value = Chain::new(&RenoChain { window, ..*self }).solve();
        Ok(Estimate::new(value, SOURCE).caveat_if(self.timer.rto < self.round, || {
            "the timeout is shorter than the round-trip time: it would fire without a loss".to_owned()
        }))
    }
}

#[cfg(test)]
mod tests;
