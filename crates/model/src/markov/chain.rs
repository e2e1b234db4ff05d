//! The states of the chain, and how probability flows between them from one loss to the next.

use super::burst::{Burst, HOLES};
use super::pass::Pass;
use super::timer::Timer;
use super::{PerSegment, RenoChain};

/// Cells per segment of window in congestion avoidance, at most.
const FINEST: usize = 16;
/// Cells of congestion avoidance, where the window is large.
const CELLS: usize = 1024;
/// Loss to loss, so many times at most.
const PASSES: usize = 1000;
/// Relative change of the result that ends the iteration.
const SETTLED: f64 = 1e-7;

/// Trouble so seldom, per round, is none; far below it the mean number of rounds between two overflows.
const NEVER: f64 = 1e-30;

/// What does not change while the chain is solved.
pub(super) struct Chain<'a> {
    pub flow: &'a RenoChain,
    pub timer: Timer,
    /// The largest window, in segments.
    pub window: usize,
    /// Loss rates of data and of ACKs.
    pub p: f64,
    pub r: f64,
    /// A segment and its ACK get through.
    pub survives: f64,
    /// By window, in segments; the first is never used.
    pub bursts: Vec<Burst>,
    /// By `ssthresh` in half segments: the windows from the first ACK after a timeout on, round by round.
    pub paths: Vec<Vec<f64>>,
    cells_per_segment: usize,
}

/// Where probability waits for its next loss.
#[derive(Clone)]
pub(super) struct Mass {
    /// Congestion avoidance: window in cells, age.
    pub avoidance: Vec<Vec<f64>>,
    /// Slow start: `ssthresh` in half segments, step of its path, whether the age is forgotten.
    pub slow_start: Vec<Vec<[f64; 2]>>,
    /// The timer has expired: back-off exponent, segments in flight, `ssthresh` as [`Half`], further holes.
    pub stuck: Vec<Vec<[[f64; HOLES + 1]; 2]>>,
    /// Tahoe: the first ACK of a fast retransmit has come; segments in flight, further holes.
    pub restarted: Vec<[f64; HOLES + 1]>,
}

impl Mass {
    /// What was given up as negligible is shared out among the rest.
    fn normalize(&mut self) {
        let avoidance = self.avoidance.iter_mut().flatten();
        let slow_start = self.slow_start.iter_mut().flatten().flatten();
        let stuck = self.stuck.iter_mut().flatten().flatten().flatten();
        let restarted = self.restarted.iter_mut().flatten();
        let mut all: Vec<&mut f64> = avoidance.chain(slow_start).chain(stuck).chain(restarted).collect();
        let sum: f64 = all.iter().map(|mass| **mass).sum();
        all.iter_mut().for_each(|mass| **mass /= sum);
    }
}

/// `ssthresh` after a timeout.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Half {
    /// Half of the flight.
    OfFlight,
    /// Two segments.
    Least,
}

impl<'a> Chain<'a> {
    pub fn new(flow: &'a RenoChain) -> Chain<'a> {
        let window = flow.window as usize;
        let (p, r) = (flow.data_loss.fraction(), flow.ack_loss.fraction());
        let mut chain = Chain {
            flow,
            timer: Timer::new(flow),
            window,
            p,
            r,
            survives: (1.0 - p) * (1.0 - r),
            bursts: (1..2).chain(1..=flow.window).map(|w| Burst::new(flow, w)).collect(),
            paths: Vec::new(),
            cells_per_segment: (CELLS / window).clamp(2, FINEST),
        };
        chain.paths = (0..=window.max(4)).map(|halves| chain.path(halves)).collect();
        chain
    }

    pub fn solve(&self) -> PerSegment {
        if self.survives == 0.0 {
            let never = f64::INFINITY;
            return PerSegment {
                seconds: never,
                timeouts: never,
                retransmissions: never,
                fast_retransmits: 0.0,
            };
        }
        let full = &self.bursts[self.window];
        if full.trouble() < NEVER {
            let seconds = full.seconds / full.sends;
            return PerSegment { seconds, timeouts: 0.0, retransmissions: 0.0, fast_retransmits: 0.0 };
        }
        let mut mass = self.nothing();
        mass.avoidance[self.cell(self.window as f64)][self.timer.old] = 1.0;
        let mut per_segment = 0.0;
        for _ in 0..PASSES {
            let mut pass = Pass::new(self, mass);
            pass.run();
            let spent = pass.spent;
            mass = pass.next;
            mass.normalize();
            let before = per_segment;
            per_segment = spent.seconds / spent.segments;
            if (per_segment - before).abs() < SETTLED * per_segment {
                return spent.per_segment();
            }
        }
        let mut last = Pass::new(self, mass);
        last.run();
        last.spent.per_segment()
    }

    pub fn nothing(&self) -> Mass {
        let cells = self.cell(self.window as f64) + 1;
        Mass {
            avoidance: vec![vec![0.0; self.timer.old + 1]; cells],
            slow_start: self.paths.iter().map(|path| vec![[0.0; 2]; path.len()]).collect(),
            stuck: vec![vec![[[0.0; HOLES + 1]; 2]; self.window + 1]; self.timer.top + 1],
            restarted: vec![[0.0; HOLES + 1]; self.window + 1],
        }
    }

    /// The burst of a congestion window of so many segments.
    pub fn burst(&self, cwnd: f64) -> &Burst {
        &self.bursts[self.whole(cwnd)]
    }

    pub fn whole(&self, cwnd: f64) -> usize {
        (cwnd as usize).clamp(1, self.window)
    }

    pub fn cell(&self, cwnd: f64) -> usize {
        ((cwnd.min(self.window as f64) - 1.0).max(0.0) * self.cells_per_segment as f64) as usize
    }

    pub fn cwnd(&self, cell: usize) -> f64 {
        1.0 + cell as f64 / self.cells_per_segment as f64
    }

    /// The cells around a window, and the share of the upper one: the mean is kept.
    pub fn split(&self, cwnd: f64) -> (usize, f64) {
        let position = (cwnd.min(self.window as f64) - 1.0).max(0.0) * self.cells_per_segment as f64;
        (position as usize, position - libm::floor(position))
    }

    /// The window after a round of congestion avoidance.
    pub fn avoid(&self, cwnd: f64) -> f64 {
        let burst = self.burst(cwnd);
        let earned = if self.flow.congestion.avoidance_per_ack { burst.acks } else { burst.sends };
        (cwnd + earned / cwnd).min(self.window as f64)
    }

    /// The windows after a timeout, until slow start is over; long enough for the rounds of go-back-N.
    fn path(&self, halves: usize) -> Vec<f64> {
        let (ssthresh, limit) = (halves as f64 / 2.0, self.window as f64);
        let per_ack = self.flow.congestion.slow_start_limit.min(self.flow.ack_every) as f64;
        let mut cwnd = (1.0 + per_ack).min(limit);
        let mut path = vec![cwnd];
        while path.len() < HOLES + 3 || cwnd < ssthresh.min(limit) {
            let slow_start = cwnd < ssthresh;
            let grown = if slow_start { cwnd + per_ack * self.burst(cwnd).acks } else { self.avoid(cwnd) };
            // With all ACKs lost it would never grow, and slow start never end.
            cwnd = grown.max(cwnd + 1e-3).min(limit);
            path.push(cwnd);
        }
        path
    }

    /// Half of a window, all in half segments.
    pub fn half(&self, halves: usize) -> usize {
        let half = if self.flow.congestion.whole_segments { halves / 4 * 2 } else { halves / 2 };
        half.clamp(4, self.window.max(4))
    }

    pub fn ssthresh(&self, flight: usize, half: Half) -> usize {
        match half {
            Half::OfFlight => self.half(2 * flight),
            Half::Least => 4,
        }
    }
}
