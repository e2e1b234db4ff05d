//! Burst loss by two states.

use super::lost_if;
use crate::draw::Draws;
use crate::element::{Built, Declared, DelayPart, Element};
use crate::keys::Keys;
use crate::{ElementKind, ExplicitRatePacket};
use farpath_path::{Chance, Direction, DropCause, Fate, Generator, PacketView, PerDirection, Transit};
use farpath_units::{Bytes, Instant, Probability};

/// Two-state burst loss (Gilbert 1960 has no loss in the good state, Elliott 1963 has both). The state moves once per packet,
/// before its fate is drawn; it starts from the stationary distribution, so that short flows see the same mean.
#[derive(Debug, Clone, PartialEq)]
pub struct GilbertElliott {
    /// Probability per packet of going from the good state to the bad one.
    pub good_to_bad: Probability,
    /// Probability per packet of going back.
    pub bad_to_good: Probability,
    /// Loss rate in the good state.
    pub loss_good: Probability,
    /// Loss rate in the bad state.
    pub loss_bad: Probability,
    /// Where it acts.
    pub active: PerDirection<bool>,
}

impl Element for GilbertElliott {
    fn describe(&self) -> String {
        let GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad, .. } = self;
        format!(
            "bursts (Gilbert-Elliott): {good_to_bad} good to bad, {bad_to_good} back; loss of {loss_good} and {loss_bad}"
        )
    }

    fn is_random(&self) -> bool {
        true
    }

    fn left_out(&self, _data: Direction) -> Option<String> {
        let acts = self.active.forward || self.active.reverse;
        acts.then(|| "losses come in bursts; predicted as if they were independent".to_owned())
    }

    fn delays(&self, _direction: Direction, _size: Bytes) -> Vec<DelayPart> {
        Vec::new()
    }

    fn loss_rate(&self, direction: Direction, _packet: PacketView) -> Probability {
        if !self.active[direction] {
            return Probability::ZERO;
        }
        let bad = self.stationary_bad().fraction();
        let mean = (1.0 - bad) * self.loss_good.fraction() + bad * self.loss_bad.fraction();
        Probability::new(mean).unwrap_or(Probability::ONE)
    }

    fn loss_burst(&self, direction: Direction) -> Option<f64> {
        // Of a visit to the bad state.
        self.active[direction].then(|| self.loss_bad.fraction() / self.bad_to_good.fraction())
    }

    fn remove_loss(&mut self) {
        self.active = PerDirection::both(false);
    }
}

impl GilbertElliott {
    /// The share of packets that meet the bad state, `P(good to bad) / (P(good to bad) + P(bad to good))`.
    fn stationary_bad(&self) -> Probability {
        let (enter, leave) = (self.good_to_bad.fraction(), self.bad_to_good.fraction());
        if enter == 0.0 {
            return Probability::ZERO;
        }
        Probability::new(enter / (enter + leave)).expect("a part of a whole is within 0 and 1")
    }
}

impl Declared for GilbertElliott {
    const NAMES: &'static [&'static str] = &["gilbert-elliott"];
    const PRINCIPAL: Option<&'static str> = None;
    const DOCS: &'static str = "\
| `gilbert-elliott` | `good_to_bad`, `bad_to_good` | probability per packet | required |
| | `loss_good` | loss rate in the good state | `0 %` |
| | `loss_bad` | loss rate in the bad state | required |
| | `active` ↔ | `true` or `false` | `true` |";

    fn read<K: Keys>(_name: &str, keys: &mut K) -> Result<ElementKind, K::Error> {
        Ok(ElementKind::GilbertElliott(GilbertElliott {
            good_to_bad: keys.required("good_to_bad")?,
            bad_to_good: keys.required("bad_to_good")?,
            loss_good: keys.or("loss_good", Probability::ZERO)?,
            loss_bad: keys.required("loss_bad")?,
            active: keys.each_way_or("active", false, true)?,
        }))
    }

    fn draw(draws: &mut Draws) -> GilbertElliott {
        let good_to_bad = draws.probability(0.1);
        let bad_to_good = 0.05 + draws.probability(0.95).fraction();
        GilbertElliott {
            good_to_bad,
            bad_to_good: Probability::new(bad_to_good).unwrap_or(Probability::ONE),
            loss_good: draws.probability(0.01),
            loss_bad: draws.probability(1.0),
            active: PerDirection::from_fn(|_| draws.chance(50)),
        }
    }

    fn build<P: ExplicitRatePacket + Clone + Send + 'static>(&self, name: &str, seed: u64) -> Built<P> {
        let mut draws = Generator::per_direction(seed, name);
        // A chain that never moves starts good.
        let start = Chance::from(self.stationary_bad());
        let bad = PerDirection::from_fn(|direction| draws[direction].happens(start));
        Built::Transit(Box::new(GilbertElliottProcess {
            good_to_bad: self.good_to_bad.into(),
            bad_to_good: self.bad_to_good.into(),
            loss_good: self.loss_good.into(),
            loss_bad: self.loss_bad.into(),
            active: self.active,
            bad,
            draws,
        }))
    }
}

/// Two draws per packet, whatever the state, so that packet n always sees the same numbers.
#[derive(Debug)]
struct GilbertElliottProcess {
    good_to_bad: Chance,
    bad_to_good: Chance,
    loss_good: Chance,
    loss_bad: Chance,
    active: PerDirection<bool>,
    bad: PerDirection<bool>,
    draws: PerDirection<Generator>,
}

impl Transit for GilbertElliottProcess {
    fn transit(&mut self, now: Instant, direction: Direction, _packet: PacketView) -> Fate {
        if !self.active[direction] {
            return Fate::Depart(now);
        }
        let bad = &mut self.bad[direction];
        let draws = &mut self.draws[direction];
        let moves = if *bad { self.bad_to_good } else { self.good_to_bad };
        *bad ^= draws.happens(moves);
        let loss = if *bad { self.loss_bad } else { self.loss_good };
        lost_if(draws.happens(loss), DropCause::Loss, now)
    }
}
