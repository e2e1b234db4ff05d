//! `farpath emulate` as a user meets it: beside its simulation, interrupted, killed, without privileges, and void.
//!
//! In real time, and on machines that others use too: transfers are small, and what is asserted of time is said why.
#![cfg(target_os = "linux")]

mod processes;

use crate::support::{Folder, can_emulate, farpath, flows, lines, refused, run};
use farpath_testing::{Need, skip};
use serde_json::Value;
use std::fs;

/// 195 kB in a window of six segments: 23 round trips of 40 ms, a second. The last of them has two segments of six, so
/// that a delayed ACK or four, which come as the reading program happens to wake up, cost no further round trip.
const SMALL: &str = r#"
title = "Small"
seed = 1

[[path]]
element = "delay"
delay = "20 ms"

[sender]
stack = "reno-1990"

[receiver]
stack = "reno-1990"
receive.buffer = "8760 B"

[transfer]
size = "195 kB"

[emulate]
lateness = "1 s"      # a machine that others use: only where times are compared are they asked for
processor_wait = "100 %"
"#;

/// Shorter, where nothing depends on how long it is.
const TINY: [&str; 4] = ["--set", "transfer.size=30 kB", "--set", "path.delay=5 ms"];

/// Both engines, flow by flow.
const BOTH: [&str; 5] = ["run", "--engine", "simulate,emulate", "--flows", "--json"];

fn number(flow: &Value, key: &str) -> f64 {
    flow[key].as_f64().unwrap_or_else(|| panic!("no {key} in {flow}"))
}

#[test]
fn a_run_in_real_time_says_how_far_it_is() {
    if !can_emulate() {
        return;
    }
    let folder = Folder::with(SMALL);
    // It takes a second.
    let output =
        farpath(&["emulate", folder.file()]).env("FARPATH_PROGRESS", "10 ms").output().expect("it starts");
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    let line = said.lines().find(|line| line.contains(" % of 195 kB, ")).unwrap_or_else(|| panic!("{said}"));
    assert!(
        line.starts_with("farpath: after ") && line.contains(": 0 of 1 runs; 1 in real time: "),
        "{line}"
    );
}

#[test]
fn a_transfer_takes_as_long_as_its_simulation() {
    if !can_emulate() {
        return;
    }
    let folder = Folder::with(SMALL);
    let in_time = ["--set", "emulate.lateness=auto", "--set", "emulate.repeats=5"];
    let once = || -> [Value; 2] {
        let (out, _, _) = run(&[&BOTH[..], &[folder.file()], &in_time].concat());
        lines(&out).try_into().expect("a flow of each engine")
    };
    let longer_by = |[simulated, emulated]: &[Value; 2]| match emulated["transfer_time_ns"].as_f64() {
        Some(time) => time / number(simulated, "transfer_time_ns") - 1.0,
        None => f64::INFINITY,
    };
    // 3 %: each round trip is longer by some 0.1 ms of 40, in which packets cross two devices and the loop wakes up;
    // the kernel delays other ACKs than the simulator, once or twice, by a round trip of 23 at most in a second. Other
    // programs only ever add to that: the two programs of the flow wait for a processor, which no grade knows of. So the
    // shortest of a few counts.
    let mut runs = once();
    for _ in 0..4 {
        if longer_by(&runs) > 0.03 {
            let more = once();
            runs = if longer_by(&more) < longer_by(&runs) { more } else { runs };
        }
    }
    let difference = longer_by(&runs);
    // A void one was never in time, and says so.
    let void = runs[1]["outcome"] == "void";
    if void || (difference > 0.03 && is_busy()) {
        let found =
            if void { "no run was in time".to_owned() } else { format!("{:.1} %", difference * 100.0) };
        return skip(Need::Time, format!("times of an emulation: this machine is too busy: {found}"));
    }
    let [simulated, emulated] = runs;
    assert!(difference.abs() < 0.03, "{:.2} %: {emulated}", difference * 100.0);
    for key in ["data_segments", "retransmissions", "timeouts", "bytes_read", "syns"] {
        assert_eq!(simulated[key], emulated[key], "{key}");
    }
    // A script that reads one reads the other, and finds how well it was done.
    let keys = |flow: &Value| flow.as_object().map(|it| it.keys().cloned().collect::<Vec<_>>());
    assert_eq!(keys(&simulated), keys(&emulated));
    assert_eq!(simulated["grade"], Value::Null);
    assert_eq!(emulated["grade"]["void"], Value::Null);
    assert!(number(&emulated["grade"], "offered") > 134.0);
    assert!(emulated["grade"]["lateness"]["p99_ns"].as_u64().is_some_and(|late| late > 0));
}

/// Whether twice as many programs want a processor as there are.
fn is_busy() -> bool {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = load.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0);
    load > 2.0 * std::thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64)
}

#[test]
fn the_same_packets_are_lost() {
    if !can_emulate() {
        return;
    }
    let folder = Folder::with(&format!(
        "{SMALL}\n[[path]]\nelement = \"listed-loss\"\npackets = {{ forward = [20, 61, 62] }}\n"
    ));
    let captures = folder.path("captures");
    let results = folder.path("results");
    let files = [folder.file(), "--out", &results, "--capture", &captures];
    let [simulated, emulated] =
        flows(&[&BOTH[..], &files].concat()).try_into().expect("a flow of each engine");
    for key in ["retransmissions", "drops_by_cause", "drops_data_direction", "data_segments"] {
        assert_eq!(simulated[key], emulated[key], "{key}");
    }
    assert_eq!(emulated["drops_by_cause"], serde_json::json!({ "loss": 3 }));
    assert_eq!(number(&emulated["grade"], "lost"), 3.0);
    assert_eq!(number(&emulated["grade"], "kernel_retransmissions"), number(&emulated, "retransmissions"));

    let (out, err, code) = run(&["report", &results]);
    assert_eq!(code, 0, "{out}{err}");
    let report = fs::read_to_string(format!("{results}/report.html")).expect("written");
    for word in ["emulated", "packets were late by"] {
        assert!(report.to_lowercase().contains(word), "{word} is not in the report");
    }
    for file in ["point-0-seed-1.pcapng", "point-0-seed-1-emulate.pcapng"] {
        nothing_malformed(&format!("{captures}/{file}"));
    }
}

/// tshark reads it, and finds nothing wrong with it.
fn nothing_malformed(file: &str) {
    let wrong = "_ws.malformed || tcp.checksum.status == 0 || ip.checksum.status == 0";
    let tshark = |filter: &str| {
        let filter =
            ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "-r", file, "-Y", filter];
        std::process::Command::new("tshark").args(filter).env("LC_ALL", "C").output()
    };
    let Ok(all) = tshark("tcp") else {
        return skip(Need::Tshark, format!("a look at {file} with tshark: there is none here"));
    };
    assert!(all.status.success(), "{}", String::from_utf8_lossy(&all.stderr));
    assert!(String::from_utf8_lossy(&all.stdout).lines().count() > 200, "{file}: too few packets");
    let found = tshark(wrong).expect("it was there");
    assert_eq!(String::from_utf8_lossy(&found.stdout), "", "{file}");
}

/// One flow each, and how its data goes.
#[test]
fn every_way_to_emulate_carries_a_transfer() {
    if !can_emulate() {
        return;
    }
    let folder = Folder::with(SMALL);
    let upload = ["--set", "transfer.opener=sender"];
    let request = ["--set", "transfer.request=300 B"];
    for more in [
        &["--set", "emulate.ip=6"][..],
        &["--set", "emulate.backend=packet"],
        &["--set", "emulate.coalesce=true", "--set", "receiver.receive.buffer=60 kB"],
        &["--set", "sender.stack=linux-6", "--set", "receiver.stack=linux-6"],
        &upload,
        &request,
    ] {
        let [flow] = flows(&[&["emulate", folder.file(), "--flows", "--json"], &TINY[..], more].concat())
            .try_into()
            .expect("a flow");
        assert_eq!(flow["outcome"], "completed", "{more:?}: {flow}");
        assert_eq!(flow["bytes_read"], 30_000, "{more:?}");
    }
}

#[test]
fn flows_go_both_ways_in_one_run() {
    if !can_emulate() {
        return;
    }
    let both_ways = "[[flow]]\n[[flow]]\ndirection = \"reverse\"\nstart = \"50 ms\"\nsize = \"10 kB\"\n";
    let folder = Folder::with(&format!("{SMALL}\n{both_ways}"));
    // A host has one stack where data goes both ways.
    let same = ["--set", "sender.receive.buffer=8760 B"];
    let found = flows(&[&["emulate", folder.file(), "--flows", "--json"], &TINY[..], &same].concat());
    let told = |key: &str| found.iter().map(|flow| flow[key].clone()).collect::<Vec<_>>();
    assert_eq!(told("direction"), ["forward", "reverse"]);
    assert_eq!(told("bytes_read"), [30_000, 10_000]);
    assert_eq!(told("outcome"), ["completed", "completed"]);
    let args = [&["emulate", folder.file(), "--set", "receiver.stack=linux-6"], &TINY[..]].concat();
    refused(&args, &["both ways", "one stack"]);
}

#[test]
fn round_trips_and_waits_are_seen_at_the_path() {
    if !can_emulate() {
        return;
    }
    let link = "[[path]]\nelement = \"link\"\nrate = \"2 Mbit/s\"\nqueue = \"50 packets\"\n[sender]";
    let folder = Folder::with(&SMALL.replacen("[sender]", link, 1).replace("8760 B", "60 kB"));
    let [flow] = flows(&["emulate", folder.file(), "--flows", "--json"]).try_into().expect("one flow");
    let figures = |what: &str| ["mean", "p95", "p99"].map(|of| number(&flow, &format!("{of}_{what}_ns")));
    let [mean, p95, p99] = figures("rtt");
    assert!(40e6 <= mean && p95 <= p99, "{flow}");
    let [waits, _, longest] = figures("queueing_delay");
    // 1500 B take 6 ms: so long does a packet wait behind 50 of them and the one that is being sent, within the 1 % of a percentile.
    assert!(6e6 < waits && waits <= longest && longest <= 306e6 * 1.01, "{flow}");
    // The queue is a part of the round trip.
    assert!(waits < mean && longest < p99, "{flow}");
}

#[test]
fn points_and_seeds_come_in_their_order() {
    if !can_emulate() {
        return;
    }
    let folder = Folder::with(&format!("{SMALL}\n[sweep]\n\"path.delay\" = [\"9 ms\", \"3 ms\"]\n"));
    let args = ["emulate", folder.file(), "--seeds", "2", "--set", "emulate.seeds=2", "--flows", "--json"];
    let found = flows(&[&args[..], &TINY[..2]].concat());
    let runs: Vec<_> = found.iter().map(|flow| (number(flow, "point"), number(flow, "seed"))).collect();
    assert_eq!(runs, [(0.0, 1.0), (0.0, 2.0), (1.0, 1.0), (1.0, 2.0)]);
    // Handshake and slow start at the least: two round trips.
    for (flow, rtt_ns) in found.iter().zip([18e6, 18e6, 6e6, 6e6]) {
        assert!(number(flow, "min_rtt_ns") >= rtt_ns, "{flow}");
        assert!(number(flow, "transfer_time_ns") >= 2.0 * rtt_ns, "{flow}");
    }
}

/// No machine hands everything over within a microsecond.
const HOPELESS: [&str; 4] = ["--set", "emulate.lateness=1us", "--set", "emulate.repeats=1"];

#[test]
fn a_void_run_says_so_and_has_no_numbers() {
    if !can_emulate() {
        return;
    }
    let folder = Folder::with(SMALL);
    let args = |more: &[&'static str]| {
        let run = ["run", folder.file(), "--engine", "simulate,emulate"];
        [&run[..], &TINY[..], &HOPELESS[..], more].concat().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let run = |more: &[&'static str]| run(&args(more).iter().map(String::as_str).collect::<Vec<_>>());

    let (out, err, code) = run(&[]);
    assert_eq!(code, 1, "{out}{err}");
    assert!(err.contains("1 of 1 emulated runs are void"), "{err}");
    for words in ["Void, and in no number above", "1 us is allowed", "simulated", "void"] {
        assert!(out.contains(words), "`{words}` is not in\n{out}");
    }

    let (out, _, code) = run(&["--json"]);
    assert_eq!(code, 1);
    let [simulated, emulated] = lines(&out).try_into().expect("a summary of each engine");
    assert_eq!(simulated["transfer_time_s"]["n"], 1);
    for unknown in ["transfer_time_s", "goodput_bit_per_s", "retransmissions", "drops"] {
        assert_eq!(emulated[unknown], Value::Null, "{unknown}");
    }
    assert_eq!(emulated["outcomes"], serde_json::json!({ "void": 1 }));
    assert!(emulated["grade"]["void"].as_str().is_some_and(|why| why.contains("late by more than")));
    assert_eq!(emulated["grade"]["attempts"], 2, "once, and one repeat");
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_run_or_written() {
    if !can_emulate() {
        return;
    }
    let folder = Folder::with(&format!("{SMALL}\n[sweep]\n\"path.delay\" = [\"1 ms\", \"20 ms\"]\n"));
    let (out, captures) = (folder.path("results"), folder.path("captures"));
    for (change, words) in [
        // A window of 8760 B, its headers, and ACKs.
        ("emulate.memory=9 kB", &["emulate.memory", "expected at least", "found 9 kB"][..]),
        ("emulate.memory=0 B", &["emulate.memory", "no room"]),
        ("emulate.seeds=0", &["emulate.seeds", "at least one"]),
        ("emulate.ip=5", &["emulate.ip", "expected 4 or 6", "found `5`"]),
        ("emulate.backend=xdp", &["emulate.backend", "`tun`", "xdp"]),
        ("emulate.coalesce=1", &["emulate.coalesce", "expected", "found"]),
        ("emulate.sample=1 us", &["emulate.sample", "expected at least 1 ms", "found 1 us"]),
        ("emulate.lateness=0 s", &["emulate.lateness", "real time is never exact"]),
        ("emulate.lateness=1 kB", &["emulate.lateness", "expected a duration", "found `1 kB`"]),
        ("emulate.repeats=-1", &["emulate.repeats", "expected", "found"]),
        ("emulate.latenes=1 ms", &["emulate.latenes", "did you mean `lateness`"]),
    ] {
        let words = [&["experiment.toml"], words].concat();
        let files = ["--out", &out, "--capture", &captures];
        refused(
            &[&["run", folder.file(), "--engine", "simulate,emulate", "--set", change], &files[..]].concat(),
            &words,
        );
    }
    for path in [out, captures] {
        assert!(!fs::exists(path).expect("readable"), "something was written");
    }
}

#[test]
fn hours_of_delay_are_taken_and_the_horizon_ends_them() {
    if !can_emulate() {
        return;
    }
    let folder = Folder::with(SMALL);
    let far = ["--set", "path.delay=3 h", "--set", "horizon=700 ms"];
    let [flow] = flows(&[&["emulate", folder.file(), "--flows", "--json"], &far[..]].concat())
        .try_into()
        .expect("a flow");
    assert_eq!(flow["outcome"], "horizon");
    assert_eq!((&flow["bytes_read"], &flow["transfer_time_ns"]), (&0.into(), &Value::Null));
    assert_eq!(flow["grade"]["void"], Value::Null, "nothing was due, so nothing was late");
}

#[test]
fn engines_are_held_against_each_other() {
    if !can_emulate() {
        return;
    }
    let folder = Folder::with(SMALL);
    let args = [&["compare", folder.file(), "--engine", "simulate,emulate", "--json"], &TINY[..]].concat();
    let (out, err, code) = run(&args);
    assert_eq!(code, 0, "{out}{err}");
    assert!(!lines(&out).is_empty(), "{out}");
    assert!(farpath(&["emulate", "--help"]).output().expect("it starts").status.success());
}

/// A second of a stream without a loss: each message is there, after half a round trip at the least, and the player that waits
/// for a second is never late on a machine that others use.
#[test]
fn messages_of_a_stream_arrive_as_in_its_simulation() {
    if !can_emulate() {
        return;
    }
    let stream = "message = \"8 kB\"\nrate = \"2 Mbit/s\"\nduration = \"1 s\"\nplayout = \"1 s\"";
    let text = SMALL.replace("size = \"195 kB\"", stream).replace("8760 B", "60 kB");
    let folder = Folder::with(&text);
    let [simulated, emulated]: [Value; 2] =
        flows(&[&BOTH[..], &[folder.file()]].concat()).try_into().expect("a flow of each engine");
    for flow in [&simulated, &emulated] {
        assert_eq!((number(flow, "messages"), number(flow, "late_messages")), (32.0, 0.0), "{flow}");
        assert_eq!((number(flow, "bytes_read"), number(flow, "stall_time_ns")), (256_000.0, 0.0), "{flow}");
        assert!(number(flow, "final_lateness_ns") >= 20e6, "{flow}");
        // The last message is due 0.992 s after the first.
        assert!(number(flow, "transfer_time_ns") > 1.0e9, "{flow}");
    }
    // What nothing holds up is written when it is due; a program that waits for a processor is late by as much.
    assert_eq!(number(&simulated, "max_write_lag_ns"), 0.0);
    assert!(number(&emulated, "max_write_lag_ns") < 1e9, "{emulated}");
}

/// Keystrokes and their echoes: between programs of the kernel no answer is back before a round trip is over, nor is one lost.
#[test]
fn messages_are_answered_as_in_their_simulation() {
    if !can_emulate() {
        return;
    }
    let stream = "message = \"64 B\"\nreply = \"200 B\"\ninterval = \"100 ms\"\ncount = 10";
    let folder = Folder::with(&SMALL.replace("size = \"195 kB\"", stream));
    let [simulated, emulated]: [Value; 2] =
        flows(&[&BOTH[..], &[folder.file()]].concat()).try_into().expect("a flow of each engine");
    let least = number(&simulated, "median_response_ns");
    assert!(least >= 40e6 && number(&simulated, "max_response_ns") < least + 1e6, "{simulated}");
    assert_eq!(emulated["outcome"], "completed", "{emulated}");
    // A program that waits for a processor is late by as much.
    assert!((least - 0.1e6..least + 1e9).contains(&number(&emulated, "median_response_ns")), "{emulated}");
    // Nobody answers at the far end of a measurement.
    let (_, err, code) = run(&["measure", folder.file(), "--to", "127.0.0.1:9"]);
    assert!(code == 2 && err.contains("`reply`: answers to messages are simulated and emulated"), "{err}");
}

#[test]
fn a_sweep_keeps_what_it_emulates_by_the_kernel_that_did() {
    if !can_emulate() {
        return;
    }
    let folder = Folder::with(SMALL);
    let (out, swept) = (folder.path("out"), "sweep.path.delay=['5 ms', '6 ms']");
    let sweep =
        ["sweep", folder.file(), "--engine", "simulate,emulate", "--seeds", "2", "--out", &out, "--json"];
    let sweep = [&sweep[..], &TINY[..2], &["--set", swept]].concat();
    let (first, err, code) = run(&sweep);
    assert_eq!(code, 0, "{err}");
    let points = lines(&first);
    assert_eq!(points.len(), 4);
    for point in &points {
        assert_eq!((&point["runs"], &point["outcomes"]["completed"]), (&2.into(), &2.into()), "{point}");
    }
    let (again, err, code) = run(&sweep);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("8 of 8 runs are there"), "{err}");
    assert_eq!(again, first, "real runs are never the same twice: these are those that were kept");
}

#[test]
fn a_sweep_asks_again_for_what_is_void() {
    if !can_emulate() {
        return;
    }
    let folder = Folder::with(SMALL);
    let out = folder.path("out");
    let sweep = ["sweep", folder.file(), "--engine", "emulate", "--seeds", "1", "--out", &out];
    let (_, err, code) = run(&[&sweep[..], &TINY, &HOPELESS].concat());
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("1 emulated runs were void"), "{err}");
    let (status, _, _) = run(&["sweep", "status", &out, "--json"]);
    assert_eq!(lines(&status)[0]["done"], 0, "{status}");
}
