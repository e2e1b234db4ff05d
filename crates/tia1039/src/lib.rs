//! Explicit rate by in-band signalling, TIA-1039 (2005; ITU-T Y.2121 and Q.3313 are its later forms).
//!
//! A sender asks for a rate in its SYN; every capable router on the way lowers what is asked to what it can give; the
//! receiver sends the outcome back, and the sender paces its data at it. Nothing here owns a clock or a socket.
//!
//! ```
//! use farpath_tia1039::{Message, RateUnit, Rounding, Source, Structure};
//!
//! let unit = RateUnit::KbitPerS;
//! let mut syn = Structure::request(unit.encode(100_000_000, Rounding::Up));
//! // A router has 30 Mbit/s for it, and never grants more than that: the word below is 29.984 Mbit/s.
//! syn.available = unit.encode(30_000_000, Rounding::Down);
//! let answer = syn.marked().response(Source::V4 { address: [10, 9, 0, 1].into(), port: 0xa052 });
//!
//! let bytes = answer.encode_v4();
//! assert_eq!(bytes[4..6], [0x5d, 0xa9]);
//! let read = Structure::decode_v4(&bytes).expect("it was written here");
//! assert_eq!((read.message, unit.decode(read.available)), (Message::Response, 29_984_000));
//! ```
//!
//! | module | what it does |
//! | --- | --- |
//! | `rate`, `field`, `dscp` | the 16-bit rate and its unit; the small fields; the codepoints |
//! | `structure`, `structures` | a QoS Structure, and the one or two that an IPv4 payload is |
//! | `hop_by_hop` | the same as IPv6 hop-by-hop options |
//! | `packet`, `carry` | a whole IP packet: its flow, and what it carries; structures put in and taken out |
//! | `rewrite` | what a router does to a packet's bytes |
//! | `router` | what a flow router grants, polices and forgets |
//! | `describe` | each field of a structure in words |
//! | `advice` | the SCONE TCP option: a ceiling for applications, which is no grant |

pub mod advice;
mod carry;
mod describe;
mod dscp;
mod field;
mod hop_by_hop;
mod packet;
mod rate;
mod rewrite;
pub mod router;
mod structure;
mod structures;

pub use carry::{insert_v4, strip_v4};
pub use describe::{FieldDescription, describe_hop_by_hop, describe_v4};
pub use dscp::QosMark;
pub use field::{BurstTolerance, Charging, Message, Priority, QosVersion, RateType};
pub use hop_by_hop::{HopByHop, OptionType};
pub use packet::{Carrier, PacketError, QosPacket};
pub use rate::{RateUnit, RateWord, Rounding};
pub use rewrite::signal;
pub use structure::{DecodeError, STRUCTURE_LEN, Source, Structure};
pub use structures::Structures;
