//! Ends whose TCP is somebody else's.

use farpath_experiment::{Experiment, Implementation, MAX_FOREIGN_FLOWS, Override, Stack};

const FILE: &str = r#"
title = "T"
path = [{ element = "delay", delay = "20 ms" }]
[sender]
stack = "linux-6"
implementation = "lwip"
[transfer]
size = "1 MB"
"#;

fn parsed(changes: &[&str]) -> Result<Experiment, String> {
    let changes: Vec<Override> = changes.iter().map(|text| text.parse().expect("key=value")).collect();
    Experiment::parse(FILE, "t.toml", &changes).map_err(|error| error.to_string())
}

#[test]
fn an_end_names_its_implementation() {
    let scenario = parsed(&["seeds=2", "sender.mss=1000 B", "sender.send.buffer=1 MB"])
        .expect("sound")
        .point(0)
        .scenario
        .clone();
    assert_eq!(scenario.sender.implementation, Implementation::Program("lwip".to_owned()));
    assert!(scenario.sender.untold.is_empty());
    let more = parsed(&["sender.rto.min=1 s", "sender.recovery.sack=false"]).expect("they are of the stack");
    assert_eq!(more.point(0).scenario.sender.untold, ["recovery.sack", "rto.min"]);
    // The receiver has the sender's stack, and Farpath's TCP.
    assert_eq!(scenario.receiver.implementation, Implementation::Farpath);
    assert_eq!(
        (scenario.sender.label(), scenario.receiver.label()),
        ("lwip".to_owned(), "linux-6".to_owned())
    );
    let found: Vec<_> = scenario.foreign_hosts().map(|(key, _)| key).collect();
    assert_eq!(found, ["sender.implementation"]);
    // linux-6 has jitter where several seeds are run; hosts of others take packets as they come, and so does the other end.
    assert!(scenario.receiver.host.jitter.is_zero());
    let own = parsed(&["sender.implementation=farpath"]).expect("sound");
    assert!(!own.has_foreign_hosts() && parsed(&[]).expect("sound").has_foreign_hosts());
    assert!(own.point(0).scenario.needs_no_foreign_host("explain").is_ok());
}

#[test]
fn a_stack_file_names_one_and_is_written_out_with_it() {
    let stack = Stack::parse("title = \"T\"\nimplementation = \"smoltcp\"\nmss = \"1000 B\"\n", "mine.toml")
        .expect("sound");
    assert_eq!(stack.implementation, Implementation::Smoltcp);
    let again =
        Stack::parse(&format!("title = \"T\"\n{}", stack.to_toml()), "mine.toml").expect("what was written");
    assert_eq!(stack, again);
    let both = "title = \"T\"\nimplementation = \"smoltcp\"\n[rto]\nmin = \"1 s\"\n";
    let refused = Stack::parse(both, "mine.toml").expect_err("it says two things").to_string();
    for word in ["mine.toml: rto.min", "`smoltcp` has rules of its own", "`congestion.control`"] {
        assert!(refused.contains(word), "`{word}` is not in: {refused}");
    }
    let refused = stack.needs_no_foreign_host("radius").expect_err("nothing follows from it").to_string();
    assert!(refused.contains("found `smoltcp` under `radius`"), "{refused}");
}

#[test]
fn what_it_cannot_have_is_refused_with_the_key() {
    let too_many = format!("flow=[{{count={}}}]", MAX_FOREIGN_FLOWS + 1);
    for (change, words) in [
        (
            "sender.implementation=../lwip",
            &["sender.implementation", "`farpath`, `smoltcp`, or the name of a program", "found `../lwip`"][..],
        ),
        ("sender.implementation=/bin/sh", &["found `/bin/sh`"]),
        ("sender.implementation=[\"lwip\"]", &["found a list"]),
        ("sender.mss=50 B", &["sender.mss", "expected 64 B to"]),
        ("sender.host.jitter=1 ms", &["sender.host.jitter", "expected 0 s"]),
        ("receiver.receive.read_rate=1 Mbit/s", &["receiver.receive.read_rate", "expected `unlimited`"]),
        ("receiver.explicit_rate.wanted=1 Mbit/s", &["receiver.explicit_rate.wanted"]),
        ("receiver.handshake.syn=false", &["receiver.handshake.syn"]),
        ("transfer.request=1 kB", &["transfer: expected a file that is written at once"]),
        ("transfer.window=64 KiB", &["transfer: expected a file"]),
        ("flow=[{access=\"1 ms\"}]", &["transfer: expected a file"]),
        (&too_many, &["flow (--set): expected 64 flows at most", "a TCP of somebody else's"]),
    ] {
        let said = parsed(&[change]).map(drop).expect_err(change);
        for word in words {
            assert!(said.contains(word), "{change}: `{word}` is not in: {said}");
        }
    }
    let said =
        parsed(&["transfer={protocol=\"udp\", message=\"1 kB\", interval=\"1 s\", duration=\"10 s\"}"]);
    assert!(said.map(drop).expect_err("datagrams").contains("a transfer over TCP"));
}
