//! Delay variation.

use crate::draw::Draws;
use crate::element::{Built, Declared, DelayKind, DelayPart, DelayTime, Element, Fault, Inflow};
use crate::keys::{self, Keys, ReadValue, Source};
use crate::over_time::Changes;
use crate::words::each_way;
use crate::{ElementKind, ExplicitRatePacket};
use farpath_path::{Chance, Direction, Fate, Generator, PacketView, PerDirection, Transit};
use farpath_units::{Bytes, Duration, Instant, Probability};
use std::sync::Arc;

/// How the extra delay of a packet is distributed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Distribution {
    /// From nothing to twice the mean, all alike.
    Uniform,
    /// Mostly short, with a tail: what a queue of random traffic makes.
    Exponential,
    /// About the mean, with the standard deviation that is given, and never below zero.
    Normal,
    /// Lomax (Pareto II) of shape 3/2: rarely very long, as hosts and radio schedulers are.
    Pareto,
    /// One of these, all alike: what somebody has measured.
    Listed(PerDirection<Arc<[Duration]>>),
}

impl Distribution {
    const WORDS: [(&'static str, Distribution); 4] = [
        ("uniform", Distribution::Uniform),
        ("exponential", Distribution::Exponential),
        ("normal", Distribution::Normal),
        ("pareto", Distribution::Pareto),
    ];

    /// As files spell it; `listed` where they list delays in place of its name.
    pub fn name(&self) -> &'static str {
        Distribution::WORDS.into_iter().find(|(_, this)| this == self).map_or("listed", |(name, _)| name)
    }
}

impl ReadValue for Distribution {
    const EXPECTED: &'static str = "`uniform`, `exponential`, `normal` or `pareto`";
    fn read<S: Source>(source: &S) -> Result<Distribution, S::Error> {
        keys::word(source, &Distribution::WORDS)
    }
}

/// Delays each packet by a time that is drawn (`jitter` of RFC 3393 is the difference of two of these).
#[derive(Debug, Clone, PartialEq)]
pub struct Jitter {
    /// Mean of the extra delay, before what keeping packets in order adds; of listed ones, theirs.
    pub mean: PerDirection<Duration>,
    /// How it is distributed.
    pub distribution: Distribution,
    /// Standard deviation, for `normal` alone.
    pub deviation: Duration,
    /// Chance that a packet has the extra delay of the one before it: the autocorrelation of neighbours. It leaves the distribution as it is.
    pub correlation: Probability,
    /// Whether packets may overtake each other; else none leaves before one that came earlier.
    pub reorder: bool,
}

/// Means beyond which nothing is drawn: one packet in 5e8 would be, of exponential delays.
const EXPONENTIAL_MOST: u64 = 20;
/// The same of the Lomax distribution, as [`Generator::heavy_tailed`] has it.
const PARETO_MOST: u64 = 1000;
/// Standard deviations above the mean beyond which nothing is drawn.
const NORMAL_MOST: u64 = 6;

impl Jitter {
    /// The longest extra delay that is drawn.
    fn most(&self, direction: Direction) -> Duration {
        let mean = self.mean[direction];
        match &self.distribution {
            Distribution::Uniform => mean * 2,
            Distribution::Exponential => mean * EXPONENTIAL_MOST,
            Distribution::Normal if mean.is_zero() => Duration::ZERO,
            Distribution::Normal => mean + self.deviation * NORMAL_MOST,
            Distribution::Pareto => mean * PARETO_MOST,
            Distribution::Listed(delays) => delays[direction].iter().copied().max().unwrap_or_default(),
        }
    }
}

impl Element for Jitter {
    fn describe(&self) -> String {
        let order = if self.reorder { "packets overtake each other" } else { "in order" };
        format!("jitter: {} of {} in the mean, {order}", self.distribution.name(), each_way(&self.mean))
    }

    fn is_random(&self) -> bool {
        true
    }

    fn left_out(&self, _data: Direction) -> Option<String> {
        Some("jitter is left out of the prediction".to_owned())
    }

    fn delays(&self, direction: Direction, _size: Bytes) -> Vec<DelayPart> {
        let time = DelayTime::Varying {
            expected_s: Some(self.mean[direction].as_secs_f64()),
            full_s: self.most(direction).as_secs_f64(),
        };
        vec![DelayPart { kind: DelayKind::Jitter, time }]
    }

    fn validate(&self) -> Result<(), Fault> {
        let refuse = |key: &str, reason: &str| Err(Fault { key: key.to_owned(), reason: reason.to_owned() });
        if (self.distribution == Distribution::Normal) == self.deviation.is_zero() {
            return refuse(
                "deviation",
                "`normal` has a standard deviation above zero, and no other distribution has one",
            );
        }
        if self.correlation.fraction() >= 1.0 {
            return refuse(
                "correlation",
                "expected less than 100 %: all packets would have the delay of the first",
            );
        }
        Ok(())
    }

    fn entries(&self) -> usize {
        match &self.distribution {
            Distribution::Listed(delays) => delays.forward.len() + delays.reverse.len(),
            _ => 0,
        }
    }

    fn reordering(&self, direction: Direction) -> Option<(Probability, Duration)> {
        let share = if self.reorder { Probability::ONE } else { Probability::ZERO };
        Some((share, self.most(direction)))
    }

    fn held(&self, direction: Direction, inflow: &mut Inflow) -> Option<Bytes> {
        inflow.bytes_in(self.most(direction))
    }

    fn remove_reordering(&mut self) {
        self.reorder = false;
    }
}

impl Declared for Jitter {
    const NAMES: &'static [&'static str] = &["jitter"];
    const PRINCIPAL: Option<&'static str> = Some("mean");
    const DOCS: &'static str = r#"| `jitter` | **`mean`** ↔ | of an extra delay that is drawn for each packet | required, or `delays` |
| | `distribution` | `uniform` (from zero to twice the mean), `exponential`, `normal` (with `deviation`, cut at zero) or `pareto` (Lomax, shape 3/2) | `uniform` |
| | `deviation` | standard deviation of `normal` | `0 s` |
| | `delays` ↔ | in place of these: extra delays, one of which is drawn for each packet, such as `["0 ms", "0 ms", "12 ms"]`; or the name of a file with one a line, in seconds or with its unit | none |
| | `correlation` | chance that a packet has the extra delay of the one before | `0 %` |
| | `reorder` | whether packets overtake each other; else each leaves behind those that came before it | `false` |"#;

    fn read<K: Keys>(_name: &str, keys: &mut K) -> Result<ElementKind, K::Error> {
        let (mean, distribution, deviation) = if keys.has("delays") {
            if let Some(other) = ["mean", "distribution", "deviation"].into_iter().find(|key| keys.has(key)) {
                let reason = format!("expected either `delays` or `{other}`, found both");
                return Err(keys.refuse("delays", reason));
            }
            let delays = keys.each_way("delays", Some(Delays::none()))?.map(|delays| delays.0);
            (delays.clone().map(|delays| mean_of(&delays)), Distribution::Listed(delays), Duration::ZERO)
        } else {
            (
                keys.each_way("mean", Some(Duration::ZERO))?,
                keys.or("distribution", Distribution::Uniform)?,
                keys.or("deviation", Duration::ZERO)?,
            )
        };
        Ok(ElementKind::Jitter(Jitter {
            mean,
            distribution,
            deviation,
            correlation: keys.or("correlation", Probability::ZERO)?,
            reorder: keys.or("reorder", false)?,
        }))
    }

    fn draw(draws: &mut Draws) -> Jitter {
        let mut mean = draws.each_way(|draws| draws.microseconds(0..=100_000));
        let mut deviation = Duration::ZERO;
        let distribution = match draws.below(5) {
            0 => Distribution::Uniform,
            1 => Distribution::Exponential,
            2 => {
                deviation = draws.microseconds(1..=100_000);
                Distribution::Normal
            }
            3 => Distribution::Pareto,
            _ => {
                let list = |draws: &mut Draws| {
                    (0..=draws.below(8)).map(|_| draws.microseconds(0..=100_000)).collect::<Arc<[_]>>()
                };
                let delays = draws.each_way(list);
                mean = PerDirection::from_fn(|way| mean_of(&delays[way]));
                Distribution::Listed(delays)
            }
        };
        Jitter { mean, distribution, deviation, correlation: draws.share(), reorder: draws.chance(30) }
    }

    fn build<P: ExplicitRatePacket + Clone + Send + 'static>(&self, name: &str, seed: u64) -> Built<P> {
        Built::Transit(Box::new(Varying {
            most: PerDirection::from_fn(|way| self.most(way)),
            correlation: Chance::from(self.correlation),
            jitter: self.clone(),
            draws: Generator::per_direction(seed, name),
            last: PerDirection::both(Duration::ZERO),
            left: PerDirection::both(Instant::ZERO),
        }))
    }
}

/// Delays of a list or a file.
#[derive(Clone)]
struct Delays(Arc<[Duration]>);

impl Delays {
    /// Of a direction that is not named.
    fn none() -> Delays {
        Delays([Duration::ZERO].into())
    }
}

impl ReadValue for Delays {
    const EXPECTED: &'static str =
        "a list of delays such as `[\"0 ms\", \"12 ms\"]`, or the name of a file with one a line";
    fn read<S: Source>(source: &S) -> Result<Delays, S::Error> {
        let found = keys::by_file(source, |text| {
            keys::lines(text)
                .map(|(line, text)| {
                    Changes::of_text(text)
                        .ok_or_else(|| keys::wrong_line(line, text, "a delay in seconds, or with its unit"))
                })
                .collect()
        });
        let found = found.or_else(|| source.list(|entry| Duration::read(entry)));
        let delays: Vec<Duration> = found.unwrap_or_else(|| Err(source.wrong_type(Self::EXPECTED)))?;
        if delays.is_empty() {
            return Err(source.refuse("expected a delay, found none".to_owned()));
        }
        Ok(Delays(delays.into()))
    }
}

/// Of a list that is not empty.
fn mean_of(delays: &[Duration]) -> Duration {
    let sum: u128 = delays.iter().map(|delay| u128::from(delay.as_nanos())).sum();
    Duration::from_nanos((sum / delays.len() as u128) as u64)
}

#[derive(Debug)]
struct Varying {
    jitter: Jitter,
    most: PerDirection<Duration>,
    correlation: Chance,
    draws: PerDirection<Generator>,
    /// Extra delay of the packet before.
    last: PerDirection<Duration>,
    /// When the last packet leaves that is kept in order.
    left: PerDirection<Instant>,
}

impl Varying {
    /// Draws the same number of times for each packet, whatever comes of it.
    fn extra_delay(&mut self, direction: Direction) -> Duration {
        let Jitter { mean, distribution, deviation, .. } = &self.jitter;
        let (mean, draws) = (mean[direction], &mut self.draws[direction]);
        let keeps = draws.happens(self.correlation);
        let nanoseconds = |ns: f64| Duration::from_nanos(libm::round(ns.max(0.0)) as u64);
        let mean_ns = mean.as_nanos() as f64;
        let fresh = match distribution {
            Distribution::Uniform => nanoseconds(2.0 * mean_ns * (1.0 - draws.fraction())),
            Distribution::Exponential => nanoseconds(-mean_ns * libm::log(draws.fraction())),
            Distribution::Normal => nanoseconds(mean_ns + deviation.as_nanos() as f64 * draws.normal()),
            Distribution::Pareto => draws.heavy_tailed(mean),
            Distribution::Listed(delays) => {
                delays[direction][draws.below(delays[direction].len() as u64) as usize]
            }
        };
        if !keeps {
            self.last[direction] = fresh.min(self.most[direction]);
        }
        self.last[direction]
    }
}

impl Transit for Varying {
    fn transit(&mut self, now: Instant, direction: Direction, _packet: PacketView) -> Fate {
        let due = now + self.extra_delay(direction);
        if self.jitter.reorder {
            return Fate::Depart(due);
        }
        let left = &mut self.left[direction];
        *left = due.max(*left);
        Fate::Depart(*left)
    }

    fn keeps_order(&self, _direction: Direction) -> bool {
        !self.jitter.reorder
    }
}
