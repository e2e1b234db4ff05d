//! A run that makes no progress ends as stuck, and its table says why.

use crate::common::runs;
use farpath_run::{Engine, Outcome};

const SYNS: &str = r#"
title = "A SYN each microsecond, and an answer that takes a day"
horizon = "1000000 s"
path = [{ element = "delay", delay = "86400 s" }]
transfer.size = "1 MB"
[receiver]
handshake.syn_attempts = "unlimited"
rto.min = "1 us"
rto.initial = "1 us"
rto.max = "1 us"
[budget]
events = 100_000
"#;

#[test]
fn a_simulation_beyond_its_events_is_stuck() {
    let run = runs(SYNS, &[Engine::Simulate]).remove(0);
    let flow = &run.flows[0];
    assert_eq!((flow.outcome, flow.completed, flow.transfer_time), (Outcome::Stuck, Some(0.0), None));
    assert!(flow.detail.starts_with("110000 events by 109.999 ms"), "{}", flow.detail);
    assert!(flow.detail.contains("timers of the data receiver of flow 0"), "{}", flow.detail);
}

#[test]
fn elements_that_duplicate_end_in_a_run_that_is_stuck() {
    let copies: String = (0..20)
        .map(|n| format!("[[path]]\nelement = \"duplicate\"\nname = \"d{n}\"\nshare = \"100 %\"\n"))
        .collect();
    for transfer in ["size = \"1 B\"", "protocol = \"udp\"\nmessage = \"1 B\"\ninterval = \"1 s\"\ncount = 3"]
    {
        let text = format!("title = \"t\"\n{copies}[transfer]\n{transfer}\n[budget]\npackets = 10_000\n");
        let flow = runs(&text, &[Engine::Simulate]).remove(0).flows.remove(0);
        assert_eq!(flow.outcome, Outcome::Stuck, "{transfer}");
        assert!(flow.detail.contains("more than 10000 packets on the path"), "{}", flow.detail);
    }
}
