//! Programs that are hosts: what becomes of those that do not do as agreed.

use farpath_foreign::{Catalog, Host, HostError, HostSetup, Program, SILENCE};
use farpath_units::{Bytes, Instant};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

fn setup() -> HostSetup {
    HostSetup {
        opens: true,
        sends: true,
        size: Bytes(1000),
        local: "10.0.0.1:50000".parse().expect("an address"),
        remote: "10.0.0.2:50000".parse().expect("an address"),
        mtu: 1500,
        send_buffer: Bytes(1000),
        receive_buffer: Bytes(1000),
        control: "reno",
        seed: 1,
    }
}

/// A folder with one program, a shell script.
struct Script(tempfile::TempDir);

impl Script {
    fn new(text: &str) -> Script {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("mine");
        fs::write(&file, format!("#!/bin/sh\n{text}\n")).expect("writable");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("ours");
        Script(folder)
    }

    fn file(&self) -> PathBuf {
        Catalog::in_folder(self.0.path()).find("mine").expect("it is there")
    }

    fn start_within(&self, silence: Duration) -> Result<Program, HostError> {
        Program::start(&self.file(), &setup(), silence)
    }

    fn start(&self) -> Result<Program, HostError> {
        self.start_within(SILENCE)
    }
}

/// The first answer, and then `line` to everything.
fn answering(line: &str) -> Script {
    Script::new(&format!("read _; echo name me; echo next never; while read _; do {line}; done"))
}

fn refused(script: &Script) -> String {
    let mut program = script.start().expect("its first answer is as agreed");
    program.start(Instant::ZERO).expect_err("its second one is not").to_string()
}

#[test]
fn a_program_is_asked_and_answers() {
    let script = answering("echo packet 45; echo next 5");
    let mut program = script.start().expect("it begins");
    assert_eq!(program.name(), "me");
    let answer = program.start(Instant::ZERO).expect("it answers");
    assert_eq!((answer.packets, answer.next_due), (vec![vec![0x45]], Some(Instant::from_nanos(5))));
}

#[test]
fn garbage_is_refused_with_what_was_expected() {
    let said = refused(&answering("printf 'caf\\303\\251\\033[2J\\n'"));
    assert!(said.contains("mine: expected `packet`") && said.contains("\\u{1b}"), "{said}");
    let said = refused(&answering("head -c 100 /dev/zero; echo"));
    assert!(said.contains("expected `packet`"), "{said}");
}

#[test]
fn timers_in_the_past_are_refused() {
    let said = refused(&answering("echo next 0"));
    assert!(said.contains("`next`: expected a time after 0 ns"), "{said}");
}

#[test]
fn a_flood_of_packets_is_bounded() {
    let said = refused(&Script::new(
        "read _; echo name me; echo next never; read _; while :; do echo packet 4500; done",
    ));
    assert!(said.contains("within 100000 lines"), "{said}");
}

#[test]
fn a_line_without_an_end_is_bounded() {
    let script = Script::new("read _; echo name me; echo next never; read _; yes 4545 | tr -d '\\n'");
    let said = refused(&script);
    assert!(said.contains("a longer one"), "{said}");
}

#[test]
fn who_ends_is_told_with_the_last_words() {
    let script = Script::new("read _; echo name me; echo next never; read _; echo no memory >&2; exit 3");
    let said = refused(&script);
    assert!(said.contains("ended before the run was over; it said: no memory"), "{said}");
}

#[test]
fn who_says_nothing_is_given_up() {
    let script = Script::new("sleep 1000");
    let silence = Duration::from_millis(100);
    let said = script.start_within(silence).expect_err("it sleeps").to_string();
    assert!(said.contains("has not answered `farpath-host` for 0.1 s"), "{said}");
}

#[test]
fn a_name_is_none_of_a_path() {
    let script = answering("echo next never");
    let catalog = Catalog::in_folder(script.0.path());
    assert_eq!(catalog.names(), ["mine"]);
    for name in ["../mine", "/bin/true", ".", "", "other"] {
        let said = catalog.find(name).expect_err("it is not in the folder").to_string();
        assert!(said.contains(&format!("found `{name}`")), "{said}");
    }
    let said = catalog.find("lwip").expect_err("it is not made").to_string();
    assert!(said.contains("`farpath hosts build lwip` makes it"), "{said}");
}

/// Its process is gone when the host is: nothing goes on beside a run.
#[test]
fn a_program_ends_with_its_host() {
    let script = Script::new("read _; echo \"name $$\"; echo next never; exec sleep 1000");
    let program = script.start().expect("it begins");
    let process = PathBuf::from("/proc").join(program.name());
    if !PathBuf::from("/proc/self").exists() {
        return;
    }
    assert!(process.exists());
    drop(program);
    assert!(!process.exists(), "it was waited for");
}
