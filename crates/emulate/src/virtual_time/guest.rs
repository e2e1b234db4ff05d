//! The first process of a guest: it does what is ordered, just as in real time.

use crate::EmulateError;
use crate::worker::{carry_out, leave_error};
use farpath_kernel::guest::{MEMORY, enter, hand_out, power_off};
use std::convert::Infallible;
use std::path::PathBuf;

/// Does what is ordered, leaves what comes of it where it was ordered and switches the machine off.
///
/// # Errors
/// This is no guest, or it cannot even say that something went wrong.
pub fn guest() -> Result<Infallible, EmulateError> {
    let work_dir = &enter()?;
    let out = PathBuf::from(MEMORY).join("results");
    carry_out(work_dir, &out).or_else(|error| leave_error(&out, &error))?;
    hand_out(&out, work_dir)?;
    Ok(power_off()?)
}
