//! Temporary folders that go also when the process that made them was killed.
//!
//! A folder is locked by its owner for as long as that lives: one that can be locked has no owner. That is so at every moment, also
//! between its making and its locking, and while it is being removed: who makes one and finds it taken makes another.

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;
use std::env;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Once;
use tempfile::TempDir;

/// How the names of these folders begin.
const PREFIX: &str = "farpath-work-";

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
        loop {
            let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
            let lock = match take(folder.path())? {
                Taken::Own(lock) => Some(lock),
                // Nobody can lock it, so nobody takes it for abandoned.
                Taken::WithoutLocks => None,
                Taken::NotOwn => continue,
            };
            return Ok(TemporaryFolder { folder, _lock: lock });
        }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Whether a folder could be locked.
enum Taken {
    /// Yes, for as long as this is open.
    Own(File),
    /// Somebody else has it, or had it and has removed it.
    NotOwn,
    /// Its file system has no such locks.
    WithoutLocks,
}

/// Locks the folder of that name. What is none, or not to be read, is an error.
fn take(folder: &Path) -> io::Result<Taken> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = match open(folder, flags, Mode::empty()) {
        Ok(opened) => File::from(opened),
        Err(Errno::NOENT) => return Ok(Taken::NotOwn),
        Err(error) => return Err(error.into()),
    };
    match flock(&opened, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(Taken::NotOwn),
        Err(_) => return Ok(Taken::WithoutLocks),
    }
    let identity = |about: fs::Metadata| (about.dev(), about.ino());
    let locked = identity(opened.metadata()?);
    let is_there = fs::symlink_metadata(folder).is_ok_and(|about| identity(about) == locked);
    Ok(if is_there { Taken::Own(opened) } else { Taken::NotOwn })
}

/// Removes the folders of `user` in `parent` whose owner is gone. What cannot be read or removed stays.
fn remove_abandoned(parent: &Path, user: u32) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        // Locked until everything is removed.
        if let Ok(Taken::Own(lock)) = take(&entry.path())
            && lock.metadata().is_ok_and(|about| about.uid() == user)
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;
    use std::process::{Child, Command, Stdio};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

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
        assert!(made.path().is_dir());
        drop(made);
        assert_eq!(fs::read_dir(parent.path()).expect("readable").count(), 0);
    }

    #[test]
    fn a_folder_goes_however_far_its_owner_came() {
        let parent = tempfile::tempdir().expect("a folder");
        let within = |name: &str| parent.path().join(format!("{PREFIX}{name}"));
        // Killed before it was locked, and while it was being removed.
        fs::create_dir(within("new")).expect("writable");
        fs::create_dir_all(within("half/results")).expect("writable");
        clean(parent.path());
        assert_eq!(fs::read_dir(parent.path()).expect("readable").count(), 0);
    }

    /// Whoever makes a folder loses it to one that cleans up until it is locked, and then makes another.
    #[test]
    fn folders_are_made_beside_others_that_clean_up() {
        let parent = tempfile::tempdir().expect("a folder");
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        clean(parent.path());
                    }
                });
            }
            for _ in 0..2000 {
                let made = TemporaryFolder::new_in(parent.path()).expect("writable");
                fs::write(made.path().join("job.json"), "{}").expect("its own");
            }
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!(fs::read_dir(parent.path()).expect("readable").count(), 0);
    }

    #[test]
    fn what_is_not_an_own_folder_stays() {
        let (parent, elsewhere) =
            (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let within = |name: &str| parent.path().join(name);
        let target = elsewhere.path().join("target");
        fs::create_dir(&target).expect("writable");
        symlink(&target, within("farpath-work-link")).expect("a link");
        fs::create_dir(within("other-000000")).expect("writable");
        fs::write(within("farpath-work-file"), "").expect("writable");

        let of_another_user = within("farpath-work-other-user");
        fs::create_dir(&of_another_user).expect("writable");
        remove_abandoned(parent.path(), fs::metadata(parent.path()).expect("made").uid() + 1);
        assert!(of_another_user.is_dir());

        clean(parent.path());
        assert!(!of_another_user.exists(), "it was of this user");
        let mut left: Vec<String> = fs::read_dir(parent.path())
            .expect("readable")
            .map(|entry| entry.expect("readable").file_name().into_string().expect("UTF-8"))
            .collect();
        left.sort();
        assert!(target.is_dir());
        assert_eq!(left, ["farpath-work-file", "farpath-work-link", "other-000000"]);
    }
}
