//! Segments that are due together, joined into a super-packet on their way into a host (as generic receive offload does).
//!
//! One call into the kernel then carries up to 64 KiB, which is what makes several Gbit/s possible. It is not without
//! effect on TCP: a receiver looks at a super-packet as at one arrival, so it sends one ACK where it would have sent one
//! for every second segment, and the sender sees fewer ACKs that each cover more. So do real network cards, but those of
//! the stacks that most papers measured did not: leave it off where the ACKs of a run are to be compared with theirs.
//!
//! What is joined carries the same addresses, ports, acknowledgment, window and options, no flag but ACK, PSH and ECE,
//! and is contiguous in sequence. All segments but the last are of one length, none is longer. A loss leaves a gap, so
//! no super-packet spans one. The IPv4 identification is that of the first.

use crate::headers::{self, Headers, ipv4, tcp, u32_at};
use crate::{Frame, VirtioHeader, WirePacket};
use farpath_tcp::Flags;
use farpath_units::Instant;
use std::io::IoSlice;

/// Longest packet that a length field can say.
const MAX_LEN: usize = 65_535;
/// Most pieces in one super-packet, far below what one call takes (1024): an MSS of 1 B shall not make it fail.
const MAX_SEGMENTS: usize = 256;

/// Segments that can be handed over as one, with the times they were due.
#[derive(Debug, Default)]
pub(crate) struct Run {
    packets: Vec<(Instant, WirePacket)>,
    /// Of the segments, where more may follow.
    open: Option<Open>,
}

/// What the next segment must be to join.
#[derive(Debug, Clone, Copy)]
struct Open {
    headers: Headers,
    segment_len: usize,
    next_seq: u32,
    /// Bytes of the super-packet so far.
    len: usize,
}

impl Run {
    /// Adds the packet, or gives it back where it does not join what is there.
    pub fn push(&mut self, due: Instant, packet: WirePacket, coalesce: bool) -> Result<(), WirePacket> {
        if self.packets.is_empty() {
            self.open = if coalesce { Open::after(&packet) } else { None };
            self.packets.push((due, packet));
            return Ok(());
        }
        let joined = match (&self.open, self.packets.first()) {
            (Some(open), Some((_, first))) if self.packets.len() < MAX_SEGMENTS => open.join(first, &packet),
            _ => None,
        };
        match joined {
            Some(open) => {
                self.open = open;
                self.packets.push((due, packet));
                Ok(())
            }
            None => Err(packet),
        }
    }

    pub fn packets(&self) -> &[(Instant, WirePacket)] {
        &self.packets
    }

    pub fn clear(&mut self) {
        self.packets.clear();
        self.open = None;
    }

    /// Calls `send` with what is to be handed over: one packet as it is, or the super-packet.
    pub fn hand_over<R>(
        &self,
        send: impl FnOnce(VirtioHeader, Option<Frame>, &[IoSlice<'_>]) -> R,
    ) -> Option<R> {
        let [(_, first), rest @ ..] = &self.packets[..] else { return None };
        let (Some((_, last)), Some(headers)) = (rest.last(), first.tcp()) else {
            return Some(send(first.virtio_header(), first.frame(), &[IoSlice::new(first.bytes())]));
        };
        let Headers { v6, tcp_at, payload_at } = headers;
        let len = payload_at
            + self.packets.iter().map(|(_, packet)| packet.bytes().len() - payload_at).sum::<usize>();
        let mut head = [0; headers::MAX_HEADERS];
        let head = &mut head[..payload_at];
        head.copy_from_slice(&first.bytes()[..payload_at]);
        let pseudo_header = headers.pseudo_header(head);
        headers.set_len(head, len as u16, pseudo_header);
        head[tcp_at + tcp::FLAGS] |= last.bytes()[tcp_at + tcp::FLAGS] & Flags::PSH.0;
        let header = VirtioHeader {
            gso_type: if v6 { VirtioHeader::GSO_TCPV6 } else { VirtioHeader::GSO_TCPV4 },
            header_len: payload_at as u16,
            gso_size: (first.bytes().len() - payload_at) as u16,
            ..first.virtio_header()
        };
        let payloads = self.packets.iter().map(|(_, packet)| IoSlice::new(&packet.bytes()[payload_at..]));
        let pieces: Vec<IoSlice<'_>> = std::iter::once(IoSlice::new(head)).chain(payloads).collect();
        Some(send(header, first.frame(), &pieces))
    }
}

impl Open {
    /// What may follow `packet`; `None` where nothing may.
    fn after(packet: &WirePacket) -> Option<Open> {
        let bytes = packet.bytes();
        let headers = packet.tcp()?;
        // A complete checksum would have to be looked at and made anew: what is not worth it goes alone.
        let partial = packet.partial_checksum()?;
        let of_tcp = (usize::from(partial.start), usize::from(partial.offset))
            == (headers.tcp_at, tcp::CHECKSUM.start);
        let segment_len = bytes.len() - headers.payload_at;
        let flags = Flags(bytes[headers.tcp_at + tcp::FLAGS]);
        let plain = flags.contains(Flags::ACK) && !flags.intersects(NOT_JOINED | Flags::PSH);
        (of_tcp && segment_len > 0 && plain).then(|| Open {
            headers,
            segment_len,
            next_seq: u32_at(bytes, headers.tcp_at + tcp::SEQ.start).wrapping_add(segment_len as u32),
            len: bytes.len(),
        })
    }

    /// What may follow when `packet` has joined the run that `first` began: `Some(None)` where nothing may, `None` where
    /// it does not join.
    fn join(&self, first: &WirePacket, packet: &WirePacket) -> Option<Option<Open>> {
        let Headers { v6, tcp_at, payload_at } = self.headers;
        let (before, bytes) = (first.bytes(), packet.bytes());
        let same_places = packet.tcp() == Some(self.headers)
            && packet.partial_checksum() == first.partial_checksum()
            && packet.frame() == first.frame();
        if !same_places || bytes.len() == payload_at {
            return None;
        }
        let segment_len = bytes.len() - payload_at;
        let flags = |bytes: &[u8]| Flags(bytes[tcp_at + tcp::FLAGS] & !Flags::PSH.0);
        let fits = segment_len <= self.segment_len && self.len + segment_len <= MAX_LEN;
        let contiguous = u32_at(bytes, tcp_at + tcp::SEQ.start) == self.next_seq;
        // Version, header length, ECN; TTL or hop limit and addresses; ports; acknowledgment to flags; window; options.
        let same_ip = if v6 {
            before[..4] == bytes[..4] && before[6..40] == bytes[6..40]
        } else {
            before[..2] == bytes[..2]
                && before[ipv4::FRAGMENT] == bytes[ipv4::FRAGMENT]
                && before[8..10] == bytes[8..10]
                && before[12..tcp_at] == bytes[12..tcp_at]
        };
        let same =
            |from: usize, to: usize| before[tcp_at + from..tcp_at + to] == bytes[tcp_at + from..tcp_at + to];
        let same_tcp = same(0, 4)
            && same(8, tcp::FLAGS)
            && same(tcp::WINDOW.start, tcp::WINDOW.end)
            && before[tcp_at + tcp::CHECKSUM.end..payload_at]
                == bytes[tcp_at + tcp::CHECKSUM.end..payload_at];
        if !(fits && contiguous && same_ip && same_tcp && flags(before) == flags(bytes)) {
            return None;
        }
        let last = segment_len < self.segment_len || bytes[tcp_at + tcp::FLAGS] & Flags::PSH.0 != 0;
        let next = Open {
            next_seq: self.next_seq.wrapping_add(segment_len as u32),
            len: self.len + segment_len,
            ..*self
        };
        Some((!last).then_some(next))
    }
}

/// Flags that a segment goes alone with.
const NOT_JOINED: Flags = Flags(Flags::FIN.0 | Flags::SYN.0 | Flags::RST.0 | Flags::URG.0 | Flags::CWR.0);
