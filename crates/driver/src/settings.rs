//! What the driver is told.

use farpath_explicit_rate::RequestSettings;
use farpath_units::Bytes;

/// How requests are made, when a grant is no longer believed, and what comes then. Of all devices alike.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// How a rate is asked for, and when a grant is no longer believed. A composite rate is not asked for.
    pub request: RequestSettings,
    /// Congestion control of sockets that never had a grant.
    pub plain: String,
    /// Congestion control of those that have given one up.
    pub fallback: String,
    /// Send and receive buffers of sockets with a grant.
    pub buffers: Buffers,
    /// A SYN/ACK is followed by an ACK with all of the window that TCP has set aside, where that is more than a SYN/ACK can say.
    pub early_window: bool,
}

/// How large the buffers of a socket with a grant are. Neither way gives more than `net.core.wmem_max` and `rmem_max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Buffers {
    /// As the kernel and the program have them.
    Untouched,
    /// What the rate needs over the round trip while losses up to the limit are repaired, where that is more than TCP makes of
    /// them by itself, and the program has not set them.
    Sized,
    /// `SO_SNDBUF` and `SO_RCVBUF`, whatever the program has set.
    Fixed(Bytes),
}

impl Settings {
    /// As the standard and its paper say, with one congestion control where there is no grant, or none any more.
    pub fn new(plain: impl Into<String>) -> Settings {
        let plain = plain.into();
        Settings {
            request: RequestSettings::default(),
            fallback: plain.clone(),
            plain,
            buffers: Buffers::Untouched,
            early_window: false,
        }
    }
}
