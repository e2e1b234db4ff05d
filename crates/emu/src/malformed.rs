//! What is wrong with packets that are not as they should be, counted by kind.

use std::fmt;

/// What is wrong with a packet that came out of a host.
///
/// A lone packet goes over the path as the bytes that it is, unless nothing can be made of it
/// ([`Malformed::passes`]); a super-packet with any of these cannot be split and is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Malformed {
    /// Neither an IPv4 nor an IPv6 header, or one cut short.
    IpHeader,
    /// Another length than its IP header says; jumbograms too (RFC 2675).
    Length,
    /// A fragment.
    Fragment,
    /// An IPv6 extension header, behind which nothing is looked for, unless it carries QoS Structures.
    ExtensionHeader,
    /// A TCP header cut short.
    TcpHeader,
    /// A checksum to be finished that would lie beyond the packet.
    Checksum,
    /// A super-packet of an unknown type, of another type than its bytes are, or of segments of no bytes.
    Gso,
}

impl Malformed {
    /// All of them, in the order of their declaration.
    pub const ALL: [Malformed; 7] = [
        Malformed::IpHeader,
        Malformed::Length,
        Malformed::Fragment,
        Malformed::ExtensionHeader,
        Malformed::TcpHeader,
        Malformed::Checksum,
        Malformed::Gso,
    ];

    /// As files and tables spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Malformed::IpHeader => "ip-header",
            Malformed::Length => "length",
            Malformed::Fragment => "fragment",
            Malformed::ExtensionHeader => "extension-header",
            Malformed::TcpHeader => "tcp-header",
            Malformed::Checksum => "checksum",
            Malformed::Gso => "gso",
        }
    }

    /// Whether a lone packet goes on over the path; the host at the other end may make of it what it will.
    pub const fn passes(self) -> bool {
        match self {
            Malformed::Length | Malformed::Fragment | Malformed::ExtensionHeader | Malformed::TcpHeader => {
                true
            }
            Malformed::IpHeader | Malformed::Checksum | Malformed::Gso => false,
        }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Malformed packets, by kind; a super-packet counts once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MalformedCounts([u64; Malformed::ALL.len()]);

impl MalformedCounts {
    pub(crate) fn add(&mut self, kind: Malformed) {
        self.0[kind as usize] += 1;
    }

    /// Of this kind.
    pub fn count_of(&self, kind: Malformed) -> u64 {
        self.0[kind as usize]
    }

    /// Of any kind.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}
