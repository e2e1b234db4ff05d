//! `farpath shell` as a user meets it: programs behind a path, in real time.
#![cfg(target_os = "linux")]

use crate::support::{can_emulate, farpath, refused, run};
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A fast path, so that tests need not wait for it.
const FAST: [&str; 5] = ["shell", "--quiet", "--delay=5 ms", "--rate=100 Mbit/s", "--set=title=fast"];

/// What the near command and its far one print, and the exit code.
fn on_path(options: &[&str], command: &[&str]) -> (String, String, i32) {
    run(&[&FAST[..], options, &["--"], command].concat())
}

#[test]
fn the_exit_code_is_that_of_the_command() {
    if !can_emulate() {
        return;
    }
    for (command, expected) in [("exit 7", 7), ("kill -9 $$", 137), ("true", 0)] {
        let (_, err, code) = on_path(&[], &["sh", "-c", command]);
        assert_eq!(code, expected, "{command}: {err}");
    }
    let (_, err, code) = on_path(&[], &["no-such-command"]);
    assert_eq!(code, 127, "{err}");
    assert!(err.contains("no-such-command"), "{err}");
}

#[test]
fn hosts_have_names_and_nobody_else_is_reached() {
    if !can_emulate() {
        return;
    }
    let (out, err, code) = on_path(&[], &["getent", "ahosts", "far", "near"]);
    assert_eq!(code, 0, "{err}");
    for address in ["10.0.0.1", "10.0.0.2"] {
        assert!(out.contains(address), "{out}");
    }
    assert!(!fs::read_to_string("/etc/hosts").is_ok_and(|hosts| hosts.contains("10.0.0.2\tfar")));
    // One device, and the loopback.
    let (out, _, code) = on_path(&[], &["cat", "/proc/self/net/dev"]);
    assert_eq!((code, out.lines().count()), (0, 4), "{out}");
}

/// The path is measured from within: what is found is what it is.
#[test]
fn a_far_command_is_waited_for_and_the_path_is_the_one_that_was_asked_for() {
    if !can_emulate() {
        return;
    }
    let program = env!("CARGO_BIN_EXE_farpath");
    let serve = format!("{program} serve --bind 10.0.0.2:7000");
    let (out, err, code) = run(&[
        "shell",
        "--delay",
        "20 ms",
        "--rate",
        "10 Mbit/s",
        "--far",
        &serve,
        "--far-port",
        "7000",
        "--",
        program,
        "measure",
        "far:7000",
        "--echoes",
        "50",
        "--size",
        "50 kB",
        "--json",
    ]);
    assert_eq!(code, 0, "{err}");
    let found = crate::support::lines(&out).remove(0);
    let least = found["path"]["round_trip"]["min_ns"].as_u64().expect("a time");
    // A busy machine is late, never early.
    assert!(least >= 40_000_000, "{least} ns");
    assert!(err.contains("packets forward") && err.contains("late by"), "{err}");
}

#[test]
fn a_far_command_that_does_not_listen_is_named() {
    if !can_emulate() {
        return;
    }
    let options = ["--far", "exit 3", "--far-port", "80"];
    let (out, err, code) = on_path(&options, &["echo", "never"]);
    assert_eq!((out.as_str(), code), ("", 2), "{err}");
    assert!(err.contains("the far command ended with 3 before it listened at port 80"), "{err}");
}

#[test]
fn what_is_no_path_is_refused() {
    refused(&["shell", "--", "true"], &["expected PATH, or --delay and --rate", "farpath paths"]);
    refused(&["shell", "--delay", "5 ms", "--", "true"], &["--rate"]);
    refused(&["shell", "no-such-path", "--", "true"], &["no-such-path"]);
    refused(&["shell", "geo", "--set", "path.no=1", "--", "true"], &["path.no"]);
}

/// Nothing is left of what it has started, however it ends.
#[test]
fn a_killed_shell_leaves_no_program_behind() {
    if !can_emulate() {
        return;
    }
    // A number of seconds that nobody else sleeps.
    let seconds = 100_000 + std::process::id();
    let runs = || {
        let processes = fs::read_dir("/proc").expect("/proc").flatten();
        let lines = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
        lines.filter(|line| line.starts_with(format!("sleep\0{seconds}").as_bytes())).count()
    };
    let until = |count: usize| {
        // A bound for a test that fails; what it waits for takes milliseconds.
        for _ in 0..3000 {
            if runs() == count {
                return;
            }
            pause();
        }
        panic!("{} of {count} programs run", runs());
    };
    let far = format!("sleep {seconds} & sleep {seconds}");
    let sleeps = seconds.to_string();
    for signal in ["KILL", "TERM"] {
        let arguments = [&FAST[..], &["--far", &far, "--", "sleep", &sleeps]].concat();
        let mut shell = Command::new(env!("CARGO_BIN_EXE_farpath"))
            .args(&arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        until(3);
        let id = shell.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &id]).status().expect("kill").success());
        let status = shell.wait().expect("it ends");
        assert_eq!(status.code(), (signal == "TERM").then_some(143));
        until(0);
    }
}

#[expect(clippy::disallowed_methods, reason = "processes end in real time")]
fn pause() {
    std::thread::sleep(Duration::from_millis(10));
}

#[test]
fn help_says_what_it_is_for() {
    let out = farpath(&["shell", "--help"]).output().expect("it starts").stdout;
    let out = String::from_utf8(out).expect("UTF-8");
    for word in ["--far ", "--far-port", "near", "exit code"] {
        assert!(out.contains(word), "{out}");
    }
}
