//! How the answer depends on what is known of the path: each input by half and by double, all else being equal.

use crate::ExplainError;
use crate::measure::{Bench, Observed};
use farpath_elements::{Bernoulli, ElementKind, QueueLimit};
use farpath_experiment::Scenario;
use farpath_units::{Bytes, Duration, Probability, Rate};
use serde::Serialize;

/// One input, and what becomes of the answer where it is less or more.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sensitivity {
    /// Which input: `delay`, `rate`, `loss`, `queue`.
    pub input: &'static str,
    /// By this factor it is less.
    pub less: f64,
    /// The time with that, in s; unknown where not all complete.
    pub less_s: Option<f64>,
    /// By this factor it is more.
    pub more: f64,
    /// The time with that, in s.
    pub more_s: Option<f64>,
    /// The longest of the three times over the shortest.
    pub span: Option<f64>,
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
    base: &Observed,
    bench: &mut Bench<'_>,
) -> Result<Vec<Sensitivity>, ExplainError> {
    let time =
        |observed: &Observed| observed.judged_s().filter(|_| observed.completed == 1.0).map(|time| time.mean);
    let mut found = Vec::new();
    for input in Input::ALL {
        let (Some(less), Some(more)) = (scaled(scenario, input, LESS), scaled(scenario, input, MORE)) else {
            continue;
        };
        let observed = bench.measure(&[less, more])?;
        let (less_s, more_s) = (time(&observed[0]), time(&observed[1]));
        let all: Option<Vec<f64>> = [time(base), less_s, more_s].into_iter().collect();
        let span = all.map(|times| {
            let longest = times.iter().copied().fold(0.0, f64::max);
            longest / times.iter().copied().fold(f64::INFINITY, f64::min).max(1e-9)
        });
        found.push(Sensitivity { input: input.name(), less: LESS, less_s, more: MORE, more_s, span });
    }
    found.sort_by(|a, b| b.span.unwrap_or(f64::INFINITY).total_cmp(&a.span.unwrap_or(f64::INFINITY)));
    Ok(found)
}

/// The scenario with this input times `factor`; `None` where the path has no such input.
fn scaled(scenario: &Scenario, input: Input, factor: f64) -> Option<Scenario> {
    let mut scaled = scenario.clone();
    let mut any = false;
    for element in &mut scaled.path {
        any |= match (&mut element.kind, input) {
            (ElementKind::Delay(delay), Input::Delay) => {
                for way in [&mut delay.delay.forward, &mut delay.delay.reverse] {
                    *way = Duration::from_secs_f64(way.as_secs_f64() * factor);
                }
                true
            }
            (ElementKind::Link(link), Input::Rate) => {
                for way in [&mut link.rate.forward, &mut link.rate.reverse] {
                    let rate = (way.bit_per_s() as f64 * factor) as u64;
                    *way = Rate::from_bit_per_s(rate.max(1)).unwrap_or(*way);
                }
                true
            }
            (ElementKind::Link(link), Input::Queue) => {
                let mut limited = false;
                for way in [&mut link.queue.forward, &mut link.queue.reverse] {
                    *way = match *way {
                        QueueLimit::Unlimited => continue,
                        QueueLimit::Bytes(bytes) => {
                            QueueLimit::Bytes(Bytes((bytes.0 as f64 * factor) as u64))
                        }
                        QueueLimit::Packets(packets) => QueueLimit::Packets((packets as f64 * factor) as u64),
                    };
                    limited = true;
                }
                limited
            }
            (ElementKind::Bernoulli(Bernoulli { loss_rate: rate, .. }), Input::Loss) => {
                let mut lossy = false;
                for way in [&mut rate.forward, &mut rate.reverse] {
                    lossy |= way.fraction() > 0.0;
                    *way = Probability::new((way.fraction() * factor).min(1.0)).unwrap_or(*way);
                }
                lossy
            }
            _ => false,
        };
    }
    any.then_some(scaled)
}
