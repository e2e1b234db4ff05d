//! What `farpath trace` is told.

use super::source::new_path;
use clap::{Args, Subcommand, ValueEnum};
use farpath_elements::trace::Model;
use farpath_experiment::Override;
use farpath_units::{Duration, Rate};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct TraceArgs {
    #[command(subcommand)]
    pub command: TraceCommand,
}

#[derive(Debug, Subcommand)]
pub enum TraceCommand {
    /// Say how long a trace is, its mean rate, how much it varies, and its outages
    Info {
        /// Trace: a millisecond a line as mahimahi has it, or `seconds,bit/s` a line
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Draw the rate over time with characters, as wide as the terminal
    Plot {
        /// Trace: a millisecond a line as mahimahi has it, or `seconds,bit/s` a line
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Print JSON: the mean rate in each of its parts
        #[arg(long)]
        json: bool,
    },
    /// List the passes of a satellite, and draw the delay over one of them
    Passes(PassesArgs),
    /// Make a trace by a model: the same for the same seed
    Make(MakeArgs),
}

#[derive(Debug, Args)]
pub struct PassesArgs {
    /// Experiment file, or the name of one that ships, with a `delay` that is an `orbit`
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Pass to draw, counted from 1
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub pass: usize,
    /// Change a value of the file, such as `path.delay.delay.orbit.altitude=1200km`; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<Override>,
    /// Print JSON: every pass, and the delay over each
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct MakeArgs {
    /// How the rate varies
    #[arg(value_name = "MODEL")]
    pub model: ModelName,
    /// Whole rate (on-off, shadowing), that under a clear sky (rain), the median (cellular), or the mean (slots)
    #[arg(long, value_name = "RATE")]
    pub rate: Rate,
    /// From 1 s to 24 h, after which it repeats
    #[arg(long, value_name = "TIME", default_value = "10 min")]
    pub span: Duration,
    #[arg(long, value_name = "N", default_value_t = 1)]
    /// Another seed makes another trace
    pub seed: u64,
    /// Write it into this file [default: print it]
    #[arg(long, value_name = "FILE", value_parser = new_path())]
    pub out: Option<PathBuf>,
}

/// A model by its name.
#[derive(Debug, Clone, Copy)]
pub struct ModelName(pub Model);

impl ValueEnum for ModelName {
    fn value_variants<'a>() -> &'a [ModelName] {
        const ALL: [ModelName; Model::ALL.len()] = {
            let mut all = [ModelName(Model::OnOff); Model::ALL.len()];
            let mut number = 0;
            while number < all.len() {
                all[number] = ModelName(Model::ALL[number].1);
                number += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.0.name()).help(self.0.describe()))
    }
}
