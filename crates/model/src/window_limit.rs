//! A transfer limited by the receiver's window: one window per round-trip time.
//!
//! Source: the high-BER paper (Sarkar, Ammann, Zabir, Electronics 2022, 11, 2254), Eq. 10-13, and, for the
//! cycle behind a delayed ACK, store-and-forward arithmetic with RFC 1122 section 4.2.3.2.

use crate::estimate::above_zero;
use crate::path::{crossing, duration, ps, spacing};
use crate::{Estimate, InputError, Path, Throughput};
use farpath_units::{Bytes, Duration};

const SOURCE: &str = "Sarkar, Ammann, Zabir, Electronics 2022, 11, 2254, Eq. 10-13";
const CYCLE_SOURCE: &str = "store-and-forward arithmetic with delayed ACKs, RFC 1122 section 4.2.3.2";

/// A receive window and the round-trip time it is spent over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowLimit {
    /// Receive window.
    pub rwnd: Bytes,
    /// Round-trip time. Eq. 10-11 take the propagation alone; pass the measured one where there is one.
    pub rtt: Duration,
}

impl WindowLimit {
    /// `rwnd / rtt`.
    ///
    /// Eq. 10-11. Domain: no loss, a lone flow, `rtt` includes serialization and the wait for the delayed ACK.
    /// Known error: with propagation alone for `rtt` (40 ms) it gives 45.66 s where the packet-exact time over
    /// two 10 Mbit/s links is 50.15 s, 9 % too fast; [`DelayedAckCycle`] is within 0.3 % there.
    pub fn throughput(&self) -> Result<Estimate<Throughput>, InputError> {
        above_zero("the window", self.rwnd.0)?;
        above_zero("the round-trip time", self.rtt.as_nanos())?;
        Ok(Estimate::new(Throughput::from_bytes_per_s(self.rwnd.0 as f64 / self.rtt.as_secs_f64()), SOURCE))
    }

    /// `size / (rwnd / rtt)`, Eq. 12-13. Leaves out the handshake and slow start.
    pub fn time(&self, size: Bytes) -> Result<Estimate<Duration>, InputError> {
        let short = size < self.rwnd;
        Ok(self.throughput()?.map(|throughput| throughput.time_for(size)).caveat_if(short, || {
            "the file is shorter than one window: this is below a single round trip".to_owned()
        }))
    }
}

/// A full window over a path of store-and-forward links, with a receiver that delays its ACKs.
#[derive(Debug, Clone, Copy)]
pub struct DelayedAckCycle<'a> {
    /// The links.
    pub path: &'a Path,
    /// Payload of a full segment.
    pub mss: Bytes,
    /// Receive window.
    pub rwnd: Bytes,
    /// Segments per ACK: 2 for RFC 1122, 1 without delayed ACKs.
    pub ack_every: u64,
    /// How long the receiver waits for a segment that does not come.
    pub delayed_ack_timeout: Duration,
}

/// One cycle of the steady state.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteadyCycle {
    /// Segments sent per cycle. Below the window where that is no multiple of `ack_every`: the rest wait,
    /// unacknowledged, at the receiver.
    pub segments: u64,
    /// Length of the cycle.
    pub time: Duration,
    /// Payload per time.
    pub throughput: Throughput,
}

impl DelayedAckCycle<'_> {
    /// Length of a cycle, and what it carries.
    ///
    /// ```text
    /// W       = floor(rwnd / mss),  r = W mod a
    /// cycle   = propagation both ways + sum over links of S_data + (a - 1 - r) * max S_data + sum of S_ack
    /// carries   W - r segments
    /// at least  (W - r) * max S_data, and (W - r) / a * max S_ack: no link beats its own rate
    /// ```
    ///
    /// with `a` = `ack_every`, `S` = serialization time. A window below `a` waits for the delayed-ACK timer instead.
    /// Domain: no loss, FIFO queues that hold a window, a lone flow. Handshake and slow start are not in it;
    /// [`crate::lossless`] has both.
    pub fn steady(&self) -> Result<Estimate<SteadyCycle>, InputError> {
        above_zero("the segment size", self.mss.0)?;
        above_zero("the window", self.rwnd.0)?;
        above_zero("segments per ACK", self.ack_every)?;
        let payload = self.mss.min(self.rwnd);
        let window = (self.rwnd.0 / payload.0).max(1);
        let (data, ack) = (payload + self.path.headers, self.path.headers);
        let data_spacing = spacing(&self.path.forward, data);
        let ack_spacing = spacing(&self.path.reverse, ack);

        let held = window % self.ack_every;
        let (segments, wait) = if window < self.ack_every {
            let wait = data_spacing.saturating_mul(u128::from(window - 1));
            (window, wait.saturating_add(ps(self.delayed_ack_timeout)))
        } else {
            (window - held, data_spacing.saturating_mul(u128::from(self.ack_every - 1 - held)))
        };
        let acks = (segments / self.ack_every).max(1);
        let idle = crossing(&self.path.forward, data).saturating_add(wait);
        let cycle = idle
            .saturating_add(crossing(&self.path.reverse, ack))
            .max(data_spacing.saturating_mul(u128::from(segments)))
            .max(ack_spacing.saturating_mul(u128::from(acks)));
        let bytes = payload.0 as f64 * segments as f64;
        let throughput = Throughput::from_bytes_per_s(bytes / (cycle as f64 / 1e12));
        let cycle = SteadyCycle { segments, time: duration(cycle), throughput };
        Ok(Estimate::new(cycle, CYCLE_SOURCE)
            .caveat_if(window < self.ack_every, || {
                format!("the window holds {window} segments, the receiver acknowledges every {}th: every window waits for the delayed-ACK timer", self.ack_every)
            })
            .caveat_if(window > self.ack_every && held != 0, || {
                format!("{held} of the window's {window} segments always wait unacknowledged at the receiver: they carry nothing")
            }))
    }

    /// Time of `size` at the steady throughput; no handshake, no slow start.
    pub fn time(&self, size: Bytes) -> Result<Estimate<Duration>, InputError> {
        Ok(self.steady()?.map(|cycle| cycle.throughput.time_for(size)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Hop;
    use farpath_units::Rate;

    fn two_ethernets() -> Path {
        let rate = Rate::from_bit_per_s(10_000_000).expect("not zero");
        Path::symmetric(vec![Hop::ethernet(rate, Duration::from_millis(10)); 2])
    }

    fn cycle(path: &Path, rwnd: u64) -> DelayedAckCycle<'_> {
        DelayedAckCycle {
            path,
            mss: Bytes(1460),
            rwnd: Bytes(rwnd),
            ack_every: 2,
            delayed_ack_timeout: Duration::from_millis(200),
        }
    }

    #[test]
    fn high_ber_paper_equations_10_to_13() {
        let limit = WindowLimit { rwnd: Bytes(8760), rtt: Duration::from_millis(40) };
        assert_eq!(limit.throughput().unwrap().value.bytes_per_s(), 219_000.0);
        let time = limit.time(Bytes(10_000_000)).unwrap();
        assert_eq!(time.value, Duration::from_nanos(45_662_100_457));
        assert!(time.caveats.is_empty());
    }

    #[test]
    fn six_segments_over_two_ethernets_take_43_8256_ms() {
        let path = two_ethernets();
        let steady = cycle(&path, 8760).steady().unwrap();
        // 40 ms + 3 x 1.2304 + 2 x 0.0672.
        assert_eq!(steady.value.time, Duration::from_nanos(43_825_600));
        assert_eq!(steady.value.segments, 6);
        assert!(steady.caveats.is_empty());
        let time = cycle(&path, 8760).time(Bytes(10_000_000)).unwrap().value;
        assert_eq!(format!("{time:.2}"), "50.03 s");
    }

    #[test]
    fn an_odd_window_carries_one_segment_less() {
        let path = two_ethernets();
        let steady = cycle(&path, 7300).steady().unwrap();
        assert_eq!(steady.value.segments, 4);
        // No wait: the segment held back makes a pair with the next window's first.
        assert_eq!(steady.value.time, Duration::from_nanos(42_595_200));
        assert_eq!(steady.caveats.len(), 1);
        // Packet-exact: 73.03 s.
        let time = cycle(&path, 7300).time(Bytes(10_000_000)).unwrap().value.as_secs_f64();
        assert!((time / 73.03 - 1.0).abs() < 2e-3, "{time}");
    }

    #[test]
    fn a_window_of_one_segment_waits_for_the_timer() {
        let path = two_ethernets();
        let steady = cycle(&path, 1460).steady().unwrap();
        assert_eq!(steady.value.time, Duration::from_nanos(242_595_200));
        assert!(steady.caveats[0].contains("timer"));
        assert_eq!(cycle(&path, 1000).steady().unwrap().value.segments, 1);
    }

    #[test]
    fn no_link_beats_its_own_rate() {
        let rate = Rate::from_bit_per_s(10_000_000_000).expect("not zero");
        let path = Path::symmetric(vec![Hop::ethernet(rate, Duration::from_millis(300))]);
        let of = |rwnd| cycle(&path, rwnd).steady().unwrap().value.throughput.bytes_per_s();
        let wire = 1_250_000_000.0 * 1460.0 / 1538.0;
        assert!(of(1 << 40) <= wire * 1.000001 && of(1 << 40) > wire * 0.999999, "{}", of(1 << 40));
        assert!(of(65_535) < 110_000.0);
        assert!(of(u64::MAX) > 0.0);
    }

    #[test]
    fn zeros_are_refused_by_name() {
        let limit = WindowLimit { rwnd: Bytes(0), rtt: Duration::from_millis(40) };
        assert_eq!(limit.throughput().unwrap_err().to_string(), "the window must be above zero");
        let path = two_ethernets();
        assert!(DelayedAckCycle { ack_every: 0, ..cycle(&path, 8760) }.steady().is_err());
    }
}
