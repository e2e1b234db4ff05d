//! `farpath emulate --clock virtual` as a user meets it: without a kernel, with one that dies or hangs, and with a real one
//! where one was built.
#![cfg(target_os = "linux")]

mod cure;

use crate::support::kills::Kills;
use assert_cmd::Command;
use farpath_testing::{Need, skip};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Output, Stdio};

/// 200 kB over a tenth of a light-second each way, with a loss.
const FAR: &str = r#"
title = "Far"
horizon = "1000 s"

[[path]]
element = "link"
rate = "10 Mbit/s"
queue = "1 MB"

[[path]]
element = "delay"
delay = "0.1 light-seconds"

[[path]]
element = "loss"
rate = { forward = "1 %", reverse = "0 %" }

[sender]
stack = "reno-sack"

[receiver]
stack = "reno-sack"

[transfer]
size = "200 kB"
"#;

struct Room(tempfile::TempDir);

impl Room {
    /// A folder with the experiment, and no kernels.
    fn new() -> Room {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("far.toml"), FAR).unwrap();
        Room(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Puts a program in the place of a kernel.
    fn with_kernel(self, script: &str) -> Room {
        self.give_kernel(script);
        self
    }

    fn give_kernel(&self, script: &str) {
        let kernel = self.path().join("kernels/fake");
        fs::create_dir_all(&kernel).unwrap();
        let about = r#"{"name":"fake","release":"6.0.0","hz":250,"source":"-","compiler":"-","recipe":"-"}"#;
        fs::write(kernel.join("about.json"), about).unwrap();
        fs::write(kernel.join("linux"), format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(kernel.join("linux"), fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn farpath(&self, args: &[&str]) -> Output {
        let mut command = Command::cargo_bin("farpath").unwrap();
        command.current_dir(self.path()).env("FARPATH_KERNELS", "kernels");
        // How long a machine takes must not be seen in what is said.
        command.args(args).env("FARPATH_PROGRESS", "0 s").output().unwrap()
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn flow(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(output)))
}

#[test]
fn without_a_kernel_the_one_command_is_named() {
    let room = Room::new();
    let output = room.farpath(&["emulate", "far.toml", "--clock", "virtual"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        stderr(&output),
        "farpath: far.toml: no kernel is built; `farpath kernel build` makes one, in some four minutes of one core\n"
    );
    let list = room.farpath(&["kernel", "list"]);
    assert!(String::from_utf8_lossy(&list.stdout).contains("`farpath kernel build` makes one"));
}

#[test]
fn a_kernel_is_of_virtual_time_only() {
    let output = Room::new().farpath(&["emulate", "far.toml", "--clock", "real", "--kernel", "fake"]);
    assert_eq!(output.status.code(), Some(2));
    let error = stderr(&output);
    assert!(error.contains("emulate.kernel"), "{error}");
    assert!(error.contains("expected `emulate.clock = \"virtual\"`"), "{error}");
}

#[test]
fn another_name_is_answered_with_those_that_are_there() {
    let output =
        Room::new().with_kernel("exit 0").farpath(&["emulate", "far.toml", "--kernel", "6.12.1-hz250"]);
    assert_eq!(output.status.code(), Some(2));
    let error = stderr(&output);
    assert!(error.contains("no kernel is called `6.12.1-hz250`; there are: fake"), "{error}");
}

#[test]
fn a_kernel_of_before_computing_could_cost_time_is_named() {
    let args = ["shell", "geo", "--clock", "virtual", "--cpu-cost", "1", "--", "true"];
    let output = Room::new().with_kernel("exit 0").farpath(&args);
    assert_eq!(output.status.code(), Some(2));
    let error = stderr(&output);
    assert!(error.contains("kernel `fake` was built by an older farpath"), "{error}");
}

#[test]
fn a_kernel_that_panics_makes_a_void_run_with_its_last_words() {
    let room = Room::new().with_kernel("echo 'Kernel panic - not syncing: on purpose'; kill -ABRT $$");
    let output = room.farpath(&["emulate", "far.toml", "--clock", "virtual", "--flows", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let flow = flow(&output);
    assert_eq!(flow["outcome"], "void");
    let detail = flow["detail"].as_str().unwrap();
    assert!(detail.starts_with("the guest was ended by signal 6; the end of its console:\n"), "{detail}");
    assert!(detail.contains("\nKernel panic - not syncing: on purpose"), "{detail}");
    assert!(stderr(&output).contains("1 runs in virtual time are void"));
}

#[test]
fn a_kernel_that_hangs_is_given_up_with_all_that_it_started() {
    let room = Room::new().with_kernel("echo hanging; sleep 1000 & echo $! > pid; wait");
    let late = ["--set", "emulate.give_up_after=1 s", "--flows", "--json"];
    let output = room.farpath(&[&["emulate", "far.toml", "--clock", "virtual"], &late[..]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let flow = flow(&output);
    let detail = flow["detail"].as_str().unwrap();
    let hung = "the guest did not come to its end in time; the end of its console:\n";
    assert!(detail.starts_with(hung) && detail.contains("\nhanging"), "{detail}");
}

/// Names of the folders in `folder`.
fn folders_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "another process takes its time")]
fn what_a_killed_run_leaves_in_the_temporary_directory_goes_with_the_next_one() {
    // It says in its folder that it runs, and ends with the process that has started it.
    let room = Room::new().with_kernel(": > started; while kill -0 $PPID 2>/dev/null; do sleep 0.1; done");
    let temporary = room.path().join("temporary");
    fs::create_dir(&temporary).unwrap();
    let farpath = || {
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("farpath"));
        command.current_dir(room.path()).env("FARPATH_KERNELS", room.path().join("kernels"));
        command.env("TMPDIR", &temporary).stdout(Stdio::null()).stderr(Stdio::null());
        command.args(["emulate", "far.toml", "--clock", "virtual"]);
        command
    };
    let start = || {
        let before = folders_in(&temporary);
        let mut child = farpath().spawn().unwrap();
        let started = |name: &String| !before.contains(name) && temporary.join(name).join("started").exists();
        while !folders_in(&temporary).iter().any(started) {
            assert_eq!(child.try_wait().unwrap(), None, "it ended before it could be killed");
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        child
    };
    let mut killed = start();
    killed.kill().and_then(|()| killed.wait()).unwrap();
    let left = folders_in(&temporary);
    assert_eq!(left.len(), 1, "{left:?}");
    let mut living = start();
    let of_living = folders_in(&temporary);
    assert!(!of_living.contains(&left[0]), "{of_living:?}");
    room.give_kernel("exit 0");
    assert_eq!(farpath().status().unwrap().code(), Some(1), "a void run");
    assert_eq!(folders_in(&temporary), of_living, "its own is gone, and that of the living one is there");
    living.kill().and_then(|()| living.wait()).unwrap();
}

#[test]
fn bad_recipes_are_refused_before_anything_is_fetched() {
    let room = Room::new();
    for (args, expected) in [
        (["--hz", "42"], "--hz: expected 100, 250 or 1000, found 42"),
        (["--source", "far.toml"], "expected a folder with the sources of a Linux kernel: it is no folder"),
        (["--source", "."], "there is no arch/um/Kconfig"),
    ] {
        let output = room.farpath(&[&["kernel", "build"], &args[..]].concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
        assert!(!room.path().join("kernels").exists());
    }
}

#[test]
fn sources_that_cannot_be_had_are_told_with_what_helps() {
    let room = Room::new();
    let apt = room.path().join("apt-get");
    fs::write(&apt, "#!/bin/sh\necho 'E: No packages found' >&2; exit 100\n").unwrap();
    fs::set_permissions(&apt, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", room.path().display(), std::env::var("PATH").unwrap());
    let mut command = Command::cargo_bin("farpath").unwrap();
    command.env("PATH", path).env("FARPATH_KERNELS", room.path().join("kernels"));
    let output = command.args(["kernel", "build"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let error = stderr(&output);
    assert!(error.contains("no package linux-source-6.12 here: as root, `apt-get update`"), "{error}");
    assert!(
        error.starts_with("farpath: fetching the sources\n"),
        "each step is said, also where nobody sees a bar: {error}"
    );
    assert_eq!(fs::read_dir(room.path().join("kernels")).unwrap().count(), 0, "nothing is left of it");
}

/// Whether there is a kernel for virtual time: `make test` builds one for its tests.
fn has_kernel() -> bool {
    let list = Command::cargo_bin("farpath").unwrap().args(["kernel", "list", "--json"]).output().unwrap();
    let has = list.stdout.starts_with(b"{");
    if !has {
        let why = "no kernel is built here for virtual time; `farpath kernel build` makes one";
        skip(Need::Virtual, why);
    }
    has
}

#[test]
fn a_packet_script_passes_on_a_kernel_as_on_its_simulation() {
    if !has_kernel() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // A loss that SACK reports, and a read that waits: times to a tick of 4 ms.
    let rest = "+.1 < . 1:1(0) ack 1 win 320 <sack 1001:4001,nop,nop>\n+0~+.01 > . 1:1001(1000) ack 1\n\
        +0 %{ assert tcpi_ca_state == TCP_CA_Recovery, tcpi_ca_state }%\n+.1...0.2 read(4, ..., 1000) = 500\n\
        +.1 < P. 1:501(500) ack 10001 win 320\n+0 > . 10001:10001(0) ack 501\n";
    let wrong = "+0 write(4, ..., 100) = 100\n+0 > P. 10001:10102(101) ack 1\n";
    for (name, text) in [("a.pkt", rest), ("b.pkt", wrong)] {
        fs::write(folder.path().join(name), format!("{}{text}", crate::script::GOOD)).unwrap();
    }
    let verdicts = |more: &[&str]| -> Vec<(Value, Value, Value)> {
        let mut command = Command::cargo_bin("farpath").unwrap();
        command.args(["script", ".", "--json"]).args(more).current_dir(folder.path());
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        let read = |line: &str| {
            let verdict: Value = serde_json::from_str(line).unwrap();
            (verdict["outcome"].clone(), verdict["line"].clone(), verdict["expected"].clone())
        };
        String::from_utf8_lossy(&output.stdout).lines().map(read).collect()
    };
    let of_kernel = verdicts(&["--engine", "emulate", "--repeat", "3"]);
    assert_eq!((&of_kernel[0].0, &of_kernel[1].0), (&Value::from("ok"), &Value::from("fails")));
    let simulated = verdicts(&[]);
    assert_eq!(of_kernel[0], simulated[0]);
    assert_eq!((&of_kernel[1].0, &of_kernel[1].1), (&simulated[1].0, &simulated[1].1));
}

#[test]
fn ctrl_c_tells_how_often_a_packet_script_has_passed() {
    use nix::sys::signal::{Signal, kill};
    use std::io::{BufRead, BufReader, Read};
    if !has_kernel() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.pkt", "b.pkt"] {
        fs::write(folder.path().join(name), crate::script::GOOD).unwrap();
    }
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("farpath"))
        .args(["script", ".", "--engine", "emulate", "--repeat", "1000000"])
        .current_dir(folder.path())
        .env("FARPATH_PROGRESS", "10 ms")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let progress = BufReader::new(child.stderr.take().unwrap());
    // `farpath: after 0 s: 12 of 2000000 plays of scripts`
    let begun = |line: &str| line.contains(" of 2000000 plays") && !line.contains(": 0 of");
    let mut lines = progress.lines();
    assert!(lines.any(|line| begun(&line.unwrap())));
    kill(nix::unistd::Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    // It is read to its end: nobody waits for somebody to read.
    lines.for_each(drop);
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{out}");
    let row = |name: &str| out.lines().find(|line| line.starts_with(name)).map(str::to_owned).unwrap();
    assert!(row("a.pkt").contains("  ok, ") && row("a.pkt").ends_with(" times"), "{out}");
    assert!(row("b.pkt").ends_with("  not played"), "{out}");
    assert!(out.ends_with(": 1 ok, 0 fail, 0 cannot run, 1 not played\n"), "{out}");
}

#[test]
fn what_a_guest_told_of_packet_scripts_before_it_died_is_told() {
    let verdict = r#"{"outcome":"Passed","segments":[],"printed":"","duration":7,"came":{}}"#;
    let told = format!("{{\"number\":0,\"verdict\":{verdict},\"left\":0}}");
    let room =
        Room::new().with_kernel(&format!("echo farpath-program-o$(echo '{told}' | base64 -w 0)\nexit 3"));
    for name in ["a.pkt", "b.pkt"] {
        fs::write(room.path().join(name), crate::script::GOOD).unwrap();
    }
    let mut command = Command::cargo_bin("farpath").unwrap();
    // Both are played by one guest.
    command.current_dir(room.path()).envs([("FARPATH_KERNELS", "kernels"), ("RAYON_NUM_THREADS", "1")]);
    let output =
        command.args(["script", "a.pkt", "b.pkt", "--engine", "emulate", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let first: Value = serde_json::from_slice(&output.stdout).expect("one line");
    assert_eq!((&first["script"], &first["outcome"]), (&"a.pkt".into(), &"ok".into()));
    assert_eq!(first["passed"], 1);
    assert!(stderr(&output).contains("the guest died: exit status: 3"), "{}", stderr(&output));
}

#[test]
fn a_run_repeats_byte_by_byte_and_agrees_with_its_simulation() {
    if !has_kernel() {
        return;
    }
    let room = Room::new();
    let run = |args: &[&str]| {
        let mut command = Command::cargo_bin("farpath").unwrap();
        let output = command.current_dir(room.path()).args(args).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        flow(&output)
    };
    let captured = |folder: &str| {
        let flow =
            run(&["emulate", "far.toml", "--clock", "virtual", "--capture", folder, "--flows", "--json"]);
        let capture = room.path().join(folder).join("point-0-seed-1-emulate.pcapng");
        (flow, fs::read(capture).unwrap())
    };
    let (flow, capture) = captured("once");
    assert_eq!(flow["outcome"], "completed");
    assert!(captured("again") == (flow.clone(), capture), "a seed repeats");
    // The same loss, and nothing late. What is left is how they repair it: 52 ms of some nine round trips of 0.2 s, seen.
    let simulated = run(&["simulate", "far.toml", "--seeds", "1", "--flows", "--json"]);
    let seconds = |flow: &Value| flow["transfer_time_ns"].as_f64().unwrap() / 1e9;
    let (of_kernel, of_simulator) = (seconds(&flow), seconds(&simulated));
    assert!((of_kernel - of_simulator).abs() < 0.1, "{of_kernel} s, simulated {of_simulator} s");
    assert_eq!(flow["retransmissions"], simulated["retransmissions"]);
}

/// Five of the points of `experiments/truth.toml`, configured like the 1990s and with Linux's defaults.
const TRUTH: &str = r#"
title = "Truth"
horizon = "10000 s"

[[path]]
element = "link"
rate = "10 Mbit/s"
queue = "unlimited"

[[path]]
element = "loss"
rate = { forward = "0 %", reverse = "0 %" }

[[path]]
element = "delay"
delay = "1 ms"

[sender]
stack = "reno-sack"
send.window_scaling = true
send.buffer = "32 MiB"
rto.max = "120 s"

[receiver]
stack = "reno-sack"
send.window_scaling = true
rto.max = "120 s"

[transfer]
size = "392 kB"
opener = "receiver"

[emulate]
clock = "virtual"

[sweep.zip]
"path.delay" = ["1 ms", "20 ms", "100 ms", "280 ms", "45 s"]
"path.loss.rate.forward" = ["0.1 %", "0.1 %", "0 %", "0 %", "0.01 %"]
"receiver.receive.buffer" = ["65408 B", "8192 B", "65408 B", "1 MiB", "65408 B"]
"path.link.rate" = ["10 Mbit/s", "1 Mbit/s", "1 Gbit/s", "100 kbit/s", "100 Mbit/s"]
"#;

/// The error of the simulated transfer time at each point of `experiment`, relative to the kernel's.
fn errors(experiment: &str, more: &[&str]) -> Vec<f64> {
    let room = Room::new();
    fs::write(room.path().join("truth.toml"), experiment).unwrap();
    let mut command = Command::cargo_bin("farpath").unwrap();
    command.current_dir(room.path()).args([
        "compare",
        "truth.toml",
        "--engine",
        "simulate,emulate",
        "--json",
    ]);
    let output = command.args(more).output().unwrap();
    let first = String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned();
    let times: Value = serde_json::from_str(&first).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    assert_eq!(times["quantity"], "transfer_time");
    times["points"].as_array().unwrap().iter().map(|point| point["error"].as_f64().unwrap()).collect()
}

#[test]
fn the_simulator_tells_what_the_kernel_does_from_a_millisecond_to_45_seconds() {
    if !has_kernel() {
        return;
    }
    // Found: 0.01 %, and 0.05 % at 1 ms by Linux's defaults, by what two devices cost. None is at 1 s: the SYN/ACK's timer and the
    // client's second SYN are 12 ms apart there, and the kernel's wheel, which can be behind, decides who begins with one segment.
    for stack in ["reno-sack", "linux-6"] {
        let ends = ["sender", "receiver"].map(|end| format!("{end}.stack={stack}"));
        let errors = errors(TRUTH, &["--set", &ends[0], "--set", &ends[1]]);
        assert_eq!(errors.len(), 5);
        assert!(errors.iter().all(|error| error.abs() < 0.002), "{stack}: {errors:?}");
    }
}

/// Six of the points of `experiments/truth-default.toml`: hosts as they are by default.
const BY_DEFAULT: &str = r#"
title = "By default"
horizon = "10000 s"

[[path]]
element = "link"
rate = { forward = "100 Mbit/s", reverse = "100 Mbit/s" }
queue = { forward = "125 kB", reverse = "125 kB" }

[[path]]
element = "duplicate"
share = { forward = "0 %", reverse = "0 %" }

[[path]]
element = "reorder"
share = { forward = "0 %", reverse = "0 %" }
extra_delay = "6 ms"

[[path]]
element = "delay"
delay = "20 ms"

[sender]
stack = "linux-6"

[receiver]
stack = "linux-6"

[transfer]
size = "10 MB"
opener = "receiver"

[emulate]
clock = "virtual"

[sweep.zip]
"path.link.rate.forward" = ["100 Mbit/s", "100 Mbit/s", "100 Mbit/s", "20 Mbit/s", "20 Mbit/s", "20 Mbit/s"]
"path.link.rate.reverse" = ["100 Mbit/s", "100 Mbit/s", "100 Mbit/s", "20 Mbit/s", "20 Mbit/s", "500 kbit/s"]
"path.link.queue.forward" = ["125 kB", "125 kB", "125 kB", "100 kB", "600 kB", "400 kB"]
"path.duplicate.share.forward" = ["0 %", "0 %", "0 %", "1 %", "0 %", "0 %"]
"path.reorder.share.forward" = ["0 %", "0 %", "0 %", "0 %", "1 %", "0 %"]
"path.delay" = ["20 ms", "40 ms", "75 ms", "50 ms", "60 ms", "80 ms"]
"#;

#[test]
fn hosts_by_default_do_what_the_kernel_does_over_shallow_queues_and_odd_packets() {
    if !has_kernel() {
        return;
    }
    // Found: within 0.8 % of the time. Before reordering was told from an ACK that advances and reports at once, the first three were
    // 19 to 22 % too fast.
    let errors = errors(BY_DEFAULT, &[]);
    assert_eq!(errors.len(), 6);
    assert!(errors.iter().all(|error| error.abs() < 0.02), "{errors:?}");
}

/// A command in a guest writes what nobody else sees, waits for an hour in a moment, and does the same each time.
#[test]
fn programs_of_the_user_run_in_virtual_time_and_repeat() {
    if !has_kernel() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let written = folder.path().join("written");
    let program = env!("CARGO_BIN_EXE_farpath");
    let shell = |number: u32, seed: &str| {
        let capture = folder.path().join(format!("{number}.pcapng"));
        let command = format!(
            "echo private > {0}; cat {0}; {program} measure far:7000 --echoes 10 --json; sleep 3600; exit 7",
            written.display()
        );
        let serve = format!("{program} serve --bind 10.0.0.2:7000");
        let output = Command::cargo_bin("farpath")
            .unwrap()
            .args(["shell", "--delay", "2 s", "--rate", "1 Mbit/s", "--clock", "virtual", "--seed", seed])
            .args(["--far", &serve, "--far-port", "7000", "--capture", capture.to_str().unwrap()])
            .args(["--", "sh", "-c", &command])
            .env("FARPATH_PROGRESS", "0 s")
            .output()
            .unwrap();
        (output, fs::read(capture).unwrap())
    };
    let (first, capture) = shell(1, "3");
    let out = String::from_utf8_lossy(&first.stdout).into_owned();
    assert_eq!(first.status.code(), Some(7), "{out}{}", stderr(&first));
    assert!(out.starts_with("private\n") && out.contains("\"round_trip\""), "{out}");
    assert!(stderr(&first).contains("of virtual time"), "{}", stderr(&first));
    assert!(!written.exists(), "the host's files are not the guest's to write");
    let (again, same) = shell(2, "3");
    assert_eq!((again.status.code(), same == capture), (Some(7), true));
    let (_, other) = shell(3, "4");
    assert!(other != capture, "another seed is another run");
}

#[test]
fn computing_takes_the_time_that_it_is_said_to_cost() {
    if !has_kernel() {
        return;
    }
    // How long a loop of a shell takes, as the guest's clock has it.
    let loop_of = |cost: &str| {
        let command =
            "a=$(date +%s%N); i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo $(($(date +%s%N) - a))";
        let output = Command::cargo_bin("farpath")
            .unwrap()
            .args(["shell", "geo", "--clock", "virtual", "--cpu-cost", cost, "--", "sh", "-c", command])
            .output()
            .unwrap();
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{out}{}", stderr(&output));
        out.trim().parse::<f64>().unwrap_or_else(|_| panic!("{out}{}", stderr(&output)))
    };
    let [free, once, tenfold] = ["0", "1", "10"].map(loop_of);
    // Two processes are started for `date`, which take some system calls and no more.
    assert!(free < once / 10.0, "{free} and {once} ns");
    // The host's processors do not take the same time twice.
    assert!((3.0..30.0).contains(&(tenfold / once)), "{once} and {tenfold} ns");
}

#[test]
fn what_computing_costs_is_a_factor_and_of_virtual_time() {
    for (given, word) in [
        (
            &["--cpu-cost", "1"][..],
            "emulate.cpu_cost (--set): in real time programs take the time that they take",
        ),
        (&["--clock", "virtual", "--cpu-cost", "-1"], "expected a factor from 0 to 1000, found -1"),
        (&["--clock", "virtual", "--cpu-cost", "nan"], "expected a factor from 0 to 1000, found NaN"),
    ] {
        let args = ["shell", "geo"].iter().chain(given).chain(&["--", "true"]);
        let output = Command::cargo_bin("farpath").unwrap().args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{given:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(word), "{given:?}: {}", stderr(&output));
    }
}

/// The programs of this experiment, in virtual time.
fn executed(folder: &Path, text: &str, more: &[&str]) -> Output {
    let file = folder.join("programs.toml");
    fs::write(&file, text).unwrap();
    let mut command = Command::cargo_bin("farpath").unwrap();
    command.args(["exec", file.to_str().unwrap(), "--clock", "virtual"]).args(more).output().unwrap()
}

/// Both ends of twenty downloads at once, in a language whose runtime has threads, timers and a scheduler of its own.
const GO: &str = r#"
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

func main() {
	if os.Args[1] == "serve" {
		listener, err := net.Listen("tcp", ":7000")
		for err == nil {
			var conn net.Conn
			if conn, err = listener.Accept(); err == nil {
				go func() {
					defer conn.Close()
					size := make([]byte, 1)
					if _, err := io.ReadFull(conn, size); err == nil {
						conn.Write(make([]byte, 10000*int(size[0])))
					}
				}()
			}
		}
		panic(err)
	}
	start := time.Now()
	var wait sync.WaitGroup
	took := make([]time.Duration, 20)
	for i := range took {
		wait.Add(1)
		go func() {
			defer wait.Done()
			conn, err := net.DialTimeout("tcp", "far:7000", time.Hour)
			if err != nil {
				panic(err)
			}
			conn.Write([]byte{byte(i + 1)})
			n, err := io.Copy(io.Discard, conn)
			if err != nil || n != int64(10000*(i+1)) {
				panic(fmt.Sprint(n, err))
			}
			took[i] = time.Since(start)
		}()
	}
	wait.Wait()
	fmt.Println(took)
}
"#;

/// Over a round trip of 45 s two runs with the same seed give the same packets, and take as long to the nanosecond.
#[test]
#[ignore = "compiles what a Go program needs of Go's library: half a minute"]
fn a_go_program_runs_in_virtual_time_and_repeats() {
    if !has_kernel() {
        return;
    }
    let go = ["go", "/usr/local/go/bin/go"].into_iter().find(|go| {
        std::process::Command::new(go).arg("version").output().is_ok_and(|output| output.status.success())
    });
    let Some(go) = go else {
        return skip(Need::Go, "no go, to compile a program of which it is the language");
    };
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("pair.go"), folder.path().join("pair"));
    fs::write(&source, GO).unwrap();
    let mut build = std::process::Command::new(go);
    build
        .args(["build", "-o"])
        .args([&program, &source])
        .env("GOTOOLCHAIN", "local")
        .current_dir(folder.path());
    let built = build.output().unwrap();
    assert!(built.status.success(), "{}", stderr(&built));
    let shell = |number: u32, seed: &str| {
        let capture = folder.path().join(format!("{number}.pcapng"));
        let far = format!("{} serve", program.display());
        let output = Command::cargo_bin("farpath")
            .unwrap()
            .args(["shell", "--rtt", "45 s", "--rate", "1 Mbit/s", "--loss", "1 %", "--clock", "virtual"])
            .args([
                "--seed",
                seed,
                "--far",
                &far,
                "--far-port",
                "7000",
                "--capture",
                capture.to_str().unwrap(),
            ])
            .args(["--", program.to_str().unwrap(), "fetch"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        (String::from_utf8(output.stdout).unwrap(), fs::read(capture).unwrap())
    };
    let (first, capture) = shell(1, "3");
    let (again, same) = shell(2, "3");
    assert_eq!((again, same == capture), (first.clone(), true));
    let (other, _) = shell(3, "4");
    assert_ne!(other, first, "another seed is another run");
}

/// Half a minute, which is nothing there.
#[test]
fn a_program_that_waits_for_a_port_in_vain_is_named() {
    if !has_kernel() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text = "title = \"t\"\npath = \"geo\"\n[[program]]\nwait_for_port = 7000\ncommand = \"true\"\n";
    let output = executed(folder.path(), text, &["--set", "horizon=60 s"]);
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{out}{}", stderr(&output));
    assert!(out.contains("nothing on the far host listens at port 7000 after 30 s"), "{out}");
}

/// The process by which a guest's kernel finds out what ptrace can do stayed, stopped, where the kernel was killed meanwhile.
#[test]
fn nothing_is_left_of_a_guest_that_is_killed_at_any_moment() {
    if !has_kernel() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // Waiting takes no time here: what goes on computes.
    let spin = "while :; do :; done";
    let file = folder.path().join("programs.toml");
    let text = format!(
        "title = \"t\"\npath = \"geo\"\n[[program]]\nhost = \"far\"\nbackground = true\ncommand = [\"sleep\", \"1000\"]\n\
         [[program]]\ncommand = [\"sh\", \"-c\", \"{spin}\"]\n"
    );
    fs::write(&file, text).unwrap();
    let shell = ["shell", "geo", "--quiet", "--clock", "virtual", "--far", "sleep 1000", "--"];
    let of_file = ["exec", file.to_str().unwrap(), "--clock", "virtual"];
    for arguments in [&[&shell[..], &["sh", "-c", spin]].concat(), &of_file[..]] {
        let next = [&shell[..], &["true"]].concat();
        Kills { arguments, moments: 200, longest_ms: 200, next: &next }.leave_nothing();
    }
}

/// Looking for ports every 20 ms made it late by as much.
#[test]
fn a_program_is_started_at_its_time() {
    if !has_kernel() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text = "title = \"t\"\npath = \"geo\"\n[[program]]\nstart = \"7 ms\"\ncommand = \"true\"\n";
    let output = executed(folder.path(), text, &["--json"]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let started = json["programs"][0]["start_ns"].as_u64().unwrap_or_else(|| panic!("{json}"));
    // A tick of the guest's kernel, 4 ms, is the least that it sleeps for.
    assert!((7_000_000..11_500_000).contains(&started), "{started}");
}

/// A download, and an hour in which its connection stays open. Sockets are looked at when packets pass: an hour without any has no look.
#[test]
fn sockets_of_programs_are_sampled_while_packets_pass_and_repeat() {
    if !has_kernel() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let serve = "import socket; s = socket.create_server(('', 7000)); c = s.accept()[0]; c.sendall(bytes(300000)); c.recv(1)";
    let load = "import socket, time; s = socket.create_connection(('far', 7000)); n = 0\nwhile n < 300000: n += len(s.recv(65536))\ntime.sleep(3600)";
    let text = format!(
        "title = \"t\"\npath = \"geo\"\nhorizon = \"2 h\"\n[[program]]\nhost = \"far\"\ncommand = [\"python3\", \"-c\", {serve:?}]\n\
         [[program]]\nwait_for_port = 7000\ncommand = [\"python3\", \"-c\", {load:?}]\n"
    );
    let out = |name: &str| folder.path().join(name);
    for name in ["one", "two"] {
        let output = executed(folder.path(), &text, &["--out", out(name).to_str().unwrap()]);
        assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output));
    }
    for table in ["flows.parquet", "series.parquet"] {
        let of = |name: &str| fs::read(out(name).join(table)).unwrap();
        assert!(of("one") == of("two"), "{table} is another one each time");
    }
    let run = farpath_run::Results::read(out("one")).unwrap().runs().unwrap().remove(0);
    let flow = run.flows.iter().find(|flow| flow.bytes.0 == 300_000).expect("the download");
    assert_eq!((flow.direction, flow.bytes_read), ("reverse", flow.bytes));
    let series = run.series.to_vec();
    let cwnd: Vec<u64> = series
        .iter()
        .filter(|row| row.flow == flow.flow && row.metric == farpath_run::Metric::Cwnd)
        .map(|row| row.value)
        .collect();
    assert!(cwnd.len() > 3 && cwnd.is_sorted(), "slow start: {cwnd:?}");
    let seconds = |row: &farpath_run::SeriesRow| row.time.as_nanos() / 1_000_000_000;
    assert!(!series.iter().any(|row| (60..3600).contains(&seconds(row))), "nothing passed then");
}

/// The same program in the simulator and over the kernel: a window of its own, pieces, pauses.
#[test]
fn a_program_that_holds_back_takes_as_long_as_it_is_simulated() {
    if !has_kernel() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("far.toml");
    for (transfer, tolerance) in [
        ("window = \"50 kB\"", 0.01),
        ("window = \"50 kB\"\nupdate_every = \"8 kB\"", 0.01),
        // Each pause ends at a tick of the guest's kernel, up to 4 ms late.
        ("write_size = \"20 kB\"\nthink_time = \"200 ms\"", 0.03),
    ] {
        let text = FAR
            .replace("forward = \"1 %\"", "forward = \"0 %\"")
            .replace("size = \"200 kB\"", &format!("size = \"600 kB\"\n{transfer}"));
        fs::write(&file, text).unwrap();
        let time = |engine: &[&str]| {
            let output = Command::cargo_bin("farpath")
                .unwrap()
                .args(engine)
                .args([file.to_str().unwrap(), "--json"])
                .output()
                .unwrap();
            let json: Value =
                serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
            json["transfer_time_s"]["mean"].as_f64().unwrap_or_else(|| panic!("{transfer}: {json}"))
        };
        let (simulated, emulated) = (time(&["simulate"]), time(&["emulate", "--clock", "virtual"]));
        assert!((simulated / emulated - 1.0).abs() < tolerance, "{transfer}: {simulated} {emulated}");
    }
}
