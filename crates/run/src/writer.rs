//! Writes results run by run. A folder changes only when it is finished: until then every file has another name.

use crate::manifest::{self, Header, Manifest};
use crate::sink::{PARTIAL, Partial, Sink};
use crate::{Asked, ResultsError, Run, Table};
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
/// [`append`](ResultsDir::append) adds runs, [`finish`](ResultsDir::finish) makes them readable. Results that were
/// in the folder before stay readable until then, and stay for good where it is dropped without `finish`.
/// A folder takes one writer at a time: of two each would take away what the other has written.
#[derive(Debug)]
pub struct ResultsDir {
    path: PathBuf,
    _lock: FolderLock,
    manifest: Manifest,
    tables: Vec<Sink>,
}

impl ResultsDir {
    /// Makes the folder, or takes an empty one, or one with results. Whether it can be written is known
    /// after this call, before any run.
    pub fn create(path: impl Into<PathBuf>) -> Result<ResultsDir, ResultsError> {
        let path = path.into();
        let not_writable = |source| ResultsError::NotWritable { path: path.clone(), source };
        fs::create_dir_all(&path).map_err(not_writable)?;
        if let Some(found) = foreign_file(&path).map_err(not_writable)? {
            return Err(ResultsError::Occupied { path, found });
        }
        let lock = FolderLock::take(&path)?;
        let flows = Sink::create(&path, Table::Flows).map_err(|error| match error {
            ResultsError::Write { source, .. } => not_writable(source),
            other => other,
        })?;
        Ok(ResultsDir { path, _lock: lock, manifest: Manifest::new(), tables: vec![flows] })
    }

    /// Notes what was asked, for whoever shows the results.
    pub fn describe(&mut self, asked: Asked) {
        self.manifest.asked = Some(asked);
    }

    /// Adds a run.
    pub fn append(&mut self, run: &Run) -> Result<(), ResultsError> {
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
                self.tables.push(Sink::create(&self.path, table)?);
                self.tables.len() - 1
            }
        };
        Ok(&mut self.tables[index])
    }

    /// Puts everything in place, `provenance.json` last. `complete` is false where runs are missing because the
    /// experiment was interrupted; readers are told.
    pub fn finish(mut self, complete: bool) -> Result<(), ResultsError> {
        self.manifest.complete = complete;
        for sink in &mut self.tables {
            sink.close(&self.manifest)?;
            self.manifest.tables.insert(sink.table.name().to_owned(), sink.rows);
        }
        let provenance = self.path.join(manifest::FILE);
        let partial = Partial(self.path.join(format!("{}{PARTIAL}", manifest::FILE)));
        let text =
            serde_json::to_string_pretty(&self.manifest).expect("a manifest holds nothing but plain data");
        File::create(&partial.0)
            .and_then(|mut file| writeln!(file, "{text}").and_then(|()| file.sync_all()))
            .map_err(|source| ResultsError::Write { path: partial.0.clone(), source })?;
        // From here on the old results go. Without the old provenance no mixture of the two can be read.
        let write_error = |path: &Path| {
            let path = path.to_owned();
            move |source| ResultsError::Write { path, source }
        };
        let report = self.path.join(REPORT);
        remove_if_there(&report).map_err(write_error(&report))?;
        remove_if_there(&provenance).map_err(write_error(&provenance))?;
        for table in filed() {
            let file = table_file(&self.path, table);
            match self.tables.iter().find(|sink| sink.table == table) {
                Some(sink) => fs::rename(&sink.partial.0, &file),
                None => remove_if_there(&file),
            }
            .map_err(write_error(&file))?;
        }
        fs::rename(&partial.0, &provenance).map_err(write_error(&provenance))
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

/// Where a table stands.
pub(crate) fn table_file(folder: &Path, table: Table) -> PathBuf {
    folder.join(format!("{}.parquet", table.name()))
}

/// The name of a file that is not ours, if the folder has one and is no results folder.
fn foreign_file(folder: &Path) -> io::Result<Option<String>> {
    if let Ok(text) = fs::read(folder.join(manifest::FILE)) {
        let ours =
            serde_json::from_slice::<Header>(&text).is_ok_and(|header| header.format == manifest::FORMAT);
        return Ok((!ours).then(|| manifest::FILE.to_owned()));
    }
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !is_ours(&name) && !is_report(&name) {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// Whether a file of this name is a report, or one that is being written: something of its own stands before the end.
fn is_report(name: &str) -> bool {
    name.strip_prefix(REPORT).is_some_and(|rest| rest.is_empty() || rest.ends_with(PARTIAL))
}

/// Whether a file of this name is one that an interrupted writer leaves.
pub(crate) fn is_ours(name: &str) -> bool {
    let name = name.strip_suffix(PARTIAL).unwrap_or(name);
    name == manifest::FILE
        || name.strip_suffix(".parquet").is_some_and(|stem| filed().any(|table| table.name() == stem))
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
