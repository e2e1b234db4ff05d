//! A radius found by simulation: connections over longer and longer delays, and bisection where the answer changes.

use super::{Radius, RadiusKind};
use crate::EngineError;
use farpath_path::{ElementKind, ElementSpec, PerDirection};
use farpath_sim::{FlowEnd, FlowResult, FlowSetup, Setup, Silent};
use farpath_tcp::Config;
use farpath_units::{Bytes, Duration};

/// From where delays are tried, one way.
const SHORTEST: Duration = Duration::from_millis(10);

/// Up to where at least, one way: beyond the 1000 s that the paper goes to.
const LONGEST: Duration = Duration::from_secs(4_000);

/// How far apart the bisection ends.
const RESOLUTION: Duration = Duration::from_micros(100);

/// A radius in closed form beside what simulation says.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedRadius {
    /// The closed form.
    pub radius: Radius,
    /// The longest round trip at which it still goes well, in s; infinite where no delay that was tried ends it, and
    /// `None` for what a handshake and one byte do not show.
    pub simulated: Option<f64>,
}

impl CheckedRadius {
    /// Simulated less closed form, in s; zero where both are without end.
    pub fn error(&self) -> Option<f64> {
        let simulated = self.simulated?;
        Some(if simulated == self.radius.rtt { 0.0 } else { simulated - self.radius.rtt })
    }

    /// What the two may differ by, in s: the resolution of the search both ways, and a clock's tick at each of the
    /// timeouts, whose ends the closed form puts on ticks that begin with the first SYN. The listener's clock ticks
    /// against the SYN's arrival as the delay has it.
    pub fn tolerance(&self, stack: &Config) -> f64 {
        (stack.rto.tick + RESOLUTION * 4).as_secs_f64()
    }
}

/// Finds `radius` of `stack` by simulation: one byte from the end that opens to one that listens, over a path that only
/// delays. Delays grow by a twentieth until the answer changes; between the last two it is halved.
///
/// # Errors
/// The path cannot be built: a defect.
pub fn check_radius(stack: &Config, radius: &Radius) -> Result<CheckedRadius, EngineError> {
    let kind = radius.kind;
    let simulated = match goes_well(kind, &transfer(stack, SHORTEST)?) {
        None => None,
        Some(_) => {
            let holds = |owd| Ok::<_, EngineError>(goes_well(kind, &transfer(stack, owd)?) == Some(true));
            Some(edge(holds, radius.rtt)?.map_or(f64::INFINITY, |owd| owd.as_secs_f64() * 2.0))
        }
    };
    Ok(CheckedRadius { radius: radius.clone(), simulated })
}

/// The longest delay before the first one that does not hold; `None` where all do.
fn edge(
    holds: impl Fn(Duration) -> Result<bool, EngineError>,
    rtt: f64,
) -> Result<Option<Duration>, EngineError> {
    let longest = LONGEST.max(Duration::from_secs_f64(if rtt.is_finite() { rtt * 2.0 } else { 0.0 }));
    let (mut good, mut bad) = (Duration::ZERO, SHORTEST);
    while holds(bad)? {
        if bad > longest {
            return Ok(None);
        }
        (good, bad) = (bad, bad + bad / 20);
    }
    while bad - good > RESOLUTION {
        let middle = good + (bad - good) / 2;
        *(if holds(middle)? { &mut good } else { &mut bad }) = middle;
    }
    Ok(Some(good))
}

fn transfer(stack: &Config, owd: Duration) -> Result<FlowResult, EngineError> {
    let kind = ElementKind::Delay { delay: PerDirection::both(owd) };
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
        | RadiusKind::DataGivenUp => None,
    }
}
