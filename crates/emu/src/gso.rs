//! Super-packets split into the segments that would be on the wire (generic segmentation offload).
//!
//! A kernel that knows that its device splits hands over up to 64 KiB of one connection with a single set of headers.
//! Loss, serialization and queues act on segments, so they are made here as a network card would make them:
//!
//! * each has the headers of the whole, with its own length and sequence number;
//! * IPv4 identification rises by one from each to the next, and the IPv4 header checksum is made anew;
//! * FIN and PSH are on the last segment only, CWR on the first only (RFC 3168 §6.1.2);
//! * the TCP checksum stays partial: its field holds the sum of the pseudo-header with the segment's length.

use crate::headers::{self, Content, Headers, ipv4, tcp, u16_at, u32_at};
use crate::packet::{OutOfRange, PartialChecksum};
use crate::{Malformed, VirtioHeader};
use farpath_tcp::Flags;

/// What came out of a host, after it was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Intake {
    /// What is wrong with it, whether it passed or not.
    pub malformed: Option<Malformed>,
    /// Whether it is a sound IP packet of another protocol than TCP.
    pub other_protocol: bool,
    /// Packets that it was made into; zero where it was dropped.
    pub packets: usize,
}

/// Makes wire packets of what a host sent, and gives each to `emit` with its unfinished checksum.
///
/// A packet of another protocol than TCP, and one that is malformed in a way that [`Malformed::passes`], is emitted as
/// the bytes that it is; what else is malformed is not emitted at all. No input makes it panic.
pub fn split(
    header: VirtioHeader,
    packet: &[u8],
    mut emit: impl FnMut(Vec<u8>, Option<PartialChecksum>),
) -> Intake {
    let refused = |kind| Intake { malformed: Some(kind), other_protocol: false, packets: 0 };
    let content = headers::inspect(packet);
    if header.gso_type != VirtioHeader::GSO_NONE {
        let plan = content.and_then(|content| Plan::new(header, packet, content));
        return match plan {
            Ok(plan) => Intake { malformed: None, other_protocol: false, packets: plan.emit(packet, emit) },
            Err(kind) => refused(kind),
        };
    }
    match content {
        Err(kind) if !kind.passes() => return refused(kind),
        _ => {}
    }
    let Ok(partial) = PartialChecksum::from_header(header, packet.len()) else {
        return refused(Malformed::Checksum);
    };
    emit(packet.to_vec(), partial);
    Intake {
        malformed: content.err(),
        other_protocol: matches!(content, Ok(Content::Udp(_) | Content::Other)),
        packets: 1,
    }
}

impl From<OutOfRange> for Malformed {
    fn from(_: OutOfRange) -> Malformed {
        Malformed::Checksum
    }
}

/// How a super-packet is to be split.
struct Plan {
    headers: Headers,
    segment_len: usize,
}

impl Plan {
    fn new(header: VirtioHeader, packet: &[u8], content: Content) -> Result<Plan, Malformed> {
        let Content::Tcp(headers) = content else { return Err(Malformed::Gso) };
        let v6 = match header.gso_type & !VirtioHeader::GSO_ECN {
            VirtioHeader::GSO_TCPV4 => false,
            VirtioHeader::GSO_TCPV6 => true,
            _ => return Err(Malformed::Gso),
        };
        if v6 != headers.v6 || header.gso_size == 0 {
            return Err(Malformed::Gso);
        }
        // What the header says of headers and checksum is a hint (virtio 1.2 §5.1.6.2): TCP's places are known. Yet a
        // place beyond the packet shows that it was not meant.
        PartialChecksum::from_header(header, packet.len())?;
        Ok(Plan { headers, segment_len: usize::from(header.gso_size) })
    }

    fn emit(&self, packet: &[u8], mut emit: impl FnMut(Vec<u8>, Option<PartialChecksum>)) -> usize {
        let Headers { v6, tcp_at, payload_at } = self.headers;
        let (head, payload) = packet.split_at(payload_at);
        let partial = PartialChecksum { start: tcp_at as u16, offset: tcp::CHECKSUM.start as u16 };
        let pseudo_header = self.headers.pseudo_header(packet);
        let (seq, flags) = (u32_at(head, tcp_at + tcp::SEQ.start), head[tcp_at + tcp::FLAGS]);
        let id = if v6 { 0 } else { u16_at(head, ipv4::ID.start) };
        // A packet of no payload is one segment all the same.
        let count = payload.len().div_ceil(self.segment_len).max(1);
        for number in 0..count {
            let start = number * self.segment_len;
            let end = payload.len().min(start + self.segment_len);
            let mut bytes = Vec::with_capacity(payload_at + end - start);
            bytes.extend_from_slice(head);
            bytes.extend_from_slice(&payload[start..end]);

            if !v6 {
                bytes[ipv4::ID].copy_from_slice(&id.wrapping_add(number as u16).to_be_bytes());
            }
            // It fits: the whole did.
            let len = bytes.len() as u16;
            self.headers.set_len(&mut bytes, len, pseudo_header);
            let mut own = flags;
            if number > 0 {
                own &= !Flags::CWR.0;
            }
            if number + 1 < count {
                own &= !(Flags::FIN | Flags::PSH).0;
            }
            let tcp_header = &mut bytes[tcp_at..];
            tcp_header[tcp::SEQ].copy_from_slice(&seq.wrapping_add(start as u32).to_be_bytes());
            tcp_header[tcp::FLAGS] = own;
            emit(bytes, Some(partial));
        }
        count
    }
}
