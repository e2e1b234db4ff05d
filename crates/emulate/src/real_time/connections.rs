//! What the packets of a path tell of the connections whose they are: found by protocol, addresses and ports, whatever program made them.

use super::held::Held;
use farpath_emu::{PacketEvent, Queues, WirePacket};
use farpath_observe::drops::drops_by_cause;
use farpath_observe::passive::{PassiveFlow, Seen};
use farpath_observe::recorder::on_path;
use farpath_observe::row_budget::RowBudget;
use farpath_observe::series::Series;
use farpath_path::{Direction, DropCounts, PerDirection};
use farpath_run::{DelayFigures, FlowRow, Metric, Outcome, ProgramFigures, SeriesRow};
use farpath_sim::End;
use farpath_tcp::{Flags, Segment};
use farpath_units::{Bytes, Duration, DurationHistogram, Instant};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Most connections that are told apart. A program that opens more of them has its packets counted as unlisted.
pub const MAX_CONNECTIONS: usize = 65_536;
/// Most echo requests whose answer is waited for.
const MAX_OUTSTANDING: usize = 65_536;
/// Series of what passes have no more than one value in this time, of each connection and way.
const EVERY: Duration = Duration::from_millis(10);

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
    /// Round trips of what TCP sends to its ACK (Karn's rule: none of what was sent twice), and of ICMP echoes, seen at the sending host,
    /// in ns: the least, the median, the 99th percentile and the most; the two in between within 1 %. Acknowledgements that their host
    /// delays are in it.
    pub rtt_ns: Option<[u64; 4]>,
    /// What held the sender of most of its data, by what its kernel counts: of TCP.
    pub held: Option<Held>,
}

/// A connection as everyone is told of it, and as results have it.
#[derive(Debug)]
pub(super) struct Found {
    pub connection: Connection,
    /// Its data is what the side sent that sent more.
    pub row: FlowRow,
    pub series: Vec<SeriesRow>,
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
    echo: Option<Echo>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Echo {
    Request(u16),
    Reply(u16),
}

/// One way of a connection.
#[derive(Debug, Default)]
struct Way {
    side: Side,
    drops: DropCounts,
    /// Payload bytes that have come to the other host: of TCP in order, of others each packet's.
    arrived: u64,
    /// When the last of them came.
    last_arrival: Option<Instant>,
    /// Echo requests, with when they were sent.
    waiting: VecDeque<(u16, Instant)>,
    echoes: DurationHistogram,
    /// How long packets that arrived had waited in queues; `None` on a path without one.
    waits: Option<DurationHistogram>,
    /// What its TCP tells, of this way's data.
    tcp: Option<Box<PassiveFlow>>,
    /// When its sender took the connection as open.
    connected: Option<Instant>,
    series: Option<Series>,
    /// When the next values of what is sent, and of what arrives, are due.
    due: [Instant; 2],
}

#[derive(Debug)]
struct Open {
    key: Key,
    /// Of the first packet.
    direction: Direction,
    first: Instant,
    last: Instant,
    /// Of the opener, and of its peer.
    ways: [Way; 2],
    /// One of them has reset it.
    reset: bool,
}

/// All connections of a path.
#[derive(Debug, Default)]
pub(super) struct Connections {
    numbers: HashMap<Key, usize>,
    open: Vec<Open>,
    unlisted: u64,
    /// Where series are recorded.
    row_budget: Option<RowBudget>,
}

impl Connections {
    /// Those of a run that records series, where there is room for some.
    pub fn new(row_budget: Option<RowBudget>) -> Connections {
        Connections { row_budget, ..Connections::default() }
    }

    /// Takes note of a packet; gives the number of its connection.
    pub fn packet(
        &mut self,
        at: Instant,
        event: PacketEvent,
        direction: Direction,
        packet: &WirePacket,
        queues: Option<Queues<'_>>,
    ) -> Option<usize> {
        let parsed = parse(packet.bytes())?;
        let tcp = if parsed.key.protocol == TCP { packet.decode().ok() } else { None };
        let segment = tcp.as_ref().map(|tcp| &tcp.segment);
        let Some((number, way)) = self.find(at, direction, &parsed, event, segment) else {
            self.unlisted += u64::from(event == PacketEvent::Sent);
            return None;
        };
        let open = &mut self.open[number];
        open.last = open.last.max(at);
        // A packet that a device refuses is lost outside of the path.
        let on_path = on_path(event)?;
        if let Some(tcp) = &tcp {
            let ports = [tcp.source.port(), tcp.destination.port()];
            let (number, ttl, segment) = (packet.number(), tcp.ip.ttl, &tcp.segment);
            open.tcp(way, &Seen { at, event: on_path, direction, number, ports, ttl, segment });
        }
        let backlog = queues.and_then(|queues| queues.backlog(direction));
        match event {
            PacketEvent::Sent => open.ways[way].sent(at, &parsed, packet.bytes().len() as u64, backlog),
            PacketEvent::Received => {
                open.received(at, way, &parsed, backlog.is_some().then(|| packet.queueing()));
            }
            PacketEvent::Dropped(cause) => open.ways[way].drops.add(cause),
            PacketEvent::Refused => {}
        }
        Some(number)
    }

    /// Of a connection of TCP the near end, and the far one.
    pub fn ends(&self, number: usize) -> Option<[SocketAddr; 2]> {
        let Open { key, direction, .. } = &self.open[number];
        let [opener, peer] = [key.source, key.destination].map(SocketAddr::from);
        (key.protocol == TCP).then_some(match direction {
            Direction::Forward => [opener, peer],
            Direction::Reverse => [peer, opener],
        })
    }

    /// Which connection it is of, and whether its opener (0) or the peer (1) sends it. What is sent may be of a new one.
    fn find(
        &mut self,
        at: Instant,
        direction: Direction,
        parsed: &Parsed,
        event: PacketEvent,
        segment: Option<&Segment>,
    ) -> Option<(usize, usize)> {
        let key = parsed.key;
        let back = Key { source: key.destination, destination: key.source, ..key };
        let known = self.numbers.get(&key).map(|&number| (number, 0));
        let known = known.or_else(|| self.numbers.get(&back).map(|&number| (number, 1)));
        let is_sent = event == PacketEvent::Sent;
        if let Some((number, way)) = known.filter(|&known| !(is_sent && self.begins_anew(known, segment))) {
            return Some((number, way));
        }
        if !is_sent || self.open.len() >= MAX_CONNECTIONS {
            return None;
        }
        let number = self.open.len();
        self.numbers.remove(&back);
        self.numbers.insert(key, number);
        let way = || Way {
            tcp: (key.protocol == TCP).then(Box::default),
            series: self.row_budget.clone().map(|row_budget| Series::within(number as u32, row_budget)),
            ..Way::default()
        };
        let ways = [way(), way()];
        self.open.push(Open { key, direction, first: at, last: at, ways, reset: false });
        Some((number, 0))
    }

    /// Whether it opens another connection between the ports of one that was.
    fn begins_anew(&self, (number, way): (usize, usize), segment: Option<&Segment>) -> bool {
        let Some(segment) = segment else { return false };
        let isn = self.open[number].ways[way].tcp.as_ref().and_then(|tcp| tcp.data().isn());
        let opens = segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::ACK);
        opens && isn.is_some_and(|isn| isn != segment.seq)
    }

    /// All of them, in the order of their first packets, and how many packets were sent beside them.
    pub fn finish(self) -> (Vec<Found>, u64) {
        ((0..).zip(self.open).map(|(number, open)| open.finish(number)).collect(), self.unlisted)
    }
}

impl Way {
    fn sent(&mut self, at: Instant, parsed: &Parsed, bytes: u64, backlog: Option<Bytes>) {
        self.side.packets += 1;
        self.side.bytes += bytes;
        self.side.payload_bytes += parsed.payload;
        if let Some(Echo::Request(number)) = parsed.echo
            && self.waiting.len() < MAX_OUTSTANDING
        {
            self.waiting.push_back((number, at));
        }
        if let Some(series) = self.series.as_mut().filter(|_| at >= self.due[0]) {
            self.due[0] = at + EVERY;
            series.note(at, Metric::Queue, backlog.map(|bytes| bytes.0));
        }
    }

    fn received(&mut self, at: Instant, payload: u64, waited: Option<Duration>) {
        let before = self.arrived;
        self.arrived = match &self.tcp {
            Some(tcp) => tcp.data().arrived(),
            None => before + payload,
        };
        if self.arrived > before {
            self.last_arrival = Some(at);
        }
        if let Some(waited) = waited {
            self.waits.get_or_insert_default().record(waited);
        }
        if let Some(series) = self.series.as_mut().filter(|_| at >= self.due[1]) {
            self.due[1] = at + EVERY;
            series.note(at, Metric::Delivered, Some(self.arrived));
            series.note(at, Metric::QueueingDelay, waited.map(Duration::as_nanos));
        }
    }
}

impl Open {
    /// What its TCP tells: each way's data is watched with all that goes the other way.
    fn tcp(&mut self, way: usize, seen: &Seen<'_>) {
        let (at, flags) = (seen.at, seen.segment.flags);
        for (number, data) in self.ways.iter_mut().enumerate() {
            let from = if number == way { End::Sender } else { End::Receiver };
            if let Some(tcp) = &mut data.tcp {
                tcp.packet(from, seen);
            }
        }
        if seen.event == farpath_sim::PacketEvent::Received {
            self.reset |= flags.contains(Flags::RST);
            // The opener by the SYN/ACK, its peer by what answers that.
            let opens = if way == 1 { flags.contains(Flags::SYN) } else { !flags.contains(Flags::SYN) };
            if opens && flags.contains(Flags::ACK) && !flags.contains(Flags::RST) {
                self.ways[1 - way].connected.get_or_insert(at);
            }
        }
    }

    /// What arrives at the other host, where it may answer what that sent.
    fn received(&mut self, at: Instant, way: usize, parsed: &Parsed, waited: Option<Duration>) {
        self.ways[way].received(at, parsed.payload, waited);
        let asked = &mut self.ways[1 - way];
        if let Some(Echo::Reply(number)) = parsed.echo
            && let Some(place) = asked.waiting.iter().position(|&(waits, _)| waits == number)
            && let Some((_, sent)) = asked.waiting.remove(place)
        {
            asked.echoes.record(at.saturating_since(sent));
        }
    }

    fn finish(mut self, number: u32) -> Found {
        for way in &mut self.ways {
            way.side.dropped = way.drops.total();
            way.side.retransmissions = way.tcp.as_ref().map(|tcp| tcp.counts().retransmissions);
            if let (Some(series), Some(last)) = (&mut way.series, way.last_arrival) {
                series.note(last, Metric::Delivered, Some(way.arrived));
            }
        }
        let mut rtts = DurationHistogram::default();
        self.ways.iter().for_each(|way| rtts.merge(way.rtts()));
        let percentile = |percent| rtts.percentile(percent);
        let rtt_ns = || {
            let four = [rtts.least()?, percentile(50)?, percentile(99)?, rtts.longest()?];
            Some(four.map(Duration::as_nanos))
        };
        let [sent, received] = [self.ways[0].side, self.ways[1].side];
        let is_numbered = matches!(self.key.protocol, TCP | UDP);
        let connection = Connection {
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
            peer_port: if is_numbered { self.key.destination.1 } else { 0 },
            first_ns: self.first.as_nanos(),
            last_ns: self.last.as_nanos(),
            sent,
            received,
            rtt_ns: rtt_ns(),
            held: None,
        };
        let (row, data) = self.row(number, &connection);
        Found {
            row,
            connection,
            series: self.ways[data].series.take().map(Series::into_rows).unwrap_or_default(),
        }
    }

    /// The row, and which way its data goes.
    fn row(&self, number: u32, connection: &Connection) -> (FlowRow, usize) {
        let Connection { sent, received, .. } = connection;
        let data = usize::from(received.payload_bytes > sent.payload_bytes);
        let [there, back] = [&self.ways[data], &self.ways[1 - data]];
        let direction = if data == 0 { self.direction } else { self.direction.opposite() };
        let (outcome, detail) = self.outcome(there);
        let transfer_time = there.last_arrival.map(|last| last.saturating_since(self.first));
        let seconds = transfer_time.map(Duration::as_secs_f64).filter(|seconds| *seconds > 0.0);
        let mut row = FlowRow {
            detail,
            start: self.first,
            ended_at: there.last_arrival.filter(|_| outcome == Outcome::Completed).or(Some(self.last)),
            connect_time: there.connected.map(|at| at.saturating_since(self.first)),
            transfer_time,
            bytes_read: Bytes(there.arrived),
            goodput_bit_per_s: seconds.map(|seconds| there.arrived as f64 * 8.0 / seconds),
            ..FlowRow::new(number, direction.name(), outcome, Bytes(there.sent_once()))
        };
        match &there.tcp {
            Some(tcp) => {
                tcp.counts().enter(&mut row);
                row.opened = Some(f64::from(u8::from(self.ways[0].connected.is_some())));
            }
            None => {
                let drops = PerDirection { forward: there.drops, reverse: back.drops };
                row.drops_data_direction = Some(drops.forward.total() as f64);
                row.drops_ack_direction = Some(drops.reverse.total() as f64);
                row.drops_by_cause = drops_by_cause(&drops);
                row.throughput_bit_per_s =
                    seconds.map(|seconds| there.side.payload_bytes as f64 * 8.0 / seconds);
                row.opened = None;
            }
        }
        row.delays = DelayFigures::from_histograms(there.rtts(), there.waits.as_ref());
        row.min_rtt = there.rtts().least();
        let end = |address, port| Some(SocketAddr::new(address, port).to_string().into());
        row.program = ProgramFigures {
            protocol: Some(connection.protocol.clone().into()),
            opener: end(connection.opener, connection.opener_port),
            peer: end(connection.peer, connection.peer_port),
            back: Some(Bytes(back.sent_once())),
        };
        (row, data)
    }

    /// How a connection ended whose data goes that way, and what more there is to say.
    fn outcome(&self, data: &Way) -> (Outcome, String) {
        let say = |outcome, detail: &str| (outcome, detail.to_owned());
        let Some(tcp) = &data.tcp else { return say(Outcome::Unknown, "no packet of it says that it ended") };
        match self.ways[0].connected {
            _ if tcp.data().has_ended() => say(Outcome::Completed, ""),
            None if self.reset => say(Outcome::Aborted, "refused"),
            None => say(Outcome::ConnectTimedOut, "no answer to a SYN had come when the run was over"),
            Some(_) if self.reset => say(Outcome::Aborted, "reset"),
            Some(_) => say(Outcome::Horizon, "still open when the run was over"),
        }
    }
}

impl Way {
    /// Bytes of payload, those of TCP each once.
    fn sent_once(&self) -> u64 {
        self.tcp.as_ref().map_or(self.side.payload_bytes, |tcp| tcp.data().payload())
    }

    fn rtts(&self) -> &DurationHistogram {
        self.tcp.as_ref().map_or(&self.echoes, |tcp| tcp.rtts())
    }
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
    let parsed = |ports: [u16; 2], header: u64, echo| Parsed {
        key: Key { protocol, source: (addresses.0, ports[0]), destination: (addresses.1, ports[1]) },
        payload: rest.saturating_sub(header),
        echo,
    };
    let known = || match protocol {
        TCP => {
            let header = u64::from(*bytes.get(at + 12)? >> 4) * 4;
            Some(parsed([word(at)?, word(at + 2)?], header, None))
        }
        UDP => Some(parsed([word(at)?, word(at + 2)?], 8, None)),
        ICMP | ICMPV6 => {
            let (request, reply) = if protocol == ICMP { (8, 0) } else { (128, 129) };
            let kind = *bytes.get(at)?;
            if kind != request && kind != reply {
                return Some(parsed([0, 0], 8, None));
            }
            // RFC 792, RFC 4443 §4: both have the same identifier and number.
            let (identifier, number) = (word(at + 4)?, word(at + 6)?);
            let echo = if kind == request { Echo::Request(number) } else { Echo::Reply(number) };
            Some(parsed([identifier, identifier], 8, Some(echo)))
        }
        _ => None,
    };
    Some(if fragment { None } else { known() }.unwrap_or_else(|| parsed([0, 0], 0, None)))
}

#[cfg(test)]
mod tests {
    use super::*;

    use farpath_experiment::{Experiment, Scenario};
    use farpath_tcp::Seq;
    use farpath_tcp::wire::{IpFields, encode};

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

    /// A packet whose segment has these numbers, with a window of 64 kB.
    fn tcp(ends: [([u8; 4], u16); 2], flags: Flags, [seq, ack]: [u32; 2], payload: u16) -> WirePacket {
        let [from, to] = ends.map(SocketAddr::from);
        let segment = Segment { len: payload, window: u16::MAX, ..Segment::new(flags, Seq(seq), Seq(ack)) };
        let mut bytes = Vec::new();
        encode(from, to, &IpFields::default(), &segment, 0, &mut bytes).expect("it fits");
        WirePacket::new(bytes, None, 1)
    }

    fn note(connections: &mut Connections, at: u64, event: PacketEvent, packet: &WirePacket) {
        connections.packet(ms(at), event, Direction::Forward, packet, None);
    }

    fn scenario() -> Scenario {
        let text = "title = \"T\"\npath = \"geo\"\ntransfer.size = \"1 kB\"\n";
        Experiment::parse(text, "test.toml", &[]).expect("good").point(0).scenario.clone()
    }

    fn since(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn ms(number: u64) -> Instant {
        Instant::from_nanos(number * 1_000_000)
    }

    /// A server sends 200 B for a request of 10 B over 10 ms each way. Its second segment is lost, and sent again.
    #[test]
    fn a_connection_is_a_row_whose_data_is_what_the_side_sent_that_sent_more() {
        let (client, server) = ((NEAR, 1000), (FAR, 80));
        let (there, back) = ([client, server], [server, client]);
        // Over the end of the sequence space.
        let first = u32::MAX - 150;
        let at = |position: u32| first.wrapping_add(position);
        let data = |position| tcp(back, Flags::ACK, [at(position), 11], 100);
        let mut connections = Connections::new(Some(RowBudget::for_run(&scenario())));
        let mut pass = |sent: u64, packet: &WirePacket| {
            note(&mut connections, sent, PacketEvent::Sent, packet);
            note(&mut connections, sent + 10, PacketEvent::Received, packet);
        };
        pass(0, &tcp(there, Flags::SYN, [0, 0], 0));
        pass(10, &tcp(back, Flags::SYN | Flags::ACK, [at(0), 1], 0));
        pass(20, &tcp(there, Flags::ACK, [1, at(1)], 10));
        pass(30, &data(1));
        note(&mut connections, 30, PacketEvent::Sent, &data(101));
        note(&mut connections, 30, PacketEvent::Dropped(farpath_path::DropCause::Loss), &data(101));
        let mut pass = |sent: u64, packet: &WirePacket| {
            note(&mut connections, sent, PacketEvent::Sent, packet);
            note(&mut connections, sent + 10, PacketEvent::Received, packet);
        };
        pass(40, &tcp(there, Flags::ACK, [11, at(101)], 0));
        pass(230, &data(101));
        pass(240, &tcp(there, Flags::ACK, [11, at(201)], 0));
        pass(260, &tcp(back, Flags::FIN | Flags::ACK, [at(201), 11], 0));
        // Between the same ports another one begins, and is refused.
        pass(300, &tcp(there, Flags::SYN, [7777, 0], 0));
        pass(310, &tcp(back, Flags::RST | Flags::ACK, [0, 7778], 0));
        let (found, unlisted) = connections.finish();
        assert_eq!((found.len(), unlisted), (2, 0));
        let Found { connection, row, series } = &found[0];
        assert_eq!((connection.opener_port, connection.peer_port), (1000, 80));
        let Side { packets, dropped, payload_bytes, retransmissions, .. } = connection.received;
        assert_eq!((packets, dropped, payload_bytes, retransmissions), (5, 1, 300, Some(1)));
        assert_eq!((connection.sent.payload_bytes, connection.last_ns), (10, 270_000_000));
        // What was sent twice gives none.
        assert_eq!(connection.rtt_ns, Some([20_000_000; 4]));
        assert_eq!((row.outcome, row.detail.as_str(), row.direction), (Outcome::Completed, "", "reverse"));
        assert_eq!((row.bytes, row.bytes_read, row.program.back), (Bytes(200), Bytes(200), Some(Bytes(10))));
        assert_eq!((row.retransmissions, row.drops_data_direction), (Some(1.0), Some(1.0)));
        assert_eq!((row.connect_time, row.transfer_time), (Some(since(30)), Some(since(240))));
        assert_eq!(row.goodput_bit_per_s, Some(1600.0 / 0.24));
        assert_eq!(row.program.peer.as_deref(), Some("10.0.0.2:80"));
        let delivered: Vec<_> = series.iter().filter(|row| row.metric == Metric::Delivered).collect();
        let delivered: Vec<_> = delivered.iter().map(|row| (row.time, row.value)).collect();
        assert_eq!(delivered, [(ms(20), 0), (ms(40), 100), (ms(240), 200)]);
        let refused = &found[1].row;
        assert_eq!((refused.outcome, refused.detail.as_str()), (Outcome::Aborted, "refused"));
        assert_eq!((refused.opened, refused.start), (Some(0.0), ms(300)));
    }

    #[test]
    fn an_echo_is_one_exchange_with_its_round_trips() {
        let mut connections = Connections::default();
        for number in 0..3_u8 {
            let at = u64::from(number) * 1000;
            let request = ip(ICMP, [NEAR, FAR], &[8, 0, 0, 0, 0, 7, 0, number, 1, 2]);
            let reply = ip(ICMP, [FAR, NEAR], &[0, 0, 0, 0, 0, 7, 0, number, 1, 2]);
            note(&mut connections, at, PacketEvent::Sent, &request);
            note(&mut connections, at + 30 + u64::from(number), PacketEvent::Received, &reply);
        }
        let (found, _) = connections.finish();
        assert_eq!(found.len(), 1);
        let Found { connection, row, .. } = &found[0];
        assert_eq!((connection.protocol.as_str(), connection.opener_port), ("icmp", 7));
        let [least, median, _, most] = connection.rtt_ns.expect("three of them");
        assert_eq!((least, most), (30_000_000, 32_000_000));
        assert!(median.abs_diff(31_000_000) < 310_000, "{median}");
        assert_eq!((connection.sent.payload_bytes, connection.sent.retransmissions), (6, None));
        // Nothing says that there will be no more of them.
        assert_eq!((row.outcome, row.opened, row.bytes), (Outcome::Unknown, None, Bytes(6)));
    }

    #[test]
    fn connections_beyond_those_that_are_told_apart_are_counted() {
        let mut connections = Connections::default();
        for number in 0..MAX_CONNECTIONS + 3 {
            let ends = [(NEAR, (number % 60_000) as u16), (FAR, (number / 60_000) as u16)];
            note(&mut connections, 1, PacketEvent::Sent, &tcp(ends, Flags::SYN, [0, 0], 0));
        }
        let (found, unlisted) = connections.finish();
        assert_eq!((found.len(), unlisted), (MAX_CONNECTIONS, 3));
    }

    #[test]
    fn echoes_beyond_those_that_are_waited_for_give_no_round_trip() {
        let mut connections = Connections::default();
        let echo = |kind, ends| ip(ICMP, ends, &[kind, 0, 0, 0, 0, 7, 0, 0]);
        for _ in 0..MAX_OUTSTANDING + 3 {
            note(&mut connections, 0, PacketEvent::Sent, &echo(8, [NEAR, FAR]));
        }
        for _ in 0..MAX_OUTSTANDING + 3 {
            note(&mut connections, 1, PacketEvent::Received, &echo(0, [FAR, NEAR]));
        }
        assert_eq!(connections.open[0].ways[0].echoes.count(), MAX_OUTSTANDING as u64);
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
                note(&mut connections, 1, event, &packet);
            }
            connections.finish();
        }
    }
}
