//! A rate that somebody has granted: no slow start, no window to speak of, and losses are repaired at the same rate.

use super::slow_start::clamp;
use super::{AckEvent, CongestionControl, LossEvent, Pace, RateSample, Window};
use crate::config::CongestionConfig;
use farpath_units::Duration;

/// The window is so many times what the rate sends in a round trip: it never is the limit, however often a segment is lost. What is in
/// flight is bounded by buffers.
const ROUND_TRIPS: u128 = 16;
/// At least so many segments, for the first round trip.
const SEGMENTS: u64 = 1000;

/// The controller. It does what it is told.
#[derive(Debug, Clone)]
pub struct ExplicitRate {
    pace: Pace,
    smss: u64,
    clamp: u64,
}

impl ExplicitRate {
    /// Segments of `smss` bytes at `pace`.
    pub fn new(config: &CongestionConfig, smss: u64, pace: Pace) -> ExplicitRate {
        ExplicitRate { pace, smss, clamp: clamp(config, smss) }
    }

    /// The window that goes with the rate.
    pub fn window(&self, srtt: Option<Duration>) -> u64 {
        let round_trip =
            u128::from(self.pace.bytes_per_s) * u128::from(srtt.unwrap_or(Duration::ZERO).as_nanos());
        let bytes = u64::try_from(round_trip * ROUND_TRIPS / 1_000_000_000).unwrap_or(u64::MAX / 2);
        bytes.max(SEGMENTS * self.smss).min(self.clamp)
    }
}

impl CongestionControl for ExplicitRate {
    fn on_ack(&mut self, _window: &mut Window, _ack: &AckEvent) {}

    fn ssthresh_after(&mut self, window: &Window, _loss: &LossEvent) -> u64 {
        window.ssthresh
    }

    fn is_in_slow_start(&self, _window: &Window) -> bool {
        false
    }

    fn owns_cwnd(&self) -> bool {
        true
    }

    fn on_rate_sample(&mut self, window: &mut Window, sample: &RateSample) -> bool {
        // A timeout left a segment: the rate goes on.
        window.cwnd = self.window(sample.srtt);
        false
    }

    fn pace(&self) -> Option<Pace> {
        Some(self.pace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use farpath_units::Bytes;

    fn granted(bytes_per_s: u64, change: impl FnOnce(&mut CongestionConfig)) -> ExplicitRate {
        let mut config = Config::default().congestion;
        change(&mut config);
        ExplicitRate::new(&config, 1000, Pace::from_bytes_per_s(bytes_per_s))
    }

    #[test]
    fn the_window_is_sixteen_round_trips_at_the_rate() {
        let ms = |ms| Some(Duration::from_millis(ms));
        assert_eq!(granted(1_250_000, |_| {}).window(ms(100)), 2_000_000);
        // A thousand segments at least, and no more than the clamp.
        assert_eq!(granted(1_250_000, |_| {}).window(ms(40)), 1_000_000);
        assert_eq!(granted(1_250_000, |_| {}).window(None), 1_000_000);
        let clamped = granted(1_250_000, |c| c.cwnd_clamp = Some(Bytes(1_500_000)));
        assert_eq!(clamped.window(ms(100)), 1_500_000);
        // 10 Gbit/s to Mars: 1.25 GB/s for 2500 s.
        assert_eq!(granted(1_250_000_000, |_| {}).window(ms(2_500_000)), 50_000_000_000_000);
    }
}
