//! Explicit rate on the running kernel, as a user of `farpath emulate` meets it: the driver on both hosts, and a flow router
//! between them.
#![cfg(all(target_os = "linux", feature = "driver"))]

use crate::support::{Folder, can_emulate, flows, lines, refused, run};
use farpath_testing::{Need, skip};
use serde_json::Value;

const FILE: &str = r#"
title = "Explicit rate"
seed = 1

[[path]]
element = "flow-router"
name = "router"
rate = "20 Mbit/s"
queue = "150 kB"

[[path]]
element = "delay"
delay = "20 ms"

[sender]
stack = "linux-6"
explicit_rate.wanted = "100 Mbit/s"

[receiver]
stack = "linux-6"
explicit_rate.wanted = "100 Mbit/s"

[transfer]
size = "1 MB"
opener = "sender"

[emulate]
lateness = "1 s"
processor_wait = "100 %"
"#;

const BOTH: [&str; 4] = ["run", "--engine", "simulate,emulate", "--json"];

fn skipped() -> bool {
    let missing = farpath_driver::missing();
    if missing.is_empty() {
        return !can_emulate();
    }
    skip(Need::Bpf, farpath_driver::DriverError::Missing(missing));
    true
}

/// The two answers, the simulated one first.
fn both(file: &str, more: &[&str]) -> [Value; 2] {
    flows(&[&BOTH[..], &["--flows", file], more].concat()).try_into().expect("a flow of each engine")
}

#[test]
fn a_transfer_asks_and_is_granted_as_in_its_simulation() {
    if skipped() {
        return;
    }
    let folder = Folder::with(FILE);
    for ip in ["emulate.ip=4", "emulate.ip=6"] {
        let [simulated, emulated] = both(folder.file(), &["--set", ip]);
        for key in ["outcome", "bytes_read", "explicit_rate", "granted_bit_per_s", "syns", "synacks"] {
            assert_eq!(simulated[key], emulated[key], "{key}: {ip}");
        }
        assert_eq!(emulated["granted_bit_per_s"], 19_200_000.0);
        assert_eq!(emulated["grade"]["malformed"], 0, "structures are known: {ip}");
        // What the driver says in packets of its own, more than these, is neither data nor a retransmission; a kernel whose
        // program is held up sends a short segment now and then.
        let again = |flow: &Value| flow["retransmissions"].as_f64().expect("counted");
        let new = |flow: &Value| flow["data_segments"].as_f64().expect("counted") - again(flow);
        let more = new(&emulated) - new(&simulated);
        assert!((0.0..5.0).contains(&more), "{more} segments more: {ip}");
    }
    let (out, _, code) = run(&[&BOTH[..], &["--routers", folder.file()]].concat());
    assert_eq!(code, 0);
    let rows = lines(&out);
    let decided = |engine: &str, key: &str| {
        let row = rows.iter().find(|row| row["engine"] == engine && row["direction"] == "forward");
        row.expect("the router has seen it")[key].as_u64().expect("counted")
    };
    for key in ["refused", "missed", "closed", "unknown"] {
        assert_eq!(decided("simulate", key), decided("emulate", key), "{key}");
    }
    // Every 128 packets of 691, and in the handshake.
    assert!(decided("emulate", "requests") >= 5);
}

#[test]
fn at_a_low_rate_a_policer_drops_nothing_but_of_what_linux_does_not_pace() {
    if skipped() {
        return;
    }
    let folder = Folder::with(FILE);
    // Two packets are all that it tolerates. A kernel that answers for the driver sends 40 to 80 of these at once.
    let [_, emulated] =
        both(folder.file(), &["--set", "path.router.rate=1 Mbit/s", "--set", "transfer.size=200 kB"]);
    assert_eq!(emulated["outcome"], "completed");
    let policed = emulated["drops_data_direction"].as_f64().expect("counted");
    // Ten are not paced; a program that is held up may send a few close together.
    assert!(policed < 20.0, "{policed} of 139 packets");
}

#[test]
fn agree_holds_a_grant_against_its_simulation() {
    if skipped() {
        return;
    }
    let folder = Folder::with(FILE);
    let sweep = r#"sweep={"path.router.blind" = [false, true]}"#;
    let arguments = ["compare", "--engine", "simulate,emulate", "--json", folder.file(), "--set", sweep];
    let (out, err, code) = run(&arguments);
    assert_eq!(code, 0, "{err}");
    let rows = lines(&out);
    let times = rows.iter().find(|row| row["quantity"] == "transfer_time").expect("they are compared");
    let mut points: Vec<_> =
        times["points"].as_array().expect("a list").iter().map(|one| &one["point"]).collect();
    points.sort_by_key(|point| point.as_u64());
    assert_eq!(points, [0, 1], "with a grant and without one");
}

/// The file goes in the first round trip, of a second, or has to wait another one for a window that is scaled.
#[test]
fn an_early_window_saves_a_round_trip_in_both() {
    if skipped() {
        return;
    }
    let folder = Folder::with(FILE);
    // A kernel that is held up on a busy machine sends what it has paced in bunches. Policed, these are dropped, and their repair
    // takes the round trip that was saved.
    let roomy = ["--set", "path.router.police=false", "--set", "path.router.queue=1 MB"];
    let far = [&["--set", "path.delay=500 ms", "--set", "transfer.size=500 kB"], &roomy[..]].concat();
    let times = |early: &str| {
        both(folder.file(), &[&far[..], &["--set", early]].concat())
            .map(|flow| flow["transfer_time_ns"].as_f64().expect("it is over"))
    };
    let [early, late] =
        ["sender.explicit_rate.early_window=true", "sender.explicit_rate.early_window=false"].map(times);
    for (early, late) in early.into_iter().zip(late) {
        assert!(early < late, "{early} ns, and {late} without it");
    }
}

#[test]
fn flows_share_a_router_with_each_other_and_with_one_that_does_not_ask() {
    if skipped() {
        return;
    }
    let folder = Folder::with(&format!(
        "{FILE}\n[[flow]]\n[[flow]]\n[[flow]]\nsender.explicit_rate.wanted = \"none\"\nsender.congestion.control = \"reno\"\n"
    ));
    let (out, err, code) = run(&["emulate", "--flows", "--json", folder.file()]);
    assert_eq!(code, 0, "{err}");
    let rows = lines(&out);
    let said: Vec<Option<&str>> = rows.iter().map(|row| row["explicit_rate"].as_str()).collect();
    assert_eq!(said, [Some("granted"), Some("granted"), None]);
    assert!(rows.iter().all(|row| row["outcome"] == "completed"), "{rows:?}");
}

#[test]
fn without_a_router_that_knows_it_is_plain_tcp() {
    if skipped() {
        return;
    }
    let folder = Folder::with(FILE);
    for (change, said) in [
        ("path.router.blind=true", "no router"),
        ("receiver.explicit_rate.wanted=none", "peer does not answer"),
    ] {
        let both = both(folder.file(), &["--set", change]);
        assert!(both.iter().all(|flow| flow["explicit_rate"] == said), "{change}: {both:?}");
    }
}

#[test]
fn what_the_driver_cannot_do_is_refused_before_anything_is_written() {
    if skipped() {
        return;
    }
    let folder = Folder::with(FILE);
    let results = folder.path("results");
    for (change, words) in [
        (
            "sender.explicit_rate={type=\"composite\",wanted=\"9 Mbit/s\",guaranteed=\"1 Mbit/s\"}",
            ["explicit_rate.type", "composite"],
        ),
        ("emulate.clock=virtual", ["explicit_rate.wanted", "emulate.clock"]),
    ] {
        refused(&["emulate", folder.file(), "--out", &results, "--set", change], &words);
    }
    assert!(!std::path::Path::new(&results).exists());
}
