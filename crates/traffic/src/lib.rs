//! Real sockets: bulk transfers with verified content, and what the kernel says of them.
//!
//! Everything acts on the calling thread, in whatever network namespace that thread is in; nothing here knows of
//! namespaces. Linux only, and empty elsewhere: it is Linux's TCP that is asked.

#![cfg(target_os = "linux")]

pub mod bulk;
pub mod counters;
pub mod datagram;
pub mod info;
pub mod options;
pub mod sockets;
#[allow(unsafe_code)]
mod sys;
mod token;
mod wait;

pub use bulk::{
    BulkEnd, End, EndReport, Exchange, MOST_SILENT, MessageStamps, Opening, PrepareError, Prepared, Role,
    Sample,
};
pub use info::TcpInfo;
pub use options::{OptionError, SocketOptions};
pub use token::{ParseTokenError, Token};
