//! What a run says of explicit rate: its QoS Structures, from end to end.

use data_encoding::HEXLOWER_PERMISSIVE;
use farpath_run::{Run, SegmentEvent, SegmentRow};
use farpath_tia1039::{Message, Structures};
use farpath_units::Instant;

/// Bits of the TCP header's flags.
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

/// A packet with QoS Structures on its way.
#[derive(Debug, Clone)]
pub(crate) struct Signal {
    /// The packet as it was seen first.
    pub packet: SegmentRow,
    /// Where it was seen, and with which structures, in the order of time.
    pub hops: Vec<Hop>,
}

/// Where a signal was seen.
#[derive(Debug, Clone)]
pub(crate) struct Hop {
    pub time: Instant,
    pub event: SegmentEvent,
    /// The flow router, where it was seen at one.
    pub element: Option<String>,
    pub structures: Structures,
}

impl Signal {
    /// Whether it goes the way of the data.
    pub fn is_forward(&self) -> bool {
        self.packet.direction == "forward"
    }

    /// What it is: `SYN`, `SYN/ACK`, `ACK` with an answer, `renegotiation` of an end, `cut` of a router ...
    pub fn name(&self) -> &'static str {
        let message = self.hops[0].structures.first.message;
        let of_router = self.hops[0].event == SegmentEvent::Passed;
        match (self.packet.flags & SYN != 0, self.packet.flags & ACK != 0, message) {
            (true, false, _) => "SYN",
            (true, true, _) => "SYN/ACK",
            (false, _, Message::Response) => "ACK",
            (false, _, Message::Renegotiate) if of_router => "cut",
            (false, _, Message::Renegotiate) => "renegotiation",
            (false, _, other) => other.name(),
        }
    }

    /// The end of its way, if it has come to it: received, or dropped.
    fn is_over(&self) -> bool {
        let last = self.hops.last().map(|hop| hop.event);
        matches!(last, Some(SegmentEvent::Received | SegmentEvent::Dropped))
    }

    /// Whether a row is of this packet, as far as it can be known: two that are equal keep their order.
    fn is_of(&self, row: &SegmentRow) -> bool {
        let key = |row: &SegmentRow| (row.direction, row.seq, row.ack, row.flags, row.len, row.timestamps);
        key(&self.packet) == key(row)
            && !self.is_over()
            && (row.element.is_none() || self.hops.iter().all(|hop| hop.element != row.element))
    }
}

/// All signals of a flow, in the order in which they left.
pub(crate) fn signals(run: &Run, flow: u32) -> Result<Vec<Signal>, String> {
    let mut signals: Vec<Signal> = Vec::new();
    for row in run.segments.iter().filter(|row| row.flow == flow) {
        let Some(hex) = &row.qos else { continue };
        let structures = structures(hex)?;
        let hop = Hop { time: row.time, event: row.event, element: row.element.clone(), structures };
        let known = signals.iter_mut().find(|signal| row.event != SegmentEvent::Sent && signal.is_of(&row));
        match known {
            Some(signal) => signal.hops.push(hop),
            None => signals.push(Signal { packet: row, hops: vec![hop] }),
        }
    }
    Ok(signals)
}

/// Structures as a row has them.
pub(crate) fn structures(hex: &str) -> Result<Structures, String> {
    Structures::decode_v4(&from_hex(hex)?).map_err(|error| error.to_string())
}

/// The bytes that hexadecimal digits are; spaces may stand between them.
pub(crate) fn from_hex(text: &str) -> Result<Vec<u8>, String> {
    let digits: String = text.split_whitespace().collect();
    HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).map_err(|error| format!("`{text}`: {error}"))
}
