//! What a scenario says of an emulation before it begins: nothing is made, run or written for one that cannot be.

mod memory;

use crate::datagrams::shortest;
use crate::{EngineError, MAX_EMULATED_FLOWS, tcp_only};
use farpath_experiment::{EmulationClock, FlowSpec, Point, Scenario, Stack};
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

/// Whether the driver knows what the ends want.
fn explicit_rate(scenario: &Scenario) -> Result<(), EngineError> {
    if !asks(scenario) {
        return Ok(());
    }
    if ends(scenario).any(|end| end.config.explicit_rate.kind != RateKind::Available) {
        return Err(EngineError::OnlyAvailable);
    }
    match scenario.emulate.clock {
        EmulationClock::Real => Ok(()),
        EmulationClock::Virtual(_) => Err(EngineError::NoDriverInGuest),
    }
}

/// Whether an end asks for a rate.
pub(crate) fn asks(scenario: &Scenario) -> bool {
    ends(scenario).any(|end| end.config.explicit_rate.wanted.is_some())
}

fn ends(scenario: &Scenario) -> impl Iterator<Item = &Stack> {
    scenario.flows.iter().flat_map(|flow| <[&Stack; 2]>::from(scenario.ends(flow)))
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
            can_be_emulated(&experiment.point(0))
        };
        for own in ["access = \"1 ms\"", "sender.mss = \"536 B\""] {
            let refused = emulated(own).expect_err("flow 1 is special");
            assert!(matches!(refused, EngineError::OwnEnds(1)), "{own}: {refused}");
        }
        emulated("sender.congestion.control = \"cubic\"").expect("each socket has its own");
    }
}
