//! What is run: an experiment file, or a path in a few numbers.

use clap::Args;
use clap::builder::{PathBufValueParser, TypedValueParser};
use farpath_experiment::Override;
use farpath_units::{Bytes, Duration, ParseQuantityError, Probability, Rate};
use std::path::PathBuf;

/// What is run: a file with changes, or a path in a few numbers.
#[derive(Debug, Args)]
pub struct SourceArgs {
    /// Experiment file, or the name of one that ships (see `farpath experiments`)
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub path: PathArgs,
    /// Runs per point of the sweep, each with a seed of its own [default: as the file says]
    #[arg(long, value_name = "N")]
    pub seeds: Option<u64>,
    /// Change a value of the file, such as `path.loss=1%` or `sender.rto.min=300ms`; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<Override>,
}

/// Above these in the help.
pub const IN_PLACE_OF_FILE: &str = "In place of FILE";

/// One's own path without a file.
#[derive(Debug, Default, Args)]
pub struct PathArgs {
    /// Propagation each way, such as `300 ms` or `1.5 light-seconds`
    #[arg(long, help_heading = IN_PLACE_OF_FILE, value_name = "TIME")]
    pub delay: Option<Duration>,
    /// Round-trip time of an idle path, as `ping` shows it: twice --delay
    #[arg(long, help_heading = IN_PLACE_OF_FILE, value_name = "TIME", conflicts_with = "delay")]
    pub rtt: Option<Duration>,
    /// Link rate both ways, such as `10 Mbit/s`; the queue before it holds one bandwidth-delay product
    #[arg(long, help_heading = IN_PLACE_OF_FILE, value_name = "RATE")]
    pub rate: Option<Rate>,
    /// Independent loss per packet, each way [default: 0 %]
    #[arg(long, help_heading = IN_PLACE_OF_FILE, value_name = "SHARE", value_parser = parse_loss)]
    pub loss: Option<Probability>,
    /// Size of the download, such as `100 MB`
    #[arg(long, help_heading = IN_PLACE_OF_FILE, value_name = "SIZE")]
    pub size: Option<Bytes>,
    /// Stack of both ends (see `farpath stacks`), or a file [default: linux-6]
    #[arg(long, help_heading = IN_PLACE_OF_FILE, value_name = "NAME")]
    pub stack: Option<String>,
    /// Receive buffer, with window scaling where it takes that [default: the stack's]
    #[arg(long, help_heading = IN_PLACE_OF_FILE, value_name = "SIZE")]
    pub window: Option<Bytes>,
    /// Keep these as an experiment file
    #[arg(long, help_heading = IN_PLACE_OF_FILE, value_name = "FILE", value_parser = new_path())]
    pub save: Option<PathBuf>,
}

impl PathArgs {
    /// Whether any of them is.
    pub fn is_given(&self) -> bool {
        let PathArgs { delay, rtt, rate, loss, size, stack, window, save } = self;
        let numbers = delay.is_some() || rtt.is_some() || rate.is_some() || loss.is_some() || size.is_some();
        numbers || stack.is_some() || window.is_some() || save.is_some()
    }
}

impl PathArgs {
    /// Propagation each way, however it was given.
    pub fn one_way(&self) -> Option<Duration> {
        self.delay.or(self.rtt.map(|rtt| rtt / 2))
    }
}

/// The name of a file or folder that is to be written: `-`, which elsewhere is standard output, is refused.
pub(super) fn new_path() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match path.as_os_str() == "-" {
        true => Err("expected a name: standard output is not written to"),
        false => Ok(path),
    })
}

/// A bare 1 could be all or one in a hundred.
pub fn parse_loss(text: &str) -> Result<Probability, String> {
    if text.trim().parse() == Ok(1.0) {
        return Err(format!(
            "expected a share such as `1 %` or `0.01`, found `{text}`: write `1 %` or `100 %`"
        ));
    }
    text.parse().map_err(|error: ParseQuantityError| error.to_string())
}
