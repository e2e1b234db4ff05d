//! Files of users that are no files, too large, or somebody else's; disks that fill up, and commands that are killed.

#![cfg(target_os = "linux")]
#![expect(clippy::disallowed_methods, reason = "commands are killed and disks fill up in real time")]

use crate::support::{Folder, refused, run};
use assert_cmd::Command;
use farpath_testing::{Need, skip};
use std::fs;
use std::path::Path;
use std::process::{self, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const SHORT: &str = "title = \"x\"\npath = \"noisy-channel\"\n[transfer]\nsize = \"1 kB\"\n";

fn mkfifo(path: &str) {
    assert!(process::Command::new("mkfifo").arg(path).status().expect("coreutils").success());
}

#[test]
fn what_is_no_file_is_refused_at_once_whoever_names_it() {
    let folder = Folder::with(SHORT);
    let fifo = folder.path("fifo.toml");
    mkfifo(&fifo);
    let directory = folder.path("directory.toml");
    fs::create_dir(&directory).expect("writable");
    for (name, found) in [
        (fifo.as_str(), "a FIFO"),
        (&directory, "a directory"),
        ("/dev/zero", "a device"),
        ("/dev/null", "a device"),
    ] {
        let found = format!("expected a file, found {found}");
        refused(&["predict", name], &[name, &found]);
        refused(&["explicit-rate", "router", "--check", name], &[name, &found]);
        let stack = format!("sender.stack={name}");
        if name.ends_with(".toml") {
            refused(&["predict", folder.file(), "--set", &stack], &["sender.stack", name, &found]);
            refused(&["predict", folder.file(), "--set", &format!("path={name}")], &["path", name, &found]);
            refused(&["radius", "--protocol", name], &["--protocol", name, &found]);
        }
        refused(&["serve", "--key", name, "--port", "0"], &["--key", name, &found]);
    }
}

#[test]
fn files_of_16_mb_and_no_more_are_read_unless_the_environment_says_so() {
    let folder = Folder::with(&format!("{SHORT}#{}", "x".repeat(16_000_000)));
    refused(&["predict", folder.file()], &[folder.file(), "expected 16 MB at the most", "FARPATH_MAX_FILE"]);
    let with = |most: &str| {
        let mut command = Command::cargo_bin("farpath").expect("built with this test");
        command.args(["predict", folder.file()]).env("FARPATH_MAX_FILE", most).output().expect("it starts")
    };
    assert_eq!(with("20 MB").status.code(), Some(0));
    let wrong = with("much");
    let err = String::from_utf8_lossy(&wrong.stderr);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(err.contains("FARPATH_MAX_FILE: expected a size such as `64 MB`, found `much`"), "{err}");
}

#[test]
fn what_the_shell_makes_of_a_pipe_is_read() {
    let folder = Folder::with(SHORT);
    let command = format!("exec {} predict <(cat {})", env!("CARGO_BIN_EXE_farpath"), folder.file());
    let out = process::Command::new("bash").args(["-c", &command]).output().expect("bash");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}

/// The largest files that TOML has room for, in the memory of a small machine.
#[test]
fn files_with_millions_of_values_are_refused_in_little_memory() {
    for value in ["1", "[]", "{a=1}"] {
        let list = format!("{value},").repeat(15_000_000 / (value.len() + 1));
        let folder = Folder::with(&format!("x = [{list}]\n{SHORT}"));
        let limited =
            format!("ulimit -v 1000000; exec {} predict {}", env!("CARGO_BIN_EXE_farpath"), folder.file());
        let out = process::Command::new("bash").args(["-c", &limited]).output().expect("bash");
        let err = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{value}: {err}");
        assert!(err.contains("expected 2000000 values at the most, found "), "{err}");
    }
}

#[test]
fn results_are_not_written_through_a_link_of_somebody_else() {
    let folder = Folder::with(SHORT);
    let (out, victim) = (folder.path("out"), folder.path("victim"));
    fs::write(&victim, "years of work").expect("writable");
    for name in ["flows.parquet.partial", "sweep.json.partial", "point-0-seed-1.pcapng.partial"] {
        fs::create_dir(&out).expect("writable");
        std::os::unix::fs::symlink(&victim, Path::new(&out).join(name)).expect("a link");
        let (commands, flag) = match name {
            "flows.parquet.partial" => (&["run"][..], "--out"),
            "sweep.json.partial" => (&["sweep"][..], "--out"),
            _ => (&["simulate"][..], "--capture"),
        };
        let (_, err, code) = run(&[commands, &[folder.file(), flag, &out]].concat());
        assert!(code == 0 || (code == 2 && err.contains(name)), "{name}: {code} {err}");
        assert_eq!(fs::read_to_string(&victim).expect("it is there"), "years of work", "{name}");
        fs::remove_dir_all(&out).expect("it was made here");
        // Nobody writes to it: whoever opens it waits for ever.
        fs::create_dir(&out).expect("writable");
        mkfifo(&format!("{out}/{name}"));
        let (_, err, code) = run(&[commands, &[folder.file(), flag, &out]].concat());
        assert!(code == 0 || (code == 2 && err.contains(name)), "{name}: {code} {err}");
        fs::remove_dir_all(&out).expect("it was made here");
    }
}

/// Killed again and again, more often near the end than before it.
#[test]
fn a_killed_run_leaves_the_old_results_or_the_new_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("results");
    let command = |seed: u64| {
        let mut command = process::Command::new(env!("CARGO_BIN_EXE_farpath"));
        let seed = format!("seed={seed}");
        command.args([
            "simulate",
            "noisy-channel",
            "--seeds",
            "1",
            "--threads",
            "1",
            "--set",
            &seed,
            "--out",
        ]);
        command.arg(&out).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let started = Instant::now();
    assert!(command(0).status().expect("it starts").success());
    let whole = started.elapsed();
    let mut seed_left = 0;
    let mut new = 0;
    for round in 1..=30_u32 {
        let mut child = command(round.into()).spawn().expect("it starts");
        // Between half of the time that it takes and all of it.
        sleep(whole * (30 + round) / 60);
        let _ = child.kill();
        child.wait().expect("it ends");
        let results = farpath_run::Results::read(&out).expect("whole results");
        let runs = results.runs().expect("whole tables");
        let seed = runs[0].seed.expect("a simulation has one");
        assert!(
            runs.len() == 5 && runs.iter().all(|run| run.seed == Some(seed)),
            "of one run of the command"
        );
        assert!(seed == seed_left || seed == u64::from(round), "{seed} in round {round}");
        new += u32::from(seed != seed_left);
        seed_left = seed;
        let html = fs::read_to_string(out.join("report.html")).expect("its report");
        assert!(html.trim_end().ends_with("</html>"), "the report is whole");
    }
    println!("{new} of 30 killed runs had come to their end");
    assert!(command(31).status().expect("it starts").success());
    let mut names: Vec<String> = fs::read_dir(&out)
        .expect("there")
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let expected = ["flows.parquet", "provenance.json", "report.html", "segments.parquet", "series.parquet"];
    assert_eq!(names, expected, "nothing is left");
}

#[test]
fn a_folder_that_is_gone_ends_the_run_with_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    for command in ["simulate", "sweep"] {
        let out = folder.path().join(command);
        let mut child = process::Command::new(env!("CARGO_BIN_EXE_farpath"));
        // Hours of work, if nobody noticed.
        child.args([command, "noisy-channel", "--seeds", "1000000", "--threads", "1", "--out"]).arg(&out);
        child.env("FARPATH_PROGRESS", "0 s").stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = child.spawn().expect("it starts");
        let deadline = Instant::now() + Duration::from_secs(60);
        while fs::read_dir(&out).map_or(0, |entries| entries.count()) == 0 {
            assert!(Instant::now() < deadline, "the folder is made");
            sleep(Duration::from_millis(10));
        }
        sleep(Duration::from_millis(300));
        fs::rename(&out, folder.path().join("gone")).expect("renamed");
        let _ = fs::remove_dir_all(folder.path().join("gone"));
        let output = child.wait_with_output().expect("it ends");
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{command}: {err}");
        assert!(err.contains(command) && err.contains("No such file or directory"), "{err}");
        assert!(!out.exists(), "nothing is made of half of it");
    }
}

/// The disk is a small one in memory, seen by the command alone.
#[test]
fn a_full_disk_ends_the_run_with_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let on_disk = |size: &str, script: &str| {
        let (mount, program) = (folder.path().display(), env!("CARGO_BIN_EXE_farpath"));
        let script = format!("mount -t tmpfs -o size={size} none {mount} && cd {mount} && {script}");
        let script = script.replace("FARPATH", program);
        let output = process::Command::new("unshare").args(["-rm", "sh", "-c", &script]).output().ok()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Some((text(&output.stdout), text(&output.stderr), output.status.code()))
    };
    if on_disk("1m", "true").is_none_or(|(.., code)| code != Some(0)) {
        return skip(Need::Root, "no mount namespace can be made here");
    }
    // Hours of work again; the disk is filled up by somebody else.
    let run = "{ FARPATH simulate noisy-channel --seeds 100000 --threads 1 --out r & sleep 3; \
               head -c 4000000 /dev/zero > other; wait $!; }";
    let (_, err, code) = on_disk("2m", run).expect("as before");
    assert_eq!(code, Some(2), "{err}");
    assert!(
        err.contains("farpath: r: results can no longer be written there: No space left on device"),
        "{err}"
    );
    // Traces that are too large for it; the old results stay.
    let run = "FARPATH simulate noisy-channel --seeds 1 --out r >/dev/null && \
               FARPATH simulate noisy-channel --set 'transfer.size=20 MB' --set output.segments=true --out r; \
               echo exit $?; ls r; FARPATH report r --out /dev/null/x; FARPATH report r";
    let (out, err, _) = on_disk("8m", run).expect("as before");
    assert!(out.contains("exit 2") && err.contains("No space left on device"), "{out}{err}");
    assert!(out.trim_end().ends_with("r/report.html"), "the old results are whole: {out}{err}");
    assert!(!out.contains("partial"), "{out}");
}
