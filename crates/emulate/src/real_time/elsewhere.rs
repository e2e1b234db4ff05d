//! Emulation in real time where there is no Linux kernel to ask: every call says so.

use crate::EmulateError;
use crate::progress::Going;
use farpath_emu::HostError;
use farpath_experiment::{Point, Scenario};
use farpath_run::{Provenance, Run};
use std::fs::File;
use std::sync::atomic::AtomicBool;

/// It may not.
///
/// # Errors
/// Always.
pub fn may_emulate() -> Result<(), EmulateError> {
    Err(HostError::NotLinux.into())
}

/// It cannot.
///
/// # Errors
/// Always.
pub fn emulate(_: &Point, _: u64, _: Provenance, _: &AtomicBool) -> Result<Option<Run>, EmulateError> {
    Err(HostError::NotLinux.into())
}

/// There is none.
pub(crate) fn kernel_release() -> String {
    String::new()
}

/// They cannot.
pub(crate) fn can_be_prepared(_: &Scenario) -> Result<(), EmulateError> {
    Err(HostError::NotLinux.into())
}

/// It cannot.
pub(crate) fn until_in_time(
    _: &Point,
    _: u64,
    _: Provenance,
    _: &AtomicBool,
    _: &Going,
    _: Option<(&File, u32)>,
) -> Result<Option<Run>, EmulateError> {
    Err(HostError::NotLinux.into())
}
