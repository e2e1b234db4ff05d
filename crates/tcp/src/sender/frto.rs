//! Forward RTO-recovery (RFC 5682): after a timeout, one segment again and then two new ones tell whether the rest was
//! lost or only late.

use super::Sender;
use super::phase::Phase;

/// Where the question stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Frto {
    /// Not asked, or answered.
    Off,
    /// Step 2: the first segment was sent again.
    FirstAgain { up_to: u64 },
    /// Step 3: new segments follow it, `left` of them yet to be sent; nothing else is.
    NewData { left: u32 },
}

impl Sender {
    /// Step 1: a timeout. `fresh` where no loss was being repaired before it.
    pub(super) fn begin_frto(&mut self, fresh: bool) {
        // DEVIATES RFC 5682 §2.1 step 1: it asks nothing within a repair. With SACK a timeout of the same segment again
        // asks again, as in Linux: SACK tells what was sent once.
        let asks = self.config.recovery.frto && (fresh || self.sack_enabled && self.retries > 1);
        let first = self.board.segment_at(self.una).filter(|_| asks);
        self.frto = first.map_or(Frto::Off, |first| Frto::FirstAgain { up_to: first.end });
    }

    /// Steps 2 and 3. Called for each ACK of new data, and each duplicate ACK, in the phase after a timeout.
    pub(super) fn advance_frto(&mut self, una_moved: bool) {
        let Phase::Loss { point } = self.phase else {
            self.frto = Frto::Off;
            return;
        };
        match self.frto {
            Frto::Off => {}
            Frto::FirstAgain { up_to } => {
                if !una_moved {
                    if !self.sack_enabled {
                        self.timeout_was_genuine();
                    }
                    // §3.1 step 2: with SACK a duplicate only fills the scoreboard.
                } else if self.una >= point || self.una < up_to || self.unsent_segment().is_none() {
                    self.timeout_was_genuine();
                } else {
                    self.frto = Frto::NewData { left: 2 };
                    self.nxt = self.max;
                }
            }
            Frto::NewData { .. } => {
                let original = self.board.delivery().first_original_end.is_some_and(|end| end <= point);
                let spurious = if self.sack_enabled { original } else { una_moved };
                if spurious {
                    self.frto = Frto::Off;
                    self.undo();
                } else {
                    self.timeout_was_genuine();
                    // Step 3a: two segments were new, and one may follow.
                    self.window.cwnd = self.window.cwnd.min(3 * self.smss);
                }
            }
        }
    }

    /// The conventional repair goes on.
    fn timeout_was_genuine(&mut self) {
        if let Frto::NewData { .. } = self.frto
            && !self.sack_enabled
        {
            self.nxt = self.una;
        }
        self.frto = Frto::Off;
    }
}
