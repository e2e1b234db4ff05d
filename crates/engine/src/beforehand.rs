//! What is known of an emulation before it begins: nothing is made, run or written for one that cannot be.

mod memory;

use crate::{EngineError, MAX_EMULATED_FLOWS, tcp_only};
use farpath_experiment::{FlowSpec, Point, Scenario, Stack};
use farpath_path::{Direction, PerDirection};

/// Whether [`emulate`](crate::emulate()) has an answer for this point at all, on a machine that emulates.
///
/// # Errors
/// Streams over UDP, too many flows, flows with hosts of their own, hosts that would need two stacks, or more under way than
/// `emulate.memory` allows.
pub fn can_be_emulated(point: &Point) -> Result<(), EngineError> {
    let scenario = &point.scenario;
    tcp_only(scenario, "an emulation")?;
    if scenario.flows.len() > MAX_EMULATED_FLOWS {
        return Err(EngineError::TooManyFlows(scenario.flows.len()));
    }
    if let Some(flow) = scenario.flows.iter().position(FlowSpec::is_special) {
        return Err(EngineError::OwnEnds(flow));
    }
    stacks(scenario)?;
    memory::check(scenario)
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
            access = "1 ms"
        "#;
        let experiment = Experiment::parse(text, "t.toml", &[]).expect("sound");
        let refused = can_be_emulated(&experiment.points()[0]).expect_err("flow 1 is special");
        assert!(matches!(refused, EngineError::OwnEnds(1)), "{refused}");
    }
}
