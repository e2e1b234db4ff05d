//! What one end sends, and what of it the other host has.

use farpath_tcp::{Flags, IntervalSet, Segment, Seq};
use std::collections::BTreeMap;

/// One direction of a connection. Positions are u64 and never wrap; 0 is the SYN.
#[derive(Debug, Default)]
pub struct Stream {
    isn: Option<Seq>,
    /// One past the highest position sent.
    end: u64,
    /// Where the FIN is, once it was sent.
    fin: Option<u64>,
    /// What the SYN said of windows.
    scale: Option<u8>,
    /// What the SYN said of SACK.
    sack_permitted: bool,
    /// Retransmissions by their number: whether one has arrived. They are few: what is sent once is not here.
    retransmissions: BTreeMap<u64, bool>,
    /// What the other host has taken.
    taken: IntervalSet,
    /// Right edge of the window that the other host has announced: beyond it nothing is taken.
    edge: u64,
}

/// What a packet was to the host that it reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Its payload had been sent before.
    pub retransmission: bool,
    /// And had all been taken before. A copy that the network makes of a retransmission is none.
    pub spurious: bool,
}

impl Stream {
    /// By how much its window field is shifted, as its SYN announced.
    pub fn scale(&self) -> Option<u8> {
        // RFC 7323 §2.3: more is taken for 14.
        self.scale.map(|shift| shift.min(14))
    }

    /// Whether its SYN allows SACK.
    pub fn sack_permitted(&self) -> bool {
        self.sack_permitted
    }

    /// One past the highest position sent.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Bytes of payload that have left the host, each once.
    pub fn payload(&self) -> u64 {
        self.fin.unwrap_or(self.end).saturating_sub(1)
    }

    /// Bytes of payload that the other host has, with all before them.
    pub fn arrived(&self) -> u64 {
        self.taken_to().min(self.fin.unwrap_or(u64::MAX)).saturating_sub(1)
    }

    /// Whether the other host has all of it, and the FIN.
    pub fn has_ended(&self) -> bool {
        self.fin.is_some_and(|fin| self.taken_to() > fin)
    }

    /// The number of its SYN, once one was sent.
    pub fn isn(&self) -> Option<Seq> {
        self.isn
    }

    /// Up to where the other host has everything: its RCV.NXT.
    pub fn taken_to(&self) -> u64 {
        self.taken.containing(0).map_or(0, |range| range.end)
    }

    /// The position of a sequence number near another.
    pub fn position(&self, seq: Seq, near: u64) -> Option<u64> {
        seq.position(self.isn?, near)
    }

    /// Whether the packet of that number was sent with payload that had been sent before.
    pub fn is_retransmission(&self, number: u64) -> bool {
        self.retransmissions.contains_key(&number)
    }

    /// A segment leaves its host: whether its payload had been sent before.
    pub fn sent(&mut self, number: u64, segment: &Segment) -> bool {
        if segment.flags.contains(Flags::RST) {
            // In answer to a stray it has the stray's numbers.
            return false;
        }
        if segment.flags.contains(Flags::SYN) {
            // A host that has forgotten a connection may begin anew for a SYN that comes again.
            if self.end <= 1 {
                self.isn = Some(segment.seq);
                self.scale = segment.window_scale;
                self.sack_permitted = segment.sack_permitted;
                self.end = 1;
            }
            return false;
        }
        let Some(start) = self.position(segment.seq, self.end) else { return false };
        let again = segment.len > 0 && start < self.end;
        // An ACK of its own may carry any number of the window, and sends nothing.
        if segment.seq_len() > 0 {
            self.end = self.end.max(start + segment.seq_len());
        }
        if segment.flags.contains(Flags::FIN) {
            self.fin = Some(start + u64::from(segment.len));
        }
        if again {
            self.retransmissions.insert(number, false);
        }
        again
    }

    /// The other host announces in `segment` that it takes `window` bytes from its ACK on.
    pub fn announced(&mut self, segment: &Segment, window: u64) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        // A SYN without ACK speaks of what follows the peer's own.
        let from = if segment.flags.contains(Flags::ACK) {
            self.position(segment.ack, self.taken_to())
        } else {
            Some(1)
        };
        if let Some(from) = from {
            self.edge = self.edge.max(from + window);
        }
    }

    /// A segment reaches the other host.
    pub fn received(&mut self, number: u64, segment: &Segment) -> Arrival {
        let first = self.retransmissions.get_mut(&number).map(|arrived| !std::mem::replace(arrived, true));
        let mut arrival = Arrival { retransmission: first.is_some(), spurious: false };
        if segment.flags.contains(Flags::RST) {
            return arrival;
        }
        if segment.flags.contains(Flags::SYN) {
            self.taken.insert(0..1, |_| ());
            return arrival;
        }
        let Some(start) = self.position(segment.seq, self.taken_to()) else { return arrival };
        let payload = start..start + u64::from(segment.len);
        arrival.spurious = first == Some(true) && self.taken.covers(payload.clone());
        // A FIN takes no window, and is taken where all before it is.
        let fits = payload.end <= self.edge;
        let fin = u64::from(fits && segment.flags.contains(Flags::FIN));
        self.taken.insert(payload.start..payload.end.min(self.edge) + fin, |_| ());
        arrival
    }
}
