//! An IP packet on its way.

use crate::headers::{self, Content, Datagram, Headers, ipv4, u16_at};
use crate::{Frame, VirtioHeader, checksum};
use farpath_elements::ExplicitRatePacket;
use farpath_path::PathPacket;
use farpath_tcp::wire::{self, DecodeError};
use farpath_tia1039::router::QosPacket;
use farpath_tia1039::{STRUCTURE_LEN, Structure};
use farpath_units::{Bytes, Duration, Instant};
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// IPv6, 32 bytes of options, TCP with SACK blocks, and some 40 of ESP.
const LONGEST_ENCRYPTED_ACK: usize = 180;

/// A checksum that is to be finished where the packet meets a real wire: so far its field holds the sum of the
/// pseudo-header, which says all that is not in `start..` of the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartialChecksum {
    /// Where its coverage begins.
    pub start: u16,
    /// Where its field lies, from there.
    pub offset: u16,
}

impl PartialChecksum {
    /// What a device was told of a packet of `len` bytes: `Err` where the field would lie beyond it.
    pub(crate) fn from_header(
        header: VirtioHeader,
        len: usize,
    ) -> Result<Option<PartialChecksum>, OutOfRange> {
        if header.flags & VirtioHeader::NEEDS_CHECKSUM == 0 {
            return Ok(None);
        }
        let partial = PartialChecksum { start: header.checksum_start, offset: header.checksum_offset };
        if partial.field() + 2 <= len { Ok(Some(partial)) } else { Err(OutOfRange) }
    }

    fn field(self) -> usize {
        usize::from(self.start) + usize::from(self.offset)
    }
}

#[derive(Debug)]
pub(crate) struct OutOfRange;

/// Where the checksum lies in a UDP header, in which zero says that there is none (RFC 768).
const UDP_CHECKSUM_AT: u16 = 6;

/// One IP packet, as it would be on a wire; never a super-packet.
#[derive(Debug)]
pub struct WirePacket {
    bytes: Box<[u8]>,
    checksum: Option<PartialChecksum>,
    number: u64,
    /// What it came in, where it is to leave in the same.
    frame: Option<Frame>,
    /// Where its parts are, if it is a whole packet of TCP or UDP.
    content: Content,
    meter: Option<Meter>,
    queueing: Duration,
}

impl WirePacket {
    /// The packet of these bytes: the `number`th that went its way, from 1.
    ///
    /// # Panics
    /// When the checksum that is to be finished lies beyond the bytes.
    pub fn new(bytes: Vec<u8>, checksum: Option<PartialChecksum>, number: u64) -> WirePacket {
        assert!(
            checksum.is_none_or(|partial| partial.field() + 2 <= bytes.len()),
            "a checksum beyond the packet"
        );
        let content = headers::inspect(&bytes).unwrap_or(Content::Other);
        WirePacket {
            bytes: bytes.into(),
            checksum,
            number,
            frame: None,
            content,
            meter: None,
            queueing: Duration::ZERO,
        }
    }

    pub(crate) fn metered(mut self, meter: &Meter) -> WirePacket {
        meter.add(self.cost());
        self.meter = Some(meter.clone());
        self
    }

    pub(crate) fn framed(mut self, frame: Option<Frame>) -> WirePacket {
        self.frame = frame;
        self
    }

    pub(crate) fn frame(&self) -> Option<Frame> {
        self.frame
    }

    /// The packet, its checksum finished or not.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its place among the packets that went its way, from 1. A copy that the path makes has its original's.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// How long it has waited in queues of the path so far.
    pub fn queueing(&self) -> Duration {
        self.queueing
    }

    /// Source and destination port of a UDP packet that is none of fragments; `None` of any other.
    pub fn udp_ports(&self) -> Option<[u16; 2]> {
        Some(self.udp()?.ports)
    }

    /// The checksum that is not finished.
    pub fn partial_checksum(&self) -> Option<PartialChecksum> {
        self.checksum
    }

    /// What to tell a device of it.
    pub fn virtio_header(&self) -> VirtioHeader {
        match self.checksum {
            Some(PartialChecksum { start, offset }) => VirtioHeader {
                flags: VirtioHeader::NEEDS_CHECKSUM,
                checksum_start: start,
                checksum_offset: offset,
                ..VirtioHeader::default()
            },
            None => VirtioHeader::default(),
        }
    }

    /// Finishes the checksum, for a capture or a device that cannot.
    pub fn finish_checksum(&mut self) {
        if let Some(partial) = self.checksum.take() {
            finish(&mut self.bytes, partial);
        }
    }

    /// The bytes as they would be on a real wire, with the checksum finished.
    pub fn finished(&self) -> Cow<'_, [u8]> {
        match self.checksum {
            Some(partial) => {
                let mut bytes = self.bytes.to_vec();
                finish(&mut bytes, partial);
                Cow::Owned(bytes)
            }
            None => Cow::Borrowed(&self.bytes),
        }
    }

    /// Addresses, ports and the TCP segment. The TCP checksum is verified where it is finished.
    ///
    /// # Errors
    /// When it is no whole TCP packet.
    pub fn decode(&self) -> Result<wire::Packet, DecodeError> {
        match self.checksum {
            Some(_) => wire::decode_unverified(&self.bytes),
            None => wire::decode(&self.bytes),
        }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// The control bits of TCP; none of another packet.
    pub(crate) fn tcp_flags(&self) -> u8 {
        self.tcp().map_or(0, |headers| self.bytes[headers.tcp_at + headers::tcp::FLAGS])
    }

    /// A number of TCP's header; none of another packet.
    pub(crate) fn tcp_number(&self, at: std::ops::Range<usize>) -> Option<u32> {
        let header = &self.bytes[self.tcp()?.tcp_at..];
        Some(u32::from_be_bytes(header[at].try_into().expect("four bytes")))
    }

    /// A packet of these bytes, checksums finished, that goes where this one goes.
    pub(crate) fn sibling(&self, bytes: Vec<u8>) -> WirePacket {
        let sibling = WirePacket::new(bytes, None, self.number).framed(self.frame);
        match &self.meter {
            Some(meter) => sibling.metered(meter),
            None => sibling,
        }
    }

    pub(crate) fn tcp(&self) -> Option<Headers> {
        match self.content {
            Content::Tcp(headers) => Some(headers),
            Content::Udp(_) | Content::Other => None,
        }
    }

    fn udp(&self) -> Option<Datagram> {
        match self.content {
            Content::Udp(datagram) => Some(datagram),
            Content::Tcp(_) | Content::Other => None,
        }
    }

    /// Memory that it takes up while it is held.
    fn cost(&self) -> u64 {
        self.bytes.len() as u64 + BOOKKEEPING.0
    }
}

/// What holding a packet costs beside its bytes: its entry in a queue, with its due time, and what an allocator adds and rounds up.
pub(crate) const BOOKKEEPING: Bytes = Bytes(ENTRY + ALLOCATOR);
const ENTRY: u64 = size_of::<(Instant, WirePacket)>() as u64;
/// glibc's: a word before each allocation, rounded up to 16 B.
const ALLOCATOR: u64 = 24;

/// Finishes a checksum whose field holds the sum of the pseudo-header.
pub(crate) fn finish(bytes: &mut [u8], partial: PartialChecksum) {
    let sum = !checksum::sum(&bytes[usize::from(partial.start)..]);
    let sum = if sum == 0 && partial.offset == UDP_CHECKSUM_AT { 0xffff } else { sum };
    bytes[partial.field()..][..2].copy_from_slice(&sum.to_be_bytes());
}

impl PathPacket for WirePacket {
    fn wire_size(&self) -> Bytes {
        Bytes(self.bytes.len() as u64)
    }

    /// QoS Structures behind the header are none.
    fn carries_data(&self) -> bool {
        let payload_at = self.udp().map(|udp| udp.payload_at).or_else(|| Some(self.tcp()?.payload_at));
        let Some(payload_at) = payload_at else {
            // What is encrypted does not show: what is longer than an ACK's headers, ESP's and a signal has data.
            return headers::is_esp(&self.bytes) && self.bytes.len() > LONGEST_ENCRYPTED_ACK;
        };
        let payload = self.bytes.len().saturating_sub(payload_at);
        payload > 2 * STRUCTURE_LEN || payload > 0 && self.structures().is_none()
    }

    /// The two low bits of the second byte, or of IPv6's traffic class, which lies across the first two. In IPv4 the
    /// header's checksum follows; TCP's covers neither.
    fn mark_ce(&mut self) -> bool {
        const ECT: [u8; 2] = [0b01, 0b10];
        let Some(&[first, second]) = self.bytes.first_chunk::<2>() else { return false };
        match first >> 4 {
            4 if self.bytes.len() >= headers::IPV4_LEN && ECT.contains(&(second & 0b11)) => {
                let before = u16_at(&self.bytes, 0);
                self.bytes[1] |= 0b11;
                let after = u16_at(&self.bytes, 0);
                let checksum = checksum::update(u16_at(&self.bytes, ipv4::CHECKSUM.start), before, after);
                self.bytes[ipv4::CHECKSUM].copy_from_slice(&checksum.to_be_bytes());
                true
            }
            6 if ECT.contains(&(second >> 4 & 0b11)) => {
                self.bytes[1] |= 0b11 << 4;
                true
            }
            _ => false,
        }
    }

    fn ecn(&self) -> u8 {
        let Some(&[first, second]) = self.bytes.first_chunk::<2>() else { return 0 };
        match first >> 4 {
            4 => second & 0b11,
            6 => second >> 4 & 0b11,
            _ => 0,
        }
    }

    /// Addresses, protocol and the four bytes that TCP and UDP have their ports in, mixed (FNV-1a).
    fn flow_hash(&self) -> u64 {
        let bytes = self.bytes();
        let (addresses, protocol, ports) = match bytes.first().map(|first| first >> 4) {
            Some(4) => (12..20, 9, usize::from(bytes[0] & 0xf) * 4),
            Some(6) => (8..40, 6, 40),
            _ => return 0,
        };
        let parts = [bytes.get(addresses), bytes.get(protocol..protocol + 1), bytes.get(ports..ports + 4)];
        let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        parts.into_iter().flatten().flatten().fold(0xcbf2_9ce4_8422_2325, mix)
    }

    fn add_queueing(&mut self, wait: Duration) {
        self.queueing += wait;
    }

    /// As a router that decrements the field, and IPv4's header checksum with it (RFC 1624).
    fn pass_routers(&mut self, routers: u32) -> bool {
        let routers = u8::try_from(routers).unwrap_or(u8::MAX);
        match self.bytes.first().map(|first| first >> 4) {
            Some(4) if self.bytes.len() >= headers::IPV4_LEN => {
                let before = u16_at(&self.bytes, TTL_AT);
                self.bytes[TTL_AT] = self.bytes[TTL_AT].saturating_sub(routers);
                let after = u16_at(&self.bytes, TTL_AT);
                let checksum = checksum::update(u16_at(&self.bytes, ipv4::CHECKSUM.start), before, after);
                self.bytes[ipv4::CHECKSUM].copy_from_slice(&checksum.to_be_bytes());
                self.bytes[TTL_AT] > 0
            }
            Some(6) if self.bytes.len() > HOP_LIMIT_AT => {
                self.bytes[HOP_LIMIT_AT] = self.bytes[HOP_LIMIT_AT].saturating_sub(routers);
                self.bytes[HOP_LIMIT_AT] > 0
            }
            _ => true,
        }
    }
}

impl ExplicitRatePacket for WirePacket {
    fn qos(&mut self) -> Option<&mut dyn QosPacket> {
        if self.is_of_a_flow() { Some(self) } else { None }
    }

    fn signal(&self, structure: &Structure) -> Option<WirePacket> {
        self.with_structure(structure)
    }
}

/// Where IPv4 has its TTL; its protocol is the other byte of the word that a checksum counts.
const TTL_AT: usize = 8;
/// Where IPv6 has its hop limit.
const HOP_LIMIT_AT: usize = 7;

impl Clone for WirePacket {
    fn clone(&self) -> WirePacket {
        let copy = WirePacket { bytes: self.bytes.clone(), meter: None, ..*self };
        match &self.meter {
            Some(meter) => copy.metered(meter),
            None => copy,
        }
    }
}

impl Drop for WirePacket {
    fn drop(&mut self) {
        if let Some(meter) = &self.meter {
            meter.subtract(self.cost());
        }
    }
}

/// Counts the memory of all packets made with it, and of the copies that a path makes of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meter(Arc<AtomicU64>);

impl Meter {
    /// Bytes held now.
    pub fn held(&self) -> Bytes {
        Bytes(self.0.load(Ordering::Relaxed))
    }

    fn add(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    fn subtract(&self, bytes: u64) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}
