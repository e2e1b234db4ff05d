//! Burst loss by two states.

use super::lost_if;
use farpath_path::{Chance, Direction, DropCause, Fate, Generator, PacketView, PerDirection, Transit};
use farpath_units::{Instant, Probability};

/// A Markov chain of a good and a bad state with a loss rate in each (Gilbert 1960 has no loss in
/// the good state, Elliott 1963 has both).
///
/// Two draws per packet, whatever the state, so that packet n always sees the same numbers.
#[derive(Debug)]
pub(crate) struct GilbertElliott {
    good_to_bad: Chance,
    bad_to_good: Chance,
    loss_good: Chance,
    loss_bad: Chance,
    active: PerDirection<bool>,
    bad: PerDirection<bool>,
    draws: PerDirection<Generator>,
}

impl GilbertElliott {
    /// The state before the first packet is drawn from the stationary distribution, so that a short
    /// flow sees the long-term loss rate on average. A chain that never moves starts good.
    pub fn new(
        good_to_bad: Probability,
        bad_to_good: Probability,
        loss_good: Probability,
        loss_bad: Probability,
        active: PerDirection<bool>,
        mut draws: PerDirection<Generator>,
    ) -> GilbertElliott {
        let start = Chance::from(stationary_bad(good_to_bad, bad_to_good));
        let bad = PerDirection::from_fn(|direction| draws[direction].happens(start));
        GilbertElliott {
            good_to_bad: good_to_bad.into(),
            bad_to_good: bad_to_good.into(),
            loss_good: loss_good.into(),
            loss_bad: loss_bad.into(),
            active,
            bad,
            draws,
        }
    }
}

/// The share of packets that meet the bad state, `P(good to bad) / (P(good to bad) + P(bad to good))`.
pub(crate) fn stationary_bad(good_to_bad: Probability, bad_to_good: Probability) -> Probability {
    let (enter, leave) = (good_to_bad.fraction(), bad_to_good.fraction());
    if enter == 0.0 {
        return Probability::ZERO;
    }
    Probability::new(enter / (enter + leave)).expect("a part of a whole is within 0 and 1")
}

impl Transit for GilbertElliott {
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
