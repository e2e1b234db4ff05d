//! The command, what it prints, and whether there is anything to test here.

#[cfg(target_os = "linux")]
pub mod kills;
#[cfg(target_os = "linux")]
pub mod processes;

use assert_cmd::Command;
use farpath_testing::{Need, skip};
use serde_json::Value;
use std::fs;
use tempfile::TempDir;

pub fn farpath(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("farpath").expect("built with this test");
    command.args(args);
    command
}

/// Output, messages and exit code.
pub fn run(args: &[&str]) -> (String, String, i32) {
    let output = farpath(args).output().expect("the command starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (text(output.stdout), text(output.stderr), output.status.code().expect("it exits"))
}

/// The objects of some lines.
pub fn lines(out: &str) -> Vec<Value> {
    out.lines().map(|line| serde_json::from_str(line).expect("an object a line")).collect()
}

/// The flows that a command prints as JSON.
pub fn flows(args: &[&str]) -> Vec<Value> {
    let (out, err, code) = run(args);
    assert_eq!(code, 0, "{args:?}: {out}{err}");
    lines(&out)
}

/// Asserts that the arguments are refused with every one of these words, and that nothing goes to stdout.
pub fn refused(args: &[&str], words: &[&str]) {
    let (out, err, code) = run(args);
    assert_eq!((code, out.as_str()), (2, ""), "{args:?}: {err}");
    for word in words {
        assert!(err.contains(word), "{args:?}: `{word}` is not in: {err}");
    }
}

/// Whether this machine emulates; says so loudly where it does not.
pub fn can_emulate() -> bool {
    let (out, _, _) = run(&["doctor", "--json"]);
    let emulates = serde_json::from_str::<Value>(&out).is_ok_and(|doctor| doctor["emulates"] == true);
    if !emulates {
        skip(Need::Root, "emulation does not run here; `farpath doctor` says why");
    }
    emulates
}

/// A folder with an experiment in it, gone with the test.
pub struct Folder {
    folder: TempDir,
    file: String,
}

impl Folder {
    pub fn with(experiment: &str) -> Folder {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("experiment.toml");
        fs::write(&file, experiment).expect("written");
        Folder { file: file.to_str().expect("UTF-8").to_owned(), folder }
    }

    pub fn file(&self) -> &str {
        &self.file
    }

    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().expect("UTF-8").to_owned()
    }
}
