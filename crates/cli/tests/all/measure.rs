//! `farpath serve` and `farpath measure`, as a user runs them.

#![cfg(target_os = "linux")]

mod client;
mod limits;
mod soak;

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use tempfile::tempdir;

/// A responder of its own, that ends with the test.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(args: &[&str]) -> Server {
        let program = std::process::Command::new(env!("CARGO_BIN_EXE_farpath"));
        Server::started(program, args).expect("it starts")
    }

    /// By a command that runs the program with what follows.
    fn started(mut command: std::process::Command, args: &[&str]) -> std::io::Result<Server> {
        command.args(["serve", "--port", "0"]).args(args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("piped")).read_line(&mut line)?;
        let address = line.trim().strip_prefix("farpath: waits at ");
        let address = address.ok_or_else(|| std::io::Error::other("it does not start"))?.to_owned();
        Ok(Server { child, address })
    }

    /// As a service manager does. Gives the exit code, and what it has said of clients.
    fn end(&mut self) -> (Option<i32>, String) {
        let stderr = self.child.stderr.take().expect("piped");
        kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGTERM).expect("it runs");
        let told = std::io::read_to_string(stderr).expect("text");
        (self.child.wait().expect("it ends").code(), told)
    }

    /// The same, where somebody else reads what it says.
    fn end_quietly(&mut self) -> Option<i32> {
        kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGTERM).expect("it runs");
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Gone already where the test has ended it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn farpath() -> Command {
    Command::new(env!("CARGO_BIN_EXE_farpath"))
}

/// The objects that it has printed, one a line.
fn rows(run: &Assert) -> Vec<Value> {
    let text = String::from_utf8(run.get_output().stdout.clone()).expect("text");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn stderr(command: &mut Command, code: i32) -> String {
    let output = command.assert().code(code).get_output().clone();
    assert!(output.stdout.is_empty(), "nothing is written");
    String::from_utf8(output.stderr).expect("text")
}

#[test]
fn an_experiment_is_measured_and_its_results_are_read() {
    let (mut server, folder) = (Server::start(&[]), tempdir().expect("a folder"));
    let out = folder.path().join("out");
    let out = out.to_str().expect("text");
    let set = [
        "--set",
        "transfer.size=2 MB",
        "--set",
        "seeds=2",
        "--set",
        "emulate.seeds=2",
        "--set",
        "horizon=60 s",
    ];
    let run = farpath()
        .args(["measure", "noisy-channel", "--to", &server.address, "--set", "sweep.path.loss=['0 %']"])
        .args(set)
        .args(["--json", "--flows", "--out", out])
        .assert()
        .success();
    let rows = rows(&run);
    assert_eq!(rows.len(), 2);
    for row in &rows {
        assert_eq!((&row["engine"], &row["outcome"]), (&"measure".into(), &"completed".into()));
        assert_eq!(row["bytes_read"], 2_000_000);
    }
    farpath().args(["report", out]).assert().success();
    assert!(fs::read_to_string(folder.path().join("out/report.html")).expect("written").contains("easured"));
    let provenance = fs::read_to_string(folder.path().join("out/provenance.json")).expect("written");
    for said in ["local: not matched:", "peer: not matched:", "clocks: times of the peer"] {
        assert!(provenance.contains(said), "{said}");
    }
    let (code, told) = server.end();
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("measures, with farpath") && told.contains(": done after"), "{told}");
}

#[test]
fn a_stream_is_measured_message_by_message() {
    let (server, folder) = (Server::start(&[]), tempdir().expect("a folder"));
    let report = folder.path().join("report.html");
    let run = farpath()
        .args(["measure", "e-vlbi", "--to", &server.address, "--set", "transfer.rate=8 Mbit/s"])
        .args(["--set", "transfer.duration=500 ms", "--flows", "--json"])
        .arg("--report")
        .arg(&report)
        .assert()
        .success();
    let rows = rows(&run);
    assert_eq!(rows.len(), 2);
    for row in &rows {
        assert_eq!((&row["outcome"], &row["messages"]), (&"completed".into(), &63.0.into()), "{row}");
        assert!(row["max_lateness_ns"].as_u64().is_some() && row["peak_backlog_bytes"].is_null(), "{row}");
    }
    let html = fs::read_to_string(&report).expect("written");
    for figure in ["Congestion window", "In-order delivery", "Arrival of messages", "Lateness of messages"] {
        assert!(html.contains(figure), "{figure}");
    }
}

#[test]
fn ports_are_a_range() {
    for ports in ["1", "9-8", "0-7", "1-70000"] {
        let told = stderr(farpath().args(["serve", "--data-ports", ports]), 2);
        assert!(told.contains("such as `40000-40099`"), "{told}");
    }
}

#[test]
fn a_path_is_looked_at_and_kept_as_an_experiment() {
    let (server, folder) = (Server::start(&[]), tempdir().expect("a folder"));
    let quick = ["--echoes", "50", "--interval", "1 ms"];
    let run = farpath()
        .args(["measure", &server.address, "--size", "1 MB", "--json"])
        .args(quick)
        .assert()
        .success();
    let rows = rows(&run);
    assert_eq!(rows.len(), 5, "the path, and four runs");
    assert!(rows[0]["path"]["round_trip"]["min_ns"].as_u64().is_some_and(|ns| ns > 0), "{}", rows[0]);
    assert!(rows[0]["path"]["forward"]["rate_bit_per_s"].as_u64().is_some());
    assert!(rows[1..].iter().all(|row| row["outcome"] == "completed"), "{rows:?}");
    let directions: Vec<&Value> = rows[1..].iter().map(|row| &row["direction"]).collect();
    assert_eq!(directions, ["forward", "forward", "reverse", "reverse"]);

    let file = folder.path().join("my-path.toml");
    let file = file.to_str().expect("text");
    farpath().args(["measure", &server.address, "--as-path", file]).args(quick).assert().success();
    let run = [
        "run",
        file,
        "--engine",
        "predict,simulate,emulate",
        "--set",
        "transfer.size=100 kB",
        "--seeds",
        "1",
    ];
    // Ten milliseconds on a machine that others use: none of them may be the program's own.
    let whenever = ["--set", "emulate.lateness=1 s", "--set", "emulate.processor_wait=100 %"];
    farpath().args(run).args(whenever).assert().success();
    let again = stderr(farpath().args(["measure", &server.address, "--as-path", file]), 2);
    assert!(again.contains("is there already"), "{again}");
    let missing = folder.path().join("missing/x");
    for flag in ["--as-path", "--report"] {
        let early = stderr(farpath().args(["measure", &server.address, flag]).arg(&missing), 2);
        assert!(early.contains("cannot write") && early.contains("missing/x"), "{early}");
    }
}

#[test]
fn each_refusal_is_a_sentence_and_exit_code_2() {
    let folder = tempdir().expect("a folder");
    let key = |name: &str, text: &str| {
        let file = folder.path().join(name);
        fs::write(&file, text).expect("written");
        file.to_str().expect("text").to_owned()
    };
    let (ours, other) =
        (key("ours", "a key that both hosts have\n"), key("other", "another one, quite long\n"));
    let mut server = Server::start(&["--key", &ours, "--max-bytes", "1 MB"]);
    let to = |more: &[&str]| {
        let mut command = farpath();
        command
            .args(["measure", "single-drop", "--set", "transfer.size=2 MB", "--to", &server.address])
            .args(more);
        command
    };
    assert!(stderr(&mut to(&[]), 2).contains("it wants a key: name the file with --key"));
    assert!(stderr(&mut to(&["--key", &other]), 2).contains("does not have the key of --key"));
    assert!(stderr(&mut to(&["--key", &ours]), 2).contains("2 MB are asked for"));
    assert!(stderr(&mut to(&["--key", "none"]), 2).contains("--key: cannot read none"));
    let told = |args: &[&str]| stderr(farpath().args(args), 2);
    assert!(told(&["measure", "127.0.0.1:1"]).contains("the connection was refused"));
    // Before anybody is asked for the path.
    let nothing = told(&["measure", "127.0.0.1:1", "--size", "0 kB"]);
    assert!(nothing.contains("'--size <SIZE>': expected a size above zero, found `0 kB`"), "{nothing}");
    assert!(told(&["measure", "no.such.host.invalid"]).contains("no address is known for it"));
    assert!(told(&["measure", "host:port"]).contains("expected HOST, HOST:PORT"));
    assert!(told(&["measure", "noisy-channel"]).contains("name the peer too: --to HOST"));
    assert!(told(&["measure", "no-such", "--to", "localhost"]).contains("no file or experiment is called"));
    assert!(told(&["serve", "--bind", "192.0.2.1"]).contains("this host does not have that address"));
    assert!(told(&["serve", "--bind", "far.example"]).contains("expected an address of this host"));
    assert_eq!(server.end().0, Some(0));
}

#[test]
fn a_responder_that_everybody_reaches_without_a_key_warns() {
    let (code, told) = Server::start(&["--bind", "0.0.0.0"]).end();
    assert_eq!(code, Some(0));
    assert!(told.contains("warning: whoever reaches 0.0.0.0") && told.contains("--key FILE"), "{told}");
    assert!(!Server::start(&[]).end().1.contains("warning"));
}

#[test]
fn ctrl_c_gives_up_what_goes_on_and_says_so() {
    let mut server = Server::start(&[]);
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_farpath"))
        .args(["measure", "single-drop", "--to", &server.address, "--set", "transfer.size=100 MB"])
        .args(["--set", "receiver.receive.read_rate=80 kbit/s", "--set", "horizon=1 h"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    // Long enough to be under way; whenever it comes, the ending is the same.
    std::thread::park_timeout(std::time::Duration::from_secs(2));
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).expect("it runs");
    let mut said = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
    assert_eq!(child.wait().expect("it ends").code(), Some(130), "{said}");
    assert!(said.contains("interrupted: 0 of 1 runs are shown"), "{said}");
    assert_eq!(server.end().0, Some(0));
}
