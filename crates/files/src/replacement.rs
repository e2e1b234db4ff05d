//! A file that takes the place of an earlier one, whole or not at all.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Ending of a file that is still being written.
pub const PARTIAL: &str = ".partial";

/// Characters that are drawn for the name of a file that is being written.
const DRAWN: usize = 6;

/// A file that is being written, under a name of its own: its name, a dot, what was drawn, and [`PARTIAL`]. Whatever has that
/// name already, a link or a FIFO among it, is neither followed nor opened.
///
/// Dropped before [`commit`](Replacement::commit), it leaves nothing behind. What a process that was killed leaves is
/// removed by the next one that replaces the same file.
#[derive(Debug)]
pub struct Replacement {
    path: PathBuf,
    partial: NamedTempFile,
}

impl Replacement {
    /// Takes a name in the folder of `path`, and removes what killed processes have left of this file. Whether files can be
    /// written there is known after this call.
    ///
    /// # Errors
    /// The folder is not there, or takes no files.
    pub fn create(path: impl Into<PathBuf>) -> io::Result<Replacement> {
        let path = path.into();
        if let Some(name) = path.file_name().and_then(OsStr::to_str) {
            remove_abandoned(folder_of(&path), |other| other == name);
        }
        Replacement::create_beside(path)
    }

    /// The same in a folder of many files, of which [`remove_abandoned`] has removed what was left.
    ///
    /// # Errors
    /// As [`create`](Replacement::create).
    pub fn create_beside(path: impl Into<PathBuf>) -> io::Result<Replacement> {
        let path = path.into();
        let name = path.file_name().unwrap_or_default().to_owned();
        let folder = folder_of(&path);
        loop {
            let partial = draw(folder, &name)?;
            // Another process may have taken it for abandoned before it was locked.
            if lock(partial.as_file()) == Lock::None || is_there(&partial) {
                return Ok(Replacement { path, partial });
            }
        }
    }

    /// The file, to be written.
    pub fn file(&self) -> &File {
        self.partial.as_file()
    }

    /// Where it is until it has its name.
    pub fn partial(&self) -> &Path {
        self.partial.path()
    }

    /// Gives it its name, when all of it is on the disk.
    ///
    /// # Errors
    /// The disk takes no more, or the file not its name; then it is removed.
    pub fn commit(self) -> io::Result<()> {
        self.file().sync_all()?;
        self.partial.persist(&self.path).map(drop).map_err(|error| error.error)
    }
}

fn draw(folder: &Path, name: &OsStr) -> io::Result<NamedTempFile> {
    let mut prefix = OsString::from(name);
    prefix.push(".");
    let mut drawn = tempfile::Builder::new();
    drawn.prefix(&prefix).suffix(PARTIAL).rand_bytes(DRAWN);
    // As any other file, and not for its owner alone.
    #[cfg(unix)]
    drawn.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    drawn.tempfile_in(folder)
}

/// A bare name is in the folder that is called nothing.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Removes what processes that were killed have left of files whose name `is_ours`: what is being written is locked.
pub fn remove_abandoned(folder: &Path, is_ours: impl Fn(&str) -> bool) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_partial = entry.file_name().to_str().and_then(whole_name).is_some_and(&is_ours);
        // Of the entry itself: a link is not followed.
        if !is_partial || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        if crate::open(&entry.path()).is_ok_and(|file| lock(&file) == Lock::Taken) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// What a file of this name is to be called when it is whole; `None` where it is none that is being written.
pub fn whole_name(partial: &str) -> Option<&str> {
    let (name, drawn) = partial.strip_suffix(PARTIAL)?.rsplit_once('.')?;
    (drawn.len() == DRAWN && drawn.bytes().all(|byte| byte.is_ascii_alphanumeric())).then_some(name)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(unix), expect(dead_code, reason = "there are no locks"))]
enum Lock {
    /// It is ours until the file is closed.
    Taken,
    /// Somebody writes it.
    Busy,
    /// There are no locks here: nothing is ever taken for abandoned.
    None,
}

#[cfg(unix)]
fn lock(file: &File) -> Lock {
    use rustix::fs::{FlockOperation, flock};
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Lock::Taken,
        Err(rustix::io::Errno::WOULDBLOCK) => Lock::Busy,
        Err(_) => Lock::None,
    }
}

#[cfg(not(unix))]
fn lock(_: &File) -> Lock {
    Lock::None
}

#[cfg(unix)]
fn is_there(partial: &NamedTempFile) -> bool {
    use std::os::unix::fs::MetadataExt;
    partial.as_file().metadata().is_ok_and(|about| about.nlink() > 0)
}

#[cfg(not(unix))]
fn is_there(_: &NamedTempFile) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("readable").flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_earlier_file_is_there_until_the_new_one_is_whole() {
        let room = tempfile::tempdir().expect("a folder");
        let file = room.path().join("report.html");
        fs::write(&file, "old").expect("writable");
        let dropped = Replacement::create(&file).expect("writable");
        dropped.file().write_all(b"half").expect("writable");
        drop(dropped);
        assert_eq!(names(room.path()), ["report.html"]);
        let replacement = Replacement::create(&file).expect("writable");
        replacement.file().write_all(b"new").expect("writable");
        assert_eq!(fs::read(&file).expect("readable"), b"old");
        replacement.commit().expect("renamed");
        assert_eq!((names(room.path()).len(), fs::read(&file).expect("readable")), (1, b"new".to_vec()));
    }

    #[test]
    #[cfg(unix)]
    fn what_is_abandoned_is_removed_and_what_is_being_written_stays() {
        let room = tempfile::tempdir().expect("a folder");
        let within = |name: &str| room.path().join(name);
        let written = Replacement::create(within("report.html")).expect("writable");
        fs::write(room.path().join("report.html.a1B2c3.partial"), "half").expect("writable");
        // Of another file, and by no name of ours.
        for other in
            ["other.html.a1B2c3.partial", "report.html.notes.partial", "report.html.a1-2c3.partial", "x"]
        {
            fs::write(within(other), "").expect("writable");
        }
        std::os::unix::fs::symlink(within("x"), within("report.html.linked.partial")).expect("a link");
        drop(Replacement::create(within("report.html")).expect("writable"));
        let partial = written.partial().file_name().expect("named").to_string_lossy().into_owned();
        let mut left = vec![
            "other.html.a1B2c3.partial",
            "report.html.a1-2c3.partial",
            "report.html.linked.partial",
            "report.html.notes.partial",
            &partial,
            "x",
        ];
        left.sort();
        assert_eq!(names(room.path()), left);
    }

    #[test]
    #[cfg(unix)]
    fn a_link_under_its_name_is_replaced_and_not_followed() {
        let room = tempfile::tempdir().expect("a folder");
        let (victim, file) = (room.path().join("victim"), room.path().join("file"));
        fs::write(&victim, "years of work").expect("writable");
        std::os::unix::fs::symlink(&victim, &file).expect("a link");
        let replacement = Replacement::create(&file).expect("writable");
        replacement.file().write_all(b"new").expect("writable");
        replacement.commit().expect("renamed");
        assert_eq!(fs::read(&victim).expect("readable"), b"years of work");
        assert!(!fs::symlink_metadata(&file).expect("there").is_symlink());
    }
}
