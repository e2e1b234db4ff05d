//! Packets out of pcap and pcapng.

use crate::packet::Link;
use pcap_parser::{Block, PcapBlockOwned, PcapError, create_reader};
use std::collections::BTreeMap;
use std::io::{self, Read};

/// A frame as it was captured.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// Counted from 1, as Wireshark does.
    pub number: u64,
    /// Its interface, counted over all sections of the file, as they are described; those of a capture of all interfaces in one
    /// (`LINKTYPE_LINUX_SLL2`) count as each appears.
    pub interface: u32,
    /// Link type of its interface (`LINKTYPE_...`).
    pub link_type: i32,
    /// Since 1970.
    pub time_ns: u64,
    /// What was kept of it.
    pub data: &'a [u8],
    /// Its length on the wire.
    pub length: u32,
}

/// Why a capture cannot be read, or no further.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CaptureError {
    /// There is nothing in it.
    #[error("it is empty; expected a capture, as pcap or pcapng")]
    Empty,
    /// It begins as a capture does, and ends before there could be a packet.
    #[error("it ends within its header, before any packet")]
    HeaderAlone,
    /// It is neither pcap nor pcapng.
    #[error("it is neither pcap nor pcapng")]
    NotACapture,
    /// The file ends in the middle of a block, as where a capture was cut off.
    #[error("it ends in the middle of a block, after frame {frames}")]
    Truncated {
        /// Frames before.
        frames: u64,
    },
    /// A block is damaged.
    #[error("it is damaged after frame {frames}")]
    Damaged {
        /// Frames before.
        frames: u64,
    },
    /// A block is longer than what is held.
    #[error("a block after frame {frames} is longer than {} MiB", MOST_BUFFERED >> 20)]
    TooLong {
        /// Frames before.
        frames: u64,
    },
    /// The bytes cannot be had.
    #[error("it cannot be read after frame {frames}: {reason}")]
    Unreadable {
        /// Frames before.
        frames: u64,
        /// As what gives the bytes has it.
        reason: String,
    },
}

/// What is buffered to begin with, and at the most: a block has to fit. It is twice of what readers of files keep themselves, so that they do not copy.
const BUFFERED: usize = 1 << 17;
const MOST_BUFFERED: usize = 1 << 24;

/// Interfaces of a file that are told apart; packets of others are those of the last.
const MOST_INTERFACES: usize = 4096;

struct Interface {
    /// Of the file; none where it stands for several, each of which has its own.
    number: Option<u32>,
    link_type: i32,
    /// Units of a second.
    resolution: u64,
    offset_s: i64,
}

/// Reads a capture to its end, frame by frame.
///
/// # Errors
/// What is wrong with the file; the frames before have been given.
pub fn read(source: impl Read + Send, each: impl FnMut(Frame<'_>)) -> Result<u64, CaptureError> {
    let mut source = Source { source, first: Vec::new(), failed: None };
    let read = read_frames(&mut source, each);
    read.map_err(|error| match error {
        CaptureError::NotACapture if source.first.is_empty() => CaptureError::Empty,
        CaptureError::NotACapture if MAGICS.iter().any(|magic| source.first == magic.to_be_bytes()) => {
            CaptureError::HeaderAlone
        }
        CaptureError::Unreadable { frames, .. } => {
            let reason = source.failed.map_or_else(String::new, |error| error.to_string());
            CaptureError::Unreadable { frames, reason }
        }
        other => other,
    })
}

/// What captures begin with: pcap in microseconds and nanoseconds, of either byte order, and pcapng.
const MAGICS: [u32; 5] = [0xa1b2_c3d4, 0xd4c3_b2a1, 0xa1b2_3c4d, 0x4d3c_b2a1, u32::from_be_bytes(SECTION)];

/// The type of pcapng's section header, with which such a file begins.
const SECTION: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
/// The type of a block and its length, twice.
const LEAST_BLOCK: u32 = 12;

/// Whether the block that begins here says that it is shorter than its own frame: the library subtracts without a look (0.17, of blocks that a process is
/// described by). A section header says in which order the bytes of the section are.
fn is_too_short(data: &[u8], big_endian: &mut bool) -> bool {
    let Some((head, rest)) = data.split_first_chunk::<8>() else { return false };
    if head.starts_with(&SECTION) && rest.len() >= 4 {
        *big_endian = rest.starts_with(&[0x1a, 0x2b, 0x3c, 0x4d]);
    }
    let length = [head[4], head[5], head[6], head[7]];
    let length = if *big_endian { u32::from_be_bytes(length) } else { u32::from_le_bytes(length) };
    length < LEAST_BLOCK
}

/// What is read, with what the reader of captures does not tell of it.
struct Source<R> {
    source: R,
    /// Its first bytes, four at the most.
    first: Vec<u8>,
    failed: Option<io::Error>,
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.source.read(buffer) {
            Ok(read) => {
                let missing = 4 - self.first.len();
                self.first.extend(buffer[..read].iter().take(missing));
                Ok(read)
            }
            Err(error) => {
                let kind = error.kind();
                self.failed = Some(error);
                Err(kind.into())
            }
        }
    }
}

/// The interfaces of a file. One that is cooked in version 2, which is what `tcpdump -i any` writes, stands for several, of which each packet names its own: a packet that a host passes
/// on is there once for each of the two that it crosses, and is not sent again. Merged files have several such, and others beside them, so that all are counted together.
#[derive(Default)]
struct Interfaces {
    described: Vec<Interface>,
    /// By the place among those that are described, and Linux's number.
    cooked: BTreeMap<(usize, u32), u32>,
    /// The one of the last packet of such a kind: most are of it.
    last: Option<((usize, u32), u32)>,
    counted: u32,
}

impl Interfaces {
    fn describe(&mut self, link_type: i32, resolution: u64, offset_s: i64) {
        let is_cooked = Link::from_type(link_type) == Some(Link::Cooked2);
        let number = (!is_cooked).then(|| self.count());
        self.described.push(Interface { number, link_type, resolution, offset_s });
    }

    /// The next number; all beyond the most that are told apart are one.
    fn count(&mut self) -> u32 {
        let number = self.counted;
        self.counted = (number + 1).min(MOST_INTERFACES as u32);
        number
    }

    /// Number and link type of the one that is described there, of which a packet is.
    fn of_packet(&mut self, described: usize, data: &[u8]) -> (u32, i32) {
        match self.described.get(described) {
            None => (u32::try_from(described).unwrap_or(u32::MAX), -1),
            Some(&Interface { number: Some(number), link_type, .. }) => (number, link_type),
            Some(&Interface { number: None, link_type, .. }) => (self.cooked(described, data), link_type),
        }
    }

    /// By Linux's number of it, bytes 4 to 7 of the header.
    fn cooked(&mut self, described: usize, data: &[u8]) -> u32 {
        let index = data
            .get(4..8)
            .map_or(0, |bytes| bytes.iter().fold(0, |index, &byte| index << 8 | u32::from(byte)));
        let key = (described, index);
        if let Some((last, number)) = self.last
            && last == key
        {
            return number;
        }
        let number = match self.cooked.get(&key) {
            Some(number) => *number,
            None => {
                let number = self.count();
                if (number as usize) < MOST_INTERFACES {
                    self.cooked.insert(key, number);
                }
                number
            }
        };
        self.last = Some((key, number));
        number
    }
}

fn read_frames(source: impl Read + Send, mut each: impl FnMut(Frame<'_>)) -> Result<u64, CaptureError> {
    let unreadable = |frames| CaptureError::Unreadable { frames, reason: String::new() };
    let mut frames = 0;
    let mut reader = create_reader(BUFFERED, source).map_err(|error| match error {
        PcapError::ReadError => unreadable(0),
        _ => CaptureError::NotACapture,
    })?;
    let mut interfaces = Interfaces::default();
    // Of the section that is being read: its first interface.
    let mut section = 0;
    let mut legacy_ns = false;
    let mut buffered = BUFFERED;
    let (has_blocks, mut big_endian) = (reader.data().starts_with(&SECTION), false);
    loop {
        if has_blocks && is_too_short(reader.data(), &mut big_endian) {
            return Err(CaptureError::Damaged { frames });
        }
        match reader.next() {
            Ok((offset, block)) => {
                let mut frame =
                    |(interface, link_type): (u32, i32), time_ns: u64, data: &[u8], length: u32| {
                        frames += 1;
                        each(Frame { number: frames, interface, link_type, time_ns, data, length });
                    };
                match block {
                    PcapBlockOwned::LegacyHeader(header) => {
                        legacy_ns = header.is_nanosecond_precision();
                        interfaces.describe(header.network.0, 1, 0);
                    }
                    PcapBlockOwned::Legacy(block) => {
                        let fraction = u64::from(block.ts_usec) * if legacy_ns { 1 } else { 1000 };
                        let time = u64::from(block.ts_sec) * 1_000_000_000 + fraction;
                        frame(interfaces.of_packet(0, block.data), time, block.data, block.origlen);
                    }
                    PcapBlockOwned::NG(Block::SectionHeader(_)) => section = interfaces.described.len(),
                    PcapBlockOwned::NG(Block::InterfaceDescription(block))
                        if interfaces.described.len() < MOST_INTERFACES =>
                    {
                        let resolution = block.ts_resolution().unwrap_or(1_000_000).max(1);
                        interfaces.describe(block.linktype.0, resolution, block.ts_offset());
                    }
                    PcapBlockOwned::NG(Block::EnhancedPacket(block)) => {
                        let interface = section + block.if_id as usize;
                        let units = u64::from(block.ts_high) << 32 | u64::from(block.ts_low);
                        let time = interfaces.described.get(interface).map_or(0, |interface| {
                            let ns = u128::from(units) * 1_000_000_000 / u128::from(interface.resolution);
                            let offset = i128::from(interface.offset_s) * 1_000_000_000;
                            u64::try_from(ns.cast_signed() + offset).unwrap_or(0)
                        });
                        let kept = block.data.len().min(block.caplen as usize);
                        let data = &block.data[..kept];
                        frame(interfaces.of_packet(interface, data), time, data, block.origlen);
                    }
                    // A simple packet has no time, and nothing can be said of it; other blocks are not packets.
                    PcapBlockOwned::NG(Block::SimplePacket(_)) => frames += 1,
                    PcapBlockOwned::NG(_) => {}
                }
                reader.consume(offset);
            }
            Err(PcapError::Eof) => return Ok(frames),
            Err(PcapError::Incomplete(_)) => match reader.refill() {
                Ok(()) => {}
                Err(PcapError::BufferTooSmall) => grow(&mut *reader, &mut buffered, frames)?,
                Err(_) => return Err(unreadable(frames)),
            },
            Err(PcapError::BufferTooSmall) => grow(&mut *reader, &mut buffered, frames)?,
            Err(PcapError::UnexpectedEof) => return Err(CaptureError::Truncated { frames }),
            Err(PcapError::ReadError) => return Err(unreadable(frames)),
            Err(_) => return Err(CaptureError::Damaged { frames }),
        }
    }
}

fn grow(
    reader: &mut dyn pcap_parser::traits::PcapReaderIterator,
    buffered: &mut usize,
    frames: u64,
) -> Result<(), CaptureError> {
    *buffered *= 2;
    if *buffered > MOST_BUFFERED || !reader.grow(*buffered) {
        return Err(CaptureError::TooLong { frames });
    }
    reader.refill().map_err(|_| CaptureError::Unreadable { frames, reason: String::new() })
}
