//! Where loss recovery stands: what every rule of a sender asks first.

/// Where loss recovery stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing is being repaired.
    Open,
    /// Fast recovery, until `point` is acknowledged.
    Fast { point: u64, partial_acks: u32 },
    /// Slow start after a timeout, until `point` is acknowledged.
    Loss { point: u64 },
}
