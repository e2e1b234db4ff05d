//! The small fields of a QoS Structure.

use core::fmt;
use farpath_units::Duration;

/// CD: what a structure is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Message {
    /// 0: no action.
    Forward = 0,
    /// 1: asks for a rate; routers lower it on the way.
    Request = 1,
    /// 2: gives the requester what came of its request.
    Response = 2,
    /// 3: tells routers what a guarantee came to, so that they release the rest.
    Confirmation = 3,
    /// 4: a router knows nothing of this flow and asks to be told.
    MissedStart = 4,
    /// 5: a new rate in mid-flow, asked for by the sender or lowered by a router.
    Renegotiate = 5,
    /// 6: the request again, for a router that has missed it.
    ResendStart = 6,
    /// 7: the flow is over.
    Close = 7,
}

impl Message {
    /// All, by code.
    pub const ALL: [Message; 8] = [
        Message::Forward,
        Message::Request,
        Message::Response,
        Message::Confirmation,
        Message::MissedStart,
        Message::Renegotiate,
        Message::ResendStart,
        Message::Close,
    ];

    /// Of a code; 8 to 15 are not assigned.
    pub const fn from_code(code: u8) -> Option<Message> {
        if (code as usize) < Message::ALL.len() { Some(Message::ALL[code as usize]) } else { None }
    }

    /// Whether it asks for a rate: a router lowers what such a structure says, and the other end answers it.
    pub const fn asks(self) -> bool {
        matches!(self, Message::Request | Message::Renegotiate | Message::ResendStart)
    }

    /// As tables spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Message::Forward => "forward",
            Message::Request => "request",
            Message::Response => "response",
            Message::Confirmation => "confirmation",
            Message::MissedStart => "missed start packet",
            Message::Renegotiate => "renegotiate",
            Message::ResendStart => "resend start packet",
            Message::Close => "close",
        }
    }
}

/// TP: which of the two rates is asked for, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum RateType {
    /// 0: Available Rate: as much as there is, fairly shared.
    #[default]
    Available = 0,
    /// 1: a Guaranteed Rate, and an Available Rate on top of it.
    Composite = 1,
    /// 2: Maximum Rate: guaranteed while it is used, given up when idle.
    Maximum = 2,
    /// 3: Guaranteed Rate, until closed.
    Guaranteed = 3,
}

impl RateType {
    /// All, by code.
    pub const ALL: [RateType; 4] =
        [RateType::Available, RateType::Composite, RateType::Maximum, RateType::Guaranteed];

    /// Of a code; 4 to 15 are not assigned.
    pub const fn from_code(code: u8) -> Option<RateType> {
        if (code as usize) < RateType::ALL.len() { Some(RateType::ALL[code as usize]) } else { None }
    }

    /// Whether AR counts.
    pub const fn has_available(self) -> bool {
        matches!(self, RateType::Available | RateType::Composite)
    }

    /// Whether GR counts. A Maximum Rate stands in GR too: it is admitted like one.
    pub const fn has_guaranteed(self) -> bool {
        !matches!(self, RateType::Available)
    }

    /// As tables spell it.
    pub const fn name(self) -> &'static str {
        match self {
            RateType::Available => "available",
            RateType::Composite => "composite",
            RateType::Maximum => "maximum",
            RateType::Guaranteed => "guaranteed",
        }
    }
}

/// CH: who pays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Charging {
    /// 0: the sender.
    #[default]
    Forward = 0,
    /// 1: the receiver.
    Reverse = 1,
}

impl Charging {
    /// Of a code; 2 to 15 are not assigned.
    pub const fn from_code(code: u8) -> Option<Charging> {
        match code {
            0 => Some(Charging::Forward),
            1 => Some(Charging::Reverse),
            _ => None,
        }
    }

    /// As tables spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Charging::Forward => "forward",
            Charging::Reverse => "reverse",
        }
    }
}

/// PP or DP: 64 levels, 0 the lowest, in the high six bits of a byte. The two low ones are reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(u8);

impl Priority {
    /// 0.
    pub const LOWEST: Priority = Priority(0);
    /// In the middle, where nobody says otherwise.
    pub const MIDDLE: Priority = Priority(32);
    /// 63.
    pub const HIGHEST: Priority = Priority(63);

    /// A level; `None` past 63.
    pub const fn new(level: u8) -> Option<Priority> {
        if level < 64 { Some(Priority(level)) } else { None }
    }

    /// 0 to 63.
    pub const fn level(self) -> u8 {
        self.0
    }

    /// Of a byte on the wire; its reserved bits are ignored.
    pub const fn from_byte(byte: u8) -> Priority {
        Priority(byte >> 2)
    }

    /// As on the wire, reserved bits 0.
    pub const fn byte(self) -> u8 {
        self.0 << 2
    }
}

impl Default for Priority {
    fn default() -> Priority {
        Priority::MIDDLE
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// BT: for how long a flow may exceed GR + AR, `2^(-BT-1)` s: 0.5 s for 0, 15.6 ms for 5, 15.3 µs for 15.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BurstTolerance(u8);

impl BurstTolerance {
    /// A code; `None` past 15.
    pub const fn new(code: u8) -> Option<BurstTolerance> {
        if code < 16 { Some(BurstTolerance(code)) } else { None }
    }

    /// 0 to 15.
    pub const fn code(self) -> u8 {
        self.0
    }

    /// How long, to the nanosecond below.
    pub const fn time(self) -> Duration {
        Duration::from_nanos(1_000_000_000 >> (self.0 + 1))
    }
}

impl Default for BurstTolerance {
    /// 15.6 ms. Linux sends data of about 1 ms in one burst, so that anything up to 8 (1.95 ms) lets it pass.
    fn default() -> BurstTolerance {
        BurstTolerance(5)
    }
}

/// The version field, 12 bits. It says what M is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u16)]
pub enum QosVersion {
    /// 1, the paper's: M is 1 once a router has seen a request.
    #[default]
    Marking = 1,
    /// 2, ours and off by default: M counts the routers that have, up to 15, so that a sender can ask for both edges.
    Counting = 2,
}

impl QosVersion {
    /// Of the field; others are not known.
    pub const fn from_code(code: u16) -> Option<QosVersion> {
        match code {
            1 => Some(QosVersion::Marking),
            2 => Some(QosVersion::Counting),
            _ => None,
        }
    }

    /// That in which so many routers can be told from fewer.
    pub const fn telling(routers: u8) -> QosVersion {
        if routers > 1 { QosVersion::Counting } else { QosVersion::Marking }
    }

    /// The largest M.
    pub const fn highest_mark(self) -> u8 {
        match self {
            QosVersion::Marking => 1,
            QosVersion::Counting => 15,
        }
    }
}
