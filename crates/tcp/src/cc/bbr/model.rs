//! The model of the path: its rate, its round trip without queue, and whether the pipe is full.

use super::steering::Steering;
use crate::cc::RateSample;
use farpath_units::{Duration, Instant};

/// The rate is the largest of so many round trips: a cycle of probing and two more (`bbr_bw_rtts`).
const ROUNDS: u64 = 10;
/// The smallest RTT is believed for so long.
const MIN_RTT_TIME: Duration = Duration::from_secs(10);
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
