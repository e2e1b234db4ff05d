//! `farpath script` as a user meets it: verdicts, exit codes, the forms of output, and what is no script.
#![cfg(target_os = "linux")]

use crate::support::{farpath, lines, refused, run};
use std::fs;

/// A connection that is opened, and ten segments of the initial window of `linux-6`.
pub const GOOD: &str = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
    +0 < S 0:0(0) win 65535 <mss 1000,sackOK,nop,wscale 7>\n+0 > S. 0:0(0) ack 1 <...>\n\
    +.1 < . 1:1(0) ack 1 win 320\n+0 accept(3, ..., ...) = 4\n+0 write(4, ..., 10000) = 10000\n\
    +0 > P. 1:10001(10000) ack 1\n";

#[test]
fn a_folder_has_a_line_a_script_and_a_column_a_stack() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("writable");
    fs::create_dir(folder.path().join("inner")).expect("writable");
    file("inner/good.pkt", GOOD);
    file("wrong.pkt", &format!("{GOOD}+0 < . 1:1(0) ack 10001 win 320\n+0 > . 7:7(0) ack 1\n"));
    file("beyond.pkt", &format!("{GOOD}+0 < icmp unreachable frag_needed mtu 1000 [1:1(0)]\n"));
    file("no-script.txt", "not read");
    let at = folder.path().to_str().expect("UTF-8");
    let good = format!("{at}/inner");
    let (out, err, code) = run(&["script", &good, "--stack", "linux-6", "--stack", "linux-6.1"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("linux-6: 1 ok, 0 fail, 0 cannot run"), "{out}");

    let (out, _, code) = run(&["script", at, "--json"]);
    assert_eq!(code, 1);
    let found: Vec<_> = lines(&out).iter().map(|line| line["outcome"].as_str().map(str::to_owned)).collect();
    assert_eq!(found, [Some("cannot run".to_owned()), Some("ok".to_owned()), Some("fails".to_owned())]);
    let wrong = &lines(&out)[2];
    assert_eq!((wrong["line"].as_u64(), wrong["column"].as_u64()), (Some(11), Some(1)));
    assert!(wrong["segments"].as_array().is_some_and(|segments| segments.len() == 10));

    let report = format!("{at}/report.xml");
    let (out, _, _) = run(&["script", at, "--tap", "--junit", &report]);
    assert!(out.starts_with("TAP version 13\n1..3\nok 1 beyond.pkt linux-6 # SKIP"), "{out}");
    assert!(out.contains("\nnot ok 3 wrong.pkt linux-6\n"), "{out}");
    let report = fs::read_to_string(report).expect("it is written");
    assert!(report.contains("tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\""), "{report}");

    // What a simulated end does not have is no failure of the stack, and no success either.
    let (_, _, code) = run(&["script", &format!("{at}/beyond.pkt")]);
    assert_eq!(code, 2);
}

/// Scripts of what Linux does, each with the function that it follows. They were played against Linux 6.12 in virtual time.
#[test]
fn linux_6_does_what_linux_does_script_by_script() {
    let folder = format!("{}/../script/tests/linux-6", env!("CARGO_MANIFEST_DIR"));
    let (out, err, code) = run(&["script", &folder, "--stack", "linux-6", "--tolerance", "3 ms"]);
    assert_eq!(code, 0, "{out}{err}");
    let scripts = fs::read_dir(folder).expect("a folder").count();
    assert!(scripts >= 14 && out.contains(&format!("linux-6: {scripts} ok, 0 fail, 0 cannot run")), "{out}");
}

#[test]
fn what_is_no_script_is_named_with_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path().to_str().expect("UTF-8");
    refused(&["script", at], &["expected packet scripts (*.pkt), found none"]);
    refused(&["script", &format!("{at}/none.pkt")], &["none.pkt"]);
    let file = format!("{at}/bad.pkt");
    fs::write(&file, "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 > . 1:1001(999) ack 1\n")
        .expect("writable");
    refused(
        &["script", &file],
        &["bad.pkt:2:8: expected a length that is the difference", "found `1:1001(999)`"],
    );
    fs::write(&file, [0xff, 0xfe]).expect("writable");
    refused(&["script", &file], &["UTF-8"]);
    fs::write(&file, "").expect("writable");
    refused(&["script", &file], &["bad.pkt:1:1: expected an event at least", "found the end of the script"]);
}

#[test]
fn what_a_terminal_would_obey_is_escaped() {
    let folder = tempfile::tempdir().expect("a folder");
    let title = "\u{1b}]0;title\u{7}";
    let file = |name: &str, text: String| fs::write(folder.path().join(name), text).expect("writable");
    file("no-script.pkt", format!("+0 {title}"));
    file("command.pkt", format!("{GOOD}+0 `{title}`\n"));
    file(&format!("{title}.pkt"), format!("{GOOD}+0 %{{ assert 1 == 2, \"{title}\" }}%\n"));
    let ends =
        "[sender]\nstack = \"linux-6\"\n[receiver]\nstack = \"linux-6\"\n[transfer]\nsize = \"1 kB\"\n";
    let path = "[[path]]\nelement = \"delay\"\ndelay = \"1 ms\"\n";
    file("experiment.toml", format!("title = \"t\"\n{path}{ends}[sweep]\n\"\\u001b[2J\" = [1]\n"));
    let at = folder.path().to_str().expect("UTF-8");
    for args in [
        &["script", at][..],
        &["script", at, "--tap"],
        &["simulate", &format!("{at}/experiment.toml")],
        &["import", "tc", &format!("netem {title}")],
    ] {
        let (out, err, code) = run(args);
        let all = format!("{out}{err}");
        assert!(code > 0 && all.contains("\\u001b"), "{args:?}: {all}");
        assert!(!all.chars().any(|c| c.is_control() && c != '\n'), "{args:?}: {all:?}");
    }
}

#[test]
fn more_scripts_than_are_played_are_refused_and_none_is_left_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let inner = |depth: usize| (0..depth).fold(at.join("deep"), |folder, _| folder.join("f"));
    fs::create_dir_all(inner(16)).expect("writable");
    fs::write(inner(16).join("deepest.pkt"), GOOD).expect("writable");
    // Links that lead back, two in each folder, would be 2^16 ways to the same script.
    for name in ["up", "again"] {
        std::os::unix::fs::symlink(at.join("deep"), inner(3).join(name)).expect("writable");
    }
    let deep = at.join("deep").display().to_string();
    let (out, err, code) = run(&["script", &deep]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("linux-6: 1 ok, 0 fail, 0 cannot run"), "{out}");
    fs::create_dir(inner(17)).expect("writable");
    refused(&["script", &deep], &["f/f: expected packet scripts at most 16 folders deep, found a folder"]);

    let named = "a".to_owned();
    fs::write(at.join(&named), GOOD).expect("writable");
    let too_many = vec![named; 100_001];
    let output = farpath(&["script"]).current_dir(at).args(&too_many).output().expect("it starts");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(said.contains("a: expected 100000 packet scripts and 64 MB in all at the most"), "{said}");

    let large = at.join("large");
    fs::create_dir(&large).expect("writable");
    for number in 0..65 {
        let file = fs::File::create(large.join(format!("{number}.pkt"))).expect("writable");
        file.set_len(1_000_000).expect("sparse");
    }
    refused(&["script", &large.display().to_string()], &["large: expected 100000 packet scripts and 64 MB"]);
}

#[test]
fn update_writes_a_script_that_passes() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("new.pkt");
    fs::write(&file, GOOD.replace("1:10001(10000)", "1:9001(9000)")).expect("writable");
    let name = file.to_str().expect("UTF-8");
    assert_eq!(run(&["script", name, "--strict"]).2, 2, "no such option");
    fs::write(&file, GOOD.replace("> S. 0:0(0) ack 1 <...>", "> S. 0:0(0) ack 1 <mss 7>")).expect("writable");
    assert_eq!(run(&["script", name, "--update"]).2, 1);
    assert!(!fs::read_to_string(&file).expect("it is there").contains("mss 7"));
    assert_eq!(run(&["script", name]).2, 0);
}

#[test]
fn a_device_that_is_not_there_is_said_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("one.pkt");
    fs::write(&file, "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n").expect("written");
    let (_, err, code) = run(&["script", file.to_str().expect("text"), "--tun", "no-such-device"]);
    assert_eq!(code, 2, "{err}");
    assert_eq!(err.matches("No such device").count(), 1, "{err}");
    assert!(err.contains("no-such-device"), "{err}");
}

#[test]
fn the_script_of_a_run_passes_with_the_stack_that_made_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (results, captures) = (at("results"), at("captures"));
    let stacks = ["linux-6", "freebsd", "windows-modern"];
    let swept = format!("sweep.sender.stack={stacks:?}");
    // Of 200 kB the 37th segment is lost, and sent again. A script's program writes all at once into a buffer that holds it; in one that grows, the
    // second write would begin a buffer elsewhere, and PSH stand there.
    let sets = [
        &swept,
        "receiver.stack=linux-6",
        "path.listed-loss.packets.forward=[37]",
        "transfer.size=200 kB",
        "sender.send.autotuning=false",
    ];
    let mut args = vec!["simulate", "single-drop", "--out", &results, "--capture", &captures];
    args.extend(sets.iter().flat_map(|set| ["--set", set]));
    let (out, err, code) = run(&args);
    assert_eq!(code, 0, "{out}{err}");
    for (point, stack) in stacks.iter().enumerate() {
        let (script, err, code) = run(&["script", "--from", &results, "--point", &point.to_string()]);
        assert_eq!((err.as_str(), code), ("", 0));
        let (heading, text) = script.split_once('\n').expect("several lines");
        assert!(heading.starts_with(&format!("// Point {point}, seed 1 of `")), "{heading}");
        let (of_capture, _, _) =
            run(&["script", "--from", &format!("{captures}/point-{point}-seed-1.pcapng")]);
        assert_eq!(text, of_capture);
        let file = at(&format!("{stack}.pkt"));
        fs::write(&file, &script).expect("writable");
        let (out, err, code) = run(&["script", &file, "--stack", stack]);
        assert_eq!(code, 0, "{stack}: {out}{err}");
        let mut sent: Vec<&str> = text
            .lines()
            .filter_map(|line| line.split_once("> . ")?.1.split_once(" ack"))
            .map(|of| of.0)
            .collect();
        sent.sort_unstable();
        assert_eq!(sent.windows(2).filter(|pair| pair[0] == pair[1]).count(), 1, "one is sent again: {text}");
    }
    refused(&["script", "--from", &results, "--point", "9"], &["of this point and seed, found none"]);
    refused(&["script", "--from", &results, "--flow", "7"], &["expected connection 7, found 1"]);
    refused(&["script", "--from", folder.path().to_str().expect("UTF-8")], &["not a results folder"]);
}
