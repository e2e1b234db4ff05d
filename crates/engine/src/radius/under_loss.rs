//! Radii where packets are lost: how far so many of all connections open, and so many of all files arrive.

use super::{Radius, RadiusKind};
use crate::{EngineError, SimulateError};
use core::fmt;
use farpath_elements::{Bernoulli, Delay, ElementKind, ElementSpec, PacketCount};
use farpath_model::InputError;
use farpath_model::radius::{LossyWay, Span};
use farpath_path::PerDirection;
use farpath_predict::{PredictError, connects, file_arrives};
use farpath_run::Share;
use farpath_sim::{FlowEnd, FlowSetup, Setup, Silent};
use farpath_tcp::config::TickExpiry;
use farpath_tcp::{Config, TIMESTAMPS};
use farpath_units::{Bytes, Duration, Probability};

/// Shares of connections, in percent, whose radii are told.
const SHARES: [u8; 2] = [99, 50];

/// From where round trips are tried, in s, and in which steps, as a ratio.
const SHORTEST: f64 = 0.1;
const STEP: f64 = 1.15;

/// Beyond this many s nothing is looked for: it counts as without an end.
const FARTHEST: f64 = 4000.0;

/// How near the ends of a step are brought to each other, as a ratio.
const RESOLUTION: f64 = 1e-5;

/// Ways for the two clocks to stand, in parts of a granule: a radius is from the least of them to the most.
const CLOCKS: [[f64; 2]; 4] = [[0.0, 0.0], [0.3, 0.7], [0.6, 0.2], [0.95, 0.45]];
/// Of Linux's wheel, in which a wait of a minute falls, in s.
const GRANULE: f64 = 2.048;

/// Connections that a check simulates at each round trip.
const CHECKS: u64 = 400;

/// Of the normal distribution, beyond which one in ten thousand lies: a check of many radii shall not fail by chance.
const QUANTILE: f64 = 3.89;

/// So many of all connections come so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UnderLoss {
    /// The transfer completes; else the opener takes the connection as open.
    pub completes: bool,
    /// Of so much.
    pub size: Bytes,
    /// Loss rate each way.
    pub loss: Probability,
    /// Share of them, in percent.
    pub percent: u8,
}

impl fmt::Display for UnderLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnderLoss { completes, size, loss, percent } = self;
        if *completes {
            write!(f, "{percent} % send {size}, {loss} lost")
        } else {
            write!(f, "{percent} % open, {loss} lost")
        }
    }
}

/// The radii of `stack` at a loss rate, the same stack at both ends, for a file of `size` from the end that opens: how far 99 and
/// 50 % of all connections open, and complete.
///
/// The least is the first round trip at which it no longer holds for some way in which the ends' clocks stand, the most for
/// every one. Zero says that not even the nearest do.
///
/// # Errors
/// Parameters that are no schedule, such as no SYN at all.
pub fn radii_under_loss(stack: &Config, loss: Probability, size: Bytes) -> Result<Vec<Radius>, InputError> {
    let mut list = Vec::new();
    for (completes, percent) in [false, true].into_iter().flat_map(|completes| SHARES.map(|p| (completes, p)))
    {
        let under = UnderLoss { completes, size, loss, percent };
        // Whether a connection opens is a matter of distance alone; data can arrive farther away again.
        let step = if completes { STEP } else { FARTHEST / SHORTEST };
        let edge =
            |clocks| edge(step, |rtt| Ok(share(stack, under, rtt, clocks)? >= f64::from(percent) / 100.0));
        let ends = clocks(stack).into_iter().map(edge).collect::<Result<Vec<_>, _>>()?;
        let rtt = Span {
            least: ends.iter().copied().fold(f64::INFINITY, f64::min),
            most: ends.iter().copied().fold(0.0, f64::max),
        };
        let timer = match rtt.least {
            f64::INFINITY => "none",
            _ if completes => "as without loss",
            _ => "handshake.syn_attempts",
        };
        list.push(Radius { kind: RadiusKind::UnderLoss(under), rtt, race: None, timer: timer.to_owned() });
    }
    Ok(list)
}

/// The ways in which clocks stand that are tried: one where there are none.
fn clocks(stack: &Config) -> Vec<[f64; 2]> {
    let rto = &stack.rto;
    let granule = if rto.tick_expiry == TickExpiry::TimerWheel { GRANULE } else { rto.tick.as_secs_f64() };
    let count = if rto.tick.is_zero() { 1 } else { CLOCKS.len() };
    CLOCKS[..count].iter().map(|clocks| clocks.map(|part| part * granule)).collect()
}

/// The probability, by the closed form.
fn share(stack: &Config, under: UnderLoss, rtt: f64, clocks: [f64; 2]) -> Result<f64, InputError> {
    let way = LossyWay {
        forward_delay: rtt / 2.0,
        reverse_delay: rtt / 2.0,
        forward_loss: under.loss,
        reverse_loss: under.loss,
        data_loss: under.loss,
    };
    let options = if stack.send.timestamps { TIMESTAMPS } else { Bytes::ZERO };
    let segments = under.size.0.div_ceil(stack.mss.saturating_sub(options).0.max(1)).max(1);
    let connects = connects(stack, stack, way, clocks, segments)?.value;
    Ok(match (under.completes, segments) {
        (false, _) => connects.opened,
        (true, 1) => connects.delivered,
        (true, _) => connects.usable * file_arrives(stack, &way, segments)?.value,
    })
}

/// The longest round trip before the first at which it no longer holds; infinite where none is found.
fn edge(step: f64, holds: impl Fn(f64) -> Result<bool, InputError>) -> Result<f64, InputError> {
    let (mut good, mut bad) = (0.0, SHORTEST);
    while holds(bad)? {
        (good, bad) = (bad, bad * step);
        if bad > FARTHEST * STEP {
            return Ok(f64::INFINITY);
        }
    }
    if good == 0.0 {
        return Ok(0.0);
    }
    while bad > good * (1.0 + RESOLUTION) {
        let middle = (good * bad).sqrt();
        *(if holds(middle)? { &mut good } else { &mut bad }) = middle;
    }
    Ok(good)
}

/// A probability in closed form beside how many of some simulated connections came so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CheckedShare {
    /// Whose.
    pub under: UnderLoss,
    /// At this round trip, in s.
    pub rtt: f64,
    /// By the closed form; of a file of several segments it is a lower bound.
    pub predicted: f64,
    /// In the simulator.
    pub simulated: Share,
}

impl CheckedShare {
    /// Whether the two are as far apart as chance allows.
    pub fn agrees(&self) -> bool {
        let Some((low, high)) = self.simulated.interval_of(QUANTILE) else { return true };
        let bound = self.under.completes && self.under.size > Bytes(1);
        self.predicted <= high + 1e-9 && (bound || self.predicted >= low - 1e-9)
    }
}

/// Simulates connections a little within a radius and a little beyond it; none for a kind that is not of loss, or has no end.
///
/// # Errors
/// The path cannot be built: a defect.
pub fn check_under_loss(stack: &Config, radius: &Radius) -> Result<Vec<CheckedShare>, EngineError> {
    let RadiusKind::UnderLoss(under) = radius.kind else { return Ok(Vec::new()) };
    let Span { least, most } = radius.rtt;
    let places = [least * 0.98, most * 1.02].into_iter().filter(|rtt| rtt.is_finite() && *rtt > 0.0);
    places.map(|rtt| check(stack, under, rtt)).collect()
}

fn check(stack: &Config, under: UnderLoss, rtt: f64) -> Result<CheckedShare, EngineError> {
    let owd = Duration::from_secs_f64(rtt / 2.0);
    let element = |name: &str, kind| ElementSpec { name: name.to_owned(), kind };
    let loss_rate = PerDirection::both(under.loss);
    let path = vec![
        element("delay", ElementKind::Delay(Delay { delay: PerDirection::both(owd) })),
        element("loss", ElementKind::Bernoulli(Bernoulli { loss_rate, count: PacketCount::All })),
    ];
    // A sender goes on for as long as its retries take.
    let horizon = owd * 1000 + Duration::from_secs(100_000);
    let mut came = Vec::new();
    for seed in 1..=CHECKS {
        let flows = vec![FlowSetup::upload(stack, under.size)];
        let setup = Setup { path: path.clone(), flows, seed, horizon };
        let result = farpath_sim::simulate(&setup, &mut Silent).map_err(SimulateError::from)?.remove(0);
        let so_far = match under.completes {
            true => result.end == FlowEnd::Completed,
            false => result.sender.established_at().is_some(),
        };
        came.push(f64::from(u8::from(so_far)));
    }
    let predicted = share(stack, under, owd.as_secs_f64() * 2.0, [0.0; 2]).map_err(PredictError::from)?;
    Ok(CheckedShare { under, rtt, predicted, simulated: Share::from_trials(came).expect("there are some") })
}
