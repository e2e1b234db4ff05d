//! What one channel was used for, as its stations use it.

use farpath_path::{AirTime, AirUse};
use farpath_units::{Duration, Instant};

/// A time for which somebody used a channel, or tried to, while others may have done so too.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Done {
    pub from: Instant,
    pub until: Instant,
    pub what: AirUse,
}

/// Of what is done at once, the first of these counts.
const RANKED: [AirUse; 8] = [
    AirUse::Data,
    AirUse::Ack,
    AirUse::Others,
    AirUse::LinkAck,
    AirUse::Poll,
    AirUse::Turnaround,
    AirUse::Damaged,
    AirUse::Collision,
];

fn rank(what: AirUse) -> usize {
    RANKED.iter().position(|&ranked| ranked == what).unwrap_or(RANKED.len())
}

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

    /// All until `limit`, of what was done at once in the order of [`RANKED`], and of nothing else.
    pub fn charge_overlapping(&mut self, limit: Instant, done: &mut Vec<Done>) {
        while self.until < limit {
            // What holds from here on, until something begins or ends.
            let from = self.until;
            let under_way = done.iter().filter(|done| done.from <= from && from < done.until);
            let first = under_way.map(|done| done.what).min_by_key(|&what| rank(what));
            let edges = done.iter().flat_map(|done| [done.from, done.until]);
            let end = edges.filter(|&edge| edge > from).min().unwrap_or(limit).min(limit);
            self.charge(end, first.unwrap_or(AirUse::Idle));
        }
        done.retain(|done| done.until > limit);
    }

    /// A transmitter of the path was on.
    pub fn add_sent(&mut self, what: AirUse, time: Duration) {
        self.sent.add(what, time);
    }

    /// For how long transmitters were on.
    pub fn sent(&self) -> AirTime {
        self.sent
    }

    /// The account, with what has passed until `now` in silence. What is under way is in it once it is over.
    pub fn totals_at(mut self, now: Instant, silence: Option<AirUse>) -> AirTime {
        if let Some(silence) = silence {
            self.charge(now, silence);
        }
        self.time
    }
}
