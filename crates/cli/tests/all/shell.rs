//! `farpath shell` as a user meets it: programs behind a path, in real time.
#![cfg(target_os = "linux")]

mod uplink;

use crate::support::kills::Kills;
use crate::support::processes::pause;
use crate::support::{Folder, can_emulate, farpath, refused, run};
use farpath_testing::{Need, skip};
use std::fs;
use std::process::{Command, Stdio};

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
    for (command, expected) in [("no-such-command", 127), ("/etc/passwd", 126)] {
        let (_, err, code) = on_path(&[], &[command]);
        assert_eq!(code, expected, "{err}");
        assert!(err.contains(&format!("farpath: cannot start `{command}`: ")), "{err}");
    }
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

/// Programs choose no controller: the route does.
#[test]
fn hosts_like_their_stacks_have_their_congestion_controls() {
    if !can_emulate() {
        return;
    }
    if Command::new("ip").arg("-V").stdout(Stdio::null()).status().is_err() {
        skip(Need::Root, "`ip` shows the routes of a host");
        return;
    }
    let options = ["--like-stacks", "--set", "sender.congestion.control=\"reno\""];
    let (out, err, code) = on_path(&options, &["ip", "route", "show", "10.0.0.2"]);
    assert!(code == 0 && out.contains("congctl reno"), "{out}{err}");
}

#[test]
fn a_far_command_that_does_not_listen_is_named() {
    if !can_emulate() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let capture = folder.path().join("none.pcapng");
    let capture = format!("--capture={}", capture.display());
    let options = ["--far", "exit 3", "--far-port", "80", &capture];
    let (out, err, code) = on_path(&options, &["echo", "never"]);
    assert_eq!((out.as_str(), code), ("", 2), "{err}");
    assert!(err.contains("the far command ended with 3 before it listened at port 80"), "{err}");
    let (_, err, code) = on_path(&options[2..], &["echo", "never"]);
    assert!(code == 2 && err.contains("expected --far COMMAND too"), "{err}");
    assert_eq!(
        fs::read_dir(folder.path()).expect("it is there").count(),
        0,
        "no capture of what has not run"
    );
}

#[test]
fn where_something_listens_is_said_where_nothing_listens_at_the_port() {
    if !can_emulate() {
        return;
    }
    let command = env!("CARGO_BIN_EXE_farpath");
    let far = format!("{command} serve --bind 10.0.0.2:7000");
    for (far, words) in
        [(far.as_str(), "what listens there: 7000"), ("sleep 1000", "nothing listens there at all")]
    {
        let (out, err, code) = on_path(&["--far", far, "--far-port", "80"], &["echo", "never"]);
        assert_eq!((out.as_str(), code), ("", 2), "{err}");
        let words = format!("nothing on the far host listens at port 80 after 30 s; {words}");
        assert!(err.contains(&words), "{err}");
    }
}

/// What forbids user namespaces is no lack of space, as the kernel has it.
#[test]
fn without_privileges_and_namespaces_it_is_said_what_needs_neither() {
    if !can_emulate() {
        return;
    }
    let none = format!(
        "echo 0 > /proc/sys/user/max_user_namespaces || exit 9; exec setpriv --inh-caps=-all --bounding-set=-all {} shell geo -- true",
        env!("CARGO_BIN_EXE_farpath")
    );
    let unshare = Command::new("unshare").args(["--user", "--map-root-user", "sh", "-c", &none]).output();
    let output = match unshare {
        Ok(output) if output.status.code() == Some(2) => output,
        other => {
            return skip(
                Need::Root,
                format!("unshare(1) and setpriv(1), to take namespaces away: {other:?}"),
            );
        }
    };
    let err = String::from_utf8(output.stderr).expect("UTF-8");
    for word in ["cannot enter a user namespace", "run as root", "--clock virtual"] {
        assert!(err.contains(word), "{err}");
    }
}

/// A program asked to end may say goodbye. Those in the namespace are all that its /proc shows.
#[test]
fn the_near_command_is_asked_to_end_and_sees_its_own_processes_alone() {
    if !can_emulate() {
        return;
    }
    let (out, err, code) = on_path(&[], &["sh", "-c", "echo /proc/[0-9]*"]);
    assert_eq!(code, 0, "{err}");
    // In a container that covers parts of /proc the kernel lets no user namespace mount it anew.
    if farpath_emu::has_privileges() {
        assert_eq!(out, "/proc/1 /proc/2\n");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (up, asked) = (folder.path().join("up"), folder.path().join("asked"));
    let command = format!(
        "trap 'echo > {}; exit' TERM; echo > {}; while :; do sleep 0.1; done",
        asked.display(),
        up.display()
    );
    let mut shell = Command::new(env!("CARGO_BIN_EXE_farpath"))
        .args([&FAST[..], &["--", "sh", "-c", &command]].concat())
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    while !up.exists() {
        pause(10);
    }
    let id = shell.id().to_string();
    assert!(Command::new("kill").args(["-s", "TERM", &id]).status().expect("kill").success());
    assert_eq!(shell.wait().expect("it ends").code(), Some(143));
    assert!(asked.exists());
}

#[test]
fn nothing_is_left_of_a_kill_at_any_moment() {
    if !can_emulate() {
        return;
    }
    let far = ["--far", "sleep 1000 & sleep 1000"];
    Kills {
        arguments: &[&FAST[..], &far, &["--", "sleep", "1000"]].concat(),
        moments: 200,
        longest_ms: 50,
        next: &[&FAST[..], &["--", "true"]].concat(),
    }
    .leave_nothing();
}

#[test]
fn nothing_is_left_of_programs_of_a_file_that_is_killed_at_any_moment() {
    if !can_emulate() {
        return;
    }
    let folder = Folder::with(
        "title = \"t\"\nhorizon = \"5000 s\"\npath = [{ element = \"delay\", delay = \"5 ms\" }]\n\
         [[program]]\nhost = \"far\"\nbackground = true\ncommand = [\"sh\", \"-c\", \"sleep 1000 & sleep 1000\"]\n\
         [[program]]\nname = \"near\"\ncommand = [\"sleep\", \"1000\"]\n",
    );
    let short = Folder::with(
        "title = \"t\"\npath = [{ element = \"delay\", delay = \"5 ms\" }]\n[[program]]\ncommand = [\"true\"]\n",
    );
    Kills {
        arguments: &["exec", folder.file()],
        moments: 200,
        longest_ms: 50,
        next: &["exec", short.file()],
    }
    .leave_nothing();
}

#[test]
fn what_is_no_path_is_refused() {
    refused(&["shell", "--", "true"], &["expected PATH, or --delay and --rate", "farpath paths"]);
    refused(&["shell", "geo", "--clock", "virtual"], &["expected `-- COMMAND`", "virtual time"]);
    refused(&["shell", "--delay", "5 ms", "--", "true"], &["--rate"]);
    refused(&["shell", "--rtt", "5 ms", "--", "true"], &["--rate"]);
    refused(&["shell", "--rtt", "5 ms", "--delay", "5 ms", "--rate", "1 Mbit/s"], &["--rtt", "--delay"]);
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
            pause(10);
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

#[test]
fn help_says_what_it_is_for() {
    let out = farpath(&["shell", "--help"]).output().expect("it starts").stdout;
    let out = String::from_utf8(out).expect("UTF-8");
    for word in ["--far ", "--far-port", "near", "exit code"] {
        assert!(out.contains(word), "{out}");
    }
}
