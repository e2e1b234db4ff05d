//! One table's file, while it is written.

use crate::manifest::{self, Manifest};
use crate::trace::TraceFile;
use crate::{MessageRow, ResultsError, Run, SegmentRow, SeriesRow, Table};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use std::fs::File;
use std::path::PathBuf;

/// One table's file.
#[derive(Debug)]
pub(crate) struct Sink {
    pub table: Table,
    writer: Writer,
    path: PathBuf,
    pub rows: u64,
}

/// Few rows go through Arrow, which knows every kind of column. Traces come as pages.
#[derive(Debug)]
enum Writer {
    Rows(Box<ArrowWriter<File>>),
    Trace(Box<TraceFile>),
}

impl Sink {
    /// Makes the file, which is not there yet.
    pub fn create(path: PathBuf, table: Table) -> Result<Sink, ResultsError> {
        let file =
            File::create_new(&path).map_err(|source| ResultsError::Write { path: path.clone(), source })?;
        let writer = Writer::create(file, table)
            .map_err(|source| ResultsError::WriteTable { path: path.clone(), source })?;
        Ok(Sink { table, writer, path, rows: 0 })
    }

    pub fn append(&mut self, run: &Run, rows: usize) -> Result<(), ResultsError> {
        self.writer
            .append(self.table, run)
            .map_err(|source| ResultsError::WriteTable { path: self.path.clone(), source })?;
        self.rows += rows as u64;
        Ok(())
    }

    /// Ends the file with what it needs to explain itself when it is found alone.
    pub fn close(&mut self, manifest: &Manifest) -> Result<(), ResultsError> {
        let path = &self.path;
        let file = self
            .writer
            .finish([
                KeyValue::new("farpath.format_version".to_owned(), manifest::VERSION.to_string()),
                KeyValue::new("farpath.experiment".to_owned(), manifest.experiment.clone()),
            ])
            .map_err(|source| ResultsError::WriteTable { path: path.clone(), source })?;
        file.sync_all().map_err(|source| ResultsError::Write { path: path.clone(), source })
    }
}

impl Writer {
    fn create(file: File, table: Table) -> ParquetResult<Writer> {
        Ok(match table {
            Table::Series => Writer::Trace(Box::new(TraceFile::create::<SeriesRow>(file)?)),
            Table::Segments => Writer::Trace(Box::new(TraceFile::create::<SegmentRow>(file)?)),
            Table::Messages => Writer::Trace(Box::new(TraceFile::create::<MessageRow>(file)?)),
            Table::Flows | Table::Routers | Table::Air | Table::Stations | Table::Provenance => {
                let properties = WriterProperties::builder()
                    .set_compression(Compression::SNAPPY)
                    // Statistics of pages would be most of the file where there are few flows.
                    .set_statistics_enabled(EnabledStatistics::Chunk)
                    .set_offset_index_disabled(true)
                    .build();
                Writer::Rows(Box::new(ArrowWriter::try_new(file, table.schema(), Some(properties))?))
            }
        })
    }

    fn append(&mut self, table: Table, run: &Run) -> ParquetResult<()> {
        match self {
            Writer::Rows(writer) => table.batches(run).try_for_each(|batch| writer.write(&batch)),
            Writer::Trace(file) if table == Table::Series => file.append(run.key(), &run.series),
            Writer::Trace(file) if table == Table::Messages => file.append(run.key(), &run.messages),
            Writer::Trace(file) => file.append(run.key(), &run.segments),
        }
    }

    fn finish(&mut self, metadata: [KeyValue; 2]) -> ParquetResult<&File> {
        match self {
            Writer::Rows(writer) => {
                metadata.into_iter().for_each(|entry| writer.append_key_value_metadata(entry));
                writer.finish()?;
                Ok(writer.inner())
            }
            Writer::Trace(file) => {
                metadata.into_iter().for_each(|entry| file.append_key_value_metadata(entry));
                file.finish()?;
                Ok(file.file())
            }
        }
    }
}
