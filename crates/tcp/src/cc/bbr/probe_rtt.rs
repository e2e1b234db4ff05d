//! ProbeRTT, as both versions time it.

use super::steering::PROBE_RTT;
use farpath_units::Instant;

/// The window is held small until some time and a round trip have passed with no more in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProbeRtt {
    /// Not before; not known as long as more is in flight.
    pub until: Option<Instant>,
    round_done: bool,
}

impl ProbeRtt {
    /// Whether with the ACK at `now` no more than `window` is in flight for the first time: a round trip counts from here.
    pub fn begins(&mut self, now: Instant, pipe: u64, window: u64) -> bool {
        let begins = self.until.is_none() && pipe <= window;
        if begins {
            self.until = Some(now + PROBE_RTT);
        }
        begins
    }

    /// Whether a round trip has passed since.
    pub fn had_a_round(&mut self, round_starts: bool) -> bool {
        self.round_done |= self.until.is_some() && round_starts;
        self.round_done
    }
}
