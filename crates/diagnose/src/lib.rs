//! What held a TCP connection, when: from a capture of its packets.
//!
//! Nothing here opens a file or reads a clock: [`read`] takes whatever gives bytes, and [`Diagnosis`] is told of packets. Memory is
//! bounded by the number of connections that are followed ([`MAX_CONNECTIONS`]) and the data that each has in flight, not by the length of the capture.
//!
//! The method, step by step, is in `docs/diagnose.md`.

pub mod both;
mod capture;
mod connection;
mod grant;
pub mod kernel;
mod ledger;
pub mod live;
mod losses;
mod packet;
mod prelude;
mod report;
pub mod sequence;
mod stack;
mod tunnel;

pub use capture::{CaptureError, Frame, read};
pub use connection::{Diagnosis, MAX_CONNECTIONS, MAX_IN_FLIGHT};
pub use ledger::{Interval, Limit, MAX_INTERVALS, Moment};
pub use losses::Losses;
pub use packet::{Link, Other, TcpPacket, ip_packet, parse};
pub use prelude::{Inferred, MOST_HELD, ScaleToldBy, ToldBy};
pub use report::{ConnectionReport, LimitShare, Report, Timers, Vantage};
pub use stack::{Family, OptionOrder, StackSeen};
pub use tunnel::{MOST_NESTED, Tunnel};
