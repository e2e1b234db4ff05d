//! Explicit rate where the driver is left out of the build: nobody asks.

use super::Granted;
use super::hosts::Hosts;
use crate::EmulateError;
use crate::preflight::asks;
use farpath_experiment::Scenario;
use farpath_path::Direction;
use farpath_tcp::Config;
use farpath_traffic::SocketOptions;

/// None of them.
pub(super) struct Drivers;

impl Drivers {
    pub fn attach(scenario: &Scenario, _: &Hosts) -> Result<Drivers, EmulateError> {
        if asks(scenario) { Err(EmulateError::WithoutDriver) } else { Ok(Drivers) }
    }

    pub fn ask(&self, _: Direction, _: &Config, _: &mut SocketOptions) {}

    pub fn granted(&self, scenario: &Scenario, _: &Hosts) -> Result<Vec<Granted>, EmulateError> {
        Ok(vec![(None, None); scenario.flows.len()])
    }
}
