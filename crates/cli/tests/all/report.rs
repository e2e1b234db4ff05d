//! Reports as files: where they are written, over what, and of which results there are none.

use assert_cmd::Command;
use std::fs;
use std::path::Path;

fn run(args: &[&str]) -> (String, String, i32) {
    let mut command = Command::cargo_bin("farpath").expect("built");
    // How long a machine takes must not be seen in what is said.
    let output = command.args(args).env("FARPATH_PROGRESS", "0 s").output().expect("the command starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (text(output.stdout), text(output.stderr), output.status.code().expect("it exits"))
}

/// A folder with the results of a short run, and its name.
fn results() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let name = folder.path().join("results").to_str().expect("UTF-8").to_owned();
    let (_, err, code) = run(&["run", "single-drop", "--out", &name]);
    assert_eq!((code, err.as_str()), (0, ""));
    (folder, name)
}

fn refused(args: &[&str], words: &[&str]) {
    let (out, err, code) = run(args);
    assert_eq!((code, out.as_str()), (2, ""), "{args:?}: {err}");
    for word in words {
        assert!(err.contains(word), "`{word}` is not in: {err}");
    }
}

#[test]
fn the_report_of_a_folder_is_the_one_that_the_run_wrote() {
    let (folder, name) = results();
    let report = Path::new(&name).join("report.html");
    let written = fs::read_to_string(&report).expect("--out writes it");
    let other = folder.path().join("other.html");
    let (out, err, code) = run(&["report", &name, "--out", other.to_str().expect("UTF-8")]);
    assert_eq!((code, err.as_str(), out.trim_end()), (0, "", other.to_str().expect("UTF-8")));
    assert!(fs::read_to_string(&other).expect("written") == written, "another report of the same runs");
    assert_eq!(run(&["report", &name]).2, 0, "over the earlier report");
    for word in
        ["One segment lost at a full window", "Time-sequence graph", "duplicate ACK", "transfer time 5.38 s"]
    {
        assert!(written.contains(word), "{word}");
    }
}

#[test]
fn results_are_traced_where_a_report_shows_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let name = folder.path().join("results");
    let args = ["simulate", "noisy-channel", "--set", "path.loss=1%", "--seeds", "3", "--out"];
    assert_eq!(run(&[&args[..], &[name.to_str().expect("UTF-8")]].concat()).2, 0);
    let results = farpath_run::Results::read(&name).expect("whole");
    let seeds: std::collections::BTreeSet<_> =
        results.series().expect("written").into_iter().map(|(key, _)| key.seed).collect();
    assert_eq!(seeds, [Some(1)].into(), "the first seed, and no other");
}

#[test]
fn interrupted_results_are_reported_as_what_they_are() {
    let (_folder, name) = results();
    let provenance = Path::new(&name).join("provenance.json");
    let text = fs::read_to_string(&provenance)
        .expect("written")
        .replace("\"complete\": true", "\"complete\": false");
    fs::write(&provenance, text).expect("written");
    let (_, err, code) = run(&["report", &name]);
    assert_eq!(code, 0);
    assert!(err.contains("interrupted"), "{err}");
    let html = fs::read_to_string(Path::new(&name).join("report.html")).expect("written");
    let (notice, results) = (html.find("Not the whole experiment"), html.find("<h2>Results"));
    assert!(notice.is_some_and(|notice| results.is_some_and(|results| notice < results)), "it comes first");
}

#[test]
fn what_is_no_whole_results_folder_is_refused_by_name_and_nothing_is_written() {
    let (folder, name) = results();
    let (provenance, report) =
        (Path::new(&name).join("provenance.json"), Path::new(&name).join("report.html"));
    let whole = fs::read_to_string(&provenance).expect("written");
    fs::remove_file(&report).expect("there");
    fs::write(&provenance, whole.replace("\"format_version\": 1", "\"format_version\": 99"))
        .expect("written");
    refused(&["report", &name], &[&name, "format version 99", "later program"]);
    fs::write(&provenance, whole.replace("farpath-results", "other-results")).expect("written");
    refused(&["report", &name], &[&name, "not a results folder", "other-results"]);
    fs::remove_file(&provenance).expect("there");
    refused(&["report", &name], &[&name, "incomplete results"]);
    fs::write(&provenance, whole).expect("written");
    fs::write(Path::new(&name).join("series.parquet"), "cut").expect("written");
    refused(&["report", &name], &["series.parquet"]);
    assert!(!report.exists());
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).expect("made");
    refused(&["report", empty.to_str().expect("UTF-8")], &["empty", "not a results folder"]);
    refused(&["report", "no-such-folder"], &["no-such-folder", "no such folder"]);
}

#[test]
fn a_report_is_written_over_reports_only_and_asked_for_before_anything_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    fs::write(path("thesis.html"), "<h1>All of it</h1>").expect("written");
    refused(&["run", "single-drop", "--report", &path("thesis.html")], &["thesis.html", "no report of ours"]);
    assert_eq!(fs::read_to_string(path("thesis.html")).expect("there"), "<h1>All of it</h1>");
    refused(
        &["run", "single-drop", "--report", &path("missing/report.html")],
        &["missing/report.html", "cannot write"],
    );
    refused(&["run", "single-drop", "--report", folder.path().to_str().expect("UTF-8")], &["cannot write"]);
    for _ in 0..2 {
        assert_eq!(run(&["run", "single-drop", "--report", &path("report.html")]).2, 0);
    }
    let names: Vec<_> =
        fs::read_dir(folder.path()).expect("there").map(|entry| entry.expect("read").file_name()).collect();
    assert_eq!(names.len(), 2, "no other file is left: {names:?}");
}

#[test]
fn results_replace_their_report_and_nothing_else_of_that_name() {
    let (_folder, name) = results();
    let report = Path::new(&name).join("report.html");
    assert_eq!(run(&["simulate", "single-drop", "--out", &name]).2, 0);
    assert!(!fs::read_to_string(&report).expect("there").contains("Predicted:"), "the later one");
    let both = ["simulate", "single-drop", "--out", &name, "--report", report.to_str().expect("UTF-8")];
    assert_eq!((run(&both).2, report.is_file()), (0, true), "the same file twice");
    fs::write(&report, "my own page").expect("written");
    refused(&["simulate", "single-drop", "--out", &name], &["report.html", "no report of ours"]);
    assert_eq!(fs::read_to_string(&report).expect("there"), "my own page");
}

#[test]
fn a_sweep_of_thousands_of_points_is_a_report_of_some_mb() {
    let folder = tempfile::tempdir().expect("a folder");
    let report = folder.path().join("report.html");
    let rates: Vec<String> = (1..=3000).map(|rate| format!("\"{rate} kbit/s\"")).collect();
    let sweep = format!("sweep.path.client-link.rate=[{}]", rates.join(", "));
    let args = ["predict", "noisy-channel", "--set", "path.loss=0%", "--set", &sweep, "--json", "--report"];
    assert_eq!(run(&[&args[..], &[report.to_str().expect("UTF-8")]].concat()).2, 0);
    let html = fs::read_to_string(&report).expect("written");
    assert!(html.len() < 3_000_000, "{} B", html.len());
    assert!(html.contains("Response time over path.client-link.rate") && html.contains("2500 more points"));
}

#[test]
fn a_report_changes_nothing_for_machines() {
    let folder = tempfile::tempdir().expect("a folder");
    let report = folder.path().join("report.html");
    let args = ["run", "noisy-channel", "--seeds", "2", "--json"];
    let plain = run(&args);
    assert_eq!(run(&[&args[..], &["--report", report.to_str().expect("UTF-8")]].concat()), plain);
}

#[test]
fn a_text_that_names_a_report_is_no_report() {
    let folder = tempfile::tempdir().expect("a folder");
    let notes = folder.path().join("notes.txt");
    fs::write(&notes, "To do: read the Farpath report").expect("written");
    refused(
        &["simulate", "single-drop", "--report", notes.to_str().expect("UTF-8")],
        &["notes.txt", "no report"],
    );
    assert_eq!(fs::read_to_string(&notes).expect("still there"), "To do: read the Farpath report");
}

#[test]
fn the_report_of_the_folder_may_be_named_by_another_way_to_it() {
    let (_folder, name) = results();
    let other = Path::new(&name).join(".").join("report.html");
    let (_, err, code) =
        run(&["run", "single-drop", "--out", &name, "--report", other.to_str().expect("UTF-8")]);
    assert_eq!((code, err.as_str()), (0, ""));
    let files = fs::read_dir(&name).expect("a folder").map(|file| file.expect("a file").file_name());
    let mut files: Vec<_> = files.map(|name| name.to_str().expect("UTF-8").to_owned()).collect();
    files.sort();
    let whole = ["flows.parquet", "provenance.json", "report.html", "segments.parquet", "series.parquet"];
    assert_eq!(files, whole, "and nothing that is not");
}

#[test]
fn a_report_that_cannot_be_written_is_refused_before_anything_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("missing/x.html");
    let out = folder.path().join("results");
    let (missing, out) = (missing.to_str().expect("UTF-8"), out.to_str().expect("UTF-8"));
    for verb in [
        &["run", "single-drop", "--out", out][..],
        &["simulate", "single-drop"],
        &["predict", "single-drop"],
        &["compare", "single-drop", "--engine=predict,simulate"],
        &["radius", "linux-6", "--loss=1%"],
        &["reproduce", "high-ber"],
    ] {
        refused(&[verb, &["--report", missing]].concat(), &["cannot write the report", missing]);
    }
    assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 0, "nothing is written");
    let (_folder, name) = results();
    refused(&["report", &name, "--out", missing], &["cannot write the report", missing]);
}

/// As on a disk that is full after so many times 512 B of each file.
#[cfg(unix)]
fn on_a_full_disk(blocks: u32, args: &[&str]) -> (String, String, i32) {
    let mut command = Command::new("sh");
    let limited = format!(r#"trap "" XFSZ; ulimit -f {blocks}; exec "$0" "$@""#);
    command.args(["-c", &limited]).arg(assert_cmd::cargo::cargo_bin!("farpath")).args(args);
    let output = command.env("FARPATH_PROGRESS", "0 s").output().expect("a shell");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (text(output.stdout), text(output.stderr), output.status.code().expect("it exits"))
}

#[cfg(unix)]
#[test]
fn results_that_cannot_be_written_at_the_end_are_printed_before_the_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let agree = ["compare", "single-drop", "--engine=predict,simulate"];
    for verb in [&["run", "single-drop"][..], &agree, &["radius", "opnet-11.5"]] {
        let printed = run(verb).0;
        let (out, err, code) = on_a_full_disk(1, &[verb, &["--report", &at("x.html")]].concat());
        assert_eq!((out, code), (printed, 2), "{verb:?}: {err}");
        assert!(err.starts_with("farpath: cannot write the report"), "{err}");
    }
    let (verb, results) = (["run", "single-drop"], at("results"));
    // 128 KiB are enough for the tables, and too little for the report.
    let (out, err, code) = on_a_full_disk(256, &[&verb[..], &["--out", &results]].concat());
    assert_eq!((out, code), (run(&verb).0, 2), "{err}");
    assert!(err.starts_with("farpath: cannot write the report"), "{err}");
    assert!(farpath_run::Results::read(&results).expect("whole").runs().is_ok(), "the tables are kept");
    assert!(!Path::new(&results).join("report.html").exists(), "no half of a report");
    fs::remove_dir_all(&results).expect("they were written");
    // That there is no room for a first 64 KiB is known before anything runs.
    let (out, err, code) = on_a_full_disk(1, &[&verb[..], &["--out", &results]].concat());
    assert_eq!((out.as_str(), code), ("", 2), "{err}");
    assert!(err.contains("results: cannot write results there: File too large"), "{err}");
    let left = fs::read_dir(&results).expect("made before the first run").count();
    assert_eq!(
        (left, fs::read_dir(folder.path()).expect("readable").count()),
        (0, 1),
        "no half of a file is left"
    );
}
