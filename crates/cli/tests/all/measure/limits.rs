//! What the responder takes of its host, and what it says where it does not get it.

use super::client::Client;
use super::{Server, farpath};
use farpath_measure::limits::{LINES, Needs};
use farpath_measure::serve::Limits;
use farpath_testing::{Need, skip};
use nix::unistd::Uid;
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::{fs, path::Path};
use tempfile::tempdir;

#[test]
fn the_unit_in_the_guide_allows_what_the_limits_need() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/measuring.md");
    let guide = fs::read_to_string(guide).expect("it is there");
    for line in Needs::under(&Limits::default()).unit() {
        assert!(guide.lines().any(|there| there == line), "docs/measuring.md: expected {line}");
    }
    let [none, one] = [0, 1].map(|clients| Needs::under(&Limits { clients, ..Limits::default() }));
    let mebibytes = (one.memory.0 - none.memory.0).div_ceil(1 << 20);
    for text in [
        format!("{} threads and {} for each client", none.tasks, one.tasks - none.tasks),
        format!("{}\nopen files and {} for each client", none.files, one.files - none.files),
        format!("{mebibytes} MiB more for each client"),
    ] {
        assert!(guide.contains(&text), "docs/measuring.md: expected {text}");
    }
    let limits = Limits::default();
    let help = farpath().args(["serve", "--help"]).assert().success();
    let help = String::from_utf8(help.get_output().stdout.clone()).expect("text");
    for value in [limits.clients.to_string(), format!("{:?}", limits.bytes.to_string()), "\"1 h\"".to_owned()]
    {
        assert!(help.contains(&format!("[default: {value}]")), "{value}: {help}");
    }
    assert_eq!(limits.time.to_string(), "3600 s", "an hour");
}

#[test]
fn the_page_of_limits_and_the_doctor_say_what_the_unit_allows() {
    let limits = Limits::default();
    let needs = Needs::under(&limits);
    let [none, one] = [0, 1].map(|clients| Needs::under(&Limits { clients, ..Limits::default() }));
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/limits.md");
    let page = fs::read_to_string(page).expect("it is there");
    for row in [
        format!(
            "| threads of `serve` | {} ({} + {} a client",
            needs.tasks,
            none.tasks,
            one.tasks - none.tasks
        ),
        format!(
            "| open files of `serve` | {} ({} + {} a client)",
            needs.files,
            none.files,
            one.files - none.files
        ),
        format!("| memory of `serve` | {} MiB (", needs.mebibytes()),
    ] {
        assert!(page.contains(&row), "docs/limits.md: expected {row}");
    }
    let doctor = farpath().args(["doctor", "--json"]).output().expect("it starts");
    let doctor: Value = serde_json::from_slice(&doctor.stdout).expect("JSON");
    let findings = doctor["findings"].as_array().expect("a list");
    let found = findings.iter().find(|finding| finding["name"] == "serve").expect("it looks at that too");
    let found = found["found"].as_str().expect("text");
    let allowed = format!(
        "{} clients need {} threads, {} open files and {} MiB: allowed",
        limits.clients,
        needs.tasks,
        needs.files,
        needs.mebibytes()
    );
    // Where this host allows less, it says of how much that is.
    let lacks = needs.lacks().join(" and ");
    let expected =
        if lacks.is_empty() { allowed } else { format!("{} clients may have {lacks}", limits.clients) };
    assert_eq!(found, expected);
}

#[test]
fn as_many_open_files_are_allowed_as_are_needed_or_it_warns() {
    let needs = Needs::under(&Limits::default()).files;
    for (hard, warns) in [(needs + 100, false), (needs - 1, true)] {
        let mut command = Command::new("sh");
        let script = format!("ulimit -Sn 200; ulimit -Hn {hard}; exec \"$0\" \"$@\"");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_farpath")]);
        let mut server = Server::started(command, &[]).expect("it starts");
        let allowed = fs::read_to_string(format!("/proc/{}/limits", server.child.id())).expect("it runs");
        let line =
            allowed.lines().find(|line| line.starts_with("Max open files")).expect("the kernel says it");
        let soft: u64 = line.split_whitespace().nth(3).and_then(|soft| soft.parse().ok()).expect("a number");
        assert_eq!(soft, needs.min(hard), "{line}");
        let (code, told) = server.end();
        assert_eq!((code, told.contains("warning: this host allows")), (Some(0), warns), "{told}");
    }
}

/// A thread that could not be made ended the program's part in it, with a panic: no answer, and no end at SIGTERM.
#[test]
fn where_no_thread_can_be_made_it_says_so_and_goes_on() {
    if !Uid::effective().is_root() {
        skip(Need::Root, "a limit of threads needs another user to hold for");
        return;
    }
    let folder = tempdir().expect("a folder");
    let program = folder.path().join("farpath");
    fs::copy(env!("CARGO_BIN_EXE_farpath"), &program).expect("a copy that the other user may read");
    for (path, mode) in [(folder.path(), 0o755), (&program, 0o755)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("ours");
    }
    // Of a user who has nothing else.
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid", "61973", "--regid", "61973", "--clear-groups", "prlimit", "--nproc=40"])
        .arg(program);
    let Ok(mut server) = Server::started(command, &[]) else {
        skip(Need::Root, "setpriv and prlimit (util-linux)");
        return;
    };
    let address = server.address.parse().expect("an address");
    let mut client = Client::new(Ipv4Addr::LOCALHOST, address).expect("it is let in");
    let mut ready = Vec::new();
    let mut refused = None;
    for flow in 0..64 {
        let answer = client.transfer(&json!({ "flow": flow, "size": 1000 })).expect("it answers");
        match answer["refused"]["why"].as_str() {
            None => ready.push(answer),
            Some(_) => refused = Some(answer),
        }
    }
    let refused = refused.expect("40 threads are too few for 64 flows");
    assert_eq!(refused["refused"]["why"], "cannot", "{refused}");
    assert!(
        refused["refused"]["message"].as_str().is_some_and(|text| text.contains("no thread")),
        "{refused}"
    );
    assert!(ready.len() > 20, "{}", ready.len());
    // Another client is told so too: it has no thread to itself.
    let error = Client::new(Ipv4Addr::new(127, 0, 0, 2), address).map(drop).expect_err("no thread is left");
    assert!(error.to_string().contains("no thread"), "{error}");
    let near = farpath().args(["measure", "single-drop", "--to", &server.address]).assert().code(2);
    let said = String::from_utf8_lossy(&near.get_output().stderr).into_owned();
    assert!(said.contains("it refuses: this host has no thread for it"), "{said}");
    // What goes on goes on.
    for ready in &ready {
        assert_eq!(Client::read_all(client.data(ready).expect("it waits")).expect("data come"), 1000);
    }
    drop(client);
    let (code, told) = server.end();
    assert_eq!(code, Some(0), "{told}");
    assert!(!told.contains("panicked"), "{told}");
}

/// Whoever started it reads nothing of what it says: a full pipe held up those of whom something was said, and the end.
#[test]
fn who_does_not_read_its_log_holds_up_nobody() {
    let mut server = Server::start(&[]);
    let address = server.address.parse().expect("an address");
    // More than a pipe holds, in lines that are as long as lines are.
    let greeting = json!({ "greeting": {
        "farpath": 99, "version": "x".repeat(1000), "kernel": "k", "challenge": "00".repeat(32),
    } });
    for _ in 0..5 * LINES {
        let mut client = Client::greeted(Ipv4Addr::new(127, 0, 0, 3), address).expect("there is room");
        client.say(&greeting).expect("it hears");
        assert_eq!(client.heard().expect("it answers")["refused"]["why"], "version");
    }
    let mut client = Client::new(Ipv4Addr::LOCALHOST, address).expect("it is let in");
    let ready = client.transfer(&json!({ "size": 1000 })).expect("it answers");
    assert_eq!(Client::read_all(client.data(&ready).expect("it waits")).expect("data come"), 1000);
    drop(client);
    assert_eq!(server.end_quietly(), Some(0));
}
