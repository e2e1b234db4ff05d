//! BBR, version 3: version 1's model of the path, bounded by what losses say of it.
//!
//! Constants and the order of steps at an ACK are those of the v3 branch of Linux (`google/bbr`, `tcp_bbr.c`), which
//! draft-ietf-ccwg-bbr describes. Linux counts packets, this counts bytes. Left out: the answer to marks of ECN, which v3 has
//! for paths that mark early and that the route names only; the reaction to a loss that a tail loss probe repaired (BBR's TLP recovery
//! event); protective load balancing; the fast path, which saves work only.

mod bounds;
mod cycle;
mod model;
#[cfg(test)]
mod tests;

use super::bbr::aggregation::Aggregation;
use super::bbr::probe_rtt::ProbeRtt;
use super::bbr::steering::{
    DRAIN_GAIN, INITIAL_WINDOW, LEAST_WINDOW, Steering, UNIT, Units, in_network_at_departure, mixed,
};
use super::rate::short_path_bonus;
use super::{
    AckEvent, CongestionControl, Controller, LongRun, LossEvent, Named, Pace, RateSample, Repair, Window,
};
use crate::config::CongestionConfig;
use bounds::Bounds;
use cycle::{Cycle, Phase};
use farpath_units::{Duration, Instant};
use model::Model;

/// `4 ln 2`: with it the rate doubles in each round trip, as in slow start.
const STARTUP_GAIN: u64 = UNIT * 277 / 100 + 1;
/// Of the bandwidth-delay product: room for ACKs that are delayed and stretched.
const CWND_GAIN: u64 = 2 * UNIT;
/// So much more while the rate is probed.
const PROBE_CWND_GAIN: u64 = UNIT / 4;
/// The window of ProbeRTT.
const PROBE_RTT_GAIN: u64 = UNIT / 2;
/// What is left of a bound after a loss.
const KEPT: u64 = UNIT - UNIT * 30 / 100;
/// Startup ends by losses where so many ACKs of a round told of some.
const STARTUP_LOSSES: u32 = 6;
/// Segments that leave together at least.
const LEAST_BURST: u64 = 2;
/// The longest burst that the window has room for thrice (`GSO_LEGACY_MAX_SIZE`), bytes.
const LONGEST_BURST: u64 = 65_535 - 320;
/// Rounds after which the largest bunch of ACKs is forgotten, in startup and later.
const BUNCH_ROUNDS: (u32, u32) = (1, 5);

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// The rate doubles in each round trip, until the pipe is full or too much is lost.
    Startup,
    /// The queue that startup built is drained.
    Drain,
    /// The rate is probed in cycles of some seconds.
    ProbeBw(Phase),
    /// The window is half a product, so that the round trip without queue is seen.
    ProbeRtt(ProbeRtt),
}

/// BBR's state. Rates are bytes per second.
#[derive(Debug, Clone)]
pub struct Bbr3 {
    steering: Steering,
    mode: Mode,
    model: Model,
    bounds: Bounds,
    cycle: Cycle,
    seed: u64,
    aggregation: Aggregation,
    pacing_gain: u64,
    cwnd_gain: u64,
    /// `cwnd` to come back to when the repair of a timeout or ProbeRTT is over.
    prior_cwnd: u64,
    repair: Repair,
    idle_restart: bool,
    /// ACKs of this round that told of losses, in startup.
    losses_in_round: u32,
}

impl Bbr3 {
    /// For segments of `smss` bytes.
    pub fn new(config: &CongestionConfig, smss: u64) -> Bbr3 {
        Bbr3 {
            steering: Steering::new(config, smss, STARTUP_GAIN, Units::Bytes),
            mode: Mode::Startup,
            model: Model::default(),
            bounds: Bounds::default(),
            cycle: Cycle::default(),
            seed: 0,
            aggregation: Aggregation::default(),
            pacing_gain: STARTUP_GAIN,
            cwnd_gain: CWND_GAIN,
            prior_cwnd: 0,
            repair: Repair::None,
            idle_restart: false,
            losses_in_round: 0,
        }
    }

    /// The rate that the model has, as far as losses since the last probe allow.
    fn bandwidth(&self) -> u64 {
        self.model.max_bandwidth().min(self.bounds.bandwidth_lo)
    }

    fn probes_bandwidth(&self) -> bool {
        matches!(self.mode, Mode::Startup | Mode::ProbeBw(Phase::Refill | Phase::Up))
    }

    // ---- Windows ----

    /// What leaves together (`bbr_tso_segs_goal()`), bytes.
    fn burst(&self) -> u64 {
        let smss = self.steering.smss;
        let bonus = self.model.min_rtt().map_or(0, short_path_bonus);
        let bytes = ((self.steering.pacing_rate >> 10) + bonus).min(LONGEST_BURST);
        (bytes / smss).max(LEAST_BURST) * smss
    }

    /// At least three bursts, so that neither end waits for the other's.
    fn quantized(&self, window: u64) -> u64 {
        let smss = self.steering.smss;
        let room = window.max(3 * self.burst());
        if self.mode == Mode::ProbeBw(Phase::Up) { room + 2 * smss } else { room }
    }

    fn inflight(&self, bandwidth: u64, gain: u64) -> u64 {
        self.quantized(self.steering.product(bandwidth, self.model.min_rtt(), gain))
    }

    /// What is wanted in flight: a product, unless losses have cut the window.
    fn target_inflight(&self, window: &Window) -> u64 {
        self.inflight(self.bandwidth(), UNIT).min(window.cwnd)
    }

    fn in_network_at_departure(&self, sample: &RateSample, in_network: u64) -> u64 {
        let burst = if self.pacing_gain > UNIT { self.burst() } else { 0 };
        in_network_at_departure(sample, self.bandwidth(), in_network, burst)
    }

    fn probe_rtt_window(&self) -> u64 {
        let product = self.steering.product(self.bandwidth(), self.model.min_rtt(), PROBE_RTT_GAIN);
        product.max(LEAST_WINDOW * self.steering.smss)
    }

    fn save_cwnd(&mut self, window: &Window) {
        let normal = self.repair < Repair::Fast && !matches!(self.mode, Mode::ProbeRtt { .. });
        self.prior_cwnd = if normal { window.cwnd } else { self.prior_cwnd.max(window.cwnd) };
    }

    fn set_cwnd(&mut self, window: &mut Window, sample: &RateSample, bandwidth: u64) {
        let smss = self.steering.smss;
        if sample.acked > 0 {
            let extra = self.aggregation.extra_window(bandwidth);
            let product = self.steering.product(bandwidth, self.model.min_rtt(), self.cwnd_gain);
            let target = self.quantized(product + extra);
            let grown = window.cwnd.saturating_add(sample.acked);
            if self.model.pipe_is_full() {
                window.cwnd = grown.min(target);
            } else if window.cwnd < target || window.cwnd < 2 * INITIAL_WINDOW * smss {
                window.cwnd = grown;
            }
            window.cwnd = window.cwnd.max(LEAST_WINDOW * smss);
        }
        window.cwnd = window.cwnd.min(self.steering.clamp);
        if matches!(self.mode, Mode::ProbeRtt { .. }) {
            window.cwnd = window.cwnd.min(self.probe_rtt_window());
        }
        let bound = match self.mode {
            Mode::ProbeRtt { .. } | Mode::ProbeBw(Phase::Cruise) => self.bounds.with_headroom(smss),
            Mode::ProbeBw(_) => self.bounds.inflight_hi,
            Mode::Startup | Mode::Drain => u64::MAX,
        };
        window.cwnd = window.cwnd.min(bound.min(self.bounds.inflight_lo).max(LEAST_WINDOW * smss));
    }

    // ---- Modes ----

    fn check_losses_in_startup(&mut self, sample: &RateSample, found_loss: bool) {
        if self.model.pipe_is_full() {
            return;
        }
        self.losses_in_round += u32::from(found_loss);
        if !self.model.loss_round_starts() {
            return;
        }
        let many = core::mem::take(&mut self.losses_in_round) >= STARTUP_LOSSES;
        if many && sample.repair == Repair::Fast && bounds::too_high(sample) {
            self.model.fill_pipe();
            let product = self.inflight(self.model.max_bandwidth(), UNIT);
            self.bounds.inflight_hi = product.max(self.model.latest_inflight());
        }
    }

    fn check_drain(&mut self, window: &mut Window, sample: &RateSample) {
        if self.mode == Mode::Startup && self.model.pipe_is_full() {
            self.mode = Mode::Drain;
            window.ssthresh = self.inflight(self.model.max_bandwidth(), UNIT);
            self.model.forget_latest();
        }
        if self.mode == Mode::Drain {
            let in_network = self.in_network_at_departure(sample, sample.pipe);
            if in_network <= self.inflight(self.model.max_bandwidth(), UNIT) {
                self.probe_down(sample.now, sample.delivered);
            }
        }
    }

    fn update_min_rtt(&mut self, window: &mut Window, sample: &RateSample) {
        let expired = self.model.update_min_rtt(sample.now, sample.rtt);
        let probing = matches!(self.mode, Mode::ProbeRtt { .. });
        if expired && !self.idle_restart && !probing {
            self.save_cwnd(window);
            self.mode = Mode::ProbeRtt(ProbeRtt::default());
            self.cycle.stop_probing();
            self.model.begin_round(sample.delivered);
        }
        let held = self.probe_rtt_window();
        if let Mode::ProbeRtt(probe) = &mut self.mode {
            if probe.begins(sample.now, sample.pipe, held) {
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
        if now <= until {
            return;
        }
        self.model.round_trip_was_probed(now);
        window.cwnd = window.cwnd.max(self.prior_cwnd);
        self.bounds.forget_lo();
        if self.model.pipe_is_full() {
            // Less is in flight than the path holds: there is nothing to drain.
            self.probe_down(now, delivered);
            self.cruise();
        } else {
            self.mode = Mode::Startup;
        }
    }

    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (STARTUP_GAIN, CWND_GAIN),
            Mode::Drain => (DRAIN_GAIN, CWND_GAIN),
            Mode::ProbeBw(Phase::Up) => (Phase::Up.pacing_gain(), CWND_GAIN + PROBE_CWND_GAIN),
            Mode::ProbeBw(phase) => (phase.pacing_gain(), CWND_GAIN),
            Mode::ProbeRtt { .. } => (UNIT, UNIT),
        };
    }

    fn update_model(&mut self, window: &mut Window, sample: &RateSample, found_loss: bool) {
        if self.model.take_bandwidth(sample)
            && self.model.loss_round_starts()
            && self.model.end_loss_round()
            && !self.probes_bandwidth()
        {
            self.bounds.lower(&self.model, window);
        }
        let rounds = if self.model.pipe_is_full() { BUNCH_ROUNDS.1 } else { BUNCH_ROUNDS.0 };
        self.aggregation.update(sample, self.model.round_starts(), rounds, self.bandwidth(), window.cwnd);
        self.check_losses_in_startup(sample, found_loss);
        self.model.check_pipe(sample);
        self.check_drain(window, sample);
        self.update_cycle(window, sample);
        self.update_min_rtt(window, sample);
    }
}

impl Named for Bbr3 {
    // Google's own tree has it, under the name of version 1.
    const LINUX_NAME: Option<&'static str> = None;
    const OWNS_CWND: bool = true;
    const LONG_RUN: LongRun = LongRun::ByModel { tolerates: 0.02 };

    fn controller(config: &CongestionConfig, smss: u64, _tick: Duration) -> Controller {
        Controller::Bbr3(Box::new(Bbr3::new(config, smss)))
    }
}

impl CongestionControl for Bbr3 {
    fn on_ack(&mut self, _window: &mut Window, _ack: &AckEvent) {}

    fn ssthresh_after(&mut self, window: &Window, _loss: &LossEvent) -> u64 {
        self.save_cwnd(window);
        self.bounds.save();
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

    fn on_established(&mut self, window: &Window, now: Instant, rtt: Option<Duration>, _tick: Duration) {
        self.model.update_min_rtt(now, rtt);
        self.aggregation.restart(now);
        self.steering.pace_by_window(window, rtt);
    }

    fn on_rate_sample(&mut self, window: &mut Window, sample: &RateSample) -> bool {
        if self.repair == Repair::Timeout && sample.repair != Repair::Timeout {
            window.cwnd = window.cwnd.max(self.prior_cwnd);
        }
        let found_loss = self.model.note_losses(sample);
        if found_loss {
            self.on_loss_while_probing(window, sample);
        }
        self.repair = sample.repair;
        self.model.begin_ack(sample);
        self.cycle.count_round(self.model.round_starts());
        let probed = matches!(self.mode, Mode::ProbeRtt { .. });
        self.update_model(window, sample, found_loss);
        let probes = matches!(self.mode, Mode::ProbeRtt { .. });
        self.update_gains();
        let bandwidth = self.bandwidth();
        let full = self.model.pipe_is_full();
        self.steering.set_pace(window, sample.srtt, bandwidth, self.pacing_gain, full);
        self.set_cwnd(window, sample, bandwidth);
        self.model.end_ack();
        probed || probes
    }

    fn on_restart(&mut self, window: &mut Window, now: Instant, delivered: u64) {
        self.idle_restart = true;
        self.aggregation.restart(now);
        match self.mode {
            // The pipe is empty: a gain above one would only build a queue.
            Mode::ProbeBw(_) => {
                let (bandwidth, full) = (self.bandwidth(), self.model.pipe_is_full());
                self.steering.set_pace(window, None, bandwidth, UNIT, full);
            }
            Mode::ProbeRtt { .. } => self.check_probe_rtt_done(window, now, delivered),
            Mode::Startup | Mode::Drain => {}
        }
    }

    fn on_timeout(&mut self) {
        self.repair = Repair::Timeout;
        self.model.forget_growth();
        if !self.probes_bandwidth() {
            self.bounds.hold_inflight(self.prior_cwnd);
        }
    }

    fn on_undo(&mut self) {
        self.model.forget_growth();
        self.model.forget_loss();
        self.bounds.undo();
    }

    fn pace(&self) -> Option<Pace> {
        self.steering.pace(LEAST_BURST)
    }
}
