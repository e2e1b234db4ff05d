//! What can go wrong with a sweep.

use std::io;
use std::path::PathBuf;

/// What can go wrong with a sweep.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// A run cannot be made.
    #[error(transparent)]
    Engine(#[from] farpath_engine::EngineError),
    /// A run is not simulated.
    #[error(transparent)]
    Simulate(#[from] farpath_engine::SimulateError),
    /// There is no kernel that emulates a point.
    #[error(transparent)]
    Emulate(#[from] farpath_emulate::EmulateError),
    /// There is no prediction of a point.
    #[error(transparent)]
    Predict(#[from] farpath_predict::PredictError),
    /// Somebody else writes there.
    #[error(transparent)]
    Results(#[from] farpath_run::ResultsError),
    /// The experiment that a folder tells of is refused.
    #[error(transparent)]
    Experiment(#[from] farpath_experiment::ExperimentError),
    /// The folder cannot be made, or takes no files.
    #[error("{}: cannot write a sweep there", path.display())]
    NotWritable {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The folder holds something else.
    #[error("{}: the folder holds files, but no sweep (`{found}`); name an empty or a new one", path.display())]
    Occupied {
        /// The folder.
        path: PathBuf,
        /// One of the files.
        found: String,
    },
    /// No sweep.
    #[error("{}: not the folder of a sweep: {reason}", path.display())]
    NotSweep {
        /// The folder.
        path: PathBuf,
        /// What is missing or different.
        reason: String,
    },
    /// Of a later program.
    #[error(
        "{}: a sweep of format version {found}, and this program reads up to {known}; use a later program",
        path.display()
    )]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// Its format version.
        found: u64,
        /// The latest that this program reads.
        known: u64,
    },
    /// A file cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A table cannot be encoded.
    #[error("cannot write the table of a chunk")]
    Encode(#[source] parquet::errors::ParquetError),
    /// A chunk is not what its name says.
    #[error("{}: a damaged chunk ({reason}); remove it, and its runs are made again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A point that is another one here.
    #[error(
        "point {point} is another one here than where it was asked for: the program ({here} here), a file that the \
         experiment names, or the kernel that emulates differs"
    )]
    OtherPoint {
        /// Its number.
        point: usize,
        /// This program.
        here: &'static str,
    },
    /// Somebody wants it no more.
    #[error("stopped")]
    Stopped,
    /// What is measured is not made at will.
    #[error("a sweep is predicted, simulated or emulated; `{0}` is for `farpath measure`")]
    NotSwept(farpath_run::Engine),
}
