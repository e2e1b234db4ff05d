//! Loss by bit errors.

use super::lost_if;
use super::varying::VaryingBitErrors;
use crate::draw::Draws;
use crate::element::{Built, Declared, DelayPart, Element, FULL_PACKET};
use crate::keys::Keys;
use crate::over_time::{Setting, still};
use crate::words::each_way;
use crate::{ElementKind, ExplicitRatePacket};
use farpath_path::{Chance, Direction, DropCause, Fate, Generator, PacketView, PerDirection, Transit};
use farpath_units::{Ber, Bytes, Instant, Probability};

/// Independent bit errors: a packet of n bits is dropped with probability `1 - (1 - BER)^n`. It has cost the time of every link
/// that it passed before.
#[derive(Debug, Clone, PartialEq)]
pub struct BitErrors {
    /// Per bit.
    pub ber: PerDirection<Ber>,
    /// Bytes exposed per packet on top of the IP packet (header and FCS of the frame).
    pub overhead: Bytes,
    /// Use `BER * n` (at most 1) in place of the exact form, as many papers do.
    pub linear: bool,
}

impl Element for BitErrors {
    fn describe(&self) -> String {
        format!("bit errors: BER {}", each_way(&self.ber))
    }

    fn is_random(&self) -> bool {
        self.ber != PerDirection::both(Ber::ZERO)
    }

    fn left_out(&self, _data: Direction) -> Option<String> {
        None
    }

    fn delays(&self, _direction: Direction, _size: Bytes) -> Vec<DelayPart> {
        Vec::new()
    }

    fn warnings(&self, direction: Direction) -> Vec<String> {
        if !self.linear {
            return Vec::new();
        }
        let (ber, exposed) = (self.ber[direction], FULL_PACKET + self.overhead);
        let (linear, exact) = (ber.to_per_linear(exposed), ber.to_per(exposed).fraction());
        let warning = (linear > 1.0).then(|| {
            format!(
                "the linear form gives a packet error rate of {linear:.3} at {FULL_PACKET} and drops every such \
                 packet; the exact one is {exact:.6}"
            )
        });
        warning.into_iter().collect()
    }

    fn loss_rate(&self, direction: Direction, packet: PacketView) -> Probability {
        packet_error_rate(self.ber[direction], packet.size + self.overhead, self.linear)
    }

    fn remove_loss(&mut self) {
        self.ber = PerDirection::both(Ber::ZERO);
    }
}

impl Declared for BitErrors {
    const NAMES: &'static [&'static str] = &["bit-errors"];
    const PRINCIPAL: Option<&'static str> = Some("ber");
    const DOCS: &'static str = "\
| `bit-errors` | **`ber`** ↔ | bit error rate, a plain number | required |
| | `overhead` | bytes exposed beside the IP packet | `0 B` |
| | `linear` | `BER x bits` in place of `1 - (1 - BER)^bits` | `false` |";

    fn read<K: Keys>(_name: &str, keys: &mut K) -> Result<ElementKind, K::Error> {
        let ber = keys.each_way("ber", Some(Setting::Still(Ber::ZERO)))?;
        let (overhead, linear) = (keys.or("overhead", Bytes::ZERO)?, keys.or("linear", false)?);
        Ok(match still(&ber) {
            Some(ber) => ElementKind::BitErrors(BitErrors { ber, overhead, linear }),
            None => ElementKind::VaryingBitErrors(VaryingBitErrors { ber, overhead, linear }),
        })
    }

    fn draw(draws: &mut Draws) -> BitErrors {
        BitErrors {
            ber: draws.each_way(Draws::error_rate),
            overhead: draws.bytes(0..=40),
            linear: draws.chance(50),
        }
    }

    fn build<P: ExplicitRatePacket + Clone + Send + 'static>(&self, name: &str, seed: u64) -> Built<P> {
        let BitErrors { ber, overhead, linear } = *self;
        let last = ber.map(|ber| (Bytes::ZERO, packet_error_rate(ber, overhead, linear).into()));
        let draws = Generator::per_direction(seed, name);
        Built::Transit(Box::new(BitErrorProcess { ber, overhead, linear, last, draws }))
    }
}

/// The probability that a packet of `exposed` bytes is hit: `1 - (1 - BER)^bits`, or `BER * bits` capped at 1.
pub(super) fn packet_error_rate(ber: Ber, exposed: Bytes, linear: bool) -> Probability {
    if linear {
        Probability::new(ber.to_per_linear(exposed)).unwrap_or(Probability::ONE)
    } else {
        ber.to_per(exposed)
    }
}

#[derive(Debug)]
struct BitErrorProcess {
    ber: PerDirection<Ber>,
    overhead: Bytes,
    linear: bool,
    /// IP length of the last packet and what it came to: most packets of a direction are of one length.
    last: PerDirection<(Bytes, Chance)>,
    draws: PerDirection<Generator>,
}

impl Transit for BitErrorProcess {
    fn transit(&mut self, now: Instant, direction: Direction, packet: PacketView) -> Fate {
        let last = &mut self.last[direction];
        if last.0 != packet.size {
            let exposed = packet.size + self.overhead;
            *last = (packet.size, packet_error_rate(self.ber[direction], exposed, self.linear).into());
        }
        lost_if(self.draws[direction].happens(last.1), DropCause::BitErrors, now)
    }
}
