//! Loss processes: what decides that a packet does not arrive.

mod bernoulli;
mod bit_errors;
mod evenly_spaced;
mod gilbert_elliott;
mod listed;
mod varying;

pub use bernoulli::Bernoulli;
pub use bit_errors::BitErrors;
pub use evenly_spaced::EvenlySpaced;
pub use gilbert_elliott::GilbertElliott;
pub use listed::Listed;
pub use varying::{VaryingBitErrors, VaryingLoss};

use crate::keys::{ReadValue, Source, word};
use farpath_path::{DropCause, Fate, PacketView};
use farpath_units::Instant;

/// Which packets a counting loss process counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketCount {
    /// Every packet.
    All,
    /// Only those that carry TCP payload; the others always pass.
    Data,
}

impl PacketCount {
    /// Whether `packet` is counted.
    fn counts(self, packet: PacketView) -> bool {
        match self {
            PacketCount::All => true,
            PacketCount::Data => packet.carries_data,
        }
    }

    /// Behind a sentence that says what is lost.
    const fn words(self) -> &'static str {
        match self {
            PacketCount::All => "",
            PacketCount::Data => " among those with data",
        }
    }
}

impl ReadValue for PacketCount {
    const EXPECTED: &'static str = "`all` or `data`";
    fn read<S: Source>(source: &S) -> Result<PacketCount, S::Error> {
        word(source, &[("all", PacketCount::All), ("data", PacketCount::Data)])
    }
}

/// Lost to `cause`, or on its way at once.
fn lost_if(lost: bool, cause: DropCause, now: Instant) -> Fate {
    if lost { Fate::Drop(cause) } else { Fate::Depart(now) }
}
