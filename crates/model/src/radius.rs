//! How far TCP reaches: its timers as round-trip times.
//!
//! Source: Wood, Peoples, Parr, Scotney, Moore, *TCP's protocol radius*, IWSSC 2007, called "the protocol-radius
//! paper" below. A timer that runs from a segment to its answer is a bound on the round trip, half of it a bound on the
//! one-way delay, and that times the speed of light a radius in space. The paper mixes two rules for the outermost
//! one; both are here: the round trip by which the last SYN has left, and that by which the connection is abandoned.
//!
//! Times are seconds as `f64`: 255 retries of a timer of 3 s are 1.7e77 s, which no integer of ours holds. They are
//! computed in nanoseconds, which are whole numbers that `f64` has exactly up to 104 days.

#[cfg(test)]
mod tests;

use crate::{Estimate, InputError};

/// Speed of light in vacuum, in km/s (exact by definition of the metre).
pub const LIGHT_KM_PER_S: f64 = 299_792.458;

const NS: f64 = 1e9;

/// Doublings after which every timer of 1 ns or more is beyond what `f64` holds.
const MOST_DOUBLINGS: u32 = 1100;

/// Steps of a walk after which a half-open connection counts as kept alive for ever.
const MOST_STEPS: u32 = 100_000;

const RULE: &str =
    "Wood, Peoples, Parr, Scotney, Moore 2007; RFC 6298 section 5.5: each timeout doubles the next";

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
}

impl Timer {
    fn check(&self) -> Result<(), InputError> {
        let Timer { initial, max, max_backoff_exponent: _, tick } = *self;
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

    /// Timeout after so many doublings, in ns.
    fn timeout(&self, doublings: u32) -> f64 {
        let exponent = doublings.min(self.max_backoff_exponent).min(MOST_DOUBLINGS);
        let initial = libm::round(self.initial * NS);
        // A ceiling below the first timeout does not shorten it.
        libm::ldexp(initial, exponent as i32).min(libm::round(self.max * NS).max(initial))
    }

    /// When a timer that is started at `now` expires, in ns: on a tick of the clock.
    fn deadline(&self, now: f64, doublings: u32) -> f64 {
        let tick = libm::round(self.tick * NS);
        let due = now + self.timeout(doublings);
        if tick == 0.0 || due == f64::INFINITY { due } else { libm::ceil(due / tick) * tick }
    }
}

/// The end that opens: its SYNs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Opening {
    /// Its timer.
    pub timer: Timer,
    /// SYNs at most; `None` never ends.
    pub attempts: Option<u32>,
    /// The first so many timeouts do not double (Linux `tcp_syn_linear_timeouts`).
    pub linear: u32,
    /// Ends the attempt, in s from the first SYN, whatever its timer says; infinity for none.
    pub within: f64,
}

impl Opening {
    /// Refuses what is no schedule.
    pub fn check(&self) -> Result<(), InputError> {
        self.timer.check()?;
        if self.attempts == Some(0) {
            return Err(InputError::Zero { quantity: "the number of SYNs" });
        }
        if self.within.is_nan() || self.within <= 0.0 {
            return Err(InputError::NotPositive { quantity: "the time for a connection" });
        }
        Ok(())
    }

    /// When so many waits are over, in ns after the first SYN, on a clock that ticks at the first SYN.
    fn after(&self, waits: u32) -> f64 {
        let wait = |doublings| self.timer.deadline(0.0, doublings);
        let level = waits.min(self.linear.saturating_add(1));
        let mut time = f64::from(level) * wait(0);
        let mut left = waits - level;
        let mut doublings = 0;
        while left > 0 {
            doublings += 1;
            let next = wait(doublings);
            if next == wait(doublings - 1) || time == f64::INFINITY {
                return time + f64::from(left) * next;
            }
            time += next;
            left -= 1;
        }
        time
    }

    /// When SYN number `index` leaves, from zero, in s after the first; `None` if it never does.
    pub fn syn(&self, index: u32) -> Option<f64> {
        let at = self.after(index);
        (self.attempts.is_none_or(|most| index < most) && at < libm::round(self.within * NS)).then(|| at / NS)
    }

    /// When each SYN leaves, in s after the first; at most `most` of them.
    pub fn syns(&self, most: usize) -> Vec<f64> {
        (0..).map_while(|index| self.syn(index)).take(most).collect()
    }

    /// "Last SYN leaves": the round trip beyond which the answer to the first SYN comes after the last one has left.
    /// Infinite where there is no last one.
    pub fn last_syn(&self) -> Estimate<f64> {
        // The first index that never leaves, by halving: time grows with the index.
        let (mut leaves, mut not) = (0, self.attempts.unwrap_or(u32::MAX));
        while not - leaves > 1 {
            let middle = leaves + (not - leaves) / 2;
            *(if self.syn(middle).is_some() { &mut leaves } else { &mut not }) = middle;
        }
        let endless = self.attempts.is_none() && self.within == f64::INFINITY;
        Estimate::new(if endless { f64::INFINITY } else { self.after(leaves) / NS }, RULE)
    }

    /// "Connection abandoned": when the wait after the last SYN is over, in s after the first. The round trip beyond
    /// which no connection opens; infinite where the attempt never ends.
    pub fn abandoned(&self) -> Estimate<f64> {
        let by_count = self.attempts.map_or(f64::INFINITY, |attempts| self.after(attempts) / NS);
        Estimate::new(by_count.min(self.within), RULE)
    }
}

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

impl Listening {
    /// "Half-open connection forgotten": when the listener first gives up, in s after the first SYN has come. As the ACK
    /// comes one round trip after that SYN, it is a bound on the round trip as well.
    ///
    /// Every SYN that comes again is answered again, and starts the timer anew without doubling it; where SYN and timer
    /// come at once, the SYN is first. So the opener's schedule stretches the listener's.
    pub fn gives_up(&self, opening: &Opening) -> Result<Estimate<f64>, InputError> {
        opening.check()?;
        self.timer.check()?;
        let Some(most) = self.attempts else { return Ok(Estimate::new(f64::INFINITY, RULE)) };
        if most == 0 {
            return Err(InputError::Zero { quantity: "the number of SYN/ACKs" });
        }
        let (mut sent, mut doublings, mut next_syn) = (1, 0, 1);
        let mut due = self.timer.deadline(0.0, 0);
        for _ in 0..MOST_STEPS {
            match opening.syn(next_syn).map(|at| libm::round(at * NS)) {
                Some(at) if at <= due => {
                    next_syn += 1;
                    if self.shared_budget {
                        if sent >= most {
                            continue;
                        }
                        sent += 1;
                    }
                    due = self.timer.deadline(at, doublings);
                }
                _ if sent >= most => return Ok(Estimate::new(due / NS, RULE)),
                _ => {
                    sent += 1;
                    doublings += 1;
                    due = self.timer.deadline(due, doublings);
                }
            }
        }
        Ok(Estimate::new(f64::INFINITY, RULE).caveat_if(true, || {
            format!("followed over {MOST_STEPS} SYNs and SYN/ACKs: it counts as never given up")
        }))
    }
}

/// Distance that light covers one way in half of `rtt` seconds, in km, in a medium of this refractive index.
pub fn distance_km(rtt: f64, refractive_index: f64) -> Result<Estimate<f64>, InputError> {
    if rtt.is_nan() || rtt < 0.0 {
        return Err(InputError::Negative { quantity: "the round-trip time" });
    }
    if refractive_index.is_nan() || refractive_index < 1.0 {
        return Err(InputError::Below { quantity: "the refractive index", limit: 1 });
    }
    Ok(Estimate::new(rtt / 2.0 * LIGHT_KM_PER_S / refractive_index, "distance = c / n x rtt / 2"))
}

/// Round-trip time over a distance in km, in s, in a medium of this refractive index.
pub fn round_trip(km: f64, refractive_index: f64) -> Result<Estimate<f64>, InputError> {
    if km.is_nan() || km < 0.0 {
        return Err(InputError::Negative { quantity: "the distance" });
    }
    let light = distance_km(2.0, refractive_index)?;
    Ok(Estimate::new(2.0 * km / light.value, "rtt = 2 x distance x n / c"))
}
