//! Slow start: rounds and time until a window is reached, and what is sent until then.
//!
//! Source: RFC 5681 section 3.1 (one MSS per ACK); N. Cardwell, S. Savage, T. Anderson, "Modeling TCP Latency",
//! INFOCOM 2000, for growth by `gamma = 1 + 1/b` per round.

use crate::estimate::above_zero;
use crate::{Estimate, InputError};
use farpath_units::Duration;

const SOURCE: &str = "RFC 5681 section 3.1; Cardwell, Savage, Anderson, INFOCOM 2000, gamma = 1 + 1/b";

/// A sender in slow start, never limited by anything else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlowStart {
    /// Initial window, segments.
    pub initial_window: u64,
    /// Segments per ACK: 2 with delayed ACKs.
    pub ack_every: u64,
}

impl SlowStart {
    /// Growth of the window per round: 2 without, 1.5 with delayed ACKs.
    pub fn gamma(&self) -> f64 {
        1.0 + 1.0 / self.ack_every as f64
    }

    fn check(&self) -> Result<(), InputError> {
        above_zero("the initial window", self.initial_window)?;
        above_zero("segments per ACK", self.ack_every)
    }

    /// Rounds until the window is `window` segments: `log_gamma(window / iw)`, 0 if it is so from the start.
    ///
    /// Known error: real windows are whole segments and ACKs come in groups; up to one round.
    pub fn rounds_to(&self, window: u64) -> Result<Estimate<f64>, InputError> {
        self.check()?;
        above_zero("the window", window)?;
        let growth = (window as f64 / self.initial_window as f64).max(1.0);
        Ok(Estimate::new(libm::log(growth) / libm::log1p(1.0 / self.ack_every as f64), SOURCE)
            .caveat_if(self.ack_every > self.initial_window, || {
                "the initial window is below one ACK's worth: the delayed-ACK timer comes on top".to_owned()
            }))
    }

    /// Time until the window is `window` segments, at one round-trip time per round.
    pub fn time_to(&self, window: u64, rtt: Duration) -> Result<Estimate<Duration>, InputError> {
        Ok(self.rounds_to(window)?.map(|rounds| Duration::from_secs_f64(rounds * rtt.as_secs_f64())))
    }

    /// Segments sent in the first `rounds` rounds: `iw (gamma^rounds - 1) / (gamma - 1)`. May be infinite.
    pub fn segments_in(&self, rounds: f64) -> Result<Estimate<f64>, InputError> {
        self.check()?;
        let growth = libm::expm1(rounds.max(0.0) * libm::log1p(1.0 / self.ack_every as f64));
        Ok(Estimate::new(self.initial_window as f64 * growth * self.ack_every as f64, SOURCE))
    }

    /// Rounds that `segments` take, the inverse of [`SlowStart::segments_in`].
    pub fn rounds_for(&self, segments: f64) -> Result<Estimate<f64>, InputError> {
        self.check()?;
        let growth = segments.max(0.0) / (self.initial_window as f64 * self.ack_every as f64);
        Ok(Estimate::new(libm::log1p(growth) / libm::log1p(1.0 / self.ack_every as f64), SOURCE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubling_without_delayed_acks() {
        let start = SlowStart { initial_window: 1, ack_every: 1 };
        assert_eq!(start.gamma(), 2.0);
        assert!((start.rounds_to(1024).unwrap().value - 10.0).abs() < 1e-12);
        assert!((start.segments_in(10.0).unwrap().value - 1023.0).abs() < 1e-9);
        assert!((start.rounds_for(1023.0).unwrap().value - 10.0).abs() < 1e-12);
        assert_eq!(start.rounds_to(1).unwrap().value, 0.0);
    }

    #[test]
    fn ten_gigabit_at_600_ms_takes_27_rounds_from_ten_segments() {
        let start = SlowStart { initial_window: 10, ack_every: 2 };
        let rounds = start.rounds_to(513_699).unwrap().value;
        assert!((rounds - 26.7515).abs() < 1e-3, "{rounds}");
        let time = start.time_to(513_699, Duration::from_millis(600)).unwrap().value.as_secs_f64();
        assert!((time - 16.05).abs() < 0.01, "{time}");
    }

    #[test]
    fn the_ends_are_numbers() {
        let start = SlowStart { initial_window: 1, ack_every: u64::MAX };
        assert!(start.rounds_to(u64::MAX).unwrap().value.is_finite());
        assert_eq!(start.rounds_to(2).unwrap().caveats.len(), 1);
        assert!(SlowStart { initial_window: 0, ack_every: 1 }.rounds_to(1).is_err());
        assert!(SlowStart { initial_window: 1, ack_every: 1 }.segments_in(1e9).unwrap().value.is_infinite());
    }
}
