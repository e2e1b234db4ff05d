//! What a sweep over many numbers draws: curves, where they jump, and the timer that is nearest to that.

use core::ops::Range;
use farpath_engine::{RadiusKind, radii};
use farpath_experiment::Scenario;
use farpath_run::{ExperimentSummary, SummaryTimer};

/// From so many numbers on, a sweep is drawn as a curve and looked through for steps.
const CURVE: usize = 24;

/// How much a step changes at the least, as the logarithm of a ratio: less is not seen.
const LEAST_CHANGE: f64 = 0.01;

/// How many times more a step changes than the curve does by itself.
const ABRUPT: f64 = 8.0;

/// Points on either side of a pair that say how much the curve changes by itself.
const AROUND: usize = 10;

/// Jumps so near to each other, in parts of the swept number, are one step: a coarse clock makes a curve go to and fro.
const ONE_STEP: f64 = 0.1;

/// How near to a timer a step is called by it.
const NEAR: f64 = 0.08;

/// Backed-off timeouts that are looked at.
const BACKOFFS: u32 = 8;

/// The numbers that a sweep goes through, and the lines that its other parameters make of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    /// The swept key.
    pub key: String,
    /// The unit of the numbers; empty for none.
    pub unit: String,
    /// A line for each combination of the other parameters.
    pub lines: Vec<Line>,
}

/// The points of one line, by rising number.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The other parameters' values; empty where there are none.
    pub label: String,
    /// The swept number, and the index of the point that has it.
    pub points: Vec<(f64, usize)>,
}

/// A place where a curve jumps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Half way between the points before and behind its first jump.
    pub at: f64,
    /// The index of the point before the first jump, and of that behind the last.
    pub between: (usize, usize),
    /// What the curve is before it, and behind it.
    pub change: (f64, f64),
}

impl Grid {
    /// The axis of a sweep that has the most numbers, where they are enough for a curve.
    pub fn swept_in(asked: &ExperimentSummary) -> Option<Grid> {
        let keys = asked.axes.iter().map(|keys| keys.first());
        let numbers = |key: &String| {
            let values = asked.points.iter().map(|point| value_of(&point.swept, key));
            let values: Vec<&str> = values.collect::<Option<_>>()?;
            let (numbers, unit) = numbers(&values)?;
            let mut distinct = numbers.clone();
            distinct.sort_by(f64::total_cmp);
            distinct.dedup();
            (distinct.len() >= CURVE).then_some((distinct.len(), key.clone(), numbers, unit))
        };
        let (_, key, numbers, unit) = keys.flatten().filter_map(numbers).max_by_key(|(count, ..)| *count)?;
        let along = asked.axes.iter().find(|keys| keys[0] == key)?;
        let mut lines: Vec<Line> = Vec::new();
        for (index, (point, number)) in asked.points.iter().zip(numbers).enumerate() {
            let mut others: Vec<&str> = Vec::new();
            // Values that are equal at all keys of an axis, such as the two ends' stacks, are said once.
            for (_, value) in point.swept.iter().filter(|(key, _)| !along.contains(key)) {
                if others.last() != Some(&value.as_str()) {
                    others.push(value);
                }
            }
            let label = others.join(", ");
            match lines.iter_mut().find(|line| line.label == label) {
                Some(line) => line.points.push((number, index)),
                None => lines.push(Line { label, points: vec![(number, index)] }),
            }
        }
        for line in &mut lines {
            line.points.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        Some(Grid { key, unit, lines })
    }
}

impl Line {
    /// The swept number and `value` of each point that has one.
    pub fn curve(&self, value: impl Fn(usize) -> Option<f64>) -> Vec<(f64, f64)> {
        let point = |&(number, index): &(f64, usize)| Some((number, value(index)?));
        self.points.iter().filter_map(point).collect()
    }

    /// The timer that is nearest to a step of this line, with its round trip in s; none where none is near.
    pub fn timer<'a>(&self, asked: &'a ExperimentSummary, step: &Step) -> Option<&'a SummaryTimer> {
        let rtt = |place: usize| asked.points.get(self.points[place].1)?.rtt_s;
        let (before, behind) = (rtt(step.between.0)?, rtt(step.between.1)?);
        let place = self.points[step.between.0].1;
        let timers = asked.timers.get(asked.points[place].timers?)?;
        // Nothing to go by within the step, and the distance to it outside.
        let far = |timer: &SummaryTimer| {
            let rtt = timer.rtt_s;
            if rtt < before { (before / rtt).ln() } else { (rtt / behind).ln().max(0.0) }
        };
        let nearest = timers.iter().min_by(|a, b| far(a).total_cmp(&far(b)))?;
        (far(nearest) <= NEAR).then_some(nearest)
    }
}

/// Where a curve of rising positive numbers jumps: where it changes abruptly beside what it does by itself, which is taken
/// to be a power of the number, as transfer time and goodput are of a delay.
pub fn steps(curve: &[(f64, f64)]) -> Vec<Step> {
    if curve.len() < CURVE || curve.iter().any(|&(x, y)| x <= 0.0 || y <= 0.0) {
        return Vec::new();
    }
    let ratio =
        |from: usize, to: usize| ((curve[to].1 / curve[from].1).ln(), (curve[to].0 / curve[from].0).ln());
    let exponents: Vec<f64> = (0..curve.len() - 1)
        .map(|pair| {
            let (y, x) = ratio(pair, pair + 1);
            y / x
        })
        .collect();
    let beyond = |from: usize, to: usize| {
        let (y, x) = ratio(from, to);
        (y - usual(from, &exponents) * x).abs()
    };
    let is_jump = |pair: &usize| {
        let (_, x) = ratio(*pair, *pair + 1);
        beyond(*pair, pair + 1) > LEAST_CHANGE.max(ABRUPT * usual(*pair, &exponents).abs() * x)
    };
    let jumps: Vec<usize> = (0..curve.len() - 1).filter(is_jump).collect();
    let mut steps = Vec::new();
    for run in runs(&jumps, |first, next| curve[next].0 <= curve[first].0 * (1.0 + ONE_STEP)) {
        let (first, last) = (jumps[run.start], jumps[run.end - 1] + 1);
        // To and fro, and back where it would be, is no step.
        if beyond(first, last) > LEAST_CHANGE {
            let at = (curve[first].0 + curve[first + 1].0) / 2.0;
            steps.push(Step { at, between: (first, last), change: (curve[first].1, curve[last].1) });
        }
    }
    steps
}

/// The median of the exponents around a pair.
fn usual(pair: usize, exponents: &[f64]) -> f64 {
    let around = pair.saturating_sub(AROUND)..(pair + AROUND + 1).min(exponents.len());
    let mut around: Vec<f64> = around.filter(|&other| other != pair).map(|other| exponents[other]).collect();
    around.sort_by(f64::total_cmp);
    around.get(around.len() / 2).copied().unwrap_or(0.0)
}

/// Ranges of `items` of which each belongs to the first of its range.
fn runs<T: Copy>(items: &[T], belongs: impl Fn(T, T) -> bool) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (index, &item) in items.iter().enumerate() {
        match runs.last_mut() {
            Some(run) if belongs(items[run.start], item) => run.end = index + 1,
            _ => runs.push(index..index + 1),
        }
    }
    runs
}

/// The timers of a point's sender that a round trip can meet: its radii, and its timeouts backed off.
pub(crate) fn timers(scenario: &Scenario) -> Vec<SummaryTimer> {
    let stack = &scenario.sender.config;
    let mut timers: Vec<SummaryTimer> = Vec::new();
    for radius in radii(stack, None).unwrap_or_default() {
        let rtt_s = radius.rtt.least;
        if rtt_s.is_finite() && !matches!(radius.kind, RadiusKind::TimeWait | RadiusKind::Usable) {
            timers.push(SummaryTimer { name: radius.kind.name(), set_by: radius.timer, rtt_s });
        }
    }
    let initial = stack.rto.initial.as_secs_f64();
    for backoff in 1..BACKOFFS {
        let rtt_s = initial * f64::from(2_u32.pow(backoff));
        if rtt_s <= stack.rto.max.as_secs_f64() {
            let times = match backoff {
                1 => "once".to_owned(),
                2 => "twice".to_owned(),
                more => format!("{more} times"),
            };
            let name = format!("data sent again, its timeout doubled {times} by SYNs");
            timers.push(SummaryTimer { name, set_by: "rto.initial, doubled".to_owned(), rtt_s });
        }
    }
    // Of two at one round trip the first says more.
    let mut distinct: Vec<SummaryTimer> = Vec::new();
    for timer in timers {
        if distinct.iter().all(|other| other.rtt_s != timer.rtt_s) {
            distinct.push(timer);
        }
    }
    distinct
}

pub(crate) fn value_of<'a>(swept: &'a [(String, String)], key: &str) -> Option<&'a str> {
    swept.iter().find(|(other, _)| other == key).map(|(_, value)| value.as_str())
}

/// Values as numbers of one unit: of their own where they share it, else of the base unit.
pub(crate) fn numbers(values: &[&str]) -> Option<(Vec<f64>, String)> {
    let split = |text: &str| -> Option<(f64, String)> {
        let end = text.find(|c: char| !c.is_ascii_digit() && !"+-.".contains(c)).unwrap_or(text.len());
        Some((text[..end].parse().ok()?, text[end..].trim().to_owned()))
    };
    let parts: Vec<(f64, String)> = values.iter().map(|text| split(text)).collect::<Option<_>>()?;
    let unit = parts.first()?.1.clone();
    if parts.iter().all(|(_, other)| *other == unit) {
        return Some((parts.into_iter().map(|(number, _)| number).collect(), unit));
    }
    let (numbers, unit) = farpath_experiment::numbers(values)?;
    Some((numbers, unit.to_owned()))
}

#[cfg(test)]
mod tests;
