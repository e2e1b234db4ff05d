//! Packet scripts in packetdrill's language: what a TCP is sent, what it sends then, and when, line by line.
//!
//! [`parse`] reads a script, [`play`] plays it against a [`Machine`]: a simulated end ([`Simulated`]), or a kernel elsewhere.
//! Nothing here owns a clock, a socket or a thread.

pub mod bytes;
mod code;
mod constants;
mod icmp;
mod information;
mod machine;
mod packet;
mod parse;
mod player;
mod record;
mod settings;
mod simulated;
pub mod syntax;
mod update;

pub use code::{CodeOutcome, Value, check as check_code, run as run_code};
pub use constants::{error_name, error_number, value as constant};
pub use machine::{Begun, Machine, Network, Refusal, Returned, wheel_lateness};
pub use packet::{Packet, Sent, flags_text};
pub use parse::{MAX_SCRIPT, ParseError, parse};
pub use player::{
    Came, Comparison, DEFAULT_TOLERANCE, Fault, Outcome, Shown, Verdict, expression_text, play, seconds,
    spec_text,
};
pub use record::{RecordError, Seen, record};
pub use settings::{Setting, settings};
pub use simulated::Simulated;
pub use simulated::calls::{bytes_of_call, queue_message};
pub use update::update;
