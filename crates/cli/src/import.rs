//! `farpath import`: command lines of other emulators as a path.

use crate::args::{ImportArgs, ImportCommand, ImportText};
use crate::error::CliError;
use crate::source::write_new;
use crate::{Ending, output};
use farpath_experiment::import::{ImportError, Imported, Ways, mahimahi, tc};

/// `farpath import`
pub fn import(args: &ImportArgs) -> Result<Ending, CliError> {
    let (of, ImportText { commands, out }) = match &args.command {
        ImportCommand::Tc { text, .. } => ("tc", text),
        ImportCommand::Mahimahi(text) => ("mahimahi", text),
    };
    let text = commands.join("\n");
    let imported: Result<Imported, ImportError> = match &args.command {
        ImportCommand::Tc { direction, .. } => tc(&text, direction.as_ref().unwrap_or(&Ways::Unsaid)),
        ImportCommand::Mahimahi(_) => mahimahi(&text),
    };
    let imported = imported.map_err(|source| CliError::Import { of, source })?;
    let file = imported.to_file(of, &commands.join("; "));
    match out {
        Some(path) => write_new("--out", path, &format!("{file}\n"))?,
        None => output::print(&file)?,
    }
    Ok(Ending::Done)
}
