//! The rate that a sender was granted by the routers of its path (TIA-1039), as far as the capture shows it.

use crate::packet::TcpPacket;
use farpath_tia1039::{Message, QosMark, RateUnit, Structure};

/// Bytes of an IP packet that are no payload of TCP: a grant counts them (timestamps are usual, IPv6 is 20 B longer).
const HEADERS: u64 = 52;

/// Hosts let so much of a pace's data go at once, and then wait for all of it (Linux's `tcp_tso_autosize`: 1024th of a second), but a segment more than one at the least.
pub(crate) const TOGETHER_NS: u64 = 1_000_000;

/// Less than so much of the spacing of the rate is closer than it lets them: the path is faster by a tenth.
const CLOSER: f64 = 0.9;
/// Fewer segments show nothing.
const LEAST_SINGLE: u32 = 16;

/// What one side was granted for what it sends.
#[derive(Debug, Default)]
pub(crate) struct Grant {
    /// The last request, and what was last answered, bit/s of IP packets.
    asked: Option<Asked>,
    given: Option<u64>,
    /// Whether the last packet with data says that it is of a flow that holds a grant.
    is_marked: bool,
    /// When the rate lets the next packet with data go.
    due_ns: u64,
    /// When the last one came, and whether it was one segment.
    last: Option<u64>,
    /// Segments that came behind another one, packets of several, and whether a segment came closer behind another than the rate lets it.
    single: u32,
    joined: u32,
    path_is_faster: bool,
    /// The fastest that a segment came behind another before the rate was known, bit/s of IP packets.
    fastest_before: f64,
}

#[derive(Debug, Clone, Copy)]
struct Asked {
    bit_per_s: u64,
    /// It has passed a router already, which may have lowered it.
    passed_router: bool,
}

impl Grant {
    /// Its owner sends this.
    pub fn sent(&mut self, packet: &TcpPacket) {
        if packet.payload > 0 {
            self.is_marked = packet.qos == QosMark::Flow;
        }
        for structure in packet.structures.iter().flat_map(|structures| structures.iter()) {
            if structure.message.asks() {
                self.asked =
                    Some(Asked { bit_per_s: bit_per_s(structure), passed_router: structure.mark > 0 });
            } else if structure.message == Message::Close {
                self.given = None;
            }
        }
    }

    /// Its owner is told this.
    pub fn received(&mut self, packet: &TcpPacket) {
        for structure in packet.structures.iter().flat_map(|structures| structures.iter()) {
            if structure.message == Message::Response {
                self.given = Some(bit_per_s(structure)).filter(|rate| *rate > 0);
            }
        }
    }

    /// The rate that data leave at, bit/s of IP packets. Whether a grant is believed the sender says by the codepoint of its data.
    pub fn rate(&self) -> Option<u64> {
        self.given.filter(|_| self.is_marked)
    }

    /// Its data say that they are of a flow with a grant, and the answer that would tell the rate is not in the capture.
    pub fn is_unknown(&self) -> bool {
        self.is_marked && self.given.is_none()
    }

    /// The most payload that goes with it, bit/s.
    pub fn payload_rate(&self, segment: u64) -> Option<f64> {
        Some(self.rate()? as f64 * segment as f64 / (segment + HEADERS) as f64)
    }

    /// Whether routers gave less than was asked for: then the rate is the path's. It is not known where the request had passed routers before
    /// the capture.
    pub fn is_lowered(&self) -> bool {
        let asked = self.asked.filter(|asked| !asked.passed_router);
        asked.zip(self.given).is_some_and(|(asked, given)| given < asked.bit_per_s)
    }

    /// New data leaves.
    pub fn left(&mut self, now: u64, payload: u64, segment: u64) {
        let last = core::mem::replace(&mut self.last, (payload <= segment).then_some(now));
        let Some(rate) = self.rate() else {
            // Requests may be in packets that the capture lacks: the answer comes when the first data have passed.
            if let Some(last) = last.filter(|_| self.is_marked && payload == segment) {
                let since = now.saturating_sub(last).max(1);
                self.fastest_before =
                    self.fastest_before.max((payload + HEADERS) as f64 * 8e9 / since as f64);
            }
            return;
        };
        self.path_is_faster |= CLOSER * self.fastest_before > rate as f64;
        let spacing = self.spacing_ns(payload, segment) as u64;
        if payload > segment {
            self.joined = self.joined.saturating_add(1);
        } else if let Some(last) = last {
            self.single = self.single.saturating_add(1);
            self.path_is_faster |= (now.saturating_sub(last) as f64) < CLOSER * spacing as f64;
        }
        self.due_ns = self.due_ns.min(now + spacing.max(TOGETHER_NS)).max(now) + spacing;
    }

    /// Behind a router it is not seen what was asked for. What leaves together comes as fast as the path lets it there, and a host lets at least its first two
    /// segments go together: where none from the first one on comes faster than was granted, the path has no more. It cannot be told where several segments are
    /// one packet.
    pub fn is_all_of_path(&self) -> bool {
        let passed_router = self.asked.is_some_and(|asked| asked.passed_router);
        passed_router && self.single >= LEAST_SINGLE.max(self.joined) && !self.path_is_faster
    }

    /// How long behind what left at `last` the rate lets the next packet go, ns; 0 without a grant.
    pub fn wait_ns(&self, last: u64) -> u64 {
        self.rate().map_or(0, |_| self.due_ns.saturating_sub(last))
    }

    /// How long a packet with so much payload takes at the rate, ns; 0 without a grant.
    fn spacing_ns(&self, payload: u64, segment: u64) -> f64 {
        let packets = payload.div_ceil(segment.max(1));
        let bytes = payload + packets * HEADERS;
        self.rate().map_or(0.0, |rate| bytes as f64 * 8e9 / rate as f64)
    }
}

/// What a structure asks for or gives, bit/s of IP packets. One unit is usual; a capture does not say which.
fn bit_per_s(structure: &Structure) -> u64 {
    let counts = structure.rate_type;
    let available = if counts.has_available() { structure.available.units() } else { 0 };
    let guaranteed = if counts.has_guaranteed() { structure.guaranteed.units() } else { 0 };
    (available + guaranteed) * RateUnit::default().bits()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::bare;
    use farpath_tia1039::{RateType, Rounding, Source, Structures};

    fn packet(qos: QosMark, payload: u32, structure: Option<Structure>) -> TcpPacket {
        let ends = ["192.0.2.1:1", "192.0.2.2:2"].map(|end| end.parse().expect("an address"));
        TcpPacket { qos, payload, structures: structure.map(Structures::one), ..bare(ends[0], ends[1]) }
    }

    fn structure(bit_per_s: u64, rounding: Rounding) -> Structure {
        Structure::request(RateUnit::KbitPerS.encode(bit_per_s, rounding))
    }

    /// Asked for 100 Mbit/s, and answered with this.
    fn answered(bit_per_s: u64) -> Grant {
        let mut grant = Grant::default();
        let request = structure(100_000_000, Rounding::Up);
        grant.sent(&packet(QosMark::Signal, 0, Some(request)));
        let response = structure(bit_per_s, Rounding::Down).marked().response(Source::NONE_V4);
        grant.received(&packet(QosMark::Signal, 0, Some(response)));
        grant
    }

    #[test]
    fn a_grant_holds_while_data_say_so() {
        let mut grant = answered(30_000_000);
        assert_eq!(grant.rate(), None, "no data has left");
        grant.sent(&packet(QosMark::Flow, 1448, None));
        assert_eq!((grant.rate(), grant.is_lowered()), (Some(29_984_000), true));
        // 1500 B at 29.984 Mbit/s; a packet that a device will cut has two of them.
        assert!((grant.spacing_ns(1448, 1448) - 400_213.4).abs() < 0.1, "{}", grant.spacing_ns(1448, 1448));
        assert!((grant.spacing_ns(2896, 1448) - 2.0 * 400_213.4).abs() < 0.2);
        grant.sent(&packet(QosMark::Signal, 0, None));
        assert_eq!(grant.rate(), Some(29_984_000), "a packet without data says nothing");
        grant.sent(&packet(QosMark::None, 1448, None));
        assert_eq!((grant.rate(), grant.spacing_ns(1448, 1448)), (None, 0.0), "it was given up");
    }

    #[test]
    fn all_that_was_asked_for_is_not_lowered_nor_is_what_cannot_be_compared() {
        let mut grant = Grant::default();
        let request = structure(100_000_000, Rounding::Up);
        grant.sent(&packet(QosMark::Signal, 0, Some(request)));
        grant.received(&packet(QosMark::Signal, 0, Some(request.marked().response(Source::NONE_V4))));
        assert!(!grant.is_lowered());
        // Behind a router, which has marked it: what the sender had asked for is not known.
        let lowered = structure(30_000_000, Rounding::Down).marked();
        grant.sent(&packet(QosMark::Signal, 0, Some(lowered)));
        grant.received(&packet(QosMark::Signal, 0, Some(lowered.response(Source::NONE_V4))));
        assert!(!grant.is_lowered());
    }

    #[test]
    fn a_rate_of_nothing_and_a_close_end_it() {
        let mut grant = answered(0);
        grant.sent(&packet(QosMark::Flow, 1448, None));
        assert_eq!(grant.rate(), None);
        let mut grant = answered(30_000_000);
        grant.sent(&packet(QosMark::Flow, 1448, None));
        let close = Structure { message: Message::Close, ..structure(30_000_000, Rounding::Up) };
        grant.sent(&packet(QosMark::Signal, 0, Some(close)));
        assert_eq!(grant.rate(), None);
    }

    #[test]
    fn of_a_composite_rate_both_count() {
        let rate = RateUnit::KbitPerS.encode(1_000_000, Rounding::Down);
        let composite =
            Structure { rate_type: RateType::Composite, guaranteed: rate, ..Structure::request(rate) };
        assert_eq!(bit_per_s(&composite), 2_000_000);
        assert_eq!(bit_per_s(&Structure { rate_type: RateType::Guaranteed, ..composite }), 1_000_000);
    }

    /// Behind a router, without the handshake: 40 segments of a flow with a grant, the first two so far apart, before more is asked for.
    fn answered_late(apart_ns: u64) -> Grant {
        const SPACING: u64 = 400_214;
        let mut grant = Grant::default();
        let mut now = 0;
        let mut at = |grant: &mut Grant, after: u64| {
            now += after;
            grant.sent(&packet(QosMark::Flow, 1448, None));
            grant.left(now, 1448, 1448);
        };
        at(&mut grant, 0);
        at(&mut grant, apart_ns);
        assert!(grant.is_unknown() && grant.rate().is_none(), "data say so, and no answer has come");
        let request = structure(29_984_000, Rounding::Down).marked();
        grant.sent(&packet(QosMark::Signal, 0, Some(request)));
        grant.received(&packet(QosMark::Signal, 0, Some(request.response(Source::NONE_V4))));
        assert!(!grant.is_unknown());
        (0..38).for_each(|_| at(&mut grant, SPACING));
        grant
    }

    #[test]
    fn what_came_before_the_rate_was_known_tells_of_the_path_too() {
        assert!(answered_late(400_214).is_all_of_path());
        assert!(!answered_late(120_000).is_all_of_path());
    }
}
