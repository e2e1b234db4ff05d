//! What the time of a channel was used for.

use core::fmt;
use farpath_units::{Duration, Instant};

/// What a channel was used for, or why it was not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum AirUse {
    /// Frames with TCP payload that arrived.
    Data,
    /// Frames without: ACKs of TCP, openings, closings.
    Ack,
    /// Polls that were answered, and the answers.
    Poll,
    /// The radios' own acknowledgements.
    LinkAck,
    /// Changing between sending and listening, or the channel, in exchanges that came off.
    Turnaround,
    /// Frames that arrived damaged, and those behind them that have to be sent again for it.
    Damaged,
    /// Polls, or bursts sent unasked, that nobody heard or answered: most of them because both stations sent.
    Collision,
    /// Nobody sent, with packets waiting.
    Backoff,
    /// Nothing waited.
    Idle,
}

impl AirUse {
    /// All of them, in the order of their declaration.
    pub const ALL: [AirUse; 9] = [
        AirUse::Data,
        AirUse::Ack,
        AirUse::Poll,
        AirUse::LinkAck,
        AirUse::Turnaround,
        AirUse::Damaged,
        AirUse::Collision,
        AirUse::Backoff,
        AirUse::Idle,
    ];

    /// Whether somebody sends all the time.
    const fn is_sending(self) -> bool {
        matches!(self, AirUse::Data | AirUse::Ack | AirUse::Poll | AirUse::LinkAck | AirUse::Damaged)
    }

    /// As files and tables spell it.
    pub const fn name(self) -> &'static str {
        match self {
            AirUse::Data => "data",
            AirUse::Ack => "ack",
            AirUse::Poll => "poll",
            AirUse::LinkAck => "link-ack",
            AirUse::Turnaround => "turnaround",
            AirUse::Damaged => "damaged",
            AirUse::Collision => "collision",
            AirUse::Backoff => "backoff",
            AirUse::Idle => "idle",
        }
    }
}

impl fmt::Display for AirUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How long a channel was used for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AirTime([Duration; AirUse::ALL.len()]);

impl AirTime {
    /// For this.
    pub fn of(&self, what: AirUse) -> Duration {
        self.0[what as usize]
    }

    /// For all of it.
    pub fn total(&self) -> Duration {
        self.0.iter().copied().sum()
    }

    /// Adds to it.
    pub fn add(&mut self, what: AirUse, time: Duration) {
        self.0[what as usize] += time;
    }
}

/// What a channel's use took, in J.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct AirEnergy([f64; AirUse::ALL.len()]);

impl AirEnergy {
    /// From the energy of each use.
    pub(crate) fn of(energy: impl Fn(AirUse) -> f64) -> AirEnergy {
        AirEnergy(AirUse::ALL.map(energy))
    }

    /// For this, in J.
    pub fn joules(&self, what: AirUse) -> f64 {
        self.0[what as usize]
    }
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
