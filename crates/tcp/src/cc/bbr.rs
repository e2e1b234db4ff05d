//! BBR, version 1, as Linux has it: `cwnd` and pace from a model of the path, not from losses.
//!
//! The model is the largest rate of delivery of the last ten round trips and the smallest RTT of the last ten seconds
//! (Cardwell et al. 2016, "BBR: Congestion-Based Congestion Control"; draft-cardwell-iccrg-bbr-congestion-control-00). The
//! constants and the order of steps at an ACK are those of Linux's `tcp_bbr.c`. Linux counts packets, this counts bytes; a
//! bandwidth-delay product is whole segments and a rate whole units of 2⁻²⁴ segments per microsecond, as there.

pub(super) mod aggregation;
mod model;
mod policer;
pub(super) mod probe_rtt;
#[cfg(test)]
pub(super) mod rounds;
pub(super) mod steering;
#[cfg(test)]
mod tests;

use super::{
    AckEvent, CongestionControl, Controller, LongRun, LossEvent, Named, Pace, RateSample, Repair, Window,
};
use crate::config::CongestionConfig;
use aggregation::Aggregation;
use farpath_units::{Duration, Instant};
pub use model::MIN_RTT_TIME;
use model::Model;
use policer::Policer;
use probe_rtt::ProbeRtt;
use steering::{
    DRAIN_GAIN, INITIAL_WINDOW, LEAST_WINDOW, Steering, UNIT, Units, in_network_at_departure, mixed,
};

/// `2 / ln 2`: the least gain with which the rate can double in each round trip.
const HIGH_GAIN: u64 = UNIT * 2885 / 1000 + 1;
/// Of the bandwidth-delay product in ProbeBW: room for ACKs that are delayed and stretched.
const CWND_GAIN: u64 = 2 * UNIT;
/// One probe for more, one round trip to drain what it queued, six to cruise.
const CYCLE: [u64; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// The cycle begins at a random phase, but never with the one that drains.
const RANDOM_PHASES: u64 = 7;
/// Below this rate a burst is one segment, bytes per second (1.2 Mbit/s).
const SLOW: u64 = 1_200_000 / 8;
/// The longest burst that the window has room for thrice: segments, and bytes (`GSO_MAX_SIZE`).
const LONGEST_BURST: (u64, u64) = (0x7f, 65_535 - 320);

/// The largest bunch of ACKs of five to ten round trips counts.
const BUNCH_ROUNDS: u32 = 5;

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// The rate doubles in each round trip, until the pipe is full.
    Startup,
    /// The queue that startup built is drained.
    Drain,
    /// The rate is probed in cycles.
    ProbeBw,
    /// The window is four segments, so that the round trip without queue is seen.
    ProbeRtt(ProbeRtt),
}

/// BBR's state. Rates are bytes per second.
#[derive(Debug, Clone)]
pub struct Bbr {
    steering: Steering,
    /// Of the host's clock: what ProbeRTT waits for is counted in ticks (Linux's jiffies).
    tick: Duration,
    mode: Mode,
    model: Model,
    aggregation: Aggregation,
    policer: Policer,
    /// `bbr->cycle_idx`, and since when.
    phase: usize,
    phase_began: Instant,
    pacing_gain: u64,
    cwnd_gain: u64,
    /// `cwnd` to come back to when recovery or ProbeRTT is over.
    prior_cwnd: u64,
    repair: Repair,
    /// The first round of recovery: what leaves is what arrives.
    conserves: bool,
    idle_restart: bool,
    seed: u64,
}

impl Bbr {
    /// For segments of `smss` bytes.
    pub fn new(config: &CongestionConfig, smss: u64) -> Bbr {
        Bbr {
            steering: Steering::new(config, smss, HIGH_GAIN, Units::Linux),
            tick: Duration::ZERO,
            mode: Mode::Startup,
            model: Model::default(),
            aggregation: Aggregation::default(),
            policer: Policer::default(),
            phase: 0,
            phase_began: Instant::ZERO,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            prior_cwnd: 0,
            repair: Repair::None,
            conserves: false,
            idle_restart: false,
            seed: 0,
        }
    }

    /// The rate that the model has: of the policer, where one was found.
    fn bandwidth(&self) -> u64 {
        self.policer.in_use().unwrap_or(self.model.max_bandwidth())
    }

    // ---- Pace ----

    fn set_pace(&mut self, window: &Window, srtt: Option<Duration>, bandwidth: u64, gain: u64) {
        self.steering.set_pace(window, srtt, bandwidth, gain, self.model.pipe_is_full());
    }

    fn least_burst(&self) -> u64 {
        if self.steering.pacing_rate < SLOW { 1 } else { 2 }
    }

    /// What leaves together (`bbr_tso_segs_goal()`), segments.
    fn burst(&self) -> u64 {
        let millisecond = (self.steering.pacing_rate >> 10).min(LONGEST_BURST.1);
        (millisecond / self.steering.smss).max(self.least_burst()).min(LONGEST_BURST.0)
    }

    // ---- Windows ----

    fn product(&self, bandwidth: u64, gain: u64) -> u64 {
        self.steering.product(bandwidth, self.model.min_rtt(), gain)
    }

    /// Room for what the sender, the receiver and the device gather, and for an even number of segments, so that a
    /// delayed ACK does not wait.
    fn quantized(&self, window: u64) -> u64 {
        let segments = window.div_ceil(self.steering.smss) + 3 * self.burst();
        let probes = self.mode == Mode::ProbeBw && self.phase == 0;
        (segments.next_multiple_of(2) + if probes { 2 } else { 0 }) * self.steering.smss
    }

    fn inflight(&self, bandwidth: u64, gain: u64) -> u64 {
        self.quantized(self.product(bandwidth, gain))
    }

    fn in_network_at_departure(&self, sample: &RateSample, in_network: u64) -> u64 {
        let burst = if self.pacing_gain > UNIT { self.burst() * self.steering.smss } else { 0 };
        in_network_at_departure(sample, self.bandwidth(), in_network, burst)
    }

    fn save_cwnd(&mut self, window: &Window) {
        let normal = self.repair < Repair::Fast && !matches!(self.mode, Mode::ProbeRtt { .. });
        self.prior_cwnd = if normal { window.cwnd } else { self.prior_cwnd.max(window.cwnd) };
    }

    /// Into and out of recovery: a round of packet conservation, and the window of before when it is over. Whether the
    /// window is conserved.
    fn follow_repair(&mut self, window: &mut Window, sample: &RateSample) -> bool {
        let mut cwnd = window.cwnd;
        if sample.lost > 0 {
            cwnd = cwnd.saturating_sub(sample.lost).max(self.steering.smss);
        }
        let conserved = sample.pipe + sample.acked;
        let before = core::mem::replace(&mut self.repair, sample.repair);
        if sample.repair == Repair::Fast && before != Repair::Fast {
            self.conserves = true;
            self.model.begin_round(sample.delivered);
            cwnd = conserved;
        } else if before >= Repair::Fast && sample.repair == Repair::None {
            cwnd = cwnd.max(self.prior_cwnd);
            self.conserves = false;
        }
        window.cwnd = if self.conserves { cwnd.max(conserved) } else { cwnd };
        self.conserves
    }

    fn set_cwnd(&mut self, window: &mut Window, sample: &RateSample, bandwidth: u64) {
        if sample.acked > 0 && !self.follow_repair(window, sample) {
            let extra = if self.model.pipe_is_full() { self.aggregation.extra_window(bandwidth) } else { 0 };
            let target = self.quantized(self.product(bandwidth, self.cwnd_gain) + extra);
            let grown = window.cwnd.saturating_add(sample.acked);
            if self.model.pipe_is_full() {
                window.cwnd = grown.min(target);
            } else if window.cwnd < target || sample.delivered < INITIAL_WINDOW * self.steering.smss {
                window.cwnd = grown;
            }
            window.cwnd = window.cwnd.max(LEAST_WINDOW * self.steering.smss);
        }
        window.cwnd = window.cwnd.min(self.steering.clamp);
        if matches!(self.mode, Mode::ProbeRtt { .. }) {
            window.cwnd = window.cwnd.min(LEAST_WINDOW * self.steering.smss);
        }
    }

    // ---- Modes ----

    fn probe_bandwidth(&mut self, delivered: u64, delivered_at: Instant) {
        self.mode = Mode::ProbeBw;
        let random = mixed(self.seed ^ delivered_at.as_nanos() ^ delivered) % RANDOM_PHASES;
        self.phase = CYCLE.len() - 1 - random as usize;
        self.next_phase(delivered_at);
    }

    fn next_phase(&mut self, now: Instant) {
        self.phase = (self.phase + 1) % CYCLE.len();
        self.phase_began = now;
    }

    fn update_phase(&mut self, sample: &RateSample) {
        if self.mode == Mode::ProbeBw && self.phase_is_over(sample) {
            self.next_phase(sample.delivered_at);
        }
    }

    fn phase_is_over(&self, sample: &RateSample) -> bool {
        let min_rtt = self.model.min_rtt().unwrap_or(Duration::MAX);
        let whole = sample.delivered_at.saturating_since(self.phase_began) > min_rtt;
        let in_network = self.in_network_at_departure(sample, sample.pipe_before);
        let bandwidth = self.model.max_bandwidth();
        match self.pacing_gain.cmp(&UNIT) {
            core::cmp::Ordering::Equal => whole,
            // Until the probe has filled what it is to fill, or met a loss.
            core::cmp::Ordering::Greater => {
                whole && (sample.lost > 0 || in_network >= self.inflight(bandwidth, self.pacing_gain))
            }
            // Until the queue is gone.
            core::cmp::Ordering::Less => whole || in_network <= self.inflight(bandwidth, UNIT),
        }
    }

    fn check_drain(&mut self, window: &mut Window, sample: &RateSample) {
        if self.mode == Mode::Startup && self.model.pipe_is_full() {
            self.mode = Mode::Drain;
            window.ssthresh = self.inflight(self.model.max_bandwidth(), UNIT);
        }
        if self.mode == Mode::Drain {
            let in_network = self.in_network_at_departure(sample, sample.pipe);
            if in_network <= self.inflight(self.model.max_bandwidth(), UNIT) {
                self.probe_bandwidth(sample.delivered, sample.delivered_at);
            }
        }
    }

    fn update_min_rtt(&mut self, window: &mut Window, sample: &RateSample) {
        let now = sample.now.last_multiple_of(self.tick);
        let expired = self.model.update_min_rtt(now, sample.rtt);
        let probing = matches!(self.mode, Mode::ProbeRtt { .. });
        if expired && !self.idle_restart && !probing {
            self.save_cwnd(window);
            self.mode = Mode::ProbeRtt(ProbeRtt::default());
        }
        let held = LEAST_WINDOW * self.steering.smss;
        if let Mode::ProbeRtt(probe) = &mut self.mode {
            if probe.begins(now, sample.pipe, held) {
                self.model.begin_round(sample.delivered);
            } else if probe.had_a_round(self.model.round_starts()) {
                self.check_probe_rtt_done(window, sample.now, sample.delivered);
            }
        }
        if sample.measured.is_some() {
            self.idle_restart = false;
        }
    }

    fn check_probe_rtt_done(&mut self, window: &mut Window, now: Instant, delivered: u64) {
        let Mode::ProbeRtt(ProbeRtt { until: Some(until), .. }) = self.mode else { return };
        let tick = now.last_multiple_of(self.tick);
        if tick <= until {
            return;
        }
        self.model.min_rtt_is_fresh(tick);
        window.cwnd = window.cwnd.max(self.prior_cwnd);
        if self.model.pipe_is_full() {
            self.probe_bandwidth(delivered, now);
        } else {
            self.mode = Mode::Startup;
        }
    }

    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw if self.policer.in_use().is_some() => (UNIT, CWND_GAIN),
            Mode::ProbeBw => (CYCLE[self.phase], CWND_GAIN),
            Mode::ProbeRtt { .. } => (UNIT, UNIT),
        };
    }
}

impl Named for Bbr {
    const LINUX_NAME: Option<&'static str> = Some("bbr");
    const OWNS_CWND: bool = true;
    // Up to a fifth, which probing by 1.25 makes up for. What is beyond, nothing here models.
    const LONG_RUN: LongRun = LongRun::ByModel { tolerates: 1.0 };

    fn controller(config: &CongestionConfig, smss: u64, _tick: Duration) -> Controller {
        // In a box: it is larger than the others by far.
        Controller::Bbr(Box::new(Bbr::new(config, smss)))
    }
}

impl CongestionControl for Bbr {
    fn on_ack(&mut self, _window: &mut Window, _ack: &AckEvent) {}

    fn ssthresh_after(&mut self, window: &Window, _loss: &LossEvent) -> u64 {
        self.save_cwnd(window);
        window.ssthresh
    }

    fn is_in_slow_start(&self, _window: &Window) -> bool {
        self.mode == Mode::Startup
    }

    /// `bbr_sndbuf_expand()`: a lost retransmission takes another round trip.
    fn send_buffer_windows(&self) -> u64 {
        3
    }

    fn owns_cwnd(&self) -> bool {
        Self::OWNS_CWND
    }

    fn draw_by(&mut self, seed: u64) {
        self.seed = mixed(seed);
    }

    fn counts_segments(&self) -> bool {
        true
    }

    fn on_established(&mut self, window: &Window, now: Instant, rtt: Option<Duration>, tick: Duration) {
        self.tick = tick;
        self.model.update_min_rtt(now.last_multiple_of(tick), rtt);
        self.aggregation.restart(now);
        self.steering.pace_by_window(window, rtt);
    }

    fn on_rate_sample(&mut self, window: &mut Window, sample: &RateSample) -> bool {
        if self.model.update_bandwidth(sample, &self.steering) {
            self.conserves &= !self.model.round_starts();
            if self.policer.update(
                sample,
                self.model.round_starts(),
                self.mode == Mode::ProbeBw,
                &self.steering,
            ) {
                self.probe_bandwidth(sample.delivered, sample.delivered_at);
            }
        }
        let round = self.model.round_starts();
        self.aggregation.update(sample, round, BUNCH_ROUNDS, self.bandwidth(), window.cwnd);
        self.update_phase(sample);
        self.model.check_pipe(sample);
        self.check_drain(window, sample);
        let probed = matches!(self.mode, Mode::ProbeRtt { .. });
        self.update_min_rtt(window, sample);
        let probes = matches!(self.mode, Mode::ProbeRtt { .. });
        self.update_gains();
        let bandwidth = self.bandwidth();
        self.set_pace(window, sample.srtt, bandwidth, self.pacing_gain);
        self.set_cwnd(window, sample, bandwidth);
        probed || probes
    }

    fn on_restart(&mut self, window: &mut Window, now: Instant, delivered: u64) {
        self.idle_restart = true;
        self.aggregation.restart(now);
        match self.mode {
            // The pipe is empty: a gain above one would only build a queue.
            Mode::ProbeBw => self.set_pace(window, None, self.bandwidth(), UNIT),
            Mode::ProbeRtt { .. } => self.check_probe_rtt_done(window, now, delivered),
            Mode::Startup | Mode::Drain => {}
        }
    }

    // DEVIATES Linux, bbr_set_state(): the interval of the policer's model does not end with a timeout.
    fn on_timeout(&mut self) {
        self.repair = Repair::Timeout;
        self.model.forget_growth(false);
        self.model.start_round();
    }

    fn on_undo(&mut self) {
        self.model.forget_growth(true);
        self.policer.reset();
    }

    fn pace(&self) -> Option<Pace> {
        self.steering.pace(self.least_burst())
    }
}
