//! What the rest of a file takes, from a loss on: the mean over where the next loss falls.

use super::growth::{self, Net, Walk};
use super::{LossEpochs, Transfer};
use core::ops::{Add, Mul, Sub};
use farpath_units::Probability;

/// Windows at a loss for which the rest is computed; between them it is taken as linear.
const WINDOWS: usize = 64;
/// Lengths of the rest, evenly spaced.
const LENGTHS: usize = 200;
/// Mean epochs after which a file goes on as it did before.
const EPOCHS: f64 = 30.0;

impl Add for Transfer {
    type Output = Transfer;
    fn add(self, other: Transfer) -> Transfer {
        Transfer {
            seconds: self.seconds + other.seconds,
            reductions: self.reductions + other.reductions,
            overflowed: self.overflowed + other.overflowed,
        }
    }
}

impl Sub for Transfer {
    type Output = Transfer;
    fn sub(self, other: Transfer) -> Transfer {
        self + other * -1.0
    }
}

impl Mul<f64> for Transfer {
    type Output = Transfer;
    fn mul(self, factor: f64) -> Transfer {
        Transfer {
            seconds: self.seconds * factor,
            reductions: self.reductions * factor,
            overflowed: self.overflowed * factor,
        }
    }
}

pub(super) fn solve(epochs: &LossEpochs) -> Transfer {
    let beginning = growth::beginning(epochs);
    let table = Table::fill(epochs, &beginning);
    table.mean(&beginning, epochs.segments)
}

/// A window at which a loss was detected, and whether CUBIC yields.
struct State {
    window: f64,
    walk: Walk,
}

struct Table<'a> {
    epochs: &'a LossEpochs,
    net: Net,
    /// Logarithm of the factor by which windows grow from one pair of states to the next.
    log_ratio: f64,
    /// In pairs: the same window, not yielding and yielding.
    states: Vec<State>,
    /// Segments from one length to the next.
    pitch: f64,
    /// By length, from 0; in each, by state.
    rest: Vec<Vec<Transfer>>,
}

impl<'a> Table<'a> {
    fn fill(epochs: &'a LossEpochs, beginning: &Walk) -> Table<'a> {
        let overflow = beginning.overflow.map_or(0.0, |(window, _)| window);
        let detected = beginning.steps.iter().map(|step| step.detected_at).fold(overflow, f64::max);
        let net = Net::new(epochs);
        let top = epochs.window.min(net.full.max(detected) * 1.6).min(epochs.segments.max(detected)).max(4.0);
        let ratio = libm::pow(top / 2.0, 1.0 / (WINDOWS - 1) as f64);
        let states: Vec<State> = (0..WINDOWS)
            .map(|step| 2.0 * libm::pow(ratio, step as f64))
            .flat_map(|window| {
                [false, true].map(|yields| State { window, walk: growth::after_loss(epochs, window, yields) })
            })
            .collect();
        let last = states.last().expect("there are windows");
        let to_overflow = match last.walk.overflow {
            Some(_) => last.walk.steps.iter().map(|step| step.segments).sum(),
            None => f64::INFINITY,
        };
        let epoch = (1.0 / epochs.loss.fraction()).min(to_overflow);
        let longest = epochs.segments.min(EPOCHS * epoch);
        let mut table = Table {
            epochs,
            net,
            log_ratio: libm::log(ratio),
            states,
            pitch: longest / LENGTHS as f64,
            rest: vec![vec![Transfer::default(); 2 * WINDOWS]],
        };
        if epochs.loss > Probability::ZERO || beginning.overflow.is_some() {
            for length in 1..=LENGTHS {
                let segments = length as f64 * table.pitch;
                let row = table.states.iter().map(|state| table.mean(&state.walk, segments)).collect();
                table.rest.push(row);
            }
        }
        table
    }

    /// What `segments` take that begin with this walk.
    fn mean(&self, walk: &Walk, segments: f64) -> Transfer {
        let p = self.epochs.loss.fraction();
        let (mut mean, mut reach) = (Transfer::default(), 1.0);
        let (mut sent, mut seconds) = (0.0, 0.0);
        for step in &walk.steps {
            let share = ((segments - sent) / step.segments).min(1.0);
            let lost = -libm::expm1(-p * step.segments * share);
            let window = step.detected_at;
            if lost > 0.0 {
                let at = (sent + step.segments * share / 2.0, seconds + step.seconds * share / 2.0);
                mean = mean + self.with_loss(at, window, walk.w_max, None, segments) * (reach * lost);
                reach *= 1.0 - lost;
            }
            sent += step.segments * share;
            seconds += step.seconds * share;
            if share < 1.0 || sent >= segments {
                return mean + Transfer { seconds, ..Transfer::default() } * reach;
            }
        }
        match walk.overflow {
            Some((window, lost)) => {
                mean + self.with_loss((sent, seconds), window, walk.w_max, Some(lost), segments) * reach
            }
            // The walk was cut where nobody gets to.
            None => mean + Transfer { seconds, ..Transfer::default() } * reach,
        }
    }

    /// The whole transfer, where a segment sent at `(sent, seconds)` is lost. It is known a round later.
    fn with_loss(
        &self,
        (sent, seconds): (f64, f64),
        window: f64,
        w_max: f64,
        overflowed: Option<f64>,
        segments: f64,
    ) -> Transfer {
        let p = self.epochs.loss.fraction();
        let round = self.net.rtt(window);
        // Further losses of the same window are repaired with it and reduce nothing.
        let holes = overflowed.unwrap_or(1.0) + p * window;
        let until_known = Transfer {
            seconds: seconds + round + self.repair(holes, window),
            reductions: 1.0,
            overflowed: overflowed.unwrap_or(0.0),
        };
        let left = segments - sent - window;
        if left <= 0.0 {
            // The rest left within that round; the repair takes one more.
            let early = (window - (segments - sent)) / window * round;
            return until_known + Transfer { seconds: round - early.min(round), ..Transfer::default() };
        }
        until_known + self.rest(window, window < w_max, left)
    }

    /// Seconds beside the round of a repair: holes one by one, and retransmissions lost again.
    fn repair(&self, holes: f64, window: f64) -> f64 {
        let repair = &self.epochs.repair;
        let slow_start = libm::log(window.max(2.0)) / libm::log(self.epochs.slow_start.factor);
        let timeout = repair.lost_again.as_secs_f64();
        let again = (holes * self.epochs.loss.fraction()).min(1.0);
        let one_by_one = (holes - 1.0).max(0.0) * self.net.rtt(window / 2.0);
        let rounds =
            if repair.together { 0.0 } else { one_by_one.min(timeout + slow_start * self.net.round) };
        rounds + again * (timeout + (slow_start - 1.0).max(0.0) * self.net.round)
    }

    /// What `segments` take from the detection of a loss at `window` on.
    fn rest(&self, window: f64, yields: bool, segments: f64) -> Transfer {
        let position = (libm::log(window.max(2.0) / 2.0) / self.log_ratio).min((WINDOWS - 1) as f64);
        let below = (position as usize).min(WINDOWS - 2);
        let (low, high) = (self.states[2 * below].window, self.states[2 * below + 2].window);
        let share = ((window - low) / (high - low)).clamp(0.0, 1.0);
        let state = 2 * below + usize::from(yields);
        self.transfer_from(state, segments) * (1.0 - share) + self.transfer_from(state + 2, segments) * share
    }

    fn transfer_from(&self, state: usize, segments: f64) -> Transfer {
        let known = self.rest.len() - 1;
        let position = segments / self.pitch;
        let below = position as usize;
        if below < known {
            let share = position - below as f64;
            return self.rest[below][state] * (1.0 - share) + self.rest[below + 1][state] * share;
        }
        // Beyond what is known: it goes on as over the last tenth of it.
        let back = known - (known / 10).max(1).min(known);
        let last = self.rest[known][state];
        if back == known {
            // Nothing is known yet but the empty file: a steady window.
            let window = (self.epochs.beta() * self.states[state].window).max(2.0);
            return Transfer { seconds: segments / window * self.net.rtt(window), ..last };
        }
        let each = (last - self.rest[back][state]) * (1.0 / (known - back) as f64);
        last + each * (position - known as f64)
    }
}
