//! What an element of a path says of itself. All of an element is in its own file: what it does to packets, and this.

use crate::draw::Draws;
use crate::keys::Keys;
use crate::{ElementKind, ExplicitRatePacket, Gaps, Line, Oversize};
use core::fmt;
use farpath_path::{BoxedElement, BoxedTransit, Direction, PacketView};
use farpath_units::{Bytes, Duration, Probability, Rate};

/// A full packet on most paths, for warnings and for memory.
pub(crate) const FULL_PACKET: Bytes = Bytes(1500);

/// What an element that is described, and not yet built, says of itself.
///
/// What has no default is what every element has to answer.
pub trait Element: fmt::Debug {
    /// In words, as a report lists it.
    fn describe(&self) -> String;

    /// Whether it draws random numbers, so that runs of two seeds differ.
    fn is_random(&self) -> bool;

    /// What the closed forms leave out of it, for data that go this way; `None` where they have it right.
    fn left_out(&self, data: Direction) -> Option<String>;

    /// Why there is no prediction at all for data that go this way over it; `None` where there can be one.
    fn no_model(&self, _data: Direction) -> Option<String> {
        None
    }

    /// What it makes a packet of `size` (IP length) wait for, one way: for either direction the same kinds.
    fn delays(&self, direction: Direction, size: Bytes) -> Vec<DelayPart>;

    /// Refuses what the types cannot.
    ///
    /// # Errors
    /// The first thing that contradicts itself.
    fn validate(&self) -> Result<(), Fault> {
        Ok(())
    }

    /// What is allowed and probably not meant.
    fn warnings(&self, _direction: Direction) -> Vec<String> {
        Vec::new()
    }

    /// The line that it sends packets over, one after the other; `None` where it has none.
    fn line(&self, _direction: Direction) -> Option<Line> {
        None
    }

    /// One-way delay of a lone packet of `size`: no queueing, not held back. Saturates at [`Duration::MAX`].
    fn lone_delay(&self, direction: Direction, size: Bytes) -> Duration {
        self.line(direction).map_or(Duration::ZERO, |line| line.rate.time_to_send(line.frame(size)))
    }

    /// As the closed forms see it: a propagation delay, and the line behind it. `bare` is a packet without payload.
    fn as_hop(&self, direction: Direction, bare: Bytes) -> (Duration, Option<Line>) {
        match self.line(direction) {
            Some(line) => (Duration::ZERO, Some(line)),
            None => (self.lone_delay(direction, bare), None),
        }
    }

    /// The share of packets like `packet` that it drops in the long run. Full queues and listed packets do not count.
    fn loss_rate(&self, _direction: Direction, _packet: PacketView) -> Probability {
        Probability::ZERO
    }

    /// Whether all its losses are evenly spaced.
    fn is_evenly_spaced(&self) -> bool {
        false
    }

    /// Packets that it drops in a row in the mean, where its losses come in bursts.
    fn loss_burst(&self, _direction: Direction) -> Option<f64> {
        None
    }

    /// As a flow router, the Available Rate of a lone flow that asks, `Some(None)` where that is below the code's least; `None`
    /// where it is none.
    fn granted_alone(&self, _direction: Direction) -> Option<Option<Rate>> {
        None
    }

    /// The packets that it drops by their number.
    fn listed_losses(&self, _direction: Direction) -> &[u64] {
        &[]
    }

    /// Entries of its traces, plans and lists: what it takes of memory beyond a few numbers.
    fn entries(&self) -> usize {
        0
    }

    /// Times in which nothing passes it; `None` without such times.
    fn gaps(&self, _direction: Direction) -> Option<Gaps> {
        None
    }

    /// Since the start of a run: when the last packet can pass it; `None` where there is no last one.
    fn ends(&self, _direction: Direction) -> Option<Duration> {
        None
    }

    /// Routers that a packet passes.
    fn routers(&self, _direction: Direction) -> u32 {
        0
    }

    /// Share of the packets that it sends twice.
    fn copies(&self, _direction: Direction) -> Probability {
        Probability::ZERO
    }

    /// Share of the packets that it holds back so that others overtake them, and for how long.
    fn reordering(&self, _direction: Direction) -> Option<(Probability, Duration)> {
        None
    }

    /// Longest IP packet that it takes, and what becomes of longer ones; `None` without such a limit.
    fn mtu(&self) -> Option<(Bytes, Oversize)> {
        None
    }

    /// The most IP bytes that it holds at once, where that is bounded. What goes on from it is what `inflow` is then.
    fn held(&self, _direction: Direction, _inflow: &mut Inflow) -> Option<Bytes> {
        Some(Bytes::ZERO)
    }

    /// Takes every loss out of it but that of a full queue.
    fn remove_loss(&mut self) {}

    /// Keeps packets in their order.
    fn remove_reordering(&mut self) {}

    /// Lets packets pass at all times.
    fn remove_gaps(&mut self) {}

    /// Takes the limits out of its queues, marks included.
    fn remove_queue_limit(&mut self) {}

    /// Makes its line so many times as fast.
    fn speed_up(&mut self, _direction: Direction, _factor: u64) {}

    /// Makes its propagation so many times as long; whether it has one that stays as it is for a whole run.
    fn scale_delay(&mut self, _direction: Direction, _factor: f64) -> bool {
        false
    }

    /// Makes its line so many times as fast; whether it has one of a constant rate.
    fn scale_rate(&mut self, _direction: Direction, _factor: f64) -> bool {
        false
    }

    /// Makes its queue so many times as long; whether that has a limit.
    fn scale_queue(&mut self, _direction: Direction, _factor: f64) -> bool {
        false
    }

    /// Makes its independent losses so many times as frequent; whether there are any.
    fn scale_loss(&mut self, _direction: Direction, _factor: f64) -> bool {
        false
    }

    /// Gives its independent losses this rate; whether it is an element that has such.
    fn set_loss_rate(&mut self, _direction: Direction, _rate: Probability) -> bool {
        false
    }

    /// Gives its queue room for so many packets of so many bytes in all, unmarked; so much may wait `at_most`.
    fn make_room(&mut self, _direction: Direction, _packets: u64, _bytes: Bytes, _at_most: Duration) {}
}

/// How an element is made: read from a file, drawn for tests, built.
pub trait Declared: Element + Sized {
    /// What it is called in a file.
    const NAMES: &'static [&'static str];
    /// The parameter that its name alone stands for.
    const PRINCIPAL: Option<&'static str>;
    /// Its rows of the table of elements in `docs/experiment-files.md`.
    const DOCS: &'static str;
    /// How often property tests draw it, beside the others.
    const WEIGHT: u32 = 1;

    /// Reads its keys.
    ///
    /// # Errors
    /// Those of `keys`: what is missing, and what is not as it should be.
    fn read<K: Keys>(name: &str, keys: &mut K) -> Result<ElementKind, K::Error>;

    /// One for property tests.
    fn draw(draws: &mut Draws) -> Self;

    /// The element, with the random numbers that belong to its name in the run of this seed.
    fn build<P: ExplicitRatePacket + Clone + Send + 'static>(&self, name: &str, seed: u64) -> Built<P>;
}

/// An element that packets can be sent through.
pub enum Built<P> {
    /// Arithmetic: it is run together with its neighbours.
    Transit(BoxedTransit),
    /// It holds packets.
    Holding(BoxedElement<P>),
}

/// Why no path is built from an element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The parameter that is wrong, as files spell it.
    pub key: String,
    /// What was expected, and what was found.
    pub reason: String,
}

/// What a packet waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DelayKind {
    /// Distance over the speed of the signal.
    Propagation,
    /// Its bits at a link's rate.
    Serialization,
    /// Packets before it.
    Queue,
    /// Its turn on a shared medium.
    MediumAccess,
    /// Routers, gateways, ciphers.
    Processing,
    /// Interleaver, error correction, frames of speech or video.
    Codec,
    /// Being held back, so that others overtake it.
    Reordering,
    /// An extra delay that is drawn.
    Jitter,
    /// The next contact.
    Contact,
}

impl DelayKind {
    /// As tables spell it.
    pub const fn name(self) -> &'static str {
        match self {
            DelayKind::Propagation => "propagation",
            DelayKind::Serialization => "serialization",
            DelayKind::Queue => "queue",
            DelayKind::MediumAccess => "medium access",
            DelayKind::Processing => "processing",
            DelayKind::Codec => "codec",
            DelayKind::Reordering => "held back",
            DelayKind::Jitter => "delay variation",
            DelayKind::Contact => "waiting for a contact",
        }
    }

    /// As data for programs spell it.
    pub const fn key(self) -> &'static str {
        match self {
            DelayKind::Propagation => "propagation",
            DelayKind::Serialization => "serialization",
            DelayKind::Queue => "queue",
            DelayKind::MediumAccess => "medium-access",
            DelayKind::Processing => "processing",
            DelayKind::Codec => "codec",
            DelayKind::Reordering => "reordering",
            DelayKind::Jitter => "jitter",
            DelayKind::Contact => "contact",
        }
    }
}

/// One part of what an element makes a packet wait.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DelayPart {
    /// For what.
    pub kind: DelayKind,
    /// For how long.
    pub time: DelayTime,
}

/// How long a packet waits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DelayTime {
    /// Always so long.
    Fixed(Duration),
    /// In the queue before the element's [`Line`]: by what the transfers do.
    BeforeLine,
    /// From nothing to `full_s`, in s.
    Varying {
        /// In the mean; `None` where nothing says.
        expected_s: Option<f64>,
        /// At the most.
        full_s: f64,
    },
}

impl DelayPart {
    /// Always so long.
    pub(crate) const fn fixed(kind: DelayKind, time: Duration) -> DelayPart {
        DelayPart { kind, time: DelayTime::Fixed(time) }
    }
}

/// What comes into an element at the most, in bits of IP packets; `None` where nothing says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inflow(Option<u64>);

impl Inflow {
    /// So much.
    pub fn new(rate: Option<Rate>) -> Inflow {
        Inflow(rate.map(Rate::bit_per_s))
    }

    /// What arrives in so long; `None` where the rate is not known.
    pub fn bytes_in(self, time: Duration) -> Option<Bytes> {
        if time.is_zero() {
            return Some(Bytes::ZERO);
        }
        let bytes = (u128::from(self.0?) * u128::from(time.as_nanos())).div_ceil(8_000_000_000);
        Some(Bytes(u64::try_from(bytes).unwrap_or(u64::MAX)))
    }

    /// No more than this goes on.
    pub fn limit(&mut self, rate: Rate) {
        let rate = rate.bit_per_s();
        self.0 = Some(self.0.map_or(rate, |before| before.min(rate)));
    }

    /// Twice as much goes on.
    pub fn double(&mut self) {
        self.0 = self.0.map(|rate| rate.saturating_mul(2));
    }
}
