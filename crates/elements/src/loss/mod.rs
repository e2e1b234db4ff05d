//! Loss processes: what decides that a packet does not arrive.

mod bernoulli;
mod bit_errors;
mod evenly_spaced;
mod gilbert_elliott;
mod listed;

pub(crate) use bernoulli::Bernoulli;
pub(crate) use bit_errors::{BitErrors, packet_error_rate};
pub(crate) use evenly_spaced::EvenlySpaced;
pub(crate) use gilbert_elliott::{GilbertElliott, stationary_bad};
pub(crate) use listed::Listed;

use crate::PacketCount;
use farpath_path::{DropCause, Fate, PacketView};
use farpath_units::Instant;

impl PacketCount {
    /// Whether `packet` is counted.
    fn counts(self, packet: PacketView) -> bool {
        match self {
            PacketCount::All => true,
            PacketCount::Data => packet.carries_data,
        }
    }
}

/// Lost to `cause`, or on its way at once.
fn lost_if(lost: bool, cause: DropCause, now: Instant) -> Fate {
    if lost { Fate::Drop(cause) } else { Fate::Depart(now) }
}
