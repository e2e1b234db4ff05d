//! `farpath explain --host`: a path that is measured, or read from what this kernel knows of it.

use super::measured::Measured;
use super::neighbour;
use crate::error::CliError;
use crate::measure::words;
use crate::{interrupt, progress};
use farpath_measure::{Family, Key, MeasureError, Peer, Probing, addresses, estimate};
use farpath_units::Rate;
use std::path::Path;

/// The path to `host`; `None` where it was interrupted.
pub fn find(host: &str, key: Option<&Path>, rate: Option<Rate>) -> Result<Option<Measured>, CliError> {
    let key = key.map(Key::read).transpose()?;
    let why = match Peer::connect(host, Family::Any, key.as_ref(), interrupt::flag()) {
        Ok(mut peer) => {
            let bar = progress::bar(0, "");
            let mut told = |what: &str| bar.set_message(what.to_owned());
            let found = match estimate(&mut peer, Probing::default(), interrupt::flag(), &mut told) {
                Ok(found) => found,
                Err(MeasureError::Stopped) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            drop(bar);
            let wrong = |reason| CliError::UnknownPath { host: host.to_owned(), reason };
            return Measured::of_value(&words::json(&found, &[])).map(Some).map_err(wrong);
        }
        Err(MeasureError::Stopped) => return Ok(None),
        // Somebody is there, or nobody can be: what the kernel knows is no answer to that.
        Err(
            error @ (MeasureError::NotAHost { .. }
            | MeasureError::Unknown { .. }
            | MeasureError::KeyMissing { .. }
            | MeasureError::KeyWrong { .. }
            | MeasureError::Denied { .. }),
        ) => return Err(error.into()),
        Err(error) => error,
    };
    let mut nothing = Vec::new();
    for address in addresses(host, Family::Any)?.into_iter().map(|address| address.ip().to_canonical()) {
        match neighbour::known(address, rate) {
            Ok(known) => {
                eprintln!("farpath: {why}");
                eprintln!("farpath: so it is what this kernel knows of {address}: {}", known.from);
                return Ok(Some(known.path));
            }
            Err(reason) => nothing.push(format!("{address}: {reason}")),
        }
    }
    let reason = format!("{why}; and this kernel does not know enough of it: {}", nothing.join("; "));
    Err(CliError::UnknownPath { host: host.to_owned(), reason })
}
