//! Where IP packets come out of a host and go into it.

#[cfg(target_os = "linux")]
use {
    farpath_units::Instant,
    std::io::{self, IoSlice},
    std::os::fd::BorrowedFd,
};

/// What Linux says of a packet beside its bytes (virtio 1.2 §5.1.6): that its checksum is not finished yet, and that it
/// stands for many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VirtioHeader {
    /// [`VirtioHeader::NEEDS_CHECKSUM`], [`VirtioHeader::DATA_VALID`].
    pub flags: u8,
    /// [`VirtioHeader::GSO_NONE`] ...
    pub gso_type: u8,
    /// Bytes of all headers.
    pub header_len: u16,
    /// Payload bytes of each segment but the last.
    pub gso_size: u16,
    /// Where the checksum's coverage begins.
    pub checksum_start: u16,
    /// Where the checksum lies, from there.
    pub checksum_offset: u16,
}

impl VirtioHeader {
    /// Bytes of it.
    pub const LEN: usize = 10;
    /// The checksum field holds the sum of the pseudo-header alone.
    pub const NEEDS_CHECKSUM: u8 = 1;
    /// The checksum has been looked at.
    pub const DATA_VALID: u8 = 2;
    /// One packet.
    pub const GSO_NONE: u8 = 0;
    /// TCP over IPv4, to be split.
    pub const GSO_TCPV4: u8 = 1;
    /// TCP over IPv6, to be split.
    pub const GSO_TCPV6: u8 = 4;
    /// Beside a type: CWR is for the first segment only.
    pub const GSO_ECN: u8 = 0x80;

    /// As the kernel lays it out on a little-endian device.
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[0] = self.flags;
        bytes[1] = self.gso_type;
        bytes[2..4].copy_from_slice(&self.header_len.to_ne_bytes());
        bytes[4..6].copy_from_slice(&self.gso_size.to_ne_bytes());
        bytes[6..8].copy_from_slice(&self.checksum_start.to_ne_bytes());
        bytes[8..10].copy_from_slice(&self.checksum_offset.to_ne_bytes());
        bytes
    }

    /// From what the kernel wrote. A TUN device speaks in the host's byte order unless told otherwise.
    pub fn from_bytes(bytes: [u8; Self::LEN]) -> VirtioHeader {
        let u16_at = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        VirtioHeader {
            flags: bytes[0],
            gso_type: bytes[1],
            header_len: u16_at(2),
            gso_size: u16_at(4),
            checksum_start: u16_at(6),
            checksum_offset: u16_at(8),
        }
    }
}

/// An Ethernet header: two addresses, the tag of a VLAN where there is one (IEEE 802.1Q), and the protocol. Ports between two wires
/// carry it along with each packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    bytes: [u8; 18],
    tagged: bool,
}

impl Frame {
    /// Of the 14 bytes without a tag, and the tag: its protocol, then priority and number.
    pub fn new(header: [u8; 14], tag: Option<[u8; 4]>) -> Frame {
        let mut bytes = [0; 18];
        bytes[..14].copy_from_slice(&header);
        if let Some(tag) = tag {
            bytes[12..16].copy_from_slice(&tag);
            bytes[16..].copy_from_slice(&header[12..]);
        }
        Frame { bytes, tagged: tag.is_some() }
    }

    /// As on the wire.
    pub fn as_bytes(&self) -> &[u8] {
        if self.tagged { &self.bytes } else { &self.bytes[..14] }
    }
}

/// What was received into a buffer.
#[cfg(target_os = "linux")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// What is said of it.
    pub header: VirtioHeader,
    /// What it was framed in, where the other port needs to know.
    pub frame: Option<Frame>,
    /// Bytes of the IP packet, at the buffer's beginning.
    pub len: usize,
}

/// One host's place on the path. It never blocks.
#[cfg(target_os = "linux")]
pub trait Port: Send {
    /// What to wait on for something to receive; `None` where only time brings it.
    fn fd(&self) -> Option<BorrowedFd<'_>>;

    /// When there may be something to receive although nothing is sent to it.
    fn next_due(&self) -> Option<Instant> {
        None
    }

    /// Takes the next IP packet that the host sends, or a super-packet that stands for many; `None` where none waits.
    /// `buffer` is at least 64 KiB + 256 B long.
    fn receive(&mut self, now: Instant, buffer: &mut [u8]) -> io::Result<Option<Received>>;

    /// Hands the host an IP packet that lies in pieces, and came in this frame.
    fn send(
        &mut self,
        now: Instant,
        header: VirtioHeader,
        frame: Option<Frame>,
        pieces: &[IoSlice<'_>],
    ) -> io::Result<()>;
}
