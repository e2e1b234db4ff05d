//! What can go wrong between the command line and its output.

use std::error::Error;
use std::io;
use std::path::PathBuf;

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The experiment is refused.
    #[error(transparent)]
    Experiment(#[from] farpath_experiment::ExperimentError),
    /// An engine has no answer.
    #[error("{}: {source}", file.display())]
    Engine {
        /// The experiment.
        file: PathBuf,
        /// Why.
        source: farpath_engine::EngineError,
    },
    /// Results cannot be written.
    #[error(transparent)]
    Results(#[from] farpath_run::ResultsError),
    /// A report cannot be written.
    #[error(transparent)]
    Report(#[from] farpath_report::html::ReportError),
    /// A paper cannot be checked.
    #[error(transparent)]
    Paper(#[from] farpath_report::papers::PaperError),
    /// A report of several papers.
    #[error("a report is of one paper, and {0} are asked for: name one")]
    OnePaper(usize),
    /// Nothing of that name is shipped.
    #[error("no {kind} is called `{name}`; `farpath {command}` lists what there is")]
    NoSuch {
        /// Stack, path, experiment.
        kind: &'static str,
        /// The command that lists them.
        command: &'static str,
        /// As asked for.
        name: String,
    },
    /// Threads cannot be had.
    #[error("cannot start the worker threads")]
    Threads(#[source] rayon::ThreadPoolBuildError),
    /// Standard output is gone.
    #[error("cannot write the output")]
    Output(#[from] io::Error),
}

impl CliError {
    /// The error with its causes.
    pub fn describe(&self) -> String {
        // An experiment's message holds its cause already, with the place in the file.
        let mut cause = match self {
            CliError::Experiment(_) | CliError::Engine { .. } | CliError::Paper(_) => None,
            other => other.source(),
        };
        let mut text = self.to_string();
        while let Some(error) = cause {
            text.push_str(&format!(": {error}"));
            cause = error.source();
        }
        text
    }
}
