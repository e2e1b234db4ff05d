//! Either version on a path whose rate is given, for its tests.

use crate::Config;
use crate::cc::{CongestionControl, RateSample, Repair, Window};
use crate::config::CongestionConfig;
use crate::scoreboard::Measured;
use farpath_units::{Duration, Instant};

pub const SMSS: u64 = 1000;
pub const RTT: Duration = Duration::from_millis(100);

/// A sender on a path that delivers `rate` bytes per second, one sample a round trip.
pub struct Rounds<B> {
    pub bbr: B,
    pub window: Window,
    pub now: Instant,
    delivered: u64,
    lost_ever: u64,
}

impl<B: CongestionControl> Rounds<B> {
    pub fn with_controller(bbr: impl FnOnce(&CongestionConfig, u64) -> B) -> Rounds<B> {
        let mut bbr = bbr(&Config::default().congestion, SMSS);
        let window = Window { cwnd: 10 * SMSS, ssthresh: u64::MAX };
        bbr.on_established(&window, Instant::ZERO, Some(RTT), Duration::ZERO);
        Rounds { bbr, window, now: Instant::ZERO, delivered: 0, lost_ever: 0 }
    }

    /// Whether the controller keeps the rate down itself.
    pub fn sample(&mut self, rate: u64, change: impl FnOnce(&mut RateSample)) -> bool {
        let prior_delivered = self.delivered;
        let bytes = rate * RTT.as_nanos() / 1_000_000_000;
        self.now += RTT;
        self.delivered += bytes;
        let measured = Measured { prior_delivered, rate: Some((bytes, RTT)), in_flight: bytes, ..MEASURED };
        let mut sample = RateSample {
            now: self.now,
            measured: Some(measured),
            delivered: self.delivered,
            delivered_at: self.now,
            acked: bytes,
            pipe_before: bytes,
            pipe: bytes,
            next_departure: self.now,
            ..sample()
        };
        change(&mut sample);
        self.lost_ever += sample.lost;
        sample.lost_ever = self.lost_ever;
        self.bbr.on_rate_sample(&mut self.window, &sample)
    }
}

const MEASURED: Measured =
    Measured { prior_delivered: 0, app_limited: false, rate: Some((0, RTT)), in_flight: 0, lost: 0 };

/// An ACK at the beginning of time that delivers nothing.
pub fn sample() -> RateSample {
    RateSample {
        now: Instant::ZERO,
        measured: Some(MEASURED),
        delivered: 0,
        delivered_at: Instant::ZERO,
        acked: 0,
        lost: 0,
        lost_ever: 0,
        excess: None,
        cwnd_limited: true,
        rtt: Some(RTT),
        srtt: Some(RTT),
        pipe_before: 0,
        pipe: 0,
        repair: Repair::None,
        next_departure: Instant::ZERO,
    }
}
