//! Loss by bit errors.

use super::lost_if;
use farpath_path::{Chance, Direction, DropCause, Fate, Generator, PacketView, PerDirection, Transit};
use farpath_units::{Ber, Bytes, Instant, Probability};

/// The probability that a packet of `exposed` bytes is hit: `1 - (1 - BER)^bits`, or `BER * bits`
/// capped at 1.
pub(crate) fn packet_error_rate(ber: Ber, exposed: Bytes, linear: bool) -> Probability {
    if linear {
        Probability::new(ber.to_per_linear(exposed)).unwrap_or(Probability::ONE)
    } else {
        ber.to_per(exposed)
    }
}

/// Drops each packet with the probability that at least one of its own bits arrives wrong.
#[derive(Debug)]
pub(crate) struct BitErrors {
    ber: PerDirection<Ber>,
    overhead: Bytes,
    linear: bool,
    /// IP length of the last packet and what it came to: most packets of a direction are of one length.
    last: PerDirection<(Bytes, Chance)>,
    draws: PerDirection<Generator>,
}

impl BitErrors {
    pub fn new(
        ber: PerDirection<Ber>,
        overhead: Bytes,
        linear: bool,
        draws: PerDirection<Generator>,
    ) -> BitErrors {
        let last = ber.map(|ber| (Bytes::ZERO, packet_error_rate(ber, overhead, linear).into()));
        BitErrors { ber, overhead, linear, last, draws }
    }
}

impl Transit for BitErrors {
    fn transit(&mut self, now: Instant, direction: Direction, packet: PacketView) -> Fate {
        let last = &mut self.last[direction];
        if last.0 != packet.size {
            let exposed = packet.size + self.overhead;
            *last = (packet.size, packet_error_rate(self.ber[direction], exposed, self.linear).into());
        }
        lost_if(self.draws[direction].happens(last.1), DropCause::BitErrors, now)
    }
}
