//! What `farpath explicit-rate driver` does to a host, and that nothing of it is left.

use crate::common;

use common::{control_of, rate, skip, skipped};
use farpath_driver::{CONTROL, Counter, Device, DriverError, Pinned, Settings};
use farpath_emu::{Host, HostSettings};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::{fs, thread};

/// The name of the congestion control is the machine's: one at a time.
static ONE: Mutex<()> = Mutex::new(());

/// Runs in a host, with mounts that nobody else sees, and a folder to mount a BPF file system on.
fn inside(work: impl FnOnce(&Path) + Send) {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let host = Host::new(&HostSettings::near()).expect("hosts can be made");
    let folder = tempfile::tempdir().unwrap();
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            host.namespace().enter().unwrap();
            unshare(CloneFlags::CLONE_NEWNS).unwrap();
            mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)
                .unwrap();
            work(folder.path());
        });
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

/// All that an administrator could look at: queueing disciplines and filters, programs on devices, settings of TCP, mounts.
fn state(bpffs: &Path) -> BTreeMap<String, String> {
    let mut state = BTreeMap::new();
    for command in [
        ["tc", "qdisc", "show", ""],
        ["tc", "filter", "show", "dev farpath0 ingress"],
        ["tc", "filter", "show", "dev farpath0 egress"],
        ["ip", "-details", "link", "show"],
    ] {
        let words = command.iter().flat_map(|words| words.split_whitespace()).collect::<Vec<_>>();
        if let Ok(output) = Command::new(words[0]).args(&words[1..]).output() {
            state.insert(words.join(" "), String::from_utf8_lossy(&output.stdout).into_owned());
        }
    }
    for name in fs::read_dir("/proc/sys/net/ipv4").unwrap().flatten() {
        // Other tests register congestion controls of their own meanwhile, which everybody sees.
        let (path, text) = (name.path(), fs::read_to_string(name.path()).unwrap_or_default());
        let words = text.split_whitespace().filter(|word| !word.starts_with('t')).collect::<Vec<_>>();
        state.insert(path.display().to_string(), words.join(" "));
    }
    let mounts = fs::read_to_string("/proc/thread-self/mounts").unwrap();
    state.insert("mounts".to_owned(), mounts);
    let left: Vec<PathBuf> = fs::read_dir(bpffs).unwrap().flatten().map(|entry| entry.path()).collect();
    state.insert("pins".to_owned(), format!("{left:?}"));
    state
}

fn assert_same(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) {
    for (name, value) in before {
        assert_eq!(Some(value), after.get(name), "{name}");
    }
    assert_eq!(before.len(), after.len());
}

fn device() -> Device {
    Device::named("farpath0").expect("every host has it")
}

#[test]
fn what_is_attached_outlives_the_loader_and_detaching_leaves_nothing() {
    if skipped() {
        return;
    }
    inside(|bpffs| {
        let before = state(bpffs);
        let pinned = Pinned::under(bpffs);
        assert!(matches!(pinned.status(), Err(DriverError::NotAttached)));
        assert!(matches!(pinned.detach(), Err(DriverError::NotAttached)));

        let settings = Settings::new("cubic");
        let attached = pinned.attach(&[(device(), rate(50_000_000))], &[], &settings, true).unwrap();
        assert_eq!(attached.mounted.as_deref(), Some(bpffs));
        assert_eq!(attached.devices, [("farpath0".to_owned(), rate(50_000_000))]);
        // No program of this process holds it; the file system does.
        let status = Pinned::under(bpffs).status().unwrap();
        assert_eq!((status.devices, status.flows), (vec!["farpath0".to_owned()], vec![]));
        let socket = common::socket("10.0.0.1:0".parse().unwrap());
        socket.set_tcp_congestion(CONTROL.as_bytes()).expect("everybody may have it");
        assert_eq!(control_of(&socket), CONTROL);
        assert!(state(bpffs) != before, "it would see what is changed");

        // A second time, and with other settings.
        let again = pinned.attach(&[(device(), rate(1_000_000))], &[], &settings, false);
        assert!(matches!(again, Err(DriverError::Attached { device }) if device == "farpath0"));
        let lo = Device::named("lo").unwrap();
        let other = pinned.attach(&[(lo.clone(), rate(1_000_000))], &[], &settings, true);
        assert!(matches!(other, Err(DriverError::Settled)));
        pinned.attach(&[(lo, rate(1_000_000))], &[], &settings, false).unwrap();
        assert_eq!(pinned.status().unwrap().devices, ["farpath0", "lo"]);

        drop(socket);
        let detached = pinned.detach().unwrap();
        assert_eq!((detached.devices, detached.flows), (2, 0));
        assert_same(&before, &state(bpffs));
        let socket = common::socket("10.0.0.1:0".parse().unwrap());
        socket.set_tcp_congestion(CONTROL.as_bytes()).expect_err("it is gone");
    });
}

#[test]
fn what_a_killed_attach_leaves_is_found_and_undone() {
    if skipped() {
        return;
    }
    inside(|bpffs| {
        let before = state(bpffs);
        let pinned = Pinned::under(bpffs);
        let interrupted = |left: &Path| match pinned.status() {
            Err(DriverError::Interrupted { left: found }) => assert_eq!(found, left),
            other => panic!("{other:?}"),
        };
        let undone = || {
            let detached = pinned.detach().unwrap();
            assert!(detached.interrupted, "{detached:?}");
            assert_same(&before, &state(bpffs));
            assert!(matches!(pinned.status(), Err(DriverError::NotAttached)));
        };
        // Killed when the file system was mounted.
        mount(Some("farpath"), bpffs, Some("bpf"), MsFlags::empty(), None::<&str>).unwrap();
        interrupted(bpffs);
        undone();
        // When some of it was pinned: maps, all but the link out of the host, all.
        let attach =
            || pinned.attach(&[(device(), rate(50_000_000))], &[], &Settings::new("cubic"), false).unwrap();
        let pins = || {
            let names = fs::read_dir(bpffs.join("farpath")).unwrap().flatten();
            names.map(|entry| entry.path()).collect::<Vec<_>>()
        };
        attach();
        for path in pins() {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if name == "control" || name.starts_with("device-") {
                fs::remove_file(path).unwrap();
            }
        }
        interrupted(&bpffs.join("farpath"));
        undone();
        attach();
        for path in pins().iter().filter(|path| path.to_string_lossy().ends_with("-out")) {
            fs::remove_file(path).unwrap();
        }
        assert_eq!(pinned.status().unwrap().devices, ["farpath0 (one way only: an `attach` was killed)"]);
        assert!(!pinned.detach().unwrap().interrupted, "it was attached to a device");
        assert_same(&before, &state(bpffs));
        // What is left does not stand in the way of another.
        mount(Some("farpath"), bpffs, Some("bpf"), MsFlags::empty(), None::<&str>).unwrap();
        fs::create_dir(bpffs.join("farpath")).unwrap();
        interrupted(&bpffs.join("farpath"));
        attach();
        assert!(!pinned.detach().unwrap().interrupted);
        assert_same(&before, &state(bpffs));
        // Of others nothing is unmounted.
        mount(Some("bpf"), bpffs, Some("bpf"), MsFlags::empty(), None::<&str>).unwrap();
        attach();
        pinned.detach().unwrap();
        assert!(
            fs::read_to_string("/proc/thread-self/mounts")
                .unwrap()
                .contains(&format!("bpf {} bpf", bpffs.display()))
        );
        nix::mount::umount(bpffs).unwrap();
    });
}

#[test]
fn what_cannot_be_attached_is_not_attached_by_half() {
    if skipped() {
        return;
    }
    inside(|bpffs| {
        let before = state(bpffs);
        let pinned = Pinned::under(bpffs);
        assert!(
            matches!(Device::named("nowhere0"), Err(DriverError::NoDevice { device, .. }) if device == "nowhere0")
        );
        let wrong = pinned.attach(&[(device(), rate(1))], &[], &Settings::new("nonesuch"), true).unwrap_err();
        assert!(
            wrong.to_string().contains("no congestion control `nonesuch`; expected one of reno"),
            "{wrong}"
        );
        assert_same(&before, &state(bpffs));
        // The device is attached to first, and then the control group is none.
        let no_group = [PathBuf::from("/proc/self")];
        let wrong =
            pinned.attach(&[(device(), rate(1))], &no_group, &Settings::new("cubic"), true).unwrap_err();
        assert!(wrong.to_string().starts_with("cannot opt in the control group /proc/self: "), "{wrong}");
        assert_same(&before, &state(bpffs));
    });
}

/// Where the control groups of version 2 are.
fn groups() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mut mounts = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    mounts.find(|mount| mount.get(2) == Some(&"cgroup2")).map(|mount| PathBuf::from(mount[1]))
}

#[test]
fn a_program_of_a_control_group_asks_without_knowing() {
    if skipped() {
        return;
    }
    let Some(group) = groups().map(|root| root.join(format!("farpath-test-{}", std::process::id()))) else {
        skip("no control groups of version 2 are mounted here");
        return;
    };
    if let Err(error) = fs::create_dir(&group) {
        skip(format!("no control group can be made here: {error}"));
        return;
    }
    let asked = std::panic::catch_unwind(|| {
        inside(|bpffs| {
            let pinned = Pinned::under(bpffs);
            let settings = Settings::new("cubic");
            pinned
                .attach(&[(device(), rate(50_000_000))], std::slice::from_ref(&group), &settings, true)
                .unwrap();
            assert_eq!(pinned.status().unwrap().groups, 1);
            // Nobody is there: its SYN asks all the same. A shell is no program that knows of congestion controls.
            let connect = |join: &str| {
                let script = format!("{join} exec 3<>/dev/tcp/10.0.0.2/80");
                let mut shell = Command::new("bash");
                let mut shell =
                    shell.args(["-c", &script]).stderr(std::process::Stdio::null()).spawn().unwrap();
                for _ in 0..200 {
                    if requests(&pinned) > 0 {
                        break;
                    }
                    #[expect(clippy::disallowed_methods, reason = "another process works in real time")]
                    thread::sleep(std::time::Duration::from_millis(5));
                }
                shell.kill().unwrap();
                shell.wait().unwrap();
            };
            connect("");
            assert_eq!(requests(&pinned), 0, "it is in no such group");
            connect(&format!("echo $$ > {}/cgroup.procs;", group.display()));
            assert_eq!(requests(&pinned), 1);
            pinned.detach().unwrap();
        });
    });
    fs::remove_dir(&group).unwrap();
    asked.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

fn requests(pinned: &Pinned) -> u64 {
    let counters = pinned.status().unwrap().counters;
    counters.into_iter().find(|(counter, _)| *counter == Counter::SentRequests).expect("it is counted").1
}
