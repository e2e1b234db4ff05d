//! A value that changes over time: in steps, or in straight lines between points.

use crate::draw::Draws;
use crate::element::Fault;
use crate::keys::{self, Keys, ReadValue, Source};
use crate::trace::parse_points;
use core::fmt;
use farpath_path::{Direction, Generator, PerDirection};
use farpath_units::{Ber, Duration, Instant, Probability, Rate};
use std::sync::Arc;

/// A parameter's value, which stays or changes over time.
#[derive(Debug, Clone, PartialEq)]
pub enum Setting<T> {
    /// It stays.
    Still(T),
    /// It changes.
    Changing(OverTime<T>),
}

/// Points of a value over the time of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct OverTime<T> {
    /// When, from zero on and rising, and what it is from then on, or then.
    points: Arc<[(Duration, T)]>,
    between: Between,
    /// When the points begin again; without, the last value stays.
    repeat: Option<Duration>,
    offset: Offset,
}

/// What a value is between two points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Between {
    /// That of the point before.
    Steps,
    /// On the straight line from one to the next.
    Lines,
}

impl Between {
    const WORDS: [(&'static str, Between); 2] = [("steps", Between::Steps), ("lines", Between::Lines)];
}

/// Where in its points a run begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offset {
    /// So far behind the first.
    At(Duration),
    /// Anywhere in what repeats, drawn by the seed.
    Random,
}

/// A type of value that can change over time.
pub trait Changes: ReadValue + Copy + PartialEq + fmt::Display {
    /// What a point calls its value.
    const KEY: &'static str;
    /// How values are interpolated and averaged: in seconds, or as they are.
    fn number(self) -> f64;
    /// The value of such a number.
    fn of_number(number: f64) -> Self;
    /// Reads the second column of a file; bare numbers are seconds, or fractions.
    fn of_text(text: &str) -> Option<Self>;
}

impl Changes for Duration {
    const KEY: &'static str = "delay";
    fn number(self) -> f64 {
        self.as_secs_f64()
    }
    fn of_number(number: f64) -> Duration {
        Duration::from_nanos(libm::round(number * 1e9) as u64)
    }
    fn of_text(text: &str) -> Option<Duration> {
        let seconds: Option<f64> = text.parse().ok().filter(|seconds| (0.0..9e6).contains(seconds));
        seconds.map(Duration::of_number).or_else(|| text.parse().ok())
    }
}

impl Changes for Probability {
    const KEY: &'static str = "rate";
    fn number(self) -> f64 {
        self.fraction()
    }
    fn of_number(number: f64) -> Probability {
        Probability::new(number.clamp(0.0, 1.0)).unwrap_or(Probability::ONE)
    }
    fn of_text(text: &str) -> Option<Probability> {
        let fraction: Option<f64> = text.parse().ok();
        fraction.map_or_else(|| text.parse().ok(), Probability::new)
    }
}

impl Changes for Ber {
    const KEY: &'static str = "ber";
    fn number(self) -> f64 {
        self.errors_per_bit()
    }
    fn of_number(number: f64) -> Ber {
        Ber::new(number.clamp(0.0, 1.0)).unwrap_or_default()
    }
    fn of_text(text: &str) -> Option<Ber> {
        text.parse().ok()
    }
}

impl Changes for Rate {
    const KEY: &'static str = "rate";
    fn number(self) -> f64 {
        self.bit_per_s() as f64
    }
    fn of_number(number: f64) -> Rate {
        Rate::from_bit_per_s(libm::round(number.max(1.0)) as u64).expect("at least 1")
    }
    fn of_text(text: &str) -> Option<Rate> {
        let bit_per_s: Option<f64> = text.parse().ok().filter(|rate| (1.0..1e18).contains(rate));
        bit_per_s.map(Rate::of_number).or_else(|| text.parse().ok())
    }
}

/// When each value begins, or is reached.
pub(crate) type PointList<T> = Vec<(Duration, T)>;

impl<T: Changes> OverTime<T> {
    /// The value so long after the start of the run.
    fn value_at(&self, time: Duration, offset: Duration) -> T {
        let time = match self.repeat {
            Some(repeat) => Duration::from_nanos((time + offset).as_nanos() % repeat.as_nanos()),
            None => time + offset,
        };
        let next = self.points.partition_point(|point| point.0 <= time);
        let (from, value) = self.points[next.saturating_sub(1)];
        let after = self.points.get(next).copied().or(self.repeat.map(|repeat| (repeat, self.points[0].1)));
        match (self.between, after) {
            (Between::Lines, Some((to, other))) if other != value => {
                let share = (time - from).as_secs_f64() / (to - from).as_secs_f64();
                T::of_number(value.number() + share * (other.number() - value.number()))
            }
            _ => value,
        }
    }

    /// The mean over time, from the first point to the last, or over what repeats.
    fn mean(&self) -> T {
        let first = self.points[0].1;
        let ends = self.points[1..].iter().copied().chain(self.repeat.map(|repeat| (repeat, first)));
        let area: f64 = self
            .points
            .iter()
            .zip(ends)
            .map(|(&(from, value), (to, next))| {
                let height = match self.between {
                    Between::Steps => value.number(),
                    Between::Lines => (value.number() + next.number()) / 2.0,
                };
                height * (to - from).as_secs_f64()
            })
            .sum();
        let last = self.points.last().map_or(Duration::ZERO, |last| last.0);
        let span = self.repeat.unwrap_or(last).as_secs_f64();
        if span == 0.0 { first } else { T::of_number(area / span) }
    }

    fn read_points<S: Source>(source: &S) -> Option<Result<PointList<T>, S::Error>> {
        let mut last = None;
        source.list(|entry| {
            let point = entry.table(|keys| {
                let at: Duration = keys.required("at")?;
                if let Some(reason) = out_of_order(last, at) {
                    return Err(keys.refuse("at", reason));
                }
                last = Some(at);
                Ok((at, keys.required::<T>(T::KEY)?))
            });
            point.unwrap_or_else(|| {
                Err(entry.wrong_type(&format!("a point such as `{{ at = \"5 s\", {} = .. }}`", T::KEY)))
            })
        })
    }

    /// Points in rising order from zero on.
    ///
    /// # Errors
    /// What leaves a moment without a value, and the parameter that does.
    pub fn new(
        points: PointList<T>,
        between: Between,
        repeat: Option<Duration>,
        offset: Offset,
    ) -> Result<OverTime<T>, Fault> {
        let refuse = |key: &str, reason: String| Err(Fault { key: key.to_owned(), reason });
        let mut last = None;
        for &(at, _) in &points {
            if let Some(reason) = out_of_order(last, at) {
                return refuse("points", reason);
            }
            last = Some(at);
        }
        match (last, repeat, offset) {
            (None, ..) => refuse("points", "expected a point, found none".to_owned()),
            (Some(last), Some(repeat), _) if repeat <= last => refuse(
                "repeat",
                format!("expected a time after {last}, where the last point is, found {repeat}"),
            ),
            (_, None, Offset::Random) => refuse(
                "offset",
                "expected a `repeat` beside it: a random one is drawn from what repeats".to_owned(),
            ),
            _ => Ok(OverTime { points: points.into(), between, repeat, offset }),
        }
    }
}

/// Why a point cannot be at this time, if it cannot.
pub(crate) fn out_of_order(last: Option<Duration>, at: Duration) -> Option<String> {
    match last {
        None if !at.is_zero() => Some(format!("expected `0 s`, where it begins, found {at}")),
        Some(last) if at <= last => Some(format!("expected a time after {last}, found {at}")),
        _ => None,
    }
}

impl<T: Changes> Setting<T> {
    /// Whether it is the same at all times.
    pub fn stays(&self) -> bool {
        matches!(self, Setting::Still(_))
    }

    /// Points that it has.
    pub(crate) fn entries(&self) -> usize {
        match self {
            Setting::Still(_) => 0,
            Setting::Changing(over) => over.points.len(),
        }
    }

    /// The same with each value changed.
    pub(crate) fn map(&self, mut change: impl FnMut(T) -> T) -> Setting<T> {
        match self {
            Setting::Still(value) => Setting::Still(change(*value)),
            Setting::Changing(over) => {
                let points = over.points.iter().map(|&(at, value)| (at, change(value))).collect();
                Setting::Changing(OverTime { points, ..over.clone() })
            }
        }
    }

    /// Whether runs of two seeds differ in it.
    pub(crate) fn is_random(&self) -> bool {
        matches!(self, Setting::Changing(OverTime { offset: Offset::Random, .. }))
    }

    /// The value that stays at the end, and since when; `None` where it stays from the beginning on, or repeats.
    pub(crate) fn last(&self) -> Option<(Duration, T)> {
        match self {
            Setting::Still(_) => None,
            Setting::Changing(over) => over.points.last().copied().filter(|_| over.repeat.is_none()),
        }
    }

    /// The mean over time.
    pub fn mean(&self) -> T {
        match self {
            Setting::Still(value) => *value,
            Setting::Changing(over) => over.mean(),
        }
    }

    /// The value so long after the start of a run whose offset is not drawn.
    pub fn value_at(&self, time: Duration) -> T {
        match self {
            Setting::Still(value) => *value,
            Setting::Changing(over) => {
                let offset = match over.offset {
                    Offset::At(offset) => offset,
                    Offset::Random => Duration::ZERO,
                };
                over.value_at(time, offset)
            }
        }
    }

    /// The least and the greatest value.
    pub fn range(&self) -> (T, T) {
        match self {
            Setting::Still(value) => (*value, *value),
            Setting::Changing(over) => {
                let first = over.points[0].1;
                over.points.iter().fold((first, first), |(least, greatest), &(_, value)| {
                    (
                        if value.number() < least.number() { value } else { least },
                        if value.number() > greatest.number() { value } else { greatest },
                    )
                })
            }
        }
    }

    /// The value, for a run of this seed.
    pub(crate) fn in_run(&self, name: &str, seed: u64) -> InRun<T> {
        let offset = match self {
            Setting::Changing(OverTime { offset: Offset::At(offset), .. }) => *offset,
            Setting::Changing(OverTime { repeat: Some(repeat), .. }) => {
                let mut draws = Generator::new(seed, &format!("{name} offset"), Direction::Forward);
                Duration::from_nanos(draws.below(repeat.as_nanos()))
            }
            _ => Duration::ZERO,
        };
        InRun { setting: self.clone(), offset }
    }

    /// One for property tests.
    pub(crate) fn draw(draws: &mut Draws, mut value: impl FnMut(&mut Draws) -> T) -> Setting<T> {
        if draws.chance(30) {
            return Setting::Still(value(draws));
        }
        let mut at = Duration::ZERO;
        let mut points = vec![(at, value(draws))];
        for _ in 0..draws.below(6) {
            at += draws.microseconds(1..=10_000_000);
            points.push((at, value(draws)));
        }
        let repeat = draws.option(|draws| at + draws.microseconds(1..=1_000_000));
        let offset = match repeat {
            Some(_) if draws.chance(50) => Offset::Random,
            _ => Offset::At(draws.microseconds(0..=1_000_000)),
        };
        let between = draws.one_of(&[Between::Steps, Between::Lines]);
        Setting::Changing(OverTime::new(points, between, repeat, offset).expect("rising, and long enough"))
    }
}

impl<T: Changes> fmt::Display for Setting<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setting::Still(value) => value.fmt(f),
            Setting::Changing(_) => {
                let (least, greatest) = self.range();
                write!(f, "from {least} to {greatest} over time")
            }
        }
    }
}

/// The values, where neither changes.
pub(crate) fn still<T: Changes>(settings: &PerDirection<Setting<T>>) -> Option<PerDirection<T>> {
    match (&settings.forward, &settings.reverse) {
        (&Setting::Still(forward), &Setting::Still(reverse)) => Some(PerDirection { forward, reverse }),
        _ => None,
    }
}

/// A setting, and where in it a run begins.
#[derive(Debug, Clone)]
pub(crate) struct InRun<T> {
    setting: Setting<T>,
    offset: Duration,
}

impl<T: Changes> InRun<T> {
    pub fn value_at(&self, now: Instant) -> T {
        match &self.setting {
            Setting::Still(value) => *value,
            Setting::Changing(over) => over.value_at(now.since_start(), self.offset),
        }
    }
}

impl<T: Changes> ReadValue for Setting<T> {
    const EXPECTED: &'static str = T::EXPECTED;
    const IS_TABLE: bool = true;
    fn read<S: Source>(source: &S) -> Result<Setting<T>, S::Error> {
        if source.text().is_some() || source.is_number() {
            return T::read(source).map(Setting::Still);
        }
        if let Some(points) = OverTime::<T>::read_points(source) {
            let over = OverTime::new(points?, Between::Steps, None, Offset::At(Duration::ZERO));
            return over.map(Setting::Changing).map_err(|fault| source.refuse(fault.reason));
        }
        let over = source.table(|keys| {
            let (points, in_file) = match keys.has("file") {
                true => keys.required::<InFile<T>>("file").map(|file| (file.points, file.repeat))?,
                false => (keys.required::<Points<T>>("points")?.0, None),
            };
            let between = keys.or("between", Between::Steps)?;
            let repeat = keys.optional("repeat")?.or(in_file);
            let offset = keys.or("offset", Offset::At(Duration::ZERO))?;
            OverTime::new(points, between, repeat, offset)
                .map_err(|fault| keys.refuse(&fault.key, fault.reason))
        });
        match over {
            Some(over) => over.map(Setting::Changing),
            None => T::read(source).map(Setting::Still),
        }
    }
}

impl ReadValue for Between {
    const EXPECTED: &'static str = "`steps` or `lines`";
    fn read<S: Source>(source: &S) -> Result<Between, S::Error> {
        keys::word(source, &Between::WORDS)
    }
}

impl ReadValue for Offset {
    const EXPECTED: &'static str = "a duration such as `20 s`, or `random`";
    fn read<S: Source>(source: &S) -> Result<Offset, S::Error> {
        Ok(source.unless::<Duration>("random")?.map_or(Offset::Random, Offset::At))
    }
}

/// Points in the experiment itself.
struct Points<T>(PointList<T>);

impl<T: Changes> ReadValue for Points<T> {
    const EXPECTED: &'static str = "a list of points, each with `at` and its value, or a `file`";
    fn read<S: Source>(source: &S) -> Result<Points<T>, S::Error> {
        OverTime::read_points(source).unwrap_or_else(|| Err(source.wrong_type(Self::EXPECTED))).map(Points)
    }
}

/// Points of a file: `seconds,value` a line, as files of rates have them.
struct InFile<T> {
    points: PointList<T>,
    repeat: Option<Duration>,
}

impl<T: Changes> ReadValue for InFile<T> {
    const EXPECTED: &'static str = "the name of a file with `seconds,value` a line";
    fn read<S: Source>(source: &S) -> Result<InFile<T>, S::Error> {
        let parse = |text: &str| {
            let expected = format!("a value in the form of {}", T::EXPECTED);
            parse_points(text, |value| T::of_text(value), &expected)
        };
        let read = keys::by_file(source, parse).unwrap_or_else(|| Err(source.wrong_type(Self::EXPECTED)));
        read.map(|(points, repeat)| InFile { points, repeat })
    }
}
