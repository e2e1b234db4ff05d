//! A TCP packet out of a frame.

use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket, TcpOptionElement, TransportSlice};
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

/// The IP packet in a frame, as far as it was kept; `None` where it is none.
pub fn ip_packet(link: Link, data: &[u8]) -> Option<&[u8]> {
    let sliced = slice(link, data)?;
    let header = match sliced.net.as_ref()? {
        LaxNetSlice::Ipv4(ip) => ip.header().slice(),
        LaxNetSlice::Ipv6(ip) => ip.header().slice(),
        LaxNetSlice::Arp(_) => return None,
    };
    data.get((header.as_ptr() as usize).checked_sub(data.as_ptr() as usize)?..)
}

/// The TCP packet in a frame of this link type, of which `data` was kept and which was `length` bytes long; `None` where it is none. Of the packets in
/// tunnels the outer one is looked at.
pub fn parse(link: Link, data: &[u8], length: u32) -> Option<TcpPacket> {
    let sliced = slice(link, data)?;
    let Some(TransportSlice::Tcp(tcp)) = &sliced.transport else { return None };
    let place = |slice: &[u8]| (slice.as_ptr() as usize).checked_sub(data.as_ptr() as usize);
    let tcp_at = place(tcp.slice())?;
    // By the IP header; zero where a card was to fill it in, as for segments that it cuts.
    let (addresses, ip_at, ip_length, ecn) = match sliced.net.as_ref()? {
        LaxNetSlice::Ipv4(ip) => {
            let header = ip.header();
            let addresses = [IpAddr::V4(header.source_addr()), IpAddr::V4(header.destination_addr())];
            (addresses, place(header.slice())?, usize::from(header.total_len()), header.ecn().value())
        }
        LaxNetSlice::Ipv6(ip) => {
            let header = ip.header();
            let addresses = [IpAddr::V6(header.source_addr()), IpAddr::V6(header.destination_addr())];
            let length = match header.payload_length() {
                0 => 0,
                payload => 40 + usize::from(payload),
            };
            (addresses, place(header.slice())?, length, header.ecn().value())
        }
        LaxNetSlice::Arp(_) => return None,
    };
    let ip_length = if ip_length == 0 { (length as usize).checked_sub(ip_at)? } else { ip_length };
    let headers = tcp_at - ip_at + usize::from(tcp.data_offset()) * 4;
    let payload = u32::try_from(ip_length.checked_sub(headers)?).ok()?;
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
        marked: ecn == 3,
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
            TcpOptionElement::Noop
            | TcpOptionElement::SelectiveAcknowledgementPermitted
            | TcpOptionElement::Timestamp(..) => {}
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
    }
}
