//! From a capture of a kernel's transfer to what makes it faster on the kernel: `diagnose --as-experiment`, `explain`, and its remedy applied.

use super::{has_kernel, stderr};
use assert_cmd::Command;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Its lines of JSON.
fn told(folder: &Path, args: &[&str]) -> Value {
    let mut command = Command::cargo_bin("farpath").expect("built with this test");
    let output =
        command.current_dir(folder).args(args).env("FARPATH_PROGRESS", "0 s").output().expect("it starts");
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap_or(Value::Null)
}

/// What a loop has shown: the limit that was named, and times in s.
struct Cure {
    limit: String,
    captured: f64,
    promised: f64,
    cured: f64,
}

/// Captures a transfer on the kernel; asks what held it, and how much faster `remedy` makes it; and makes the transfer again on the kernel over
/// the same path, with the remedy.
fn cure(experiment: &str, remedy: &str, seeds: &str) -> Cure {
    let folder = tempfile::tempdir().expect("made");
    let folder = folder.path();
    fs::write(folder.join("slow.toml"), experiment).expect("written");
    let emulate = ["emulate", "slow.toml", "--clock", "virtual", "--json"];
    let slow = told(folder, &[&emulate[..], &["--seeds", "1", "--capture", "captures"]].concat());
    let capture =
        fs::read_dir(folder.join("captures")).expect("readable").flatten().next().expect("one").path();
    let diagnose = ["diagnose", capture.to_str().expect("UTF-8"), "--interface", "0"];
    let found = told(folder, &[&diagnose[..], &["--json"]].concat());
    told(folder, &[&diagnose[..], &["--as-experiment", "fitted.toml"]].concat());
    let explained = told(folder, &["explain", "fitted.toml", "--json"]);
    let remedies = explained["remedies"].as_array().expect("a list");
    let remedy = remedies.iter().find(|found| found["id"] == remedy).unwrap_or_else(|| panic!("{explained}"));
    let mut again = [&emulate[..], &["--seeds", seeds]].concat();
    for change in remedy["set"].as_array().expect("a list") {
        again.extend(["--set", change.as_str().expect("a change")]);
    }
    let seconds = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("no time: {value}"));
    Cure {
        limit: found["limits"][0]["limit"].as_str().expect("a limit").to_owned(),
        captured: seconds(&slow["transfer_time_s"]["mean"]),
        promised: seconds(&remedy["simulated"]["transfer_time_s"]["mean"]),
        cured: seconds(&told(folder, &again)["transfer_time_s"]["mean"]),
    }
}

#[test]
fn a_small_receive_window_is_found_and_a_larger_one_gives_what_was_promised() {
    if !has_kernel() {
        return;
    }
    let found = cure(
        r#"
title = "Download into a small receive buffer"
horizon = "1000 s"
path = [{ element = "link", rate = "20 Mbit/s", queue = "1 bdp" }, { element = "delay", delay = "150 ms" }]
sender = { stack = "linux-6" }
receiver = { stack = "linux-6", receive = { autotuning = false, buffer = "128 kB" } }
transfer = { size = "4 MB" }
"#,
        "receive-window",
        "1",
    );
    assert_eq!(found.limit, "receive-window");
    assert!(found.captured > 2.5 * found.cured, "{} {}", found.captured, found.cured);
    // What calls itself near the capture is within 10 %; nothing here is drawn by chance.
    assert!((found.promised / found.cured - 1.0).abs() < 0.1, "{} {}", found.promised, found.cured);
}

#[test]
fn losses_that_keep_cubic_small_are_found_and_bbr_gives_what_was_promised() {
    if !has_kernel() {
        return;
    }
    let found = cure(
        r#"
title = "Download over a path that loses packets"
horizon = "1000 s"
path = [
    { element = "link", rate = "20 Mbit/s", queue = "1 bdp" }, { element = "delay", delay = "50 ms" },
    { element = "loss", rate = { forward = "0.5 %" } },
]
sender = { stack = "linux-6" }
receiver = { stack = "linux-6" }
transfer = { size = "4 MB" }
"#,
        "bbr",
        "5",
    );
    assert_eq!(found.limit, "congestion-window");
    assert!(found.captured > 2.5 * found.cured, "{} {}", found.captured, found.cured);
    // As near as the fit, and as sure as the means of some runs with losses of their own: each has an error of some 3 %.
    assert!((found.promised / found.cured - 1.0).abs() < 0.15, "{} {}", found.promised, found.cured);
}
