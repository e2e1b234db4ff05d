//! A TCP packet out of a frame.

use crate::stack::OptionOrder;
use crate::tunnel::{Tunnel, inner};
use etherparse::{
    EtherType, Ipv4HeaderSlice, Ipv6Header, Ipv6HeaderSlice, LaxNetSlice, LaxSlicedPacket, TcpHeaderSlice,
    TcpOptionElement, TransportSlice, ip_number,
};
use farpath_tia1039::{HopByHop, QosMark, STRUCTURE_LEN, Structures};
use std::fmt;
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};

/// Link types that are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// Ethernet, with VLAN tags or without.
    Ethernet,
    /// An IP packet by itself.
    Raw,
    /// Linux's "cooked" capture (`tcpdump -i any`), version 1.
    Cooked,
    /// The same, version 2.
    Cooked2,
    /// A loopback of BSD's: four bytes before the packet.
    Null,
}

impl Link {
    /// By the number of its type in the file (`LINKTYPE_...`); `None` where it is not known.
    pub fn from_type(link_type: i32) -> Option<Link> {
        match link_type {
            1 => Some(Link::Ethernet),
            12 | 14 | 101 | 228 | 229 => Some(Link::Raw),
            113 => Some(Link::Cooked),
            276 => Some(Link::Cooked2),
            0 | 108 => Some(Link::Null),
            _ => None,
        }
    }
}

/// What a diagnosis needs to know of a TCP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpPacket {
    /// Where it comes from.
    pub source: SocketAddr,
    /// Where it goes.
    pub destination: SocketAddr,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number, with ACK.
    pub ack: Option<u32>,
    /// SYN.
    pub syn: bool,
    /// FIN.
    pub fin: bool,
    /// RST.
    pub rst: bool,
    /// PSH: the segment ends what was written.
    pub push: bool,
    /// Window field, as it is on the wire.
    pub window: u16,
    /// Payload bytes on the wire, whatever the capture has kept.
    pub payload: u32,
    /// Maximum segment size option.
    pub mss: Option<u16>,
    /// Window scale option.
    pub window_scale: Option<u8>,
    /// Right edge of the highest SACK block.
    pub sacked_to: Option<u32>,
    /// Whether its first SACK block reports what had arrived before (D-SACK, RFC 2883 §4).
    pub is_dsack: bool,
    /// The options of a SYN, in their order; of other packets none.
    pub options: OptionOrder,
    /// Whether a congested router has marked it (CE).
    pub marked: bool,
    /// Whether it tells the other side of such marks (ECE, RFC 3168 §6.1); in a SYN the flag asks for ECN instead, and does not count.
    pub echoes_marks: bool,
    /// The tunnel that it is in.
    pub tunnel: Option<Tunnel>,
    /// Time to live, or hop limit.
    pub ttl: u8,
    /// Timestamps (RFC 7323 §3): its own, and the peer's that it echoes.
    pub timestamps: Option<(u32, u32)>,
    /// What its codepoint says of an explicit rate (TIA-1039): data of a flow that holds a grant, or a signal.
    pub qos: QosMark,
    /// What it says of a rate. In IPv4 that stands where data would, and does not count as payload.
    pub structures: Option<Structures>,
}

fn slice(link: Link, data: &[u8]) -> Option<LaxSlicedPacket<'_>> {
    Some(match link {
        Link::Ethernet => LaxSlicedPacket::from_ethernet(data).ok()?,
        Link::Raw => LaxSlicedPacket::from_ip(data).ok()?,
        Link::Null => LaxSlicedPacket::from_ip(data.get(4..)?).ok()?,
        Link::Cooked => LaxSlicedPacket::from_ether_type(
            EtherType(u16::from_be_bytes([*data.get(14)?, *data.get(15)?])),
            data.get(16..)?,
        ),
        Link::Cooked2 => LaxSlicedPacket::from_ether_type(
            EtherType(u16::from_be_bytes([*data.first()?, *data.get(1)?])),
            data.get(20..)?,
        ),
    })
}

/// The same, of the packet in a tunnel where the outer one has no TCP.
fn slice_with_tcp(link: Link, data: &[u8]) -> Option<(LaxSlicedPacket<'_>, Option<Tunnel>)> {
    let outer = slice(link, data);
    let is_tcp = |packet: &LaxSlicedPacket<'_>| matches!(packet.transport, Some(TransportSlice::Tcp(_)));
    match outer {
        Some(packet) if is_tcp(&packet) => Some((packet, None)),
        _ => {
            let (at, tunnel) = inner(link, data)?;
            Some((LaxSlicedPacket::from_ip(&data[at..]).ok()?, Some(tunnel)))
        }
    }
}

/// What a frame holds that is no TCP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Other {
    /// A link type that is not known (`LINKTYPE_...`).
    LinkType(i32),
    /// What is in Ethernet's frames by that number, and is neither IP nor ARP.
    EtherType(u16),
    /// ARP.
    Arp,
    /// A protocol in IP, by its number. TCP is one whose header is not whole.
    Ip(u8),
    /// What cannot be read.
    Unreadable,
}

impl Other {
    /// Of a frame without TCP.
    pub(crate) fn new(link: Link, data: &[u8]) -> Other {
        let Some(packet) = slice(link, data) else { return Other::Unreadable };
        let protocol = match &packet.net {
            Some(LaxNetSlice::Arp(_)) => return Other::Arp,
            Some(LaxNetSlice::Ipv4(ip)) => ip.payload_ip_number(),
            Some(LaxNetSlice::Ipv6(ip)) => ip.payload().ip_number,
            None => {
                return packet.ether_payload().map_or(Other::Unreadable, |payload| {
                    match payload.ether_type {
                        // What would be IP, and is none.
                        EtherType::IPV4 | EtherType::IPV6 => Other::Unreadable,
                        ether_type => Other::EtherType(ether_type.0),
                    }
                });
            }
        };
        Other::Ip(protocol.0)
    }
}

impl fmt::Display for Other {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Other::LinkType(number) => write!(f, "of link type {number}, which is not known"),
            Other::EtherType(number) => write!(f, "of EtherType {number:#06x}"),
            Other::Arp => f.write_str("of ARP"),
            Other::Ip(1) => f.write_str("of ICMP"),
            Other::Ip(6) => f.write_str("of TCP, of which too little was kept"),
            Other::Ip(17) => f.write_str("of UDP"),
            Other::Ip(58) => f.write_str("of ICMPv6"),
            Other::Ip(number) => write!(f, "of IP protocol {number}"),
            Other::Unreadable => f.write_str("that cannot be read"),
        }
    }
}

/// The IP packet in a frame that [`parse`] finds TCP in, or the outer one, as far as it was kept; `None` where it is none.
pub fn ip_packet(link: Link, data: &[u8]) -> Option<&[u8]> {
    let sliced = slice_with_tcp(link, data).map(|found| found.0).or_else(|| slice(link, data))?;
    let header = match sliced.net.as_ref()? {
        LaxNetSlice::Ipv4(ip) => ip.header().slice(),
        LaxNetSlice::Ipv6(ip) => ip.header().slice(),
        LaxNetSlice::Arp(_) => return None,
    };
    data.get((header.as_ptr() as usize).checked_sub(data.as_ptr() as usize)?..)
}

/// The IP header that TCP stands behind.
enum Ip<'a> {
    V4(Ipv4HeaderSlice<'a>),
    V6(Ipv6HeaderSlice<'a>),
}

impl Ip<'_> {
    /// Length of the packet by its header; zero where a card was to fill it in, as for segments that it cuts.
    fn length(&self) -> usize {
        match self {
            Ip::V4(ip) => usize::from(ip.total_len()),
            Ip::V6(ip) => match ip.payload_length() {
                0 => 0,
                payload => 40 + usize::from(payload),
            },
        }
    }

    fn traffic_class(&self) -> u8 {
        match self {
            Ip::V4(ip) => ip.dcp().value() << 2 | ip.ecn().value(),
            Ip::V6(ip) => ip.traffic_class(),
        }
    }

    fn ttl(&self) -> u8 {
        match self {
            Ip::V4(ip) => ip.ttl(),
            Ip::V6(ip) => ip.hop_limit(),
        }
    }

    /// From where, and to where, at these ports. They are made where they stay: what is copied right behind its parts waits for them.
    fn ends(&self, ports: [u16; 2]) -> [SocketAddr; 2] {
        match self {
            Ip::V4(ip) => [
                SocketAddr::V4(SocketAddrV4::new(ip.source_addr(), ports[0])),
                SocketAddr::V4(SocketAddrV4::new(ip.destination_addr(), ports[1])),
            ],
            Ip::V6(ip) => [
                SocketAddr::V6(SocketAddrV6::new(ip.source_addr(), ports[0], 0, 0)),
                SocketAddr::V6(SocketAddrV6::new(ip.destination_addr(), ports[1], 0, 0)),
            ],
        }
    }
}

/// What a frame has before the data of its TCP packet.
struct Headers<'a> {
    tcp: TcpHeaderSlice<'a>,
    ip: Ip<'a>,
    ip_at: usize,
    tcp_at: usize,
    /// Of IPv6: whether a hop-by-hop header is the first (RFC 8200 §4.1).
    hop_by_hop: bool,
    tunnel: Option<Tunnel>,
}

/// Headers that most frames have, without a look at others: Ethernet or none, IP without fragments and extensions, TCP. [`Headers::new`] finds the
/// same in them.
fn usual_headers(link: Link, data: &[u8]) -> Option<Headers<'_>> {
    let ip_at = match link {
        Link::Raw => 0,
        Link::Ethernet if matches!(data.get(12..14)?, [0x08, 0x00] | [0x86, 0xdd]) => 14,
        _ => return None,
    };
    let packet = data.get(ip_at..)?;
    let (header, ip) = match packet.first()? >> 4 {
        4 => {
            let ip = Ipv4HeaderSlice::from_slice(packet).ok()?;
            let is_usual = ip.protocol() == ip_number::TCP && !ip.is_fragmenting_payload();
            (ip.slice().len(), is_usual.then_some(Ip::V4(ip))?)
        }
        6 => {
            let ip = Ipv6HeaderSlice::from_slice(packet).ok()?;
            (Ipv6Header::LEN, (ip.next_header() == ip_number::TCP).then_some(Ip::V6(ip))?)
        }
        _ => return None,
    };
    // What follows the packet in the frame is none of its own.
    let ip_length = ip.length();
    let end = if ip_length == 0 { packet.len() } else { ip_length.min(packet.len()) };
    let tcp = TcpHeaderSlice::from_slice(packet.get(header..end)?).ok()?;
    let tcp_at = ip_at + header;
    Some(Headers { tcp, ip, ip_at, tcp_at, hop_by_hop: false, tunnel: None })
}

impl Headers<'_> {
    /// Of any frame. It takes much room, which the usual ones need not have.
    #[cold]
    #[inline(never)]
    fn new(link: Link, data: &[u8]) -> Option<Headers<'_>> {
        let (sliced, tunnel) = slice_with_tcp(link, data)?;
        let Some(TransportSlice::Tcp(tcp)) = &sliced.transport else { return None };
        let place = |slice: &[u8]| (slice.as_ptr() as usize).checked_sub(data.as_ptr() as usize);
        let tcp_at = place(tcp.slice())?;
        let (ip_at, hop_by_hop, ip) = match sliced.net.as_ref()? {
            LaxNetSlice::Ipv4(ip) => {
                let ip_at = place(ip.header().slice())?;
                (ip_at, false, Ip::V4(Ipv4HeaderSlice::from_slice(data.get(ip_at..)?).ok()?))
            }
            LaxNetSlice::Ipv6(ip) => {
                let ip_at = place(ip.header().slice())?;
                let hop_by_hop = ip.header().next_header() == ip_number::IPV6_HOP_BY_HOP;
                (ip_at, hop_by_hop, Ip::V6(Ipv6HeaderSlice::from_slice(data.get(ip_at..)?).ok()?))
            }
            LaxNetSlice::Arp(_) => return None,
        };
        let tcp = TcpHeaderSlice::from_slice(data.get(tcp_at..)?).ok()?;
        Some(Headers { tcp, ip, ip_at, tcp_at, hop_by_hop, tunnel })
    }
}

/// The TCP packet in a frame of this link type, of which `data` was kept and which was `length` bytes long; `None` where it is none. Where the
/// outer packet has no TCP, that in its tunnel is looked at.
pub fn parse(link: Link, data: &[u8], length: u32) -> Option<TcpPacket> {
    parse_headers(usual_headers(link, data).or_else(|| Headers::new(link, data))?, data, length)
}

fn parse_headers(headers: Headers<'_>, data: &[u8], length: u32) -> Option<TcpPacket> {
    let Headers { tcp, ip, ip_at, tcp_at, hop_by_hop, tunnel } = headers;
    let is_v4 = matches!(ip, Ip::V4(_));
    let traffic_class = ip.traffic_class();
    let ip_length = match ip.length() {
        0 => (length as usize).checked_sub(ip_at)?,
        length => length,
    };
    let headers = tcp_at - ip_at + tcp.slice().len();
    let payload = u32::try_from(ip_length.checked_sub(headers)?).ok()?;
    let qos = QosMark::from_dscp(traffic_class >> 2);
    let structures = if is_v4 {
        let signal = qos == QosMark::Signal && payload <= 2 * STRUCTURE_LEN as u32;
        let signal =
            signal.then(|| data.get(tcp_at + tcp.slice().len()..)?.get(..payload as usize)).flatten();
        signal.and_then(|signal| Structures::decode_v4(signal).ok())
    } else if hop_by_hop {
        let options = data.get(ip_at + Ipv6Header::LEN..tcp_at).unwrap_or_default();
        let length = options.get(1).map_or(0, |length| (usize::from(*length) + 1) * 8);
        let options = options.get(..length).and_then(|options| HopByHop::decode(options).ok());
        options.map(|found| found.structures)
    } else {
        None
    };
    let payload = if is_v4 && structures.is_some() { 0 } else { payload };
    let ack = tcp.ack().then(|| tcp.acknowledgment_number());
    let Options { mss, window_scale, sacked_to, is_dsack, timestamps } = Options::new(&tcp, ack);
    let [source, destination] = ip.ends([tcp.source_port(), tcp.destination_port()]);
    Some(TcpPacket {
        source,
        destination,
        seq: tcp.sequence_number(),
        ack,
        syn: tcp.syn(),
        fin: tcp.fin(),
        rst: tcp.rst(),
        push: tcp.psh(),
        window: tcp.window_size(),
        payload,
        mss,
        window_scale,
        sacked_to,
        is_dsack,
        options: if tcp.syn() { OptionOrder::new(tcp.options()) } else { OptionOrder::default() },
        marked: traffic_class & 3 == 3,
        echoes_marks: tcp.ece() && !tcp.syn(),
        tunnel,
        ttl: ip.ttl(),
        timestamps,
        qos,
        structures,
    })
}

/// What the options of a TCP packet say; the names are [`TcpPacket`]'s.
#[derive(Default)]
struct Options {
    mss: Option<u16>,
    window_scale: Option<u8>,
    sacked_to: Option<u32>,
    is_dsack: bool,
    timestamps: Option<(u32, u32)>,
}

impl Options {
    #[inline]
    fn new(tcp: &TcpHeaderSlice<'_>, ack: Option<u32>) -> Options {
        match tcp.options() {
            [] => Options::default(),
            options => match timestamps_alone(options) {
                Some(timestamps) => Options { timestamps: Some(timestamps), ..Options::default() },
                None => Options::of_any(tcp, ack),
            },
        }
    }

    #[inline(never)]
    fn of_any(tcp: &TcpHeaderSlice<'_>, ack: Option<u32>) -> Options {
        let mut found = Options::default();
        for option in tcp.options_iterator().flatten() {
            match option {
                TcpOptionElement::MaximumSegmentSize(mss) => found.mss = Some(mss),
                TcpOptionElement::WindowScale(shift) => found.window_scale = Some(shift.min(14)),
                TcpOptionElement::SelectiveAcknowledgement(first, others) => {
                    let blocks = std::iter::once(first).chain(others.into_iter().flatten());
                    let relative = |edge: u32| edge.wrapping_sub(ack.unwrap_or(edge)).cast_signed();
                    let is_within = |(left, right): (u32, u32)| {
                        relative(left) <= relative(first.0) && relative(first.1) <= relative(right)
                    };
                    found.is_dsack =
                        ack.is_some() && relative(first.1) <= 0 || others[0].is_some_and(is_within);
                    // A block below the acknowledgment is a duplicate that is reported (RFC 2883).
                    found.sacked_to = blocks
                        .map(|(_, right)| right)
                        .filter(|right| relative(*right) > 0)
                        .max_by_key(|right| relative(*right));
                }
                TcpOptionElement::Timestamp(own, echo) => found.timestamps = Some((own, echo)),
                TcpOptionElement::Noop | TcpOptionElement::SelectiveAcknowledgementPermitted => {}
            }
        }
        found
    }
}

/// The options that most packets have: timestamps, and two that fill up (RFC 7323, appendix A).
fn timestamps_alone(options: &[u8]) -> Option<(u32, u32)> {
    let [1, 1, 8, 10, times @ ..] = options else { return None };
    let (own, echo) = <&[u8; 8]>::try_from(times).ok()?.split_at(4);
    let number = |bytes: &[u8]| bytes.iter().fold(0, |number, &byte| number << 8 | u32::from(byte));
    Some((number(own), number(echo)))
}

/// For tests: a packet without anything in it, from one end to the other.
#[cfg(test)]
pub(crate) fn bare(source: SocketAddr, destination: SocketAddr) -> TcpPacket {
    TcpPacket {
        source,
        destination,
        seq: 0,
        ack: None,
        syn: false,
        fin: false,
        rst: false,
        push: false,
        window: 1000,
        payload: 0,
        mss: None,
        window_scale: None,
        sacked_to: None,
        is_dsack: false,
        options: OptionOrder::default(),
        marked: false,
        echoes_marks: false,
        tunnel: None,
        ttl: 64,
        timestamps: None,
        qos: QosMark::None,
        structures: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpath_tia1039::{OptionType, RateUnit, Rounding, Structure, insert_v4};

    fn request() -> Structures {
        Structures::one(Structure::request(RateUnit::KbitPerS.encode(100_000_000, Rounding::Up)))
    }

    #[test]
    fn a_structure_in_ipv4_is_no_payload() {
        let mut bytes = vec![0; 40];
        bytes[..4].copy_from_slice(&[0x45, 0, 0, 40]);
        (bytes[9], bytes[32], bytes[33]) = (6, 0x50, 0x10);
        insert_v4(&mut bytes, &request()).expect("it fits");
        let packet = parse(Link::Raw, &bytes, 56).expect("a packet");
        assert_eq!((packet.payload, packet.structures, packet.qos), (0, Some(request()), QosMark::Signal));
        // Without the codepoint it is data of the program.
        bytes[1] = 0;
        let packet = parse(Link::Raw, &bytes, 56).expect("a packet");
        assert_eq!((packet.payload, packet.structures), (16, None));
        // With it, and with what is no structure, as well.
        (bytes[1], bytes[50]) = (0b1100, 0xf0);
        let packet = parse(Link::Raw, &bytes, 56).expect("a packet");
        assert_eq!((packet.payload, packet.structures), (16, None));
        // What was cut off says nothing.
        let packet = parse(Link::Raw, &bytes[..44], 56).expect("a packet");
        assert_eq!((packet.payload, packet.structures), (16, None));
    }

    #[test]
    fn a_structure_in_ipv6_stands_before_tcp() {
        let structures = request();
        let mut options = [0; 2 * STRUCTURE_LEN];
        let length =
            HopByHop { next_header: 6, option_type: OptionType::Tia1039, structures }.encode(&mut options);
        let mut bytes = vec![0; 40];
        (bytes[0], bytes[5], bytes[6]) = (0x60, length as u8 + 20 + 5, 0);
        bytes.extend_from_slice(&options[..length]);
        let mut tcp = [0; 25];
        (tcp[12], tcp[13]) = (0x50, 0x10);
        bytes.extend_from_slice(&tcp);
        let packet = parse(Link::Raw, &bytes, bytes.len() as u32).expect("a packet");
        let rate = packet.structures.map(|structures| structures.first.available);
        assert_eq!((packet.payload, rate), (5, Some(structures.first.available)));
    }

    #[test]
    fn timestamps_are_the_same_by_themselves_and_among_options() {
        let of = |options: &[u8]| {
            let mut bytes = vec![0; 40];
            bytes[0] = 0x45;
            (bytes[3], bytes[9]) = (40 + options.len() as u8, 6);
            bytes[32] = ((5 + options.len() / 4) << 4) as u8;
            bytes.extend_from_slice(options);
            parse(Link::Raw, &bytes, bytes.len() as u32).expect("a packet").timestamps
        };
        let times = [1, 2, 3, 4, 0xff, 6, 7, 8];
        let expected = Some((0x0102_0304, 0xff06_0708));
        assert_eq!(of(&[&[1, 1, 8, 10][..], &times].concat()), expected);
        assert_eq!(of(&[&[8, 10][..], &times, &[1, 1]].concat()), expected);
        assert_eq!(of(&[&[1, 1, 8, 10][..], &times, &[1, 1, 1, 1]].concat()), expected);
        assert_eq!((of(&[]), of(&[1, 1, 8, 9, 0, 0, 0, 0])), (None, None));
    }

    /// Frames with each of their bytes changed, and cut off behind each.
    #[test]
    fn usual_headers_are_those_that_are_found_in_any_frame() {
        let tcp = [
            1, 2, 3, 4, 0, 0, 0, 9, 0, 0, 0, 7, 0x80, 0x18, 1, 0, 0, 0, 0, 0, 1, 1, 8, 10, 0, 0, 0, 5, 0, 0,
            0, 6,
        ];
        let mut v4 =
            vec![0x46, 0, 0, 24 + 32 + 4, 0, 1, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 1, 1, 1, 1];
        v4.extend([&tcp[..], &[0; 4]].concat());
        let mut v6 = vec![0x60, 0, 0, 0, 0, 32 + 4, 6, 64];
        v6.extend([&[1; 16][..], &[2; 16], &tcp, &[0; 4]].concat());
        // With what fills an Ethernet frame up.
        let ethernet =
            |kind: u16, packet: &[u8]| [&[0; 12][..], &kind.to_be_bytes(), packet, &[0; 6]].concat();
        let frames = [
            (Link::Ethernet, ethernet(0x0800, &v4)),
            (Link::Ethernet, ethernet(0x86dd, &v6)),
            (Link::Raw, v4),
            (Link::Raw, v6),
        ];
        let mut usual = 0;
        for (link, frame) in frames {
            for at in 0..frame.len() {
                for value in [0, 1, 2, 6, 17, 0x40, 0x45, 0x60, 0x7f, 0xff, frame[at]] {
                    let mut changed = frame.clone();
                    changed[at] = value;
                    for kept in [at + 1, changed.len()] {
                        let (data, length) = (&changed[..kept], frame.len() as u32);
                        let Some(found) = usual_headers(link, data) else { continue };
                        usual += 1;
                        let any = Headers::new(link, data).map(|any| parse_headers(any, data, length));
                        assert_eq!(Some(parse_headers(found, data, length)), any, "{link:?}: {data:?}");
                    }
                }
            }
        }
        assert!(usual > 1000, "{usual}");
    }
}
