//! `farpath sweep` as a user meets it: killed, gone on with, changed, cleaned up.

use assert_cmd::Command;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};

/// Output, messages and exit code.
fn run(folder: &Path, args: &[&str]) -> (String, String, i32) {
    let mut command = Command::cargo_bin("farpath").expect("built with this test");
    // How long a machine takes must not be seen in what is said.
    command.arg("sweep").args(args).current_dir(folder).env("FARPATH_PROGRESS", "0 s");
    let output = command.output().expect("the command starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (text(output.stdout), text(output.stderr), output.status.code().expect("it exits"))
}

/// Begins a sweep and waits until some files of it are there.
#[expect(clippy::disallowed_methods, reason = "another process takes its time")]
fn begin(folder: &Path, args: &[&str]) -> Child {
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("farpath"))
        .arg("sweep")
        .args(args)
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    while chunks(&folder.join("out")).len() < 3 {
        assert_eq!(child.try_wait().expect("a child"), None, "it ended before it could be killed");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    child
}

/// The finished files of a sweep, by name.
fn chunks(sweep: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(sweep.join("chunks")).into_iter().flatten().flatten();
    let named = entries.map(|entry| (entry.file_name().into_string().expect("UTF-8"), entry.path()));
    named
        .filter(|(name, _)| name.ends_with(".parquet"))
        .map(|(name, path)| (name, fs::read(path).expect("readable")))
        .collect()
}

fn status(folder: &Path) -> Value {
    let (out, err, code) = run(folder, &["status", "out", "--json"]);
    assert_eq!((code, err.as_str()), (0, ""));
    serde_json::from_str(&out).expect("JSON")
}

/// Of 200 runs, long enough to be killed among them.
const SWEEP: [&str; 7] = [
    "noisy-channel",
    "--chunk=3",
    "--seeds=100",
    "--set=sweep.path.loss=['1 %', '2 %']",
    "--set=transfer.size=5 MB",
    "--threads=2",
    "--json",
];

#[test]
fn what_a_killed_sweep_has_finished_is_not_run_again_and_nothing_is_lost_or_counted_twice() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let args = |out| [&SWEEP[..], &["--out", out]].concat();
    let mut child = begin(folder, &args("out"));
    child.kill().expect("SIGKILL");
    child.wait().expect("it is gone");

    let finished = chunks(&folder.join("out"));
    let before = status(folder);
    let done = before["done"].as_u64().expect("a count");
    assert!((7..200).contains(&done), "{before}");
    assert_eq!(before["running"], false);

    let (resumed, err, code) = run(folder, &args("out"));
    assert_eq!(code, 0, "{err}");
    assert!(err.contains(&format!("{done} of 200 runs are there")), "{err}");
    let after = chunks(&folder.join("out"));
    for (name, bytes) in &finished {
        assert!(after.get(name) == Some(bytes), "{name} was written anew");
    }
    assert_eq!((status(folder)["done"].as_u64(), status(folder)["runs"].as_u64()), (Some(200), Some(200)));

    let (whole, _, _) = run(folder, &args("whole"));
    assert_eq!(resumed, whole, "as if it had never been killed");
    let table = |out: &str| fs::read(folder.join(out).join("points.parquet")).expect("it is written");
    assert!(table("out") == table("whole"));

    let (_, err, code) = run(folder, &["gc", "out"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let names = fs::read_dir(folder.join("out/chunks")).expect("it is there").flatten();
    assert!(names.into_iter().all(|entry| !entry.path().ends_with(".partial")));
    assert_eq!(status(folder)["done"].as_u64(), Some(200), "what is asked for stays");
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_what_is_done() {
    use nix::sys::signal::{Signal, kill};
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let args = [&SWEEP[..], &["--out", "out"]].concat();
    let mut child = begin(folder, &args);
    kill(nix::unistd::Pid::from_raw(child.id() as i32), Signal::SIGINT).expect("it lives");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert!(folder.join("out/points.parquet").is_file(), "what is done can be read");
    let done = status(folder)["done"].as_u64().expect("a count");
    assert!((7..200).contains(&done), "{done}");
}

#[cfg(unix)]
#[test]
fn a_second_ctrl_c_ends_at_once_and_harms_nothing_that_is_kept() {
    use nix::sys::signal::{Signal, kill};
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    // Each run takes long, so that the first Ctrl-C does not end it before the second.
    let args = [&SWEEP[..], &["--set=transfer.size=20 MB", "--out", "out"]].concat();
    let mut child = begin(folder, &args);
    let id = nix::unistd::Pid::from_raw(child.id() as i32);
    kill(id, Signal::SIGINT).expect("it lives");
    kill(id, Signal::SIGINT).expect("nobody has waited for it");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    let (before, kept) = (status(folder), chunks(&folder.join("out")));
    let (_, err, code) = run(folder, &["points", "out"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(folder.join("out/points.parquet").is_file());
    assert!(chunks(&folder.join("out")) == kept, "they are read only");
    assert_eq!(status(folder), before);
}

#[test]
fn the_points_of_what_is_there_are_written_on_demand() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let args = ["noisy-channel", "--set=transfer.size=20 kB", "--seeds=3", "--out=out", "--json"];
    let (whole, err, code) = run(folder, &args);
    assert_eq!((code, err.as_str()), (0, ""));
    let table = folder.join("out/points.parquet");
    let written = fs::read(&table).expect("it is written");
    fs::remove_file(&table).expect("it is there");
    let (again, err, code) = run(folder, &["points", "out", "--json"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(again == whole && fs::read(&table).expect("it is written") == written);
}

#[test]
fn a_changed_experiment_takes_nothing_stale_and_a_longer_one_what_is_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let simulate = |more: &[&str]| {
        run(
            folder,
            &[&["noisy-channel", "--seeds=2", "--set=transfer.size=20 kB", "--out=out", "--json"], more]
                .concat(),
        )
    };
    let (first, err, code) = simulate(&[]);
    assert_eq!((code, err.as_str()), (0, ""));
    let (longer, err, _) =
        simulate(&["--set=sweep.path.loss=['1 %', '3 %', '10 %', '0 %', '0.1 %', '0.01 %']"]);
    assert!(err.contains("10 of 12 runs are there"), "{err}");
    let of = |lines: &str, loss: &str| {
        let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        lines.into_iter().find(|line| line["swept"]["path.loss"] == loss).expect("a point")["transfer_time_s"]
            .clone()
    };
    assert_eq!(of(&first, "10 %"), of(&longer, "10 %"));

    let (changed, err, _) = simulate(&["--set=path.delay=7 ms"]);
    assert!(err.contains("0 of 10 runs are there; 12 more"), "{err}");
    assert_ne!(of(&changed, "10 %"), of(&first, "10 %"));

    let (out, _, _) = run(folder, &["gc", "out", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&out).expect("JSON")["runs"], 12);
    assert_eq!(status(folder)["runs"], 10);
}

#[test]
fn more_seeds_are_run_where_the_interval_is_wide_and_nowhere_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let (out, err, code) = run(
        folder.path(),
        &[
            "noisy-channel",
            "--set=transfer.size=1 MB",
            "--set=sweep.path.loss=['0 %', '10 %']",
            "--seeds=6",
            "--until=10 %",
            "--out=out",
            "--json",
        ],
    );
    assert_eq!(code, 0, "{err}");
    for line in out.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let (time, runs) = (&line["transfer_time_s"], line["runs"].as_u64().expect("a count"));
        let half = time["ci95"].as_f64().expect("several runs") / time["mean"].as_f64().expect("a time");
        assert!(half <= 0.1, "{line}");
        match line["swept"]["path.loss"].as_str() {
            Some("0 %") => assert_eq!(runs, 6, "runs without loss are all alike"),
            _ => assert!(runs > 6, "{line}"),
        }
    }
}

#[test]
fn what_is_looked_for_is_found_by_halving_and_found_again_without_a_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let find = |more: &[&str]| {
        let args = [
            "noisy-channel",
            "--set=transfer.size=20 kB",
            "--set=sweep={'path.delay'='10 ms to 1000 ms by 10 ms', 'path.loss'=['0 %']}",
            "--seeds=1",
            "--find=path.delay",
            "--crosses=40 kbit/s",
            "--of=goodput_bit_per_s",
            "--engine=predict,simulate",
            "--out=out",
        ];
        run(folder, &[&args[..], more].concat())
    };
    let (out, err, code) = find(&["--json"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let found: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!([&found[0]["engine"], &found[1]["engine"]], ["predict", "simulate"]);
    for threshold in &found {
        let ends = threshold["between"].as_array().expect("it is crossed");
        let number = |end: &Value, key| end[key].as_f64().expect("a number");
        assert!(number(&ends[0], "mean") >= 4e4 && number(&ends[1], "mean") < 4e4, "{threshold}");
        assert_eq!(number(&ends[1], "point") - number(&ends[0], "point"), 1.0, "neighbours");
        assert_eq!(threshold["swept"]["path.loss"], "0 %");
    }
    let runs = status(folder)["runs"].as_u64().expect("a count");
    assert!(runs <= 2 * 9, "{runs} of 200");
    let (text, err, code) = find(&[]);
    assert_eq!(code, 0, "{err}");
    assert!(
        err.contains("runs are there") && text.contains("crosses 40000 between path.delay"),
        "{err}{text}"
    );
    assert_eq!(status(folder)["runs"], runs);
}

#[test]
fn what_is_no_sweep_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let refused = |args: &[&str], words: &[&str]| {
        let (out, err, code) = run(folder, args);
        assert_eq!((code, out.as_str()), (2, ""), "{args:?}: {err}");
        words.iter().for_each(|word| assert!(err.contains(word), "{args:?}: `{word}` is not in: {err}"));
    };
    refused(&["noisy-channel"], &["--out"]);
    refused(&["status", "nowhere"], &["nowhere", "sweep.json"]);
    fs::create_dir(folder.join("mine")).expect("writable");
    fs::write(folder.join("mine/thesis.tex"), "").expect("writable");
    refused(&["noisy-channel", "--out=mine"], &["mine", "thesis.tex", "empty or a new one"]);
    refused(&["noisy-channel", "--out=new", "--find=path.delay", "--crosses=60 s"], &["--find", "path.loss"]);
    refused(&["noisy-channel", "--out=new", "--find=path.loss", "--crosses=soon"], &["--crosses", "soon"]);
    refused(&["noisy-channel", "--out=new", "--find=path.loss"], &["--crosses"]);
    refused(&["noisy-channel", "--out=new", "--until=5"], &["5 %"]);
    refused(
        &["noisy-channel", "--out=new", "--until=5 %", "--of=speed"],
        &["--of", "goodput_bit_per_s", "speed"],
    );
    refused(&["noisy-channel", "--out=new", "--cluster=tcp://localhost:1"], &["--cluster", "Python package"]);
    assert!(!folder.join("new").exists(), "nothing is written");

    let (_, _, code) = run(folder, &["noisy-channel", "--set=transfer.size=1 kB", "--seeds=1", "--out=out"]);
    assert_eq!(code, 0);
    let manifest = folder.join("out/sweep.json");
    let text = fs::read_to_string(&manifest).expect("it is written");
    fs::write(&manifest, text.replace("\"format_version\": 1", "\"format_version\": 7")).expect("writable");
    for args in [&["status", "out"][..], &["gc", "out"], &["noisy-channel", "--out=out"]] {
        refused(args, &["out", "format version 7", "up to 1", "later program"]);
    }
    fs::write(&manifest, text).expect("writable");
    let (name, bytes) = chunks(&folder.join("out")).pop_first().expect("a chunk");
    fs::write(folder.join("out/chunks").join(&name), &bytes[..bytes.len() / 2]).expect("writable");
    refused(&["status", "out"], &[&name, "damaged chunk"]);
}
