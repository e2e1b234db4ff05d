//! A TCP packet out of a frame.

use crate::tunnel::{Tunnel, inner};
use etherparse::{
    EtherType, Ipv6Header, LaxNetSlice, LaxSlicedPacket, TcpOptionElement, TransportSlice, ip_number,
};
use farpath_tia1039::{HopByHop, QosMark, STRUCTURE_LEN, Structures};
use std::net::{IpAddr, SocketAddr};

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
    /// Whether a congested router has marked it (CE).
    pub marked: bool,
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

/// The TCP packet in a frame of this link type, of which `data` was kept and which was `length` bytes long; `None` where it is none. Where the
/// outer packet has no TCP, that in its tunnel is looked at.
pub fn parse(link: Link, data: &[u8], length: u32) -> Option<TcpPacket> {
    let (sliced, tunnel) = slice_with_tcp(link, data)?;
    let Some(TransportSlice::Tcp(tcp)) = &sliced.transport else { return None };
    let place = |slice: &[u8]| (slice.as_ptr() as usize).checked_sub(data.as_ptr() as usize);
    let tcp_at = place(tcp.slice())?;
    // By the IP header; zero where a card was to fill it in, as for segments that it cuts.
    let (addresses, ip_at, ip_length, traffic_class, ttl) = match sliced.net.as_ref()? {
        LaxNetSlice::Ipv4(ip) => {
            let header = ip.header();
            let addresses = [IpAddr::V4(header.source_addr()), IpAddr::V4(header.destination_addr())];
            let class = header.dcp().value() << 2 | header.ecn().value();
            (addresses, place(header.slice())?, usize::from(header.total_len()), class, header.ttl())
        }
        LaxNetSlice::Ipv6(ip) => {
            let header = ip.header();
            let addresses = [IpAddr::V6(header.source_addr()), IpAddr::V6(header.destination_addr())];
            let length = match header.payload_length() {
                0 => 0,
                payload => 40 + usize::from(payload),
            };
            (addresses, place(header.slice())?, length, header.traffic_class(), header.hop_limit())
        }
        LaxNetSlice::Arp(_) => return None,
    };
    let ip_length = if ip_length == 0 { (length as usize).checked_sub(ip_at)? } else { ip_length };
    let headers = tcp_at - ip_at + usize::from(tcp.data_offset()) * 4;
    let payload = u32::try_from(ip_length.checked_sub(headers)?).ok()?;
    let qos = QosMark::from_dscp(traffic_class >> 2);
    let signal = data.get(tcp_at + usize::from(tcp.data_offset()) * 4..).unwrap_or_default();
    let structures = match sliced.net.as_ref()? {
        LaxNetSlice::Ipv4(_) if qos == QosMark::Signal && payload <= 2 * STRUCTURE_LEN as u32 => {
            signal.get(..payload as usize).and_then(|signal| Structures::decode_v4(signal).ok())
        }
        // The hop-by-hop header is the first (RFC 8200 §4.1).
        LaxNetSlice::Ipv6(ip) if ip.header().next_header() == ip_number::IPV6_HOP_BY_HOP => {
            let options = data.get(ip_at + Ipv6Header::LEN..tcp_at).unwrap_or_default();
            let length = options.get(1).map_or(0, |length| (usize::from(*length) + 1) * 8);
            options
                .get(..length)
                .and_then(|options| HopByHop::decode(options).ok())
                .map(|found| found.structures)
        }
        _ => None,
    };
    let payload = if addresses[0].is_ipv4() && structures.is_some() { 0 } else { payload };
    let mut packet = TcpPacket {
        source: SocketAddr::new(addresses[0], tcp.source_port()),
        destination: SocketAddr::new(addresses[1], tcp.destination_port()),
        seq: tcp.sequence_number(),
        ack: tcp.ack().then(|| tcp.acknowledgment_number()),
        syn: tcp.syn(),
        fin: tcp.fin(),
        rst: tcp.rst(),
        push: tcp.psh(),
        window: tcp.window_size(),
        payload,
        mss: None,
        window_scale: None,
        sacked_to: None,
        marked: traffic_class & 3 == 3,
        tunnel,
        ttl,
        timestamps: None,
        qos,
        structures,
    };
    for option in tcp.options_iterator().flatten() {
        match option {
            TcpOptionElement::MaximumSegmentSize(mss) => packet.mss = Some(mss),
            TcpOptionElement::WindowScale(shift) => packet.window_scale = Some(shift.min(14)),
            TcpOptionElement::SelectiveAcknowledgement(first, others) => {
                let blocks = std::iter::once(first).chain(others.into_iter().flatten());
                let relative = |edge: u32| edge.wrapping_sub(packet.ack.unwrap_or(edge)).cast_signed();
                // A block below the acknowledgment is a duplicate that is reported (RFC 2883).
                packet.sacked_to = blocks
                    .map(|(_, right)| right)
                    .filter(|right| relative(*right) > 0)
                    .max_by_key(|right| relative(*right));
            }
            TcpOptionElement::Timestamp(own, echo) => packet.timestamps = Some((own, echo)),
            TcpOptionElement::Noop | TcpOptionElement::SelectiveAcknowledgementPermitted => {}
        }
    }
    Some(packet)
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
        marked: false,
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
}
