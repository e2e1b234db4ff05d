//! The delay budget: what a timer allows for, and how long a queue stands.
//!
//! Source: derived here. The sawtooth of a window between a loss and the next is that of Villamizar and Song 1994 for
//! Reno and of RFC 9438 section 4.2 for CUBIC; the mean is taken over time, in which a round lasts longer the more waits.

use crate::{Estimate, InputError};

const SOURCE: &str =
    "mean over a sawtooth of the window (derived); Villamizar, Song 1994; RFC 9438 section 4.2";

/// What becomes of a timer that waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// The answer comes in time, also through full queues.
    Outlasts,
    /// It comes in time on an idle path, and too late through full queues.
    OutlastsIdle,
    /// It always comes too late.
    Expires,
}

/// A timer of so long against an answer that takes `idle` at the least and `full` at the most, in s. An answer in the
/// moment in which the timer expires is in time.
pub fn fit(timer: f64, idle: f64, full: f64) -> Fit {
    if timer >= full {
        Fit::Outlasts
    } else if timer >= idle {
        Fit::OutlastsIdle
    } else {
        Fit::Expires
    }
}

/// How a window grows back after a loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sawtooth {
    /// By so much per round, from this share of what it was: a half with Reno, 0.7 in CUBIC's Reno-friendly region.
    Linear {
        /// Share that is left after a loss.
        keeps: f64,
    },
    /// By CUBIC's function of time, from 0.7 of what it was.
    Cubic,
}

/// Mean number of segments that wait before the slowest link, over time, for one flow without random loss.
///
/// `pipe` is what the path holds without a queue, `queue` what the queue holds (infinite for no limit), `window` the most
/// that may be unacknowledged, all in segments. Below `pipe` nothing waits; up to `pipe + queue` what is beyond `pipe`
/// always does; above it, the queue overflows again and again.
///
/// Domain: the window in congestion avoidance for many rounds, one loss per overflow, ACKs that are not held up.
pub fn standing_queue(
    pipe: f64,
    queue: f64,
    window: f64,
    sawtooth: Sawtooth,
) -> Result<Estimate<f64>, InputError> {
    for (quantity, value) in [("the pipe", pipe), ("the queue", queue), ("the window", window)] {
        if value.is_nan() || value < 0.0 {
            return Err(InputError::Negative { quantity });
        }
    }
    let top = pipe + queue;
    let mean = if window <= top {
        (window - pipe).max(0.0)
    } else {
        match sawtooth {
            Sawtooth::Linear { keeps } => linear(pipe, top, keeps * top),
            Sawtooth::Cubic => cubic(pipe, top),
        }
    };
    Ok(Estimate::new(mean, SOURCE))
}

/// The window from `bottom` to `top` by equal steps, each a round: of `pipe` where less is under way, of the window where
/// that is more.
fn linear(pipe: f64, top: f64, bottom: f64) -> f64 {
    let from = bottom.max(pipe);
    let waiting = (cube(top) - cube(from)) / 3.0 - pipe * (top * top - from * from) / 2.0;
    let time = pipe * (pipe - bottom).max(0.0) + (top * top - from * from) / 2.0;
    if time > 0.0 { waiting / time } else { 0.0 }
}

/// `W(t) = top - 0.3 top x³`, with x from 1 to 0 while t goes from the loss to the next one.
fn cubic(pipe: f64, top: f64) -> f64 {
    if top <= 0.0 {
        return 0.0;
    }
    let fall = 0.3 * top;
    // From here on more is under way than the pipe holds.
    let x = libm::cbrt((top - pipe) / fall).min(1.0);
    (top - pipe) * x - fall * x * x * x * x / 4.0
}

fn cube(value: f64) -> f64 {
    value * value * value
}

#[cfg(test)]
mod tests {
    use super::*;

    const RENO: Sawtooth = Sawtooth::Linear { keeps: 0.5 };

    fn mean(pipe: f64, queue: f64, window: f64, sawtooth: Sawtooth) -> f64 {
        standing_queue(pipe, queue, window, sawtooth).expect("in range").value
    }

    #[test]
    fn a_timer_is_held_against_the_idle_and_the_full_path() {
        assert_eq!(fit(1.0, 0.5, 0.9), Fit::Outlasts);
        assert_eq!(fit(1.0, 0.5, 1.0), Fit::Outlasts);
        assert_eq!(fit(1.0, 0.5, 1.1), Fit::OutlastsIdle);
        assert_eq!(fit(1.0, 1.0, 1.1), Fit::OutlastsIdle);
        assert_eq!(fit(1.0, 1.01, 1.1), Fit::Expires);
        assert_eq!(fit(f64::INFINITY, 1.0, f64::INFINITY), Fit::Outlasts);
    }

    #[test]
    fn a_window_that_never_overflows_leaves_what_is_beyond_the_pipe() {
        for sawtooth in [RENO, Sawtooth::Cubic] {
            assert_eq!(mean(100.0, 50.0, 80.0, sawtooth), 0.0);
            assert_eq!(mean(100.0, 50.0, 130.0, sawtooth), 30.0);
            assert_eq!(mean(100.0, f64::INFINITY, 1e6, sawtooth), 999_900.0);
        }
    }

    /// The same by adding up a million steps.
    #[test]
    fn the_mean_is_that_of_the_sawtooth() {
        for (pipe, queue) in [(100.0, 10.0), (100.0, 100.0), (100.0, 300.0), (0.0, 50.0), (1.0, 0.0)] {
            let top: f64 = pipe + queue;
            for (keeps, sawtooth) in [(0.5, RENO), (0.7, Sawtooth::Linear { keeps: 0.7 })] {
                let (mut waiting, mut time) = (0.0, 0.0);
                for step in 0..1_000_000 {
                    let window = top * (keeps + (1.0 - keeps) * (f64::from(step) + 0.5) / 1e6);
                    let round = window.max(pipe);
                    waiting += (window - pipe).max(0.0) * round;
                    time += round;
                }
                let found = mean(pipe, queue, 1e9, sawtooth);
                assert!((found - waiting / time).abs() < 1e-3, "{pipe} {queue}: {found} {}", waiting / time);
            }
            let by_steps = (0..1_000_000).map(|step| {
                let x = (f64::from(step) + 0.5) / 1e6;
                (top - 0.3 * top * x * x * x - pipe).max(0.0) / 1e6
            });
            let (found, expected) = (mean(pipe, queue, 1e9, Sawtooth::Cubic), by_steps.sum::<f64>());
            assert!((found - expected).abs() < 1e-3, "{pipe} {queue}: {found} {expected}");
        }
    }
}
