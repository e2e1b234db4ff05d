//! How far TCP reaches: its timers as round-trip times.
//!
//! Source: Wood, Peoples, Parr, Scotney, Moore, *TCP's protocol radius*, IWSSC 2007, called "the protocol-radius
//! paper" below. A timer that runs from a segment to its answer is a bound on the round trip, half of it a bound on the
//! one-way delay, and that times the speed of light a radius in space. The paper mixes two rules for the outermost
//! one; both are here: the round trip by which the last SYN has left, and that by which the connection is abandoned.
//!
//! Timers expire on ticks of a clock that nobody has told of the connection, so that most radii are no single number
//! but a [`Span`]: what happens at its least for some start against the clock, and at its most for every one. Where a
//! listener's timer runs against a SYN that comes again, the span has two parts with nothing between: a [`Race`].
//!
//! Times are seconds as `f64`: 255 retries of a timer of 3 s are 1.7e77 s, which no integer of ours holds. They are
//! computed in nanoseconds, which are whole numbers that `f64` has exactly up to 104 days.

mod listening;
mod lossy;
mod opening;
#[cfg(test)]
mod tests;
mod timer;

pub use listening::{Forgets, Listening, Race};
pub use lossy::{Connects, FirstData, LoneSegment, LossyOpening, LossyWay, MOST_SYNS_FOLLOWED, Opened};
pub use opening::Opening;
pub use timer::{Span, Timer};

use crate::{Estimate, InputError};

pub use farpath_units::LIGHT_KM_PER_S;

const NS: f64 = 1e9;

const RULE: &str =
    "Wood, Peoples, Parr, Scotney, Moore 2007; RFC 6298 section 5.5: each timeout doubles the next";

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
