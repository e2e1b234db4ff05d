//! The three block types of pcapng that a capture needs (draft-ietf-opsawg-pcapng), in little-endian order whatever
//! the machine, so that equal runs give equal files.

use std::io::{self, Write};

/// Of the link types of the tcpdump group: the packet begins with its IP header.
pub const LINKTYPE_RAW: u16 = 101;

/// Block types.
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;

/// An option's codes; the first has the same meaning in every block.
mod code {
    pub const COMMENT: u16 = 1;
    pub const SECTION_HARDWARE: u16 = 2;
    pub const SECTION_OS: u16 = 3;
    pub const SECTION_APPLICATION: u16 = 4;
    pub const INTERFACE_NAME: u16 = 2;
    pub const INTERFACE_DESCRIPTION: u16 = 3;
    pub const INTERFACE_RESOLUTION: u16 = 9;
    pub const INTERFACE_OS: u16 = 12;
    pub const PACKET_FLAGS: u16 = 2;
}

/// What made a capture, and of what.
#[derive(Debug, Clone, Copy)]
pub struct Section<'a> {
    /// The machine.
    pub hardware: &'a str,
    /// Its system.
    pub os: &'a str,
    /// The program that writes.
    pub application: &'a str,
    /// What is to be said of the whole.
    pub comment: &'a str,
}

/// Where packets are seen.
#[derive(Debug, Clone, Copy)]
pub struct Interface<'a> {
    /// What its packets begin with (`LINKTYPE_...`).
    pub link_type: u16,
    /// Its name.
    pub name: &'a str,
    /// What it is.
    pub description: &'a str,
    /// The system that it belongs to.
    pub os: Option<&'a str>,
    /// Bytes of a packet that are kept at the most; zero for all.
    pub snaplen: u32,
}

/// Which way a packet passed its interface, as the `epb_flags` option says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// It is not said.
    Unknown = 0b00,
    /// It came.
    Inbound = 0b01,
    /// It left.
    Outbound = 0b10,
}

/// One packet at one interface.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// The interface, by its place among the interface blocks.
    pub interface: u32,
    /// Since 1970.
    pub time_ns: u64,
    /// The packet as far as it is kept.
    pub kept: &'a [u8],
    /// Its length on the wire.
    pub original_len: u32,
    /// Which way it passed.
    pub way: Way,
    /// What is to be said of it.
    pub comment: Option<&'a str>,
}

/// Writes block after block; holds no more than one.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    body: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Begins a file.
    pub fn new(out: W) -> Writer<W> {
        Writer { out, body: Vec::new() }
    }

    /// The first block.
    pub fn section(&mut self, section: &Section<'_>) -> io::Result<()> {
        self.u32(0x1a2b_3c4d);
        self.u16(1);
        self.u16(0);
        // The section's length is not known yet.
        self.body.extend_from_slice(&(-1_i64).to_le_bytes());
        self.option(code::COMMENT, section.comment.as_bytes());
        self.option(code::SECTION_HARDWARE, section.hardware.as_bytes());
        self.option(code::SECTION_OS, section.os.as_bytes());
        self.option(code::SECTION_APPLICATION, section.application.as_bytes());
        self.end_block(SECTION_HEADER)
    }

    /// An interface, which has to be there before its packets.
    pub fn interface(&mut self, interface: &Interface<'_>) -> io::Result<()> {
        self.u16(interface.link_type);
        self.u16(0);
        self.u32(interface.snaplen);
        self.option(code::INTERFACE_NAME, interface.name.as_bytes());
        self.option(code::INTERFACE_DESCRIPTION, interface.description.as_bytes());
        // Units of 10^-9 s.
        self.option(code::INTERFACE_RESOLUTION, &[9]);
        if let Some(os) = interface.os {
            self.option(code::INTERFACE_OS, os.as_bytes());
        }
        self.end_block(INTERFACE_DESCRIPTION)
    }

    /// A packet.
    pub fn packet(&mut self, record: &Record<'_>) -> io::Result<()> {
        self.u32(record.interface);
        self.u32((record.time_ns >> 32) as u32);
        self.u32(record.time_ns as u32);
        self.u32(record.kept.len() as u32);
        self.u32(record.original_len);
        self.padded(record.kept);
        if record.way != Way::Unknown {
            self.option(code::PACKET_FLAGS, &(record.way as u32).to_le_bytes());
        }
        if let Some(comment) = record.comment {
            self.option(code::COMMENT, comment.as_bytes());
        }
        self.end_block(ENHANCED_PACKET)
    }

    /// All that was written is with `out`, and with what is behind it.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn u16(&mut self, value: u16) {
        self.body.extend_from_slice(&value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.body.extend_from_slice(&value.to_le_bytes());
    }

    fn padded(&mut self, bytes: &[u8]) {
        self.body.extend_from_slice(bytes);
        self.body.resize(self.body.len().next_multiple_of(4), 0);
    }

    /// `value` is a name or a number of ours, or a comment that was cut to fit.
    fn option(&mut self, code: u16, value: &[u8]) {
        self.u16(code);
        self.u16(u16::try_from(value.len()).expect("an option's value is shorter than 64 KiB"));
        self.padded(value);
    }

    fn end_block(&mut self, block_type: u32) -> io::Result<()> {
        // The end of the options: every block has some, or may as well end their empty list.
        self.u16(0);
        self.u16(0);
        let len = (self.body.len() as u32 + 12).to_le_bytes();
        self.out.write_all(&block_type.to_le_bytes())?;
        self.out.write_all(&len)?;
        self.out.write_all(&self.body)?;
        self.body.clear();
        self.out.write_all(&len)
    }
}
