//! ProbeBW: down, cruise, refill, up; a cycle takes two to three seconds, or as many rounds as Reno would take to grow back.

use super::bounds::{LOSS_THRESHOLD, too_high};
use super::{Bbr3, KEPT, Mode, UNIT};
use crate::cc::bbr::steering::mixed;
use crate::cc::{RateSample, Window};
use farpath_units::{Duration, Instant};

/// Rounds between probes at the most: with Reno's share of a product of 62 segments, 25 Mbit/s over 30 ms.
const MOST_ROUNDS: u64 = 63;
/// One of them more or less, by chance.
const RANDOM_ROUNDS: u64 = 2;
/// Time between probes: from this on ...
const LEAST_WAIT: Duration = Duration::from_secs(2);
/// ... by so much more, by chance.
const RANDOM_WAIT: Duration = Duration::from_secs(1);
/// What is probed doubles with each round, so often at most.
const MOST_DOUBLINGS: u32 = 30;

/// Where a cycle is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Less than the rate, until what was probed has left the queue, and room is left for others.
    Down,
    /// At the rate.
    Cruise,
    /// A round at the rate without bounds, so that a probe meets a full pipe.
    Refill,
    /// More than the rate, until it does not grow, or too much is lost.
    Up,
}

impl Phase {
    pub fn pacing_gain(self) -> u64 {
        match self {
            Phase::Up => UNIT * 5 / 4,
            Phase::Down => UNIT * 91 / 100,
            Phase::Cruise | Phase::Refill => UNIT,
        }
    }
}

/// What the ACKs that come are about (`bbr_ack_phase`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Feedback {
    #[default]
    None,
    Refilling,
    ProbeStarting,
    Probe,
    ProbeStopping,
}

/// The state of a cycle.
#[derive(Debug, Clone, Default)]
pub(super) struct Cycle {
    began: Instant,
    wait: Duration,
    rounds: u64,
    feedback: Feedback,
    /// What is measured is of a probe: losses bound what may be in flight, once.
    samples_probe: bool,
    /// The last probe met too many losses.
    too_high: bool,
    /// The last probe stopped where one before it had been too high.
    stopped_early: bool,
    /// Rounds of this probe, and what was acknowledged since the bound last grew by a segment.
    doublings: u32,
    acked: u64,
    acked_for_growth: u64,
}

impl Cycle {
    pub fn count_round(&mut self, starts: bool) {
        self.rounds = self.rounds.saturating_add(u64::from(starts));
    }

    pub fn stop_probing(&mut self) {
        self.feedback = Feedback::ProbeStopping;
    }

    /// What is probed beyond the bound doubles in each round.
    fn raise_slope(&mut self, window: &Window, smss: u64) {
        self.acked_for_growth = (window.cwnd >> self.doublings).max(smss);
        self.doublings = (self.doublings + 1).min(MOST_DOUBLINGS);
    }
}

impl Bbr3 {
    pub(super) fn probe_down(&mut self, now: Instant, delivered: u64) {
        self.model.forget_latest();
        let random = mixed(self.seed ^ now.as_nanos() ^ delivered);
        let cycle = &mut self.cycle;
        cycle.rounds = random % RANDOM_ROUNDS;
        cycle.wait = LEAST_WAIT + Duration::from_nanos((random >> 8) % RANDOM_WAIT.as_nanos());
        cycle.began = now;
        cycle.stop_probing();
        self.model.begin_round(delivered);
        self.mode = Mode::ProbeBw(Phase::Down);
    }

    pub(super) fn cruise(&mut self) {
        if self.bounds.inflight_lo != u64::MAX {
            self.bounds.inflight_lo = self.bounds.inflight_lo.min(self.bounds.inflight_hi);
        }
        self.mode = Mode::ProbeBw(Phase::Cruise);
    }

    fn refill(&mut self, sample: &RateSample) {
        self.bounds.forget_lo();
        let cycle = &mut self.cycle;
        (cycle.doublings, cycle.acked, cycle.stopped_early) = (0, 0, false);
        cycle.feedback = Feedback::Refilling;
        self.model.begin_round(sample.delivered);
        self.mode = Mode::ProbeBw(Phase::Refill);
    }

    fn probe_up(&mut self, window: &Window, sample: &RateSample) {
        self.cycle.samples_probe = true;
        self.cycle.feedback = Feedback::ProbeStarting;
        self.cycle.began = sample.now;
        self.model.begin_round(sample.delivered);
        self.model.restart_growth();
        self.cycle.raise_slope(window, self.steering.smss);
        self.mode = Mode::ProbeBw(Phase::Up);
    }

    /// Too much is lost: what was in flight is the bound. `None` where the application was the limit, which probes nothing.
    fn stop_probe(&mut self, window: &Window, now: Instant, delivered: u64, in_flight: Option<u64>) {
        (self.cycle.too_high, self.cycle.samples_probe) = (true, false);
        if let Some(in_flight) = in_flight {
            self.bounds.inflight_hi = in_flight.max(self.target_inflight(window) * KEPT / UNIT);
        }
        if self.mode == Mode::ProbeBw(Phase::Up) {
            self.probe_down(now, delivered);
        }
    }

    /// Segments were declared lost: where the rate is probed, the first by which the loss got too high.
    pub(super) fn on_loss_while_probing(&mut self, window: &Window, sample: &RateSample) {
        let Some(excess) = sample.excess.filter(|_| self.cycle.samples_probe) else { return };
        // Of the segment itself, the part up to which the loss was not too high.
        let before = excess.in_flight.saturating_sub(excess.len);
        let budget = (before * LOSS_THRESHOLD).div_ceil(UNIT);
        let lost_before = excess.lost.saturating_sub(excess.len);
        let prefix = budget.saturating_sub(lost_before) * UNIT / (UNIT - LOSS_THRESHOLD);
        let in_flight = (!excess.app_limited).then_some(before + prefix);
        self.stop_probe(window, sample.now, sample.delivered, in_flight);
    }

    /// The upper bound, by the ACKs of a probe and after it. Whether it begins another one.
    fn adapt_upper_bound(&mut self, window: &Window, sample: &RateSample) -> bool {
        let app_limited = sample.measured.is_some_and(|measured| measured.app_limited);
        let round = self.model.round_starts();
        if self.cycle.feedback == Feedback::ProbeStarting && round {
            self.cycle.feedback = Feedback::Probe;
        }
        if self.cycle.feedback == Feedback::ProbeStopping && round {
            (self.cycle.samples_probe, self.cycle.feedback) = (false, Feedback::None);
            if matches!(self.mode, Mode::ProbeBw(_)) {
                if !app_limited {
                    self.model.next_cycle();
                }
                if self.cycle.stopped_early && !self.cycle.too_high {
                    // It met nothing: what was too much once is not any more.
                    self.refill(sample);
                    return true;
                }
            }
        }
        if too_high(sample) {
            if self.cycle.samples_probe {
                let in_flight = sample.measured.map(|measured| measured.in_flight).filter(|_| !app_limited);
                self.stop_probe(window, sample.now, sample.delivered, in_flight);
            }
            return false;
        }
        if self.bounds.inflight_hi == u64::MAX {
            return false;
        }
        if let Some(measured) = sample.measured {
            self.bounds.inflight_hi = self.bounds.inflight_hi.max(measured.in_flight);
        }
        if self.mode == Mode::ProbeBw(Phase::Up) {
            self.raise_upper_bound(window, sample);
        }
        false
    }

    fn raise_upper_bound(&mut self, window: &Window, sample: &RateSample) {
        if !sample.cwnd_limited || window.cwnd < self.bounds.inflight_hi {
            return;
        }
        let smss = self.steering.smss;
        let cycle = &mut self.cycle;
        cycle.acked += sample.acked;
        if cycle.acked >= cycle.acked_for_growth {
            let segments = cycle.acked / cycle.acked_for_growth;
            cycle.acked -= segments * cycle.acked_for_growth;
            self.bounds.inflight_hi += segments * smss;
        }
        if self.model.round_starts() {
            self.cycle.raise_slope(window, smss);
        }
    }

    fn is_time_to_probe(&self, window: &Window, now: Instant) -> bool {
        let reno = self.target_inflight(window) / self.steering.smss;
        now.saturating_since(self.cycle.began) > self.cycle.wait || self.cycle.rounds >= reno.min(MOST_ROUNDS)
    }

    pub(super) fn update_cycle(&mut self, window: &Window, sample: &RateSample) {
        if !self.model.pipe_is_full() || self.adapt_upper_bound(window, sample) {
            return;
        }
        let Mode::ProbeBw(phase) = self.mode else { return };
        let in_network = self.in_network_at_departure(sample, sample.pipe_before);
        match phase {
            Phase::Down | Phase::Cruise if self.is_time_to_probe(window, sample.now) => self.refill(sample),
            Phase::Cruise => {}
            Phase::Down => {
                let product = self.inflight(self.model.max_bandwidth(), UNIT);
                if in_network <= self.bounds.with_headroom(self.steering.smss).min(product) {
                    self.cruise();
                }
            }
            Phase::Refill if self.model.round_starts() => self.probe_up(window, sample),
            Phase::Refill => {}
            Phase::Up => self.check_probe_done(window, sample, in_network),
        }
    }

    fn check_probe_done(&mut self, window: &Window, sample: &RateSample, in_network: u64) {
        let at_bound = self.cycle.too_high && in_network >= self.bounds.inflight_hi;
        self.cycle.stopped_early |= at_bound;
        if !at_bound && sample.cwnd_limited && window.cwnd >= self.bounds.inflight_hi {
            // The bound keeps the rate from growing.
            self.model.restart_growth();
            return;
        }
        if at_bound || self.model.stopped_growing() {
            self.cycle.too_high = false;
            self.probe_down(sample.now, sample.delivered);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::bbr::rounds::{Rounds, SMSS, sample};

    /// In a probe with a bound of 50 segments, which grows by one for each ten that arrive.
    fn probing_at_the_bound() -> Rounds<Bbr3> {
        let mut rounds = Rounds::steady(1_000_000);
        rounds.until(Phase::Up, 1_000_000);
        rounds.bbr.bounds.inflight_hi = 50 * SMSS;
        (rounds.bbr.cycle.acked, rounds.bbr.cycle.acked_for_growth) = (0, 10 * SMSS);
        rounds
    }

    #[test]
    fn a_probe_raises_its_bound_by_a_segment_for_each_share_that_arrives() {
        let bound_after = |cwnd: u64, limited| {
            let mut rounds = probing_at_the_bound();
            rounds.window.cwnd = cwnd * SMSS;
            let window = rounds.window;
            let sample = RateSample { acked: 25 * SMSS, cwnd_limited: limited, ..sample() };
            // In the middle of a round.
            rounds.bbr.model.begin_ack(&RateSample { measured: None, ..sample });
            rounds.bbr.raise_upper_bound(&window, &sample);
            let once = rounds.bbr.bounds.inflight_hi / SMSS;
            // Five segments were left over: five more make the next one.
            rounds.bbr.raise_upper_bound(&window, &RateSample { acked: 5 * SMSS, ..sample });
            (once, rounds.bbr.bounds.inflight_hi / SMSS)
        };
        assert_eq!(bound_after(60, true), (52, 53));
        // Only where the window is what limits, and has come to the bound.
        assert_eq!(bound_after(50, true), (52, 52), "the window is below the new bound");
        assert_eq!(bound_after(49, true), (50, 50));
        assert_eq!(bound_after(60, false), (50, 50));
    }

    #[test]
    fn a_probe_whose_bound_was_too_high_ends_there_whatever_the_window() {
        let mut rounds = probing_at_the_bound();
        rounds.bbr.cycle.too_high = true;
        let window = Window { cwnd: 60 * SMSS, ..rounds.window };
        let sample = RateSample { cwnd_limited: true, ..sample() };
        let ends = [49, 50].map(|in_network| {
            rounds.bbr.check_probe_done(&window, &sample, in_network * SMSS);
            matches!(rounds.bbr.mode, Mode::ProbeBw(Phase::Down))
        });
        assert_eq!(ends, [false, true]);
    }

    #[test]
    fn a_cycle_takes_as_many_rounds_as_reno_would_to_grow_back() {
        // A product of 20 segments, and 63 rounds at the most.
        for (segments, rounds_of_cycle) in [(20, 20), (200, 63)] {
            let mut rounds = Rounds::steady(segments * 10_000);
            rounds.until(Phase::Cruise, segments * 10_000);
            let window = Window { cwnd: segments * SMSS, ..rounds.window };
            let began = rounds.bbr.cycle.began;
            rounds.bbr.cycle.rounds = rounds_of_cycle - 1;
            assert!(!rounds.bbr.is_time_to_probe(&window, began), "{segments}");
            rounds.bbr.cycle.rounds = rounds_of_cycle;
            assert!(rounds.bbr.is_time_to_probe(&window, began), "{segments}");
            // Or by the clock.
            rounds.bbr.cycle.rounds = 0;
            let wait = rounds.bbr.cycle.wait;
            assert!((Duration::from_secs(2)..Duration::from_secs(3)).contains(&wait), "{wait}");
            assert!(!rounds.bbr.is_time_to_probe(&window, began + wait));
            assert!(rounds.bbr.is_time_to_probe(&window, began + wait + Duration::from_nanos(1)));
        }
    }
}
