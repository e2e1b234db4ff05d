//! Writes results run by run. What a folder has changes only when they are finished, in one step.

use crate::commit::{self, Staging};
use crate::manifest::{self, Header, Manifest};
use crate::sink::Sink;
use crate::{ExperimentSummary, ResultsError, Run, Table};
use farpath_files::{PARTIAL, whole_name};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The tables that have a file; where a run comes from stands in `provenance.json`.
pub(crate) fn filed() -> impl Iterator<Item = Table> {
    Table::ALL.into_iter().filter(|table| *table != Table::Provenance)
}

/// The page that shows the results. It is made from them, and goes when they are replaced.
pub const REPORT: &str = "report.html";

/// A results folder that is being written.
///
/// [`append`](ResultsDir::append) adds runs, [`finish`](ResultsDir::finish) makes them readable, in one step. Results that were
/// in the folder before stay readable until then, and stay for good where it is dropped without `finish`, or killed.
/// A folder takes one writer at a time: of two each would take away what the other has written.
#[derive(Debug)]
pub struct ResultsDir {
    path: PathBuf,
    manifest: Manifest,
    // Before the folder that they are in: open files of some systems cannot be removed.
    tables: Vec<Sink>,
    staging: Staging,
    _lock: FolderLock,
}

impl ResultsDir {
    /// Makes the folder, or takes an empty one, or one with results. Whether it can be written is known
    /// after this call, before any run.
    pub fn create(path: impl Into<PathBuf>) -> Result<ResultsDir, ResultsError> {
        let path = path.into();
        let not_writable = |source| ResultsError::NotWritable { path: path.clone(), source };
        farpath_files::folder_or_nothing(&path)
            .and_then(|()| fs::create_dir_all(&path))
            .map_err(not_writable)?;
        if let Some(found) = foreign_file(&path).map_err(not_writable)? {
            return Err(ResultsError::Occupied { path, found });
        }
        let lock = FolderLock::take(&path)?;
        commit::put_in_place(&path).map_err(not_writable)?;
        commit::remove_left(&path);
        let staging = Staging::create(&path).map_err(not_writable)?;
        let flows = Sink::create(staging.path(&table_name(Table::Flows)), Table::Flows);
        let flows = flows.map_err(|error| match error {
            ResultsError::Write { source, .. } => not_writable(source),
            other => other,
        })?;
        Ok(ResultsDir { path, manifest: Manifest::new(), tables: vec![flows], staging, _lock: lock })
    }

    /// Notes what was asked, for whoever shows the results.
    pub fn describe(&mut self, asked: ExperimentSummary) {
        self.manifest.asked = Some(asked);
    }

    /// Adds a run. Its rows may wait in memory until there are more of them; that the disk is gone or full is seen all the same,
    /// within a second.
    pub fn append(&mut self, run: &Run) -> Result<(), ResultsError> {
        let lost = |source| ResultsError::Lost { path: self.path.clone(), source };
        self.staging.check().map_err(lost)?;
        if !self.manifest.add(run) {
            return Err(ResultsError::OtherExperiment { path: self.path.clone() });
        }
        for (table, rows) in [
            (Table::Flows, run.flows.len()),
            (Table::Series, run.series.len()),
            (Table::Segments, run.segments.len()),
            (Table::Messages, run.messages.len()),
            (Table::Routers, run.routers.len()),
            (Table::Air, run.air.len()),
            (Table::Stations, run.stations.len()),
        ] {
            if rows > 0 {
                self.table(table)?.append(run, rows)?;
            }
        }
        Ok(())
    }

    fn table(&mut self, table: Table) -> Result<&mut Sink, ResultsError> {
        let index = match self.tables.iter().position(|sink| sink.table == table) {
            Some(index) => index,
            None => {
                self.tables.push(Sink::create(self.staging.path(&table_name(table)), table)?);
                self.tables.len() - 1
            }
        };
        Ok(&mut self.tables[index])
    }

    /// Writes all tables and `provenance.json` to the disk; earlier results still count. `complete` is false where runs are
    /// missing because the experiment was interrupted; readers are told.
    pub fn close(&mut self, complete: bool) -> Result<(), ResultsError> {
        self.manifest.complete = complete;
        for sink in &mut self.tables {
            sink.close(&self.manifest)?;
            self.manifest.tables.insert(sink.table.name().to_owned(), sink.rows);
        }
        let path = self.staging.path(manifest::FILE);
        let text =
            serde_json::to_string_pretty(&self.manifest).expect("a manifest holds nothing but plain data");
        File::create_new(&path)
            .and_then(|mut file| writeln!(file, "{text}").and_then(|()| file.sync_all()))
            .map_err(|source| ResultsError::Write { path, source })
    }

    /// Where the report of these results is written, to come into its place with them.
    pub fn report(&self) -> PathBuf {
        self.staging.path(REPORT)
    }

    /// Puts what was [closed](ResultsDir::close) in the place of earlier results, whose report goes with them.
    pub fn commit(self) -> Result<(), ResultsError> {
        let ResultsDir { path, tables, staging, _lock, .. } = self;
        drop(tables);
        staging.commit(&path).map_err(|source| ResultsError::Write { path, source })
    }

    /// Closes the tables and puts everything in place.
    pub fn finish(mut self, complete: bool) -> Result<(), ResultsError> {
        self.close(complete)?;
        self.commit()
    }
}

/// A folder that takes one writer at a time, where its file system has locks; where it has none, that is up to the user.
/// It is given back when this is dropped, also by a process that is killed.
#[derive(Debug)]
pub struct FolderLock {
    _file: Option<File>,
}

impl FolderLock {
    /// Locks a folder.
    ///
    /// # Errors
    /// [`ResultsError::Busy`] where somebody else writes there.
    #[cfg(unix)]
    pub fn take(folder: &Path) -> Result<FolderLock, ResultsError> {
        use rustix::fs::{FlockOperation, flock};
        let Ok(file) = File::open(folder) else { return Ok(FolderLock { _file: None }) };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(FolderLock { _file: Some(file) }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(ResultsError::Busy { path: folder.to_owned() }),
            Err(_) => Ok(FolderLock { _file: None }),
        }
    }

    /// Locks a folder.
    ///
    /// # Errors
    /// None here.
    #[cfg(not(unix))]
    pub fn take(_folder: &Path) -> Result<FolderLock, ResultsError> {
        Ok(FolderLock { _file: None })
    }
}

/// The file of a table.
pub(crate) fn table_name(table: Table) -> String {
    format!("{}.parquet", table.name())
}

/// The name of something that is not ours, if the folder has it and is no results folder. A link or a FIFO is never ours.
fn foreign_file(folder: &Path) -> io::Result<Option<String>> {
    let provenance = commit::located(folder, manifest::FILE);
    match farpath_files::read_manifest(&provenance) {
        Ok(text) => {
            let ours =
                serde_json::from_slice::<Header>(&text).is_ok_and(|header| header.format == manifest::FORMAT);
            return Ok((!ours).then(|| manifest::FILE.to_owned()));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(_) => return Ok(Some(manifest::FILE.to_owned())),
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (name, kind) = (entry.file_name().to_string_lossy().into_owned(), entry.file_type()?);
        let known = match kind {
            _ if kind.is_file() => is_ours(&name),
            _ if kind.is_dir() => commit::is_staging(&name) || name == commit::COMMITTED,
            _ => false,
        };
        if !known {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// Whether a file of this name is one of the results, or one that an interrupted writer leaves.
pub(crate) fn is_ours(name: &str) -> bool {
    let whole = whole_name(name).or(name.strip_suffix(PARTIAL));
    is_results(whole.unwrap_or(name))
}

/// Whether a file of this name is one of the results.
pub(crate) fn is_results(name: &str) -> bool {
    name == manifest::FILE || name == REPORT || filed().any(|table| table_name(table) == name)
}
