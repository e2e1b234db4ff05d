//! What the explicit-rate paper says of normal and of explicit-rate TCP.
//!
//! Source: L. G. Roberts, "Major Improvements in TCP Performance over Satellite and Radio", MILCOM 2006.
//!
//! The two formulas are fits to measurements of one test bed of 100 Mbit/s and socket buffers of its day: their terms of delay are fixed
//! windows of some 50 kB and 1.5 MB, not a property of either protocol. The paper calls `delay` the round-trip
//! delay; its own figures (28 s, 10:1, 18:1, 224:1, 12:1) come out only where it is half of that. [`Reading`] has both.

use crate::estimate::above_zero;
use crate::{Estimate, InputError, Throughput};
use farpath_units::{Duration, Probability, Rate};

const SOURCE: &str = "Roberts, MILCOM 2006, fit to a test bed of 100 Mbit/s";
const IDEAL: &str = "Roberts, MILCOM 2006, ideal driver";
const SIGNALLING: &str = "Roberts, MILCOM 2006, processor-limited signalling";

/// The rate of the test bed, for which alone the fits were made.
const TEST_BED_BIT_PER_S: u64 = 100_000_000;

/// Which delay the paper's `delay` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// The round-trip delay, as printed.
    RoundTrip,
    /// Half of it: what reproduces the paper's figures.
    OneWay,
}

/// Which sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Driver {
    /// `CR / (1 + delay / 2) / (1 + loss / 0.007)`, `delay` in milliseconds.
    Normal,
    /// `CR / (1 + delay / 60) / (1 + loss / 0.12)`.
    ExplicitRate,
}

/// A flow of the paper's kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    /// CR, the rate of the channel, or the granted one.
    pub rate: Rate,
    /// Round-trip time.
    pub rtt: Duration,
    /// Packets lost, each way.
    pub loss_rate: Probability,
    /// What the delay is taken to be.
    pub reading: Reading,
}

impl Fit {
    /// The rate of file transfer by the paper's fit.
    ///
    /// Known error beside today's Linux: for loss of 1 % and more up to 40 ms the normal fit is within 0.77 to 1.48 of CUBIC and Reno;
    /// without loss at 0.5 to 1 s it is 14 times too slow. The other one is within 30 % of a well-buffered sender up to 40 ms
    /// and 2 %, and 1.3 to 11 times too slow beyond.
    pub fn throughput(&self, driver: Driver) -> Estimate<Throughput> {
        let (delay_ms, loss) = match driver {
            Driver::Normal => (2.0, 0.007),
            Driver::ExplicitRate => (60.0, 0.12),
        };
        let share = 1.0 / (1.0 + self.delay_ms() / delay_ms) / (1.0 + self.loss_rate.fraction() / loss);
        let bit_per_s = self.rate.bit_per_s();
        Estimate::new(Throughput::from_bytes_per_s(bit_per_s as f64 / 8.0 * share), SOURCE)
            .caveat_if(driver == Driver::Normal && bit_per_s != TEST_BED_BIT_PER_S, || {
                "the fit was made at 100 Mbit/s: its term of delay is a fixed window there, and another one at any other rate".to_owned()
            })
            .caveat_if(self.rtt > Duration::from_millis(40), || {
                "beyond 40 ms the terms of delay are the socket buffers of 2006; today's are larger".to_owned()
            })
    }

    /// How many times as fast the explicit-rate driver is.
    pub fn gain(&self) -> f64 {
        let of = |driver| self.throughput(driver).value.bytes_per_s();
        of(Driver::ExplicitRate) / of(Driver::Normal)
    }

    /// How many times as fast the ideal driver is, as printed: without a term of delay, and with that of the explicit-rate driver.
    pub fn ideal_gain(&self) -> [f64; 2] {
        let normal = self.throughput(Driver::Normal).value.bytes_per_s();
        let without = ideal(self.rate, self.loss_rate, true).value.bytes_per_s() / normal;
        let lossless = Fit { loss_rate: Probability::ZERO, ..*self };
        let delay = lossless.throughput(Driver::ExplicitRate).value.bytes_per_s() * 8.0
            / self.rate.bit_per_s() as f64;
        [without, without * delay]
    }

    fn delay_ms(&self) -> f64 {
        let rtt_ms = self.rtt.as_secs_f64() * 1e3;
        match self.reading {
            Reading::RoundTrip => rtt_ms,
            Reading::OneWay => rtt_ms / 2.0,
        }
    }
}

/// The ideal driver, whose window never ends: `CR / (1 + loss)` as printed, or `CR (1 - loss)`, which is what arrives where every lost
/// packet is sent again at the same rate.
pub fn ideal(rate: Rate, loss_rate: Probability, as_printed: bool) -> Estimate<Throughput> {
    let loss = loss_rate.fraction();
    let share = if as_printed { 1.0 / (1.0 + loss) } else { 1.0 - loss };
    let throughput = Throughput::from_bytes_per_s(rate.bit_per_s() as f64 / 8.0 * share);
    Estimate::new(throughput, IDEAL).caveat_if(as_printed && loss > 0.1, || {
        format!("printed as 1 / (1 + loss); of what is sent, 1 - loss arrives: {:.3} of it", 1.0 - loss)
    })
}

/// The mean flow, in bits, below which a router that sets up `flows_per_s` is limited by its processor and not by its port of `rate`.
pub fn signalling_threshold(rate: Rate, flows_per_s: u64) -> Result<Estimate<f64>, InputError> {
    above_zero("flows per second", flows_per_s)?;
    Ok(Estimate::new(rate.bit_per_s() as f64 / flows_per_s as f64, SIGNALLING))
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpath_units::Bytes;

    fn fit(rtt_ms: u64, loss: f64, reading: Reading) -> Fit {
        Fit {
            rate: Rate::from_bit_per_s(TEST_BED_BIT_PER_S).expect("above zero"),
            rtt: Duration::from_millis(rtt_ms),
            loss_rate: Probability::new(loss).expect("a probability"),
            reading,
        }
    }

    #[test]
    fn the_printed_ratios_need_half_the_stated_delay() {
        for (rtt_ms, loss, printed, round_trip, one_way) in
            [(1000, 0.1, 224.0, 236.4, 224.2), (40, 0.002, 10.0, 15.9, 10.4), (40, 0.01, 18.0, 28.2, 18.5)]
        {
            let gain = |reading| fit(rtt_ms, loss, reading).gain();
            assert!((gain(Reading::RoundTrip) - round_trip).abs() < 0.05, "{}", gain(Reading::RoundTrip));
            assert!((gain(Reading::OneWay) - one_way).abs() < 0.05, "{}", gain(Reading::OneWay));
            assert!((one_way - printed) / printed < 0.05 && (round_trip - printed) / printed > 0.05);
        }
        assert_eq!(fit(0, 0.0, Reading::OneWay).gain(), 1.0);
    }

    #[test]
    fn eight_megabytes_across_the_country_take_28_s_and_1_s() {
        let seconds = |driver, reading, size| {
            fit(40, 0.02, reading).throughput(driver).value.time_for(Bytes(size)).as_secs_f64()
        };
        let close = |got: f64, want: f64| assert!((got / want - 1.0).abs() < 0.01, "{got}, not {want}");
        close(seconds(Driver::Normal, Reading::OneWay, 8 << 20), 28.47);
        close(seconds(Driver::Normal, Reading::OneWay, 8_000_000), 27.15);
        close(seconds(Driver::ExplicitRate, Reading::OneWay, 8_000_000), 0.996);
        close(seconds(Driver::Normal, Reading::RoundTrip, 8_000_000), 51.8);
        close(seconds(Driver::ExplicitRate, Reading::RoundTrip, 8_000_000), 1.24);
    }

    #[test]
    fn distance_costs_normal_tcp_twelve_times_as_much() {
        let slower = |driver, reading| {
            let of = |ms| fit(ms, 0.0, reading).throughput(driver).value.bytes_per_s();
            of(0) / of(80)
        };
        let one_way = slower(Driver::Normal, Reading::OneWay) / slower(Driver::ExplicitRate, Reading::OneWay);
        assert!((one_way - 12.6).abs() < 0.05, "{one_way}");
        let round_trip =
            slower(Driver::Normal, Reading::RoundTrip) / slower(Driver::ExplicitRate, Reading::RoundTrip);
        assert!((round_trip - 17.6).abs() < 0.05, "{round_trip}");
    }

    #[test]
    fn the_ideal_is_printed_above_what_can_arrive() {
        let rate = Rate::from_bit_per_s(8_000_000).expect("above zero");
        let tenth = Probability::new(0.1).expect("a probability");
        assert!((ideal(rate, tenth, false).value.bytes_per_s() - 900_000.0).abs() < 1e-6);
        assert!((ideal(rate, tenth, true).value.bytes_per_s() - 909_090.9).abs() < 0.1);
    }

    #[test]
    fn four_hundred_to_one_needs_the_term_of_delay() {
        let [without, with] = fit(1000, 0.1, Reading::RoundTrip).ideal_gain();
        assert!(
            (without / 6962.0 - 1.0).abs() < 1e-3 && (with / 394.0 - 1.0).abs() < 2e-3,
            "{without} {with}"
        );
    }

    #[test]
    fn six_minutes_of_voice_are_23_megabit() {
        // A port of 10 Gbit/s and 434 flows a second: as much as such calls.
        let rate = Rate::from_bit_per_s(10_000_000_000).expect("above zero");
        let bits = signalling_threshold(rate, 434).unwrap().value;
        assert!((bits / (360.0 * 64_000.0) - 1.0).abs() < 1e-3, "{bits}");
        assert!(signalling_threshold(rate, 0).is_err());
    }
}
