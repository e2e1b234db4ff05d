//! Emulation by a helper where there is no Linux kernel to ask: every call says so.

use crate::EmulateError;
use crate::run::EmulatedRun;
use farpath_emu::HostError;
use farpath_experiment::Experiment;
use farpath_run::Run;
use std::sync::atomic::AtomicBool;

/// It may not.
///
/// # Errors
/// Always.
pub fn may_emulate_with_help() -> Result<(), EmulateError> {
    Err(HostError::NotLinux.into())
}

/// None are.
pub(crate) fn is_helped() -> bool {
    false
}

/// It cannot.
pub(crate) fn by_helper(_: &EmulatedRun<'_>, _: &AtomicBool) -> Result<Option<Run>, EmulateError> {
    Err(HostError::NotLinux.into())
}

/// It cannot.
pub(crate) fn preflight(_: &Experiment, _: &[usize]) -> Result<(), EmulateError> {
    Err(HostError::NotLinux.into())
}
