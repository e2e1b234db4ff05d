//! Temporary folders that go also when the process that made them was killed.
//!
//! A folder holds a file that its owner keeps locked for as long as it lives: a folder whose lock can be taken has no owner.
//! The file gets its name only when it is locked, so a folder that is being made never looks like one without an owner.

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use std::env;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Once;
use tempfile::TempDir;

/// How the names of these folders begin.
const PREFIX: &str = "farpath-tmp-";

/// The locked file within a folder.
const LOCK: &str = "lock";

/// A folder in the temporary directory of the system, removed when this is dropped.
#[derive(Debug)]
pub(crate) struct TemporaryFolder {
    // Before the lock: fields are dropped in order.
    folder: TempDir,
    _lock: Option<File>,
}

impl TemporaryFolder {
    /// Makes one. The first call of a process also removes those that killed processes of this user have left.
    pub fn new() -> io::Result<TemporaryFolder> {
        static CLEANED: Once = Once::new();
        let parent = env::temp_dir();
        let made = TemporaryFolder::new_in(&parent)?;
        let user = fs::metadata(made.path())?.uid();
        CLEANED.call_once(|| remove_abandoned(&parent, user));
        Ok(made)
    }

    fn new_in(parent: &Path) -> io::Result<TemporaryFolder> {
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
        let partial = folder.path().join(format!("{LOCK}.partial"));
        let file = File::create_new(&partial)?;
        let lock = match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                fs::rename(&partial, folder.path().join(LOCK))?;
                Some(file)
            }
            // A file system without locks: the folder has no file of that name, and nobody takes it for abandoned.
            Err(_) => None,
        };
        Ok(TemporaryFolder { folder, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes the folders of `user` in `parent` whose owner is gone. What cannot be read or removed stays.
fn remove_abandoned(parent: &Path, user: u32) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_named = entry.file_name().to_string_lossy().starts_with(PREFIX);
        // Of the entry itself: a link is not followed.
        let is_folder = || entry.metadata().is_ok_and(|about| about.is_dir() && about.uid() == user);
        if is_named && is_folder() {
            remove_if_abandoned(&entry.path());
        }
    }
}

fn remove_if_abandoned(folder: &Path) {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(lock) = open(folder.join(LOCK), flags, Mode::empty()).map(File::from) else { return };
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        return;
    }
    // Held until everything is removed. Of two processes that clean up at once the later one finds its file removed.
    if lock.metadata().is_ok_and(|about| about.nlink() > 0) {
        let _ = fs::remove_dir_all(folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;
    use std::process::{Child, Command, Stdio};

    /// In the environment of a child: where it makes a folder.
    const PARENT: &str = "FARPATH_TEST_PARENT";

    fn clean(parent: &Path) {
        remove_abandoned(parent, fs::metadata(parent).expect("made").uid());
    }

    /// Makes a folder, says which, and waits until it is killed. Without a parent that asks for it, it is no test.
    #[test]
    fn owner_that_is_killed() {
        let Some(parent) = env::var_os(PARENT) else { return };
        let made = TemporaryFolder::new_in(Path::new(&parent)).expect("writable");
        fs::write(made.path().join("order.json"), "{}").expect("writable");
        fs::create_dir(made.path().join("results")).expect("writable");
        println!("\n{}", made.path().display());
        let _ = io::stdin().read_line(&mut String::new());
    }

    /// Another process of this test, with the folder that it has made.
    fn owner(parent: &Path) -> (Child, PathBuf) {
        let mut child = Command::new(env::current_exe().expect("this test"))
            .args(["temporary::tests::owner_that_is_killed", "--exact", "--nocapture"])
            .env(PARENT, parent)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok);
        let named = lines.find(|line| line.starts_with('/')).expect("it says its folder");
        (child, PathBuf::from(named))
    }

    #[test]
    fn a_folder_whose_owner_was_killed_goes_and_one_whose_owner_lives_stays() {
        let parent = tempfile::tempdir().expect("a folder");
        let ((mut killed, abandoned), (mut living, owned)) = (owner(parent.path()), owner(parent.path()));
        let own = TemporaryFolder::new_in(parent.path()).expect("writable");
        clean(parent.path());
        assert!(abandoned.is_dir() && owned.is_dir() && own.path().is_dir(), "all owners live");
        killed.kill().and_then(|()| killed.wait()).expect("SIGKILL");
        assert!(abandoned.join("order.json").is_file(), "it was left behind");
        clean(parent.path());
        assert!(!abandoned.exists());
        assert!(owned.join("order.json").is_file() && own.path().is_dir());
        living.kill().and_then(|()| living.wait()).expect("SIGKILL");
    }

    #[test]
    fn a_folder_goes_with_its_value() {
        let parent = tempfile::tempdir().expect("a folder");
        let made = TemporaryFolder::new_in(parent.path()).expect("writable");
        assert!(made.path().join(LOCK).is_file());
        drop(made);
        assert_eq!(fs::read_dir(parent.path()).expect("readable").count(), 0);
    }

    #[test]
    fn what_is_not_known_to_be_abandoned_stays() {
        let (parent, elsewhere) =
            (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let abandoned_in = |folder: PathBuf| {
            fs::create_dir(&folder).expect("writable");
            fs::write(folder.join(LOCK), "").expect("writable");
            folder
        };
        let within = |name: &str| parent.path().join(name);
        let target = abandoned_in(elsewhere.path().join("target"));
        symlink(&target, within("farpath-tmp-link")).expect("a link");
        let other = abandoned_in(within("other-tmp-000000"));
        // One that is being made, and one on a file system without locks.
        fs::create_dir(within("farpath-tmp-new")).expect("writable");
        fs::create_dir(within("farpath-tmp-locking")).expect("writable");
        fs::write(within("farpath-tmp-locking/lock.partial"), "").expect("writable");
        fs::write(within("farpath-tmp-file"), "").expect("writable");
        fs::create_dir(within("farpath-tmp-linked-lock")).expect("writable");
        symlink(target.join(LOCK), within("farpath-tmp-linked-lock/lock")).expect("a link");

        let of_another_user = abandoned_in(within("farpath-tmp-other-user"));
        remove_abandoned(parent.path(), fs::metadata(parent.path()).expect("made").uid() + 1);
        assert!(of_another_user.is_dir());

        clean(parent.path());
        assert!(!of_another_user.exists(), "it was of this user");
        assert!(target.join(LOCK).is_file() && other.is_dir());
        let mut left: Vec<String> = fs::read_dir(parent.path())
            .expect("readable")
            .map(|entry| entry.expect("readable").file_name().into_string().expect("UTF-8"))
            .collect();
        left.sort();
        let expected =
            ["file", "link", "linked-lock", "locking", "new"].map(|name| format!("farpath-tmp-{name}"));
        assert_eq!(left, [&expected[..], &["other-tmp-000000".to_owned()]].concat());
    }
}
