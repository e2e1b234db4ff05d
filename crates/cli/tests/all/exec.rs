//! `farpath exec` as a user meets it: programs of an experiment file on its path, in real time.
#![cfg(target_os = "linux")]

use crate::support::{Folder, can_emulate, lines, refused, run};
use farpath_run::{Metric, Outcome, Results};
use nix::sys::signal::{Signal, kill};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const PATH: &str = r#"
title = "Two programs"
horizon = "1000 s"

[[path]]
element = "link"
rate = "10 Mbit/s"
queue = "100 kB"

[[path]]
element = "delay"
delay = "20 ms"
"#;

fn experiment(programs: &str) -> Folder {
    Folder::with(&format!("{PATH}\n{programs}"))
}

#[test]
fn what_is_no_program_is_refused_with_its_key() {
    let command = "command = \"true\"";
    for (programs, words) in [
        ("[transfer]\nsize = \"1 kB\"", &["expected programs to run", "[[program]]"][..]),
        ("[[program]]\nname = \"a\"", &["program[0].command", "a list such as"]),
        ("[[program]]\ncommand = []", &["program[0].command", "a list such as"]),
        ("[[program]]\ncommand = [\"a\", 1]", &["program[0].command[1]", "expected text"]),
        (&format!("[[program]]\n{command}\nhost = \"middle\""), &["program[0].host", "`near`, `far`"]),
        (&format!("[[program]]\n{command}\nname = \"../a\""), &["program[0].name", "letters, digits"]),
        (
            &format!("[[program]]\n{command}\nbackground = true"),
            &["program", "all programs are of the background"],
        ),
        (&format!("[[program]]\n{command}\nenv = {{ A = [1] }}"), &["program[0].env.A", "text, a number"]),
        (&format!("[[program]]\n{command}\nfolder = \"/\""), &["program[0].folder", "unknown key"]),
        (
            &format!("[[program]]\n{command}\nwait_for_port = 70000"),
            &["program[0].wait_for_port", "1 to 65535", "70000"],
        ),
        (
            &format!("[[program]]\n{command}\nwait_for_port = \"80/sctp\""),
            &["program[0].wait_for_port", "`4433/udp`", "`80/sctp`"],
        ),
        (
            &format!("[[program]]\nname = \"a\"\n{command}\n[[program]]\nname = \"a\"\n{command}"),
            &["program[1].name", "two programs are called `a`"],
        ),
    ] {
        refused(&["exec", experiment(programs).file()], words);
    }
}

/// A server and its client over the path: what they print is kept, their connections are found.
#[test]
fn programs_run_and_their_connections_are_found() {
    if !can_emulate() {
        return;
    }
    let program = env!("CARGO_BIN_EXE_farpath");
    let folder = experiment(&format!(
        r#"
[[program]]
name = "server"
host = "far"
command = ["{program}", "serve", "--bind", "10.0.0.2:7000"]
background = true

[[program]]
name = "client"
command = "until {program} measure far:7000 --echoes 10 --size '50 kB' --json; do :; done"
env = {{ FARPATH_PROGRESS = "0 s" }}

[[program]]
name = "reader"
start = "10 ms"
command = ["cat"]
input = "/etc/passwd"
cwd = "/"
"#
    ));
    let name = &folder.path("out");
    let out = Path::new(name);
    let (printed, err, code) = run(&["exec", folder.file(), "--json", "--capture", "--out", name]);
    assert_eq!(code, 0, "{printed}{err}");
    let run_ = lines(&printed).remove(0);
    let programs = run_["programs"].as_array().expect("a list");
    let of = |name: &str| programs.iter().find(|program| program["name"] == name).expect("it is there");
    assert_eq!((&of("client")["code"], &of("reader")["code"]), (&Value::from(0), &Value::from(0)));
    assert_eq!(of("server")["code"], Value::Null);
    assert!(of("reader")["start_ns"].as_u64() >= Some(10_000_000));
    let connections = run_["connections"].as_array().expect("a list");
    let transfer = connections
        .iter()
        .find(|one| one["protocol"] == "tcp" && one["sent"]["payload_bytes"].as_u64() >= Some(50_000))
        .expect("the transfer forward");
    assert_eq!(
        (transfer["opener"].as_str(), transfer["peer"].as_str()),
        (Some("10.0.0.1"), Some("10.0.0.2"))
    );
    // A busy machine is late, never early.
    assert!(transfer["rtt_ns"][0].as_u64() >= Some(40_000_000), "{transfer}");
    // The control connection is there all the time: it is looked at also where the machine is busy.
    assert!(connections.iter().any(|one| one["held"]["limits_ns"].is_object()), "{printed}");
    assert!(connections.iter().any(|one| one["protocol"] == "udp" && one["rtt_ns"].is_null()));
    let kept = out.join("point-0-seed-1");
    assert_eq!(fs::read(kept.join("reader.stdout")).expect("kept"), fs::read("/etc/passwd").expect("there"));
    assert!(fs::read_to_string(kept.join("client.stdout")).expect("kept").contains("round_trip"));
    assert!(fs::metadata(kept.join("capture.pcapng")).expect("kept").len() > 50_000);
    assert_eq!(
        lines(&fs::read_to_string(out.join("runs.jsonl")).expect("kept")),
        std::slice::from_ref(&run_)
    );
    // As of any emulation: a row for each connection, series of it, and a report.
    let results = Results::read(out).expect("whole results");
    let of_run = results.runs().expect("sound").remove(0);
    let row = |protocol: &str| {
        let mut rows = of_run.flows.iter().filter(|flow| flow.program.protocol.as_deref() == Some(protocol));
        rows.find(|flow| flow.bytes.0 >= 50_000 && flow.direction == "forward")
            .expect("the echoes, and the transfer")
    };
    let tcp = row("tcp");
    assert_eq!((tcp.outcome, tcp.bytes_read), (Outcome::Completed, tcp.bytes));
    assert!(tcp.program.peer.as_ref().is_some_and(|peer| peer.starts_with("10.0.0.2:")), "{tcp:?}");
    assert_eq!(tcp.retransmissions, transfer["sent"]["retransmissions"].as_f64());
    assert!(tcp.goodput_bit_per_s.is_some_and(|rate| rate < 10e6), "{tcp:?}");
    let series = of_run.series.to_vec();
    assert!(series.iter().any(|row| row.flow == tcp.flow && row.metric == Metric::Delivered));
    assert!(series.iter().any(|row| row.metric == Metric::Cwnd && row.value > 0));
    let (page, said, code) = run(&["report", name]);
    assert_eq!((code, page.trim_end()), (0, out.join("report.html").to_str().expect("UTF-8")), "{said}");
    let page = fs::read_to_string(out.join("report.html")).expect("kept");
    assert!(page.contains("Program client") && page.contains("10.0.0.2:7000"));
    // A folder with results is not written over.
    refused(&["exec", folder.file(), "--out", name], &["--out", name, "expected the name of a new folder"]);
}

/// Engines that run transfers say who runs programs.
#[test]
fn a_file_of_programs_alone_has_nothing_to_simulate() {
    let folder = experiment("[[program]]\ncommand = \"true\"");
    for command in ["simulate", "predict", "run", "explain"] {
        refused(&[command, folder.file()], &["transfer: missing", "programs only", "farpath exec FILE"]);
    }
}

/// A client needs no guess of how long its server takes to start.
#[test]
fn a_program_waits_for_a_port_of_the_other_host() {
    if !can_emulate() {
        return;
    }
    for (port, late, client) in [
        (
            "7000",
            "import socket, time; time.sleep(0.5); s = socket.create_server(('', 7000)); s.accept()[0].sendall(b'at last')",
            "import socket; print(socket.create_connection(('far', 7000)).recv(100).decode())",
        ),
        // Beside a socket of TCP at the same port, which is not what is waited for. What is sent to nobody is lost.
        (
            "\"7000/udp\"",
            "import socket, time; t = socket.create_server(('', 7000)); time.sleep(0.5); \
             s = socket.socket(type=socket.SOCK_DGRAM); s.bind(('', 7000)); s.sendto(b'at last', s.recvfrom(9)[1])",
            "import socket; s = socket.socket(type=socket.SOCK_DGRAM); s.sendto(b'?', ('far', 7000)); \
             print(s.recv(100).decode())",
        ),
    ] {
        let folder = experiment(&format!(
            r#"
[[program]]
name = "client"
wait_for_port = {port}
command = ["python3", "-c", "{client}"]

[[program]]
name = "server"
host = "far"
background = true
command = ["python3", "-c", "{late}"]
"#
        ));
        let out = folder.path("out");
        let (text, err, code) = run(&["exec", folder.file(), "--set", "horizon=60 s", "--out", &out]);
        assert_eq!(code, 0, "{text}{err}");
        let said = fs::read_to_string(Path::new(&out).join("point-0-seed-1/client.stdout")).expect("kept");
        assert_eq!(said, "at last\n");
    }
}

#[test]
fn a_program_that_fails_is_named_and_the_exit_code_says_so() {
    if !can_emulate() {
        return;
    }
    let folder = experiment(
        r#"
[[program]]
name = "sad"
command = "echo no luck >&2; exit 3"

[[program]]
name = "gone"
command = ["no-such-command"]
"#,
    );
    let (out, err, code) = run(&["exec", folder.file(), "--seeds", "2"]);
    assert_eq!(code, 1, "{out}{err}");
    for words in ["seed 1\n", "seed 2\n", "exit code 3", "no luck", "cannot start `no-such-command`"] {
        assert!(out.contains(words), "{words}: {out}");
    }
    assert!(err.contains("in 2 of 2 runs a program did not end with 0"), "{err}");
}

/// What would run for ever is ended at the horizon, with all that it has started.
#[test]
fn the_horizon_ends_programs() {
    if !can_emulate() {
        return;
    }
    let folder = experiment("[[program]]\nname = \"sleeper\"\ncommand = \"sleep 100000 & sleep 100000\"");
    let (out, err, code) = run(&["exec", folder.file(), "--set", "horizon=300 ms"]);
    assert_eq!(code, 1, "{out}{err}");
    assert!(out.contains("still ran when the run was over"), "{out}");
}

/// Two runs, of which the second would never end.
#[test]
#[expect(clippy::disallowed_methods, reason = "programs run in real time")]
fn ctrl_c_keeps_the_runs_that_are_finished() {
    if !can_emulate() {
        return;
    }
    let folder = experiment(
        "[[program]]\ncommand = \"[ -e marker ] && { touch second; sleep 100000; }; touch marker\"",
    );
    let out = folder.path("out");
    let here = Path::new(&out).parent().expect("it is in a folder");
    let child = Command::new(env!("CARGO_BIN_EXE_farpath"))
        .args(["exec", folder.file(), "--seeds", "2", "--out", &out])
        .current_dir(here)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    while !here.join("second").exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    kill(nix::unistd::Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).expect("it runs");
    let ended = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(130), "{said}");
    assert!(said.contains("interrupted: 1 of 2 runs are shown"), "{said}");
    let results = Results::read(Path::new(&out)).expect("what is finished");
    assert_eq!((results.is_complete(), results.runs().expect("sound").len()), (false, 1));
}
