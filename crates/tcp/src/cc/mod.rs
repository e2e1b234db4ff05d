//! Congestion control: controllers see events and hold bytes; they do not reach into the connection.

mod cubic;
mod hystart;
mod reno;
mod slow_start;

pub use cubic::Cubic;
pub use reno::Reno;

use crate::config::{CongestionConfig, CongestionControlKind};
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
    /// One past the last position acknowledged (SND.UNA): rounds are counted by it.
    pub acked_to: u64,
    /// One past the last position sent (SND.NXT).
    pub sent_to: u64,
    /// Sent and not acknowledged, before this ACK.
    pub flight_size: u64,
    /// Whether `cwnd` was what kept the sender from sending more.
    pub cwnd_limited: bool,
    /// RTT of the first segment that this ACK covers, where it was sent only once or timestamps tell.
    pub rtt: Option<Duration>,
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
    /// What is taken to be in the network, what limited transmit added included: RFC 6675's `pipe`; without SACK,
    /// each duplicate ACK stands for a segment that has left it.
    pub pipe: u64,
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

/// The controller that a configuration names. An enum, not a trait object: it is asked at every ACK.
#[derive(Debug, Clone)]
pub enum Controller {
    /// RFC 5681.
    Reno(Reno),
    /// RFC 9438.
    Cubic(Cubic),
}

impl Controller {
    /// For segments of `smss` bytes.
    pub fn new(config: &CongestionConfig, smss: u64) -> Controller {
        match config.control {
            CongestionControlKind::Reno => Controller::Reno(Reno::new(config, smss)),
            CongestionControlKind::Cubic => Controller::Cubic(Cubic::new(config, smss)),
        }
    }
}

impl CongestionControl for Controller {
    #[inline]
    fn on_ack(&mut self, window: &mut Window, ack: &AckEvent) {
        match self {
            Controller::Reno(reno) => reno.on_ack(window, ack),
            Controller::Cubic(cubic) => cubic.on_ack(window, ack),
        }
    }

    fn ssthresh_after(&mut self, window: &Window, loss: &LossEvent) -> u64 {
        match self {
            Controller::Reno(reno) => reno.ssthresh_after(window, loss),
            Controller::Cubic(cubic) => cubic.ssthresh_after(window, loss),
        }
    }
}
