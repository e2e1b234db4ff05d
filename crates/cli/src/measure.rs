//! `farpath measure`: a real network.

use crate::Ending;
use crate::args::MeasureArgs;
use crate::error::CliError;

#[cfg(target_os = "linux")]
mod file;
#[cfg(target_os = "linux")]
mod path;
#[cfg(target_os = "linux")]
pub mod words;

/// Measures an experiment, or a path.
#[cfg(target_os = "linux")]
pub fn measure(args: &MeasureArgs) -> Result<Ending, CliError> {
    use farpath_measure::Key;

    let key = args.key.as_deref().map(Key::read).transpose()?;
    match &args.to {
        Some(host) => file::measure(args, host, key.as_ref()),
        None if is_experiment(&args.what) => Err(CliError::NoFarHost(args.what.clone())),
        None => path::measure(args, key.as_ref()),
    }
}

/// Whether it is no host: a file that is there, or what ships by that name.
#[cfg(target_os = "linux")]
fn is_experiment(what: &str) -> bool {
    let ships = || farpath_experiment::shipped_experiments().iter().any(|shipped| shipped.name == what);
    what.ends_with(".toml") || std::path::Path::new(what).is_file() || ships()
}

/// It cannot.
#[cfg(not(target_os = "linux"))]
pub fn measure(_: &MeasureArgs) -> Result<Ending, CliError> {
    Err(CliError::NotLinux("measure"))
}

/// The peer, let in.
#[cfg(target_os = "linux")]
fn peer(
    args: &MeasureArgs,
    host: &str,
    key: Option<&farpath_measure::Key>,
) -> Result<farpath_measure::Peer, CliError> {
    use farpath_measure::{Family, Peer};

    let family = match (args.v4, args.v6) {
        (true, _) => Family::V4,
        (_, true) => Family::V6,
        _ => Family::Any,
    };
    Ok(Peer::connect(host, family, key, crate::interrupt::flag())?)
}
