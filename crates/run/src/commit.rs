//! The change from earlier results to new ones, in one step.
//!
//! New files are written into a folder of their own within the results folder, `results.XXXXXX.partial`. When all of them are
//! on the disk, it is renamed to `results.committed`: from then on the new results count. After that each file is moved to
//! where it is looked for, `provenance.json` last. A process that is killed before the rename leaves the earlier results as
//! they were, and one that is killed after it leaves the new ones: readers look into `results.committed` first, and the next
//! process that may write there moves what is left.
//!
//! Two folders could be exchanged in place of that (renameat2 of Linux). But the folder may be a mount point, or the working
//! directory of a shell, and it may hold a user's notes beside the tables: it stays the same one, on every system.

use crate::manifest;
use crate::writer::{REPORT, filed, is_ours, is_results, table_name};
use farpath_files::PARTIAL;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How the name of a folder of new files begins.
const PREFIX: &str = "results.";
/// The folder of new files that count.
pub(crate) const COMMITTED: &str = "results.committed";
/// Ending of an empty file that says: what has this name goes.
const REMOVED: &str = ".removed";

/// So often it is tried whether the disk still takes anything: tables are held in memory until there is a row group of them.
const PROBED: Duration = Duration::from_secs(1);
const PROBE: &str = "writable";
/// Of a full disk a block may be left.
const PROBE_SIZE: usize = 1 << 16;

/// A folder of new files, removed where it was not committed.
#[derive(Debug)]
pub(crate) struct Staging {
    folder: TempDir,
    identity: Identity,
    probed: Instant,
}

impl Staging {
    /// Makes one, under a name that nobody else has chosen.
    pub fn create(results: &Path) -> io::Result<Staging> {
        let mut name = tempfile::Builder::new();
        name.prefix(PREFIX).suffix(PARTIAL);
        // As any other folder, and not for its owner alone.
        #[cfg(unix)]
        name.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777));
        let folder = name.tempdir_in(results)?;
        let identity = Identity::from_metadata(&fs::symlink_metadata(folder.path())?);
        let staging = Staging { folder, identity, probed: now() };
        staging.probe()?;
        Ok(staging)
    }

    /// Where a file of this name is until it is committed.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Whether the disk is still there and takes more; now and then by writing to it.
    pub fn check(&mut self) -> io::Result<()> {
        self.is_same(self.folder.path())?;
        if self.probed.elapsed() < PROBED {
            return Ok(());
        }
        self.probed = now();
        self.probe()
    }

    fn probe(&self) -> io::Result<()> {
        let path = self.path(PROBE);
        let mut file = File::create_new(&path)?;
        let written = file.write_all(&[0; PROBE_SIZE]).and_then(|()| file.sync_data());
        fs::remove_file(&path)?;
        written
    }

    /// Whether this is still the folder that was made, and no link that somebody has put in its place.
    fn is_same(&self, folder: &Path) -> io::Result<()> {
        match fs::symlink_metadata(folder) {
            Ok(about) if Identity::from_metadata(&about) == self.identity => Ok(()),
            Ok(_) => Err(io::Error::new(ErrorKind::NotFound, "another folder has taken its place")),
            Err(error) => Err(error),
        }
    }

    /// Makes the new files the results.
    pub fn commit(self, results: &Path) -> io::Result<()> {
        self.is_same(self.folder.path())?;
        let names = filed().map(table_name).chain([REPORT.to_owned()]);
        for name in names.filter(|name| !self.path(name).exists()) {
            File::create_new(self.path(&format!("{name}{REMOVED}")))?;
        }
        sync(self.folder.path());
        let committed = results.join(COMMITTED);
        fs::rename(self.folder.path(), &committed)?;
        let Staging { folder, identity, .. } = self;
        let _ = folder.keep();
        match fs::symlink_metadata(&committed) {
            Ok(about) if Identity::from_metadata(&about) == identity => {}
            Ok(_) => return Err(io::Error::other("another folder has taken its place")),
            Err(error) => return Err(error),
        }
        sync(results);
        put_in_place(results)
    }
}

/// A folder, by whatever name.
#[derive(Debug, PartialEq, Eq)]
struct Identity(bool, Option<(u64, u64)>);

impl Identity {
    fn from_metadata(about: &Metadata) -> Identity {
        #[cfg(unix)]
        let number = Some(std::os::unix::fs::MetadataExt::dev(about))
            .zip(Some(std::os::unix::fs::MetadataExt::ino(about)));
        #[cfg(not(unix))]
        let number = None;
        Identity(about.is_dir(), number)
    }
}

/// Puts what was committed in its place. What was done before is not done again, so a process may be killed anywhere within.
pub(crate) fn put_in_place(results: &Path) -> io::Result<()> {
    let committed = results.join(COMMITTED);
    let there = |name: &str| is_folder(&committed) && committed.join(name).exists();
    for name in filed().map(table_name).chain([REPORT.to_owned(), manifest::FILE.to_owned()]) {
        let removed = format!("{name}{REMOVED}");
        if there(&name) {
            fs::rename(committed.join(&name), results.join(&name))?;
        } else if there(&removed) {
            remove_if_there(&results.join(&name))?;
            fs::remove_file(committed.join(&removed))?;
        }
    }
    // Whatever else somebody has put there stays.
    if is_folder(&committed) {
        let _ = fs::remove_dir(&committed);
    }
    sync(results);
    Ok(())
}

/// Where a file of the results is.
pub(crate) fn located(results: &Path, name: &str) -> PathBuf {
    let committed = results.join(COMMITTED);
    let new = committed.join(name);
    match is_folder(&committed) && new.exists() {
        true => new,
        false => results.join(name),
    }
}

/// Removes what writers that were killed have left: of the folder nobody else is a writer.
pub(crate) fn remove_left(results: &Path) {
    farpath_files::remove_abandoned(results, is_results);
    for entry in fs::read_dir(results).into_iter().flatten().flatten() {
        let (name, kind) = (entry.file_name(), entry.file_type());
        let Some(name) = name.to_str() else { continue };
        match kind {
            Ok(kind) if kind.is_dir() && is_staging(name) => drop(fs::remove_dir_all(entry.path())),
            // Of earlier programs.
            Ok(kind) if kind.is_file() && name.strip_suffix(PARTIAL).is_some_and(is_ours) => {
                drop(fs::remove_file(entry.path()));
            }
            _ => {}
        }
    }
}

/// Whether a folder of this name is one of new files.
pub(crate) fn is_staging(name: &str) -> bool {
    let drawn = name.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(PARTIAL));
    drawn.is_some_and(|drawn| drawn.len() == 6 && drawn.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|about| about.is_dir())
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Names in a folder, onto the disk. Some file systems have no such call.
fn sync(folder: &Path) {
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long it is since the disk was tried is no part of a result"
)]
fn now() -> Instant {
    Instant::now()
}
