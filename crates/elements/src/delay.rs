//! Propagation.

use crate::draw::Draws;
use crate::element::{Built, Declared, DelayKind, DelayPart, DelayTime, Element, Inflow};
use crate::keys::{Keys, ReadValue, Source};
use crate::line::Line;
use crate::orbit::{self, Passes};
use crate::over_time::{InRun, Setting, still};
use crate::words::each_way;
use crate::{ElementKind, ExplicitRatePacket};
use farpath_path::{Direction, Fate, PacketView, PerDirection, Transit};
use farpath_units::{Bytes, Duration, Instant, Probability};

/// Propagation: every packet leaves so much later.
#[derive(Debug, Clone, PartialEq)]
pub struct Delay {
    /// One-way.
    pub delay: PerDirection<Duration>,
}

impl Transit for Delay {
    fn transit(&mut self, now: Instant, direction: Direction, _packet: PacketView) -> Fate {
        Fate::Depart(now + self.delay[direction])
    }

    fn fixed_delay(&self) -> Option<PerDirection<Duration>> {
        Some(self.delay)
    }
}

impl Element for Delay {
    fn describe(&self) -> String {
        format!("delay of {}", each_way(&self.delay))
    }

    fn is_random(&self) -> bool {
        false
    }

    fn left_out(&self, _data: Direction) -> Option<String> {
        None
    }

    fn delays(&self, direction: Direction, _size: Bytes) -> Vec<DelayPart> {
        vec![DelayPart::fixed(DelayKind::Propagation, self.delay[direction])]
    }

    fn lone_delay(&self, direction: Direction, _size: Bytes) -> Duration {
        self.delay[direction]
    }

    fn held(&self, direction: Direction, inflow: &mut Inflow) -> Option<Bytes> {
        inflow.bytes_in(self.delay[direction])
    }

    fn scale_delay(&mut self, direction: Direction, factor: f64) -> bool {
        self.delay[direction] = Duration::from_secs_f64(self.delay[direction].as_secs_f64() * factor);
        true
    }
}

impl Declared for Delay {
    const NAMES: &'static [&'static str] = &["delay"];
    const PRINCIPAL: Option<&'static str> = Some("delay");
    const DOCS: &'static str = "\
| `delay` | **`delay`** ↔ | propagation, one way; or `{ orbit = { .. } }`, the same both ways: that over a [satellite](traces.md#orbits), with its contacts | required, or `distance` |
| | `distance` ↔ | in its place: `384400 km`, `1.5 light-seconds`, `0.5 AU`, or a body such as `moon` ([places](../places/bodies.toml)) | |
| | `medium` | over that distance: `vacuum`, `air`, `fibre`, `coax` ([media](../places/media.toml)) | `vacuum` |
| | `reorder` | where the delay [changes over time](traces.md#values-that-change): whether packets overtake each other when it shrinks | `false` |";
    const WEIGHT: u32 = 2;

    fn read<K: Keys>(_name: &str, keys: &mut K) -> Result<ElementKind, K::Error> {
        let reorder: Option<bool> = keys.optional("reorder")?;
        if keys.has("delay") && !keys.has("distance") && !keys.has("medium") {
            if let Some(orbit) = keys.optional::<MaybeOrbit>("delay")?.and_then(|found| found.0) {
                return match reorder {
                    None => Ok(ElementKind::Passes(orbit)),
                    Some(_) => {
                        Err(keys.refuse("reorder", "packets over an orbit keep their order".to_owned()))
                    }
                };
            }
            let delay = keys.each_way::<Setting<Duration>>("delay", None)?;
            if still(&delay).is_none() {
                let reorder = reorder.unwrap_or(false);
                return Ok(ElementKind::VaryingDelay(VaryingDelay { delay, reorder }));
            }
        }
        if reorder.is_some() {
            let reason = "expected it beside a `delay` that changes: one that stays keeps packets in order";
            return Err(keys.refuse("reorder", reason.to_owned()));
        }
        Ok(ElementKind::Delay(Delay { delay: keys.propagation()? }))
    }

    fn draw(draws: &mut Draws) -> Delay {
        Delay { delay: draws.each_way(Draws::delay) }
    }

    fn build<P: ExplicitRatePacket + Clone + Send + 'static>(&self, _name: &str, _seed: u64) -> Built<P> {
        Built::Transit(Box::new(self.clone()))
    }
}

/// Propagation that changes over time: a packet has the delay of the moment at which it comes in.
#[derive(Debug, Clone, PartialEq)]
pub struct VaryingDelay {
    /// One-way.
    pub delay: PerDirection<Setting<Duration>>,
    /// Whether packets overtake each other where the delay shrinks; else each leaves behind those that came before it.
    pub reorder: bool,
}

impl VaryingDelay {
    fn spread(&self, direction: Direction) -> Duration {
        let (least, greatest) = self.delay[direction].range();
        greatest - least
    }
}

impl Element for VaryingDelay {
    fn describe(&self) -> String {
        let order = if self.reorder { ", packets overtake each other" } else { "" };
        format!("delay {}{order}", each_way(&self.delay))
    }

    fn is_random(&self) -> bool {
        Direction::BOTH.into_iter().any(|way| self.delay[way].is_random())
    }

    fn entries(&self) -> usize {
        Direction::BOTH.map(|way| self.delay[way].entries()).iter().sum()
    }

    fn left_out(&self, data: Direction) -> Option<String> {
        let mean = self.delay[data].mean();
        (!self.delay[data].stays()).then(|| {
            format!("how the delay varies is left out of the prediction, which has its mean of {mean}")
        })
    }

    fn delays(&self, direction: Direction, _size: Bytes) -> Vec<DelayPart> {
        let (least, mean) = (self.delay[direction].range().0, self.delay[direction].mean());
        let time = DelayTime::Varying {
            expected_s: Some((mean - least).as_secs_f64()),
            full_s: self.spread(direction).as_secs_f64(),
        };
        vec![
            DelayPart::fixed(DelayKind::Propagation, least),
            DelayPart { kind: DelayKind::Propagation, time },
        ]
    }

    fn lone_delay(&self, direction: Direction, _size: Bytes) -> Duration {
        self.delay[direction].range().0
    }

    fn as_hop(&self, direction: Direction, _bare: Bytes) -> (Duration, Option<Line>) {
        (self.delay[direction].mean(), None)
    }

    fn held(&self, direction: Direction, inflow: &mut Inflow) -> Option<Bytes> {
        inflow.bytes_in(self.delay[direction].range().1)
    }

    fn reordering(&self, direction: Direction) -> Option<(Probability, Duration)> {
        self.reorder.then(|| (Probability::ONE, self.spread(direction)))
    }

    fn remove_reordering(&mut self) {
        self.reorder = false;
    }
}

impl Declared for VaryingDelay {
    /// It is what [`Delay`] becomes where its delay changes.
    const NAMES: &'static [&'static str] = &[];
    const PRINCIPAL: Option<&'static str> = None;
    const DOCS: &'static str = "";

    fn read<K: Keys>(name: &str, keys: &mut K) -> Result<ElementKind, K::Error> {
        Delay::read(name, keys)
    }

    fn draw(draws: &mut Draws) -> VaryingDelay {
        let delay = draws.each_way(|draws| Setting::draw(draws, Draws::delay));
        VaryingDelay { delay, reorder: draws.chance(30) }
    }

    fn build<P: ExplicitRatePacket + Clone + Send + 'static>(&self, name: &str, seed: u64) -> Built<P> {
        Built::Transit(Box::new(self.lanes(name, seed)))
    }
}

impl VaryingDelay {
    pub(crate) fn lanes(&self, name: &str, seed: u64) -> Lanes {
        let lane = |way| Lane { delay: self.delay[way].in_run(name, seed), left: Instant::ZERO };
        Lanes { lanes: PerDirection::from_fn(lane), reorder: self.reorder }
    }
}

/// An orbit, where a delay is one.
struct MaybeOrbit(Option<Box<Passes>>);

impl ReadValue for MaybeOrbit {
    const EXPECTED: &'static str = <Setting<Duration> as ReadValue>::EXPECTED;
    const IS_TABLE: bool = true;
    fn read<S: Source>(source: &S) -> Result<MaybeOrbit, S::Error> {
        if !source.has_key("orbit") {
            return Ok(MaybeOrbit(None));
        }
        let read = source.table(|keys| keys.required::<orbit::Read>("orbit")).transpose()?;
        Ok(MaybeOrbit(read.map(|orbit| Box::new(orbit.0))))
    }
}

#[derive(Debug)]
pub(crate) struct Lanes {
    lanes: PerDirection<Lane>,
    reorder: bool,
}

#[derive(Debug)]
struct Lane {
    delay: InRun<Duration>,
    /// When the last packet leaves that is kept in order.
    left: Instant,
}

impl Transit for Lanes {
    fn transit(&mut self, now: Instant, direction: Direction, _packet: PacketView) -> Fate {
        let lane = &mut self.lanes[direction];
        let due = now + lane.delay.value_at(now);
        if self.reorder {
            return Fate::Depart(due);
        }
        lane.left = lane.left.max(due);
        Fate::Depart(lane.left)
    }

    fn keeps_order(&self, _direction: Direction) -> bool {
        !self.reorder
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_packet_leaves_one_propagation_delay_later() {
        let mut delay = Delay {
            delay: PerDirection { forward: Duration::from_millis(250), reverse: Duration::from_millis(10) },
        };
        let packet = PacketView { size: Bytes(1500), carries_data: true };
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        assert_eq!(delay.transit(at(5), Direction::Forward, packet), Fate::Depart(at(255)));
        assert_eq!(delay.transit(at(5), Direction::Reverse, packet), Fate::Depart(at(15)));
    }
}
