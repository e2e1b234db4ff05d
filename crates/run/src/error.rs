//! Why results cannot be written or read.

use crate::ColumnError;
use std::io;
use std::path::PathBuf;

/// Why results cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// The folder cannot be made, or takes no files.
    #[error("{}: cannot write results there", path.display())]
    NotWritable {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The folder holds files that are not results.
    #[error(
        "{}: the folder holds files, but no results (`{found}`); name an empty or a new one",
        path.display()
    )]
    Occupied {
        /// The folder.
        path: PathBuf,
        /// One of the files.
        found: String,
    },
    /// Another writer has not ended.
    #[error("{}: another run is writing results there; wait for it, or name another folder", path.display())]
    Busy {
        /// The folder.
        path: PathBuf,
    },
    /// A run of another experiment was given.
    #[error("{}: results of one folder come from one experiment file, this run has another", path.display())]
    OtherExperiment {
        /// The folder.
        path: PathBuf,
    },
    /// A file cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The disk is gone, or takes no more, while runs are being made.
    #[error("{}: results can no longer be written there", path.display())]
    Lost {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A table cannot be written.
    #[error("cannot write table {}", path.display())]
    WriteTable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: parquet::errors::ParquetError,
    },
    /// Not a folder with results.
    #[error("{}: not a results folder: {reason}", path.display())]
    NotResults {
        /// The folder.
        path: PathBuf,
        /// What is missing or different.
        reason: String,
    },
    /// Results whose writer did not come to its end.
    #[error("{}: incomplete results: the run was ended before they were finished; run it again", path.display())]
    Incomplete {
        /// The folder.
        path: PathBuf,
    },
    /// Results of a later program.
    #[error(
        "{}: results of format version {found}, and this program reads up to {known}; use a later program",
        path.display()
    )]
    NewerFormat {
        /// The folder.
        path: PathBuf,
        /// Its format version.
        found: u64,
        /// The latest that this program reads.
        known: u64,
    },
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// `provenance.json` is damaged.
    #[error("cannot read {}", path.display())]
    Provenance {
        /// The file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// A table is damaged.
    #[error("cannot read table {}", path.display())]
    ReadTable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: parquet::errors::ParquetError,
    },
    /// A table is not as its format version has it.
    #[error("cannot read table {}", path.display())]
    Column {
        /// The file.
        path: PathBuf,
        /// Which column, and what is wrong with it.
        source: ColumnError,
    },
    /// A table has another number of rows than was written.
    #[error("{}: the table has {found} rows, {expected} were written", path.display())]
    Rows {
        /// The file.
        path: PathBuf,
        /// Rows in the file.
        found: u64,
        /// Rows that `provenance.json` tells of.
        expected: u64,
    },
}
