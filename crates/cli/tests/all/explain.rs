//! `farpath explain`, and a path in a few numbers in place of a file.

use assert_cmd::Command;
use serde_json::Value;
use std::fs;
use std::path::Path;

const NUMBERS: [&str; 6] = ["--delay", "100 ms", "--rate", "2 Mbit/s", "--size", "1 MB"];
/// The same between hosts that follow the RFCs and no more.
const PATH: [&str; 8] = ["--delay", "100 ms", "--rate", "2 Mbit/s", "--size", "1 MB", "--stack", "rfc-5681"];

/// Output, messages and exit code, in this folder.
fn run_in(folder: &Path, args: &[&str]) -> (String, String, i32) {
    let mut command = Command::cargo_bin("farpath").expect("built with this test");
    // How long a machine takes must not be seen in what is said.
    command.current_dir(folder).args(args).env("FARPATH_PROGRESS", "0 s");
    let output = command.output().expect("the command starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (text(output.stdout), text(output.stderr), output.status.code().expect("it exits"))
}

fn with<'a>(command: &'a str, path: &[&'a str], rest: &[&'a str]) -> Vec<&'a str> {
    [&[command], path, rest].concat()
}

/// Asserts that it is refused with these words, and that nothing is printed or written.
fn refused(folder: &Path, args: &[&str], words: &[&str]) {
    let files = || fs::read_dir(folder).expect("readable").count();
    let before = files();
    let (out, err, code) = run_in(folder, args);
    assert_eq!((code, out.as_str()), (2, ""), "{args:?}: {err}");
    for word in words {
        assert!(err.contains(word), "{args:?}: `{word}` is not in: {err}");
    }
    assert_eq!(files(), before, "{args:?} wrote something");
}

#[test]
fn datagrams_are_not_explained() {
    let folder = tempfile::tempdir().expect("a folder");
    refused(folder.path(), &["explain", "explicit-rate-voice"], &["knows TCP alone", "`farpath simulate`"]);
}

#[test]
fn an_explanation_says_what_bounds_what_is_trapped_and_what_to_change() {
    let folder = tempfile::tempdir().expect("a folder");
    let args = with("explain", &PATH, &["--set", "receiver.rto.initial=150 ms"]);
    let (out, err, code) = run_in(folder.path(), &args);
    assert_eq!(code, 0, "{err}");
    for word in [
        "As it is",
        "What to do",
        "What it depends on",
        "What bounds it",
        "receive-window",
        "initial-rto",
        "What to change",
        "simulated",
    ] {
        assert!(out.contains(word), "{word}:\n{out}");
    }
    assert!(!out.contains("Delay budget"), "only where it is asked for:\n{out}");
    // A sentence, what to do, then the tables.
    let places = ["The link is full", "As it is", "What to do", "What bounds it"].map(|word| out.find(word));
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}\n{out}");
    let (budget, _, code) = run_in(folder.path(), &with("explain", &PATH, &["--budget"]));
    assert_eq!(code, 0);
    for word in ["Delay budget", "Timers against it", "synack-schedule"] {
        assert!(budget.contains(word), "{word}:\n{budget}");
    }
    let (markdown, _, code) = run_in(folder.path(), &with("explain", &PATH, &["--format", "markdown"]));
    assert_eq!(code, 0);
    assert!(markdown.contains("### What to do") && markdown.contains("| bound |"), "{markdown}");
    // What was not given is said.
    for word in ["bandwidth-delay product", "--save"] {
        assert!(err.contains(word), "{err}");
    }
    assert!(!err.contains("stack"), "it was given: {err}");
    let (_, err, _) = run_in(folder.path(), &with("predict", &NUMBERS, &[]));
    assert!(err.contains("not given: stack linux-6, a queue"), "{err}");
    assert!(out.lines().all(|line| line == line.trim_end() && line.chars().count() <= 120), "{out}");
}

#[test]
fn json_is_one_object_with_the_same_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let (out, _, code) = run_in(folder.path(), &with("explain", &PATH, &["--json"]));
    let json: Value = serde_json::from_str(&out).expect("one object");
    assert_eq!((code, out.trim_end().lines().count()), (0, 1));
    for key in [
        "title",
        "budget",
        "observed",
        "predicted_s",
        "bounds",
        "traps",
        "remedies",
        "all",
        "endings",
        "caveats",
    ] {
        assert!(json.get(key).is_some(), "{key}");
    }
    let bounds = json["bounds"].as_array().expect("a list");
    let lost: Vec<f64> = bounds.iter().filter_map(|bound| bound["lost_s"]["mean"].as_f64()).collect();
    assert!(lost.len() > 3 && lost.is_sorted_by(|a, b| a >= b), "{lost:?}");
    for remedy in json["remedies"].as_array().expect("a list") {
        let set = remedy["set"].as_array().expect("a list");
        assert!(!set.is_empty() && remedy["simulated"]["runs"].as_u64() > Some(0), "{remedy}");
    }
}

#[test]
fn a_remedy_is_written_as_an_experiment_that_gives_the_time_that_was_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let args =
        with("explain", &PATH, &["--set", "sender.send.buffer=8 kB", "--apply", "send-buffer", "--json"]);
    let (out, err, code) = run_in(folder.path(), &args);
    assert_eq!(code, 0, "{err}");
    let json: Value = serde_json::from_str(&out).expect("one object");
    let remedies = json["remedies"].as_array().expect("a list");
    let remedy = remedies.iter().find(|remedy| remedy["id"] == "send-buffer").expect("it is offered");
    let shown = remedy["simulated"]["transfer_time_s"]["mean"].as_f64().expect("it completes");

    let file = folder.path().join("path-send-buffer.toml");
    let text = fs::read_to_string(&file).expect("written beside");
    assert!(text.starts_with("# Changed by `farpath explain --apply send-buffer`"), "{text}");
    assert!(text.contains("# changed; was"), "{text}");
    let (out, err, code) = run_in(folder.path(), &["simulate", "path-send-buffer.toml", "--json"]);
    assert_eq!(code, 0, "{err}");
    let json: Value = serde_json::from_str(&out).expect("one object");
    assert_eq!(json["transfer_time_s"]["mean"].as_f64(), Some(shown), "{json}");

    // It is not written over.
    refused(folder.path(), &args, &["--apply", "path-send-buffer.toml", "is there already"]);
    assert_eq!(fs::read_to_string(&file).expect("still there"), text);
}

#[test]
fn where_nothing_arrives_no_input_is_said_to_matter_most() {
    let folder = tempfile::tempdir().expect("a folder");
    let (out, err, code) = run_in(folder.path(), &with("explain", &PATH, &["--loss", "100 %"]));
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("It completes at none of these.") && !out.contains("depends most"), "{out}");
}

#[test]
fn a_point_of_a_sweep_is_explained_and_its_sweep_becomes_values() {
    let folder = tempfile::tempdir().expect("a folder");
    let args = [
        "explain",
        "geo",
        "--point",
        "1",
        "--seeds",
        "2",
        "--set",
        "transfer.size=1 MB",
        "--apply",
        "receive-window",
        "--out",
        "mine.toml",
    ];
    let (out, err, code) = run_in(folder.path(), &args);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("Point 1 of 10") && out.contains("receiver.receive.buffer = 64 kB"), "{out}");
    let text = fs::read_to_string(folder.path().join("mine.toml")).expect("written there");
    assert!(!text.contains("[sweep]") && text.contains("[[path]]") && text.contains("ber = 1e-9"), "{text}");
    refused(folder.path(), &["explain", "geo", "--point", "10"], &["geo", "no point 10", "0 to 9"]);
}

#[test]
fn flags_in_place_of_a_file_run_on_every_engine() {
    let folder = tempfile::tempdir().expect("a folder");
    for command in ["run", "predict", "simulate"] {
        let args = with(command, &PATH, &["--loss", "1 %", "--seeds", "2", "--window", "200 kB"]);
        let (out, err, code) = run_in(folder.path(), &args);
        assert_eq!(code, 0, "{err}");
        assert!(out.contains("1 MB over 2 Mbit/s, 100 ms each way, 1 % loss"), "{out}");
    }
}

#[test]
fn what_is_saved_is_what_was_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let rest = ["--stack", "bsd-1996", "--save", "mine.toml", "--set", "path.link.queue=9 kB", "--json"];
    let (out, err, code) = run_in(folder.path(), &with("simulate", &NUMBERS, &rest));
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("mine.toml is written"), "{err}");
    let text = fs::read_to_string(folder.path().join("mine.toml")).expect("written");
    for word in ["stack = \"bsd-1996\"", "queue = \"9 kB\"", "# not given: a download", "# propagation"] {
        assert!(text.contains(word), "{word}:\n{text}");
    }
    let again = run_in(folder.path(), &["simulate", "mine.toml", "--json"]).0;
    assert_eq!(again, out);
    refused(
        folder.path(),
        &with("run", &PATH, &["--save", "mine.toml"]),
        &["--save", "mine.toml", "is there already"],
    );
}

#[test]
fn bad_input_is_named_and_nothing_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let here = folder.path();
    refused(here, &["explain"], &["FILE", "--delay or --rtt, --rate and --size"]);
    // All that is missing is named at once.
    refused(here, &["run", "--delay", "1 s"], &["--rate, --size are missing"]);
    refused(here, &["explain", "--loss", "1 %"], &["--delay, --rate, --size are missing"]);
    refused(here, &["run", "geo", "--delay", "1 s"], &["--delay", "FILE", "--set path.delay="]);
    refused(here, &["explain", "geo", "--size", "1 MB"], &["--size", "--set transfer.size="]);
    refused(here, &["run", "--rate", "10 MBps"], &["--rate", "expected a rate", "10 MBps"]);
    refused(here, &["run", "--delay", "300"], &["--delay", "expected a duration", "`300`"]);
    refused(here, &["run", "--loss", "2"], &["--loss", "2"]);
    refused(here, &["run", "--loss", "1"], &["--loss", "`1 %` or `100 %`"]);
    refused(here, &with("explain", &NUMBERS, &["--stack", "linus-6"]), &["sender.stack", "linus-6"]);
    refused(here, &with("explain", &PATH, &["--set", "path.lost=1 %", "--save", "x.toml"]), &["path.lost"]);
    refused(
        here,
        &with("explain", &PATH, &["--apply", "magic"]),
        &["--apply", "`magic`", "ack-every-segment"],
    );
    refused(here, &with("explain", &PATH, &["--out", "x.toml"]), &["--apply"]);
    // Before anything is run.
    refused(
        here,
        &with("explain", &PATH, &["--apply", "magic", "--out", "missing/x.toml"]),
        &["--apply", "cannot write missing/x.toml"],
    );
    refused(here, &["explain", "missing.toml"], &["missing.toml", "cannot read"]);
    if Path::new("/proc/self").exists() {
        let args = with("explain", &PATH, &["--apply", "ack-every-segment", "--out", "/proc/x.toml"]);
        let (_, err, code) = run_in(here, &args);
        assert_eq!(code, 2, "{err}");
        assert!(err.contains("/proc/x.toml") && err.contains("cannot write"), "{err}");
    }
}

/// What is advised can be kept as a file of sysctl.d; where there is nothing to write, nothing is written.
#[test]
fn sysctls_are_written_for_one_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = ["--rtt", "200ms", "--rate", "100Mbps", "--size", "5 MB", "--window", "200 kB"];
    let rest = [
        "--apply",
        "receive-window",
        "--out",
        "x.toml",
        "--write-sysctl",
        "90-far.conf",
        "--end",
        "receiver",
    ];
    let (_, err, code) = run_in(folder.path(), &with("explain", &path, &rest));
    assert_eq!(code, 0, "{err}");
    let text = fs::read_to_string(folder.path().join("90-far.conf")).expect("written");
    assert!(text.lines().any(|line| line.starts_with("net.ipv4.tcp_rmem = 4096 131072 ")), "{text}");
    assert!(text.contains("undo: sysctl -w net.ipv4.tcp_rmem="), "{text}");
    let other = ["--apply", "receive-window", "--out", "y.toml", "--write-sysctl", "near.conf"];
    refused(folder.path(), &with("explain", &path, &other), &["--write-sysctl", "near.conf", "--end"]);
    refused(folder.path(), &with("explain", &path, &["--rtt", "1 s", "--delay", "1 s"]), &["--rtt"]);
}

/// A terminal that is asked for a group of flows that is not there.
#[test]
fn a_group_of_flows_is_chosen() {
    let folder = tempfile::tempdir().expect("a folder");
    let flows = [
        "explain",
        "geo",
        "--set",
        "flow=[{ size = \"100 kB\" }, { size = \"200 kB\", direction = \"reverse\" }]",
        "--seeds",
        "1",
    ];
    let (out, err, code) = run_in(folder.path(), &[&flows[..], &["--group", "1"]].concat());
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("1 × 200 kB reverse") && out.contains("Explained is group 1"), "{out}");
    refused(folder.path(), &[&flows[..], &["--group", "2"]].concat(), &["--group", "no group 2", "2 groups"]);
}

/// What `farpath measure PEER --json` prints of a path, by its round trips and losses.
const RESULT: &str = r#"{"path":{"round_trip":{"min_ns":40000000,"median_ns":44000000},
"forward":{"rate_bit_per_s":10000000,"rate_between_bit_per_s":[9500000,10500000],"rate_at_least":false,"queue_bytes":50000,"queue_at_least":false,"loss_rate":0.01,"loss_rate_ci95":[0.005,0.02]},
"reverse":{"rate_bit_per_s":10000000,"rate_between_bit_per_s":[9500000,10500000],"rate_at_least":false,"queue_bytes":50000,"queue_at_least":false,"loss_rate":0.0,"loss_rate_ci95":[0.0,0.004]}}}"#;

/// The intervals that were measured take the place of half and double, and the head says what they come to.
#[test]
fn a_measurement_is_explained_with_its_uncertainty() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("m.json"), RESULT.replace('\n', "")).expect("written");
    let measured = ["explain", "--from-measure", "m.json", "--size", "200 kB", "--seeds", "3"];
    let (out, err, code) = run_in(folder.path(), &measured);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("As well as the path is known, it takes between"), "{out}");
    assert!(out.contains("(0.5 %)") && out.contains("(2 %)") && out.contains("(0.95 ×)"), "{out}");
    refused(
        folder.path(),
        &[&measured[..], &["--delay", "1 ms"]].concat(),
        &["--delay", "--from-measure", "--set"],
    );
    fs::write(folder.path().join("none.json"), "{}").expect("written");
    refused(folder.path(), &["explain", "--from-measure", "none.json"], &["none.json", "`path`"]);
}
