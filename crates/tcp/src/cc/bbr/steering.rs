//! What the versions of BBR have in common: a pace from a rate and a gain, bursts, and windows in products of bandwidth and
//! delay.

use crate::cc::slow_start::clamp;
use crate::cc::{Pace, RateSample, Window};
use crate::config::CongestionConfig;
use farpath_units::Duration;

/// Gains are in 256ths (`BBR_UNIT`).
pub const UNIT: u64 = 256;
/// `ln 2 / 2`: the queue that startup has built is gone in a round trip.
pub const DRAIN_GAIN: u64 = UNIT * 1000 / 2885;
/// The least window at any time: segments.
pub const LEAST_WINDOW: u64 = 4;
/// So long ProbeRTT holds.
pub const PROBE_RTT: Duration = Duration::from_millis(200);
/// Segments of the window before there is an RTT (`TCP_INIT_CWND`).
pub const INITIAL_WINDOW: u64 = 10;
/// What the pace leaves of the rate, in percent: a queue that exists shrinks.
const PACING_PERCENT: u64 = 99;
/// Binary places of a rate in segments per microsecond (`BW_SCALE`).
const BANDWIDTH_SCALE: u32 = 24;

/// The pace in force, and what windows and paces are made of.
#[derive(Debug, Clone)]
pub struct Steering {
    pub smss: u64,
    pub clamp: u64,
    /// `sk_pacing_rate`, bytes per second: zero before the first RTT.
    pub pacing_rate: u64,
    has_rtt: bool,
    startup_gain: u64,
    units: Units,
}

/// How finely rates are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Units {
    /// Bytes per second.
    Bytes,
    /// As Linux does: 2⁻²⁴ segments per microsecond (`BW_UNIT`), rounded down. With segments of 1448 B that is 86 byte/s, which
    /// tells where a round trip is long: ten segments in 90 s are one unit and not 1.86.
    Linux,
}

impl Steering {
    pub fn new(config: &CongestionConfig, smss: u64, startup_gain: u64, units: Units) -> Steering {
        Steering { smss, clamp: clamp(config, smss), pacing_rate: 0, has_rtt: false, startup_gain, units }
    }

    /// `bytes` in a time, bytes per second.
    pub fn rate(&self, bytes: u64, time: Duration) -> u64 {
        match self.units {
            Units::Bytes => per_second(bytes, time),
            Units::Linux => {
                let smss = u128::from(self.smss);
                let micros = u128::from(time.as_nanos() / 1000).max(1);
                let rate = (u128::from(bytes) << BANDWIDTH_SCALE) / (smss * micros);
                u64::try_from((rate * smss * 1_000_000) >> BANDWIDTH_SCALE).unwrap_or(u64::MAX)
            }
        }
    }

    /// `bandwidth` in Linux's units, of which it was rounded down to whole bytes.
    fn units(&self, bandwidth: u64) -> u128 {
        (u128::from(bandwidth) << BANDWIDTH_SCALE).div_ceil(u128::from(self.smss) * 1_000_000)
    }

    fn paced(&self, bandwidth: u64, gain: u64) -> u64 {
        let rate = match self.units {
            Units::Bytes => {
                u128::from(bandwidth) * u128::from(gain) / u128::from(UNIT) * u128::from(PACING_PERCENT) / 100
            }
            // bbr_rate_bytes_per_sec()
            Units::Linux => {
                let rate = self.units(bandwidth) * u128::from(self.smss * gain) / u128::from(UNIT);
                (rate * u128::from(10_000 * PACING_PERCENT)) >> BANDWIDTH_SCALE
            }
        };
        u64::try_from(rate).unwrap_or(u64::MAX)
    }

    /// Before the first sample: the window in a round trip of the handshake; without one, in a millisecond.
    pub fn pace_by_window(&mut self, window: &Window, srtt: Option<Duration>) {
        self.has_rtt |= srtt.is_some();
        let rtt = srtt.unwrap_or(Duration::from_millis(1)).max(Duration::from_micros(1));
        self.pacing_rate = self.paced(self.rate(window.cwnd, rtt), self.startup_gain);
    }

    /// Before the pipe is full the pace only rises: a first sample of a short burst says little.
    pub fn set_pace(
        &mut self,
        window: &Window,
        srtt: Option<Duration>,
        bandwidth: u64,
        gain: u64,
        pipe_is_full: bool,
    ) {
        let rate = self.paced(bandwidth, gain);
        if !self.has_rtt && srtt.is_some() {
            self.pace_by_window(window, srtt);
        }
        if pipe_is_full || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// `bandwidth` for a round trip without queue, times `gain`: whole segments.
    pub fn product(&self, bandwidth: u64, min_rtt: Option<Duration>, gain: u64) -> u64 {
        let Some(min_rtt) = min_rtt else { return INITIAL_WINDOW * self.smss };
        let segments = match self.units {
            Units::Bytes => {
                let product = u128::from(bandwidth) * u128::from(min_rtt.as_nanos()) * u128::from(gain);
                // What is almost a segment too many is none: the first division has rounded.
                (product / (u128::from(UNIT) * 1_000_000_000)).div_ceil(u128::from(self.smss))
            }
            // bbr_bdp()
            Units::Linux => {
                let product = self.units(bandwidth) * u128::from(min_rtt.as_nanos() / 1000);
                (product * u128::from(gain) / u128::from(UNIT)).div_ceil(1 << BANDWIDTH_SCALE)
            }
        };
        u64::try_from(segments).unwrap_or(u64::MAX).saturating_mul(self.smss).min(u64::MAX / 4)
    }

    pub fn pace(&self, least_burst: u64) -> Option<Pace> {
        Some(Pace { least_burst, ..Pace::from_bytes_per_s(self.pacing_rate) })
    }
}

/// Of `in_network`, what will be left when the next segment may leave, which is `burst` with it: meanwhile the bottleneck delivers.
pub fn in_network_at_departure(sample: &RateSample, bandwidth: u64, in_network: u64, burst: u64) -> u64 {
    let delivered = at_rate(bandwidth, sample.next_departure.saturating_since(sample.now));
    (in_network + burst).saturating_sub(delivered)
}

/// Bytes in a time.
pub fn at_rate(bytes_per_s: u64, time: Duration) -> u64 {
    let bytes = u128::from(bytes_per_s) * u128::from(time.as_nanos()) / 1_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// Bytes per second.
pub fn per_second(bytes: u64, time: Duration) -> u64 {
    let rate = u128::from(bytes) * 1_000_000_000 / u128::from(time.as_nanos().max(1));
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// Well-mixed bits (SplitMix64's finalizer): flows that come here at different times draw differently.
pub fn mixed(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    const SMSS: u64 = 1000;

    fn steering(units: Units) -> Steering {
        Steering::new(&Config::default().congestion, SMSS, 2 * UNIT, units)
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_pace_is_the_rate_times_its_gain_less_one_percent() {
        let mut steering = steering(Units::Bytes);
        let window = Window { cwnd: 10 * SMSS, ssthresh: u64::MAX };
        steering.set_pace(&window, Some(ms(100)), 1_000_000, UNIT * 5 / 4, true);
        assert_eq!(steering.pacing_rate, 1_237_500);
    }

    #[test]
    fn before_the_pipe_is_full_a_pace_only_rises() {
        let window = Window { cwnd: 10 * SMSS, ssthresh: u64::MAX };
        let mut steering = steering(Units::Bytes);
        steering.pace_by_window(&window, Some(ms(100)));
        // 10 000 B in 100 ms, doubled, less 1 %.
        assert_eq!(steering.pacing_rate, 198_000);
        for (bandwidth, full, pace) in [
            (150_000, false, 198_000),
            (300_000, false, 297_000),
            (200_000, false, 297_000),
            (200_000, true, 198_000),
        ] {
            steering.set_pace(&window, Some(ms(100)), bandwidth, UNIT, full);
            assert_eq!(steering.pacing_rate, pace, "{bandwidth} {full}");
        }
    }

    #[test]
    fn the_first_round_trip_that_is_measured_sets_the_pace_of_the_window_anew() {
        // bbr_set_pacing_rate(): the handshake told no round trip, so that the window left in a millisecond.
        let window = Window { cwnd: 10 * SMSS, ssthresh: u64::MAX };
        let mut steering = steering(Units::Bytes);
        steering.pace_by_window(&window, None);
        assert_eq!(steering.pacing_rate, 19_800_000);
        steering.set_pace(&window, None, 1000, UNIT, false);
        assert_eq!(steering.pacing_rate, 19_800_000, "none yet");
        steering.set_pace(&window, Some(ms(100)), 1000, UNIT, false);
        assert_eq!(steering.pacing_rate, 198_000);
        steering.set_pace(&window, Some(ms(200)), 1000, UNIT, false);
        assert_eq!(steering.pacing_rate, 198_000, "once");
    }

    #[test]
    fn a_product_is_whole_segments_and_a_little_more_is_none() {
        let steering = steering(Units::Bytes);
        let product = |bandwidth| steering.product(bandwidth, Some(ms(100)), UNIT);
        assert_eq!(product(1_000_000), 100 * SMSS);
        assert_eq!(product(1_000_009), 100 * SMSS, "less than a byte");
        assert_eq!(product(1_000_010), 101 * SMSS);
        assert_eq!(steering.product(1_000_000, Some(ms(100)), UNIT * 5 / 4), 125 * SMSS);
        assert_eq!(steering.product(1_000_000, None, UNIT), 10 * SMSS);
    }

    #[test]
    fn well_mixed_bits_are_those_of_splitmix64() {
        // Computed apart from this crate.
        assert_eq!(mixed(1), 6_238_072_747_940_578_789);
        assert_eq!(mixed(0x1234_5678_9abc_def0), 10_820_449_572_363_811_078);
    }
}
