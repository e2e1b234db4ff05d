//! Why `farpath explicit-rate qos` has nothing to show.

use farpath_tia1039::advice::AdviceError;
use farpath_tia1039::{DecodeError, PacketError};

/// Why there is nothing to show.
#[derive(Debug, thiserror::Error)]
pub enum QosError {
    /// A character that is no hexadecimal digit.
    #[error("HEX: expected hexadecimal digits, found `{found}` at character {at}")]
    Digit { found: char, at: usize },
    /// Half a byte.
    #[error("HEX: expected two digits to a byte, found {0} digits")]
    HalfByte(usize),
    /// Nothing, or what has no length that anything has.
    #[error(
        "HEX: expected a QoS Structure of 16 bytes, two of them, an IPv6 hop-by-hop header, an IP packet or a SCONE TCP \
         option, found {0} bytes"
    )]
    Length(usize),
    /// By its length it is a structure.
    #[error("no QoS Structure: {0}")]
    Structure(DecodeError),
    /// By its first bytes it is a hop-by-hop header.
    #[error("no hop-by-hop header with QoS Structures: {0}")]
    HopByHop(DecodeError),
    /// By its first bytes it is an IP packet.
    #[error("no IP packet with QoS Structures: {0}")]
    Packet(PacketError),
    /// An IP packet of something else.
    #[error(
        "an IP packet without QoS Structures, DSCP {0}; expected DSCP 3 (QoSSignal) or an IPv6 option of type 0x20"
    )]
    Nothing(u8),
    /// A run without signalling.
    #[error("{0}")]
    Exchange(String),
    /// By its first byte it is a TCP option.
    #[error("no SCONE option: {0}")]
    Advice(AdviceError),
}
