//! What `farpath import` is told.

use super::source::new_path;
use clap::{Args, Subcommand};
use farpath_experiment::import::{Way, Ways};
use farpath_path::Direction;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct ImportArgs {
    #[command(subcommand)]
    pub command: ImportCommand,
}

#[derive(Debug, Subcommand)]
pub enum ImportCommand {
    /// `tc` of Linux: netem, tbf, pfifo, bfifo, police
    Tc {
        /// Which packets they are about: `forward` (the data sender's), `reverse` or `both`; or those of each device, as in
        /// `eth0=reverse,eth1=forward`, which commands for several devices need [default: forward]
        #[arg(long, value_name = "WAY", value_parser = parse_ways)]
        direction: Option<Ways>,
        #[command(flatten)]
        text: ImportText,
    },
    /// mahimahi's shells: mm-delay, mm-loss, mm-link
    Mahimahi(ImportText),
}

#[derive(Debug, Args)]
pub struct ImportText {
    /// Command lines, in quotes
    #[arg(value_name = "COMMAND", required = true)]
    pub commands: Vec<String>,
    /// Write the path into this file [default: print it]
    #[arg(long, value_name = "FILE", value_parser = new_path())]
    pub out: Option<PathBuf>,
}

/// One way for all devices, or `NAME=WAY` for each.
fn parse_ways(text: &str) -> Result<Ways, String> {
    if let Some(way) = way(text) {
        return Ok(Ways::All(way));
    }
    let devices = text.split(',').map(|part| {
        let (name, said) = part.split_once('=')?;
        Some((name.to_owned(), way(said)?)).filter(|_| !name.is_empty())
    });
    devices.collect::<Option<_>>().map(Ways::Devices).ok_or_else(|| {
        "expected `forward`, `reverse` or `both`, or one of them for each device: `eth0=reverse,eth1=forward`".to_owned()
    })
}

fn way(text: &str) -> Option<Way> {
    Some(match text {
        "forward" => Some(Direction::Forward),
        "reverse" => Some(Direction::Reverse),
        "both" => None,
        _ => return None,
    })
}
