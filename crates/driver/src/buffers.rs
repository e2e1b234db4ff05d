//! What the kernel allows buffers to be.

use farpath_units::Bytes;
use std::fs;

/// Of one kind of buffer, as it would be set: TCP doubles what is set, for what it needs itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limit {
    /// What a program can set.
    pub most: Bytes,
    /// What TCP makes of it by itself, at most.
    pub by_itself: Bytes,
}

/// Of both, in the calling thread's namespace and now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Of what is sent and not acknowledged.
    pub send: Limit,
    /// Of what is received and not read.
    pub receive: Limit,
}

impl Limits {
    /// As the settings of the kernel say; zero where one cannot be read.
    pub fn now() -> Limits {
        let read = |path: &str| {
            let text = fs::read_to_string(format!("/proc/sys/net/{path}")).unwrap_or_default();
            text.split_whitespace().last().and_then(|last| last.parse().ok()).unwrap_or(0)
        };
        let limit = |program: &str, itself: &str| Limit {
            most: Bytes(read(program)),
            by_itself: Bytes(read(itself) / 2),
        };
        Limits {
            send: limit("core/wmem_max", "ipv4/tcp_wmem"),
            receive: limit("core/rmem_max", "ipv4/tcp_rmem"),
        }
    }
}
