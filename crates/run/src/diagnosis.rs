//! The tables of a diagnosis, as files.

use crate::arrow::{info_of, rows_batch};
use crate::schema::Row;
use crate::tables::diagnosis::{ConnectionRow, IntervalRow, LimitRow};
use crate::{ColumnInfo, ResultsError};
use farpath_files::Replacement;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use std::fs;
use std::path::Path;

/// What held the connections of a capture.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DiagnosisTables {
    /// Each connection.
    pub connections: Vec<ConnectionRow>,
    /// Each limit of each of them.
    pub limits: Vec<LimitRow>,
    /// Each stretch of time of those that were looked at closer.
    pub intervals: Vec<IntervalRow>,
}

impl DiagnosisTables {
    /// The columns of each table, with its name.
    pub fn columns() -> [(&'static str, Vec<ColumnInfo>); 3] {
        [
            ("connections", info_of::<ConnectionRow>()),
            ("limits", info_of::<LimitRow>()),
            ("intervals", info_of::<IntervalRow>()),
        ]
    }

    /// Whether a folder takes the tables: a new or an empty one. To know it, one that is not there is made, and taken away again.
    ///
    /// # Errors
    /// It holds files, or cannot be made.
    pub fn may_write(folder: &Path) -> Result<(), ResultsError> {
        let not_writable = |source| ResultsError::NotWritable { path: folder.to_owned(), source };
        let is_new = !folder.exists();
        farpath_files::folder_or_nothing(folder)
            .and_then(|()| fs::create_dir_all(folder))
            .map_err(not_writable)?;
        match fs::read_dir(folder).and_then(|mut entries| entries.next().transpose()).map_err(not_writable)? {
            None if is_new => fs::remove_dir(folder).map_err(not_writable),
            None => Ok(()),
            Some(entry) => {
                let found = entry.file_name().to_string_lossy().into_owned();
                Err(ResultsError::Occupied { path: folder.to_owned(), found })
            }
        }
    }

    /// Writes them into a folder, which is made where it is not there; each as a whole.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), ResultsError> {
        fs::create_dir_all(folder)
            .map_err(|source| ResultsError::NotWritable { path: folder.to_owned(), source })?;
        write(&folder.join("intervals.parquet"), &self.intervals)?;
        write(&folder.join("limits.parquet"), &self.limits)?;
        write(&folder.join("connections.parquet"), &self.connections)
    }
}

fn write<R: Row>(path: &Path, rows: &[R]) -> Result<(), ResultsError> {
    let failed = |source| ResultsError::Write { path: path.to_owned(), source };
    let replacement = Replacement::create(path).map_err(failed)?;
    let batch = rows_batch(rows);
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    ArrowWriter::try_new(replacement.file(), batch.schema(), Some(properties))
        .and_then(|mut writer| writer.write(&batch).and_then(|()| writer.close()))
        .map_err(|source| ResultsError::WriteTable { path: path.to_owned(), source })?;
    replacement.commit().map_err(failed)
}
