//! How the window goes on while nothing is lost.

use super::{Avoidance, C, LossEpochs};

/// RFC 9438 section 4.3: alpha of the Reno-friendly window while it is below the window of the last loss.
const ALPHA: f64 = 9.0 / 17.0;
/// RFC 9438 section 4.7: `(1 + beta) / 2`.
const FAST_CONVERGENCE: f64 = 0.85;
/// RFC 9406 section 4.3: rounds of conservative slow start.
const CSS_ROUNDS: u32 = 5;
/// RFC 9406 section 4.3: by how much less the window grows in these.
const CSS_GROWTH_DIVISOR: f64 = 4.0;
/// A step takes the window this much further at most, as a share of it.
const STEP: f64 = 0.02;
/// A step has room for so many losses at most, and is this share of the file at most.
const PIECE: f64 = 0.1;

/// The path as a window sees it, in seconds and segments.
pub(super) struct Net {
    pub round: f64,
    pub spacing: f64,
    /// The window that the path holds by itself.
    path: f64,
    /// Segments that the queue holds beside it; infinite where it has no end.
    queue: f64,
    /// The window at which path and queue are full, or the queue marks; infinite where neither happens.
    pub full: f64,
    /// The window of a slow start whose bursts fill the queue, if that comes first.
    pub slow_start_full: f64,
}

impl Net {
    pub fn new(epochs: &LossEpochs) -> Net {
        let (round, spacing) = (epochs.round.as_secs_f64(), epochs.spacing.as_secs_f64());
        // An infinitely fast link holds any window.
        let path = if spacing > 0.0 { round / spacing } else { f64::INFINITY };
        let queue = epochs.queue.map_or(f64::INFINITY, |queue| queue.max(1.0));
        let room = epochs.mark.map_or(queue, |mark| mark.clamp(1.0, queue));
        // Each ACK of slow start lets `factor` as much go as it covers: of a window, all but 1/factor queues up.
        let factor = epochs.slow_start.factor;
        let full = path + room;
        Net { round, spacing, path, queue, full, slow_start_full: full.min(room * factor / (factor - 1.0)) }
    }

    /// Segments that find no room where a slow start, growing by `factor` a round, is known to be too fast at a window
    /// of `detected`: a whole path overflows by what is too much, below that only the end of a burst does.
    fn overshoot(&self, detected: f64, factor: f64, burst: bool) -> f64 {
        let waiting = if burst { detected * (1.0 - 1.0 / factor) } else { detected - self.path };
        (waiting - self.queue).max(0.0)
    }

    /// Round trip of a window.
    pub fn rtt(&self, w: f64) -> f64 {
        self.round.max(w * self.spacing)
    }
}

/// A piece of a walk.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub segments: f64,
    pub seconds: f64,
    /// The window that a loss in this piece is detected at, a round later.
    pub detected_at: f64,
}

/// A window's way until a loss.
#[derive(Debug, Clone)]
pub(super) struct Walk {
    pub steps: Vec<Step>,
    /// Below this window of the loss before, a loss makes CUBIC yield.
    pub w_max: f64,
    /// The queue overflows or marks at the end of the last step: window at detection and segments lost.
    pub overflow: Option<(f64, f64)>,
}

/// Collects steps until no loss that matters can be further on.
struct Walker<'a> {
    epochs: &'a LossEpochs,
    net: Net,
    walk: Walk,
    sent: f64,
}

impl<'a> Walker<'a> {
    fn new(epochs: &'a LossEpochs, w_max: f64) -> Walker<'a> {
        let walk = Walk { steps: Vec::new(), w_max, overflow: None };
        Walker { epochs, net: Net::new(epochs), walk, sent: 0.0 }
    }

    fn push(&mut self, segments: f64, seconds: f64, detected_at: f64) {
        self.sent += segments;
        self.walk.steps.push(Step { segments, seconds, detected_at: detected_at.min(self.epochs.window) });
    }

    /// Nobody gets here: the file is over, or a loss came before, but for one case in ten million.
    fn over(&self) -> bool {
        self.sent >= self.epochs.segments || self.sent * self.epochs.loss.fraction() > 16.0
    }

    /// Rounds at a window of `w` in which few losses fall and that few make up the file.
    fn rounds(&self, w: f64) -> f64 {
        let segments = (PIECE / self.epochs.loss.fraction()).min(PIECE * self.epochs.segments);
        (segments / w).max(1.0)
    }

    /// The rest of the file at a window that stays.
    fn stay(&mut self, w: f64) {
        let rounds = self.rounds(w);
        while !self.over() {
            self.push(rounds * w, rounds * self.net.rtt(w), w);
        }
    }

    /// Slow start; gives the window that it ends with, or `None` where the walk is over.
    fn slow_start(&mut self) -> Option<f64> {
        let start = self.epochs.slow_start;
        let most = self.epochs.window;
        let mut w = start.initial_window.min(most);
        let mut conservative: Option<u32> = None;
        while w < start.threshold && w < most {
            if self.over() {
                return None;
            }
            let delayed = start.hystart && self.seen_by_hystart(w);
            conservative = match conservative {
                Some(CSS_ROUNDS) => return Some(w),
                Some(rounds) => Some(rounds + 1),
                None if delayed => Some(1),
                None => None,
            };
            let divisor = if conservative.is_some() { CSS_GROWTH_DIVISOR } else { 1.0 };
            let factor = 1.0 + (start.factor - 1.0) / divisor;
            let next = (w * factor).min(start.threshold).min(most);
            // What bursts fill of the queue shrinks with their factor.
            let full = if divisor > 1.0 { self.net.full } else { self.net.slow_start_full };
            if next > full {
                // The first drop or mark is known a round later; the window has grown on until then.
                let detected = full * factor;
                let lost = self.net.overshoot(detected, factor, full < self.net.full);
                self.push(full, self.net.rtt(full), detected);
                self.walk.overflow = Some((detected.min(most), lost));
                return None;
            }
            self.push(w, self.net.rtt(w), next);
            w = next;
        }
        Some(w)
    }

    /// RFC 9406 section 4.2: the round's smallest RTT is above the last one's by an eighth, 4 ms at least, 16 ms at most.
    fn seen_by_hystart(&self, w: f64) -> bool {
        let threshold = (self.net.round / 8.0).clamp(0.004, 0.016);
        // The smallest RTT of a round is that of its first segments, which find what the round before left.
        self.net.rtt(w) > self.net.round + threshold
    }

    /// `growth` takes the window, its round trip and the most rounds in a step; it gives the rounds and the next window.
    fn avoid_congestion(&mut self, w: f64, mut growth: impl FnMut(f64, f64, f64) -> (f64, f64)) {
        let most = self.epochs.window;
        let mut w = w;
        while !self.over() {
            if w >= most {
                return self.stay(most);
            }
            let rtt = self.net.rtt(w);
            let (rounds, next) = growth(w, rtt, self.rounds(w));
            let next = next.min(most);
            let mean = (w + next) / 2.0;
            self.push(rounds * mean, rounds * self.net.rtt(mean), next);
            if next > self.net.full {
                // Congestion avoidance goes past the end of the queue by what a round adds. A mark loses nothing.
                let lost = if self.epochs.mark.is_some() { 0.0 } else { ((next - w) / rounds).max(1.0) };
                self.walk.overflow = Some((next, lost));
                return;
            }
            w = next;
        }
    }

    /// Fast recovery from a loss detected at `w`; gives the window with which congestion avoidance begins.
    fn recover(&mut self, w: f64) -> f64 {
        let epochs = self.epochs;
        let begin = (epochs.beta() * w).max(2.0).min(epochs.window);
        // Until the hole is filled, the receive window stands where it is.
        let new = begin.min((epochs.window - w).max(0.0));
        self.push(new, self.net.rtt(w), begin);
        if epochs.repair.deflates {
            // RFC 6582 section 3.2 step 3: from what is in flight, in slow start.
            let mut w = (new + 1.0).max(2.0);
            while w < begin {
                self.push(w, self.net.rtt(w), begin);
                w *= epochs.slow_start.factor;
            }
        }
        begin
    }

    fn reno(&mut self, w: f64, per_round: f64) {
        let full = self.net.full;
        self.avoid_congestion(w, |w, _, most| {
            let rounds = (STEP * w / per_round).min((full - w) / per_round + 1.0).min(most).max(1.0);
            (rounds, w + rounds * per_round)
        });
    }

    fn cubic(&mut self, begin: f64, w_max: f64, prior: f64) {
        let k = libm::cbrt((w_max - begin).max(0.0) / C);
        let (mut t, mut estimate) = (0.0, begin);
        self.avoid_congestion(begin, |w, rtt, most| {
            // Where the curve bends, pieces of K are what counts; far behind it, shares of the time that has passed.
            let seconds = (k / 40.0).max(t / 40.0).min(most * rtt).max(rtt);
            let rounds = seconds / rtt;
            t += seconds;
            estimate += rounds * if estimate < prior { ALPHA } else { 1.0 };
            // The window is a round ahead of the curve (section 4.2), and gains no more than half of itself in one.
            let ahead = t + rtt - k;
            let target = (C * ahead * ahead * ahead + w_max).clamp(w, w * libm::pow(1.5, rounds));
            (rounds, target.max(estimate))
        });
    }
}

pub(super) fn beginning(epochs: &LossEpochs) -> Walk {
    let mut walker = Walker::new(epochs, 0.0);
    if let Some(w) = walker.slow_start() {
        match epochs.avoidance {
            Avoidance::Reno { per_round } => walker.reno(w, per_round),
            // RFC 9438 section 4.10: without a loss before it, K = 0.
            Avoidance::Cubic { .. } => walker.cubic(w, w, w),
        }
    }
    walker.walk
}

pub(super) fn after_loss(epochs: &LossEpochs, w: f64, yields: bool) -> Walk {
    let w_max = match epochs.avoidance {
        Avoidance::Cubic { fast_convergence } if fast_convergence && yields => FAST_CONVERGENCE * w,
        _ => w,
    };
    let mut walker = Walker::new(epochs, w_max);
    let begin = walker.recover(w);
    match epochs.avoidance {
        Avoidance::Reno { per_round } => walker.reno(begin, per_round),
        Avoidance::Cubic { .. } => walker.cubic(begin, w_max.max(begin), w),
    }
    walker.walk
}
