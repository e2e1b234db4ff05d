//! Waits that are not propagation.

use crate::draw::Draws;
use crate::element::{Built, Declared, DelayKind, DelayPart, Element, Inflow};
use crate::keys::Keys;
use crate::words::each_way;
use crate::{ElementKind, ExplicitRatePacket};
use farpath_path::{Direction, Fate, PacketView, PerDirection, Transit};
use farpath_units::{Bytes, Duration, Instant};

/// What a packet waits for where neither distance nor a queue keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitKind {
    /// Its turn on a shared medium: a slot, a grant, a poll.
    MediumAccess,
    /// Routers, gateways, ciphers.
    Processing,
    /// Interleaver, forward error correction, frames of speech or video.
    Codec,
}

impl WaitKind {
    /// All of them, in the order of their declaration.
    pub const ALL: [WaitKind; 3] = [WaitKind::MediumAccess, WaitKind::Processing, WaitKind::Codec];

    /// As files and tables spell it.
    pub const fn name(self) -> &'static str {
        match self {
            WaitKind::MediumAccess => "medium-access",
            WaitKind::Processing => "processing",
            WaitKind::Codec => "codec",
        }
    }
}

/// A wait that is not propagation: every packet leaves so much later.
#[derive(Debug, Clone, PartialEq)]
pub struct Wait {
    /// For what.
    pub what: WaitKind,
    /// One-way.
    pub delay: PerDirection<Duration>,
}

impl Transit for Wait {
    fn transit(&mut self, now: Instant, direction: Direction, _packet: PacketView) -> Fate {
        Fate::Depart(now + self.delay[direction])
    }
}

impl Element for Wait {
    fn describe(&self) -> String {
        format!("{} of {}", self.what.name(), each_way(&self.delay))
    }

    fn is_random(&self) -> bool {
        false
    }

    fn left_out(&self, _data: Direction) -> Option<String> {
        None
    }

    fn delays(&self, direction: Direction, _size: Bytes) -> Vec<DelayPart> {
        let kind = match self.what {
            WaitKind::MediumAccess => DelayKind::MediumAccess,
            WaitKind::Processing => DelayKind::Processing,
            WaitKind::Codec => DelayKind::Codec,
        };
        vec![DelayPart::fixed(kind, self.delay[direction])]
    }

    fn lone_delay(&self, direction: Direction, _size: Bytes) -> Duration {
        self.delay[direction]
    }

    fn held(&self, direction: Direction, inflow: &mut Inflow) -> Option<Bytes> {
        inflow.bytes_in(self.delay[direction])
    }
}

impl Declared for Wait {
    const NAMES: &'static [&'static str] =
        &[WaitKind::MediumAccess.name(), WaitKind::Processing.name(), WaitKind::Codec.name()];
    const PRINCIPAL: Option<&'static str> = Some("delay");
    const DOCS: &'static str = "\
| `medium-access`, `processing`, `codec` | **`delay`** ↔ | a wait that is not propagation, by what it is for; see the [delay budget](explain.md#the-delay-budget) | required |";

    fn read<K: Keys>(name: &str, keys: &mut K) -> Result<ElementKind, K::Error> {
        let what = WaitKind::ALL.into_iter().find(|what| what.name() == name).expect("one of its names");
        Ok(ElementKind::Wait(Wait { what, delay: keys.each_way("delay", None)? }))
    }

    fn draw(draws: &mut Draws) -> Wait {
        let what = draws.one_of(&WaitKind::ALL);
        Wait { what, delay: draws.each_way(|draws| draws.microseconds(0..=500_000)) }
    }

    fn build<P: ExplicitRatePacket + Clone + Send + 'static>(&self, _name: &str, _seed: u64) -> Built<P> {
        Built::Transit(Box::new(self.clone()))
    }
}
