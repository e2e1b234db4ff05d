//! The end that answers.

use super::opening::Opening;
use super::timer::{Span, Timer};
use super::{NS, RULE};
use crate::{Estimate, InputError};

/// Steps of a walk after which a half-open connection counts as kept alive for ever.
const MOST_STEPS: u32 = 2_000;

/// Ways for the two clocks to stand that are tried. Shares come out within half a per cent, ends within some ms.
const SAMPLES: u32 = 4096;

/// A span in which so large a part of it is empty is a race of timers; less is what ticks make.
const RACE_GAP: f64 = 0.05;

/// The end that answers: its SYN/ACKs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Listening {
    /// Its timer.
    pub timer: Timer,
    /// SYN/ACKs at most, those that its timer sends; `None` never ends.
    pub attempts: Option<u32>,
    /// Answers to duplicate SYNs count too (ns-3).
    pub shared_budget: bool,
}

/// When a half-open connection is forgotten.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Forgets {
    /// In s after the first SYN has come.
    pub span: Span,
    /// Whether it depends on which of two timers is first.
    pub race: Option<Race>,
}

/// A time that depends on whether a SYN that comes again is before the listener's timer, or after it: nothing happens
/// between the two.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Race {
    /// The latest, in s, where the timer was first.
    pub early: f64,
    /// The earliest, in s, where the SYN was.
    pub late: f64,
    /// Of all ways for the two clocks to stand, the share that is early; unknown where both timers are exact and alike.
    pub early_share: Option<f64>,
}

impl Listening {
    /// "Half-open connection forgotten": when the listener first gives up, in s after the first SYN has come. As the ACK
    /// comes one round trip after that SYN, it is a bound on the round trip as well.
    ///
    /// Every SYN that comes again is answered again, and starts the timer anew without doubling it: the opener's
    /// schedule stretches the listener's. Where both have the same timeouts and were started a way apart, which comes
    /// first depends on how the two clocks stand; both are taken as anywhere.
    pub fn gives_up(&self, opening: &Opening) -> Result<Estimate<Forgets>, InputError> {
        opening.check()?;
        self.timer.check()?;
        let never = Forgets { span: Span::exactly(f64::INFINITY), race: None };
        let Some(most) = self.attempts else { return Ok(Estimate::new(never, RULE)) };
        if most == 0 {
            return Err(InputError::Zero { quantity: "the number of SYN/ACKs" });
        }
        let periods = [opening.period(), self.timer.period(most - 1)];
        let exact = periods == [0.0, 0.0];
        let mut times = Vec::new();
        for number in 0..if exact { 1 } else { SAMPLES } {
            let [start, arrival] = [0, 1].map(|clock| libm::floor(periods[clock] * spread(number, clock)));
            let found = self.walk(opening, most, start, arrival);
            if found.is_empty() {
                return Ok(Estimate::new(never, RULE).caveat_if(true, || {
                    format!("followed over {MOST_STEPS} SYNs and SYN/ACKs: it counts as never given up")
                }));
            }
            times.extend(found.into_iter().map(|time| time / NS));
        }
        times.sort_by(f64::total_cmp);
        let span = Span::over([times[0], times[times.len() - 1]]);
        Ok(Estimate::new(Forgets { span, race: race(&times, exact) }, RULE))
    }

    /// When it gives up, in ns after a first SYN that leaves and arrives at these places of the ends' clocks: all
    /// outcomes where SYN and timer meet at one instant; none where it never does.
    fn walk(&self, opening: &Opening, most: u32, start: f64, arrival: f64) -> Vec<f64> {
        let mut syns = opening.syns_from(start).skip(1).map(|at| arrival + at).peekable();
        let mut can_be = vec![HalfOpen { sent: 1, doublings: 0, due: self.timer.deadline(arrival, 0) }];
        let (mut ends, mut next) = (Vec::new(), Vec::new());
        for _ in 0..MOST_STEPS {
            let Some(due) = can_be.iter().map(|one| one.due).min_by(f64::total_cmp) else { return ends };
            let syn = syns.peek().copied().unwrap_or(f64::INFINITY);
            if due == f64::INFINITY {
                break;
            }
            for one in can_be.drain(..) {
                let fires = one.due == due && due <= syn;
                if fires {
                    match self.timed_out(one, most) {
                        None => ends.push(due - arrival),
                        Some(one) => next.push(if syn == due { self.answered(one, most, syn) } else { one }),
                    }
                }
                // At one instant either may be first.
                if syn <= due {
                    let answered = self.answered(one, most, syn);
                    if answered.due > syn {
                        next.push(answered);
                    }
                } else if !fires {
                    next.push(one);
                }
            }
            if syn <= due {
                syns.next();
            }
            if next.len() > 1 {
                let order = |one: &HalfOpen| (one.sent, one.doublings);
                next.sort_by(|a, b| a.due.total_cmp(&b.due).then(order(a).cmp(&order(b))));
                next.dedup();
            }
            core::mem::swap(&mut can_be, &mut next);
        }
        Vec::new()
    }

    /// After its timer has expired; `None` where it is forgotten.
    pub(super) fn timed_out(&self, one: HalfOpen, most: u32) -> Option<HalfOpen> {
        let HalfOpen { sent, doublings, due } = one;
        let doublings = doublings + 1;
        (sent < most).then(|| HalfOpen {
            sent: sent + 1,
            doublings,
            due: self.timer.deadline(due, doublings),
        })
    }

    /// Whether a SYN that comes again has no answer.
    pub(super) fn is_silent(&self, one: HalfOpen, most: u32) -> bool {
        self.shared_budget && one.sent >= most
    }

    /// After a SYN that comes again.
    pub(super) fn answered(&self, one: HalfOpen, most: u32, syn: f64) -> HalfOpen {
        if self.is_silent(one, most) {
            return one;
        }
        let sent = one.sent + u32::from(self.shared_budget);
        HalfOpen { sent, due: self.timer.deadline(syn, one.doublings), ..one }
    }
}

/// A half-open connection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct HalfOpen {
    /// SYN/ACKs that count.
    pub sent: u32,
    /// Of the timeout.
    pub doublings: u32,
    /// When the timer expires, in ns.
    pub due: f64,
}

/// The widest gap between times that are sorted, if it is wide.
fn race(times: &[f64], exact: bool) -> Option<Race> {
    let most = times[times.len() - 1];
    let gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
    let (at, gap) = gaps.enumerate().max_by(|a, b| a.1.total_cmp(&b.1))?;
    (gap > most * RACE_GAP).then(|| Race {
        early: times[at],
        late: times[at + 1],
        early_share: (!exact).then(|| (at + 1) as f64 / times.len() as f64),
    })
}

/// Number `number` of a sequence that fills the unit square evenly, along one of its sides: multiples of 1/g and 1/g²,
/// where g³ = g + 1 (Roberts, *The unreasonable effectiveness of quasirandom sequences*, 2018).
fn spread(number: u32, side: usize) -> f64 {
    const STEPS: [f64; 2] = [0.754_877_666_246_692_8, 0.569_840_290_998_053_3];
    // Not from the corner on, nor the middle: there both clocks tick at once.
    const FROM: [f64; 2] = [0.5, 0.2];
    let at = FROM[side] + f64::from(number) * STEPS[side];
    at - libm::floor(at)
}
