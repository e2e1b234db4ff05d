//! Scripts played against simulated ends.

use farpath_script::syntax::{TcpOption, Way};
use farpath_script::{
    Comparison, Outcome, Packet, RecordError, Seen, Simulated, Verdict, parse, play, record, update,
};
use farpath_tcp::Config;
use farpath_units::Duration;

/// The beginning of a connection that the far end opens.
const ACCEPTED: &str = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
    +0 < S 0:0(0) win 65535 <mss 1000>\n+0 > S. 0:0(0) ack 1 <mss 1460>\n+.1 < . 1:1(0) ack 1 win 65535\n\
    +0 accept(3, ..., ...) = 4\n";

fn run(text: &str) -> Verdict {
    let script = parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    play(&script, &mut Simulated::new(&Config::default()), &Comparison { tolerance: Some(Duration::ZERO) })
}

fn passes(rest: &str) {
    let verdict = run(&format!("{ACCEPTED}{rest}"));
    assert_eq!(verdict.outcome, Outcome::Passed, "{:#?}", verdict.segments);
}

/// The line of the fault, what was expected and what was found.
fn fails(rest: &str) -> (u32, String, String) {
    match run(&format!("{ACCEPTED}{rest}")).outcome {
        Outcome::Failed(fault) => (fault.place.line, fault.expected, fault.found),
        other => panic!("{other:?}"),
    }
}

#[test]
fn rfc_9293_a_segment_is_acknowledged_and_a_close_is_a_fin() {
    passes(
        "+0 < P. 1:501(500) ack 1 win 65535\n+.2 > . 1:1(0) ack 501\n+0 read(4, ..., 1000) = 500\n+0 write(4, ..., 300) = 300\n\
         +0 > P. 1:301(300) ack 501\n+.1 < . 501:501(0) ack 301 win 65535\n+0 close(4) = 0\n+0 > F. 301:301(0) ack 501\n",
    );
}

#[test]
fn segments_that_leave_together_are_one_in_a_script_unless_it_is_strict() {
    let rest = "+0 write(4, ..., 3000) = 3000\n+0 > P. 1:3001(3000) ack 1\n";
    passes(rest);
    let strict = format!("--strict_segments\n{ACCEPTED}{rest}");
    assert!(
        matches!(run(&strict).outcome, Outcome::Failed(fault) if fault.found.contains("the length differs"))
    );
}

#[test]
fn what_differs_is_named_with_its_line() {
    let (line, expected, found) = fails("+0 write(4, ..., 300) = 300\n+0 > P. 2:302(300) ack 1\n");
    assert_eq!(line, 9);
    assert!(expected.contains("P. 2:302(300) ack 1"), "{expected}");
    assert!(
        found.contains("P. 1:301(300) ack 1") && found.contains("the sequence number differs"),
        "{found}"
    );
    let (_, expected, found) = fails("+0 write(4, ..., 300) = 200\n");
    assert_eq!((expected.as_str(), found.as_str()), ("`write()` = 200", "300"));
    let (_, _, found) = fails("+0 > . 1:1(0) ack 2\n");
    assert!(found.starts_with("nothing by"), "{found}");
    let (_, _, found) = fails("+0 write(4, ..., 300) = 300\n+.1 > P. 1:301(300) ack 1\n");
    assert!(found.contains("early"), "{found}");
    let (_, expected, found) = fails("+0 %{ assert tcpi_snd_cwnd == 77, tcpi_snd_cwnd }%\n");
    assert!(expected.contains("tcpi_snd_cwnd == 77") && found.parse::<u32>().is_ok(), "{expected} {found}");
}

#[test]
fn the_last_segments_are_shown_and_the_one_at_fault_is_marked() {
    let verdict = run(&format!("{ACCEPTED}+0 write(4, ..., 300) = 300\n+0 > P. 1:301(300) ack 7\n"));
    let marked: Vec<_> = verdict.segments.iter().filter(|shown| shown.fault).collect();
    assert_eq!(marked.len(), 1);
    assert!(marked[0].text.starts_with("P. 1:301(300) ack 1"), "{marked:?}");
    assert!(verdict.segments.len() <= 10);
}

#[test]
fn a_call_blocks_until_it_has_what_it_waits_for() {
    passes("+0...0.1 read(4, ..., 1000) = 500\n+.1 < P. 1:501(500) ack 1 win 65535\n");
    let (_, _, found) = fails("+0 read(4, ..., 1000) = 500\n");
    assert_eq!(found, "it blocks");
    let (_, expected, found) =
        fails("+0...0.05 read(4, ..., 1000) = 500\n+.1 < P. 1:501(500) ack 1 win 65535\n");
    assert!(expected.contains("the end of the call") && found.contains("late"), "{expected} {found}");
    // A script that waits for ever does not.
    let (_, expected, _) = fails("+0...0.1 read(4, ..., 1000) = 500\n");
    assert_eq!(expected, "a call that ends");
}

#[test]
fn what_a_simulated_end_does_not_have_is_said_before_it_is_wrong() {
    for (rest, words) in [
        ("+0 setsockopt(4, SOL_TCP, TCP_FASTOPEN, [1], 4) = 0\n", "TCP_FASTOPEN"),
        ("+0 < icmp unreachable frag_needed mtu 1000 [1:1(0)]\n", "icmp"),
        ("+0 < icmp unreachable far_away [1:1(0)]\n", "far_away"),
        ("+0 > gre: . 1:1(0) ack 1\n", "gre"),
        ("+0 `rm -rf /tmp/x`\n", "rm -rf"),
        ("+0 mmap(...) = 0\n", "mmap"),
        ("+0 %{ assert tcpi_no_such_field }%\n", "tcpi_no_such_field"),
    ] {
        match run(&format!("{ACCEPTED}{rest}")).outcome {
            Outcome::CannotRun(fault) => {
                assert_eq!(fault.place.line, 8, "{rest}");
                assert!(fault.found.contains(words), "{rest}: {fault:?}");
            }
            other => panic!("{rest}: {other:?}"),
        }
    }
}

#[test]
fn a_script_has_an_end_in_size_events_sockets_and_steps() {
    let wrong = |text: &str| parse(text).expect_err("more than is read").expected;
    assert_eq!(wrong(&" ".repeat((1 << 20) + 1)), "a script of 1048576 B at most");
    assert_eq!(wrong(&"0 f()=0\n".repeat(100_001)), "100000 events at most");
    let beyond = |verdict: Verdict| match verdict.outcome {
        Outcome::CannotRun(fault) => fault.expected,
        other => panic!("{other:?}"),
    };
    let listens =
        "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n";
    let reset =
        "+.1 < S 0:0(0) win 65535 <mss 1000>\n+0 > S. 0:0(0) ack 1 <mss 1460>\n+.1 < R 1:1(0) win 0\n";
    assert_eq!(beyond(run(&format!("{listens}{}", reset.repeat(1001)))), "1000 connections at most");
    // As a kernel has it.
    let descriptor = |number: usize| format!("+0 socket(..., SOCK_STREAM, IPPROTO_TCP) = {}\n", number + 3);
    let descriptors = |count: usize| (0..count).map(descriptor).collect::<String>();
    let too_many = "+0 socket(..., SOCK_STREAM, IPPROTO_TCP) = -1 EMFILE (Too many open files)\n";
    assert_eq!(run(&format!("{}{too_many}", descriptors(1000))).outcome, Outcome::Passed);
    let script =
        parse(&format!("{ACCEPTED}+0 write(4, ..., 300) = 300\n+0.1 > . 1:201(200) ack 1\n")).expect("good");
    let verdict =
        play(&script, &mut Simulated::with_limit(&Config::default(), 2), &Comparison { tolerance: None });
    assert_eq!(beyond(verdict), "4000000 packets and timers at most");
}

#[test]
fn descriptors_have_the_numbers_of_a_kernel() {
    let socket = |number: i64| format!("+0 socket(..., SOCK_STREAM, IPPROTO_TCP) = {number}\n");
    let last = i64::from(i32::MAX);
    assert_eq!(run(&format!("{}{}", socket(last), socket(4))).outcome, Outcome::Passed);
    for script in [socket(last + 1), socket(i64::MAX), format!("+0 pipe([3, {}]) = 0\n", i64::MAX)] {
        let outcome = run(&script).outcome;
        assert!(matches!(outcome, Outcome::Failed(_)), "{script}: {outcome:?}");
    }
}

#[test]
fn a_device_has_an_mtu_of_its_version_of_ip() {
    let socket = "+0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n";
    for (options, wrong) in [
        ("--mtu=576\n", None),
        ("--mtu=575\n", Some("--mtu=575")),
        ("--mtu=1280\n--ip_version=ipv6\n", None),
        ("--mtu=1279\n--ip_version=ipv6\n", Some("--mtu=1279")),
    ] {
        match (run(&format!("{options}{socket}")).outcome, wrong) {
            (Outcome::Passed, None) => {}
            (Outcome::CannotRun(fault), Some(option)) => assert!(fault.found.contains(option), "{fault:?}"),
            (outcome, _) => panic!("{options}: {outcome:?}"),
        }
    }
}

#[test]
fn update_writes_what_came() {
    let text = format!("{ACCEPTED}+0 write(4, ..., 300) = 300\n+0.1 > . 1:201(200) ack 1 // what is sent\n");
    let script = parse(&text).expect("a script");
    let comparison = Comparison { tolerance: Some(Duration::ZERO) };
    let verdict = play(&script, &mut Simulated::new(&Config::default()), &comparison);
    let anew = update(&text, &script, &verdict).expect("it can be written");
    assert!(anew.contains("+0 > P. 1:301(300) ack 1 // what is sent"), "{anew}");
    assert_eq!(run(&anew).outcome, Outcome::Passed);
}

#[test]
fn update_leaves_what_stands_around_a_packet_of_several_lines() {
    let wrong = "+0.1 > . 1:201(\n 200) ack 1 /* what is\n sent */ +0.2 < . 1:1(0) ack 301 win 65535\n";
    let text = format!("{ACCEPTED}+0 write(4, ..., 300) = 300\n{wrong}");
    let script = parse(&text).expect("a script");
    let comparison = Comparison { tolerance: Some(Duration::ZERO) };
    let verdict = play(&script, &mut Simulated::new(&Config::default()), &comparison);
    let anew = update(&text, &script, &verdict).expect("it can be written");
    assert!(
        anew.ends_with("+0 > P. 1:301(300) ack 1 /* what is\n sent */ +0.2 < . 1:1(0) ack 301 win 65535\n"),
        "{anew}"
    );
    assert_eq!(run(&anew).outcome, Outcome::Passed);
}

#[test]
fn tcp_cork_and_msg_more_withhold_what_is_no_full_segment() {
    passes(
        "+0 setsockopt(4, SOL_TCP, TCP_CORK, [1], 4) = 0\n+0 write(4, ..., 1040) = 1040\n+0 > . 1:1001(1000) ack 1\n\
         +.05 < . 1:1(0) ack 1001 win 65535\n+.05 setsockopt(4, SOL_TCP, TCP_CORK, [0], 4) = 0\n+0 > P. 1001:1041(40) ack 1\n\
         +.1 < . 1:1(0) ack 1041 win 65535\n+0 send(4, ..., 40, MSG_MORE) = 40\n+.01 write(4, ..., 40) = 40\n\
         +0 > P. 1041:1121(80) ack 1\n",
    );
}

#[test]
fn msg_eor_ends_a_segment() {
    passes(
        "+0 setsockopt(4, SOL_TCP, TCP_NODELAY, [1], 4) = 0\n+0 send(4, ..., 400, MSG_EOR) = 400\n+0 > P. 1:401(400) ack 1\n\
         +0 send(4, ..., 400, MSG_EOR) = 400\n+0 > P. 401:801(400) ack 1\n",
    );
}

#[test]
fn rfc_9293_3_9_1_5_a_user_timeout_ends_a_connection() {
    passes(
        "+0 setsockopt(4, SOL_TCP, TCP_USER_TIMEOUT, [4000], 4) = 0\n+0 write(4, ..., 100) = 100\n+0 > P. 1:101(100) ack 1\n\
         +1 > P. 1:101(100) ack 1\n+2 > P. 1:101(100) ack 1\n+2.5 write(4, ..., 100) = -1 ETIMEDOUT\n",
    );
}

#[test]
fn a_script_of_what_one_end_saw_passes_against_the_same_stack() {
    let packet = |seq, ack, flags, len, options| Packet {
        local: 1,
        remote: 2,
        tos: 0,
        ttl: 64,
        seq,
        ack,
        flags,
        window: 65_535,
        urgent: 0,
        options,
        len,
    };
    // Initial sequence numbers near their end: what a script says of them begins at 0.
    let (ours, theirs) = (u32::MAX - 100, 7000);
    let after = |seq: u32, bytes: u32| seq.wrapping_add(1 + bytes);
    let packets = [
        (0, Way::In, packet(theirs, 0, 0x02, 0, vec![TcpOption::Mss(1000)])),
        (0, Way::Out, packet(ours, theirs + 1, 0x12, 0, vec![TcpOption::Mss(1460)])),
        (100, Way::In, packet(theirs + 1, after(ours, 0), 0x10, 0, vec![])),
        (150, Way::Out, packet(after(ours, 0), theirs + 1, 0x18, 300, vec![])),
        (250, Way::In, packet(theirs + 1, after(ours, 300), 0x10, 0, vec![])),
        (300, Way::Out, packet(after(ours, 300), theirs + 1, 0x18, 200, vec![])),
        (300, Way::Out, packet(after(ours, 500), theirs + 1, 0x11, 0, vec![])),
        (400, Way::In, packet(theirs + 1, after(ours, 501), 0x10, 0, vec![])),
    ];
    let seen: Vec<Seen> = packets
        .into_iter()
        .map(|(ms, way, packet)| Seen { at: Duration::from_millis(ms), way, packet })
        .collect();
    let text = record(&seen).expect("it begins with a SYN");
    for line in
        ["+0.05 write(4, ..., 300) = 300", "+0.05 write(4, ..., 200) = 200", "+0 > P. 301:501(200) ack 1"]
    {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    assert_eq!(run(&text).outcome, Outcome::Passed, "{text}");
    assert_eq!(record(&seen[3..]), Err(RecordError::NoSyn));
    assert_eq!(record(&seen[..1]), Err(RecordError::OneEnd));
}
