//! Instants and durations, in whole nanoseconds.

use crate::decimal::{Kind, ParseQuantityError};
use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Div, Mul, Sub};
use core::str::FromStr;

const SECOND: u64 = 1_000_000_000;

const DURATION: Kind = Kind {
    expected: "a duration",
    example: "20 ms",
    units: &[
        ("ns", 1),
        ("us", 1_000),
        ("µs", 1_000),
        ("ms", 1_000_000),
        ("s", SECOND),
        ("min", 60 * SECOND),
        ("h", 3600 * SECOND),
        ("d", 86_400 * SECOND),
        ("light-seconds", SECOND),
        ("light-second", SECOND),
        ("light-minutes", 60 * SECOND),
        ("light-hours", 3600 * SECOND),
    ],
    whole: false,
};

/// Units that a duration prints in; minutes and hours are for input, seconds compare better.
const SHOWN: &[(&str, u64)] = &[("s", SECOND), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];

/// Speed of light in vacuum, in km/s (exact by definition of the metre).
pub const LIGHT_KM_PER_S: f64 = 299_792.458;

/// A length of time, in nanoseconds. Reads `20 ms`, `0.5 s`, `2 h`, `1.5 light-seconds`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(u64);

impl Duration {
    /// No time at all.
    pub const ZERO: Duration = Duration(0);
    /// The longest, 584 years.
    pub const MAX: Duration = Duration(u64::MAX);

    /// From whole nanoseconds.
    pub const fn from_nanos(ns: u64) -> Duration {
        Duration(ns)
    }

    /// From whole microseconds.
    pub const fn from_micros(us: u64) -> Duration {
        Duration(us * 1_000)
    }

    /// From whole milliseconds.
    pub const fn from_millis(ms: u64) -> Duration {
        Duration(ms * 1_000_000)
    }

    /// From whole seconds.
    pub const fn from_secs(s: u64) -> Duration {
        Duration(s * SECOND)
    }

    /// From seconds, rounded to the nanosecond; negative and NaN give zero, too long gives [`Duration::MAX`].
    pub fn from_secs_f64(s: f64) -> Duration {
        Duration(libm::round(s * SECOND as f64) as u64)
    }

    /// Whole nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds, to the precision of an `f64`.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / SECOND as f64
    }

    /// Whether it is no time at all.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// `self - other`, or zero where `other` is longer.
    pub const fn saturating_sub(self, other: Duration) -> Duration {
        Duration(self.0.saturating_sub(other.0))
    }

    /// The distance between the two, whichever is longer.
    pub const fn abs_diff(self, other: Duration) -> Duration {
        Duration(self.0.abs_diff(other.0))
    }

    /// `self * 2^exponent`, or [`Duration::MAX`] where that is too long.
    pub fn doubled(self, exponent: u32) -> Duration {
        if self.0 == 0 || exponent <= self.0.leading_zeros() {
            Duration(self.0.checked_shl(exponent).unwrap_or(0))
        } else {
            Duration::MAX
        }
    }
}

impl Add for Duration {
    type Output = Duration;
    fn add(self, other: Duration) -> Duration {
        Duration(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, other: Duration) {
        *self = *self + other;
    }
}

impl Sub for Duration {
    type Output = Duration;
    fn sub(self, other: Duration) -> Duration {
        Duration(self.0.checked_sub(other.0).expect("the shorter duration is subtracted from the longer"))
    }
}

impl Mul<u64> for Duration {
    type Output = Duration;
    fn mul(self, factor: u64) -> Duration {
        Duration(self.0.saturating_mul(factor))
    }
}

impl Div<u64> for Duration {
    type Output = Duration;
    fn div(self, divisor: u64) -> Duration {
        Duration(self.0 / divisor)
    }
}

impl Sum for Duration {
    fn sum<I: Iterator<Item = Duration>>(durations: I) -> Duration {
        durations.fold(Duration::ZERO, Add::add)
    }
}

impl FromStr for Duration {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Duration, ParseQuantityError> {
        DURATION.parse(text).map(Duration)
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 && f.precision().is_none() {
            return f.pad_integral(true, "", "0 s");
        }
        DURATION.format(f, self.0, SHOWN)
    }
}

/// A moment, counted from the start of the run. It is not the machine's clock: nothing in the core owns one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// The start of the run.
    pub const ZERO: Instant = Instant(0);
    /// The end of time: 584 years after the start.
    pub const MAX: Instant = Instant(u64::MAX);

    /// From nanoseconds since the start.
    pub const fn from_nanos(ns: u64) -> Instant {
        Instant(ns)
    }

    /// Nanoseconds since the start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the start.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / SECOND as f64
    }

    /// Time since the start.
    pub const fn since_start(self) -> Duration {
        Duration(self.0)
    }

    /// Time since `earlier`, or zero where that is later than `self`.
    pub const fn saturating_since(self, earlier: Instant) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }

    /// The earlier of two that may be never.
    pub fn earliest(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
        match (one, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            _ => one.or(other),
        }
    }

    /// The first multiple of `tick` at or after this instant; the instant itself where `tick` is zero.
    pub fn next_multiple_of(self, tick: Duration) -> Instant {
        if tick.is_zero() {
            return self;
        }
        Instant(self.0.checked_next_multiple_of(tick.0).unwrap_or(u64::MAX))
    }

    /// The last multiple of `tick` that is not later; itself where `tick` is zero.
    pub fn last_multiple_of(self, tick: Duration) -> Instant {
        Instant(self.0 - self.0.checked_rem(tick.0).unwrap_or(0))
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, duration: Duration) -> Instant {
        Instant(self.0.saturating_add(duration.0))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl Sub for Instant {
    type Output = Duration;
    fn sub(self, earlier: Instant) -> Duration {
        Duration(self.0.checked_sub(earlier.0).expect("the earlier instant is subtracted from the later"))
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.since_start().fmt(f)
    }
}
