//! Packets of a connection under test, as they are sent and received.

use crate::syntax::TcpOption;
use core::fmt::Write as _;
use farpath_units::Instant;

/// A TCP segment within its IP packet; its payload is a length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// Port of the end under test.
    pub local: u16,
    /// Port of the other end.
    pub remote: u16,
    /// TOS octet or traffic class.
    pub tos: u8,
    /// TTL or hop limit.
    pub ttl: u8,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number; 0 without ACK.
    pub ack: u32,
    /// Control bits.
    pub flags: u16,
    /// Window field.
    pub window: u16,
    /// Urgent pointer.
    pub urgent: u16,
    /// Options.
    pub options: Vec<TcpOption>,
    /// Payload bytes.
    pub len: u16,
}

/// FIN, as a control bit.
pub const FIN: u16 = 0x01;
/// SYN.
pub const SYN: u16 = 0x02;
/// PSH.
pub const PSH: u16 = 0x08;
/// ACK.
pub const ACK: u16 = 0x10;
/// URG.
pub const URG: u16 = 0x20;

/// A packet that the end under test has sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// When.
    pub at: Instant,
    /// What.
    pub packet: Packet,
}

/// Control bits as scripts write them.
pub fn flags_text(flags: u16) -> String {
    const LETTERS: [(u16, char); 9] = [
        (FIN, 'F'),
        (SYN, 'S'),
        (0x04, 'R'),
        (PSH, 'P'),
        (ACK, '.'),
        (URG, 'U'),
        (0x40, 'E'),
        (0x80, 'W'),
        (0x100, 'A'),
    ];
    let text: String =
        LETTERS.iter().filter(|(bit, _)| flags & bit != 0).map(|&(_, letter)| letter).collect();
    if text.is_empty() { "-".to_owned() } else { text }
}

/// Options as scripts write them, in their brackets; nothing where there is none.
pub fn options_text(options: &[TcpOption]) -> String {
    if options.is_empty() {
        return String::new();
    }
    let words: Vec<String> = options
        .iter()
        .map(|option| match option {
            TcpOption::End => "eol".to_owned(),
            TcpOption::Nop => "nop".to_owned(),
            TcpOption::Mss(mss) => format!("mss {mss}"),
            TcpOption::WindowScale(shift) => format!("wscale {shift}"),
            TcpOption::SackOk => "sackOK".to_owned(),
            TcpOption::Sack(blocks) => {
                let mut text = "sack".to_owned();
                for (start, end) in blocks {
                    let _ = write!(text, " {start}:{end}");
                }
                text
            }
            TcpOption::Timestamps(value, echo) => format!("TS val {value} ecr {echo}"),
            TcpOption::Md5(digest) => format!("md5 {digest}"),
            TcpOption::FastOpen(cookie) => format!("FO {cookie}"),
            TcpOption::FastOpenExperimental(cookie) => format!("FOEXP {cookie}"),
            TcpOption::Other(kind) => format!("option-{kind}"),
        })
        .collect();
    format!(" <{}>", words.join(","))
}

impl Packet {
    /// As scripts write it, but for its direction.
    pub fn text(&self) -> String {
        let Packet { seq, len, flags, window, .. } = self;
        let end = seq.wrapping_add(u32::from(*len));
        let mut text = format!("{} {seq}:{end}({len})", flags_text(*flags));
        if flags & ACK != 0 {
            let _ = write!(text, " ack {}", self.ack);
        }
        let _ = write!(text, " win {window}{}", options_text(&self.options));
        text
    }
}
