//! `farpath measure`: a real network.

use crate::Ending;
use crate::args::MeasureArgs;
use crate::error::CliError;

#[cfg(target_os = "linux")]
mod file;

/// Measures an experiment, or a path.
#[cfg(target_os = "linux")]
pub fn measure(args: &MeasureArgs) -> Result<Ending, CliError> {
    use farpath_measure::Key;

    let key = args.key.as_deref().map(Key::read).transpose()?;
    match &args.to {
        Some(host) => file::measure(args, host, key.as_ref()),
        None => Err(CliError::NoFarHost(args.what.clone())),
    }
}

/// It cannot.
#[cfg(not(target_os = "linux"))]
pub fn measure(_: &MeasureArgs) -> Result<Ending, CliError> {
    Err(CliError::NotLinux("measure"))
}

/// The far host, let in.
#[cfg(target_os = "linux")]
fn far(
    args: &MeasureArgs,
    host: &str,
    key: Option<&farpath_measure::Key>,
) -> Result<farpath_measure::Far, CliError> {
    use farpath_measure::{Family, Far};

    let family = match (args.v4, args.v6) {
        (true, _) => Family::V4,
        (_, true) => Family::V6,
        _ => Family::Any,
    };
    Ok(Far::connect(host, family, key, crate::interrupt::flag())?)
}
