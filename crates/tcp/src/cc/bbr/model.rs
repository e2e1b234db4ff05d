//! The model of the path: its rate, its round trip without queue, and whether the pipe is full.

use super::steering::Steering;
use crate::cc::RateSample;
use farpath_units::{Duration, Instant};

/// The rate is the largest of so many round trips: a cycle of probing and two more (`bbr_bw_rtts`).
const ROUNDS: u64 = 10;
/// The smallest RTT is believed for so long (draft-cardwell-iccrg-bbr-congestion-control-00 §4.1.1.3), by both versions.
pub const MIN_RTT_TIME: Duration = Duration::from_secs(10);
/// The pipe is full where the rate did not grow by a quarter in three rounds.
const FULL_GROWTH: (u64, u64) = (5, 4);
const FULL_ROUNDS: u32 = 3;
/// One place for each round that counts: the current one and those before.
const PLACES: usize = ROUNDS as usize + 1;

/// Estimates, and the rounds by which they are told.
// DEVIATES Linux, lib/win_minmax.c: it keeps the three best samples of the window, which can forget a maximum's successor.
// Here every round has its own largest.
#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    /// The largest rate of each round, by the round's number.
    largest: [u64; PLACES],
    max_bandwidth: u64,
    /// Packet-timed rounds, and where the current one ends: `delivered` of what was sent when it began.
    round: u64,
    round_ends: u64,
    round_starts: bool,
    min_rtt: Option<Duration>,
    min_rtt_at: Instant,
    /// The rate that startup has to beat by a quarter, and the rounds in which it did not.
    full_bandwidth: u64,
    full_rounds: u32,
    full: bool,
}

impl Model {
    /// Bytes per second; zero before the first sample.
    pub fn max_bandwidth(&self) -> u64 {
        self.max_bandwidth
    }

    /// The round trip without queue, as far as one was seen.
    pub fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt
    }

    /// Whether startup has found the rate of the path.
    pub fn pipe_is_full(&self) -> bool {
        self.full
    }

    /// Whether this ACK is the first of a round.
    pub fn round_starts(&self) -> bool {
        self.round_starts
    }

    /// A round is counted from here: `delivered` bytes have been.
    pub fn begin_round(&mut self, delivered: u64) {
        self.round_ends = delivered;
    }

    /// Counts rounds, and takes the sample of a rate. Whether there was one.
    pub fn update_bandwidth(&mut self, sample: &RateSample, steering: &Steering) -> bool {
        self.round_starts = false;
        let Some(measured) = sample.measured else { return false };
        let Some((bytes, interval)) = measured.rate else { return false };
        if measured.prior_delivered >= self.round_ends {
            self.round_ends = sample.delivered;
            self.round += 1;
            self.round_starts = true;
            self.largest[self.place()] = 0;
            self.max_bandwidth = self.largest.iter().copied().max().unwrap_or(0);
        }
        let rate = steering.rate(bytes, interval);
        // What the application held down says nothing of the path, unless it was faster all the same.
        if !measured.app_limited || rate >= self.max_bandwidth {
            let place = self.place();
            self.largest[place] = self.largest[place].max(rate);
            self.max_bandwidth = self.max_bandwidth.max(rate);
        }
        true
    }

    fn place(&self) -> usize {
        (self.round % PLACES as u64) as usize
    }

    /// Three rounds without much growth: the pipe is full, and a queue has been built.
    pub fn check_pipe(&mut self, sample: &RateSample) {
        let app_limited = sample.measured.is_some_and(|measured| measured.app_limited);
        if self.full || !self.round_starts || app_limited {
            return;
        }
        let (grown, of) = FULL_GROWTH;
        if u128::from(self.max_bandwidth) * u128::from(of)
            >= u128::from(self.full_bandwidth) * u128::from(grown)
        {
            (self.full_bandwidth, self.full_rounds) = (self.max_bandwidth, 0);
            return;
        }
        self.full_rounds += 1;
        self.full = self.full_rounds >= FULL_ROUNDS;
    }

    /// What startup had found so far is no measure: a loss that was none, or a timeout.
    pub fn forget_growth(&mut self, rounds_too: bool) {
        self.full_bandwidth = 0;
        if rounds_too {
            self.full_rounds = 0;
        }
    }

    /// After a timeout a round begins.
    pub fn start_round(&mut self) {
        self.round_starts = true;
    }

    /// Takes the RTT. Whether the one that was in force had expired.
    pub fn update_min_rtt(&mut self, now: Instant, rtt: Option<Duration>) -> bool {
        let expired = self.min_rtt.is_some() && now > self.min_rtt_at + MIN_RTT_TIME;
        if let Some(rtt) = rtt
            && (expired || self.min_rtt.is_none_or(|least| rtt < least))
        {
            (self.min_rtt, self.min_rtt_at) = (Some(rtt), now);
        }
        expired
    }

    /// ProbeRTT is over: the RTT is believed again.
    pub fn min_rtt_is_fresh(&mut self, now: Instant) {
        self.min_rtt_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::super::steering::{UNIT, Units};
    use super::*;
    use crate::Config;
    use crate::cc::bbr::rounds::sample;

    fn took(model: &mut Model, prior_delivered: u64, delivered: u64, rate: u64, app_limited: bool) -> u64 {
        let steering = Steering::new(&Config::default().congestion, 1000, UNIT, Units::Bytes);
        let mut sample = RateSample { delivered, ..sample() };
        let measured = sample.measured.as_mut().expect("measured");
        (measured.prior_delivered, measured.app_limited) = (prior_delivered, app_limited);
        measured.rate = Some((rate, Duration::from_secs(1)));
        assert!(model.update_bandwidth(&sample, &steering));
        model.max_bandwidth()
    }

    #[test]
    fn a_round_ends_with_what_left_when_it_began() {
        let mut model = Model::default();
        took(&mut model, 0, 5000, 1000, false);
        assert!(model.round_starts());
        took(&mut model, 4999, 8000, 1000, false);
        assert!(!model.round_starts());
        took(&mut model, 5000, 9000, 1000, false);
        assert!(model.round_starts());
        // One that is counted from later ends later.
        model.begin_round(20_000);
        took(&mut model, 19_999, 30_000, 1000, false);
        assert!(!model.round_starts());
    }

    #[test]
    fn after_a_timeout_a_round_begins() {
        let mut model = Model::default();
        took(&mut model, 0, 5000, 1000, false);
        took(&mut model, 0, 6000, 1000, false);
        assert!(!model.round_starts());
        model.start_round();
        assert!(model.round_starts());
    }

    #[test]
    fn what_the_application_holds_down_counts_where_it_is_as_fast_as_anything() {
        let mut model = Model::default();
        assert_eq!(took(&mut model, 0, 1000, 1000, true), 1000, "nothing else is known");
        assert_eq!(took(&mut model, 0, 2000, 900, true), 1000);
        assert_eq!(took(&mut model, 0, 3000, 1100, true), 1100);
        // Ten rounds later the 1100 B/s are forgotten, and nothing has come after them.
        for round in 1..=10 {
            assert_eq!(took(&mut model, round * 10_000, (round + 1) * 10_000, 500, true), 1100);
        }
        assert_eq!(took(&mut model, 110_000, 120_000, 500, true), 500);
    }

    #[test]
    fn the_smallest_rtt_is_believed_for_ten_seconds() {
        let mut model = Model::default();
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let ms = |ms| Some(Duration::from_millis(ms));
        assert!(!model.update_min_rtt(at(0), ms(100)));
        assert!(!model.update_min_rtt(at(10_000), ms(101)));
        assert_eq!(model.min_rtt(), ms(100));
        assert!(model.update_min_rtt(at(10_001), ms(101)));
        assert_eq!(model.min_rtt(), ms(101));
    }
}
