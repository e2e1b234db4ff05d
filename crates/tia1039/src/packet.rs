//! A whole IP packet: which flow it belongs to, and the structures that it carries.

use crate::{DecodeError, HopByHop, QosMark, Structures};
use core::net::{IpAddr, SocketAddr};
use core::ops::Range;
use etherparse::{IpNumber, Ipv6Header, NetSlice, SlicedPacket, TransportSlice, ip_number};

/// Where structures are in a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// They are the payload of TCP or UDP.
    Payload,
    /// They are the hop-by-hop options header.
    HopByHop,
}

/// What an IP packet says to those who know the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QosPacket {
    /// Where it comes from.
    pub source: SocketAddr,
    /// Where it goes to.
    pub destination: SocketAddr,
    /// 6 for TCP, 17 for UDP, 50 for what ESP hides in IPv6, whose ports are 0 then.
    pub protocol: u8,
    /// The IPv6 flow label; 0 in IPv4.
    pub flow_label: u32,
    /// The differentiated services codepoint, six bits.
    pub dscp: u8,
    /// What that says.
    pub mark: QosMark,
    /// What it carries, where it carries structures.
    pub structures: Option<Structures>,
    /// Where they are, if any.
    pub carrier: Carrier,
    /// The bytes of the packet that they are in; empty where there are none.
    pub place: Range<usize>,
}

/// Why a packet is not understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// A header is cut short or says an impossible length.
    #[error("no IP packet: a header is cut short, or says an impossible length")]
    Header,
    /// More bytes than the IP header says.
    #[error("{actual} bytes; the IP header says {stated}")]
    Length {
        /// What the header says, the header included.
        stated: usize,
        /// What there is.
        actual: usize,
    },
    /// Neither TCP nor UDP, nor ESP in IPv6.
    #[error("protocol {0}; expected TCP (6), UDP (17), or in IPv6 ESP (50)")]
    Protocol(u8),
    /// A part of a packet.
    #[error("a fragment of a packet, which shows no ports")]
    Fragment,
    /// It is marked as a signal, and what it carries is no structure.
    #[error("marked QoSSignal, but its payload is no QoS Structure: {0}")]
    Payload(DecodeError),
    /// It has a hop-by-hop header with an option of this protocol's type, and that is no structure.
    #[error("the hop-by-hop options are no QoS Structure: {0}")]
    HopByHop(DecodeError),
}

impl QosPacket {
    /// Reads an IP packet. Checksums are not looked at.
    ///
    /// In IPv4 structures are known by the codepoint QoSSignal; in IPv6 the option says what it is, and a header whose
    /// first option is of another type is not of this protocol.
    ///
    /// # Errors
    /// What is no packet of TCP or UDP, and what says that it carries structures but does not.
    pub fn decode(packet: &[u8]) -> Result<QosPacket, PacketError> {
        let sliced = SlicedPacket::from_ip(packet).map_err(|_| PacketError::Header)?;
        let at = |part: &[u8]| part.as_ptr() as usize - packet.as_ptr() as usize;
        let (addresses, dscp, flow_label, stated, fragment, protocol) = match &sliced.net {
            Some(NetSlice::Ipv4(ip)) => {
                let header = ip.header();
                let ends: (IpAddr, IpAddr) = (header.source_addr().into(), header.destination_addr().into());
                let stated = usize::from(header.total_len());
                (ends, header.dcp().value(), 0, stated, ip.is_payload_fragmented(), header.protocol())
            }
            Some(NetSlice::Ipv6(ip)) => {
                let header = ip.header();
                let ends: (IpAddr, IpAddr) = (header.source_addr().into(), header.destination_addr().into());
                let stated = Ipv6Header::LEN + usize::from(header.payload_length());
                let label = header.flow_label().value();
                (
                    ends,
                    header.traffic_class() >> 2,
                    label,
                    stated,
                    ip.is_payload_fragmented(),
                    ip.payload().ip_number,
                )
            }
            _ => return Err(PacketError::Header),
        };
        if stated != packet.len() {
            return Err(PacketError::Length { stated, actual: packet.len() });
        }
        if fragment {
            return Err(PacketError::Fragment);
        }
        let (ports, payload) = match &sliced.transport {
            Some(TransportSlice::Tcp(tcp)) => ((tcp.source_port(), tcp.destination_port()), tcp.payload()),
            Some(TransportSlice::Udp(udp)) => ((udp.source_port(), udp.destination_port()), udp.payload()),
            // RFC 4303: what follows is encrypted. Hop-by-hop options and the flow label are not.
            _ if protocol == ip_number::ENCAP_SEC && addresses.0.is_ipv6() => ((0, 0), &packet[..0]),
            _ => return Err(PacketError::Protocol(protocol.0)),
        };
        let mut found = QosPacket {
            source: SocketAddr::new(addresses.0, ports.0),
            destination: SocketAddr::new(addresses.1, ports.1),
            protocol: protocol.0,
            flow_label,
            dscp,
            mark: QosMark::from_dscp(dscp),
            structures: None,
            carrier: Carrier::Payload,
            place: 0..0,
        };
        match hop_by_hop(packet) {
            Some(options) if is_ours(options) => {
                let decoded = HopByHop::decode(options).map_err(PacketError::HopByHop)?;
                found.structures = Some(decoded.structures);
                found.carrier = Carrier::HopByHop;
                found.place = Ipv6Header::LEN..Ipv6Header::LEN + options.len();
            }
            _ if found.mark == QosMark::Signal && addresses.0.is_ipv4() => {
                found.structures = Some(Structures::decode_v4(payload).map_err(PacketError::Payload)?);
                found.place = at(payload)..at(payload) + payload.len();
            }
            _ => {}
        }
        Ok(found)
    }
}

/// The hop-by-hop header of an IPv6 packet, which can only be the first (RFC 8200 §4.1).
fn hop_by_hop(packet: &[u8]) -> Option<&[u8]> {
    let (version, next) = (packet.first()? >> 4, IpNumber(*packet.get(6)?));
    let rest = packet.get(Ipv6Header::LEN..)?;
    let len = (usize::from(*rest.get(1)?) + 1) * 8;
    if version == 6 && next == ip_number::IPV6_HOP_BY_HOP { rest.get(..len) } else { None }
}

/// Whether its first option is of a type that structures have.
fn is_ours(options: &[u8]) -> bool {
    matches!(options[2], 0x20 | 0x3e)
}
