//! TCP stacks of others as ends of a path: programs in a folder of the user's, as `farpath simulate` runs them.
#![cfg(target_os = "linux")]

use crate::support::Folder;
use farpath_testing::{Need, skip};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const FILE: &str = r#"
title = "A host of somebody else's"

[[path]]
element = "link"
rate = "10 Mbit/s"

[[path]]
element = "loss"
rate = { forward = "0 %", reverse = "0 %" }

[[path]]
element = "delay"
delay = "20 ms"

[transfer]
size = "100 kB"
"#;

/// The host of the guide, a TCP of one segment at a time.
const ONE_SEGMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/hosts/one_segment.py");

fn farpath(hosts: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_farpath"))
        .args(args)
        .env("FARPATH_HOSTS", hosts)
        .output()
        .expect("the command runs")
}

/// The flows of `farpath simulate` with these changes.
fn flows(hosts: &Path, folder: &Folder, changes: &[&str]) -> Vec<Value> {
    let file = folder.file();
    let mut args = vec!["simulate", file, "--flows", "--json"];
    args.extend(changes.iter().flat_map(|change| ["--set", change]));
    let output = farpath(hosts, &args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn refused(hosts: &Path, args: &[&str], words: &[&str]) {
    let output = farpath(hosts, args);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    for word in words {
        assert!(said.contains(word), "`{word}` is not in: {said}");
    }
}

/// A folder with the guide's host in it; `None`, and a skip, where there is no Python.
fn with_one_segment() -> Option<Folder> {
    if !Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success()) {
        skip(Need::Python, "no python3, in which the host of the guide is written");
        return None;
    }
    let folder = Folder::with(FILE);
    // With its mode.
    fs::copy(ONE_SEGMENT, folder.path("one-segment")).expect("copied");
    Some(folder)
}

fn beside(folder: &Folder) -> PathBuf {
    Path::new(folder.file()).parent().expect("a folder").to_owned()
}

/// The handshake, 68 full segments each acknowledged before the next one leaves, and half a round trip of the last one.
#[test]
fn one_segment_at_a_time_takes_a_round_trip_each() {
    let Some(folder) = with_one_segment() else { return };
    let hosts = beside(&folder);
    let ends = ["sender.implementation=one-segment", "receiver.implementation=one-segment"];
    let [us, ms] = [1_000_u64, 1_000_000];
    // 0.8 us a byte at 10 Mbit/s, and 20 ms: a segment of 1500 B, an ACK of 40 B, and a last one of 760 B.
    let [full, ack, last] = [1500, 40, 760].map(|bytes: u64| bytes * us * 8 / 10 + 20 * ms);
    for (opener, handshake) in [("sender", 2), ("receiver", 3)] {
        let opened = format!("transfer.opener={opener}");
        let flow = &flows(&hosts, &folder, &[ends[0], ends[1], &opened])[0];
        let expected = handshake * ack + 68 * (full + ack) + last;
        assert_eq!(flow["transfer_time_ns"], expected, "{flow}");
        assert_eq!((&flow["data_segments"], &flow["retransmissions"]), (&69.0.into(), &0.0.into()), "{flow}");
    }
}

/// Two runs of each host are the same to the byte of each packet; a loss costs it what it costs, and another seed is another run.
#[test]
fn what_is_somebody_elses_repeats_byte_by_byte() {
    let user = farpath_foreign::Catalog::of_user();
    let one_segment = with_one_segment();
    let mut asked = Vec::new();
    for name in ["lwip", "slirp"] {
        match user.find(name) {
            Ok(_) => asked.push((name, user.folder().to_owned())),
            Err(error) => skip(Need::Hosts, error),
        }
    }
    asked.extend(one_segment.as_ref().map(|folder| ("one-segment", beside(folder))));
    asked.push(("smoltcp", PathBuf::from("/nonexistent")));
    let folder = Folder::with(FILE);
    for (name, hosts) in asked {
        let captured = |seed: &str, to: &str| {
            let (host, seed) = (format!("sender.implementation={name}"), format!("seed={seed}"));
            let to = folder.path(to);
            let loss = "path.loss.rate.forward=2 %";
            let args =
                ["simulate", folder.file(), "--set", &host, "--set", &seed, "--set", loss, "--capture", &to];
            let output = farpath(&hosts, &args);
            assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
            assert!(String::from_utf8_lossy(&output.stdout).contains("completed"), "{name}");
            let entry = fs::read_dir(&to).expect("written").next().expect("a file").expect("readable");
            fs::read(entry.path()).expect("readable")
        };
        let [once, again] = ["once", "again"].map(|to| captured("1", &format!("{name}-{to}")));
        assert!(once == again, "{name} repeats");
        assert!(once != captured("2", &format!("{name}-other")), "{name} by another seed");
    }
}

/// Both ways round, and opened by either end that can.
#[test]
fn what_is_made_of_packages_transfers_all_bytes() {
    let user = farpath_foreign::Catalog::of_user();
    let folder = Folder::with(FILE);
    for (name, opens) in [("lwip", true), ("slirp", false)] {
        if let Err(error) = user.find(name) {
            skip(Need::Hosts, error);
            continue;
        }
        for (end, opener) in
            [("sender", "receiver"), ("receiver", "sender"), ("sender", "sender"), ("receiver", "receiver")]
        {
            let changes = [format!("{end}.implementation={name}"), format!("transfer.opener={opener}")];
            let flow = &flows(user.folder(), &folder, &[&changes[0], &changes[1]])[0];
            if end == opener && !opens {
                assert_eq!(flow["outcome"], "aborted", "{flow}");
                assert!(
                    flow["detail"].as_str().is_some_and(|said| said.contains("transfer.opener")),
                    "{flow}"
                );
            } else {
                assert_eq!(
                    (&flow["outcome"], &flow["bytes_read"]),
                    (&"completed".into(), &100_000.into()),
                    "{flow}"
                );
                assert_eq!(flow["retransmissions"], 0.0, "{flow}");
            }
        }
    }
}

#[test]
fn what_is_not_there_or_not_done_is_refused_in_a_sentence() {
    let folder = Folder::with(FILE);
    let (file, hosts) = (folder.file(), PathBuf::from(folder.path("hosts")));
    let with = |verb: &'static str, change: &'static str| [verb, file, "--set", change];
    let unknown = with("simulate", "sender.implementation=lwip");
    refused(
        &hosts,
        &unknown,
        &[file, "sender.implementation: expected", "`farpath hosts build lwip` makes it"],
    );
    for verb in ["emulate", "explain"] {
        let words =
            [file, "sender.implementation", "expected `farpath simulate`", &format!("under `{verb}`")];
        refused(&hosts, &with(verb, "sender.implementation=smoltcp"), &words);
    }
    refused(&hosts, &["hosts", "build", "none"], &["expected one of `lwip`, `slirp`, found `none`"]);
    let nothing = folder.path("nothing");
    refused(&hosts, &["hosts", "build", "lwip", "--source", &nothing], &["expected lwIP's sources"]);
    let output = farpath(&hosts, &["hosts", "list"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("smoltcp") && text.contains("not here: `farpath hosts build slirp`"), "{text}");
}
