//! A file sent at a constant rate, every lost packet again until it has arrived: what no sender of that rate beats.
//!
//! Derived here. Each packet is lost independently; what is lost is sent again a round trip later. The last packets of the file decide
//! when it is over: the rounds that they take are the largest of as many geometric numbers.

use crate::estimate::above_zero;
use crate::{Estimate, InputError};
use farpath_units::{Bytes, Duration, Probability, Rate};

const SOURCE: &str = "selective repeat at a constant rate, derived here";

/// A file, and the path that it goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FiniteFile {
    /// Bytes of the file.
    pub size: Bytes,
    /// Payload of a packet.
    pub mss: Bytes,
    /// At which payload leaves.
    pub rate: Rate,
    /// Round-trip time.
    pub rtt: Duration,
    /// Of data.
    pub loss_rate: Probability,
    /// The most that leaves in the first round trip: 64 kB where the window of a SYN/ACK cannot be scaled; `None` for no such bound.
    pub first_flight: Option<Bytes>,
}

impl FiniteFile {
    /// From the first SYN until the last byte has arrived, in the mean.
    ///
    /// A round trip for the handshake, another where the first flight is bounded, the file and what is sent again at the
    /// rate, half a round trip, and the rounds of repair of the last round trip's packets. Beside a paced kernel sender at 95 Mbit/s (RTT 10 ms to
    /// 1 s, 200 MB) it is within 0.03 s without loss, and -5 to +3 % with up to 10 %. Of a file that leaves within a round trip what is sent
    /// again is sent meanwhile: there it is up to 12 % high.
    pub fn time(&self) -> Result<Estimate<Duration>, InputError> {
        self.check()?;
        let rounds = repair_rounds(self.tail_packets(), self.loss_rate);
        Ok(self.estimate(rounds))
    }

    /// The time within which `share` of such transfers are over, by the distribution of the repair alone.
    pub fn time_of_share(&self, share: Probability) -> Result<Estimate<Duration>, InputError> {
        self.check()?;
        let rounds = (0..=ROUNDS)
            .find(|&k| within(self.tail_packets(), self.loss_rate, k) >= share.fraction())
            .map_or(f64::INFINITY, f64::from);
        Ok(self.estimate(rounds))
    }

    /// Receive and send buffer with which the rate is kept while repairs are under way: `rate * RTT (1 + ln N / ln (1/p))`.
    pub fn window(&self) -> Result<Estimate<Bytes>, InputError> {
        self.check()?;
        let p = self.loss_rate.fraction();
        let product = self.rate.bit_per_s() as f64 / 8.0 * self.rtt.as_secs_f64();
        let packets = (product / self.mss.0 as f64).max(1.0);
        let rounds = if p > 0.0 { libm::log(packets) / -libm::log(p) } else { 0.0 };
        let window = libm::ceil(product * (1.0 + rounds));
        let bytes = if window < u64::MAX as f64 { window as u64 } else { u64::MAX };
        Ok(Estimate::new(Bytes(bytes), SOURCE))
    }

    fn check(&self) -> Result<(), InputError> {
        above_zero("the segment size", self.mss.0)
    }

    fn seconds_at_rate(&self) -> f64 {
        self.size.0 as f64 * 8.0 / self.rate.bit_per_s() as f64
    }

    /// Packets of the last round trip, or of the file.
    fn tail_packets(&self) -> f64 {
        let in_flight = self.rate.bit_per_s() as f64 / 8.0 * self.rtt.as_secs_f64();
        (in_flight.min(self.size.0 as f64) / self.mss.0 as f64).max(1.0)
    }

    fn estimate(&self, rounds: f64) -> Estimate<Duration> {
        let rtt = self.rtt.as_secs_f64();
        let arrives = 1.0 - self.loss_rate.fraction();
        let product = self.rate.bit_per_s() as f64 / 8.0 * rtt;
        let bounded = self.first_flight.is_some_and(|flight| self.size > flight && product > flight.0 as f64);
        let rounds = 1.5 + f64::from(u8::from(bounded)) + rounds;
        // Without delay a round of repair takes no time, however many there are.
        let waits = if rtt > 0.0 { rtt * rounds } else { 0.0 };
        let sending = if self.size.0 > 0 { self.seconds_at_rate() / arrives } else { 0.0 };
        Estimate::new(Duration::from_secs_f64(waits + sending), SOURCE).caveat_if(
            self.loss_rate > Probability::ZERO && self.seconds_at_rate() < rtt,
            || {
                "the file leaves within a round trip: what is sent again then takes no time of its own"
                    .to_owned()
            },
        )
    }
}

/// Past so many rounds the rest of a sum is below what matters, up to a loss of 99 %.
const ROUNDS: u32 = 100_000;

/// The chance that `packets` packets have all arrived after `rounds` rounds of repair: `(1 - p^(rounds + 1))^packets`.
fn within(packets: f64, loss_rate: Probability, rounds: u32) -> f64 {
    let missing = libm::pow(loss_rate.fraction(), f64::from(rounds) + 1.0);
    libm::exp(packets * libm::log1p(-missing))
}

/// Rounds of repair until all of `packets` packets have arrived, in the mean: the sum of the chances that there is one more.
fn repair_rounds(packets: f64, loss_rate: Probability) -> f64 {
    if loss_rate == Probability::ONE {
        return f64::INFINITY;
    }
    let mut sum = 0.0;
    for rounds in 0..ROUNDS {
        let more = 1.0 - within(packets, loss_rate, rounds);
        sum += more;
        if more < 1e-12 {
            break;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(size: u64, rtt_ms: u64, loss: f64) -> FiniteFile {
        FiniteFile {
            size: Bytes(size),
            mss: Bytes(1448),
            rate: Rate::from_bit_per_s(95_000_000).expect("above zero"),
            rtt: Duration::from_millis(rtt_ms),
            loss_rate: Probability::new(loss).expect("a probability"),
            first_flight: Some(Bytes(65_535)),
        }
    }

    fn seconds(file: &FiniteFile) -> f64 {
        file.time().unwrap().value.as_secs_f64()
    }

    #[test]
    fn a_paced_kernel_sender_takes_as_long() {
        // Measured on Linux 6.18, 95 Mbit/s of payload, buffers of 256 MB: size, RTT in ms, loss, seconds, allowed below and above.
        for (size, rtt, loss, measured, below, above) in [
            (8_000_000, 10, 0.0, 0.69, 0.0, 0.02),
            (8_000_000, 40, 0.0, 0.77, 0.0, 0.01),
            (8_000_000, 500, 0.0, 1.92, 0.01, 0.01),
            (8_000_000, 1000, 0.0, 3.17, 0.01, 0.01),
            (200_000_000, 500, 0.0, 18.1, 0.01, 0.01),
            (200_000_000, 1000, 0.0, 19.3, 0.01, 0.01),
            (200_000_000, 40, 0.02, 17.4, 0.05, 0.03),
            (200_000_000, 500, 0.01, 18.7, 0.05, 0.03),
            (200_000_000, 500, 0.1, 21.4, 0.05, 0.03),
            (200_000_000, 1000, 0.01, 20.5, 0.05, 0.05),
            (200_000_000, 1000, 0.1, 24.1, 0.05, 0.04),
            (8_000_000, 1000, 0.1, 6.03, 0.05, 0.12),
            (8_000_000, 500, 0.02, 2.92, 0.05, 0.12),
        ] {
            let ratio = seconds(&file(size, rtt, loss)) / measured;
            assert!(
                (1.0 - below - 0.005..=1.0 + above + 0.005).contains(&ratio),
                "{size} B, {rtt} ms, {loss}: {ratio}"
            );
        }
    }

    #[test]
    fn the_first_flight_costs_a_round_trip() {
        let bounded = file(8_000_000, 1000, 0.0);
        let free = FiniteFile { first_flight: None, ..bounded };
        assert!((seconds(&bounded) - seconds(&free) - 1.0).abs() < 1e-9);
        let small = file(60_000, 1000, 0.0);
        assert!((seconds(&small) - 1.505).abs() < 1e-3, "{}", seconds(&small));
    }

    #[test]
    fn the_mean_of_rounds_is_that_of_the_distribution() {
        let tenth = Probability::new(0.1).expect("a probability");
        // One packet: p + p^2 + ... rounds.
        assert!((repair_rounds(1.0, tenth) - 1.0 / 9.0).abs() < 1e-9);
        // By hand, 5525 packets: 1 + 1 + 0.996 + 0.4245 + 0.0537 + 0.0055 + ...
        assert!((repair_rounds(5525.0, tenth) - 3.480).abs() < 2e-3);
        let file = file(8_000_000, 1000, 0.1);
        let of = |share| file.time_of_share(Probability::new(share).unwrap()).unwrap().value.as_secs_f64();
        assert!((of(0.9) - of(0.5) - 1.0).abs() < 1e-9, "the median and the ninth of ten are a round apart");
        assert!(of(0.5) < seconds(&file) && seconds(&file) < of(0.9));
    }

    #[test]
    fn ten_per_cent_at_a_second_needs_58_megabytes() {
        let window = file(200_000_000, 1000, 0.1).window().unwrap().value.0 as f64;
        assert!((window / 58e6 - 1.0).abs() < 0.01, "{window}");
        assert_eq!(file(1, 1000, 0.0).window().unwrap().value, Bytes(11_875_000));
    }

    #[test]
    fn limits_are_finite_or_forever() {
        assert_eq!(file(1, 10, 1.0).time().unwrap().value, Duration::MAX);
        assert!(seconds(&file(u64::MAX, 0, 1e-17)).is_finite());
        assert!(seconds(&file(1_000, 10, 0.99)).is_finite());
    }
}
