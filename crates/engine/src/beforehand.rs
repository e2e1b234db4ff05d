//! What is known of an emulation before it begins: nothing is made, run or written for one that cannot be.

mod memory;

use crate::datagrams::shortest;
use crate::emulate::can_be_prepared;
use crate::virtual_time::{kernel_of, rehearse};
use crate::{EngineError, MAX_EMULATED_FLOWS, tcp_only};
use farpath_experiment::{EmulationClock, Experiment, FlowSpec, Point, Scenario, Stack};
use farpath_path::{Direction, PerDirection};
use farpath_tcp::config::RateKind;
use farpath_units::Bytes;

/// Emulated datagrams hold their number.
pub(crate) const LEAST_MESSAGE: Bytes = Bytes(4);

/// Whether [`emulate`](crate::emulate()) has an answer for this point at all, on a machine that emulates.
///
/// # Errors
/// Datagrams without room for a number, too many flows, flows with hosts of their own, hosts that would need two stacks, or
/// more under way than `emulate.memory` allows.
pub fn can_be_emulated(point: &Point) -> Result<(), EngineError> {
    let scenario = &point.scenario;
    if let Some(size) = shortest(scenario).filter(|&size| size < LEAST_MESSAGE) {
        return Err(EngineError::ShortDatagram(size));
    }
    if scenario.flows.len() > MAX_EMULATED_FLOWS {
        return Err(EngineError::TooManyFlows(scenario.flows.len()));
    }
    if let Some(flow) = scenario.flows.iter().position(|flow| !is_between_the_hosts(scenario, flow)) {
        return Err(EngineError::OwnEnds(flow));
    }
    explicit_rate(scenario)?;
    stacks(scenario)?;
    memory::check(scenario)
}

/// Whether a flow's own ends, if it has any, differ in what sockets are told by themselves alone.
fn is_between_the_hosts(scenario: &Scenario, flow: &FlowSpec) -> bool {
    let fits = |own: &Option<Box<Stack>>, common: &Stack| {
        own.as_deref().is_none_or(|own| {
            let mut told = common.clone();
            told.name.clone_from(&own.name);
            told.config.congestion.control = own.config.congestion.control;
            told.config.explicit_rate.wanted = own.config.explicit_rate.wanted;
            told == *own
        })
    };
    flow.access.is_zero() && fits(&flow.sender, &scenario.sender) && fits(&flow.receiver, &scenario.receiver)
}

/// Whether the driver can ask for what the ends want.
fn explicit_rate(scenario: &Scenario) -> Result<(), EngineError> {
    let mut ends = scenario.flows.iter().flat_map(|flow| <[&Stack; 2]>::from(scenario.ends(flow)));
    if !ends.clone().any(|end| end.config.explicit_rate.wanted.is_some()) {
        return Ok(());
    }
    if ends.any(|end| end.config.explicit_rate.kind != RateKind::Available) {
        return Err(EngineError::OnlyAvailable);
    }
    match scenario.emulate.clock {
        EmulationClock::Real => crate::emulate::can_ask_for_rates(),
        EmulationClock::Virtual(_) => Err(EngineError::NoDriverInGuest),
    }
}

/// Whether all points can be emulated on this machine: their kernels are here, and take what hosts and programs are told.
/// That is tried, once for all points that tell them the same.
///
/// # Errors
/// As [`can_be_emulated`]; no kernel for virtual time; a setting that a kernel refuses.
pub fn can_all_be_emulated(experiment: &Experiment) -> Result<(), EngineError> {
    experiment.points().iter().try_for_each(can_be_emulated)?;
    let mut different: Vec<&Point> = Vec::new();
    for point in experiment.points() {
        if !different.iter().any(|other| tells_the_same(&point.scenario, &other.scenario)) {
            different.push(point);
        }
    }
    let clock = |point: &Point| point.scenario.emulate.clock.clone();
    different.sort_by_key(|point| format!("{:?}", clock(point)));
    for points in different.chunk_by(|a, b| clock(a) == clock(b)) {
        match kernel_of(&points[0].scenario)? {
            None => points.iter().try_for_each(|point| can_be_prepared(&point.scenario))?,
            Some(kernel) => {
                let points: Vec<usize> = points.iter().map(|point| point.index).collect();
                rehearse(experiment, &points, &kernel)?;
            }
        }
    }
    Ok(())
}

/// Whether a kernel takes both or neither: numbers are within what any takes, names may be unknown to it.
fn tells_the_same(one: &Scenario, other: &Scenario) -> bool {
    let names = |stack: &Stack| (stack.linux.clone(), stack.config.congestion.control);
    let told = |scenario: &Scenario| {
        let options = &scenario.emulate;
        let hosts = [&scenario.sender, &scenario.receiver].map(names);
        (hosts, options.clock.clone(), options.ip, options.backend)
    };
    told(one) == told(other)
}

/// Whether this point can be measured over a real network at all.
///
/// # Errors
/// Streams over UDP.
pub fn can_be_measured(point: &Point) -> Result<(), EngineError> {
    tcp_only(&point.scenario, "a measurement")
}

/// The stack of each host. A host has one: data both ways needs the same at both ends.
pub(crate) fn stacks(scenario: &Scenario) -> Result<PerDirection<&Stack>, EngineError> {
    let (sender, receiver) = (&scenario.sender, &scenario.receiver);
    let first = scenario.flows[0].direction;
    let one_way = scenario.flows.iter().all(|flow| flow.direction == first);
    if !one_way && (&sender.config, &sender.linux) != (&receiver.config, &receiver.linux) {
        return Err(EngineError::TwoStacks);
    }
    Ok(match first {
        Direction::Forward => PerDirection { forward: sender, reverse: receiver },
        Direction::Reverse => PerDirection { forward: receiver, reverse: sender },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpath_experiment::Experiment;

    #[test]
    fn hosts_that_only_one_flow_has_are_not_emulated() {
        let text = r#"
            title = "T"
            path = [{ element = "delay", delay = "1 ms" }]
            [transfer]
            size = "1 kB"
            [[flow]]
            [[flow]]
        "#;
        let emulated = |own: &str| {
            let experiment = Experiment::parse(&format!("{text}{own}"), "t.toml", &[]).expect("sound");
            can_be_emulated(&experiment.points()[0])
        };
        for own in ["access = \"1 ms\"", "sender.mss = \"536 B\""] {
            let refused = emulated(own).expect_err("flow 1 is special");
            assert!(matches!(refused, EngineError::OwnEnds(1)), "{own}: {refused}");
        }
        emulated("sender.congestion.control = \"cubic\"").expect("each socket has its own");
    }
}
