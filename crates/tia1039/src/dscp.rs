//! The two codepoints by which elements know explicit-rate packets.

/// What the differentiated services codepoint of a packet says (RFC 2474).
///
/// Both are of pool 2 (`xxxx11`), for experimental and local use, so that they collide with no standard class. They say
/// nothing outside the domain that has agreed on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum QosMark {
    /// An ordinary packet.
    #[default]
    None,
    /// `QoSSignal`: the packet carries QoS Structures.
    Signal,
    /// `QoSFlow`: data of a flow that holds a grant.
    Flow,
}

impl QosMark {
    /// Of a codepoint of six bits.
    pub const fn from_dscp(dscp: u8) -> QosMark {
        match dscp {
            0b00_0011 => QosMark::Signal,
            0b00_0111 => QosMark::Flow,
            _ => QosMark::None,
        }
    }

    /// The codepoint; `None` leaves a packet's own.
    pub const fn dscp(self) -> Option<u8> {
        match self {
            QosMark::None => None,
            QosMark::Signal => Some(0b00_0011),
            QosMark::Flow => Some(0b00_0111),
        }
    }

    /// As the paper spells it.
    pub const fn name(self) -> &'static str {
        match self {
            QosMark::None => "none",
            QosMark::Signal => "QoSSignal",
            QosMark::Flow => "QoSFlow",
        }
    }
}
