//! `farpath generate`: completions and manual pages, from the same definitions as the help.

use crate::args::{Cli, GenerateArgs, GenerateCommand};
use crate::error::CliError;
use crate::{Ending, output};
use clap::CommandFactory;
use std::fs;

/// `farpath generate`
pub fn generate(args: &GenerateArgs) -> Result<Ending, CliError> {
    match &args.command {
        GenerateCommand::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "farpath", &mut text);
            output::print(String::from_utf8_lossy(&text).trim_end())?;
        }
        GenerateCommand::Manual { folder } => {
            let written =
                fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(Cli::command(), folder));
            written.map_err(|source| CliError::Write { flag: "manual", file: folder.clone(), source })?;
        }
    }
    Ok(Ending::Done)
}
