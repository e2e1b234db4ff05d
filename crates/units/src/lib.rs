//! Quantities with their units.
//!
//! A bare number never crosses a boundary of Farpath: a duration is a [`Duration`], a rate is a
//! [`Rate`], and both are read from and printed as text that carries its unit. Parsing is exact
//! (decimal, never through a float), and every type prints what it parses back to.
//!
//! | type | text | kept as |
//! | --- | --- | --- |
//! | [`Instant`], [`Duration`] | `20 ms`, `1.5 light-seconds`, `2 h` | nanoseconds, `u64` (584 years) |
//! | [`Bytes`] | `8760 B`, `10 MB`, `64 KiB` | bytes, `u64` |
//! | [`Rate`] | `10 Mbit/s` | bit/s, never zero |
//! | [`Probability`] | `1 %`, `0.01` | fraction, 0 to 1 |
//! | [`Ber`] | `1e-7` | bit errors per bit, 0 to 1 |
//! | [`Length`], [`Angle`] | `550 km`, `51.5 deg` | metres, microdegrees |
//!
//! [`Messages`] says when each message of a constant-rate stream is due; [`DurationHistogram`] how durations are distributed.

mod angle;
mod decimal;
mod error_rate;
mod histogram;
mod length;
mod messages;
mod power;
mod rate;
mod size;
mod time;
mod writing;

pub use angle::Angle;
pub use decimal::ParseQuantityError;
pub use error_rate::{Ber, Probability};
pub use histogram::DurationHistogram;
pub use length::Length;
pub use messages::{DATAGRAM_HEADERS, Late, Messages, Pace, Playout};
pub use power::Power;
pub use rate::{Rate, bit_rate_text};
pub use size::Bytes;
pub use time::{Duration, Instant, LIGHT_KM_PER_S};
pub use writing::Writing;
