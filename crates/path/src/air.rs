//! What the time of a channel was used for.

use core::fmt;
use farpath_units::{Bytes, Duration};

/// What a channel was used for, or why it was not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AirUse {
    /// Frames with TCP payload that arrived.
    Data,
    /// Frames without: ACKs of TCP, openings, closings.
    Ack,
    /// Exchanges that other stations began: polls, turnarounds, frames and link ACKs.
    Others,
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
    pub const ALL: [AirUse; 10] = [
        AirUse::Data,
        AirUse::Ack,
        AirUse::Others,
        AirUse::Poll,
        AirUse::LinkAck,
        AirUse::Turnaround,
        AirUse::Damaged,
        AirUse::Collision,
        AirUse::Backoff,
        AirUse::Idle,
    ];

    /// Whether somebody sends all the time.
    pub const fn is_sending(self) -> bool {
        matches!(self, AirUse::Data | AirUse::Ack | AirUse::Poll | AirUse::LinkAck | AirUse::Damaged)
    }

    /// As files and tables spell it.
    pub const fn name(self) -> &'static str {
        match self {
            AirUse::Data => "data",
            AirUse::Ack => "ack",
            AirUse::Others => "others",
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
    pub fn time_in(&self, what: AirUse) -> Duration {
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

/// What one of several stations on an air has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StationCounts {
    /// Which of the groups of other stations it is of; `None` for a station of the path.
    pub group: Option<u32>,
    /// Packets that were its to send: from outside, or from the station before it.
    pub offered: u64,
    /// Those of them that the next station has.
    pub delivered: u64,
    /// Those that will never get there.
    pub dropped: u64,
    /// IP bytes of the delivered ones.
    pub delivered_bytes: Bytes,
    /// How often it called: polls, or bursts sent unasked.
    pub calls: u64,
    /// Calls that nobody heard, or whose answer did not arrive. It backs off after each of them.
    pub unanswered: u64,
    /// How often it wanted to call, and heard others.
    pub held_back: u64,
    /// Frames that it sent.
    pub frames: u64,
    /// Those of them that another transmission hit.
    pub hit: u64,
}

/// What a channel's use took, in J.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct AirEnergy([f64; AirUse::ALL.len()]);

impl AirEnergy {
    /// From the energy of each use.
    pub fn from_fn(energy: impl Fn(AirUse) -> f64) -> AirEnergy {
        AirEnergy(AirUse::ALL.map(energy))
    }

    /// For this, in J.
    pub fn joules(&self, what: AirUse) -> f64 {
        self.0[what as usize]
    }
}
