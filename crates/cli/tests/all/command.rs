//! The command as a user meets it: what it prints, where, and how it exits.

use assert_cmd::Command;
use farpath_report::papers::Verdict;
use serde_json::Value;
use std::fs;
use std::path::Path;

fn farpath(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("farpath").expect("built with this test");
    // How long a machine takes must not be seen in what is said.
    command.args(args).env("FARPATH_PROGRESS", "0 s");
    command
}

/// Output, messages and exit code.
fn run(args: &[&str]) -> (String, String, i32) {
    let output = farpath(args).output().expect("the command starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (text(output.stdout), text(output.stderr), output.status.code().expect("it exits"))
}

/// What was printed with `--json`: an object a line.
fn objects(out: &str) -> Vec<Value> {
    out.lines().map(|line| serde_json::from_str(line).expect("one object a line")).collect()
}

/// Asserts that the arguments are refused with every one of these words, and that nothing goes to stdout.
fn refused(args: &[&str], words: &[&str]) {
    let (out, err, code) = run(args);
    assert_eq!(code, 2, "{args:?}: {out}{err}");
    assert_eq!(out, "", "{args:?}");
    assert!(err.starts_with("farpath: ") || err.starts_with("error: "), "{err}");
    for word in words {
        assert!(err.contains(word), "{args:?}: `{word}` is not in: {err}");
    }
}

#[test]
fn tables_are_printed_as_markdown_where_that_is_asked_for() {
    let (text, _, code) = run(&["predict", "geo", "--format", "markdown"]);
    assert_eq!(code, 0);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("**") && lines[0].ends_with("**"), "{text}");
    assert!(lines[2].starts_with("| ") && lines[3].starts_with("| ---"), "{text}");
    let cells = |line: &str| line.matches(" | ").count();
    assert_eq!((cells(lines[2]), cells(lines[2])), (cells(lines[3]), cells(lines[4])), "{text}");
    let (_, error, code) = run(&["predict", "geo", "--format", "markdown", "--json"]);
    assert_eq!(code, 2);
    assert!(error.contains("--json"), "{error}");
}

#[test]
fn run_prints_published_predicted_and_simulated_side_by_side() {
    let (out, err, code) = run(&["run", "noisy-channel", "--seeds", "2"]);
    assert_eq!((code, err.as_str()), (0, ""));
    for word in ["published", "predicted", "simulated", "± 95 %", "timeouts", "50.21", "1943.61"] {
        assert!(out.contains(word), "{word}:\n{out}");
    }
}

#[test]
fn a_file_and_the_shipped_experiment_of_its_name_are_the_same() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/noisy-channel.toml");
    assert_eq!(run(&["predict", file]).0, run(&["predict", "noisy-channel"]).0);
}

#[test]
fn set_changes_one_value_and_leaves_the_sweep() {
    let (out, _, _) = run(&["simulate", "noisy-channel", "--set", "path.loss=1%", "--seeds", "2", "--json"]);
    let line: Value = serde_json::from_str(out.trim()).expect("one object");
    assert_eq!(line["runs"], 2);
    assert_eq!(line["published"]["transfer_time"], 66.83);
    assert!(line["transfer_time_s"]["mean"].as_f64().is_some_and(|mean| mean > 60.0));
}

#[test]
fn equal_seeds_give_equal_bytes_whatever_the_threads() {
    let with = |threads| {
        run(&["simulate", "noisy-channel", "--seeds", "3", "--flows", "--json", "--threads", threads]).0
    };
    assert_eq!(with("1"), with("4"));
}

#[test]
fn results_are_written_where_asked_and_not_over_other_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("results");
    let (_, err, code) = run(&["simulate", "single-drop", "--out", out.to_str().expect("UTF-8")]);
    assert_eq!((code, err.as_str()), (0, ""));
    for file in ["flows.parquet", "series.parquet", "segments.parquet", "provenance.json"] {
        assert!(out.join(file).is_file(), "{file}");
    }
    let other = folder.path().join("other");
    fs::create_dir(&other).expect("made");
    fs::write(other.join("thesis.tex"), "all of it").expect("written");
    refused(&["simulate", "single-drop", "--out", other.to_str().expect("UTF-8")], &["thesis.tex"]);
}

#[test]
fn a_capture_is_written_for_each_simulated_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("packets");
    let (_, _, code) =
        run(&["run", "single-drop", "--seeds", "2", "--capture", out.to_str().expect("UTF-8")]);
    assert_eq!(code, 0);
    for seed in [1, 2] {
        let capture = fs::read(out.join(format!("point-0-seed-{seed}.pcapng"))).expect("written");
        assert_eq!(capture[..4], [0x0a, 0x0d, 0x0d, 0x0a], "a section header block");
    }
}

#[test]
fn bad_input_names_file_key_expected_and_found_and_writes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("written");
        path.to_str().expect("UTF-8").to_owned()
    };
    let not_toml = file("not.toml", "this is = not = toml");
    refused(&["run", &not_toml], &["not.toml", "line 1"]);
    refused(&["run", "missing.toml"], &["missing.toml", "cannot read"]);
    let flags = ["run", "--rtt", "20ms", "--rate", "1Mbit/s", "--size", "1kB", "--save", "-"];
    refused(&flags, &["'-' for '--save <FILE>'", "standard output is not written to"]);
    for flag in ["--out", "--report", "--capture"] {
        refused(&["simulate", "single-drop", flag, "-"], &[flag, "standard output is not written to"]);
    }
    refused(&flags[..5], &["--size is missing", "--delay or --rtt", "given: --rtt, --rate"]);
    let out = folder.path().join("results");
    let set = |change: &str| {
        ["run", "noisy-channel", "--out", out.to_str().expect("UTF-8"), "--set", change].map(str::to_owned)
    };
    for (change, words) in [
        ("sender.stack=riverbd-16", ["sender.stack", "riverbed-16"]),
        ("path.loss=101%", ["path.loss", "found `101%`"]),
        ("receiver.receive.buffer=0 B", ["receiver.receive.buffer", "zero"]),
        ("path.server-link.rate=8 MBps", ["path.server-link.rate", "found `8 MBps`"]),
        ("horizon=20", ["horizon", "expected a duration"]),
        ("sweep.path.lost=[\"1 %\"]", ["path.lost", "did you mean `loss`"]),
        ("sender.rto.mim=1 s", ["sender.rto.mim", "did you mean `min`"]),
    ] {
        let args = set(change);
        refused(&args.each_ref().map(String::as_str), &words);
    }
    assert!(!out.exists(), "nothing is written before the experiment is known to be good");
    if Path::new("/proc/self").exists() {
        refused(&["run", "noisy-channel", "--out", "/proc/results"], &["/proc/results", "cannot write"]);
    }
    let here = not_toml.as_str();
    for (args, verb) in [
        (&["simulate", "single-drop", "--out", here][..], "cannot write results"),
        (&["simulate", "single-drop", "--capture", here], "cannot write captures"),
        (&["sweep", "single-drop", "--out", here], "cannot write a sweep"),
    ] {
        refused(args, &["not.toml", verb, "expected a folder, found a file"]);
    }
    refused(&["run", "noisy-channel", "--engine", "measure"], &["measure"]);
    refused(&["run", "noisy-channel", "--threads", "100000"], &["100000", "1..=1024"]);
    refused(&["stacks", "riverbed"], &["riverbed", "farpath stacks"]);
    refused(&["reproduce", "high-bar"], &["high-bar", "high-ber"]);
    refused(&["paths", "goe"], &["no path is called `goe`; did you mean `geo`? `farpath paths` lists"]);
    refused(&["run", "noisy-chanel"], &["no file or experiment is called", "did you mean `noisy-channel`?"]);
}

#[test]
fn what_ships_is_listed_and_printed() {
    for (command, name) in
        [("stacks", "riverbed-16"), ("paths", "noisy-channel"), ("experiments", "noisy-channel")]
    {
        let (list, _, code) = run(&[command]);
        assert_eq!(code, 0);
        assert!(list.lines().any(|line| line.starts_with(name)), "{list}");
        assert!(run(&[command, name]).0.contains("title = "), "{command}");
    }
    assert!(run(&["stacks", "riverbed-16", "--resolved"]).0.contains("ack_every = 2"));
}

#[test]
fn a_value_that_is_no_number_of_its_kind_is_said_to_be_that() {
    for (args, said) in [
        (&["explain", "--rtt", "-600ms"][..], "invalid value '-600ms' for '--rtt': it is negative"),
        (&["run", "geo", "--seeds", "-1"], "invalid value '-1' for '--seeds': it is negative"),
        (&["run", "geo", "--seeds", "ten"], "invalid value 'ten' for '--seeds <N>': expected a whole number"),
        (&["run", "geo", "--seeds=-1"], "invalid value '-1' for '--seeds <N>': it is negative"),
        (
            &["run", "geo", "--seeds", "99999999999999999999"],
            "invalid value '99999999999999999999' for '--seeds <N>': it is too large",
        ),
    ] {
        refused(args, &[said]);
    }
    // What is no number is an option that nobody knows.
    refused(&["run", "geo", "--sedes", "1"], &["unexpected argument '--sedes'", "--seeds"]);
}

#[cfg(target_os = "linux")]
#[test]
fn this_host_is_a_stack_that_can_be_used_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("host.toml");
    let name = file.to_str().expect("UTF-8");
    let (out, err, code) = run(&["stacks", "--of-this-host", "--out", name]);
    assert_eq!((code, out.as_str()), (0, ""), "{err}");
    let text = fs::read_to_string(&file).expect("it was written");
    assert!(text.contains("base = \"linux-6."), "{text}");
    let stack = format!("sender.stack={name}");
    let (out, err, code) =
        run(&["simulate", "noisy-channel", "--set", "path.loss=0%", "--seeds", "1", "--set", &stack]);
    assert_eq!(code, 0, "{out}{err}");
    refused(&["stacks", "--of-this-host", "--out", name], &["--out", "is there already"]);

    let (out, _, code) = run(&["stacks", "--of-this-host", "--to", "127.0.0.1", "--json"]);
    let found = &objects(&out)[0];
    assert_eq!(
        (code, found["base"].as_str().is_some_and(|base| base.starts_with("linux-6."))),
        (0, true),
        "{out}"
    );
    let mss = found["differences"].as_array().and_then(|all| all.iter().find(|one| one["key"] == "mss"));
    assert!(mss.is_some_and(|mss| mss["from"].as_str().is_some_and(|from| from.contains("lo"))), "{out}");
    refused(&["stacks", "linux-6", "--of-this-host"], &["--of-this-host"]);
    refused(&["stacks", "--to", "127.0.0.1"], &["--of-this-host"]);
    refused(&["stacks", "--of-this-host", "--to", "here"], &["--to", "here"]);
}

#[test]
fn old_names_of_verbs_are_understood_with_a_line_that_says_the_new_one() {
    for (old, new) in [
        (&["agree", "--help"][..], &["compare", "--help"][..]),
        (&["papers", "--list"], &["reproduce", "--list"]),
        (&["driver", "--help"], &["explicit-rate", "driver", "--help"]),
        (&["router", "--help"], &["explicit-rate", "router", "--help"]),
        (&["qos", "decode", "00"], &["explicit-rate", "qos", "decode", "00"]),
    ] {
        let (today, said, code) = run(new);
        let name = new[..new.len() - (old.len() - 1)].join(" ");
        let line = format!(
            "farpath: `farpath {}` is now `farpath {name}`; the next release no longer has the old name\n",
            old[0]
        );
        assert_eq!(run(old), (today, line + &said, code), "{old:?}");
    }
}

#[test]
fn completions_and_manual_pages_know_every_verb() {
    let (bash, _, code) = run(&["generate", "completions", "bash"]);
    assert_eq!(code, 0);
    let folder = tempfile::tempdir().expect("a folder");
    let manual = folder.path().join("man");
    let (_, _, code) = run(&["generate", "manual", manual.to_str().expect("UTF-8")]);
    assert_eq!(code, 0);
    let (help, _, _) = run(&["--help"]);
    let verbs =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let verbs: Vec<&str> = verbs
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(verbs.contains(&"explain"), "{verbs:?}");
    for verb in verbs.into_iter().filter(|verb| *verb != "help") {
        assert!(bash.contains(verb), "{verb}");
        let page = std::fs::read_to_string(manual.join(format!("farpath-{verb}.1"))).expect(verb);
        assert!(page.contains(".SH SYNOPSIS"), "{verb}");
    }
    refused(&["generate", "manual", "/dev/null/man"], &["manual: cannot write /dev/null/man"]);
}

#[test]
fn the_doctor_looks_at_this_machine_and_changes_nothing() {
    let (text, _, code) = run(&["doctor"]);
    assert_eq!(code, 0);
    assert!(text.starts_with("kernel  "), "{text}");
    let (json, _, code) = run(&["doctor", "--clean", "--json"]);
    assert_eq!(code, 0);
    let said: serde_json::Value = serde_json::from_str(&json).expect("one object");
    assert_eq!(said["emulates"], !text.contains("Emulation does not run here."));
    for finding in said["findings"].as_array().expect("findings") {
        assert!(
            ["ok", "limited", "missing"].contains(&finding["state"].as_str().expect("a state")),
            "{finding}"
        );
        let line = format!("{}  ", finding["name"].as_str().expect("a name"));
        assert!(text.lines().any(|it| it.starts_with(&line)), "{line}");
    }
}

#[test]
fn every_claim_of_a_paper_is_listed_with_its_verdict() {
    let (out, err, code) = run(&["reproduce", "radius", "--json"]);
    let lines = objects(&out);
    for number in 1..=29 {
        let claim = format!("R000-{number:02}");
        assert!(lines.iter().any(|line| line["claim"] == claim.as_str()), "{claim}: {err}");
    }
    let (mut known, mut new) = (false, false);
    for line in &lines {
        for key in ["claim", "engine", "published", "reproduced", "rule", "verdict", "recorded", "reason"] {
            assert!(line.get(key).is_some(), "{key}: {line}");
        }
        let verdict = line["verdict"].as_str().expect("text");
        assert!(Verdict::ALL.iter().any(|known| known.name() == verdict), "{verdict}");
        known |= verdict == "differs" && line["recorded"] == "differs";
        new |= verdict != "not run" && line["verdict"] != line["recorded"];
    }
    assert!(known, "its claim file knows of some");
    assert_eq!(code, i32::from(new), "exit 1 exactly where one is not as recorded: {err}");
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("farpath"))
        .args(["stacks", "riverbed-16"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the command starts");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("it exits").code(), Some(0));
}

#[test]
fn formulas_are_listed_described_and_evaluated() {
    let (out, err, code) = run(&["formula"]);
    assert!(
        code == 0 && err.is_empty() && out.contains("pftk-send-rate") && out.contains("Padhye"),
        "{out}{err}"
    );
    let (out, _, code) = run(&["formula", "per-exact"]);
    assert!(code == 0 && out.contains("errors per bit") && out.contains("Gives: fraction"), "{out}");
    let (out, _, code) = run(&["formula", "per-linear,per-exact", "size=1250 B,1500 B", "ber=1e-4,1e-5"]);
    assert!(code == 0 && out.contains("0.698824") && out.contains("0.095163"), "{out}");
    let (out, _, code) = run(&["formula", "window-limit-throughput", "rwnd=64 kB", "rtt=600 ms", "--json"]);
    let row: serde_json::Value = serde_json::from_str(out.trim()).expect("one object");
    assert_eq!((code, row["arguments"]["rtt"].as_f64()), (0, Some(0.6)));
    for (given, words) in [
        (["formula", "per-exactly", "ber=1"], "no formula `per-exactly`"),
        (["formula", "per-exact", "ber=1e-4"], "needs `size`"),
        (["formula", "per-exact", "1e-4"], "expected ARGUMENT=VALUE"),
    ] {
        let (out, err, code) = run(&given);
        assert!((code, out.is_empty()) == (2, true) && err.contains(words), "{out}{err}");
    }
}

#[test]
fn radius_prints_every_timer_as_a_distance() {
    let (out, err, code) = run(&["radius", "opnet-11.5", "windows-2003"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(out, include_str!("../golden/radius.txt"), "{out}");
    let (out, _, code) = run(&["radius", "--json"]);
    assert_eq!(code, 0);
    let lines = objects(&out);
    let of = |stack: &str, radius: &str| {
        lines.iter().find(|line| line["stack"] == stack && line["radius"] == radius).expect("it is there")
    };
    let usable = of("linux-6", "usable");
    assert!(
        usable["rtt_s"].as_f64() < Some(70.0) && usable["rtt_at_most_s"].as_f64() > Some(100.0),
        "{usable}"
    );
    assert!(usable["race"]["early_share"].as_f64() > Some(0.05), "{usable}");
    assert_eq!(of("ns-2.30", "abandoned")["rtt_s"], Value::Null);
    assert_eq!(of("opnet-11.5", "usable")["last_inside"], "sun-earth-l2");
}

#[test]
fn radius_is_checked_by_simulation_and_says_what_it_reaches() {
    let (out, err, code) = run(&["radius", "windows-modern", "--check", "--to", "moon", "--json"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let lines = objects(&out);
    let simulated = lines.iter().find(|line| line["radius"] == "abandoned").expect("it is there");
    assert!((simulated["simulated_rtt_s"].as_f64().expect("a time") - 21.0).abs() < 1e-3, "{simulated}");
    assert_eq!((&simulated["reaches"], &lines[0]["reaches"]), (&true.into(), &false.into()));
}

#[test]
fn timers_of_protocols_are_radii_on_the_same_scale() {
    let (out, err, code) = run(&["radius", "--protocol", "dns", "dtn", "--to", "moon"]);
    assert_eq!((code, err.as_str()), (0, ""));
    for word in [
        "a query is sent again [1]",
        "2.5",
        "749481",
        "Earth-Moon L2",
        "no end",
        "resolv.conf(5)",
        "RFC 5326",
    ] {
        assert!(out.contains(word), "{word}:\n{out}");
    }
    assert!(!out.contains("linux-6"), "{out}");
    let (out, _, code) = run(&["radius", "linux-6", "--json", "--via", "moon", "--protocol", "ppp"]);
    assert_eq!(code, 0);
    let lines = objects(&out);
    let lcp = lines.iter().find(|line| line["timer"] == "lcp").expect("it is listed");
    assert_eq!((lcp["rtt_s"].as_f64(), lcp["beyond"].as_str()), (Some(30.0), Some("ends")));
    // 15 light-seconds, less the way to the Moon.
    let left = lcp["beyond_relay_km"].as_f64().expect("within");
    assert!((left - (15.0 * 299_792.458 - 384_400.0)).abs() < 1e-6);
    assert!(lines.iter().any(|line| line["stack"] == "linux-6" && line["radius"] == "usable"), "{out}");
    refused(&["radius", "--protocol", "dnss"], &["--protocol", "dnss", "dns"]);
    refused(&["radius", "--protocol", "./no.toml"], &["--protocol", "./no.toml"]);
    refused(&["radius", "--via", "mooon"], &["--via", "mooon", "moon"]);
}

#[test]
fn a_relay_between_two_ends_stands_in_an_ellipsoid() {
    let (out, _, code) = run(&["radius", "opnet-11.5", "--to", "sun-earth-l2", "--via", "moon", "--json"]);
    assert_eq!(code, 0);
    let lines = objects(&out);
    let usable = lines.iter().find(|line| line["radius"] == "usable").expect("it is listed");
    let (reach, apart) = (usable["km"].as_f64().expect("ends"), 1_501_500.0);
    let (beyond, aside) = (&usable["relay_at_most"]["beyond_km"], &usable["relay_at_most"]["aside_km"]);
    assert!((beyond.as_f64().expect("there") - (reach - apart) / 2.0).abs() < 1e-3);
    let across = (reach * reach - apart * apart).sqrt() / 2.0;
    assert!((aside.as_f64().expect("there") / across - 1.0).abs() < 1e-12);
}

#[test]
fn radius_refuses_what_is_no_place() {
    refused(&["radius", "linux-7"], &["linux-7", "linux-6"]);
    refused(&["radius", "--to", "mars-nearst"], &["--to", "mars-nearest"]);
    refused(&["radius", "--to", "-5 km"], &["--to", "-5 km", "zero or more"]);
    refused(&["radius", "--to", "12 parsecs"], &["--to", "12 parsecs", "light-seconds"]);
    refused(&["radius", "--medium", "fiber"], &["--medium", "fibre"]);
}

#[test]
fn no_home_is_needed_and_none_is_written_to() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path().join("home");
    fs::create_dir(&home).expect("made");
    for verb in [
        &["run", "noisy-channel", "--seeds=1"][..],
        &["compare", "noisy-channel", "--engine=predict,simulate", "--seeds=1"],
        &["sweep", "noisy-channel", "--seeds=1", "--out=sweep"],
        &["sweep", "status", "sweep"],
        &["explain", "noisy-channel"],
        &["radius", "linux-6"],
        &["doctor"],
        #[cfg(target_os = "linux")]
        &["kernel", "list"],
    ] {
        // A folder of its own, none, and one that takes no files.
        for home in [home.to_str(), None, Some("/proc")] {
            let mut command = farpath(verb);
            command.arg("--json").current_dir(folder.path());
            for name in ["HOME", "XDG_CACHE_HOME", "FARPATH_KERNELS"] {
                command.env_remove(name);
            }
            if let Some(home) = home {
                command.env("HOME", home);
            }
            let output = command.output().expect("it starts");
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "{verb:?} with {home:?}: {said}");
        }
    }
    assert_eq!(fs::read_dir(&home).expect("readable").count(), 0);
}

#[test]
fn traces_are_made_by_their_seed_and_looked_at() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("link.csv");
    let file = file.to_str().expect("UTF-8");
    let make = ["trace", "make", "on-off", "--rate", "8 Mbit/s", "--span", "1 min", "--seed", "2"];
    let (printed, err, code) = run(&make);
    assert_eq!((code, err.as_str()), (0, ""));
    let (out, _, code) = run(&[&make[..], &["--out", file]].concat());
    assert_eq!((out.as_str(), code), ("", 0));
    assert_eq!(fs::read_to_string(file).expect("written"), printed);
    refused(&[&make[..], &["--out", file]].concat(), &["--out", "link.csv"]);
    let (drawn, ..) = run(&["trace", "plot", file]);
    assert!(drawn.contains("8.00 Mbit/s ┤█") && drawn.trim_end().ends_with("60 s"), "{drawn}");
    let (parts, ..) = run(&["trace", "plot", file, "--json"]);
    assert!(parts.contains("\"mean_bit_per_s\":["), "{parts}");
    let (out, ..) = run(&["trace", "info", file, "--json"]);
    let figures = &objects(&out)[0];
    assert_eq!(
        (&figures["kind"], &figures["span_s"], &figures["repeats"]),
        (&"rates".into(), &60.0.into(), &true.into())
    );
    // And a run over it, from a file beside the experiment.
    let experiment = folder.path().join("e.toml");
    let text = "title = \"t\"\n[[path]]\nelement = \"trace-link\"\ntrace = \"link.csv\"\nqueue = \"100 ms\"\n[[path]]\n\
                element = \"delay\"\ndelay = \"10 ms\"\n[transfer]\nsize = \"2 MB\"\n";
    fs::write(&experiment, text).expect("written");
    let experiment = experiment.to_str().expect("UTF-8");
    let (out, err, code) = run(&["simulate", experiment, "--json"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(objects(&out)[0]["transfer_time_s"]["mean"].as_f64().expect("a time") > 2.0, "{out}");
    fs::write(file, "0,8000000\n1,lots\n").expect("written");
    let said = "link.csv: line 2: expected a rate from 0 on, in bit/s or such as `8 Mbit/s`, found `lots`";
    refused(&["simulate", experiment], &["e.toml: path[0].trace", said]);
    refused(&["trace", "info", file], &[said]);
    refused(&["trace", "plot", file], &[said]);
    refused(&["trace", "info", "no-such-file"], &["no-such-file"]);
    refused(
        &["trace", "make", "rain", "--rate", "8 Mbit/s", "--span", "0.5 s"],
        &["--span", "from 1 s to 24 h"],
    );
    refused(&["trace", "make", "snow", "--rate", "8 Mbit/s"], &["snow", "rain"]);
}
