//! CUBIC as Linux has it (`tcp_cubic.c`): the same curve as RFC 9438, in whole segments, and anew once in a while.
//!
//! What makes a difference to RFC 9438: until the first loss, and after a timeout, the window grows by a twentieth a round trip at
//! least; the curve is looked at once a jiffy, and only every 32nd of a second while the window stands still; it is
//! aimed at for the shortest round trip ahead; Reno's estimate counts ACKs by 15/8 of the window.

use super::linux_hystart::LinuxHyStart;
use super::slow_start::{SlowStart, clamp};
use super::{AckEvent, CongestionControl, LossEvent, Window};
use crate::config::{CongestionConfig, HyStart};
use farpath_units::{Duration, Instant};

#[cfg(test)]
mod tests;

/// Times are counted in 1024ths of a second (`BICTCP_HZ`).
const TIME_SHIFT: u32 = 10;
/// Ten times `bic_scale`: C = 410 / 1024 segments per second cubed.
const C: u64 = 410;
/// `beta`, of 1024: what a loss leaves.
const BETA: u64 = 717;
const WHOLE: u64 = 1024;
/// `beta_scale`: Reno with this `beta` grows by a segment for each 15/8 of a window that is acknowledged.
const RENO_SCALE: u64 = 8 * (WHOLE + BETA) / 3 / (WHOLE - BETA);
/// Before the first loss the window grows by a segment for each so many that are acknowledged, at least.
const BEFORE_LOSS: u64 = 20;
/// The window never grows faster than by a segment for each so many.
const FASTEST: u64 = 2;
/// The curve never drops the window; where it is below it, this many windows make a segment.
const STANDSTILL: u64 = 100;

/// Linux's CUBIC. Windows are in segments here, times in jiffies.
#[derive(Debug, Clone)]
pub struct LinuxCubic {
    slow_start: SlowStart,
    /// It keeps the shortest round trip since the last timeout, whether it may end slow start or not.
    hystart: LinuxHyStart,
    ends_slow_start: bool,
    fast_convergence: bool,
    clamp: u64,
    smss: u64,
    /// A jiffy.
    tick: Duration,
    /// `last_max_cwnd`: zero until the first loss, and after a timeout.
    last_max: u64,
    /// `cnt`: the window grows by a segment for each so many acknowledged.
    per_segment: u64,
    /// `snd_cwnd_cnt`: what has been acknowledged towards the next segment.
    credit: u64,
    /// `last_cwnd`, `last_time`: what the curve was looked at with last, and when.
    seen: (u64, u64),
    epoch: Option<Epoch>,
    /// Where nothing is in flight: when the last segment left, by the round trip that its ACK told.
    idle_since: Option<Instant>,
}

/// From the first ACK of congestion avoidance to the next loss.
#[derive(Debug, Clone)]
struct Epoch {
    /// `epoch_start`, moved on by silence.
    start: u64,
    /// `bic_K`, in 1024ths of a second, and `bic_origin_point`.
    k: u64,
    origin: u64,
    /// `tcp_cwnd`, and `ack_cnt`.
    reno: u64,
    acked: u64,
}

impl Epoch {
    fn new(start: u64, last_max: u64, cwnd: u64) -> Epoch {
        let (k, origin) = if last_max <= cwnd {
            (0, cwnd)
        } else {
            let cube = (1_u128 << (10 + 3 * TIME_SHIFT)) / u128::from(C) * u128::from(last_max - cwnd);
            (cube_root(cube), last_max)
        };
        Epoch { start, k, origin, reno: cwnd, acked: 0 }
    }

    /// The curve at `t` 1024ths of a second.
    fn target(&self, t: u64) -> u64 {
        let offset = u128::from(t.abs_diff(self.k));
        let delta = (u128::from(C) * offset * offset * offset) >> (10 + 3 * TIME_SHIFT);
        let delta = u64::try_from(delta).unwrap_or(u64::MAX);
        if t < self.k { self.origin.saturating_sub(delta) } else { self.origin.saturating_add(delta) }
    }

    /// How many segments acknowledged make one more where Reno would have more by now.
    fn reno_per_segment(&mut self, cwnd: u64) -> Option<u64> {
        let each = (cwnd * RENO_SCALE) >> 3;
        if each > 0 && self.acked > each {
            // As `while (ack_cnt > delta)`: what is left is 1 to `each`.
            let grown = (self.acked - 1) / each;
            self.acked -= grown * each;
            self.reno += grown;
        }
        (self.reno > cwnd).then(|| cwnd / (self.reno - cwnd))
    }
}

// DEVIATES tcp_cubic.c: its `cubic_root()` is within 0.2 % of this one.
fn cube_root(value: u128) -> u64 {
    let mut root = libm::cbrt(value as f64) as u64;
    let cube = |root: u64| u128::from(root) * u128::from(root) * u128::from(root);
    while cube(root) > value {
        root -= 1;
    }
    while cube(root + 1) <= value {
        root += 1;
    }
    root
}

/// When a segment left whose ACK came at `now`, after `rtt`.
fn sent_at(now: Instant, rtt: Option<Duration>) -> Instant {
    Instant::ZERO + now.since_start().saturating_sub(rtt.unwrap_or(Duration::ZERO))
}

impl LinuxCubic {
    /// For segments of `smss` bytes, on a host whose jiffy is `tick`.
    pub fn new(config: &CongestionConfig, smss: u64, tick: Duration) -> LinuxCubic {
        LinuxCubic {
            slow_start: SlowStart::new(config, smss),
            hystart: LinuxHyStart::default(),
            ends_slow_start: config.hystart == HyStart::Linux,
            fast_convergence: config.fast_convergence,
            clamp: clamp(config, smss),
            smss,
            tick: if tick.is_zero() { Duration::from_millis(1) } else { tick },
            last_max: 0,
            per_segment: 0,
            credit: 0,
            seen: (0, 0),
            epoch: None,
            idle_since: None,
        }
    }

    fn jiffies(&self, now: Instant) -> u64 {
        now.as_nanos() / self.tick.as_nanos()
    }

    fn jiffies_per_second(&self) -> u64 {
        (1_000_000_000 / self.tick.as_nanos()).max(1)
    }

    /// Silence is no part of the curve (`CA_EVENT_TX_START`).
    fn skip_silence(&mut self, ack: &AckEvent) {
        let Some(since) = self.idle_since.take() else { return };
        let (from, to) = (self.jiffies(since), self.jiffies(sent_at(ack.now, ack.rtt)));
        let now = self.jiffies(ack.now);
        if let Some(epoch) = &mut self.epoch {
            epoch.start = (epoch.start + to.saturating_sub(from)).min(now);
        }
    }

    /// `bictcp_update()`.
    fn look_at_curve(&mut self, now: Instant, cwnd: u64, acked: u64) {
        let jiffy = self.jiffies(now);
        if let Some(epoch) = &mut self.epoch {
            epoch.acked += acked;
        }
        let (last_cwnd, last_time) = self.seen;
        if last_cwnd == cwnd && jiffy - last_time <= self.jiffies_per_second() / 32 {
            return;
        }
        if self.epoch.is_none() || jiffy != last_time {
            self.seen = (cwnd, jiffy);
            self.per_segment = self.by_curve(jiffy, cwnd, acked);
        }
        let epoch = self.epoch.as_mut().expect("the curve begins one");
        if let Some(reno) = epoch.reno_per_segment(cwnd) {
            self.per_segment = self.per_segment.min(reno);
        }
        self.per_segment = self.per_segment.max(FASTEST);
    }

    fn by_curve(&mut self, jiffy: u64, cwnd: u64, acked: u64) -> u64 {
        let hz = self.jiffies_per_second();
        let ahead =
            self.hystart.delay_min().map_or(0, |delay| delay.as_nanos().div_ceil(self.tick.as_nanos()));
        let last_max = self.last_max;
        let epoch = self.epoch.get_or_insert_with(|| Epoch { acked, ..Epoch::new(jiffy, last_max, cwnd) });
        let t = ((jiffy.saturating_sub(epoch.start) + ahead) << TIME_SHIFT) / hz;
        let target = epoch.target(t);
        let per_segment = if target > cwnd { cwnd / (target - cwnd) } else { STANDSTILL * cwnd };
        if last_max == 0 { per_segment.min(BEFORE_LOSS) } else { per_segment }
    }

    /// `tcp_cong_avoid_ai()`: segments by which the window grows.
    fn growth(&mut self, acked: u64) -> u64 {
        let per_segment = self.per_segment;
        let mut grown = 0;
        if self.credit >= per_segment {
            // Earned while segments were dearer.
            self.credit = 0;
            grown = 1;
        }
        self.credit += acked;
        grown += self.credit / per_segment;
        self.credit %= per_segment;
        grown
    }
}

impl CongestionControl for LinuxCubic {
    fn on_ack(&mut self, window: &mut Window, ack: &AckEvent) {
        // `epoch_start`, to the jiffy.
        let epoch = self.epoch.as_ref().map(|epoch| Instant::ZERO + self.tick * epoch.start);
        if self.ends_slow_start {
            self.hystart.on_ack(window, ack, epoch, self.smss);
        } else {
            self.hystart.observe(ack, epoch);
        }
        self.skip_silence(ack);
        if ack.acked_to == ack.sent_to {
            self.idle_since = Some(sent_at(ack.now, ack.last_rtt));
        }
        if !ack.cwnd_limited {
            return;
        }
        let mut acked = ack.newly_acked.div_ceil(self.smss);
        if window.cwnd < window.ssthresh {
            let before = window.cwnd;
            self.slow_start.on_ack(window, ack);
            // An initial window above the clamp shrinks here.
            acked = acked.saturating_sub(window.cwnd.saturating_sub(before).div_ceil(self.smss));
            if window.cwnd < window.ssthresh || acked == 0 {
                return;
            }
        }
        self.look_at_curve(ack.now, (window.cwnd / self.smss).max(1), acked);
        let grown = self.growth(acked) * self.smss;
        window.cwnd = window.cwnd.saturating_add(grown).min(self.clamp);
    }

    /// `cubictcp_recalc_ssthresh()`; a timeout forgets what it sets (`bictcp_reset()`).
    fn ssthresh_after(&mut self, window: &Window, loss: &LossEvent) -> u64 {
        self.slow_start.on_loss();
        self.credit = 0;
        self.epoch = None;
        let cwnd = window.cwnd / self.smss;
        let yields = self.fast_convergence && cwnd < self.last_max;
        self.last_max = if loss.timeout {
            0
        } else if yields {
            cwnd * (WHOLE + BETA) / (2 * WHOLE)
        } else {
            cwnd
        };
        (cwnd * BETA / WHOLE).max(2) * self.smss
    }

    /// `bictcp_reset()`.
    fn on_timeout(&mut self) {
        self.hystart.on_timeout();
        (self.last_max, self.per_segment, self.credit) = (0, 0, 0);
        (self.seen, self.epoch) = ((0, 0), None);
    }

    /// A loss that was none gives the window back; what the curve aims at stays.
    fn keeps_state_on_undo(&self) -> bool {
        true
    }
}
