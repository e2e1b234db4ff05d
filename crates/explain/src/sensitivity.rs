//! How the answer depends on what is known of the path: each input in the interval that was measured, else by half and by
//! double, all else being equal.

use crate::ExplainError;
use crate::measure::{Bench, Observed};
use farpath_experiment::Scenario;
use farpath_path::{Direction, PerDirection};
use farpath_units::Probability;
use serde::Serialize;

/// One input, and what becomes of the answer where it is less or more.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sensitivity {
    /// Which input: `delay`, `rate`, `loss`, `queue`.
    pub input: &'static str,
    /// Whether the two are the ends of what was measured; else they are half and double.
    pub measured: bool,
    /// By this factor it is less; of a loss that was measured, the rate itself.
    pub less: f64,
    /// The time with that, in s; unknown where not all complete.
    pub less_s: Option<f64>,
    /// The same where it is more.
    pub more: f64,
    /// The time with that, in s.
    pub more_s: Option<f64>,
    /// The longest of the three times over the shortest.
    pub span: Option<f64>,
}

/// How well a path is known: the ends of what was measured. What is not measured is varied by half and by double.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Known {
    /// Factors of the delay.
    pub delay: Option<[f64; 2]>,
    /// Factors of the rate, each way.
    pub rate: Option<PerDirection<[f64; 2]>>,
    /// The loss rates themselves, each way: no factor makes anything of none.
    pub loss: Option<PerDirection<[f64; 2]>>,
    /// Factors of the queue, each way.
    pub queue: Option<PerDirection<[f64; 2]>>,
}

impl Known {
    /// Whether chance enters where the answer is looked at with what may be.
    pub(crate) fn may_lose(&self) -> bool {
        self.loss.is_some_and(|loss| loss.forward[1] > 0.0 || loss.reverse[1] > 0.0)
    }

    /// The two ends of an input, each way; `None` where it was not measured.
    fn ends(&self, input: Input) -> Option<PerDirection<[f64; 2]>> {
        match input {
            Input::Delay => self.delay.map(PerDirection::both),
            Input::Rate => self.rate,
            Input::Loss => self.loss,
            Input::Queue => self.queue,
        }
    }
}

/// What an operator says of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Input {
    Delay,
    Rate,
    Loss,
    Queue,
}

impl Input {
    const ALL: [Input; 4] = [Input::Delay, Input::Rate, Input::Loss, Input::Queue];

    const fn name(self) -> &'static str {
        match self {
            Input::Delay => "delay",
            Input::Rate => "rate",
            Input::Loss => "loss",
            Input::Queue => "queue",
        }
    }
}

const LESS: f64 = 0.5;
const MORE: f64 = 2.0;

pub(crate) fn sensitivity(
    scenario: &Scenario,
    known: &Known,
    base: &Observed,
    bench: &mut Bench<'_>,
) -> Result<Vec<Sensitivity>, ExplainError> {
    let time =
        |observed: &Observed| observed.judged_s().filter(|_| observed.completed == 1.0).map(|time| time.mean);
    let mut found = Vec::new();
    for input in Input::ALL {
        let measured = known.ends(input);
        let ends = measured.unwrap_or(PerDirection::both([LESS, MORE]));
        let end = |place: usize| ends.map(|both| both[place]);
        let varied = |place: usize| match (input, measured) {
            (Input::Loss, Some(_)) => with_loss(scenario, end(place)),
            _ => scaled(scenario, input, end(place)),
        };
        let (Some(less), Some(more)) = (varied(0), varied(1)) else { continue };
        let observed = bench.measure(&[less, more])?;
        let (less_s, more_s) = (time(&observed[0]), time(&observed[1]));
        let all: Option<Vec<f64>> = [time(base), less_s, more_s].into_iter().collect();
        let span = all.map(|times| {
            let longest = times.iter().copied().fold(0.0, f64::max);
            longest / times.iter().copied().fold(f64::INFINITY, f64::min).max(1e-9)
        });
        let [less, more] = ends[scenario.flows[0].direction];
        let measured = measured.is_some();
        found.push(Sensitivity { input: input.name(), measured, less, less_s, more, more_s, span });
    }
    found.sort_by(|a, b| b.span.unwrap_or(f64::INFINITY).total_cmp(&a.span.unwrap_or(f64::INFINITY)));
    Ok(found)
}

/// The scenario with these loss rates; `None` where the path has no such element.
fn with_loss(scenario: &Scenario, rates: PerDirection<f64>) -> Option<Scenario> {
    let mut changed = scenario.clone();
    let mut any = false;
    for way in Direction::BOTH {
        let rate = Probability::new(rates[way])?;
        for element in &mut changed.path {
            any |= element.kind.spec_mut().set_loss_rate(way, rate);
        }
    }
    any.then_some(changed)
}

/// The scenario with this input times these factors; `None` where the path has no such input.
fn scaled(scenario: &Scenario, input: Input, factors: PerDirection<f64>) -> Option<Scenario> {
    let mut scaled = scenario.clone();
    let mut any = false;
    for element in &mut scaled.path {
        for way in Direction::BOTH {
            let (element, factor) = (element.kind.spec_mut(), factors[way]);
            any |= match input {
                Input::Delay => element.scale_delay(way, factor),
                Input::Rate => element.scale_rate(way, factor),
                Input::Queue => element.scale_queue(way, factor),
                Input::Loss => element.scale_loss(way, factor),
            };
        }
    }
    any.then_some(scaled)
}
