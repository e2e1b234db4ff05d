//! A segment as the bytes of an IP packet, and back (RFC 791, RFC 8200, RFC 9293 §3.1).
//!
//! The payload of a segment is its place in the stream: encoding fills it in from [`pattern`], decoding
//! says where it lies in the packet, so that the caller can hold it against [`pattern::first_mismatch`].

use crate::{Ecn, Flags, SackBlock, Segment, Seq, Timestamps, pattern};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::ops::Range;
use etherparse::checksum::Sum16BitWords;
use etherparse::{
    IpDscp, IpEcn, IpNumber, Ipv4Header, Ipv4HeaderSlice, Ipv6Header, Ipv6HeaderSlice, TcpHeader,
    TcpHeaderSlice, ip_number,
};

/// What the IP header says beside addresses and lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpFields {
    /// Identification; IPv4 only, zero otherwise.
    pub id: u16,
    /// Time to live, or hop limit.
    pub ttl: u8,
    /// The differentiated services codepoint, six bits (RFC 2474). The two of ECN beside it are the segment's.
    pub dscp: u8,
}

impl Default for IpFields {
    fn default() -> IpFields {
        IpFields { id: 0, ttl: 64, dscp: 0 }
    }
}

/// What a packet's bytes say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// Where it comes from.
    pub source: SocketAddr,
    /// Where it goes to, of the same IP version.
    pub destination: SocketAddr,
    /// The rest of the IP header.
    pub ip: IpFields,
    /// The TCP header, and how much payload there is.
    pub segment: Segment,
    /// Where in the packet's bytes the payload lies.
    pub payload: Range<usize>,
}

/// Why a segment cannot be put into a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// Source and destination are of different IP versions.
    #[error("an IPv4 and an IPv6 address in one packet")]
    MixedVersions,
    /// The options do not fit into a TCP header.
    #[error("{0} bytes of TCP options; there is room for 40")]
    Options(usize),
    /// The packet would be longer than its length field can say.
    #[error("a packet of {0} bytes; the length field ends at 65535")]
    TooLong(usize),
}

/// Why bytes are no TCP packet, or none that may be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Neither IPv4 nor IPv6.
    #[error("IP version {0}; expected 4 or 6")]
    Version(u8),
    /// The IP header is cut short, or its own length is impossible.
    #[error("the IP header is cut short, or says an impossible length")]
    IpHeader,
    /// The packet is not as long as its IP header says.
    #[error("{actual} bytes; the IP header says {stated}")]
    Length {
        /// What the header says, the header included.
        stated: usize,
        /// What there is.
        actual: usize,
    },
    /// The IPv4 header's checksum is wrong.
    #[error("wrong IPv4 header checksum")]
    IpChecksum,
    /// A fragment; nothing here puts them together.
    #[error("a fragment of a packet")]
    Fragment,
    /// Another protocol.
    #[error("IP protocol {0}; expected TCP, 6")]
    NotTcp(u8),
    /// An IPv6 extension header is cut short.
    #[error("an IPv6 extension header is cut short")]
    Extension,
    /// The TCP header is cut short, or its own length is impossible.
    #[error("the TCP header is cut short, or says an impossible length")]
    TcpHeader,
    /// The TCP checksum is wrong.
    #[error("wrong TCP checksum")]
    TcpChecksum,
    /// An option is cut short, or not of the length that its kind has.
    #[error("TCP option {kind} is cut short or of a wrong length")]
    Option {
        /// The option's kind.
        kind: u8,
    },
}

/// Option kinds (IANA, TCP parameters).
mod kind {
    pub const END: u8 = 0;
    pub const NOP: u8 = 1;
    pub const MSS: u8 = 2;
    pub const WINDOW_SCALE: u8 = 3;
    pub const SACK_PERMITTED: u8 = 4;
    pub const SACK: u8 = 5;
    pub const TIMESTAMPS: u8 = 8;
}

/// Where in a TCP header the control bits and the checksum are.
const FLAGS_AT: usize = 13;
const CHECKSUM_AT: usize = 16;
const MAX_OPTIONS: usize = 40;

/// Appends the packet that carries `segment` to `packet`; its payload is the stream's bytes from `offset` on.
/// On an error `packet` is as it was.
pub fn encode(
    source: SocketAddr,
    destination: SocketAddr,
    ip: &IpFields,
    segment: &Segment,
    offset: u64,
    packet: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let options_len = segment.options_len();
    if options_len > MAX_OPTIONS {
        return Err(EncodeError::Options(options_len));
    }
    let tcp_len = TcpHeader::MIN_LEN + options_len + usize::from(segment.len);
    let ip_header = IpHeader::new(source.ip(), destination.ip(), ip, segment.ecn, tcp_len)?;
    ip_header.append_to(packet);
    let tcp_at = packet.len();
    packet.extend_from_slice(&tcp_header(source.port(), destination.port(), segment).to_bytes());
    let payload_at = packet.len();
    packet.resize(tcp_at + tcp_len, 0);
    pattern::fill(offset, &mut packet[payload_at..]);
    let checksum = ip_header.tcp_checksum(&packet[tcp_at..]);
    packet[tcp_at + CHECKSUM_AT..][..2].copy_from_slice(&checksum.to_be_bytes());
    Ok(())
}

/// Reads a packet, strictly: lengths must agree and checksums be right. Unknown options are skipped, and so are
/// IPv4 options and IPv6 extension headers; urgent data is not set apart.
pub fn decode(packet: &[u8]) -> Result<Packet, DecodeError> {
    read(packet, TcpChecksum::Verified)
}

/// Reads a packet as [`decode`] does, but for the TCP checksum, which is not looked at: for packets whose checksum a
/// device is to finish, and for whoever has had it verified.
pub fn decode_unverified(packet: &[u8]) -> Result<Packet, DecodeError> {
    read(packet, TcpChecksum::NotLookedAt)
}

#[derive(PartialEq)]
enum TcpChecksum {
    Verified,
    NotLookedAt,
}

fn read(packet: &[u8], checksum: TcpChecksum) -> Result<Packet, DecodeError> {
    let (ip_header, fields, tcp_at) = IpHeader::parse(packet)?;
    let slice = TcpHeaderSlice::from_slice(&packet[tcp_at..]).map_err(|_| DecodeError::TcpHeader)?;
    let payload = tcp_at + slice.slice().len()..packet.len();
    if checksum == TcpChecksum::Verified && ip_header.tcp_checksum(&packet[tcp_at..]) != 0 {
        return Err(DecodeError::TcpChecksum);
    }
    let (seq, ack) = (Seq(slice.sequence_number()), Seq(slice.acknowledgment_number()));
    let mut segment = Segment::new(Flags(slice.slice()[FLAGS_AT]), seq, ack);
    segment.window = slice.window_size();
    segment.ecn = ip_header.ecn();
    // An IP packet holds less than 64 kB.
    segment.len = payload.len() as u16;
    read_options(slice.options(), &mut segment)?;
    let (source, destination) = ip_header.addresses();
    Ok(Packet {
        source: SocketAddr::new(source, slice.source_port()),
        destination: SocketAddr::new(destination, slice.destination_port()),
        ip: fields,
        segment,
        payload,
    })
}

/// Either IP header.
enum IpHeader {
    V4(Ipv4Header),
    V6(Ipv6Header),
}

impl IpHeader {
    fn new(
        source: IpAddr,
        destination: IpAddr,
        ip: &IpFields,
        ecn: Ecn,
        tcp_len: usize,
    ) -> Result<IpHeader, EncodeError> {
        match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let whole = tcp_len + Ipv4Header::MIN_LEN;
                let total_len = u16::try_from(whole).map_err(|_| EncodeError::TooLong(whole))?;
                let mut header = Ipv4Header {
                    dscp: IpDscp::try_new(ip.dscp & 0x3f).expect("six bits"),
                    ecn: IpEcn::try_new(ecn as u8).expect("two bits"),
                    total_len,
                    identification: ip.id,
                    dont_fragment: true,
                    time_to_live: ip.ttl,
                    protocol: ip_number::TCP,
                    source: source.octets(),
                    destination: destination.octets(),
                    ..Ipv4Header::default()
                };
                header.header_checksum = header.calc_header_checksum();
                Ok(IpHeader::V4(header))
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let whole = tcp_len + Ipv6Header::LEN;
                Ok(IpHeader::V6(Ipv6Header {
                    traffic_class: ip.dscp << 2 | ecn as u8,
                    payload_length: u16::try_from(tcp_len).map_err(|_| EncodeError::TooLong(whole))?,
                    next_header: ip_number::TCP,
                    hop_limit: ip.ttl,
                    source: source.octets(),
                    destination: destination.octets(),
                    ..Ipv6Header::default()
                }))
            }
            _ => Err(EncodeError::MixedVersions),
        }
    }

    fn append_to(&self, packet: &mut Vec<u8>) {
        match self {
            IpHeader::V4(header) => packet.extend_from_slice(&header.to_bytes()),
            IpHeader::V6(header) => packet.extend_from_slice(&header.to_bytes()),
        }
    }

    /// The header, its fields, and where in `packet` TCP begins.
    fn parse(packet: &[u8]) -> Result<(IpHeader, IpFields, usize), DecodeError> {
        match packet.first().map(|first| first >> 4) {
            Some(4) => IpHeader::parse_v4(packet),
            Some(6) => IpHeader::parse_v6(packet),
            Some(other) => Err(DecodeError::Version(other)),
            None => Err(DecodeError::IpHeader),
        }
    }

    fn parse_v4(packet: &[u8]) -> Result<(IpHeader, IpFields, usize), DecodeError> {
        let slice = Ipv4HeaderSlice::from_slice(packet).map_err(|_| DecodeError::IpHeader)?;
        check_length(usize::from(slice.total_len()), packet)?;
        let header = slice.to_header();
        // Over the bytes as they are: a header read and written again may have lost a bit nobody knows.
        if Sum16BitWords::new().add_slice(slice.slice()).ones_complement() != 0 {
            return Err(DecodeError::IpChecksum);
        }
        if slice.is_fragmenting_payload() {
            return Err(DecodeError::Fragment);
        }
        expect_tcp(header.protocol)?;
        let fields =
            IpFields { id: header.identification, ttl: header.time_to_live, dscp: header.dscp.value() };
        let tcp_at = slice.slice().len();
        if tcp_at > packet.len() {
            return Err(DecodeError::IpHeader);
        }
        Ok((IpHeader::V4(header), fields, tcp_at))
    }

    fn parse_v6(packet: &[u8]) -> Result<(IpHeader, IpFields, usize), DecodeError> {
        let header = Ipv6HeaderSlice::from_slice(packet).map_err(|_| DecodeError::IpHeader)?.to_header();
        check_length(Ipv6Header::LEN + usize::from(header.payload_length), packet)?;
        let (mut next, mut rest) = (header.next_header, &packet[Ipv6Header::LEN..]);
        while matches!(
            next,
            ip_number::IPV6_HOP_BY_HOP | ip_number::IPV6_ROUTE | ip_number::IPV6_DEST_OPTIONS
        ) {
            (next, rest) =
                Ipv6Header::skip_header_extension_in_slice(rest, next).map_err(|_| DecodeError::Extension)?;
        }
        if next == ip_number::IPV6_FRAG {
            return Err(DecodeError::Fragment);
        }
        expect_tcp(next)?;
        let fields = IpFields { id: 0, ttl: header.hop_limit, dscp: header.traffic_class >> 2 };
        Ok((IpHeader::V6(header), fields, packet.len() - rest.len()))
    }

    fn addresses(&self) -> (IpAddr, IpAddr) {
        match self {
            IpHeader::V4(header) => {
                (Ipv4Addr::from(header.source).into(), Ipv4Addr::from(header.destination).into())
            }
            IpHeader::V6(header) => {
                (Ipv6Addr::from(header.source).into(), Ipv6Addr::from(header.destination).into())
            }
        }
    }

    fn ecn(&self) -> Ecn {
        match self {
            IpHeader::V4(header) => Ecn::from_bits(header.ecn.value()),
            IpHeader::V6(header) => Ecn::from_bits(header.traffic_class),
        }
    }

    /// The checksum that `tcp`, header and payload, needs; zero where it has the right one already.
    fn tcp_checksum(&self, tcp: &[u8]) -> u16 {
        let addresses = match self {
            IpHeader::V4(ip) => Sum16BitWords::new().add_4bytes(ip.source).add_4bytes(ip.destination),
            IpHeader::V6(ip) => Sum16BitWords::new().add_16bytes(ip.source).add_16bytes(ip.destination),
        };
        let sum = addresses
            .add_2bytes([0, ip_number::TCP.0])
            .add_2bytes((tcp.len() as u16).to_be_bytes())
            .add_slice(tcp);
        sum.ones_complement().to_be()
    }
}

fn check_length(stated: usize, packet: &[u8]) -> Result<(), DecodeError> {
    let actual = packet.len();
    if stated == actual { Ok(()) } else { Err(DecodeError::Length { stated, actual }) }
}

fn expect_tcp(protocol: IpNumber) -> Result<(), DecodeError> {
    if protocol == ip_number::TCP { Ok(()) } else { Err(DecodeError::NotTcp(protocol.0)) }
}

fn tcp_header(source_port: u16, destination_port: u16, segment: &Segment) -> TcpHeader {
    let has = |flag| segment.flags.contains(flag);
    let mut header = TcpHeader::new(source_port, destination_port, segment.seq.0, segment.window);
    header.acknowledgment_number = segment.ack.0;
    (header.fin, header.syn, header.rst) = (has(Flags::FIN), has(Flags::SYN), has(Flags::RST));
    (header.psh, header.ack, header.urg) = (has(Flags::PSH), has(Flags::ACK), has(Flags::URG));
    (header.ece, header.cwr) = (has(Flags::ECE), has(Flags::CWR));
    let mut options = Options { bytes: [0; MAX_OPTIONS], len: 0 };
    options.write(segment);
    header.set_options_raw(options.as_slice()).expect("checked to be at most 40 bytes");
    header
}

/// Options being written: aligned by NOPs as Linux does (`tcp_options_write()`), in the order MSS, SACK-permitted, timestamps,
/// window scale, SACK. [`Segment::options_len`] counts the same.
struct Options {
    bytes: [u8; MAX_OPTIONS],
    len: usize,
}

impl Options {
    fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    fn write(&mut self, segment: &Segment) {
        if let Some(mss) = segment.mss {
            self.push(&[kind::MSS, 4]);
            self.push(&mss.to_be_bytes());
        }
        if segment.sack_permitted != segment.timestamps.is_some() {
            self.push(&[kind::NOP, kind::NOP]);
        }
        if segment.sack_permitted {
            self.push(&[kind::SACK_PERMITTED, 2]);
        }
        if let Some(timestamps) = segment.timestamps {
            self.push(&[kind::TIMESTAMPS, 10]);
            self.push(&timestamps.value.to_be_bytes());
            self.push(&timestamps.echo.to_be_bytes());
        }
        if let Some(shift) = segment.window_scale {
            self.push(&[kind::NOP, kind::WINDOW_SCALE, 3, shift]);
        }
        if !segment.sack.is_empty() {
            let blocks = segment.sack.as_slice();
            self.push(&[kind::NOP, kind::NOP, kind::SACK, 2 + 8 * blocks.len() as u8]);
            for block in blocks {
                self.push(&block.start.0.to_be_bytes());
                self.push(&block.end.0.to_be_bytes());
            }
        }
    }
}

/// RFC 9293 §3.2: kinds 0 and 1 are one byte, all others have a length.
fn read_options(mut options: &[u8], segment: &mut Segment) -> Result<(), DecodeError> {
    while let Some((&kind, rest)) = options.split_first() {
        match kind {
            kind::END => return Ok(()),
            kind::NOP => options = rest,
            _ => {
                let malformed = DecodeError::Option { kind };
                let len = rest.first().copied().map(usize::from).filter(|&len| len >= 2).ok_or(malformed)?;
                let body = options.get(2..len).ok_or(malformed)?;
                read_option(kind, body, segment).ok_or(malformed)?;
                options = &options[len..];
            }
        }
    }
    Ok(())
}

fn read_option(kind: u8, body: &[u8], segment: &mut Segment) -> Option<()> {
    match kind {
        kind::MSS => segment.mss = Some(u16::from_be_bytes(body.try_into().ok()?)),
        kind::WINDOW_SCALE => segment.window_scale = Some(u8::from_be_bytes(body.try_into().ok()?)),
        kind::SACK_PERMITTED => {
            let [] = body else { return None };
            segment.sack_permitted = true;
        }
        kind::TIMESTAMPS => {
            let words: [u8; 8] = body.try_into().ok()?;
            let [value, echo] = two_words(words);
            segment.timestamps = Some(Timestamps { value, echo });
        }
        kind::SACK => {
            let (blocks, []) = body.as_chunks::<8>() else { return None };
            for &block in blocks {
                let [start, end] = two_words(block).map(Seq);
                segment.sack.push(SackBlock { start, end }).then_some(())?;
            }
            let [_, ..] = blocks else { return None };
        }
        _ => {}
    }
    Some(())
}

fn two_words([a, b, c, d, e, f, g, h]: [u8; 8]) -> [u32; 2] {
    [u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])]
}
