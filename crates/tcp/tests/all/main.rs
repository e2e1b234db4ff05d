//! The endpoint, rule by rule: one end under a segment script, and two ends over a pipe.

mod acks;
mod congestion;
mod dsack;
mod ecn;
mod handshake;
mod script;
mod tail;
mod teardown;
mod transfers;
mod window;

mod hostile;
mod linux;
mod linux_rack;
mod linux_timer;
mod pacing;
mod parameters;
mod pipe;
mod queries;
mod rack;
mod recovery_newreno;
mod recovery_reno;
mod recovery_sack;
mod rto;
mod wire;

use farpath_units::{Duration, Instant};

/// A moment as text: `"1.5 s"` after the start.
fn time(text: &str) -> Instant {
    Instant::ZERO + duration(text)
}

fn duration(text: &str) -> Duration {
    text.parse().unwrap_or_else(|_| panic!("`{text}` is a duration"))
}
