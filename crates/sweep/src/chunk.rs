//! Runs as the bytes of one Parquet file, and back.

use crate::error::SweepError;
use crate::key::{PointKey, first_128_bits, program};
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray, UInt64Array, cast::AsArray};
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use farpath_run::{Engine, Provenance, Run, flow_batch, flow_rows};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::ChunkReader;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// The version that is written, and the latest that is read.
pub(crate) const VERSION: u64 = 1;
/// Where a file says which runs it holds.
const RUNS: &str = "farpath.runs";
/// The column that stands in place of `point`: a point's number is another one in another experiment.
const POINT_KEY: &str = "point_key";

/// Runs that differ in nothing but their seeds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// What made them.
    pub key: PointKey,
    /// The engine, as tables spell it.
    pub engine: String,
    /// The first seed; 0 of a prediction, which has none.
    pub first: u64,
    /// How many follow each other.
    pub count: u64,
    /// What a reader of the numbers must know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caveats: Vec<String>,
}

impl Span {
    /// Its seeds.
    pub fn seeds(&self) -> Range<u64> {
        self.first..self.first + self.count
    }
}

/// What a file says of itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Header {
    pub format_version: u64,
    pub program: String,
    pub spans: Vec<Span>,
}

/// A finished chunk: the bytes of its file, and what that is called.
#[derive(Debug, Clone)]
pub struct Chunk {
    /// A digest of which runs it holds.
    pub name: String,
    /// A Parquet file.
    pub bytes: Vec<u8>,
    /// How many runs.
    pub runs: u64,
}

impl Chunk {
    /// Of runs whose points have these keys.
    ///
    /// # Errors
    /// A table that cannot be encoded.
    pub fn encode(runs: &[Run], key_of: impl Fn(&Run) -> PointKey) -> Result<Chunk, SweepError> {
        let header =
            Header { format_version: VERSION, program: program().to_owned(), spans: spans(runs, &key_of) };
        let text = serde_json::to_string(&header).expect("a header is plain data");
        let name = format!("{:032x}.parquet", first_128_bits(Sha256::new_with_prefix(&text)));
        let bytes = encode(&keyed(runs, &key_of), text).map_err(SweepError::Encode)?;
        Ok(Chunk { name, bytes, runs: runs.len() as u64 })
    }
}

fn spans(runs: &[Run], key_of: impl Fn(&Run) -> PointKey) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for run in runs {
        let (key, seed) = (key_of(run), run.seed.unwrap_or(0));
        let caveats = &run.provenance.caveats;
        let follows = |span: &&mut Span| {
            (span.key, span.engine.as_str(), span.first + span.count, &span.caveats)
                == (key, run.engine.name(), seed, caveats)
        };
        match spans.last_mut().filter(follows) {
            Some(span) => span.count += 1,
            None => spans.push(Span {
                key,
                engine: run.engine.name().to_owned(),
                first: seed,
                count: 1,
                caveats: caveats.clone(),
            }),
        }
    }
    spans
}

/// The flows with keys in place of the points' numbers.
fn keyed(runs: &[Run], key_of: impl Fn(&Run) -> PointKey) -> RecordBatch {
    let batch = flow_batch(runs);
    let keys = runs.iter().flat_map(|run| std::iter::repeat_n(key_of(run).to_string(), run.flows.len()));
    let keys: ArrayRef = Arc::new(StringArray::from_iter_values(keys));
    let description = "what made the run: a digest of its point as resolved, and of the program";
    let field = Field::new(POINT_KEY, DataType::Utf8, false)
        .with_metadata(HashMap::from([("description".to_owned(), description.to_owned())]));
    with_first(&batch, field, keys)
}

fn with_first(batch: &RecordBatch, field: Field, column: ArrayRef) -> RecordBatch {
    let schema = batch.schema();
    let others = schema.fields().iter().skip(1).cloned();
    let fields: Vec<_> = std::iter::once(Arc::new(field)).chain(others).collect();
    let columns = std::iter::once(column).chain(batch.columns().iter().skip(1).cloned()).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).expect("one column in place of another")
}

fn encode(batch: &RecordBatch, header: String) -> parquet::errors::Result<Vec<u8>> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties))?;
    writer.write(batch)?;
    writer.append_key_value_metadata(KeyValue::new(RUNS.to_owned(), header));
    writer.close()?;
    Ok(bytes)
}

/// What the file at `path` says of itself.
pub(crate) fn header(path: &Path) -> Result<Header, SweepError> {
    let file =
        farpath_files::open(path).map_err(|source| SweepError::Read { path: path.to_owned(), source })?;
    header_of(path, &reader(path, file)?)
}

fn reader<T: ChunkReader + 'static>(
    path: &Path,
    source: T,
) -> Result<ParquetRecordBatchReaderBuilder<T>, SweepError> {
    farpath_run::parquet_file::open(source)
        .map_err(|error| SweepError::Damaged { path: path.to_owned(), reason: error.to_string() })
}

fn header_of<T: ChunkReader>(
    path: &Path,
    reader: &ParquetRecordBatchReaderBuilder<T>,
) -> Result<Header, SweepError> {
    let damaged = |reason: String| SweepError::Damaged { path: path.to_owned(), reason };
    let entries = reader.metadata().file_metadata().key_value_metadata();
    let text = entries
        .and_then(|entries| entries.iter().find(|entry| entry.key == RUNS)?.value.clone())
        .ok_or_else(|| damaged(format!("it does not say `{RUNS}`")))?;
    let version: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
    if let Some(found) = version["format_version"].as_u64().filter(|found| *found > VERSION) {
        return Err(SweepError::NewerFormat { path: path.to_owned(), found, known: VERSION });
    }
    let header: Header = serde_json::from_value(version).map_err(|error| damaged(error.to_string()))?;
    // A run has a row of its own: more runs than rows would be made of nothing, and be counted for ever.
    let rows = u64::try_from(reader.metadata().file_metadata().num_rows()).unwrap_or(0);
    let sum = |sum: u64, span: &Span| sum.checked_add(span.count).filter(|sum| *sum <= rows);
    let is_whole = header.spans.iter().try_fold(0, sum).is_some();
    if !is_whole || header.spans.iter().any(|span| span.first.checked_add(span.count).is_none()) {
        return Err(damaged(format!("it says that it holds more runs than its {rows} rows")));
    }
    Ok(header)
}

/// Reads the runs of a file whose key and engine have a number for their point; others are left out.
///
/// # Errors
/// A file that cannot be read, or is no chunk.
pub fn read_runs(
    path: &Path,
    point_of: impl Fn(PointKey, Engine) -> Option<u64>,
) -> Result<Vec<(PointKey, Run)>, SweepError> {
    // Its own program has written it; it is as large as the runs of a chunk are.
    let bytes = farpath_files::read_manifest(path)
        .map_err(|source| SweepError::Read { path: path.to_owned(), source })?;
    let damaged = |reason: String| SweepError::Damaged { path: path.to_owned(), reason };
    let builder = reader(path, Bytes::from(bytes))?;
    let header = header_of(path, &builder)?;
    let mut runs: BTreeMap<(PointKey, Engine, Option<u64>), Run> = BTreeMap::new();
    for span in &header.spans {
        let engine = Engine::from_name(&span.engine)
            .ok_or_else(|| damaged(format!("`{}` is not an engine", span.engine)))?;
        let Some(point) = point_of(span.key, engine) else { continue };
        for seed in span.seeds() {
            let seed = (engine != Engine::Predict).then_some(seed);
            let provenance = Provenance {
                version: header.program.clone(),
                caveats: span.caveats.clone(),
                ..Provenance::default()
            };
            let run = Run::new(farpath_run::RunKey { point, engine, seed }, provenance);
            runs.insert((span.key, engine, seed), run);
        }
    }
    for batch in farpath_run::parquet_file::batches(builder).map_err(|error| damaged(error.to_string()))? {
        let batch = batch.map_err(|error| damaged(error.to_string()))?;
        let keys = batch
            .column_by_name(POINT_KEY)
            .filter(|column| *column.data_type() == DataType::Utf8)
            .ok_or_else(|| damaged(format!("it has no column `{POINT_KEY}`")))?;
        let keys: Vec<Option<PointKey>> =
            keys.as_string::<i32>().iter().map(|text| PointKey::parse(text?)).collect();
        let numbers: UInt64Array = (0..keys.len() as u64).map(Some).collect();
        let numbered = with_first(&batch, Field::new("point", DataType::UInt64, false), Arc::new(numbers));
        for (row, flow) in flow_rows(&numbered).map_err(|error| damaged(error.to_string()))? {
            let key = keys[row.point as usize].ok_or_else(|| damaged("a row has no key".to_owned()))?;
            if let Some(run) = runs.get_mut(&(key, row.engine, row.seed)) {
                run.flows.push(flow);
            }
        }
    }
    Ok(runs.into_iter().map(|((key, ..), run)| (key, run)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpath_run::RunKey;

    /// Counts of runs that somebody made up: 2^64 of them were counted one by one.
    #[test]
    fn a_chunk_that_says_it_holds_more_runs_than_rows_is_damaged() {
        let key: PointKey = PointKey::parse(&"0".repeat(32)).expect("a key");
        let run = |seed| {
            let key = RunKey { point: 0, engine: Engine::Simulate, seed: Some(seed) };
            Run::new(key, Provenance::default())
        };
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("chunk.parquet");
        for (first, count) in [(1, 3), (1, u64::MAX), (u64::MAX, 1)] {
            let span = Span { key, engine: "simulate".to_owned(), first, count, caveats: Vec::new() };
            let header = Header { format_version: VERSION, program: String::new(), spans: vec![span] };
            let text = serde_json::to_string(&header).expect("plain data");
            std::fs::write(&path, encode(&keyed(&[run(1)], |_| key), text).expect("Parquet"))
                .expect("writable");
            let refused = read_runs(&path, |_, _| Some(0)).expect_err("it is damaged").to_string();
            assert!(refused.contains("more runs than its 0 rows"), "{refused}");
        }
    }
}
