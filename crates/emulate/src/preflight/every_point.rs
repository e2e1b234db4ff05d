//! Whether this machine can do what an experiment asks of it, tried before the first run.

use super::can_be_emulated;
use crate::EmulateError;
use crate::helper::{self, is_helped};
use crate::real_time::can_be_prepared;
use crate::virtual_time::{self, kernel_of};
use farpath_experiment::{Experiment, Point, Scenario, Stack};
use std::borrow::Cow;

/// Whether all points can be emulated on this machine: their kernels are here, and take what hosts and programs are told.
/// That is tried, once for all points that tell them the same.
///
/// # Errors
/// As [`can_be_emulated`]; no kernel for virtual time; a setting that a kernel refuses.
pub fn can_all_be_emulated(experiment: &Experiment) -> Result<(), EmulateError> {
    // Beside kernels, those of somebody else's TCP are left out; alone they are refused.
    let is_asked = |point: &Cow<'_, Point>| point.scenario.foreign_hosts().next().is_none();
    let some_are = !experiment.has_foreign_hosts() || experiment.points().any(|point| is_asked(&point));
    let asked = || experiment.points().filter(|point| !some_are || is_asked(point));
    asked().try_for_each(|point| can_be_emulated(&point))?;
    let mut different: Vec<Cow<'_, Point>> = Vec::new();
    for point in asked() {
        if !different.iter().any(|other| tells_the_same(&point.scenario, &other.scenario)) {
            different.push(point);
        }
    }
    let clock = |point: &Point| point.scenario.emulate.clock.clone();
    different.sort_by_key(|point| format!("{:?}", clock(point)));
    for points in different.chunk_by(|a, b| clock(a) == clock(b)) {
        let numbers = || points.iter().map(|point| point.index).collect::<Vec<usize>>();
        match kernel_of(&points[0].scenario)? {
            Some(kernel) => virtual_time::preflight(experiment, &numbers(), &kernel)?,
            None if is_helped() => helper::preflight(experiment, &numbers())?,
            None => points.iter().try_for_each(|point| can_be_prepared(&point.scenario))?,
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
