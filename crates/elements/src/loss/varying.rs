//! Loss and bit errors whose rate changes over time.

use super::bit_errors::packet_error_rate;
use super::lost_if;
use crate::draw::Draws;
use crate::element::{Built, Declared, DelayPart, Element};
use crate::keys::Keys;
use crate::over_time::{InRun, Setting};
use crate::words::each_way;
use crate::{Bernoulli, BitErrors, ElementKind, ExplicitRatePacket, PacketCount};
use farpath_path::{Chance, Direction, DropCause, Fate, Generator, PacketView, PerDirection, Transit};
use farpath_units::{Ber, Bytes, Duration, Instant, Probability};

/// What [`Bernoulli`] becomes where its rate changes: a packet is lost with the probability of the moment at which it passes.
#[derive(Debug, Clone, PartialEq)]
pub struct VaryingLoss {
    /// Per packet.
    pub loss_rate: PerDirection<Setting<Probability>>,
    /// What is exposed to it.
    pub count: PacketCount,
}

/// What [`BitErrors`] becomes where its rate changes: a packet meets the rate of the moment at which it passes.
#[derive(Debug, Clone, PartialEq)]
pub struct VaryingBitErrors {
    /// Per bit.
    pub ber: PerDirection<Setting<Ber>>,
    /// As of [`BitErrors`].
    pub overhead: Bytes,
    /// As of [`BitErrors`].
    pub linear: bool,
}

/// What the closed forms leave out of a rate that changes.
fn left_out(stays: bool, what: &str, mean: &dyn core::fmt::Display) -> Option<String> {
    (!stays)
        .then(|| format!("how the {what} varies is left out of the prediction, which has its mean of {mean}"))
}

impl Element for VaryingLoss {
    fn describe(&self) -> String {
        format!("independent loss of {}{}", each_way(&self.loss_rate), self.count.words())
    }

    fn is_random(&self) -> bool {
        true
    }

    fn entries(&self) -> usize {
        Direction::BOTH.map(|way| self.loss_rate[way].entries()).iter().sum()
    }

    fn left_out(&self, data: Direction) -> Option<String> {
        left_out(self.loss_rate[data].stays(), "loss rate", &self.loss_rate[data].mean())
    }

    fn delays(&self, _direction: Direction, _size: Bytes) -> Vec<DelayPart> {
        Vec::new()
    }

    fn ends(&self, direction: Direction) -> Option<Duration> {
        self.loss_rate[direction].last().filter(|(_, rate)| *rate == Probability::ONE).map(|(at, _)| at)
    }

    fn loss_rate(&self, direction: Direction, packet: PacketView) -> Probability {
        if self.count.counts(packet) { self.loss_rate[direction].mean() } else { Probability::ZERO }
    }

    fn remove_loss(&mut self) {
        self.loss_rate = PerDirection::both(Setting::Still(Probability::ZERO));
    }
}

impl Declared for VaryingLoss {
    const NAMES: &'static [&'static str] = &[];
    const PRINCIPAL: Option<&'static str> = None;
    const DOCS: &'static str = "";

    fn read<K: Keys>(name: &str, keys: &mut K) -> Result<ElementKind, K::Error> {
        Bernoulli::read(name, keys)
    }

    fn draw(draws: &mut Draws) -> VaryingLoss {
        VaryingLoss {
            loss_rate: draws.each_way(|draws| Setting::draw(draws, Draws::share)),
            count: draws.packet_count(),
        }
    }

    fn build<P: ExplicitRatePacket + Clone + Send + 'static>(&self, name: &str, seed: u64) -> Built<P> {
        Built::Transit(Box::new(Losses {
            rate: PerDirection::from_fn(|way| self.loss_rate[way].in_run(name, seed)),
            count: self.count,
            draws: Generator::per_direction(seed, name),
        }))
    }
}

#[derive(Debug)]
struct Losses {
    rate: PerDirection<InRun<Probability>>,
    count: PacketCount,
    draws: PerDirection<Generator>,
}

impl Transit for Losses {
    fn transit(&mut self, now: Instant, direction: Direction, packet: PacketView) -> Fate {
        let lost = self.count.counts(packet)
            && self.draws[direction].happens(Chance::from(self.rate[direction].value_at(now)));
        lost_if(lost, DropCause::Loss, now)
    }
}

impl Element for VaryingBitErrors {
    fn describe(&self) -> String {
        format!("bit errors: BER {}", each_way(&self.ber))
    }

    fn is_random(&self) -> bool {
        true
    }

    fn entries(&self) -> usize {
        Direction::BOTH.map(|way| self.ber[way].entries()).iter().sum()
    }

    fn left_out(&self, data: Direction) -> Option<String> {
        left_out(self.ber[data].stays(), "bit error rate", &self.ber[data].mean())
    }

    fn delays(&self, _direction: Direction, _size: Bytes) -> Vec<DelayPart> {
        Vec::new()
    }

    fn warnings(&self, direction: Direction) -> Vec<String> {
        self.at_rate(self.ber[direction].range().1).warnings(direction)
    }

    fn loss_rate(&self, direction: Direction, packet: PacketView) -> Probability {
        self.at_rate(self.ber[direction].mean()).loss_rate(direction, packet)
    }

    fn remove_loss(&mut self) {
        self.ber = PerDirection::both(Setting::Still(Ber::ZERO));
    }
}

impl VaryingBitErrors {
    /// The same at one moment.
    fn at_rate(&self, ber: Ber) -> BitErrors {
        BitErrors { ber: PerDirection::both(ber), overhead: self.overhead, linear: self.linear }
    }
}

impl Declared for VaryingBitErrors {
    const NAMES: &'static [&'static str] = &[];
    const PRINCIPAL: Option<&'static str> = None;
    const DOCS: &'static str = "";

    fn read<K: Keys>(name: &str, keys: &mut K) -> Result<ElementKind, K::Error> {
        BitErrors::read(name, keys)
    }

    fn draw(draws: &mut Draws) -> VaryingBitErrors {
        VaryingBitErrors {
            ber: draws.each_way(|draws| Setting::draw(draws, Draws::error_rate)),
            overhead: draws.bytes(0..=40),
            linear: draws.chance(50),
        }
    }

    fn build<P: ExplicitRatePacket + Clone + Send + 'static>(&self, name: &str, seed: u64) -> Built<P> {
        Built::Transit(Box::new(Errors {
            ber: PerDirection::from_fn(|way| self.ber[way].in_run(name, seed)),
            overhead: self.overhead,
            linear: self.linear,
            draws: Generator::per_direction(seed, name),
        }))
    }
}

#[derive(Debug)]
struct Errors {
    ber: PerDirection<InRun<Ber>>,
    overhead: Bytes,
    linear: bool,
    draws: PerDirection<Generator>,
}

impl Transit for Errors {
    fn transit(&mut self, now: Instant, direction: Direction, packet: PacketView) -> Fate {
        let rate =
            packet_error_rate(self.ber[direction].value_at(now), packet.size + self.overhead, self.linear);
        lost_if(self.draws[direction].happens(rate.into()), DropCause::BitErrors, now)
    }
}
