//! What a script says, as data: the language of packetdrill, whole.

use core::ops::Range;
use farpath_units::Duration;
use serde::{Deserialize, Serialize};

/// A place in the text of a script, both counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Place {
    /// Line.
    pub line: u32,
    /// Column, in characters.
    pub column: u32,
}

impl core::fmt::Display for Place {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A whole script.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Script {
    /// Options before the first event, without their dashes.
    pub options: Vec<ScriptOption>,
    /// Shell command before the first event.
    pub begin: Option<Command>,
    /// Events in their order.
    pub events: Vec<Event>,
    /// Shell command after the last event.
    pub end: Option<Command>,
}

/// `--name=value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptOption {
    /// Where it stands.
    pub place: Place,
    /// Name without dashes.
    pub name: String,
    /// What follows the equals sign.
    pub value: Option<String>,
}

/// A shell command, in backquotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Where it stands.
    pub place: Place,
    /// Its text.
    pub text: String,
}

/// Something that happens, and when.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Where its time stands.
    pub place: Place,
    /// The bytes of the script that it is.
    pub span: Range<usize>,
    /// When it happens.
    pub time: Time,
    /// What happens.
    pub action: Action,
}

/// When an event happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Time {
    /// `1.5`: so long after the script began.
    Absolute(Duration),
    /// `+1.5`: so long after the event before it.
    Relative(Duration),
    /// `1.5~1.6`.
    AbsoluteRange(Duration, Duration),
    /// `+1.5~+1.6`.
    RelativeRange(Duration, Duration),
    /// `*`
    Any,
}

/// What happens in an event.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// A packet that comes in or is expected to leave.
    Packet(PacketSpec),
    /// A system call.
    Call(Call),
    /// A shell command.
    Command(Command),
    /// `%{ ... }%`
    Code(Command),
}

/// Which way a packet goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Way {
    /// `<`: to the end under test.
    In,
    /// `>`: expected of the end under test.
    Out,
}

/// A packet as the script writes it.
#[derive(Debug, Clone, PartialEq)]
pub struct PacketSpec {
    /// Which way it goes.
    pub way: Way,
    /// What is said of the IP header.
    pub ip: IpSpec,
    /// Headers around it, as they are written: `gre`, `mpls`, `ipv4 ...`, `ipv6 ...`.
    pub around: Vec<String>,
    /// What it carries.
    pub body: BodySpec,
}

/// What is said of an IP header; what is not said is not compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IpSpec {
    /// The ECN field, or the whole TOS octet.
    pub tos: Option<TosSpec>,
    /// Flow label of IPv6.
    pub flow_label: Option<u32>,
    /// TTL or hop limit.
    pub ttl: Option<u8>,
}

/// The TOS octet of an IP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TosSpec {
    /// The ECN field alone.
    Ecn(u8),
    /// `ect01`: either codepoint of ECN-capable transport.
    Ect,
    /// All of it.
    Whole(u8),
}

/// What an IP packet carries.
#[derive(Debug, Clone, PartialEq)]
pub enum BodySpec {
    /// A TCP segment.
    Tcp(TcpSpec),
    /// A UDP datagram with so many bytes.
    Udp {
        /// Source and destination.
        ports: Option<(u16, u16)>,
        /// Payload bytes.
        len: u16,
    },
    /// An ICMP message.
    Icmp(IcmpSpec),
}

/// A TCP segment as the script writes it.
#[derive(Debug, Clone, PartialEq)]
pub struct TcpSpec {
    /// Source and destination port.
    pub ports: Option<(u16, u16)>,
    /// Control bits, as in the header's 13th and 14th octet (AE is bit 8).
    pub flags: u16,
    /// First sequence number, from the initial one on.
    pub seq: u32,
    /// Payload bytes.
    pub len: u16,
    /// Acknowledgment, from the peer's initial number on.
    pub ack: Option<u32>,
    /// Window field.
    pub window: Option<u16>,
    /// Urgent pointer.
    pub urgent: Option<u16>,
    /// Options; `None` is `<...>`, whatever they are.
    pub options: Option<Vec<TcpOption>>,
}

/// A TCP option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TcpOption {
    /// End of the list.
    End,
    /// Padding.
    Nop,
    /// Maximum segment size.
    Mss(u16),
    /// Window scale.
    WindowScale(u8),
    /// SACK permitted.
    SackOk,
    /// SACK blocks.
    Sack(Vec<(u32, u32)>),
    /// Timestamps: value and echo.
    Timestamps(u32, u32),
    /// MD5 digest, hexadecimal.
    Md5(String),
    /// Fast open cookie (RFC 7413), hexadecimal.
    FastOpen(String),
    /// The same in the experimental option.
    FastOpenExperimental(String),
    /// Another option, by its kind.
    Other(u8),
}

/// An ICMP message as the script writes it.
#[derive(Debug, Clone, PartialEq)]
pub struct IcmpSpec {
    /// Type, by its name.
    pub kind: String,
    /// Code, by its name.
    pub code: Option<String>,
    /// Next-hop MTU.
    pub mtu: Option<u32>,
    /// Identifier of an echo.
    pub id: Option<u32>,
    /// The segment that it is about: first sequence number and payload.
    pub echoed: Option<(u32, u16)>,
}

/// A system call, and what it is expected to give.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Where its name stands.
    pub place: Place,
    /// For one that blocks: when it is to end, counted as the event's own time is.
    pub until: Option<Duration>,
    /// Name.
    pub name: String,
    /// Arguments.
    pub arguments: Vec<Expression>,
    /// What it returns.
    pub expected: Expression,
    /// Name of the error it ends with.
    pub error: Option<String>,
}

/// An argument of a system call, or a part of one.
#[derive(Debug, Clone, PartialEq)]
pub enum Expression {
    /// `...`: whatever it is.
    Any,
    /// A number.
    Number(i64),
    /// A constant, or another word.
    Word(String),
    /// A text.
    Text(String),
    /// `NAME(...)`
    Apply(String, Vec<Expression>),
    /// `a|b`
    Or(Box<Expression>, Box<Expression>),
    /// `[...]`
    List(Vec<Expression>),
    /// `{...}`: parts with a name or without.
    Structure(Vec<(Option<String>, Expression)>),
}

impl Expression {
    /// The part of this name of a structure.
    pub fn part(&self, name: &str) -> Option<&Expression> {
        match self {
            Expression::Structure(parts) => {
                parts.iter().find(|(own, _)| own.as_deref() == Some(name)).map(|(_, part)| part)
            }
            Expression::Any
            | Expression::Number(_)
            | Expression::Word(_)
            | Expression::Text(_)
            | Expression::Apply(..)
            | Expression::Or(..)
            | Expression::List(_) => None,
        }
    }

    /// Its value, where constants and numbers alone make it up.
    pub fn number(&self) -> Option<i64> {
        match self {
            Expression::Number(number) => Some(*number),
            Expression::Word(word) => crate::constants::value(word),
            Expression::Or(one, other) => Some(one.number()? | other.number()?),
            Expression::List(items) => match &items[..] {
                [only] => only.number(),
                _ => None,
            },
            Expression::Apply(name, arguments) if name == "htons" => arguments.first()?.number(),
            Expression::Any | Expression::Text(_) | Expression::Apply(..) | Expression::Structure(_) => None,
        }
    }
}
