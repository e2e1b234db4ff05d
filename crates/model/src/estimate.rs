//! What a formula gives back.

use core::fmt;
use farpath_units::{Bytes, Duration, Rate};

/// A value, the source of its formula, and every reason to doubt it.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate<T> {
    /// The value of the formula, also where it is outside its domain.
    pub value: T,
    /// Paper or RFC, with the equation or section.
    pub source: &'static str,
    /// In plain words, where these inputs leave the domain of the formula; empty inside it.
    pub caveats: Vec<String>,
}

impl<T> Estimate<T> {
    pub(crate) fn new(value: T, source: &'static str) -> Estimate<T> {
        Estimate { value, source, caveats: Vec::new() }
    }

    /// Adds a caveat where `holds`.
    pub(crate) fn caveat_if(mut self, holds: bool, caveat: impl FnOnce() -> String) -> Estimate<T> {
        if holds {
            self.caveats.push(caveat());
        }
        self
    }

    /// The same estimate of another quantity: `change` is applied to the value, source and caveats stay.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Estimate<U> {
        Estimate { value: change(self.value), source: self.source, caveats: self.caveats }
    }
}

/// An input for which a formula says nothing at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// A size, delay or count that the formula divides by.
    #[error("{quantity} must be above zero")]
    Zero {
        /// The input, in the words of its documentation.
        quantity: &'static str,
    },
    /// A value above what the formula can be asked for.
    #[error("{quantity} must be at most {limit}")]
    Above {
        /// The input, in the words of its documentation.
        quantity: &'static str,
        /// The largest value allowed.
        limit: u64,
    },
    /// A value below what the formula can be asked for.
    #[error("{quantity} must be at least {limit}")]
    Below {
        /// The input, in the words of its documentation.
        quantity: &'static str,
        /// The smallest value allowed.
        limit: u64,
    },
    /// A time that is zero, negative, endless or not a number.
    #[error("{quantity} must be a time above zero")]
    NotPositive {
        /// The input, in the words of its documentation.
        quantity: &'static str,
    },
    /// A quantity below zero, or not a number.
    #[error("{quantity} must not be negative")]
    Negative {
        /// The input, in the words of its documentation.
        quantity: &'static str,
    },
}

/// Refuses a zero by name.
pub(crate) fn above_zero(quantity: &'static str, value: u64) -> Result<(), InputError> {
    if value == 0 { Err(InputError::Zero { quantity }) } else { Ok(()) }
}

/// Bytes per second, never negative. Infinite where a formula sets no limit (no loss and no window).
///
/// Formulas give fractions of a bit per second (1 186 605.98 B/s), which [`Rate`] does not hold.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Throughput(f64);

impl Throughput {
    pub(crate) fn from_bytes_per_s(bytes_per_s: f64) -> Throughput {
        debug_assert!(bytes_per_s >= 0.0, "a throughput is never negative nor undefined: {bytes_per_s}");
        Throughput(bytes_per_s)
    }

    /// In bytes per second; may be infinite.
    pub const fn bytes_per_s(self) -> f64 {
        self.0
    }

    /// In bit/s; may be infinite.
    pub fn bit_per_s(self) -> f64 {
        self.0 * 8.0
    }

    /// As a rate in whole bit/s; `None` where it rounds to zero or is past 2^64 bit/s.
    pub fn rate(self) -> Option<Rate> {
        let bit_per_s = libm::round(self.bit_per_s());
        if bit_per_s < u64::MAX as f64 { Rate::from_bit_per_s(bit_per_s as u64) } else { None }
    }

    /// Time that `size` takes; [`Duration::MAX`] where that is 584 years or more, zero at an infinite rate.
    pub fn time_for(self, size: Bytes) -> Duration {
        if size == Bytes::ZERO {
            return Duration::ZERO;
        }
        Duration::from_secs_f64(size.0 as f64 / self.0)
    }
}

impl fmt::Display for Throughput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad_integral(true, "", &format!("{:.2} B/s", self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throughput_converts_and_saturates() {
        let t = Throughput::from_bytes_per_s(219_000.0);
        assert_eq!(t.rate().map(Rate::bit_per_s), Some(1_752_000));
        assert_eq!(t.time_for(Bytes(219_000)), Duration::from_secs(1));
        assert_eq!(Throughput::from_bytes_per_s(f64::INFINITY).rate(), None);
        assert_eq!(Throughput::from_bytes_per_s(f64::INFINITY).time_for(Bytes(1)), Duration::ZERO);
        assert_eq!(Throughput::from_bytes_per_s(0.0).rate(), None);
        assert_eq!(Throughput::from_bytes_per_s(0.0).time_for(Bytes(1)), Duration::MAX);
        assert_eq!(Throughput::from_bytes_per_s(0.0).time_for(Bytes::ZERO), Duration::ZERO);
        assert_eq!(t.to_string(), "219000.00 B/s");
    }
}
