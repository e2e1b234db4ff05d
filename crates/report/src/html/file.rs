//! Writes a report: under another name until it is whole, and over nothing but an earlier report.

use farpath_files::Replacement;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Why a report cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The file cannot be made, or not be written to its end.
    #[error("cannot write the report {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is something else.
    #[error("{}: there is a file that is no report of ours; name another one", path.display())]
    Occupied {
        /// The file.
        path: PathBuf,
    },
}

/// Stands in the head of every report.
pub(super) const GENERATOR: &str = "Farpath report";

/// A report that is being written. Dropped before [`finish`](ReportFile::finish), it leaves nothing behind.
#[derive(Debug)]
pub struct ReportFile {
    path: PathBuf,
    file: Replacement,
}

/// Refuses a name under which there is something else than a report.
///
/// # Errors
/// There is such a file, or it cannot be read.
pub fn may_write(path: &Path) -> Result<(), ReportError> {
    match is_report(path) {
        Ok(true) => Ok(()),
        Ok(false) => Err(ReportError::Occupied { path: path.to_owned() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(ReportError::Write { path: path.to_owned(), source }),
    }
}

impl ReportFile {
    /// Takes the name. Whether the report can be written is known after this call, before any run.
    ///
    /// # Errors
    /// The folder is not there or takes no files; or there is a file that is no report.
    pub fn create(path: impl Into<PathBuf>) -> Result<ReportFile, ReportError> {
        let path = path.into();
        may_write(&path)?;
        match Replacement::create(&path) {
            Ok(file) => Ok(ReportFile { path, file }),
            Err(source) => Err(ReportError::Write { path, source }),
        }
    }

    /// Writes it, and gives it its name.
    ///
    /// # Errors
    /// The file takes no more, or not its name.
    pub fn finish(self, html: &str) -> Result<(), ReportError> {
        let ReportFile { path, file } = self;
        let written = file.file().write_all(html.as_bytes()).and_then(|()| file.commit());
        written.map_err(|source| ReportError::Write { path, source })
    }
}

/// Whether a file is a report: its head says what made it. Notes with this name in them are none.
fn is_report(path: &Path) -> io::Result<bool> {
    let mut head = Vec::new();
    farpath_files::open(path)?.take(1024).read_to_end(&mut head)?;
    let made_by = format!("<meta name=\"generator\" content=\"{GENERATOR}\">");
    Ok(String::from_utf8_lossy(&head).contains(&made_by))
}
