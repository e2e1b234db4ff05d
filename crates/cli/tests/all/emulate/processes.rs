//! What becomes of an emulation whose process is interrupted, killed, or without privileges.

use super::{SMALL, TINY};
use crate::support::processes::{GIVE_UP_AFTER, Unprivileged, eventually};
use crate::support::{Folder, can_emulate, lines, run};
use assert_cmd::cargo::cargo_bin;
use farpath_testing::{Need, skip};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Instant;

/// A short transfer, and one that takes ten minutes.
fn short_and_long() -> Folder {
    Folder::with(&format!("{SMALL}\n[sweep]\n\"transfer.size\" = [\"20 kB\", \"130 MB\"]\n"))
}

/// An emulation in a process of its own, ended with the test.
struct Emulation(Option<Child>);

impl Emulation {
    fn start(args: &[&str]) -> Emulation {
        let mut command = Command::new(cargo_bin("farpath"));
        command.arg("emulate").args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        Emulation(Some(command.spawn().expect("the command starts")))
    }

    fn id(&self) -> u32 {
        self.0.as_ref().expect("not over").id()
    }

    fn end_with(mut self, signal: Signal) -> Output {
        let id = Pid::from_raw(i32::try_from(self.id()).expect("a process id"));
        kill(id, signal).expect("it is ours");
        self.0.take().expect("ended once").wait_with_output().expect("it ends")
    }
}

impl Drop for Emulation {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "how long an interrupt takes, in real time")]
fn an_interrupt_keeps_what_is_finished() {
    if !can_emulate() {
        return;
    }
    let folder = short_and_long();
    let (results, captures) = (folder.path("results"), folder.path("captures"));
    let emulation = Emulation::start(&[folder.file(), "--out", &results, "--capture", &captures]);
    // A capture has its name when its run is over.
    let first = Path::new(&captures).join("point-0-seed-1-emulate.pcapng");
    eventually("the short run is over", || first.exists());
    let asked = Instant::now();
    let ended = emulation.end_with(Signal::SIGINT);
    let (out, err) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert_eq!(ended.status.code(), Some(130), "{out}{err}");
    // The other run had minutes to go; an interrupt is looked at every 20 ms.
    assert!(asked.elapsed() < GIVE_UP_AFTER / 3, "{:?}", asked.elapsed());
    assert!(err.contains("interrupted: 1 of 2 runs are shown"), "{err}");
    assert!(out.contains("20 kB") && out.contains("emulated"), "{out}");

    let provenance = fs::read_to_string(format!("{results}/provenance.json")).expect("written");
    let provenance: Value = serde_json::from_str(&provenance).expect("JSON");
    assert_eq!((&provenance["complete"], &provenance["tables"]["flows"]), (&false.into(), &1.into()));
    let (_, err, code) = run(&["report", &results]);
    assert_eq!(code, 0, "{err}");
    let left: Vec<_> = fs::read_dir(&captures).expect("readable").flatten().map(|it| it.path()).collect();
    assert_eq!(left, [first], "a capture of a run that was given up is left");
}

/// Devices that the doctor sees of this process.
fn devices_of(process: u32) -> usize {
    let (out, err, _) = run(&["doctor", "--json"]);
    let doctor: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}"));
    let devices = doctor["devices"].as_array().expect("a list");
    devices.iter().filter(|device| device["made_by"] == process).count()
}

/// Network namespaces that a process is in or has open: `net:[4026532000]`.
fn namespaces_of(process: &Path) -> Vec<String> {
    let inside = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let tasks = inside(&process.join("task")).map(|task| task.join("ns/net"));
    let links = tasks.chain(inside(&process.join("fd")));
    let targets = links.filter_map(|link| fs::read_link(link).ok()).map(|to| to.display().to_string());
    targets.filter(|target| target.starts_with("net:[")).collect()
}

#[test]
fn nothing_is_left_of_a_killed_emulation() {
    if !can_emulate() {
        return;
    }
    let folder = short_and_long();
    let captures = folder.path("captures");
    let emulation = Emulation::start(&[folder.file(), "--capture", &captures]);
    // The first of two runs is over, so the second goes on.
    let first = Path::new(&captures).join("point-0-seed-1-emulate.pcapng");
    eventually("the short run is over", || first.exists());
    let id = emulation.id();
    let (ours, theirs) =
        (namespaces_of(Path::new("/proc/self")), namespaces_of(Path::new(&format!("/proc/{id}"))));
    let hosts: Vec<_> = theirs.into_iter().filter(|namespace| !ours.contains(namespace)).collect();
    assert!(hosts.len() >= 2, "two hosts are there while it runs: {hosts:?}");
    let seen = devices_of(id);
    match geteuid().is_root() {
        true => assert!(seen >= 2, "the doctor sees {seen} devices of a run"),
        false => skip(Need::Root, "the doctor's look at devices of another process, which takes root"),
    }

    let ended = emulation.end_with(Signal::SIGKILL);
    assert_eq!(ended.status.code(), None, "it was killed");
    eventually("no process has one of its namespaces", || {
        let processes = fs::read_dir("/proc").expect("Linux").flatten().map(|entry| entry.path());
        !processes.flat_map(|process| namespaces_of(&process)).any(|namespace| hosts.contains(&namespace))
    });
    eventually("its devices are gone", || devices_of(id) == 0);
    let (out, err, code) = run(&[&["emulate", folder.file()], &TINY[..]].concat());
    assert_eq!(code, 0, "the next one works: {out}{err}");
}

#[test]
fn a_user_without_privileges_emulates() {
    if !can_emulate() {
        return;
    }
    let folder = Folder::with(SMALL);
    let Some(nobody) = Unprivileged::beside(&folder) else { return };
    let (out, err, code) = nobody.run(&[&["emulate", folder.file(), "--json"], &TINY[..]].concat());
    assert_eq!(code, Some(0), "{out}{err}");
    let [summary] = lines(&out).try_into().expect("one point");
    assert_eq!(summary["outcomes"], serde_json::json!({ "completed": 1 }));
    // What it went without is said.
    let caveats = summary["caveats"].to_string();
    let tun = nobody.doctor["findings"].as_array().expect("a list").iter().find(|it| it["name"] == "TUN");
    let closed = tun.is_some_and(|tun| tun["state"] != "ok");
    assert_eq!(caveats.contains("packet sockets in place of TUN"), closed, "{caveats}");
    assert!(summary["grade"]["realtime"].is_boolean());
}
