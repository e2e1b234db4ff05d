//! What is known of an emulation before it begins: nothing is made, run or written for one that cannot be.

mod memory;

use crate::{EngineError, MAX_EMULATED_FLOWS};
use farpath_experiment::{Point, Scenario, Stack};
use farpath_path::{Direction, PerDirection};

/// Whether [`emulate`](crate::emulate()) has an answer for this point at all, on a machine that emulates.
///
/// # Errors
/// Too many flows, hosts that would need two stacks, or more under way than `emulate.memory` allows.
pub fn can_be_emulated(point: &Point) -> Result<(), EngineError> {
    let scenario = &point.scenario;
    if scenario.flows.len() > MAX_EMULATED_FLOWS {
        return Err(EngineError::TooManyFlows(scenario.flows.len()));
    }
    stacks(scenario)?;
    memory::check(scenario)
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
