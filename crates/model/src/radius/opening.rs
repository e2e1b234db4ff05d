//! The end that opens.

use super::timer::{Span, Timer};
use super::{NS, RULE};
use crate::{Estimate, InputError};

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

    /// Doublings of the wait with this number, from zero.
    fn doublings(&self, wait: u32) -> u32 {
        wait.saturating_sub(self.linear)
    }

    /// When so many waits are over, in ns after a first SYN that leaves at `start` on the clock.
    fn after(&self, waits: u32, start: f64) -> f64 {
        let (mut now, mut done) = (start, 0);
        while done < waits && now < f64::INFINITY {
            let doublings = self.doublings(done);
            let timeout = self.timer.timeout(doublings);
            let wait = self.timer.deadline(now, doublings) - now;
            // A wait that begins where one of its kind has ended is as long as those after it.
            let again = done > 0 && self.timer.timeout(self.doublings(done - 1)) == timeout;
            let alike = match doublings {
                _ if !again => 1,
                _ if timeout == self.timer.timeout(u32::MAX) => u32::MAX,
                0 => self.linear.saturating_add(1) - done,
                _ => 1,
            };
            let alike = alike.min(waits - done);
            now += f64::from(alike) * wait;
            done += alike;
        }
        if now == f64::INFINITY { now } else { now - start }
    }

    /// When so many waits are over, wherever the first SYN falls on the clock.
    fn over(&self, waits: u32) -> Span {
        let starts = self.timer.starts(self.doublings(waits.saturating_sub(1)));
        Span::over(starts.into_iter().map(|start| self.after(waits, start))).ns_to_s()
    }

    /// When SYN number `index` leaves, from zero, in s after the first; `None` if it never does.
    pub fn syn(&self, index: u32) -> Option<Span> {
        let at = self.over(index);
        (self.attempts.is_none_or(|most| index < most) && at.least < self.within).then_some(at)
    }

    /// When each SYN leaves, in s after the first; at most `most` of them.
    pub fn syns(&self, most: usize) -> Vec<Span> {
        (0..).map_while(|index| self.syn(index)).take(most).collect()
    }

    /// The first transmission, counted from zero, that leaves `time` s or more after the second, for a first one that leaves on a tick; `None` where
    /// ten million do not.
    pub fn first_after_second(&self, time: f64) -> Option<u32> {
        const MOST: u32 = 10_000_000;
        let second = self.after(1, 0.0);
        let is_after = |index: u32| self.after(index, 0.0) - second >= time * NS;
        // By doubling and halving: time grows with the index.
        let (mut before, mut after) = (1, 2);
        while !is_after(after) {
            if after >= MOST {
                return None;
            }
            (before, after) = (after, after * 2);
        }
        while after - before > 1 {
            let middle = before + (after - before) / 2;
            *(if is_after(middle) { &mut after } else { &mut before }) = middle;
        }
        Some(after)
    }

    /// When each SYN leaves, in ns, one after another, for a first SYN that leaves at `start` on the clock.
    pub(super) fn syns_from(&self, start: f64) -> impl Iterator<Item = f64> {
        let (mut now, mut index) = (start, 0);
        core::iter::from_fn(move || {
            let at = now - start;
            if self.attempts.is_some_and(|most| index >= most)
                || at >= self.within * NS
                || now == f64::INFINITY
            {
                return None;
            }
            now = self.timer.deadline(now, self.doublings(index));
            index += 1;
            Some(at)
        })
    }

    /// When the attempt is over, in ns after a first SYN that leaves at `start` on the clock.
    pub(super) fn over_from(&self, start: f64) -> f64 {
        let by_count = self.attempts.map_or(f64::INFINITY, |attempts| self.after(attempts, start));
        by_count.min(self.within * NS)
    }

    /// The longest time on the clock that its waits can tell from another, in ns.
    pub(super) fn period(&self) -> f64 {
        self.timer.period(self.attempts.map_or(u32::MAX, |attempts| self.doublings(attempts - 1)))
    }

    /// "Last SYN leaves": the round trip beyond which the answer to the first SYN comes after the last one has left.
    /// Infinite where there is no last one.
    pub fn last_syn(&self) -> Estimate<Span> {
        if self.within == f64::INFINITY {
            let last = self.attempts.map_or(Span::exactly(f64::INFINITY), |most| self.over(most - 1));
            return Estimate::new(last, RULE);
        }
        // The first index that never leaves, by halving: time grows with the index.
        let (mut leaves, mut not) = (0, self.attempts.unwrap_or(u32::MAX));
        while not - leaves > 1 {
            let middle = leaves + (not - leaves) / 2;
            *(if self.syn(middle).is_some() { &mut leaves } else { &mut not }) = middle;
        }
        Estimate::new(self.over(leaves), RULE)
    }

    /// "Connection abandoned": when the wait after the last SYN is over, in s after the first. The round trip beyond
    /// which no connection opens; infinite where the attempt never ends.
    pub fn abandoned(&self) -> Estimate<Span> {
        let by_count = self.attempts.map_or(Span::exactly(f64::INFINITY), |attempts| self.over(attempts));
        Estimate::new(by_count.min(Span::exactly(self.within)), RULE)
    }
}
