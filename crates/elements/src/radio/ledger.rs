//! What one channel was used for, as its stations use it.

use farpath_path::{AirTime, AirUse};
use farpath_units::{Duration, Instant};

/// The account of one channel, kept up to some moment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ledger {
    time: AirTime,
    /// For how long a transmitter was on: with two at once, twice as long.
    sent: AirTime,
    until: Instant,
}

impl Ledger {
    /// All that is not accounted for yet, until `now`, went into `what`.
    pub fn charge(&mut self, now: Instant, what: AirUse) {
        self.time.add(what, now.saturating_since(self.until));
        self.until = self.until.max(now);
    }

    /// Accounts one after the other for what happened from `start` on, as far as nothing else has been before.
    pub fn charge_all(&mut self, start: Instant, uses: &[(AirUse, Duration)]) {
        let mut end = start;
        for &(what, time) in uses {
            end += time;
            self.charge(end, what);
            if what.is_sending() {
                self.sent.add(what, time);
            }
        }
    }

    /// A call that nobody answered: so much of it was on the air.
    pub fn charge_call(&mut self, now: Instant, on_air: Duration) {
        self.charge(now, AirUse::Collision);
        self.sent.add(AirUse::Collision, on_air);
    }

    /// For how long transmitters were on.
    pub fn sent(&self) -> AirTime {
        self.sent
    }

    /// The account, with what has passed until `now` in silence. What is under way is in it once it is over.
    pub fn at(mut self, now: Instant, silence: Option<AirUse>) -> AirTime {
        if let Some(silence) = silence {
            self.charge(now, silence);
        }
        self.time
    }
}
