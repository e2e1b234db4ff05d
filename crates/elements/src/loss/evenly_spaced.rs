//! Evenly spaced loss.

use super::lost_if;
use crate::draw::Draws;
use crate::element::{Built, Declared, DelayPart, Element, Fault};
use crate::keys::{Keys, ReadValue, Source};
use crate::words::each_way;
use crate::{ElementKind, ExplicitRatePacket, PacketCount};
use farpath_path::{Direction, DropCause, Fate, Generator, PacketView, PerDirection, Transit};
use farpath_units::{Bytes, Instant, Probability};

/// Evenly spaced loss: every `every`-th packet is dropped, the first of them after `phase` others. It is what closed forms with
/// a fixed distance between losses assume (Mathis et al. 1997).
#[derive(Debug, Clone, PartialEq)]
pub struct EvenlySpaced {
    /// One drop in so many packets; `None` drops nothing.
    pub every: PerDirection<Option<u64>>,
    /// How many packets pass before the first drop; `every - 1` makes it the `every`-th packet. With `None` each direction
    /// draws it from `[0, every)`, so that a set of seeds covers the phases.
    pub phase: Option<u64>,
    /// What is counted.
    pub count: PacketCount,
}

impl Element for EvenlySpaced {
    fn describe(&self) -> String {
        let every = self.every.map(|every| match every {
            Some(every) => format!("one packet in {every}"),
            None => "no packet".to_owned(),
        });
        format!("evenly spaced loss of {}{}", each_way(&every), self.count.words())
    }

    fn is_random(&self) -> bool {
        self.phase.is_none() && self.every != PerDirection::both(None)
    }

    fn left_out(&self, _data: Direction) -> Option<String> {
        None
    }

    fn delays(&self, _direction: Direction, _size: Bytes) -> Vec<DelayPart> {
        Vec::new()
    }

    fn validate(&self) -> Result<(), Fault> {
        let zero = Direction::BOTH.into_iter().find(|&way| self.every[way] == Some(0));
        zero.map_or(Ok(()), |way| {
            Err(Fault { key: format!("{way}.every"), reason: "expected 1 or more, found 0".to_owned() })
        })
    }

    fn loss_rate(&self, direction: Direction, packet: PacketView) -> Probability {
        if !self.count.counts(packet) {
            return Probability::ZERO;
        }
        let share = self.every[direction].map_or(0.0, |every| 1.0 / every as f64);
        Probability::new(share).unwrap_or(Probability::ONE)
    }

    fn is_evenly_spaced(&self) -> bool {
        true
    }

    fn remove_loss(&mut self) {
        self.every = PerDirection::both(None);
    }
}

impl Declared for EvenlySpaced {
    const NAMES: &'static [&'static str] = &["evenly-spaced-loss"];
    const PRINCIPAL: Option<&'static str> = Some("every");
    const DOCS: &'static str = "\
| `evenly-spaced-loss` | **`every`** ↔ | one packet lost in so many, or `none` | required |
| | `phase` | packets that pass before the first loss | drawn, per seed |
| | `count` | `all` or `data` | `all` |";

    fn read<K: Keys>(_name: &str, keys: &mut K) -> Result<ElementKind, K::Error> {
        Ok(ElementKind::EvenlySpaced(EvenlySpaced {
            every: keys.each_way("every", Some(Every(None)))?.map(|every| every.0),
            phase: keys.optional("phase")?,
            count: keys.or("count", PacketCount::All)?,
        }))
    }

    fn draw(draws: &mut Draws) -> EvenlySpaced {
        EvenlySpaced {
            every: draws.each_way(|draws| draws.chance(70).then(|| draws.between(3..=1000))),
            phase: draws.option(|draws| draws.below(10)),
            count: draws.packet_count(),
        }
    }

    fn build<P: ExplicitRatePacket + Clone + Send + 'static>(&self, name: &str, seed: u64) -> Built<P> {
        let mut draws = Generator::per_direction(seed, name);
        let pass = PerDirection::from_fn(|way| {
            self.phase.unwrap_or_else(|| draws[way].below(self.every[way].unwrap_or(0)))
        });
        Built::Transit(Box::new(EvenlySpacedProcess { every: self.every, pass, count: self.count }))
    }
}

/// How far apart the losses are; nothing where there are none.
#[derive(Clone)]
struct Every(Option<u64>);

impl ReadValue for Every {
    const EXPECTED: &'static str = "a number of packets, or `none`";
    fn read<S: Source>(source: &S) -> Result<Every, S::Error> {
        match source.unless::<u64>("none")? {
            Some(0) => {
                let reason = "one loss in zero packets is none in any; for no loss say `none`";
                Err(source.refuse(reason.to_owned()))
            }
            every => Ok(Every(every)),
        }
    }
}

/// Drops one counted packet in `every`, at even distances: of n packets exactly `floor((n + every - 1 - phase) / every)` where
/// `phase` is below `every`.
#[derive(Debug)]
struct EvenlySpacedProcess {
    every: PerDirection<Option<u64>>,
    /// Counted packets that pass before the next drop.
    pass: PerDirection<u64>,
    count: PacketCount,
}

impl Transit for EvenlySpacedProcess {
    fn transit(&mut self, now: Instant, direction: Direction, packet: PacketView) -> Fate {
        let Some(every) = self.every[direction].filter(|_| self.count.counts(packet)) else {
            return Fate::Depart(now);
        };
        let pass = &mut self.pass[direction];
        let lost = *pass == 0;
        *pass = if lost { every - 1 } else { *pass - 1 };
        lost_if(lost, DropCause::Loss, now)
    }
}
