//! How far the peer's clock is from this one's.
//!
//! Times are exchanged as NTP does (RFC 5905 §8), and of several exchanges the one with the shortest round trip is taken:
//! it waited least. The offset is then wrong by half that round trip at the most, and by less the more alike both ways
//! are.

use farpath_units::{Duration, Instant};

/// Exchanges for one estimate.
pub const EXCHANGES: usize = 16;
/// After which there are enough, however few.
pub const WITHIN: Duration = Duration::from_secs(3);

/// Four times: by this clock, twice by the other, by this again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    pub asked: Instant,
    pub received_ns: u64,
    pub sent_ns: u64,
    pub heard: Instant,
}

/// An estimate of how far the clocks are apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offset {
    /// When, by this host's clock.
    pub at: Instant,
    /// What the peer's clock says, less what this one's does; in nanoseconds.
    pub ns: i128,
    /// It is off by no more than this.
    pub error: Duration,
}

impl Offset {
    /// From exchanges; `None` where there are none, or where the other clock went backwards.
    pub fn estimated(exchanges: &[Exchange]) -> Option<Offset> {
        let mut best: Option<(u64, Exchange)> = None;
        for exchange in exchanges {
            let there = exchange.sent_ns.checked_sub(exchange.received_ns)?;
            let under_way = exchange.heard.saturating_since(exchange.asked).as_nanos().saturating_sub(there);
            if best.is_none_or(|(shortest, _)| under_way < shortest) {
                best = Some((under_way, *exchange));
            }
        }
        let (under_way, Exchange { asked, received_ns, sent_ns, heard }) = best?;
        let (asked, heard) = (i128::from(asked.as_nanos()), i128::from(heard.as_nanos()));
        let (received, sent) = (i128::from(received_ns), i128::from(sent_ns));
        Some(Offset {
            at: Instant::from_nanos(u64::try_from(heard).ok()?),
            ns: ((received - asked) + (sent - heard)) / 2,
            error: Duration::from_nanos(under_way / 2 + 1),
        })
    }
}

/// Estimates before and after something: clocks do not only differ, they drift apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offsets {
    /// Before.
    pub before: Offset,
    /// After; the same as before, where there was no time for another.
    pub after: Offset,
}

impl Offsets {
    /// By this host's clock, when the peer's said so. Between the two estimates the offset changes steadily.
    pub fn here(&self, far_ns: u64) -> Instant {
        let (before, after) = (self.before, self.after);
        let peer = i128::from(far_ns);
        let span = i128::from(after.at.saturating_since(before.at).as_nanos());
        let since = (peer - before.ns - i128::from(before.at.as_nanos())).clamp(0, span);
        let drift = if span == 0 { 0 } else { (after.ns - before.ns) * since / span };
        Instant::from_nanos(u64::try_from((peer - before.ns - drift).max(0)).unwrap_or(u64::MAX))
    }

    /// What `here` is off by at the most.
    pub fn error(&self) -> Duration {
        self.before.error.max(self.after.error)
    }

    /// By how much the clocks have drifted apart from one estimate to the other, beyond what both may be wrong.
    pub fn drift(&self) -> Duration {
        let moved = self.after.ns.abs_diff(self.before.ns);
        let unsure = u128::from((self.before.error + self.after.error).as_nanos());
        Duration::from_nanos(u64::try_from(moved.saturating_sub(unsure)).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn exchange(at: u64, offset: u64, forward: u64, there: u64, back: u64) -> Exchange {
        Exchange {
            asked: Instant::from_nanos(at),
            received_ns: at + forward + offset,
            sent_ns: at + forward + offset + there,
            heard: Instant::from_nanos(at + forward + there + back),
        }
    }

    proptest! {
        #[test]
        fn the_true_offset_is_within_the_error(
            offset in 0u64..1 << 60,
            delays in prop::collection::vec([0u64..1 << 40, 0u64..1 << 30, 0u64..1 << 40], 1..20),
        ) {
            let exchanges: Vec<Exchange> = (0..)
                .zip(&delays)
                .map(|(n, [forward, there, back])| exchange(n * (1 << 42), offset, *forward, *there, *back))
                .collect();
            let estimate = Offset::estimated(&exchanges).expect("clocks go forwards");
            let wrong = estimate.ns.abs_diff(i128::from(offset));
            prop_assert!(wrong <= u128::from(estimate.error.as_nanos()), "{} by {wrong}", estimate.error);
            let both = Offsets { before: estimate, after: estimate };
            let now = 1 << 50;
            let here = both.here(now + offset).as_nanos();
            prop_assert!(here.abs_diff(now) <= both.error().as_nanos() );
        }
    }

    #[test]
    fn clocks_that_drift_are_followed() {
        let offset = |at: u64, ns| Offset { at: Instant::from_nanos(at), ns, error: Duration::from_nanos(5) };
        // The peer's clock gains 100 ns in 1000.
        let both = Offsets { before: offset(1000, 500), after: offset(2000, 600) };
        assert_eq!(both.here(1500), Instant::from_nanos(1000));
        assert!(both.here(2050).as_nanos().abs_diff(1500) <= 5);
        assert_eq!(both.here(2700), Instant::from_nanos(2100), "after it, as at its end");
        assert_eq!(both.drift(), Duration::from_nanos(90));
    }

    #[test]
    fn a_clock_that_goes_backwards_is_no_clock() {
        let mut odd = exchange(0, 7, 10, 10, 10);
        odd.sent_ns = odd.received_ns - 1;
        assert_eq!(Offset::estimated(&[odd]), None);
        assert_eq!(Offset::estimated(&[]), None);
    }
}
