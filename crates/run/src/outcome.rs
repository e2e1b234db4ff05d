//! How a flow ended. It is data, not an error.

use core::fmt;

/// How a flow ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// The receiving application has read every byte.
    Completed,
    /// No answer to any SYN in time.
    ConnectTimedOut,
    /// The connection was given up after it was opened: retries ran out, or the peer reset it.
    Aborted,
    /// Not over when the experiment's horizon came.
    Horizon,
    /// The run was in real time and the machine could not keep it: see its [`Grade`](crate::Grade). Nothing of it is
    /// known.
    Void,
    /// The run had used up its budget, of events or of packets, before the flow was over: it repeated itself, and the detail says what.
    Stuck,
}

impl Outcome {
    /// As files and tables spell them, in the order of their declaration.
    pub(crate) const NAMES: [&'static str; 6] =
        ["completed", "connect_timed_out", "aborted", "horizon", "void", "stuck"];

    /// The outcome that [`name`](Outcome::name) spells so.
    pub fn from_name(name: &str) -> Option<Outcome> {
        use Outcome::{Aborted, Completed, ConnectTimedOut, Horizon, Stuck, Void};
        let all = [Completed, ConnectTimedOut, Aborted, Horizon, Void, Stuck];
        all.into_iter().find(|outcome| outcome.name() == name)
    }

    /// As files and tables spell it.
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
