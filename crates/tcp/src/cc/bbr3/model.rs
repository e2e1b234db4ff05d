//! The model of the path: its rate, its round trip without queue, whether the pipe is full, and what the last round delivered.

use crate::cc::MIN_RTT_TIME;
use crate::cc::RateSample;
use crate::cc::bbr::steering::per_second;
use farpath_units::{Duration, Instant};

/// The smallest RTT is looked for where none as small was seen for so long.
const PROBE_RTT_EVERY: Duration = Duration::from_secs(5);
/// The pipe is full where the rate did not grow by a quarter in three rounds.
const FULL_GROWTH: (u64, u64) = (5, 4);
const FULL_ROUNDS: u32 = 3;

/// Estimates, and the rounds by which they are told. Rates are bytes per second.
#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    /// The largest rate of the cycle before, and of this one.
    largest: [u64; 2],
    /// What this ACK measures.
    sample: Option<(u64, u64)>,
    /// Packet-timed rounds: where the current one ends.
    round_ends: u64,
    round_starts: bool,
    /// The rounds by which losses are judged: from a first loss on.
    loss_round_ends: u64,
    loss_round_starts: bool,
    loss_in_round: bool,
    lost_ever: u64,
    /// The most of the round: rate, and bytes delivered within a sample.
    latest: (u64, u64),
    min_rtt: Option<Duration>,
    min_rtt_at: Instant,
    /// The smallest since the last ProbeRTT or one as small.
    probed_rtt: Option<Duration>,
    probed_rtt_at: Instant,
    /// The rate that is to be beaten by a quarter, and the rounds in which it was not.
    full_bandwidth: u64,
    full_rounds: u32,
    full_now: bool,
    full: bool,
}

impl Model {
    pub fn max_bandwidth(&self) -> u64 {
        self.largest[0].max(self.largest[1])
    }

    pub fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt
    }

    /// Whether startup has found the rate of the path.
    pub fn pipe_is_full(&self) -> bool {
        self.full
    }

    /// Too much was lost: it has.
    pub fn fill_pipe(&mut self) {
        self.full = true;
    }

    /// Whether a probe has found that there is no more.
    pub fn stopped_growing(&self) -> bool {
        self.full_now
    }

    pub fn round_starts(&self) -> bool {
        self.round_starts
    }

    pub fn loss_round_starts(&self) -> bool {
        self.loss_round_starts
    }

    pub fn latest_bandwidth(&self) -> u64 {
        self.latest.0
    }

    pub fn latest_inflight(&self) -> u64 {
        self.latest.1
    }

    /// A round is counted from here.
    pub fn begin_round(&mut self, delivered: u64) {
        self.round_ends = delivered;
    }

    /// What was declared lost since the ACK before, by whatever. Whether there was any.
    pub fn note_losses(&mut self, sample: &RateSample) -> bool {
        let found = sample.lost_ever > self.lost_ever;
        self.lost_ever = sample.lost_ever;
        if found && !self.loss_in_round {
            // What a whole round delivers is looked at, from the first loss on.
            self.loss_round_ends = sample.delivered;
            self.loss_in_round = true;
        }
        found
    }

    /// Rounds, and what this ACK measures.
    pub fn begin_ack(&mut self, sample: &RateSample) {
        (self.round_starts, self.loss_round_starts, self.sample) = (false, false, None);
        let Some(measured) = sample.measured else { return };
        let Some((bytes, interval)) = measured.rate else { return };
        if measured.prior_delivered >= self.round_ends {
            self.round_ends = sample.delivered;
            self.round_starts = true;
        }
        let rate = per_second(bytes, interval);
        self.sample = Some((rate, bytes));
        self.latest = (self.latest.0.max(rate), self.latest.1.max(bytes));
        if measured.prior_delivered >= self.loss_round_ends {
            self.loss_round_ends = sample.delivered;
            self.loss_round_starts = true;
        }
    }

    /// Takes the sample of a rate. Whether there was one.
    pub fn take_bandwidth(&mut self, sample: &RateSample) -> bool {
        let Some((rate, _)) = self.sample else { return false };
        let app_limited = sample.measured.is_some_and(|measured| measured.app_limited);
        if !app_limited || rate >= self.max_bandwidth() {
            self.largest[1] = self.largest[1].max(rate);
        }
        true
    }

    /// A round of losses is over. Whether there were any.
    pub fn end_loss_round(&mut self) -> bool {
        core::mem::take(&mut self.loss_in_round)
    }

    /// All of an ACK has been taken: what the next round delivers is looked at anew.
    pub fn end_ack(&mut self) {
        if let Some(sample) = self.sample.filter(|_| self.loss_round_starts) {
            self.latest = sample;
        }
    }

    /// What the last rounds have shown was a probe's.
    pub fn forget_latest(&mut self) {
        (self.loss_in_round, self.latest) = (false, (0, 0));
    }

    pub fn forget_loss(&mut self) {
        self.loss_in_round = false;
    }

    /// The largest rate of the cycle before last is forgotten.
    pub fn next_cycle(&mut self) {
        if self.largest[1] > 0 {
            self.largest = [self.largest[1], 0];
        }
    }

    /// Three rounds without much growth.
    pub fn check_pipe(&mut self, sample: &RateSample) {
        let app_limited = sample.measured.is_some_and(|measured| measured.app_limited);
        if self.full_now || app_limited {
            return;
        }
        let rate = self.sample.map_or(0, |(rate, _)| rate);
        let (grown, of) = FULL_GROWTH;
        if u128::from(rate) * u128::from(of) >= u128::from(self.full_bandwidth) * u128::from(grown) {
            self.forget_growth();
            self.full_bandwidth = rate;
            return;
        }
        if self.round_starts {
            self.full_rounds += 1;
            self.full_now = self.full_rounds >= FULL_ROUNDS;
            self.full |= self.full_now;
        }
    }

    /// Growth is looked for anew ...
    pub fn forget_growth(&mut self) {
        (self.full_bandwidth, self.full_rounds, self.full_now) = (0, 0, false);
    }

    /// ... from the rate that this ACK measures.
    pub fn restart_growth(&mut self) {
        self.forget_growth();
        self.full_bandwidth = self.sample.map_or(0, |(rate, _)| rate);
    }

    /// Takes the RTT. Whether it is time to look for the smallest.
    pub fn update_min_rtt(&mut self, now: Instant, rtt: Option<Duration>) -> bool {
        let expired = self.probed_rtt.is_some() && now > self.probed_rtt_at + PROBE_RTT_EVERY;
        if let Some(rtt) = rtt
            && (expired || self.probed_rtt.is_none_or(|least| rtt < least))
        {
            (self.probed_rtt, self.probed_rtt_at) = (Some(rtt), now);
        }
        let old = now > self.min_rtt_at + MIN_RTT_TIME;
        if let Some(probed) = self.probed_rtt
            && (old || self.min_rtt.is_none_or(|least| probed <= least))
        {
            (self.min_rtt, self.min_rtt_at) = (Some(probed), self.probed_rtt_at);
        }
        expired
    }

    /// ProbeRTT is over: the next one is due from now on.
    pub fn round_trip_was_probed(&mut self, now: Instant) {
        self.probed_rtt_at = now;
    }
}
