//! Emulation in virtual time where there is no Linux to start a kernel of one's own on: every call says so.

use crate::EmulateError;
use crate::run::EmulatedRun;
use farpath_emu::HostError;
use farpath_experiment::{EmulationClock, Experiment, Scenario};
use farpath_run::Run;
use std::sync::atomic::AtomicBool;

/// There is none.
pub(crate) enum Kernel {}

/// None for virtual time.
pub(crate) fn kernel_of(scenario: &Scenario) -> Result<Option<Kernel>, EmulateError> {
    match scenario.emulate.clock {
        EmulationClock::Real => Ok(None),
        EmulationClock::Virtual(_) => Err(HostError::NotLinux.into()),
    }
}

/// None has.
pub(crate) fn name(kernel: &Kernel) -> String {
    match *kernel {}
}

/// It cannot.
pub(crate) fn in_guest(
    _: &EmulatedRun<'_>,
    kernel: &Kernel,
    _: &AtomicBool,
) -> Result<Option<Run>, EmulateError> {
    match *kernel {}
}

/// It cannot.
pub(crate) fn preflight(_: &Experiment, _: &[usize], kernel: &Kernel) -> Result<(), EmulateError> {
    match *kernel {}
}
