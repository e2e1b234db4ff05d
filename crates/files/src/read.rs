//! Reading, up to a bound.

use farpath_units::{Bytes, ParseQuantityError};
use std::env;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::sync::OnceLock;

/// The largest file that is read where [`MAX_FILE_VARIABLE`] does not say: the largest experiment that ships has 4 kB.
pub const MAX_FILE: Bytes = Bytes(16_000_000);

/// In the environment: the largest file that is read, such as `64 MB`.
pub const MAX_FILE_VARIABLE: &str = "FARPATH_MAX_FILE";

/// The largest list of what a results folder holds, which Farpath itself has written: 100 B for each of ten million runs.
pub const MAX_MANIFEST: Bytes = Bytes(1_000_000_000);

/// As the environment has it.
static FROM_ENVIRONMENT: OnceLock<Bytes> = OnceLock::new();

/// Why a file is not read. It comes within an [`io::Error`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// Something else has this name.
    #[error("expected a file, found {found}")]
    NoFile {
        /// What it is, with its article.
        found: &'static str,
    },
    /// A file has the name of a folder.
    #[error("expected a folder, found a file")]
    NoFolder,
    /// It is larger than what is read.
    #[error("expected {most} at the most, found more; {MAX_FILE_VARIABLE} in the environment raises this")]
    TooLarge {
        /// The bound.
        most: Bytes,
    },
}

impl From<FileError> for io::Error {
    fn from(error: FileError) -> io::Error {
        io::Error::new(ErrorKind::InvalidInput, error)
    }
}

/// Takes the bound from the environment.
///
/// # Errors
/// What [`MAX_FILE_VARIABLE`] holds is no size; with it as it was found.
pub fn configure() -> Result<(), (String, ParseQuantityError)> {
    let Some(text) = env::var_os(MAX_FILE_VARIABLE) else { return Ok(()) };
    let text = text.to_string_lossy();
    let most = text.parse::<Bytes>().map_err(|error| (text.clone().into_owned(), error))?;
    FROM_ENVIRONMENT.get_or_init(|| most);
    Ok(())
}

/// Whether a folder can have this name: there is one, or nothing.
///
/// # Errors
/// Something else has the name.
pub fn folder_or_nothing(path: &Path) -> io::Result<()> {
    match path.metadata() {
        Ok(about) if !about.is_dir() => Err(FileError::NoFolder.into()),
        _ => Ok(()),
    }
}

/// The largest file that is read.
pub fn max_file() -> Bytes {
    *FROM_ENVIRONMENT.get_or_init(|| {
        let text = env::var_os(MAX_FILE_VARIABLE).unwrap_or_default();
        text.to_string_lossy().parse().unwrap_or(MAX_FILE)
    })
}

/// The bytes of a file.
///
/// # Errors
/// It cannot be read, is no file, or is larger than [`max_file`].
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_at_most(path, max_file())
}

/// The text of a file.
///
/// # Errors
/// As [`read`]; or it is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    let not_text = |_| io::Error::new(ErrorKind::InvalidData, "expected text in UTF-8, found other bytes");
    String::from_utf8(read(path)?).map_err(not_text)
}

/// The bytes of a list that Farpath itself has written, which may be as large as what it lists.
///
/// # Errors
/// It cannot be read, is no file, or is larger than [`MAX_MANIFEST`] and [`max_file`].
pub fn read_manifest(path: &Path) -> io::Result<Vec<u8>> {
    read_at_most(path, max_file().max(MAX_MANIFEST))
}

/// The bytes of a file that has so many at the most.
///
/// # Errors
/// It cannot be read, is no file, or is larger.
pub fn read_at_most(path: &Path, most: Bytes) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let size = file.metadata()?.len();
    if size > most.0 {
        return Err(FileError::TooLarge { most }.into());
    }
    let mut bytes = Vec::with_capacity(size as usize);
    // It may grow while it is read, and a pipe has no size.
    file.take(most.0.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 <= most.0 {
        true => Ok(bytes),
        false => Err(FileError::TooLarge { most }.into()),
    }
}

/// Opens a file that is read, whatever its size. A FIFO is refused and not waited for; a pipe that the shell made and named, as
/// `<(...)` does, is taken.
///
/// # Errors
/// It cannot be opened, or is no file.
pub fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    let from_shell = is_descriptor(path);
    if !from_shell {
        without_waiting(&mut options);
    }
    let file = options.open(path)?;
    match kind(&file)? {
        None => Ok(file),
        Some(PIPE) if from_shell => Ok(file),
        Some(found) => Err(FileError::NoFile { found }.into()),
    }
}

const PIPE: &str = "a FIFO";

/// Whether a name stands for what this process has open already.
fn is_descriptor(path: &Path) -> bool {
    path == Path::new("/dev/stdin") || path.starts_with("/dev/fd") || path.starts_with("/proc/self/fd")
}

/// Opening a FIFO waits for a writer, and that of some devices for a line.
#[cfg(unix)]
fn without_waiting(options: &mut OpenOptions) {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt;
    options.custom_flags((OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32);
}

#[cfg(not(unix))]
fn without_waiting(_: &mut OpenOptions) {}

/// What is open, if it is no file.
fn kind(file: &File) -> io::Result<Option<&'static str>> {
    let kind = file.metadata()?.file_type();
    Ok(match kind {
        _ if kind.is_file() => None,
        _ if kind.is_dir() => Some("a directory"),
        _ => Some(special(kind)),
    })
}

#[cfg(unix)]
fn special(kind: std::fs::FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    match kind {
        _ if kind.is_fifo() => PIPE,
        _ if kind.is_char_device() || kind.is_block_device() => "a device",
        _ if kind.is_socket() => "a socket",
        _ => "something else",
    }
}

#[cfg(not(unix))]
fn special(_: std::fs::FileType) -> &'static str {
    "something else"
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn refused(path: &Path, most: Bytes) -> String {
        read_at_most(path, most).expect_err("it is refused").to_string()
    }

    #[test]
    fn a_file_is_read_up_to_the_bound_and_no_further() {
        let room = tempfile::tempdir().expect("a folder");
        let file = room.path().join("file");
        fs::write(&file, "0123456789").expect("writable");
        assert_eq!(read_at_most(&file, Bytes(10)).expect("ten bytes"), b"0123456789");
        let expected =
            "expected 9 B at the most, found more; FARPATH_MAX_FILE in the environment raises this";
        assert_eq!(refused(&file, Bytes(9)), expected);
        let missing = read(&room.path().join("none")).expect_err("it is not there");
        assert_eq!(missing.kind(), ErrorKind::NotFound);
        fs::write(&file, [0xff]).expect("writable");
        let error = read_text(&file).expect_err("it is no text").to_string();
        assert_eq!(error, "expected text in UTF-8, found other bytes");
    }

    #[test]
    #[cfg(unix)]
    fn what_is_no_file_is_said_and_not_waited_for() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        use std::os::unix::net::UnixListener;
        let room = tempfile::tempdir().expect("a folder");
        let fifo = room.path().join("fifo");
        mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a FIFO");
        let _listener = UnixListener::bind(room.path().join("socket")).expect("a socket");
        let large = Bytes(1 << 40);
        assert_eq!(refused(room.path(), large), "expected a file, found a directory");
        assert_eq!(refused(&fifo, large), "expected a file, found a FIFO");
        assert_eq!(refused(Path::new("/dev/zero"), large), "expected a file, found a device");
        assert!(read(&room.path().join("socket")).is_err(), "nobody opens a socket");
        // A link is what it leads to.
        let link = room.path().join("link");
        std::os::unix::fs::symlink("/dev/zero", &link).expect("a link");
        assert_eq!(refused(&link, large), "expected a file, found a device");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_pipe_from_the_shell_is_read_up_to_the_bound() {
        use std::io::Write;
        use std::os::fd::AsRawFd;
        let pipe = || {
            let (read, mut write) = io::pipe().expect("a pipe");
            write.write_all(b"0123456789").expect("room in the pipe");
            (format!("/dev/fd/{}", read.as_raw_fd()), read)
        };
        let (name, _read) = pipe();
        assert_eq!(read_at_most(Path::new(&name), Bytes(10)).expect("ten bytes"), b"0123456789");
        let (name, _read) = pipe();
        assert!(refused(Path::new(&name), Bytes(9)).starts_with("expected 9 B at the most"));
    }
}
