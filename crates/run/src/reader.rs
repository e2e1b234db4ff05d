//! Reads results back.

use crate::commit;
use crate::manifest::{self, Header, Manifest};
use crate::schema::Row;
use crate::writer::{REPORT, is_ours, table_name};
use crate::{
    AirRow, ExperimentSummary, FlowRow, FolderLock, MessageRow, Provenance, ResultsError, RouterRow, Run,
    RunKey, SegmentRow, SeriesRow, StationRow, Table, arrow, parquet_file,
};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A results folder, opened. Tables are read when they are asked for.
#[derive(Debug)]
pub struct Results {
    path: PathBuf,
    manifest: Manifest,
    provenances: BTreeMap<RunKey, Provenance>,
}

impl Results {
    /// Opens a results folder.
    pub fn read(path: impl Into<PathBuf>) -> Result<Results, ResultsError> {
        let path = path.into();
        put_in_place(&path);
        let file = commit::located(&path, manifest::FILE);
        let text = match farpath_files::read_manifest(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(without_provenance(path)),
            Err(source) if path.is_dir() => return Err(ResultsError::Read { path: file, source }),
            Err(_) => return Err(ResultsError::NotResults { path, reason: "it is not a folder".to_owned() }),
        };
        let header: Header = match serde_json::from_slice(&text) {
            Ok(header) => header,
            Err(source) => return Err(ResultsError::Provenance { path: file, source }),
        };
        if header.format != manifest::FORMAT {
            let reason = format!("its {} is of the format `{}`", manifest::FILE, header.format);
            return Err(ResultsError::NotResults { path, reason });
        }
        if header.format_version > manifest::VERSION {
            let (found, known) = (header.format_version, manifest::VERSION);
            return Err(ResultsError::NewerFormat { path, found, known });
        }
        let manifest: Manifest = serde_json::from_slice(&text)
            .map_err(|source| ResultsError::Provenance { path: file, source })?;
        let provenances = manifest.provenances();
        Ok(Results { path, manifest, provenances })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The experiment file as it was given.
    pub fn experiment(&self) -> &str {
        &self.manifest.experiment
    }

    /// What was asked; results of early versions do not say.
    pub fn experiment_summary(&self) -> Option<&ExperimentSummary> {
        self.manifest.asked.as_ref()
    }

    /// Whether everything that the experiment asked for is there.
    pub fn is_complete(&self) -> bool {
        self.manifest.complete
    }

    /// What a reader must be told before any number.
    pub fn warning(&self) -> Option<String> {
        let runs = self.provenances.len();
        (!self.is_complete()).then(|| {
            format!(
                "{}: the experiment was interrupted; only {runs} of its runs are here",
                self.path.display()
            )
        })
    }

    /// Which runs there are, and where each comes from.
    pub fn provenances(&self) -> &BTreeMap<RunKey, Provenance> {
        &self.provenances
    }

    /// The flows of all runs.
    pub fn flows(&self) -> Result<Vec<(RunKey, FlowRow)>, ResultsError> {
        self.table(Table::Flows)
    }

    /// The series of all runs.
    pub fn series(&self) -> Result<Vec<(RunKey, SeriesRow)>, ResultsError> {
        self.table(Table::Series)
    }

    /// The segments of all runs.
    pub fn segments(&self) -> Result<Vec<(RunKey, SegmentRow)>, ResultsError> {
        self.table(Table::Segments)
    }

    /// The messages of all runs.
    pub fn messages(&self) -> Result<Vec<(RunKey, MessageRow)>, ResultsError> {
        self.table(Table::Messages)
    }

    /// What the flow routers of all runs have decided.
    pub fn routers(&self) -> Result<Vec<(RunKey, RouterRow)>, ResultsError> {
        self.table(Table::Routers)
    }

    /// What the air of the radios of all runs was used for.
    pub fn air(&self) -> Result<Vec<(RunKey, AirRow)>, ResultsError> {
        self.table(Table::Air)
    }

    /// What the stations did that shared an air with others, of all runs.
    pub fn stations(&self) -> Result<Vec<(RunKey, StationRow)>, ResultsError> {
        self.table(Table::Stations)
    }

    /// Everything, in the order of point, engine and seed.
    pub fn runs(&self) -> Result<Vec<Run>, ResultsError> {
        self.runs_traced(|_| true)
    }

    /// The same, with the series, segments and messages of those runs only for which `traced` holds: those of a whole sweep may
    /// be more than fits into memory.
    pub fn runs_traced(&self, traced: impl Fn(&RunKey) -> bool) -> Result<Vec<Run>, ResultsError> {
        let mut flows = by_run(self.flows()?);
        let mut routers = by_run(self.routers()?);
        let mut air = by_run(self.air()?);
        let mut stations = by_run(self.stations()?);
        let mut grades = self.manifest.grades();
        let mut series = by_run(self.table_of(Table::Series, &traced)?);
        let mut segments = by_run(self.table_of(Table::Segments, &traced)?);
        let mut messages = by_run(self.table_of(Table::Messages, &traced)?);
        let run = |(key, provenance): (&RunKey, &Provenance)| Run {
            flows: flows.remove(key).unwrap_or_default(),
            series: series.remove(key).unwrap_or_default(),
            segments: segments.remove(key).unwrap_or_default(),
            messages: messages.remove(key).unwrap_or_default(),
            routers: routers.remove(key).unwrap_or_default(),
            air: air.remove(key).unwrap_or_default(),
            stations: stations.remove(key).unwrap_or_default(),
            grade: grades.remove(key),
            ..Run::new(*key, provenance.clone())
        };
        Ok(self.provenances.iter().map(run).collect())
    }

    fn table<R: Row>(&self, table: Table) -> Result<Vec<(RunKey, R)>, ResultsError> {
        self.table_of(table, |_| true)
    }

    fn table_of<R: Row>(
        &self,
        table: Table,
        wanted: impl Fn(&RunKey) -> bool,
    ) -> Result<Vec<(RunKey, R)>, ResultsError> {
        let Some(&expected) = self.manifest.tables.get(table.name()) else {
            return Ok(Vec::new());
        };
        let path = commit::located(&self.path, &table_name(table));
        let file =
            farpath_files::open(&path).map_err(|source| ResultsError::Read { path: path.clone(), source })?;
        let damaged = |source| ResultsError::ReadTable { path: path.clone(), source };
        let batches = parquet_file::open(file).and_then(parquet_file::batches).map_err(damaged)?;
        let mut rows = Vec::new();
        let mut found = 0;
        for batch in batches {
            let batch = batch.map_err(damaged)?;
            let more: Vec<(RunKey, R)> =
                arrow::rows(&batch).map_err(|source| ResultsError::Column { path: path.clone(), source })?;
            found += more.len() as u64;
            rows.extend(more.into_iter().filter(|(key, _)| wanted(key)));
        }
        if found != expected {
            return Err(ResultsError::Rows { path, found, expected });
        }
        Ok(rows)
    }
}

fn by_run<R, C: Default + Extend<R>>(rows: Vec<(RunKey, R)>) -> BTreeMap<RunKey, C> {
    let mut runs: BTreeMap<RunKey, C> = BTreeMap::new();
    for (key, row) in rows {
        runs.entry(key).or_default().extend([row]);
    }
    runs
}

/// What a writer that was killed left in `results.committed` gets its place, where this user may do that; it is read all the same
/// where not.
fn put_in_place(path: &Path) {
    if path.join(commit::COMMITTED).is_dir()
        && let Ok(_lock) = FolderLock::take(path)
    {
        let _ = commit::put_in_place(path);
    }
}

/// What a folder without `provenance.json` is.
fn without_provenance(path: PathBuf) -> ResultsError {
    let Ok(entries) = fs::read_dir(&path) else {
        return ResultsError::NotResults { path, reason: "there is no such folder".to_owned() };
    };
    let is_left = |name: &str| name != REPORT && (is_ours(name) || commit::is_staging(name));
    let left_over = entries.flatten().any(|entry| entry.file_name().to_str().is_some_and(is_left));
    if left_over {
        return ResultsError::Incomplete { path };
    }
    ResultsError::NotResults { path, reason: format!("it has no {}", manifest::FILE) }
}
