//! A radius found by simulation: connections over longer and longer delays, and bisection where the answer changes.

use super::{Radius, RadiusKind};
use crate::SimulateError;
use farpath_elements::{Delay, ElementKind, ElementSpec};
use farpath_model::radius::Span;
use farpath_path::PerDirection;
use farpath_sim::{FlowEnd, FlowResult, FlowSetup, Setup, Silent};
use farpath_tcp::Config;
use farpath_units::{Bytes, Duration};

/// From where delays are tried, one way.
const SHORTEST: Duration = Duration::from_millis(10);

/// Up to where at least, one way: beyond the 1000 s that the paper goes to.
const LONGEST: Duration = Duration::from_secs(4_000);

/// Longest round trip of a radius that is looked for, in s: of longer ones a simulation does not have the time, which ends
/// after 584 years, to go on for as long as it may take.
const FARTHEST: f64 = 3e7;

/// How far apart the bisection ends.
const RESOLUTION: Duration = Duration::from_micros(100);

/// A radius in closed form beside what simulation says.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedRadius {
    /// The closed form.
    pub radius: Radius,
    /// The longest round trip before the first at which it no longer goes well, and the longest at which it does, in s:
    /// infinite where no delay that was tried ends it; `None` for what a handshake and one byte do not show, and for a year
    /// and more.
    pub simulated: Option<Span>,
}

impl CheckedRadius {
    /// How far the simulated one is outside of the closed form's span, in s; zero inside.
    pub fn error(&self) -> Option<f64> {
        let Span { least, most } = self.radius.rtt;
        let outside = |rtt: f64| if rtt < least { rtt - least } else { (rtt - most).max(0.0) };
        let simulated = self.simulated?;
        let ends = [simulated.least, simulated.most].map(|rtt| if rtt == most { 0.0 } else { outside(rtt) });
        ends.into_iter().max_by(|a, b| a.abs().total_cmp(&b.abs()))
    }

    /// What the two may differ by, in s: the resolution of the search both ways; and in a race, whose ends the closed form
    /// finds by trying, a hundredth.
    pub fn tolerance(&self) -> f64 {
        let search = (RESOLUTION * 4).as_secs_f64();
        if self.radius.race.is_some() { self.radius.rtt.most / 100.0 } else { search }
    }
}

/// Finds `radius` of `stack` by simulation: one byte from the end that opens to one that listens, over a path that only
/// delays. Delays grow by a twentieth until the answer changes; between the last two it is halved. Where timers race,
/// the answer changes to and fro: there delays grow by a thousandth.
///
/// The simulation's connections begin on a tick of both clocks.
///
/// # Errors
/// The path cannot be built: a defect.
pub fn check_radius(stack: &Config, radius: &Radius) -> Result<CheckedRadius, SimulateError> {
    let kind = radius.kind;
    let holds = |owd| Ok::<_, SimulateError>(goes_well(kind, &transfer(stack, owd)?) == Some(true));
    if radius.rtt.most.is_finite() && radius.rtt.most > FARTHEST {
        return Ok(CheckedRadius { radius: radius.clone(), simulated: None });
    }
    let simulated = match (goes_well(kind, &transfer(stack, SHORTEST)?), radius.race) {
        (None, _) => None,
        (Some(_), None) => Some(Span::exactly(edge(holds, radius.rtt.least)?.map_or(f64::INFINITY, rtt_of))),
        (Some(_), Some(_)) => Some(edges(holds, radius.rtt)?),
    };
    Ok(CheckedRadius { radius: radius.clone(), simulated })
}

fn rtt_of(owd: Duration) -> f64 {
    owd.as_secs_f64() * 2.0
}

/// The longest delay before the first one that does not hold; `None` where all do.
fn edge(
    holds: impl Fn(Duration) -> Result<bool, SimulateError>,
    rtt: f64,
) -> Result<Option<Duration>, SimulateError> {
    let longest = LONGEST.max(Duration::from_secs_f64(if rtt.is_finite() { rtt * 2.0 } else { 0.0 }));
    let (mut good, mut bad) = (Duration::ZERO, SHORTEST);
    while holds(bad)? {
        if bad > longest {
            return Ok(None);
        }
        (good, bad) = (bad, bad + bad / 20);
    }
    Ok(Some(halved(holds, good, bad)?))
}

/// The end of the first delays that hold, and of the last, around a span in which they do not all.
fn edges(holds: impl Fn(Duration) -> Result<bool, SimulateError>, rtt: Span) -> Result<Span, SimulateError> {
    let one_way = |rtt| Duration::from_secs_f64(rtt / 2.0);
    let (from, step) = (one_way(rtt.least * 0.9), one_way(rtt.most / 1000.0));
    let steps = (one_way(rtt.most * 1.1) - from).as_nanos() / step.as_nanos();
    let at = |number: u64| from + step * number;
    let held = (0..=steps).map(|number| holds(at(number))).collect::<Result<Vec<bool>, _>>()?;
    let first = held.iter().position(|&held| !held);
    let last = held.iter().rposition(|&held| held);
    Ok(match (first, last) {
        (Some(first @ 1..), Some(last)) if last < held.len() - 1 => Span {
            least: rtt_of(halved(&holds, at(first as u64 - 1), at(first as u64))?),
            most: rtt_of(halved(&holds, at(last as u64), at(last as u64 + 1))?),
        },
        // It ends before all of them, or after.
        (Some(0), _) => Span { least: 0.0, most: last.map_or(0.0, |last| rtt_of(at(last as u64))) },
        _ => Span::exactly(f64::INFINITY),
    })
}

/// The longest delay that holds, between one that does and one that does not.
fn halved(
    holds: impl Fn(Duration) -> Result<bool, SimulateError>,
    mut good: Duration,
    mut bad: Duration,
) -> Result<Duration, SimulateError> {
    while bad - good > RESOLUTION {
        let middle = good + (bad - good) / 2;
        *(if holds(middle)? { &mut good } else { &mut bad }) = middle;
    }
    Ok(good)
}

fn transfer(stack: &Config, owd: Duration) -> Result<FlowResult, SimulateError> {
    let kind = ElementKind::Delay(Delay { delay: PerDirection::both(owd) });
    let setup = Setup {
        path: vec![ElementSpec { name: "delay".to_owned(), kind }],
        flows: vec![FlowSetup::upload(stack, Bytes(1))],
        seed: 1,
        // Nothing goes on for ever: what has no end of its own is through after a few round trips.
        horizon: owd * 1000 + Duration::from_secs(100_000),
    };
    Ok(farpath_sim::simulate(&setup, &mut Silent)?.remove(0))
}

/// Whether all is as it is within a radius; `None` for what one byte does not show.
fn goes_well(kind: RadiusKind, flow: &FlowResult) -> Option<bool> {
    match kind {
        RadiusKind::SynAgain(number) => Some(flow.sender.stats().syns <= u64::from(number)),
        RadiusKind::DataAgain => Some(flow.sender.sender().stats().retransmissions == 0),
        RadiusKind::Abandoned => Some(flow.sender.established_at().is_some()),
        RadiusKind::Usable => Some(flow.end == FlowEnd::Completed),
        RadiusKind::EverySegmentAgain
        | RadiusKind::Window
        | RadiusKind::TimeWait
        | RadiusKind::LastSyn
        | RadiusKind::HalfOpen
        | RadiusKind::DataGivenUp
        | RadiusKind::UnderLoss(_) => None,
    }
}
