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
    pub fn of(bbr: impl FnOnce(&CongestionConfig, u64) -> B) -> Rounds<B> {
        let mut bbr = bbr(&Config::default().congestion, SMSS);
        let window = Window { cwnd: 10 * SMSS, ssthresh: u64::MAX };
        bbr.on_established(&window, Instant::ZERO, Some(RTT), Duration::ZERO);
        Rounds { bbr, window, now: Instant::ZERO, delivered: 0, lost_ever: 0 }
    }

    pub fn sample(&mut self, rate: u64, change: impl FnOnce(&mut RateSample)) {
        let prior_delivered = self.delivered;
        let bytes = rate * RTT.as_nanos() / 1_000_000_000;
        self.now += RTT;
        self.delivered += bytes;
        let mut sample = RateSample {
            now: self.now,
            measured: Some(Measured {
                prior_delivered,
                app_limited: false,
                rate: Some((bytes, RTT)),
                in_flight: bytes,
                lost: 0,
            }),
            delivered: self.delivered,
            delivered_at: self.now,
            acked: bytes,
            lost: 0,
            lost_ever: 0,
            excess: None,
            cwnd_limited: true,
            rtt: Some(RTT),
            srtt: Some(RTT),
            pipe_before: bytes,
            pipe: bytes,
            repair: Repair::None,
            next_departure: self.now,
        };
        change(&mut sample);
        self.lost_ever += sample.lost;
        sample.lost_ever = self.lost_ever;
        self.bbr.on_rate_sample(&mut self.window, &sample);
    }
}
