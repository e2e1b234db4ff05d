//! CUBIC (RFC 9438): the window is a cubic function of the time since the last loss, not of the RTT.
//!
//! Windows are whole bytes. The curve is in `f64`, but made anew from the time at every ACK: nothing is summed up
//! in it. What is summed up, the steps towards the curve and Reno's estimate, is in integers with their remainders.

use super::linux_hystart::LinuxHyStart;
use super::slow_start::{SlowStart, clamp};
use super::{AckEvent, CongestionControl, Controller, LinuxCubic, LongRun, LossEvent, Named, Window};
use crate::config::{CongestionConfig, CubicRules, HyStart, SsthreshFrom};
use farpath_units::{Duration, Instant};

#[cfg(test)]
mod tests;

/// C, in segments per second cubed (RFC 9438 §5).
const C: f64 = 0.4;
/// beta_cubic = 0.7 (RFC 9438 §4.6), as a fraction: what a loss leaves.
const BETA: (u64, u64) = (7, 10);
/// `(1 + beta_cubic) / 2`, as a fraction: what fast convergence leaves of `W_max` (RFC 9438 §4.7).
const FAST_CONVERGENCE: (u64, u64) = (17, 20);
/// alpha_cubic = `3 (1 - beta_cubic) / (1 + beta_cubic)` = 9/17 (RFC 9438 §4.3): Reno's average with CUBIC's beta.
const ALPHA: (u64, u64) = (9, 17);

/// CUBIC's window rules. Recovery is not part of it: NewReno and SACK share theirs with Reno.
#[derive(Debug, Clone)]
pub struct Cubic {
    slow_start: SlowStart,
    /// Present where it is in use.
    hystart: Option<LinuxHyStart>,
    ssthresh_from: SsthreshFrom,
    fast_convergence: bool,
    alpha_one: bool,
    clamp: u64,
    smss: u64,
    /// `W_max`. `None` where RFC 9438 §4.8 and §4.10 take the window with which the next stage begins: after a
    /// timeout, and after a slow start that no loss ended.
    w_max: Option<u64>,
    /// `cwnd_prior`: `cwnd` when `ssthresh` was last set, or with which the first stage began (RFC 9438 §4.10).
    /// Zero before.
    cwnd_prior: u64,
    /// The congestion avoidance stage, from its first ACK to the next loss or slow start.
    stage: Option<Stage>,
}

/// A congestion avoidance stage (RFC 9438 §4.1.2).
#[derive(Debug, Clone)]
struct Stage {
    /// `t_epoch`, moved on by the time for which the application was the limit.
    began: Instant,
    curve: Curve,
    /// `W_est`, and what it has earned beyond: a remainder of a division by `17 cwnd`.
    w_est: u64,
    est_credit: u128,
    /// What the steps towards the curve have earned and not yet given: a remainder of a division by `cwnd`.
    credit: u128,
    pause: Option<Pause>,
}

/// Time that is not part of `t`.
#[derive(Debug, Clone, Copy)]
struct Pause {
    since: Instant,
    /// Whether an ACK has said so; else only the network was empty, which the next segment sent ended.
    app_limited: bool,
}

/// `W_cubic(t) = C (t - K)^3 + W_max` (RFC 9438 §4.2, Figure 1), in bytes and seconds.
#[derive(Debug, Clone, Copy)]
struct Curve {
    w_max: u64,
    /// Seconds from the beginning of the stage to `W_max`.
    k: f64,
    /// C in bytes per second cubed.
    c: f64,
}

impl Curve {
    /// `K = cbrt((W_max - cwnd_epoch) / C)` (RFC 9438 §4.2, Figure 2). A stage that begins above `W_max` has none
    /// to come back to: it begins its convex region, as after a timeout.
    fn new(w_max: u64, cwnd_epoch: u64, smss: u64) -> Curve {
        let w_max = w_max.max(cwnd_epoch);
        let c = C * smss as f64;
        Curve { w_max, k: libm::cbrt((w_max - cwnd_epoch) as f64 / c), c }
    }

    fn window_at(&self, t: f64) -> f64 {
        let d = t - self.k;
        self.c * (d * d * d) + self.w_max as f64
    }
}

impl Stage {
    fn new(now: Instant, curve: Curve, cwnd_epoch: u64) -> Stage {
        Stage { began: now, curve, w_est: cwnd_epoch, est_credit: 0, credit: 0, pause: None }
    }

    /// The window did not grow with the ACK that came at `now`, or nothing is in flight after it.
    fn pause(&mut self, now: Instant, app_limited: bool) {
        let pause = self.pause.get_or_insert(Pause { since: now, app_limited });
        pause.app_limited |= app_limited;
    }

    /// RFC 9438 §4.2, §5.8: `t` does not include periods in which the application kept `cwnd` from growing. An
    /// empty network was silent until the segment was sent that `ack` measures.
    fn resume(&mut self, ack: &AckEvent) {
        let Some(pause) = self.pause.take() else { return };
        let rtt = ack.rtt.or(ack.srtt).unwrap_or(Duration::ZERO);
        let sent_again = if pause.app_limited { Duration::ZERO } else { rtt };
        self.began += ack.now.saturating_since(pause.since).saturating_sub(sent_again);
    }

    /// `W_est += alpha_cubic segments_acked / cwnd`, with alpha 1 once `cwnd_prior` is reached (RFC 9438 §4.3,
    /// Figure 4).
    fn grow_estimate(&mut self, cwnd: u64, acked: u64, smss: u64, alpha_is_one: bool) {
        let alpha = if alpha_is_one { ALPHA.1 } else { ALPHA.0 };
        self.est_credit += u128::from(alpha) * u128::from(acked) * u128::from(smss);
        let divisor = u128::from(ALPHA.1) * u128::from(cwnd);
        self.w_est = self.w_est.saturating_add((self.est_credit / divisor) as u64);
        self.est_credit %= divisor;
    }

    /// `(target - cwnd) / cwnd` for each segment acknowledged (RFC 9438 §4.4, §4.5).
    // DEVIATES RFC 9438 §4.4, §4.5: it says for each ACK, as if each acknowledged one segment. By bytes, as Linux
    // counts segments, delayed ACKs do not make the window lag behind the curve.
    fn step_towards(&mut self, target: u64, cwnd: u64, acked: u64) -> u64 {
        self.credit += u128::from(target - cwnd) * u128::from(acked);
        let step = self.credit / u128::from(cwnd);
        self.credit %= u128::from(cwnd);
        step as u64
    }
}

impl Cubic {
    /// For segments of `smss` bytes.
    pub fn new(config: &CongestionConfig, smss: u64) -> Cubic {
        Cubic {
            slow_start: SlowStart::new(config, smss),
            hystart: (config.hystart == HyStart::Linux).then(LinuxHyStart::default),
            ssthresh_from: config.ssthresh_from,
            fast_convergence: config.fast_convergence,
            alpha_one: config.cubic == CubicRules::Rfc9438,
            clamp: clamp(config, smss),
            smss,
            w_max: None,
            cwnd_prior: 0,
            stage: None,
        }
    }

    /// RFC 9438 §4.8, §4.10: a stage that no loss precedes, or a timeout, begins with K = 0 and `W_max = cwnd`.
    fn begin_stage(&mut self, now: Instant, cwnd: u64) -> Stage {
        if self.cwnd_prior == 0 {
            self.cwnd_prior = cwnd;
        }
        let curve = Curve::new(self.w_max.unwrap_or(cwnd), cwnd, self.smss);
        self.w_max = Some(curve.w_max);
        Stage::new(now, curve, cwnd)
    }

    /// Congestion avoidance (RFC 9438 §4.2 to §4.5).
    fn avoid_congestion(&mut self, window: &mut Window, ack: &AckEvent) {
        let cwnd = window.cwnd;
        let mut stage = match self.stage.take() {
            Some(stage) => stage,
            None => self.begin_stage(ack.now, cwnd),
        };
        stage.resume(ack);
        let t = ack.now.saturating_since(stage.began).as_secs_f64();
        // One ACK of more than a window, as after a repair, still is no more than one round trip's growth.
        let acked = ack.newly_acked.min(cwnd);
        let alpha_is_one = self.alpha_one && stage.w_est >= self.cwnd_prior;
        stage.grow_estimate(cwnd, acked, self.smss, alpha_is_one);
        let grown = if stage.curve.window_at(t) < stage.w_est as f64 {
            // DEVIATES RFC 9438 §4.3: cwnd SHOULD be set to W_est. Where it is above already, since it steps towards
            // the curve one RTT ahead, it stays there: no ACK takes window away.
            cwnd.max(stage.w_est)
        } else {
            let rtt = ack.srtt.unwrap_or(Duration::ZERO).as_secs_f64();
            // A float beyond a u64 becomes the largest one, below zero 0: the bounds of §4.2 hold it anyway.
            let ahead = stage.curve.window_at(t + rtt) as u64;
            let target = ahead.clamp(cwnd, cwnd.saturating_add(cwnd / 2));
            cwnd.saturating_add(stage.step_towards(target, cwnd, acked))
        };
        window.cwnd = grown.min(self.clamp);
        if ack.newly_acked >= ack.flight_size {
            stage.pause(ack.now, false);
        }
        self.stage = Some(stage);
    }
}

impl Named for Cubic {
    const LINUX_NAME: Option<&'static str> = Some("cubic");
    const LONG_RUN: LongRun = LongRun::Cubic;

    fn controller(config: &CongestionConfig, smss: u64, tick: Duration) -> Controller {
        match config.cubic {
            CubicRules::Rfc9438 | CubicRules::Rfc8312 => Controller::Cubic(Cubic::new(config, smss)),
            CubicRules::Linux => Controller::LinuxCubic(LinuxCubic::new(config, smss, tick)),
        }
    }
}

impl CongestionControl for Cubic {
    /// RFC 9438 §4.6, §5.8: a window that is not used does not grow, in slow start either, whatever
    /// `cwnd_validation` says; it would become `W_max`.
    fn on_ack(&mut self, window: &mut Window, ack: &AckEvent) {
        if let Some(hystart) = &mut self.hystart {
            hystart.on_ack(window, ack, self.stage.as_ref().map(|stage| stage.began), self.smss);
        }
        if !ack.cwnd_limited {
            if let Some(stage) = &mut self.stage {
                stage.pause(ack.now, true);
            }
        } else if window.cwnd < window.ssthresh {
            self.stage = None;
            self.slow_start.on_ack(window, ack);
        } else {
            self.avoid_congestion(window, ack);
        }
    }

    /// Multiplicative decrease (RFC 9438 §4.6), fast convergence (§4.7), timeouts (§4.8).
    // DEVIATES RFC 9438 §4.6: of `flight_size` no more counts than `cwnd`. What SACK has reported is in it until the
    // hole before it is filled: 0.7 of that, at a timeout within recovery, can be more than the window was.
    fn ssthresh_after(&mut self, window: &Window, loss: &LossEvent) -> u64 {
        self.slow_start.on_loss();
        self.stage = None;
        let cwnd = window.cwnd;
        self.cwnd_prior = cwnd;
        let yields = self.fast_convergence && self.w_max.is_some_and(|w_max| cwnd < w_max);
        self.w_max = match (loss.timeout, yields) {
            (true, _) => None,
            (false, true) => Some(times(cwnd, FAST_CONVERGENCE)),
            (false, false) => Some(cwnd),
        };
        let ssthresh = match self.ssthresh_from {
            SsthreshFrom::FlightSize => times(loss.flight_size.min(cwnd), BETA),
            SsthreshFrom::Cwnd => times(cwnd, BETA),
            SsthreshFrom::CwndSegments => times(cwnd, BETA) / self.smss * self.smss,
            SsthreshFrom::Pipe => times(loss.pipe.min(cwnd), BETA),
            SsthreshFrom::WindowSegments => times(cwnd.min(loss.rwnd), BETA) / self.smss * self.smss,
        };
        ssthresh.max(2 * self.smss)
    }

    fn on_timeout(&mut self) {
        if let Some(hystart) = &mut self.hystart {
            hystart.on_timeout();
        }
    }
}

/// `value` times a fraction below one, rounded down.
fn times(value: u64, (numerator, denominator): (u64, u64)) -> u64 {
    (u128::from(value) * u128::from(numerator) / u128::from(denominator)) as u64
}
