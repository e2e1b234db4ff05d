//! Where there is no Linux kernel to ask.

use super::{KernelRadii, Measurement};
use crate::EngineError;
use farpath_emu::HostError;
use farpath_emulate::EmulateError;
use farpath_units::Duration;
use std::sync::atomic::AtomicBool;

/// It cannot.
///
/// # Errors
/// Always.
pub fn measure_radii(
    _: &Measurement,
    _: &AtomicBool,
    _: impl Fn(Duration),
) -> Result<KernelRadii, EngineError> {
    Err(EmulateError::from(HostError::NotLinux).into())
}
