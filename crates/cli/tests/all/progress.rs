//! What a command says of how far it is where stderr is not a terminal.

use assert_cmd::Command;
use std::fs;
use std::path::Path;

/// Messages and exit code of a command that says as often as this how far it is, and has done so at least once: it takes
/// many times as long.
fn messages(folder: &Path, every: &str, args: &[&str]) -> (String, i32) {
    let mut command = Command::cargo_bin("farpath").expect("built with this test");
    let output = command.env("FARPATH_PROGRESS", every).current_dir(folder).args(args).output();
    let output = output.expect("the command starts");
    (String::from_utf8(output.stderr).expect("UTF-8"), output.status.code().expect("it exits"))
}

const MANY: &str = "--set=sweep.path.loss='0.01 % to 5 % by 0.01 %'";

#[test]
fn whatever_takes_long_says_how_far_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    for (args, words) in [
        (&["run", "noisy-channel", "--seeds=20"][..], " of 105 runs"),
        (&["simulate", "noisy-channel", "--seeds=20"], " of 100 runs"),
        (&["predict", "noisy-channel", MANY], " of 500 runs"),
        (&["compare", "noisy-channel", "--engine=predict,simulate", "--seeds=20"], " of 105 runs"),
        (&["sweep", "noisy-channel", "--seeds=20", "--out=sweep"], " of 100 runs"),
        (&["explain", "noisy-channel", "--set=transfer.size=5 MB"], " runs"),
        (&["radius", "--check"], " radii"),
        (&["reproduce", "ricochet"], " checks"),
        (&["simulate", "noisy-channel", MANY, "--seeds=1"], "checking the points"),
    ] {
        let (err, code) = messages(folder.path(), "1 ms", args);
        assert!(code < 2, "{args:?}: {err}");
        let mut lines = err.lines().filter(|line| line.starts_with("farpath: after "));
        assert!(lines.any(|line| line.contains(words)), "{args:?}: `{words}` is not in: {err}");
    }
}

#[test]
fn zero_is_for_no_lines_and_what_is_no_time_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let args = ["simulate", "noisy-channel", "--seeds=20", "--out=results"];
    let (err, code) = messages(folder.path(), "often", &args);
    assert_eq!(code, 2);
    for word in ["FARPATH_PROGRESS", "`10 s`", "found `often`"] {
        assert!(err.contains(word), "{err}");
    }
    assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 0, "nothing is written");
    assert_eq!(messages(folder.path(), "0 s", &args), (String::new(), 0));
}
