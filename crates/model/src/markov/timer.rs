//! How long the retransmission timer takes, on a clock of ticks.

use super::RenoChain;

/// Rounds since a tick that are told apart; later ones are anywhere between two ticks.
const AGES: f64 = 16.0;

/// In seconds. An *age* is the number of rounds since the last timeout, which was on a tick.
pub(super) struct Timer {
    rto: f64,
    max: f64,
    tick: f64,
    round: f64,
    /// Largest exponent that still lengthens the timeout.
    pub top: usize,
    /// The age from which on the phase is forgotten.
    pub old: usize,
}

impl Timer {
    pub fn new(flow: &RenoChain) -> Timer {
        let rto = flow.timer.rto.as_secs_f64();
        let max = flow.timer.max.as_secs_f64().max(rto);
        let tick = flow.timer.tick.as_secs_f64();
        let round = flow.round.as_secs_f64();
        let mut top = 0;
        // Past 2^16 a transfer is over for every practical purpose.
        while top < flow.timer.max_backoff_exponent.min(16) && rto * f64::from(1_u32 << top) < max {
            top += 1;
        }
        let old = libm::ceil(tick / round).min(AGES) as usize;
        Timer { rto, max, tick, round, top: top as usize, old }
    }

    /// From starting the timer, `age` rounds after a tick, until it expires; `exponent` of the back-off.
    pub fn wait(&self, exponent: usize, age: usize) -> f64 {
        let timeout = (self.rto * f64::from(1_u32 << exponent)).min(self.max);
        if self.tick == 0.0 {
            return timeout;
        }
        if age >= self.old {
            return timeout + self.tick / 2.0;
        }
        let start = age as f64 * self.round;
        libm::ceil((start + timeout) / self.tick - 1e-9) * self.tick - start
    }
}
