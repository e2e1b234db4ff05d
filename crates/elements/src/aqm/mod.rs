//! Active queue management: what a queue before a line drops and marks before it is full.
//!
//! Each algorithm keeps the arithmetic and the defaults of Linux's qdisc of its name, so that the same packets meet the same fates; where
//! it differs the file of the algorithm says so. Lengths are those of IP packets, and the interface's MTU is 1500 B without a link header.

mod cake;
mod codel;
mod discipline;
mod dual_pi2;
mod flow_queues;
mod managed;
mod pie;
mod red;

pub use cake::Cake;
pub use codel::Codel;
pub use dual_pi2::{DualPi2, LowLatency};
pub use flow_queues::FlowQueues;
pub use pie::Pie;
pub use red::Red;

pub(crate) use managed::{Managed, Parts, Sender};

use crate::QueueLimit;
use crate::draw::Draws;
use crate::element::Fault;
use crate::keys::{self, Keys, ReadValue, Source};
use crate::words::each_way;
use core::fmt;
use discipline::Discipline;
use farpath_path::{Direction, Generator, PathPacket, PerDirection};
use farpath_units::{Duration, Rate};

/// The MTU that algorithms compare backlogs with, and the default quantum of flow queues (`psched_mtu` of an interface without link
/// headers).
const MTU: u64 = 1500;

/// How a queue before a line is managed.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Aqm {
    /// It drops what comes while it is full, and nothing else.
    #[default]
    DropTail,
    /// CoDel (RFC 8289).
    Codel(Codel),
    /// Flow queues with CoDel in each (RFC 8290).
    FqCodel(FlowQueues, Codel),
    /// PIE (RFC 8033).
    Pie(Pie),
    /// Flow queues with PIE in each.
    FqPie(FlowQueues, Pie),
    /// Random early detection.
    Red(Red),
    /// Two queues, one of them for packets of scalable congestion controls (RFC 9332).
    DualPi2(DualPi2),
    /// Flow queues with CoDel and BLUE in each, by the rate of the link.
    Cake(Cake),
}

impl Aqm {
    /// As files spell them, each as Linux has it by default.
    const ALL: [(&'static str, Aqm); 8] = [
        ("drop-tail", Aqm::DropTail),
        ("codel", Aqm::Codel(Codel::DEFAULT)),
        ("fq-codel", Aqm::FqCodel(FlowQueues::DEFAULT, Codel::IN_FLOW_QUEUES)),
        ("pie", Aqm::Pie(Pie::DEFAULT)),
        ("fq-pie", Aqm::FqPie(FlowQueues::DEFAULT, Pie::DEFAULT)),
        ("red", Aqm::Red(Red::DEFAULT)),
        ("dualpi2", Aqm::DualPi2(DualPi2::DEFAULT)),
        ("cake", Aqm::Cake(Cake::DEFAULT)),
    ];

    /// As files spell it.
    pub fn name(self) -> &'static str {
        let same = |other: &Aqm| core::mem::discriminant(other) == core::mem::discriminant(&self);
        Aqm::ALL.iter().find(|(_, aqm)| same(aqm)).map_or("", |(name, _)| name)
    }

    /// The same algorithm with the parameters that `keys` have.
    fn with_parameters<K: Keys>(self, keys: &mut K) -> Result<Aqm, K::Error> {
        Ok(match self {
            Aqm::DropTail => Aqm::DropTail,
            Aqm::Codel(default) => Aqm::Codel(Codel::read(keys, default)?),
            Aqm::FqCodel(_, default) => Aqm::FqCodel(FlowQueues::read(keys)?, Codel::read(keys, default)?),
            Aqm::Pie(_) => Aqm::Pie(Pie::read(keys)?),
            Aqm::FqPie(..) => Aqm::FqPie(FlowQueues::read(keys)?, Pie::read(keys)?),
            Aqm::Red(_) => Aqm::Red(Red::read(keys)?),
            Aqm::DualPi2(_) => Aqm::DualPi2(DualPi2::read(keys)?),
            Aqm::Cake(_) => Aqm::Cake(Cake::read(keys)?),
        })
    }

    /// The limit of its queue before a line of this rate, where none is given: that of Linux's qdisc.
    pub(crate) fn default_limit(self, rate: Rate) -> QueueLimit {
        match self {
            // RED is not read without one.
            Aqm::DropTail | Aqm::Red(_) => QueueLimit::Unlimited,
            Aqm::Codel(_) | Aqm::Pie(_) => QueueLimit::Packets(1000),
            Aqm::FqCodel(..) | Aqm::FqPie(..) => QueueLimit::Packets(10_240),
            Aqm::DualPi2(_) => QueueLimit::Packets(10_000),
            Aqm::Cake(cake) => cake.default_limit(rate),
        }
    }

    /// Whether what it drops depends on random numbers.
    pub const fn is_random(self) -> bool {
        match self {
            Aqm::DropTail | Aqm::Codel(_) | Aqm::FqCodel(..) => false,
            Aqm::Pie(_) | Aqm::FqPie(..) | Aqm::Red(_) | Aqm::DualPi2(_) | Aqm::Cake(_) => true,
        }
    }

    /// The queueing delay that it steers at, where it has one.
    pub const fn target(self) -> Option<Duration> {
        match self {
            Aqm::DropTail | Aqm::Red(_) => None,
            Aqm::Codel(codel) | Aqm::FqCodel(_, codel) => Some(codel.target),
            Aqm::Pie(pie) | Aqm::FqPie(_, pie) => Some(pie.target),
            Aqm::DualPi2(dual) => Some(dual.target),
            Aqm::Cake(cake) => Some(cake.target),
        }
    }

    /// What the closed forms leave out of it; `None` where they have it right.
    pub(crate) fn left_out(self) -> Option<String> {
        let name = self.name();
        (self != Aqm::DropTail).then(|| {
            format!("what {name} drops and marks is left out of the prediction, which has a queue that drops when it is full")
        })
    }

    /// One for property tests.
    pub(crate) fn draw(draws: &mut Draws) -> Aqm {
        match draws.below(13) {
            0..=5 => Aqm::DropTail,
            6 => Aqm::Codel(Codel::draw(draws)),
            7 => Aqm::FqCodel(FlowQueues::draw(draws), Codel::draw(draws)),
            8 => Aqm::Pie(Pie::draw(draws)),
            9 => Aqm::FqPie(FlowQueues::draw(draws), Pie::draw(draws)),
            10 => Aqm::Red(Red::draw(draws)),
            11 => Aqm::DualPi2(DualPi2::draw(draws)),
            _ => Aqm::Cake(Cake::draw(draws)),
        }
    }

    /// The queue itself; `None` where it only drops what finds it full, which is arithmetic.
    fn discipline<P: PathPacket + Send + 'static>(
        self,
        limit: QueueLimit,
        rate: Rate,
        generator: Generator,
    ) -> Option<Box<dyn Discipline<P> + Send>> {
        Some(match self {
            Aqm::DropTail => return None,
            Aqm::Codel(codel) => Box::new(codel::CodelQueue::new(limit, codel)),
            Aqm::FqCodel(queues, codel) => Box::new(flow_queues::FqCodelQueue::new(limit, queues, codel)),
            Aqm::Pie(pie) => Box::new(pie::PieQueue::new(limit, pie, generator)),
            Aqm::FqPie(queues, pie) => Box::new(flow_queues::FqPieQueue::new(limit, queues, pie, generator)),
            Aqm::Red(red) => Box::new(red::RedQueue::new(limit, red, generator)),
            Aqm::DualPi2(dual) => Box::new(dual_pi2::DualPi2Queue::new(limit, dual, generator)),
            Aqm::Cake(cake) => Box::new(cake::CakeQueue::new(limit, cake, rate, generator)),
        })
    }
}

/// Refuses an algorithm whose parameters do not fit the limit of its queue.
pub(crate) fn validate(aqm: &PerDirection<Aqm>, queue: &PerDirection<QueueLimit>) -> Result<(), Fault> {
    for way in Direction::BOTH {
        if let Aqm::Red(red) = aqm[way] {
            red.thresholds(queue[way]).map_err(|reason| Fault { key: "aqm".to_owned(), reason })?;
        }
    }
    Ok(())
}

/// In the words of a report, behind those of a queue; nothing where no queue is managed.
pub(crate) fn words(aqm: &PerDirection<Aqm>) -> String {
    match *aqm == PerDirection::default() {
        true => String::new(),
        false => format!(", managed by {}", each_way(aqm)),
    }
}

impl fmt::Display for Aqm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self.target() {
            Some(target) => write!(f, " with a target of {target}"),
            None => Ok(()),
        }
    }
}

impl ReadValue for Aqm {
    const EXPECTED: &'static str = "one of `drop-tail`, `codel`, `fq-codel`, `pie`, `fq-pie`, `red`, `dualpi2`, `cake`, or one with its \
                                    parameters such as `{ kind = \"codel\", target = \"5 ms\" }`";
    const IS_TABLE: bool = true;

    fn read<S: Source>(source: &S) -> Result<Aqm, S::Error> {
        if source.text().is_some() {
            return Kind::read(source).map(|kind| kind.0);
        }
        let read = source.table(|keys| keys.required::<Kind>("kind")?.0.with_parameters(keys));
        read.unwrap_or_else(|| Err(source.wrong_type(Self::EXPECTED)))
    }
}

/// An algorithm by its name alone.
struct Kind(Aqm);

impl ReadValue for Kind {
    const EXPECTED: &'static str = "an algorithm such as `codel`";
    fn read<S: Source>(source: &S) -> Result<Kind, S::Error> {
        keys::word(source, &Aqm::ALL).map(Kind)
    }
}

/// A time from `least` on.
fn time_from<K: Keys>(
    keys: &mut K,
    key: &'static str,
    least: Duration,
    default: Duration,
) -> Result<Duration, K::Error> {
    let time = keys.or(key, default)?;
    let most = Duration::from_secs(1000);
    if time < least || time > most {
        return Err(keys.refuse(key, format!("expected a time from {least} to {most}, found {time}")));
    }
    Ok(time)
}

/// A whole number in a range.
fn whole<K: Keys>(
    keys: &mut K,
    key: &'static str,
    range: core::ops::RangeInclusive<u32>,
    default: u32,
) -> Result<u32, K::Error> {
    let number = keys.or(key, default)?;
    if !range.contains(&number) {
        let (least, most) = range.into_inner();
        return Err(
            keys.refuse(key, format!("expected a whole number from {least} to {most}, found {number}"))
        );
    }
    Ok(number)
}
