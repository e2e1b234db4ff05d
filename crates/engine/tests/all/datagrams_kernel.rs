//! Streams of datagrams that ask flow routers for a rate, between programs of this kernel, beside simulated ones.
#![cfg(target_os = "linux")]

use crate::radio_kernel::{both, near};
use farpath_emulate::can_be_emulated;
use farpath_experiment::Experiment;
use farpath_run::{Outcome, Run};

/// Two of 2.06 Mbit/s with their headers, over a line that grants 2.88. Answers ask for their way back.
const STREAMS: &str = r#"
title = "streams that ask"
sender.stack = "linux-6"
sender.explicit_rate.wanted = "3 Mbit/s"
receiver.stack = "linux-6"
receiver.explicit_rate.wanted = "3 Mbit/s"
path = [
    { element = "flow-router", rate = "3 Mbit/s", queue = "100 kB" },
    { element = "delay", delay = "20 ms" },
]
transfer.protocol = "udp"
transfer.message = "1000 B"
transfer.reply = "100 B"
transfer.rate = "2 Mbit/s"
transfer.duration = "3 s"
flow = [{ count = 2, spacing = "100 ms" }]
"#;

#[test]
fn programs_that_ask_are_granted_what_simulated_ones_are() {
    let Some([emulated, simulated]) = both(STREAMS) else { return };
    for (one, other) in emulated.flows.iter().zip(&simulated.flows) {
        assert_eq!(
            (one.outcome, one.explicit_rate.as_deref()),
            (Outcome::Completed, Some("granted")),
            "{one:?}"
        );
        assert_eq!(one.granted_bit_per_s, other.granted_bit_per_s, "{one:?} {other:?}");
        // A loop that is held up for 17 ms hands the router four at once, which is more than it tolerates; ordinary ones would
        // lose one in four.
        let dropped = one.drops_data_direction.expect("counted");
        assert!(dropped <= 15.0 && one.bytes_read.0 == 750_000 - 1000 * dropped as u64, "{one:?}");
        let [time, expected] = [one, other].map(|row| row.transfer_time.expect("it completed").as_secs_f64());
        assert!(near(time, expected, 0.05, 0.0), "{time} s, {expected} simulated");
        // Each message and each answer waits for its grant; a machine makes it later, never earlier.
        let least = one.min_rtt.expect("there were answers").as_secs_f64();
        assert!(least >= 0.040, "{least}");
    }
    let decided =
        |run: &Run| run.routers.iter().map(|row| (row.element.clone(), row.direction)).collect::<Vec<_>>();
    assert_eq!(decided(&emulated), decided(&simulated));
}

#[test]
fn datagrams_ask_in_ipv4_alone() {
    let text = format!("{STREAMS}emulate.ip = 6\n");
    let experiment = Experiment::parse(&text, "case.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    let error = can_be_emulated(&experiment.point(0)).expect_err("structures would be options of a header");
    assert!(error.to_string().starts_with("emulate.ip: "), "{error}");
}
