//! Congestion control: controllers see events and hold bytes; they do not reach into the connection.

mod reno;

pub use reno::Reno;

use farpath_units::{Duration, Instant};

/// What a controller steers, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Congestion window.
    pub cwnd: u64,
    /// Slow start threshold.
    pub ssthresh: u64,
}

/// New data was acknowledged outside of fast recovery.
#[derive(Debug, Clone, Copy)]
pub struct AckEvent {
    /// When.
    pub now: Instant,
    /// Bytes that this ACK newly acknowledged.
    pub newly_acked: u64,
    /// Sent and not acknowledged, before this ACK.
    pub flight_size: u64,
    /// Whether `cwnd` was what kept the sender from sending more.
    pub cwnd_limited: bool,
    /// Smoothed RTT.
    pub srtt: Option<Duration>,
}

/// A loss was found, by duplicate ACKs or by the timer.
#[derive(Debug, Clone, Copy)]
pub struct LossEvent {
    /// When.
    pub now: Instant,
    /// Sent and not acknowledged, less what limited transmit added (RFC 5681 §3.2 step 2).
    pub flight_size: u64,
    /// The peer's window.
    pub rwnd: u64,
    /// Whether the retransmission timer found it.
    pub timeout: bool,
}

/// A congestion controller.
pub trait CongestionControl {
    /// Grows `window` for an ACK of new data.
    fn on_ack(&mut self, window: &mut Window, ack: &AckEvent);
    /// The `ssthresh` that a loss leaves.
    fn ssthresh_after(&mut self, window: &Window, loss: &LossEvent) -> u64;
}
