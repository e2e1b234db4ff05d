//! Other processes: what becomes of them, and one without privileges.

use super::Folder;
use assert_cmd::cargo::cargo_bin;
use farpath_testing::{Need, skip};
use nix::unistd::geteuid;
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// Long enough for a busy machine; a test that meets it has failed.
pub const GIVE_UP_AFTER: Duration = Duration::from_secs(30);

/// Nobody, on every Linux.
const NOBODY: u32 = 65_534;

#[expect(clippy::disallowed_methods, reason = "another process does it, in real time")]
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + GIVE_UP_AFTER;
    while !holds() {
        assert!(Instant::now() < until, "not within {GIVE_UP_AFTER:?}: {what}");
        pause(10);
    }
}

#[expect(clippy::disallowed_methods, reason = "other processes go on in real time")]
pub fn pause(milliseconds: u64) {
    thread::sleep(Duration::from_millis(milliseconds));
}

/// The command for a user without privileges.
pub struct Unprivileged {
    program: PathBuf,
    /// What it says of the machine.
    pub doctor: Value,
}

impl Unprivileged {
    /// Beside an experiment that everybody may read then; `None`, and said so, where it does not emulate.
    pub fn beside(folder: &Folder) -> Option<Unprivileged> {
        let program = Path::new(&folder.path("farpath")).to_owned();
        fs::copy(cargo_bin("farpath"), &program).expect("copied");
        for path in [program.parent().expect("the folder"), &program] {
            fs::set_permissions(path, Permissions::from_mode(0o755)).expect("ours");
        }
        let mut without = Unprivileged { program, doctor: Value::Null };
        let (out, _, _) = without.run(&["doctor", "--json"]);
        without.doctor = serde_json::from_str(&out).expect("JSON");
        if without.doctor["emulates"] != true {
            let why = "emulation without privileges, which this machine does not allow";
            skip(Need::Root, format!("{why}: {}", without.doctor));
            return None;
        }
        Some(without)
    }

    /// Output, messages and exit code.
    pub fn run(&self, args: &[&str]) -> (String, String, Option<i32>) {
        let mut command = Command::new(&self.program);
        command.args(args).current_dir("/");
        // Only root can become nobody; whoever else runs this has no privileges to give up.
        if geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        let ended = command.output().expect("it starts");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        (text(ended.stdout), text(ended.stderr), ended.status.code())
    }
}
