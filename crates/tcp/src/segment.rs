//! A TCP segment as values: what the header says, and how much payload there is.

use crate::Seq;
use core::ops::{BitOr, BitOrAssign};
use farpath_units::Bytes;

/// IPv4 and TCP headers without options.
pub const HEADERS: Bytes = Bytes(40);
/// Longest payload beside them in an IP packet.
pub const MAX_MSS: Bytes = Bytes(65_535 - HEADERS.0);
/// Room that the timestamps option takes in every segment, padding included (RFC 7323 appendix A).
pub const TIMESTAMPS: Bytes = Bytes(12);

/// Control bits (RFC 9293 §3.1, RFC 3168).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Flags = Flags(0x01);
    /// Synchronize sequence numbers.
    pub const SYN: Flags = Flags(0x02);
    /// Reset the connection.
    pub const RST: Flags = Flags(0x04);
    /// Push.
    pub const PSH: Flags = Flags(0x08);
    /// The acknowledgment field is meaningful.
    pub const ACK: Flags = Flags(0x10);
    /// Urgent; carried, never acted upon.
    pub const URG: Flags = Flags(0x20);
    /// ECN echo.
    pub const ECE: Flags = Flags(0x40);
    /// Congestion window reduced.
    pub const CWR: Flags = Flags(0x80);

    /// Whether all bits of `other` are set.
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any bit of `other` is set.
    pub const fn intersects(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Flags {
    type Output = Flags;
    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Flags) {
        self.0 |= other.0;
    }
}

/// The ECN field of the IP header (RFC 3168 §5, RFC 8311).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Ecn {
    /// The ends do not use ECN for this packet: congestion can only drop it.
    #[default]
    NotEct = 0b00,
    /// ECN-capable, in the sense of RFC 9331; never sent here.
    Ect1 = 0b01,
    /// ECN-capable.
    Ect0 = 0b10,
    /// Congestion experienced: a queue has marked it.
    Ce = 0b11,
}

impl Ecn {
    /// What the two low bits say.
    pub const fn from_bits(bits: u8) -> Ecn {
        match bits & 0b11 {
            0b00 => Ecn::NotEct,
            0b01 => Ecn::Ect1,
            0b10 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// Turns an ECN-capable codepoint into [`Ecn::Ce`]; whether it did.
    pub fn mark(&mut self) -> bool {
        let marks = matches!(self, Ecn::Ect0 | Ecn::Ect1);
        if marks {
            *self = Ecn::Ce;
        }
        marks
    }
}

/// The timestamps option (RFC 7323 §3.2), in ticks of one millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub value: u32,
    /// TSecr: the value being echoed.
    pub echo: u32,
}

/// One block of the SACK option: `start..end` have arrived (RFC 2018 §3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SackBlock {
    /// First sequence number of the block.
    pub start: Seq,
    /// The sequence number after its last.
    pub end: Seq,
}

/// At most four blocks, three beside timestamps; the first holds the segment that triggered the ACK.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SackBlocks {
    blocks: [SackBlock; 4],
    count: u8,
}

impl SackBlocks {
    /// None.
    pub const EMPTY: SackBlocks =
        SackBlocks { blocks: [SackBlock { start: Seq(0), end: Seq(0) }; 4], count: 0 };

    /// Adds a block; false when there is no room.
    pub fn push(&mut self, block: SackBlock) -> bool {
        let Some(slot) = self.blocks.get_mut(usize::from(self.count)) else { return false };
        *slot = block;
        self.count += 1;
        true
    }

    /// The blocks, in the order of the option.
    pub fn as_slice(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.count)]
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// A segment. Its payload is `len` bytes of the stream from `seq` on: bytes that are a function of their place
/// in the stream, so that none are carried here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number of the first byte, or of the SYN.
    pub seq: Seq,
    /// Next sequence number expected; meaningful with ACK.
    pub ack: Seq,
    /// Payload bytes.
    pub len: u16,
    /// The window field as on the wire, before scaling.
    pub window: u16,
    /// Control bits.
    pub flags: Flags,
    /// Maximum segment size option; SYN only.
    pub mss: Option<u16>,
    /// Window scale option, as a shift; SYN only.
    pub window_scale: Option<u8>,
    /// SACK-permitted option; SYN only.
    pub sack_permitted: bool,
    /// The ECN field of the IP packet around it.
    pub ecn: Ecn,
    /// Timestamps option.
    pub timestamps: Option<Timestamps>,
    /// SACK option.
    pub sack: SackBlocks,
}

impl Segment {
    /// None at all: what stands where one will be.
    pub const EMPTY: Segment = Segment::new(Flags(0), Seq(0), Seq(0));

    /// An empty segment with these flags.
    pub const fn new(flags: Flags, seq: Seq, ack: Seq) -> Segment {
        Segment {
            seq,
            ack,
            len: 0,
            window: 0,
            flags,
            mss: None,
            window_scale: None,
            sack_permitted: false,
            ecn: Ecn::NotEct,
            timestamps: None,
            sack: SackBlocks::EMPTY,
        }
    }

    /// Sequence space that it takes up: payload, plus one each for SYN and FIN.
    pub const fn seq_len(&self) -> u64 {
        self.len as u64 + self.flags.contains(Flags::SYN) as u64 + self.flags.contains(Flags::FIN) as u64
    }

    /// Length of the options, each aligned to whole words as Linux and BSD do: 20 for a SYN with all of them, 12
    /// for timestamps, 40 for these and three SACK blocks. There is room for 40.
    #[inline]
    pub fn options_len(&self) -> usize {
        let sack = match self.sack.as_slice().len() {
            0 => 0,
            blocks => 4 + 8 * blocks,
        };
        // SACK-permitted takes the place of the padding of timestamps.
        let timestamps = match (self.timestamps, self.sack_permitted) {
            (Some(_), _) => 12,
            (None, permitted) => usize::from(permitted) * 4,
        };
        let words = usize::from(self.mss.is_some()) + usize::from(self.window_scale.is_some());
        4 * words + timestamps + sack
    }

    /// Length of the IPv4 packet: 20 + 20 + options + payload.
    pub fn ipv4_size(&self) -> Bytes {
        Bytes(HEADERS.0 + self.options_len() as u64 + u64::from(self.len))
    }
}
