//! `farpath explicit-rate driver` where it is killed, and where nothing would stay of it.
#![cfg(all(target_os = "linux", feature = "driver"))]

use assert_cmd::cargo::cargo_bin;
use farpath_testing::{Need, skip};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

/// Where it is pinned.
const BPFFS: &str = "/sys/fs/bpf";

fn skipped() -> bool {
    let missing = farpath_driver::missing();
    let found = |program: &str| Command::new(program).arg("-V").output().is_ok();
    let why = if !missing.is_empty() {
        farpath_driver::DriverError::Missing(missing).to_string()
    } else if !found("ip") || !found("unshare") {
        "no `ip` or no `unshare` (Debian: apt-get install iproute2 util-linux)".to_owned()
    } else {
        return false;
    };
    skip(Need::Bpf, why);
    true
}

fn text(output: &Output) -> (String, String) {
    (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

/// Runs a script of a shell in a mount namespace and a network namespace of its own; `$farpath` is the command.
fn script(lines: &str) -> Output {
    Command::new("unshare")
        .args(["--mount", "--net", "--propagation", "private", "sh", "-euc", lines])
        .env("farpath", cargo_bin("farpath"))
        .output()
        .expect("unshare starts")
}

#[test]
fn a_killed_attach_leaves_nothing_that_detach_does_not_undo() {
    if skipped() {
        return;
    }
    // A place without one, whatever the machine has there. It is killed at some moment of the attaching, or after it.
    let mut found = [0; 3];
    for centiseconds in (0..100).step_by(4) {
        let output = script(&format!(
            r#"
            mount -t sysfs sysfs /sys
            "$farpath" explicit-rate driver attach lo --rate "50 Mbit/s" >/dev/null 2>&1 & pid=$!
            sleep 0.{centiseconds:02}
            kill -9 $pid 2>/dev/null || true
            wait $pid 2>/dev/null || true
            code=0; "$farpath" explicit-rate driver status 2>&1 || code=$?; echo "status $code"
            code=0; "$farpath" explicit-rate driver detach 2>&1 || code=$?; echo "detach $code"
            code=0; "$farpath" explicit-rate driver status 2>&1 || code=$?; echo "again $code"
            grep -c " {BPFFS} bpf " /proc/self/mounts || true
            "#
        ));
        let (out, err) = text(&output);
        let lines: Vec<_> = out.lines().collect();
        let case = match () {
            () if out.contains("not attached, and an `attach` that was killed") => {
                assert!(out.contains("status 2") && out.contains("Removed what"), "{out}{err}");
                1
            }
            () if out.starts_with("Attached to") => {
                assert!(out.contains("status 0"), "{out}{err}");
                2
            }
            () => {
                assert!(out.contains("status 2") && out.contains("detach 2"), "{out}{err}");
                0
            }
        };
        found[case] += 1;
        assert!(case == 0 || out.contains("detach 0"), "{out}{err}");
        assert!(out.contains("farpath: the driver is not attached\nagain 2"), "{out}{err}");
        assert_eq!(lines.last(), Some(&"0"), "a BPF file system is left: {out}{err}");
    }
    eprintln!("KILLED before it began, half-way, when it was done: {found:?}");
    // The kernel frees what a killed process had registered a little later.
    let registered = || {
        let controls = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
        let controls = controls.expect("it is Linux");
        controls.split_whitespace().any(|name| name == farpath_driver::CONTROL)
    };
    let is_gone = (0..600).any(|_| {
        #[expect(clippy::disallowed_methods, reason = "the kernel does it, in real time")]
        std::thread::sleep(Duration::from_millis(100));
        !registered()
    });
    assert!(is_gone, "the congestion control is still registered");
}

/// A network namespace with a name, gone with the test.
struct Named(String);

impl Drop for Named {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "delete", &self.0]).status();
    }
}

#[test]
fn under_ip_netns_exec_nothing_is_attached_and_it_is_said() {
    if skipped() {
        return;
    }
    let name = Named(format!("farpath-test-{}", std::process::id()));
    let made = Command::new("ip").args(["netns", "add", &name.0]).output().expect("there is ip");
    if !made.status.success() {
        return skip(Need::Root, format!("no named network namespace: {}", text(&made).1));
    }
    let inside = |words: &[&str]| {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &name.0]).args(words);
        let output = command.output().expect("there is ip");
        (output.status.code(), text(&output))
    };
    let program = cargo_bin("farpath");
    let program = program.to_str().expect("UTF-8");
    let attach = ["explicit-rate", "driver", "attach", "lo", "--rate", "50 Mbit/s"];
    let shell = format!("{program} {}; exit $?", "explicit-rate driver attach lo --rate '50 Mbit/s'");
    for words in [
        &[&[program], &attach[..]].concat()[..],
        &["sh", "-c", &shell],
        &[program, "explicit-rate", "driver", "status"],
    ] {
        let (code, (out, err)) = inside(words);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{err}");
        assert!(err.contains("nsenter --net=/run/netns/NAME"), "{err}");
    }
    let missing = Path::new(BPFFS).join("farpath");
    assert!(!missing.exists(), "nothing is attached");
    // By the way that it names it stays.
    let output = script(&format!(
        r#"
        mount -t sysfs sysfs /sys
        in="nsenter --net=/run/netns/{}"
        $in "$farpath" explicit-rate driver attach lo --rate "50 Mbit/s" >/dev/null
        $in "$farpath" explicit-rate driver status
        $in "$farpath" explicit-rate driver detach
        "#,
        name.0
    ));
    let (out, err) = text(&output);
    assert!(output.status.success() && out.starts_with("Attached to lo\n"), "{out}{err}");
    assert!(out.contains("Detached from 1 device"), "{out}{err}");
}
