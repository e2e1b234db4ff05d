//! One wait: a timeout, and the clock on which it ends.

use super::NS;
use crate::InputError;

/// Doublings after which every timer of 1 ns or more is beyond what `f64` holds.
const MOST_DOUBLINGS: u32 = 1100;

/// Nanoseconds up to which `f64` has every whole one.
const MOST_EXACT: f64 = 9_007_199_254_740_992.0;

/// Places on a timer wheel at which a start is tried: every jiffy of a granule of 512, which waits of up to 32 255 jiffies
/// have: 129 s at 4 ms, more than any timeout of Linux.
const MOST_STARTS: f64 = 512.0;

/// Between which a time lies, in s, by how the start of a connection falls on the clocks of its ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    /// The shortest that it can be.
    pub least: f64,
    /// The longest that it can be.
    pub most: f64,
}

impl Span {
    /// A time that no clock changes; also what never is, which is infinite.
    pub const fn exactly(time: f64) -> Span {
        Span { least: time, most: time }
    }

    /// From the least to the most of `times`; infinite for none.
    pub(super) fn over(times: impl IntoIterator<Item = f64>) -> Span {
        let none = Span { least: f64::INFINITY, most: f64::NEG_INFINITY };
        let span = times
            .into_iter()
            .fold(none, |span, time| Span { least: span.least.min(time), most: span.most.max(time) });
        if span.most == f64::NEG_INFINITY { Span::exactly(f64::INFINITY) } else { span }
    }

    /// Whichever comes first, of two that end the same thing.
    pub fn min(self, other: Span) -> Span {
        Span { least: self.least.min(other.least), most: self.most.min(other.most) }
    }

    /// Whichever comes last.
    pub fn max(self, other: Span) -> Span {
        Span { least: self.least.max(other.least), most: self.most.max(other.most) }
    }

    pub(super) fn ns_to_s(self) -> Span {
        Span { least: self.least / NS, most: self.most / NS }
    }
}

/// The timer of a handshake's end: RFC 6298 before any sample, with a stack's ceiling and clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timer {
    /// First timeout, in s.
    pub initial: f64,
    /// Longest timeout, in s; infinity for none.
    pub max: f64,
    /// Doublings after which the timeout stays.
    pub max_backoff_exponent: u32,
    /// Clock tick on which the timer expires, in s; zero for none.
    pub tick: f64,
    /// The clock is Linux's timer wheel, and `tick` its jiffy: a wait of 63·8ⁿ jiffies or more ends on a multiple of 8ⁿ⁺¹.
    pub wheel: bool,
    /// The tick under way is counted as a whole one, so that the timer expires up to a tick early (4.4BSD).
    pub counted: bool,
}

impl Timer {
    pub(super) fn check(&self) -> Result<(), InputError> {
        let Timer { initial, max, max_backoff_exponent: _, tick, wheel: _, counted: _ } = *self;
        let not = |quantity| Err(InputError::NotPositive { quantity });
        if initial.is_nan() || initial <= 0.0 || initial == f64::INFINITY {
            return not("the first timeout");
        }
        if max.is_nan() || max <= 0.0 {
            return not("the longest timeout");
        }
        if tick.is_nan() || tick < 0.0 || tick == f64::INFINITY {
            return Err(InputError::Negative { quantity: "the clock tick" });
        }
        Ok(())
    }

    /// How long one wait of the first timeout takes.
    pub fn wait(&self) -> Span {
        Span::over(self.starts(0).into_iter().map(|start| self.deadline(start, 0) - start)).ns_to_s()
    }

    /// Timeout after so many doublings, in ns.
    pub(super) fn timeout(&self, doublings: u32) -> f64 {
        let exponent = doublings.min(self.max_backoff_exponent).min(MOST_DOUBLINGS);
        let initial = whole(self.initial * NS);
        // A ceiling below the first timeout does not shorten it.
        doubled(initial, exponent).min(whole(self.max * NS).max(initial))
    }

    fn tick_ns(&self) -> f64 {
        whole(self.tick * NS)
    }

    /// When a timer that is started at `now` expires, in ns on the clock: on a tick.
    pub(super) fn deadline(&self, now: f64, doublings: u32) -> f64 {
        let (tick, timeout) = (self.tick_ns(), self.timeout(doublings));
        let due = now + timeout;
        if tick == 0.0 || due == f64::INFINITY {
            return due;
        }
        // Of whole numbers, which most times are, this is many times as fast.
        if due < MOST_EXACT && tick < MOST_EXACT {
            let (now, due, tick) = (now as u64, due as u64, tick as u64);
            let granules = if self.wheel {
                // kernel/time/timer.c, as `farpath_tcp::RtoConfig::expiry` has it.
                let (wait, granule) = ((timeout as u64).div_ceil(tick), granule(timeout, tick as f64) as u64);
                ((now / tick + wait) / granule + 1) * granule
            } else if self.counted {
                now / tick + (timeout as u64).div_ceil(tick).max(1)
            } else {
                due.div_ceil(tick)
            };
            return (granules * tick) as f64;
        }
        if !self.wheel && self.counted {
            return (libm::floor(now / tick) + libm::ceil(timeout / tick).max(1.0)) * tick;
        }
        if !self.wheel {
            return libm::ceil(due / tick) * tick;
        }
        let passed = libm::floor(now / tick) + libm::ceil(timeout / tick);
        let granule = granule(timeout, tick);
        (libm::floor(passed / granule) + 1.0) * granule * tick
    }

    /// After how long the clock looks the same to every timeout of up to so many doublings, in ns.
    pub(super) fn period(&self, doublings: u32) -> f64 {
        let (tick, timeout) = (self.tick_ns(), self.timeout(doublings));
        if self.wheel && tick > 0.0 { granule(timeout, tick) * tick } else { tick }
    }

    /// Places on the clock, in ns, between which every wait is longest or shortest.
    pub(super) fn starts(&self, doublings: u32) -> Vec<f64> {
        let tick = self.tick_ns();
        if tick == 0.0 {
            return vec![0.0];
        }
        if self.counted && !self.wheel {
            // A start right on a tick, and one just before the next, which is counted as a whole tick all the same.
            return vec![0.0, tick - 1.0];
        }
        if !self.wheel {
            // A start from which the first timeout ends right on a tick, and one that just misses it. It is the first wait
            // only: the others begin on a tick.
            let timeout = self.timeout(0);
            let on_time = libm::ceil(timeout / tick) * tick - timeout;
            return vec![on_time, on_time + 1.0];
        }
        let jiffies = (self.period(doublings) / tick).min(MOST_STARTS);
        let step = self.period(doublings) / jiffies;
        // At the beginning of a jiffy a wait is longest, at its end shortest.
        (0..jiffies as u32).map(f64::from).flat_map(|at| [at * step, at * step + tick - 1.0]).collect()
    }
}

/// Jiffies in a bucket of the wheel that a wait so long falls into.
fn granule(timeout: f64, tick: f64) -> f64 {
    let wait = libm::ceil(timeout / tick);
    let mut granule = 1.0;
    while wait >= granule * 63.0 && granule < f64::MAX / 8.0 {
        granule *= 8.0;
    }
    granule
}

/// Rounded to a whole number.
fn whole(ns: f64) -> f64 {
    if ns < MOST_EXACT { (ns + 0.5) as u64 as f64 } else { ns }
}

/// Times two to so many, which is at most [`MOST_DOUBLINGS`].
fn doubled(ns: f64, times: u32) -> f64 {
    match times {
        0..64 => ns * (1_u64 << times) as f64,
        _ => libm::ldexp(ns, times as i32),
    }
}
