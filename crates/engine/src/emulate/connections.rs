//! What the packets of a path tell of the connections whose they are: found by protocol, addresses and ports, whatever program made them.

use super::held::Held;
use farpath_emu::{PacketEvent, WirePacket};
use farpath_units::Instant;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Most connections that are told apart. A program that opens more of them has its packets counted as unlisted.
pub const MAX_CONNECTIONS: usize = 65_536;
/// Most times of round trips that are kept of a connection: its percentiles are of the first so many.
const MAX_SAMPLES: usize = 100_000;
/// Most segments, or requests, of a connection whose answer is waited for.
const MAX_OUTSTANDING: usize = 65_536;

const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

/// One direction of a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Side {
    /// Packets sent.
    pub packets: u64,
    /// IP bytes of these.
    pub bytes: u64,
    /// Of the packets, those that the path dropped.
    pub dropped: u64,
    /// Bytes that TCP, UDP or ICMP carried, behind its header, retransmissions included.
    pub payload_bytes: u64,
    /// TCP segments that begin with payload that had been sent before; `None` for other protocols.
    pub retransmissions: Option<u64>,
}

/// One connection, or exchange of datagrams, of programs on the path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// `tcp`, `udp`, `icmp`, `icmpv6`, or the number of another protocol.
    pub protocol: String,
    /// Address of the host that sent the first packet.
    pub opener: IpAddr,
    /// Its port, or the identifier of an ICMP echo; 0 for other protocols.
    pub opener_port: u16,
    /// Address of the other host.
    pub peer: IpAddr,
    /// Its port; 0 for other protocols than TCP and UDP.
    pub peer_port: u16,
    /// When the first packet was sent, and when the last one was sent or arrived, in ns from the run's beginning.
    pub first_ns: u64,
    /// See `first_ns`.
    pub last_ns: u64,
    /// What the opener sent.
    pub sent: Side,
    /// What its peer sent.
    pub received: Side,
    /// Round trips of TCP payload to its ACK (Karn's rule: none of what was sent twice), and of ICMP echoes, seen at the sending host, in
    /// ns: the least, the median, the 99th percentile and the most. Acknowledgements that their host delays are in it.
    pub rtt_ns: Option<[u64; 4]>,
    /// What held the sender of most of its data, by what its kernel counts: of TCP in real time.
    pub held: Option<Held>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    protocol: u8,
    source: (IpAddr, u16),
    destination: (IpAddr, u16),
}

/// What a packet says of itself, as far as it is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Parsed {
    key: Key,
    /// Bytes behind the header of TCP, UDP or ICMP.
    payload: u64,
    detail: Detail,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detail {
    Tcp { seq: u32, ack: Option<u32>, takes: u32 },
    Request(u16),
    Reply(u16),
    Other,
}

#[derive(Debug, Default)]
struct Way {
    side: Side,
    /// The position behind all that was sent.
    highest: Option<u32>,
    /// Ends of segments, or numbers of requests, with when they were sent.
    outstanding: VecDeque<(u32, Instant)>,
}

#[derive(Debug)]
struct Open {
    key: Key,
    first: Instant,
    last: Instant,
    /// Of the opener, and of its peer.
    ways: [Way; 2],
    samples: Vec<u64>,
}

/// All connections of a path.
#[derive(Debug, Default)]
pub(super) struct Connections {
    numbers: HashMap<Key, usize>,
    open: Vec<Open>,
    unlisted: u64,
}

impl Connections {
    /// Takes note of a packet.
    pub fn packet(&mut self, at: Instant, event: PacketEvent, packet: &WirePacket) {
        let bytes = packet.bytes();
        let Some(parsed) = parse(bytes) else { return };
        let Some((number, way)) = self.find(at, parsed.key, event) else {
            self.unlisted += u64::from(event == PacketEvent::Sent);
            return;
        };
        let open = &mut self.open[number];
        open.last = open.last.max(at);
        match event {
            PacketEvent::Sent => open.sent(at, way, &parsed, bytes.len() as u64),
            PacketEvent::Received => open.received(at, way, &parsed),
            PacketEvent::Dropped(_) => open.ways[way].side.dropped += 1,
            PacketEvent::Refused => {}
        }
    }

    /// Which connection it is of, and whether its opener (0) or the peer (1) sends it. What is sent may be of a new one.
    fn find(&mut self, at: Instant, key: Key, event: PacketEvent) -> Option<(usize, usize)> {
        if let Some(&number) = self.numbers.get(&key) {
            return Some((number, 0));
        }
        let back = Key { source: key.destination, destination: key.source, ..key };
        if let Some(&number) = self.numbers.get(&back) {
            return Some((number, 1));
        }
        if event != PacketEvent::Sent || self.open.len() >= MAX_CONNECTIONS {
            return None;
        }
        let number = self.open.len();
        self.numbers.insert(key, number);
        let mut ways = <[Way; 2]>::default();
        if key.protocol == TCP {
            ways.iter_mut().for_each(|way| way.side.retransmissions = Some(0));
        }
        self.open.push(Open { key, first: at, last: at, ways, samples: Vec::new() });
        Some((number, 0))
    }

    /// All of them, in the order of their first packets, and how many packets were sent beside them.
    pub fn finish(self) -> (Vec<Connection>, u64) {
        (self.open.into_iter().map(Open::finish).collect(), self.unlisted)
    }
}

impl Open {
    fn sent(&mut self, at: Instant, way: usize, parsed: &Parsed, bytes: u64) {
        let Way { side, highest, outstanding } = &mut self.ways[way];
        side.packets += 1;
        side.bytes += bytes;
        side.payload_bytes += parsed.payload;
        let mut wait_for = |end| {
            if outstanding.len() < MAX_OUTSTANDING {
                outstanding.push_back((end, at));
            }
        };
        match parsed.detail {
            Detail::Tcp { seq, takes, .. } if takes > 0 => {
                let end = seq.wrapping_add(takes);
                let again = highest.is_some_and(|highest| is_before(seq, highest));
                if again {
                    // What the ACK answers cannot be told (Karn and Partridge 1987).
                    outstanding.retain(|&(waits, _)| is_before(waits, seq.wrapping_add(1)));
                    if parsed.payload > 0 {
                        *side.retransmissions.get_or_insert(0) += 1;
                    }
                } else {
                    wait_for(end);
                }
                if highest.is_none_or(|highest| is_before(highest, end)) {
                    *highest = Some(end);
                }
            }
            Detail::Request(number) => wait_for(u32::from(number)),
            _ => {}
        }
    }

    /// What arrives at the other host, where it may answer what that sent.
    fn received(&mut self, at: Instant, way: usize, parsed: &Parsed) {
        let waiting = &mut self.ways[1 - way].outstanding;
        let mut since = None;
        match parsed.detail {
            Detail::Tcp { ack: Some(ack), .. } => {
                while let Some(&(end, sent)) = waiting.front()
                    && !is_before(ack, end)
                {
                    since = Some(sent);
                    waiting.pop_front();
                }
            }
            Detail::Reply(number) => {
                if let Some(place) = waiting.iter().position(|&(waits, _)| waits == u32::from(number)) {
                    since = waiting.remove(place).map(|(_, sent)| sent);
                }
            }
            _ => {}
        }
        // An ACK for several segments is the last one's.
        if let Some(since) = since.filter(|_| self.samples.len() < MAX_SAMPLES) {
            self.samples.push(at.saturating_since(since).as_nanos());
        }
    }

    fn finish(mut self) -> Connection {
        self.samples.sort_unstable();
        // The least sample that so many percent of all are not above.
        let percentile =
            |percent: usize| self.samples[(self.samples.len() * percent).div_ceil(100).max(1) - 1];
        let rtt_ns = (!self.samples.is_empty()).then(|| [0, 50, 99, 100].map(percentile));
        let [sent, received] = self.ways.map(|way| way.side);
        Connection {
            protocol: match self.key.protocol {
                TCP => "tcp".to_owned(),
                UDP => "udp".to_owned(),
                ICMP => "icmp".to_owned(),
                ICMPV6 => "icmpv6".to_owned(),
                other => other.to_string(),
            },
            opener: self.key.source.0,
            opener_port: self.key.source.1,
            peer: self.key.destination.0,
            peer_port: if matches!(self.key.protocol, TCP | UDP) { self.key.destination.1 } else { 0 },
            first_ns: self.first.as_nanos(),
            last_ns: self.last.as_nanos(),
            sent,
            received,
            rtt_ns,
            held: None,
        }
    }
}

/// Positions in a sequence space that wraps (RFC 9293 §3.4).
fn is_before(one: u32, other: u32) -> bool {
    one.wrapping_sub(other) > u32::MAX / 2
}

/// What is known of a packet; `None` for what is no IP packet. Of a fragment behind the first one the ports are not known: it counts for
/// a connection without any.
fn parse(bytes: &[u8]) -> Option<Parsed> {
    let word = |at: usize| Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let (protocol, addresses, at, fragment) = match bytes.first()? >> 4 {
        4 => {
            let address = |at: usize| {
                Some(IpAddr::from(Ipv4Addr::from(<[u8; 4]>::try_from(bytes.get(at..at + 4)?).ok()?)))
            };
            let behind_first = word(6)? & 0x1fff != 0;
            (*bytes.get(9)?, (address(12)?, address(16)?), usize::from(bytes[0] & 15) * 4, behind_first)
        }
        6 => {
            let address = |at: usize| {
                Some(IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(bytes.get(at..at + 16)?).ok()?)))
            };
            (*bytes.get(6)?, (address(8)?, address(24)?), 40, false)
        }
        _ => return None,
    };
    let rest = bytes.len().saturating_sub(at) as u64;
    let parsed = |ports: [u16; 2], header: u64, detail| Parsed {
        key: Key { protocol, source: (addresses.0, ports[0]), destination: (addresses.1, ports[1]) },
        payload: rest.saturating_sub(header),
        detail,
    };
    let known = || match protocol {
        TCP => {
            let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
            let (offset, flags) = (*bytes.get(at + 12)? >> 4, *bytes.get(at + 13)?);
            let header = u64::from(offset) * 4;
            // SYN and FIN take a number each (RFC 9293 §3.4).
            let takes = rest.saturating_sub(header) + u64::from(flags & 1) + u64::from(flags >> 1 & 1);
            let ack = (flags & 16 != 0).then_some(number(at + 8)?);
            let detail = Detail::Tcp { seq: number(at + 4)?, ack, takes: takes as u32 };
            Some(parsed([word(at)?, word(at + 2)?], header, detail))
        }
        UDP => Some(parsed([word(at)?, word(at + 2)?], 8, Detail::Other)),
        ICMP | ICMPV6 => {
            let (request, reply) = if protocol == ICMP { (8, 0) } else { (128, 129) };
            let kind = *bytes.get(at)?;
            if kind != request && kind != reply {
                return Some(parsed([0, 0], 8, Detail::Other));
            }
            // RFC 792, RFC 4443 §4: both have the same identifier and number.
            let (identifier, number) = (word(at + 4)?, word(at + 6)?);
            let detail = if kind == request { Detail::Request(number) } else { Detail::Reply(number) };
            Some(parsed([identifier, identifier], 8, detail))
        }
        _ => None,
    };
    Some(if fragment { None } else { known() }.unwrap_or_else(|| parsed([0, 0], 0, Detail::Other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEAR: [u8; 4] = [10, 0, 0, 1];
    const FAR: [u8; 4] = [10, 0, 0, 2];

    fn ip(protocol: u8, [from, to]: [[u8; 4]; 2], rest: &[u8]) -> WirePacket {
        let mut bytes = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0];
        bytes.extend(from);
        bytes.extend(to);
        bytes.extend(rest);
        let len = bytes.len() as u16;
        bytes[2..4].copy_from_slice(&len.to_be_bytes());
        WirePacket::new(bytes, None, 1)
    }

    fn tcp(ends: [[u8; 4]; 2], ports: [u16; 2], seq: u32, ack: u32, flags: u8, payload: usize) -> WirePacket {
        let mut rest = Vec::new();
        ports.iter().for_each(|port| rest.extend(port.to_be_bytes()));
        rest.extend(seq.to_be_bytes());
        rest.extend(ack.to_be_bytes());
        rest.extend([0x50, flags, 0, 0, 0, 0, 0, 0]);
        rest.resize(20 + payload, 0);
        ip(TCP, ends, &rest)
    }

    fn ms(number: u64) -> Instant {
        Instant::from_nanos(number * 1_000_000)
    }

    #[test]
    fn a_retransmission_is_counted_and_gives_no_round_trip() {
        let (there, back) = ([NEAR, FAR], [FAR, NEAR]);
        let data = |seq| tcp(there, [1000, 80], seq, 1, 16, 100);
        let ack = |ack| tcp(back, [80, 1000], 1, ack, 16, 0);
        let mut connections = Connections::default();
        let mut note = |at, event, packet: &WirePacket| connections.packet(ms(at), event, packet);
        // Over the end of the sequence space.
        let first = u32::MAX - 99;
        note(0, PacketEvent::Sent, &data(first));
        note(10, PacketEvent::Sent, &ack(0));
        note(20, PacketEvent::Received, &ack(0));
        note(20, PacketEvent::Sent, &data(0));
        note(20, PacketEvent::Dropped(farpath_path::DropCause::Loss), &data(0));
        note(220, PacketEvent::Sent, &data(0));
        note(250, PacketEvent::Received, &ack(100));
        let (found, unlisted) = connections.finish();
        assert_eq!((found.len(), unlisted), (1, 0));
        let connection = &found[0];
        assert_eq!((connection.opener_port, connection.peer_port), (1000, 80));
        let Side { packets, dropped, payload_bytes, retransmissions, .. } = connection.sent;
        assert_eq!((packets, dropped, payload_bytes, retransmissions), (3, 1, 300, Some(1)));
        assert_eq!(connection.rtt_ns, Some([20_000_000; 4]));
        assert_eq!((connection.received.packets, connection.last_ns), (1, 250_000_000));
    }

    #[test]
    fn an_echo_is_one_exchange_with_its_round_trips() {
        let mut connections = Connections::default();
        for number in 0..3_u8 {
            let at = u64::from(number) * 1000;
            let request = ip(ICMP, [NEAR, FAR], &[8, 0, 0, 0, 0, 7, 0, number, 1, 2]);
            let reply = ip(ICMP, [FAR, NEAR], &[0, 0, 0, 0, 0, 7, 0, number, 1, 2]);
            connections.packet(ms(at), PacketEvent::Sent, &request);
            connections.packet(ms(at + 30 + u64::from(number)), PacketEvent::Received, &reply);
        }
        let (found, _) = connections.finish();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].protocol.as_str(), found[0].opener_port), ("icmp", 7));
        assert_eq!(found[0].rtt_ns, Some([30, 31, 32, 32].map(|ms| ms * 1_000_000)));
        assert_eq!((found[0].sent.payload_bytes, found[0].sent.retransmissions), (6, None));
    }

    #[test]
    fn connections_beyond_those_that_are_told_apart_are_counted() {
        let mut connections = Connections::default();
        let ends = [NEAR, FAR];
        for number in 0..MAX_CONNECTIONS + 3 {
            let ports = [(number % 60_000) as u16, (number / 60_000) as u16];
            connections.packet(ms(1), PacketEvent::Sent, &tcp(ends, ports, 0, 0, 2, 0));
        }
        let (found, unlisted) = connections.finish();
        assert_eq!((found.len(), unlisted), (MAX_CONNECTIONS, 3));
    }

    #[test]
    fn round_trips_beyond_those_that_are_kept_are_left_out() {
        let mut connections = Connections::default();
        for number in 0..=MAX_SAMPLES as u32 {
            let (low, high) = (number as u8, (number >> 8) as u8);
            let echo = |kind, ends| ip(ICMP, ends, &[kind, 0, 0, 0, 0, 7, high, low]);
            // The last one takes a second.
            let took = if number == MAX_SAMPLES as u32 { 1000 } else { 1 };
            connections.packet(ms(0), PacketEvent::Sent, &echo(8, [NEAR, FAR]));
            connections.packet(ms(took), PacketEvent::Received, &echo(0, [FAR, NEAR]));
        }
        let (found, _) = connections.finish();
        assert_eq!(found[0].rtt_ns, Some([1_000_000; 4]));
    }

    proptest::proptest! {
        #[test]
        fn no_packet_is_too_strange(mut bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..80), v6: bool) {
            if let Some(first) = bytes.first_mut() {
                *first = (*first & 15) | if v6 { 0x60 } else { 0x40 };
            }
            let mut connections = Connections::default();
            let packet = WirePacket::new(bytes, None, 1);
            for event in [PacketEvent::Sent, PacketEvent::Received] {
                connections.packet(ms(1), event, &packet);
            }
            connections.finish();
        }
    }
}
