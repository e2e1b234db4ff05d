//! A kernel before a peer that says nothing.

#[cfg(target_os = "linux")]
mod observed;

use farpath_model::radius::Span;
#[cfg(target_os = "linux")]
pub use observed::silence;

/// What a kernel does while its peer says nothing: in s, the least and the most over its connections.
#[derive(Debug, Clone, PartialEq)]
pub struct Silence {
    /// Each SYN after the first, from that.
    pub syns: Vec<Span>,
    /// `connect()` gives up, from the first SYN; `None` where none has by the end of the measurement.
    pub abandoned: Option<Span>,
    /// Each SYN/ACK after the first, from the one SYN that came.
    pub synacks: Vec<Span>,
    /// The half-open connection is gone, from that SYN; likewise.
    pub forgotten: Option<Span>,
}
