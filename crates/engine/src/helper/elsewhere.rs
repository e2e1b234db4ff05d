//! Emulation by a helper where there is no Linux kernel to ask: every call says so.

use crate::EngineError;
use crate::job::Job;
use farpath_emu::HostError;
use farpath_experiment::Experiment;
use farpath_run::Run;
use std::fs::File;
use std::sync::atomic::AtomicBool;

/// It may not.
///
/// # Errors
/// Always.
pub fn may_emulate_with_help() -> Result<(), EngineError> {
    Err(HostError::NotLinux.into())
}

/// None are.
pub(crate) fn is_helped() -> bool {
    false
}

/// It cannot.
pub(crate) fn by_helper(
    _: &Experiment,
    _: Job,
    _: u64,
    _: &AtomicBool,
    _: Option<(&File, u32)>,
) -> Result<Option<Run>, EngineError> {
    Err(HostError::NotLinux.into())
}

/// It cannot.
pub(crate) fn preflight(_: &Experiment, _: &[usize]) -> Result<(), EngineError> {
    Err(HostError::NotLinux.into())
}
