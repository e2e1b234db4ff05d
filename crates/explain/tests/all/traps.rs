//! Every trap is met by one experiment, and not by the one just beside it; and its own change leads out of it.

use crate::common;

use common::{SCALED, overrides, plain};
use farpath_experiment::Experiment;
use farpath_explain::{Effort, Trap, traps};

fn of(changes: &[&str]) -> Vec<Trap> {
    traps(&plain(changes).point(0).scenario)
}

/// `id` is met after `these`, with the words, and not after `beside`.
fn meets(id: &str, these: &[&str], words: &[&str], beside: &[&str]) {
    let met = of(these);
    let trap = met.iter().find(|trap| trap.id == id).unwrap_or_else(|| panic!("{these:?}: {met:?}"));
    for word in words {
        assert!(trap.text.contains(word), "{word}: {}", trap.text);
    }
    assert!(!trap.source.is_empty());
    let other = of(beside);
    assert!(other.iter().all(|trap| trap.id != id), "{beside:?}: {other:?}");
    if !trap.set.is_empty() {
        let out: Vec<&str> = these.iter().copied().chain(trap.set.iter().map(String::as_str)).collect();
        let after = of(&out);
        assert!(after.iter().all(|trap| trap.id != id), "{out:?}: {after:?}");
    }
}

/// A path over which a window of so much can be announced.
fn with_window<'a>(changes: &[&'a str]) -> Vec<&'a str> {
    SCALED.into_iter().chain(changes.iter().copied()).collect()
}

#[test]
fn a_plain_path_meets_none() {
    assert_eq!(of(&[]), []);
}

#[test]
fn rto_floor_below_a_withheld_ack() {
    // 41.2 ms, and 200 ms withheld. Linux adds its floor to the round trip.
    let near = "path.delay=20 ms";
    let (low, high) = ("sender.rto.min=241 ms", "sender.rto.min=242 ms");
    meets("rto-floor", &[near, low], &["241 ms", "200 ms of that withheld", "241.232 ms"], &[near, high]);
    let linux = "sender.rto.floor=variance";
    // 40.064 ms are the SYN's.
    meets("rto-floor", &[near, linux, "sender.rto.min=201 ms"], &[], &[near, linux, "sender.rto.min=202 ms"]);
    // A full segment takes longer over a slow link than a SYN.
    let slow = "path.link=9600 bit/s";
    meets(
        "rto-floor",
        &[near, linux, slow, "sender.rto.min=200 ms"],
        &[],
        &[near, linux, slow, "sender.rto.min=2 s"],
    );
    // Who acknowledges every segment withholds nothing.
    meets("rto-floor", &[near, low], &[], &[near, low, "receiver.receive.ack_every=1"]);
    // Three round trips, the first timeout, outlast a round trip and the delay from 100 ms on.
    meets(
        "rto-floor",
        &["path.delay=49 ms", "sender.rto.min=1 ms"],
        &[],
        &["path.delay=51 ms", "sender.rto.min=1 ms"],
    );
}

#[test]
fn rto_ceiling_below_the_round_trip() {
    meets("rto-max", &["path.delay=30 s"], &["60 s", "times out"], &["path.delay=29.9 s"]);
}

#[test]
fn initial_rto_below_the_round_trip() {
    // A SYN and its answer take 200.064 ms; the receiver opens.
    meets("initial-rto", &["receiver.rto.initial=200 ms"], &["SYN is"], &["receiver.rto.initial=201 ms"]);
    meets("initial-rto", &["sender.rto.initial=200 ms"], &["SYN/ACK"], &["sender.rto.initial=201 ms"]);
}

#[test]
fn more_routers_than_the_ttl_allows() {
    use farpath_experiment::Experiment;
    let with = |routers: u32, changes: &[&str]| {
        let hops = format!("[[path]]\nelement = \"hops\"\nrouters = {routers}\n[transfer]");
        let text = common::PLAIN.replace("[transfer]", &hops);
        traps(&Experiment::parse(&text, "plain.toml", &overrides(changes)).unwrap().point(0).scenario)
    };
    assert!(with(63, &[]).iter().all(|trap| trap.id != "ttl"));
    let met = with(64, &[]);
    let trap = met.iter().find(|trap| trap.id == "ttl").expect("64 routers and a TTL of 64");
    assert!(trap.text.contains("64 is not above the 64 routers"), "{}", trap.text);
    let out: Vec<&str> = trap.set.iter().map(String::as_str).collect();
    assert!(with(64, &out).iter().all(|trap| trap.id != "ttl"), "{out:?}");
    // An octet has no more.
    assert!(with(255, &[]).iter().any(|trap| trap.id == "ttl" && trap.set.is_empty()));
}

#[test]
fn retries_that_end_before_an_ack_can_come() {
    let once = "sender.handshake.data_retries=0";
    // The SYN is sent again over such a round trip, so that the first data wait for 3 s (RFC 6298 section 5.7), and for an ACK
    // that may be withheld for 200 ms.
    meets("data-retries", &["path.delay=1600 ms", once], &["first ACK"], &["path.delay=1350 ms", once]);
    // 19 % of round trips fail: six in a row for one of 6850 segments in three such files, nine in 450.
    let lossy = "path.loss=10 %";
    meets(
        "data-retries",
        &[lossy, "sender.handshake.data_retries=5"],
        &["6 times in a row"],
        &[lossy, "sender.handshake.data_retries=8"],
    );
}

#[test]
fn syn_budget_below_the_round_trip() {
    let one = "receiver.handshake.syn_attempts=1";
    meets("syn-budget", &["path.delay=501 ms", one], &["no connection"], &["path.delay=499 ms", one]);
    meets(
        "syn-budget",
        &["path.delay=1501 ms", "receiver.handshake.syn_attempts=2"],
        &["given up after 3.000 s"],
        &["path.delay=1499 ms", "receiver.handshake.syn_attempts=2"],
    );
}

#[test]
fn synack_budget_below_the_round_trip() {
    let one = "sender.handshake.synack_attempts=1";
    meets("synack-budget", &["path.delay=501 ms", one], &["half-open"], &["path.delay=499 ms", one]);
}

#[test]
fn so_much_loss_that_connections_do_not_open() {
    // Three quarters of the exchanges fail: one in ten connections with 8 SYNs, one in a hundred with 16.
    meets(
        "syn-loss",
        &["path.loss=50 %"],
        &["10.0 %"],
        &["path.loss=50 %", "receiver.handshake.syn_attempts=17"],
    );
    // No number of SYNs gets through where everything is lost.
    let all = of(&["path.loss=100 %"]);
    assert!(all.iter().any(|trap| trap.id == "syn-loss" && trap.set.is_empty()), "{all:?}");
}

#[test]
fn so_much_loss_that_a_listener_forgets_what_the_opener_takes_for_open() {
    let opens = "transfer.opener=receiver";
    // 51 % of the exchanges fail: 1.8 % of connections with six SYN/ACKs, 0.9 % with seven.
    let lossy = ["path.loss=30 %", opens, "sender.handshake.synack_attempts=6"];
    let beside = ["path.loss=30 %", opens, "sender.handshake.synack_attempts=7"];
    meets("synack-loss", &lossy, &["1.8 %", "takes for open"], &beside);
    // What the opener sends opens the connection.
    meets("synack-loss", &lossy, &[], &[&lossy[..], &["transfer.request=100 B"]].concat());
    meets("synack-loss", &lossy, &[], &["path.loss=30 %", "transfer.opener=sender"]);
}

#[test]
fn window_over_64_kb_without_scaling() {
    let scaled = with_window(&["receiver.receive.buffer=65536 B"]);
    meets("window-scaling", &["receiver.receive.buffer=65536 B"], &["never announced"], &scaled);
    meets("window-scaling", &["receiver.receive.buffer=65536 B"], &[], &["receiver.receive.buffer=65535 B"]);
    meets(
        "window-scaling",
        &["receiver.receive.buffer=65536 B", SCALED[0]],
        &[],
        &with_window(&["receiver.receive.buffer=65536 B"]),
    );
}

#[test]
fn window_past_what_scaling_can_say() {
    let most = with_window(&["receiver.receive.buffer=1073725440 B"]);
    meets("window-field", &with_window(&["receiver.receive.buffer=1073725441 B"]), &["stops at"], &most);
}

#[test]
fn windows_below_what_an_ack_or_a_repair_takes() {
    let buffer = |bytes: &'static str| bytes;
    meets(
        "window-below-segment",
        &[buffer("receiver.receive.buffer=1459 B")],
        &["below one segment"],
        &[buffer("receiver.receive.buffer=1460 B")],
    );
    meets(
        "window-below-ack",
        &["receiver.receive.buffer=2919 B"],
        &["1 segments", "200 ms"],
        &["receiver.receive.buffer=2920 B"],
    );
    let lossy = "path.loss=1 %";
    let four = "receiver.receive.buffer=5840 B";
    meets(
        "window-below-fast-retransmit",
        &[lossy, "receiver.receive.buffer=5839 B"],
        &["3 segments", "3 duplicate"],
        &[lossy, four],
    );
    meets(
        "window-below-fast-retransmit",
        &[lossy, four, "sender.recovery.dup_ack_threshold=4"],
        &["4 segments"],
        &[four, "sender.recovery.dup_ack_threshold=4"],
    );
}

#[test]
fn send_buffer_below_the_bandwidth_delay_product() {
    // 200 ms and a little of 10 Mbit/s: 245 kB of payload.
    let wide = |buffer| with_window(&["receiver.receive.buffer=400 kB", buffer]);
    meets(
        "send-buffer",
        &wide("sender.send.buffer=240 kB"),
        &["244.8 kB"],
        &wide("sender.send.buffer=250 kB"),
    );
    // Where the receiver takes no more, it is not the send buffer that bounds.
    meets(
        "send-buffer",
        &["sender.send.buffer=64 kB"],
        &[],
        &["sender.send.buffer=64 kB", "receiver.receive.buffer=64 kB"],
    );
}

#[test]
fn queue_below_the_bandwidth_delay_product() {
    let wide = |queue| with_window(&["receiver.receive.buffer=1 MB", queue]);
    // 0.71 of a product, below which Reno leaves 1 % of the link idle.
    meets(
        "queue-below-bdp",
        &wide("path.link.queue=176 kB"),
        &["251.5 kB", "99 %"],
        &wide("path.link.queue=180 kB"),
    );
    // A window that path and queue hold never overflows it.
    meets("queue-below-bdp", &wide("path.link.queue=100 kB"), &[], &["path.link.queue=100 kB"]);
}

#[test]
fn ack_link_that_sets_the_pace() {
    // An ACK of 40 B for two segments of 1500 B: 10 Mbit/s of data make 133.3 kbit/s of ACKs.
    meets(
        "ack-link",
        &["path.link.rate.reverse=133 kbit/s"],
        &["1.00 times"],
        &["path.link.rate.reverse=134 kbit/s"],
    );
}

#[test]
fn sequence_space_that_wraps_within_an_msl() {
    let wide = |changes: &[&'static str]| {
        let all = ["receiver.receive.buffer=1 GB", "path.link.queue=unlimited"];
        with_window(&[&all, changes].concat())
    };
    // 2^31 B in 120 s are 143 Mbit/s of payload, 147 Mbit/s of packets.
    let fast = wide(&["transfer.size=3 GB", "path.link=148 Mbit/s"]);
    meets("sequence-wrap", &fast, &["2^31"], &wide(&["transfer.size=3 GB", "path.link=147 Mbit/s"]));
    meets("sequence-wrap", &fast, &[], &wide(&["transfer.size=2.1 GB", "path.link=148 Mbit/s"]));
}

#[test]
fn the_changes_can_be_made_together() {
    let met = of(&["path.delay=10 min"]);
    let all: Vec<&str> = met.iter().flat_map(|trap| trap.set.iter().map(String::as_str)).collect();
    assert!(all.len() > 4, "{met:?}");
    assert!(plain(&["path.delay=10 min"]).only(0, &overrides(&all)).is_ok());
}

#[test]
fn no_remedy_makes_an_experiment_fail_whatever_its_timers_are() {
    let both = |changes: &[&str]| -> Vec<String> {
        let ends = |change: &&str| ["sender", "receiver"].map(|end| format!("{end}.{change}"));
        changes.iter().flat_map(ends).collect()
    };
    let one = |changes: &[&str]| changes.iter().map(|change| (*change).to_owned()).collect();
    let extremes: [Vec<String>; 5] = [
        // A floor that is above the ceiling which the receiver's first timeout asks for.
        one(&[
            "receiver.rto.min=30 ms",
            "receiver.rto.max=30 ms",
            "receiver.rto.initial=30 ms",
            "path.delay=20 ms",
        ]),
        both(&["rto.min=40 ms", "rto.max=40 ms", "rto.initial=40 ms", "rto.after_syn_timeout=none"]),
        both(&["rto.min=100 s", "rto.max=100 s", "rto.initial=100 s"]),
        [both(&["rto.min=1 s", "rto.max=1 s", "rto.initial=1 s"]), one(&["path.delay=5 s"])].concat(),
        [both(&["receive.buffer=1 B", "send.buffer=1 B"]), one(&["path.link.queue=1 packets"])].concat(),
    ];
    for stack in farpath_experiment::shipped_stacks() {
        let stacks = ["sender", "receiver"].map(|end| format!("{end}.stack={}", stack.name));
        for extreme in &extremes {
            let small = ["transfer.size=8 kB", "path.loss=5 %", "horizon=100 s"].map(str::to_owned);
            let changes = [&stacks[..], &small, extreme].concat();
            let changes: Vec<&str> = changes.iter().map(String::as_str).collect();
            let effort = Effort { group: None, seeds: Some(1), segments: 20_000_000, ..Effort::default() };
            let explanation = common::explained(&plain(&changes), effort);
            for remedy in explanation.remedies.iter().chain(&explanation.all) {
                let set: Vec<&str> = remedy.set.iter().map(String::as_str).collect();
                plain(&[&changes[..], &set].concat());
            }
        }
    }
}

/// `contacts` in place of the loss of the plain path.
fn with_contacts(contacts: &str, changes: &[&str]) -> Vec<Trap> {
    let text = common::PLAIN
        .replace("element = \"loss\"\nrate = \"0 %\"", &format!("element = \"contacts\"\n{contacts}"));
    let experiment = Experiment::parse(&text, "contacts.toml", &overrides(changes)).expect("it is sound");
    traps(&experiment.point(0).scenario)
}

/// Where packets wait, an answer has to come before the sender gives up; where they are lost, a retransmission has to leave.
#[test]
fn gaps_that_the_timers_do_not_outlast() {
    let linux = ["sender.stack=linux-6", "receiver.stack=linux-6"];
    let met = |contacts: &str, id: &str, changes: &[&str]| {
        let changes: Vec<&str> = linux.iter().chain(changes).copied().collect();
        with_contacts(contacts, &changes).into_iter().find(|trap| trap.id == id)
    };
    let every = |gap: u64, outside: &str| {
        format!("period = \"{} s\"\ncontact = \"100 s\"\noutside = \"{outside}\"", gap + 100)
    };
    for (outside, survived, ends, words) in
        [("hold", 930, 940, "gives up waiting"), ("drop", 810, 820, "last retransmission")]
    {
        assert_eq!(met(&every(survived, outside), "contact-gap", &[]), None);
        let trap = met(&every(ends, outside), "contact-gap", &[]).expect("it is longer");
        assert!(trap.key == "path.contacts" && trap.text.contains(words), "{trap:?}");
        assert_eq!(met(&every(ends, outside), "contact-gap", &[&trap.set[0]]), None, "{trap:?}");
    }
    let from = |first: u64| format!("plan = [{{ from = \"{first} s\", to = \"9000 s\" }}]");
    assert_eq!(met(&from(130), "contact-opening", &[]), None);
    let trap = met(&from(140), "contact-opening", &[]).expect("it is later");
    assert!(trap.text.contains("first contact after 140.000 s"), "{trap:?}");
    assert_eq!(met(&from(140), "contact-opening", &[&trap.set[0]]), None, "{trap:?}");
}
