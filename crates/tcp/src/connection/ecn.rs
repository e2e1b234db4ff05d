//! What SYNs and SYN/ACKs agree on about ECN (RFC 3168 §6.1.1).

use crate::config::EcnMode;
use crate::{Flags, Segment};

/// An ECN-setup SYN carries both bits, an ECN-setup SYN/ACK only ECE: a peer that sends back the reserved bits that
/// it was sent has not agreed to anything.
const SETUP: Flags = Flags(Flags::ECE.0 | Flags::CWR.0);

/// Which kinds of SYN and SYN/ACK have gone either way.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Negotiation {
    sent_setup: bool,
    sent_plain: bool,
    received_setup: bool,
    received_plain: bool,
}

impl Negotiation {
    /// The flags that a SYN or a SYN/ACK carries beside its own; it counts as sent.
    ///
    /// RFC 3168 §6.1.1.1: a SYN that had no answer is sent again without ECN, for a box on the way that drops what it
    /// does not know. It would allow some more tries; this is what Linux does.
    pub fn flags(&mut self, mode: EcnMode, answers: bool, again: bool) -> Flags {
        let setup = if answers {
            mode != EcnMode::Off && self.received_setup && !self.received_plain
        } else {
            mode == EcnMode::Request && !again
        };
        self.sent_setup |= setup;
        self.sent_plain |= !setup;
        match (setup, answers) {
            (false, _) => Flags(0),
            (true, true) => Flags::ECE,
            (true, false) => SETUP,
        }
    }

    /// A SYN or SYN/ACK came.
    pub fn on_syn(&mut self, seg: &Segment) {
        let expected = if seg.flags.contains(Flags::ACK) { Flags::ECE } else { SETUP };
        let setup = seg.flags.0 & SETUP.0 == expected.0;
        self.received_setup |= setup;
        self.received_plain |= !setup;
    }

    /// Whether data may be ECN-capable: both ends have said so, and neither has said otherwise.
    pub fn sends_ect(&self) -> bool {
        self.sent_setup && self.received_setup && !self.sent_plain && !self.received_plain
    }

    /// Whether CE must be echoed: the peer may send ECN-capable data even where this end has taken it back.
    pub fn echoes(&self) -> bool {
        self.sent_setup && !self.received_plain
    }
}
